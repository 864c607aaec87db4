package triage

import (
	"context"

	"countersign/action"
)

// undoneBy returns the action that was sent to undo this one, or "". It matters
// only where this one may yet turn out to have happened.
func undoneBy(ctx context.Context, l Ledger, a action.Action) (string, error) {
	if !a.State.In(action.ResultUnknown, action.Failed) {
		return "", nil
	}
	linked, err := l.Linked(ctx, a.ID)
	if err != nil {
		return "", err
	}
	for _, f := range linked {
		if f.Links.Compensates == a.ID && f.Executions() > 0 && !f.State.In(action.Failed, action.Conflict) {
			return f.ID, nil
		}
	}
	return "", nil
}
