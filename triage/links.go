package triage

import (
	"context"
	"fmt"

	"countersign/action"
)

// undoneBy returns the action that was sent to undo this one, or that may have
// been, as far as can be read, or "". It matters only where this one may yet turn
// out to have happened: people look at both then.
func undoneBy(ctx context.Context, l Ledger, a action.Action) (string, error) {
	if !a.State.In(action.ResultUnknown, action.Failed) {
		return "", nil
	}
	linked, err := l.Linked(ctx, a.ID)
	if err != nil {
		return "", err
	}
	for _, f := range linked {
		sent := f.Links.Compensates == a.ID && f.Executions() > 0 && !f.State.In(action.Failed, action.Conflict)
		if f.Unreadable != nil { // its row does not say how it is linked
			sent = f.State.In(action.Executing, action.Accepted, action.Applied, action.ResultUnknown)
		}
		if sent {
			return f.ID, nil
		}
	}
	return "", nil
}

// Conclusion is an action that was done in part, or that an executor would go on
// with, and one that is linked to it and has taken effect.
type Conclusion struct {
	Action string `db:"action"`
	Linked string `db:"linked"`
}

// concludeBatch is how many pairs are read at a time.
const concludeBatch = 200

// Conclude closes what was done in part and whose linked action has ended since,
// and leaves to people what an executor would have gone on with beside it, or after
// the one that it is linked to has done it.
// One that was only accepted, and may still turn out otherwise, closes nothing.
func (s *Service) Conclude(ctx context.Context) error {
	return action.Each(ctx, func(after Conclusion) ([]Conclusion, error) { return s.ledger.Concluded(ctx, after, concludeBatch) }, func(p Conclusion) error {
		linked, err := s.ledger.Snapshot(ctx, p.Linked)
		if err == nil && !linked.Action.Ended() {
			return nil
		}
		if err == nil {
			_, err = action.Change(ctx, s.ledger, p.Action, func(action.Snapshot) (action.Command, error) {
				_, how := linked.Action.Links.To()
				return action.Conclude{By: action.By{Kind: action.BySystem}, Linked: p.Linked, How: how, Outcome: linked.Action.State}, nil
			})
		}
		if err != nil && !action.IsCode(err, action.WrongState) { // it moved on, or something may be on its way
			return fmt.Errorf("concluding %s: %w", p.Action, err)
		}
		return nil
	})
}
