package approvals

import (
	"context"
	"fmt"

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

// remaining leaves, of the steps of an action that resumes another one of the
// same tool, those that the other has not done. It refuses when nothing is left,
// and while it is not known of a step whether it was done.
func (s *Service) remaining(ctx context.Context, resumes, tool string, steps []action.StepTerms) ([]action.StepTerms, error) {
	if resumes == "" || len(steps) == 0 {
		return steps, nil
	}
	original, err := s.ledger.Snapshot(ctx, resumes)
	if err != nil || original.Action.Tool != tool {
		return steps, err
	}
	return original.Left(steps)
}

// MayFollow reports whether an action that waits to be claimed may follow the one
// that it is linked to now. Of any other it is true.
func (s *Service) MayFollow(ctx context.Context, a action.Action) (bool, error) {
	if a.State != action.Confirmed {
		return true, nil
	}
	err := s.stillFollows(ctx, a)
	if action.Refused(err) { // also when the other one cannot be read
		return false, nil
	}
	return err == nil, err
}

// stillFollows is follows for an action as it was approved.
func (s *Service) stillFollows(ctx context.Context, a action.Action) error {
	if id, _ := a.Links.To(); id == "" {
		return nil
	}
	tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
	if err != nil {
		return err
	}
	left, err := s.remaining(ctx, a.Links.Resumes, a.Tool, a.Terms.Steps)
	if err != nil {
		return err
	}
	if len(left) != len(a.Terms.Steps) {
		return doneMeanwhile(a.Links.Resumes)
	}
	if err := s.nothingLeft(ctx, a); err != nil {
		return err
	}
	return s.follows(ctx, a.Links, tool.Contract, a.Target, a.ObjectVersion)
}

// nothingLeft refuses an action that was to do, by the same tool and as a whole,
// what was left of another one that has turned out since to be done: it was sent
// once more, or its outcome was found out.
func (s *Service) nothingLeft(ctx context.Context, a action.Action) error {
	if a.Links.Resumes == "" || len(a.Terms.Steps) > 0 {
		return nil
	}
	original, err := s.ledger.Snapshot(ctx, a.Links.Resumes)
	if err != nil {
		return err
	}
	if was := original.Action; was.Tool == a.Tool && was.State.In(action.Applied, action.Accepted) && was.Since.After(a.ProposedAt) {
		return doneMeanwhile(was.ID)
	}
	return nil
}

func doneMeanwhile(original string) error {
	return action.Refuse(action.WrongState, "What is left to do of action "+original+" has been done meanwhile, or some of it. Cancel this one, and propose what is left.").
		Because("link-moved").With("action", original)
}

// bindsToProduced refuses to undo anything but what the original left behind:
// what others did to the object since then stays.
func bindsToProduced(original action.Action, c *contract.Contract, version *string) error {
	produced := original.Produced()
	if produced == "" || c.ObjectVersion == contract.VersionNone || version != nil && *version == produced {
		return nil
	}
	return action.Refuse(action.VersionConflict, fmt.Sprintf("A compensation undoes what action %s left behind, which is version %q of the object. If that is not its version any more, others have changed it since.", original.ID, produced)).
		Because("compensation").With("action", original.ID).With("object_version", produced).
		At("/object_version", fmt.Sprintf("must be %q", produced))
}

func sameTarget(a, b *action.Target) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
