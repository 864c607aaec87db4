package approvals

import (
	"context"

	"countersign/action"
)

// What happens to open actions when a tool is retired.
const (
	KeepOpen   = "keep"
	CancelOpen = "cancel"
)

// Retire takes a tool out of use, and cancels its open actions or leaves them.
func (s *Service) Retire(ctx context.Context, name, openActions string, by action.By) error {
	if openActions != KeepOpen && openActions != CancelOpen {
		return action.Refuse(action.InvalidArgument, "Say what happens to open actions.").At("/open_actions", `must be "keep" or "cancel"`)
	}
	if err := s.catalogue.Retire(ctx, name, openActions, by); err != nil {
		return err
	}
	if openActions == KeepOpen {
		return nil
	}
	return s.cancelAll(ctx, name, by)
}

func (s *Service) cancelAll(ctx context.Context, tool string, by action.By) error {
	after := ""
	for {
		ids, err := s.ledger.OpenOf(ctx, tool, after, 100)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			_, err := action.Change(ctx, s.ledger, id, func(action.Snapshot) (action.Command, error) {
				return action.Cancel{Op: "retire:" + tool, By: by, Reason: "The tool was taken out of use."}, nil
			})
			if err != nil && !action.IsCode(err, action.WrongState) && !action.IsCode(err, action.ExpiredCode) {
				return err
			}
		}
		after = ids[len(ids)-1]
	}
}
