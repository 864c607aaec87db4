package handlers

import (
	"context"
	"time"
)

// await looks until look is content, the wait is over, the caller has gone or
// the console stops. Changes of this process wake it; those of other processes
// it finds by looking again.
func (s *server) await(ctx context.Context, wait time.Duration, look func() (content bool, err error)) error {
	changed := s.Reads.Changes()
	if content, err := look(); content || err != nil || wait <= 0 {
		return err
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return busy("Too many requests wait here already. Ask again without waiting, or later.", "waiting", retryAfterBusy)
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		if !s.changed(ctx, changed, over) {
			return ctx.Err()
		}
		changed = s.Reads.Changes()
		if content, err := look(); content || err != nil {
			return err
		}
	}
}

// changed waits until it is worth looking again; false when the wait is over.
func (s *server) changed(ctx context.Context, changed <-chan struct{}, over *time.Timer) bool {
	soon := time.NewTimer(betweenReads) // however much is being written
	defer soon.Stop()
	later := time.NewTimer(reread)
	defer later.Stop()
	for _, worth := range []<-chan time.Time{soon.C, later.C} {
		hint := changed
		if worth == soon.C {
			hint = nil
		}
		select {
		case <-hint:
			return true
		case <-worth:
		case <-over.C:
			return false
		case <-ctx.Done():
			return false
		case <-s.Stopping:
			return false
		}
	}
	return true
}
