package approvals

import (
	"context"

	"countersign/action"
	"countersign/action/contract"
)

// follows refuses an action that is linked to another one which it may not
// follow, now or at all. It is asked when the action is proposed and again when
// it is claimed.
func (s *Service) follows(ctx context.Context, links action.Links, c *contract.Contract, target *action.Target, version *string) error {
	id, how := links.To()
	if id == "" {
		return nil
	}
	original, err := s.ledger.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if !sameTarget(original.Action.Target, target) {
		return action.Refuse(action.InvalidArgument, "A linked action is about the same object as the one that it is linked to.").Because("link-target").
			At("/"+how, "is an action on another object")
	}
	if err := original.Follow(how); err != nil {
		return err
	}
	if how != action.LinkCompensates {
		return nil
	}
	tool, err := s.catalogue.Version(ctx, original.Action.Tool, original.Action.ToolVersion)
	if err != nil {
		return err
	}
	if undo := tool.Contract.Execution.Compensation; undo != "" && undo != c.Name {
		return action.Refuse(action.InvalidArgument, "The contract of "+original.Action.Tool+" names "+undo+" to undo what it did.").Because("link-tool").
			At("/tool", "must be "+undo+" to compensate this action")
	}
	return bindsToProduced(original.Action, c, version)
}

// resumed are the terms of an action of a tool as one that resumes another. It
// refuses when nothing is left to do, and while it is not known of a step whether
// it was done.
func (s *Service) resumed(ctx context.Context, resumes, tool string, t action.Terms) (action.Terms, error) {
	if resumes == "" {
		return t, nil
	}
	original, err := s.ledger.Snapshot(ctx, resumes)
	if err != nil {
		return t, err
	}
	return original.Resumed(tool, t)
}

// MayFollow reports whether an action that waits to be sent, or to be sent again,
// may follow the one that it is linked to now. Of any other it is true.
func (s *Service) MayFollow(ctx context.Context, a action.Action) (bool, error) {
	if id, _ := a.Links.To(); id == "" || a.Work() != action.WorkExecute && a.Work() != action.WorkRetry {
		return true, nil
	}
	snap, err := s.ledger.Snapshot(ctx, a.ID)
	if err == nil {
		err = s.stillFollows(ctx, snap)
	}
	if action.Refused(err) { // also when one of the two cannot be read
		return false, nil
	}
	return err == nil, err
}

// stillFollows is follows for an action as it was approved.
func (s *Service) stillFollows(ctx context.Context, snap action.Snapshot) error {
	a := snap.Action
	if err := snap.MayFollow(); err != nil || a.Links.Compensates == "" {
		return err
	}
	tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
	if err != nil {
		return err
	}
	return bindsToProduced(snap.Original.Action, tool.Contract, a.ObjectVersion)
}

// bindsToProduced refuses to undo anything but what the original left behind,
// where the object has versions.
func bindsToProduced(original action.Action, c *contract.Contract, version *string) error {
	if c.ObjectVersion == contract.VersionNone {
		return nil
	}
	return original.Undone(version)
}

func sameTarget(a, b *action.Target) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
