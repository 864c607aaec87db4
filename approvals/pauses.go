package approvals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/action"
)

// Pause stops what is proposed, claimed and attempted. What people decide, what
// is reported and what is found out goes on.
type Pause struct {
	ID        string     `db:"id"`
	Kind      string     `db:"kind"`  // PauseTool, PauseClient or PauseScope
	Value     string     `db:"value"` // name of the tool, id of the client, scope
	Reason    string     `db:"reason"`
	By        string     `db:"by_name"`
	StartedAt time.Time  `db:"started_at"`
	EndedAt   *time.Time `db:"ended_at"`
}

// What can be paused. A client is paused as proposer and as executor.
const (
	PauseTool   = "tool"
	PauseClient = "client"
	PauseScope  = "scope"
)

// maxPauseReason bounds why something is paused, in bytes.
const maxPauseReason = 500

// PauseStore keeps pauses.
type PauseStore interface {
	// AddPause starts a pause; false when the same is paused already.
	AddPause(ctx context.Context, p Pause, by action.By) (bool, error)
	// EndPause ends a pause; false when there is none.
	EndPause(ctx context.Context, kind, value string, by action.By) (bool, error)
}

// StartPause pauses a tool, a client or a scope. Once it returns, nothing of it
// is proposed, claimed or attempted any more. id is that of the pause to be; a
// paused thing is not paused again.
func StartPause(ctx context.Context, s PauseStore, id, kind, value, reason string, by action.By) (Pause, error) {
	p := Pause{ID: id, Kind: kind, Value: value, Reason: strings.TrimSpace(reason), By: by.Name}
	if p.Reason == "" || len(p.Reason) > maxPauseReason {
		return p, action.Refuse(action.InvalidArgument, "Say why, in at most 500 bytes: whoever is refused is told.").Because("reason-why").At("/reason", "is required")
	}
	if value == "" {
		return p, action.Refuse(action.InvalidArgument, "Say what to pause.").Because("required").At("/value", "is required")
	}
	started, err := s.AddPause(ctx, p, by)
	if err == nil && !started {
		err = action.Refuse(action.WrongState, "It is paused already.").Because("paused")
	}
	return p, err
}

// EndPause lets a tool, a client or a scope go on.
func EndPause(ctx context.Context, s PauseStore, kind, value string, by action.By) error {
	ended, err := s.EndPause(ctx, kind, value, by)
	if err == nil && !ended {
		err = action.Refuse(action.NotFound, "It is not paused.")
	}
	return err
}

// ClientLedger is where a client's actions are kept.
type ClientLedger interface {
	action.Ledger
	// OpenOfClient returns actions of a client that have not run, by id after one.
	OpenOfClient(ctx context.Context, client, after string, limit int) ([]string, error)
}

// CancelOpenOf cancels every action of a client that has not run, and tells how
// many. Pause the client first: it may go on proposing. once names the command:
// giving it again cancels what was left. StaleRevision when some cannot be
// cancelled, because they cannot be read; all others are.
func CancelOpenOf(ctx context.Context, l ClientLedger, once, client, reason string, by action.By) (cancelled int, err error) {
	return cancelAll(ctx, l, func(after string) ([]string, error) { return l.OpenOfClient(ctx, client, after, 100) },
		action.Cancel{Op: "cancel-open:" + once, By: by, Reason: reason})
}

// cancelAll cancels every action that open names, a few after an id, and tells
// how many. Those that have run meanwhile are left alone, and one that cannot be
// cancelled keeps no other from it.
func cancelAll(ctx context.Context, l action.Ledger, open func(after string) ([]string, error), cancel action.Cancel) (cancelled int, err error) {
	var left []string
	err = action.Each(ctx, open, func(id string) error {
		_, err := action.Change(ctx, l, id, func(action.Snapshot) (action.Command, error) { return cancel, nil })
		switch {
		case err == nil:
			cancelled++
		case !action.IsCode(err, action.WrongState) && !action.IsCode(err, action.ExpiredCode):
			left = append(left, id)
			return fmt.Errorf("cancelling %s: %w", id, err)
		}
		return nil
	})
	if len(left) > 0 && action.Refused(err) {
		err = action.Refuse(action.StaleRevision, fmt.Sprintf("%d cancelled, %d not, the first of which is %s: what is stored of them does not belong together. Tell whoever runs this console.", cancelled, len(left), left[0])).
			Because("left").With("cancelled", fmt.Sprint(cancelled)).With("left", fmt.Sprint(len(left))).With("action", left[0]).From(err)
	}
	return cancelled, err
}
