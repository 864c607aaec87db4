package triage

import (
	"context"
	"errors"
	"strings"

	"countersign/action"
)

// FromList begins the ids of evidence that was read in a business system's list.
const FromList = "list:"

// errMoved ends telling an action what it does not need to know any more.
var errMoved = errors.New("the action moved on")

// tellOrNote tells an action what speaks against it. When the action refuses
// that, or what is stored of it does not belong together, the difference is kept
// with the reason, for a person: one action must not hold all others up.
func (r *Reconciler) tellOrNote(ctx context.Context, s scales, j Joined, w *weighed, d *Difference) error {
	err := r.tell(ctx, s, j, w, d)
	if !action.Refused(err) {
		return err // nothing, or trouble that passes
	}
	d.Untold = action.AsRefusal(err).Detail
	if w.class == ClassMatched || w.class == ClassAwaiting {
		w.class, w.why = ClassMismatch, DiffersUntold
	}
	return nil
}

// tell adds what a list says of an operation to its action, as evidence. It is
// named by what it says: the same again changes nothing.
func (r *Reconciler) tell(ctx context.Context, s scales, j Joined, w *weighed, d *Difference) error {
	page := s.by.Pageful()
	if j.Theirs != nil {
		page = s.by.Pageful(*j.Theirs)
	}
	digest := strings.TrimPrefix(action.ContentHash([]byte(w.says+"\n"+string(page))), "sha256:")
	f := action.Found{ID: FromList + digest[:32], Source: s.by.List, Outcome: w.says, Proves: w.proves}
	snap, err := action.Change(ctx, r.ledger, j.ActionID, func(snap action.Snapshot) (action.Command, error) {
		a := snap.Action
		switch {
		case a.ExecutionKey != j.Key, a.State.In(action.Draft, action.Proposed):
			return nil, errMoved
		case w.says == action.FoundNotExecuted && !a.State.In(action.Accepted, action.Applied):
			return nil, errMoved // that a list lacks it settles nothing
		}
		undone, err := undoneBy(ctx, r.ledger, a)
		if err != nil {
			return nil, err
		}
		return action.AddEvidence{UndoneBy: undone, By: action.By{Kind: action.BySystem, ID: s.run.ID, Name: "Reconciliation"},
			CaseID: action.NewID("cas"), Snapshot: page, Found: f}, nil
	})
	if errors.Is(err, errMoved) {
		if snap, err = r.ledger.Snapshot(ctx, j.ActionID); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if c := snap.Action.Case; c != nil {
		d.CaseID, d.CaseOpen = c.ID, c.Open
	}
	return nil
}
