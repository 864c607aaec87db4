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
// StaleRevision when some cannot be cancelled, because they cannot be read; the
// tool is out of use then, and all others are cancelled.
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
	_, err := cancelAll(ctx, s.ledger, func(after string) ([]string, error) { return s.ledger.OpenOf(ctx, name, after, 100) },
		action.Cancel{Op: "retire:" + name, By: by, Reason: "The tool was taken out of use."})
	return err
}
