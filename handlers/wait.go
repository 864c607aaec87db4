package handlers

import (
	"context"
	"sync"
	"time"
)

// seats are the places of requests that stay.
type seats struct {
	most, each int // places in all, and for one client or person
	mu         sync.Mutex
	all        int
	taken      map[string]int // by whose they are
}

// take gives somebody a place, unless all are taken or those that one may have;
// free gives it back.
func (s *seats) take(who string) (free func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most || s.taken[who] >= s.each {
		return nil, false
	}
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.all++
	s.taken[who]++
	return func() { s.leave(who) }, true
}

func (s *seats) leave(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.taken[who]--; s.taken[who] == 0 {
		delete(s.taken, who)
	}
}

// await looks until look is content, the wait is over, the caller has gone or
// the console stops. Changes of this process wake it; those of other processes
// it finds by looking again.
func (s *server) await(ctx context.Context, c caller, wait time.Duration, look func() (content bool, err error)) error {
	changed := s.Reads.Changes()
	if content, err := look(); content || err != nil || wait <= 0 {
		return err
	}
	free, ok := s.waiting.take(c.client.ID)
	if !ok {
		return busy("Too many requests wait here already. Ask again without waiting, or later.", "waiting", retryAfterBusy)
	}
	defer free()
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		if !s.changed(ctx, changed, over, betweenReads) {
			return ctx.Err()
		}
		changed = s.Reads.Changes()
		if content, err := look(); content || err != nil {
			return err
		}
	}
}

// changed waits until it is worth looking again, with the next change but not
// before soonest, however much is written; false when the wait is over.
func (s *server) changed(ctx context.Context, changed <-chan struct{}, over *time.Timer, soonest time.Duration) bool {
	soon := time.NewTimer(soonest)
	defer soon.Stop()
	later := time.NewTimer(max(soonest, reread))
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
