package action

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// ledger is a Ledger in memory: writes are guarded by version and by their end,
// each op is unique, and answers can be lost before or after the write.
type ledger struct {
	mu        sync.Mutex
	now       time.Time
	events    []Event
	authority map[string][]string
	reads     int
	writes    int
	first     sync.WaitGroup // released when everybody has read once
	seen      sync.Map       // goroutines that have
	// Called with the lock held, before a write is looked at.
	behindTheLock func(l *ledger)
	// Whether the answer to the nth write is lost, and whether it is written.
	lose func(n int) (lost, written bool)
	// Refuses the nth read.
	unreadable func(n int) error
}

// ledgerOf starts a ledger with what a life has come to.
func ledgerOf(l *life) *ledger {
	return &ledger{now: l.now, events: l.events, authority: l.authority}
}

type racer struct{}

func (l *ledger) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	s, err := l.read(id)
	if who := ctx.Value(racer{}); who != nil {
		if _, again := l.seen.LoadOrStore(who, true); !again {
			l.first.Done()
			l.first.Wait()
		}
	}
	return s, err
}

func (l *ledger) read(id string) (Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.unreadable != nil {
		if err := l.unreadable(l.reads); err != nil {
			return Snapshot{}, err
		}
	}
	if len(l.events) == 0 || l.events[0].Subject != id {
		return Snapshot{}, Refuse(NotFound, "none")
	}
	a, err := Fold(l.events)
	return Snapshot{Action: a, Now: l.now, Authority: l.authority}, err
}

func (l *ledger) Append(_ context.Context, t Transition) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.behindTheLock != nil {
		l.behindTheLock(l)
	}
	lost, written := false, true
	if l.lose != nil {
		lost, written = l.lose(l.writes)
	}
	current := t.Event.Version == l.events[len(l.events)-1].Version+1 && (t.Before.IsZero() || l.now.Before(t.Before))
	if written && current {
		for _, e := range l.events {
			if e.Op == t.Event.Op {
				return false, fmt.Errorf("op %s is written twice", e.Op)
			}
		}
		l.events = append(l.events, t.Event)
	}
	if lost {
		return false, fmt.Errorf("reading the answer: %w", ErrLost)
	}
	return written && current, nil
}

// action is what the events come to.
func (l *ledger) action(t *testing.T) Action {
	t.Helper()
	a, err := Fold(l.events)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (l *ledger) count(k Kind) int {
	n := 0
	for _, e := range l.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// race lets n commands read the same snapshot and then write at once.
func (l *ledger) race(n int, command func(i int, s Snapshot) Command) []error {
	errs := make([]error, n)
	l.first.Add(n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			ctx := context.WithValue(context.Background(), racer{}, i)
			_, errs[i] = Change(ctx, l, "act_1", func(s Snapshot) (Command, error) { return command(i, s), nil })
		})
	}
	done.Wait()
	return errs
}
