package action

import (
	"encoding/json"
	"fmt"
	"time"
)

// Transition is an event that may be written, and the action as it is after.
type Transition struct {
	Event Event
	Next  Action
	// Before, when set, is the moment from which the transition is no longer
	// allowed. It is judged by the database's clock after the row is locked.
	Before time.Time
	// Rests are those whose authority the transition rests on, by what their events
	// are filed under, with their versions. When one has changed since, it is not
	// written.
	Rests map[string]int64
	// Original is the version of the action that this one is linked to, when the
	// transition rests on it: when that has moved on since, it is not written. 0
	// when it rests on none.
	Original int64
	// Hold, when set, is what must be true of the target while its lock is held.
	Hold Hold
}

// Hold says which look at the target belongs to a transition.
type Hold string

// The looks: a new content may not be blocked or open already, a run may not
// be blocked or overlap an unsettled attempt, opening a case only waits its turn.
const (
	HoldNothing Hold = ""
	HoldContent Hold = "content"
	HoldRun     Hold = "run"
	HoldCase    Hold = "case"
)

// Decide is the whole rule of an action's life: a snapshot and a command make
// a transition or a *Refusal. A transition without an event means that there
// is nothing to write: the command was run before, or changes nothing.
func Decide(s Snapshot, c Command) (Transition, error) {
	if _, first := c.(Propose); !first && s.Action.Version == 0 {
		return Transition{}, Refuse(NotFound, "There is no such action, or you may not see it.")
	}
	if op := c.op(); op != "" {
		if e, done := s.Action.Done(op); done {
			return Transition{Next: s.Action}, c.again(s, e)
		}
	}
	return c.decide(s)
}

// same reports whether who repeats a command is who gave it. The system is one,
// whatever it was about when it did.
func (b By) same(left Event) bool {
	return b.Kind == left.By.Kind && (b.Kind == BySystem || b.ID == left.By.ID)
}

// reused refuses an id that was used before for something else.
func reused(same bool) error {
	if same {
		return nil
	}
	return Refuse(IdempotencyKeyInUse, "This id was used before with other content. Use a new id for something new.")
}

// step makes the transition to a state.
func (s Snapshot) step(op string, by By, kind Kind, to State, data, body any) (Transition, error) {
	e := Event{Subject: s.Action.ID, Version: s.Action.Version + 1, Op: op, Kind: kind, By: by,
		From: s.Action.State, To: to, At: s.Now}
	var err error
	if e.Data, err = encode(data); err != nil {
		return Transition{}, fmt.Errorf("encoding event data: %w", err)
	}
	if body != nil {
		if e.Body, err = encode(body); err != nil {
			return Transition{}, fmt.Errorf("encoding event body: %w", err)
		}
		if string(e.Body) == "{}" {
			e.Body = nil
		}
	}
	next, err := s.Action.with(e)
	if err != nil {
		return Transition{}, err
	}
	t := Transition{Event: e, Next: next, Rests: s.Rests}
	if due, ok := s.Action.DueAt(); ok && kind != KindExpired && s.Action.State.In(Proposed, Confirmed) {
		t.Before = due // nothing but expiry happens after it
	}
	return t, nil
}

// need refuses the command unless the action is in one of the states.
func (s Snapshot) need(what string, states ...State) error {
	a := s.Action
	if a.State.In(states...) {
		return nil
	}
	if a.State == Expired {
		return Refuse(ExpiredCode, "The time for this is over. Propose it again if it is still wanted.").
			With("state", string(a.State))
	}
	return Refuse(WrongState, fmt.Sprintf("It cannot be %s: it is %s.", what, a.State)).
		Because(string(a.State)).With("state", string(a.State)).With("what", what)
}

func readData[T any](e Event) T {
	var d T
	if json.Unmarshal(e.Data, &d) != nil {
		var zero T
		return zero
	}
	return d
}

// clip cuts a moment to whole seconds, the way it is bound and shown.
func clip(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
