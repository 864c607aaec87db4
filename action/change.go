package action

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Ledger keeps actions: their events and the row that is folded from them.
type Ledger interface {
	// Snapshot reads an action's events, the database clock and what is needed
	// to know the authority of the people who decided. NotFound when there is none.
	Snapshot(ctx context.Context, id string) (Snapshot, error)
	// Append writes a transition's event and row in one statement. False means
	// that the version moved, or the time was over, and nothing was written.
	// A Refusal is what the target's lock showed. ErrLost means nobody knows.
	Append(ctx context.Context, t Transition) (bool, error)
}

// ErrLost says that the answer to a write was lost: it may or may not have
// committed.
var ErrLost = errors.New("the answer to a write was lost")

// maxTries bounds how often a command is decided anew. Every lost race means
// that somebody else's command went through; lost answers may take long and
// mean nothing, so there are fewer.
const (
	maxTries = 100
	maxLost  = 5
)

// Change decides a command on the latest snapshot and writes the transition.
// When the action moved meanwhile it decides again. The command is built from
// each snapshot anew by make; a refusal from it ends the change. What time
// alone has changed is written first. It returns the snapshot after the change.
func Change(ctx context.Context, l Ledger, id string, make func(Snapshot) (Command, error)) (Snapshot, error) {
	var lost int64 // the version that a write made, if it was made
	answers := 0
	for range maxTries {
		s, err := l.Snapshot(ctx, id)
		if err != nil {
			if lost > 0 {
				return s, outcomeUnknown(err)
			}
			return s, err
		}
		t, err := decideDue(s, make)
		if err != nil {
			if lost > s.Action.Version { // it may still be made
				return s, outcomeUnknown(err)
			}
			return s, err
		}
		if t.Event.Kind == "" {
			s.Action = t.Next
			return s, nil
		}
		written, err := l.Append(ctx, t)
		switch {
		case errors.Is(err, ErrLost):
			lost = t.Event.Version
			if answers++; answers == maxLost {
				return s, outcomeUnknown(err)
			}
		case err != nil:
			return s, err
		case written && t.Event.By.Kind != BySystem:
			s.Action = t.Next
			return s, nil
		}
	}
	return Snapshot{}, fmt.Errorf("changing %s: lost %d races in a row", id, maxTries)
}

// decideDue decides what time has brought about first, then the command.
func decideDue(s Snapshot, make func(Snapshot) (Command, error)) (Transition, error) {
	c, err := make(s)
	if _, repeated := s.Action.Done(opOf(c)); !repeated || err != nil {
		if due, ok := s.Action.DueAt(); ok && !s.Now.Before(due) {
			if _, tick := c.(Tick); !tick {
				return Decide(s, Tick{CaseID: NewID("cas")})
			}
		}
	}
	if err != nil {
		return Transition{}, err
	}
	return Decide(s, c)
}

func opOf(c Command) string {
	if c == nil {
		return ""
	}
	return c.op()
}

func outcomeUnknown(err error) error {
	return Refuse(OutcomeUnknown, "We cannot tell whether this was recorded. Repeat the request with the same key: it takes effect once.").From(err)
}

// Due is a subject that time alone changes, and since when. It is where a page
// of such ends.
type Due struct {
	ID string    `db:"id"`
	At time.Time `db:"due_at"`
}

// Sweep writes what time alone has brought about: expiry, lapsed leases,
// deadlines and fences, for everything that due names, limit at a time after the
// last one. One that cannot be changed does not keep the others waiting.
func Sweep(ctx context.Context, l Ledger, due func(ctx context.Context, after Due, limit int) ([]Due, error), limit int) error {
	return Each(ctx, func(after Due) ([]Due, error) { return due(ctx, after, limit) }, func(d Due) error {
		_, err := Change(ctx, l, d.ID, func(Snapshot) (Command, error) { return Tick{CaseID: NewID("cas")}, nil })
		if err != nil {
			return fmt.Errorf("sweeping %s: %w", d.ID, err)
		}
		return nil
	})
}
