package people

import (
	"context"
	"slices"
	"time"

	"countersign/action"
)

// maxRefusals bounds what a client leaves in its record in a day by asking for
// tools that are not for it.
const maxRefusals = 20

// Refused is what a ToolRefused event keeps.
type Refused struct {
	Tool   string `json:"tool"`
	Entry  string `json:"entry,omitempty"` // the entry point that was named
	Reason string `json:"reason"`          // entry, tool or scope
}

// NoteRefused records that a client asked for a tool around its catalogue: one
// that the entry point does not load, or that its limits do not cover. It leaves
// one event a day for each tool and entry point, and at most maxRefusals.
func (s *Service) NoteRefused(ctx context.Context, client Client, r Refused) error {
	return untilWritten(func() (bool, error) {
		now, err := s.store.Client(ctx, client.ID)
		if err != nil {
			return false, err
		}
		events, at, err := s.store.Events(ctx, now.Subject())
		if err != nil {
			return false, err
		}
		day := at.UTC().Truncate(24 * time.Hour)
		cmd := Command{Op: "refused:" + day.Format(time.DateOnly) + ":" + r.Entry + ":" + r.Tool, By: client.By()}
		today := 0
		for _, e := range events {
			if e.Kind == ToolRefused && !e.At.Before(day) {
				today++
			}
		}
		noted := slices.ContainsFunc(events, func(e action.Event) bool { return e.Op == cmd.Op })
		if noted || today >= maxRefusals {
			return true, nil
		}
		change := ClientChange{Client: now}
		change.Client.Version++
		if change.Event, err = newEvent(now.Subject(), change.Client.Version, cmd, ToolRefused, at, r); err != nil {
			return false, err
		}
		return s.store.SaveClient(ctx, change)
	})
}
