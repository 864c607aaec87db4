package execution

import (
	"context"
	"sync"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// lease is the time a claim has left, on this process's own clock: it counts
// from before the console was asked, so it is over here first.
type lease struct {
	client   *Client
	clock    Clock
	action   string
	claim    string
	end      context.CancelFunc
	finished chan struct{}

	mu    sync.Mutex
	start time.Time
	ttl   time.Duration
	lost  bool
}

// keep starts to renew a lease that was asked for at start.
func keep(ctx context.Context, client *Client, id, claim string, start time.Time, granted api.Lease) *lease {
	ctx, end := context.WithCancel(ctx)
	l := &lease{client: client, clock: client.opt.Clock, action: id, claim: claim, end: end,
		finished: make(chan struct{}), start: start, ttl: time.Duration(granted.TTLMillis) * time.Millisecond}
	go l.renewing(ctx)
	return l
}

// stop ends the renewing and waits until it has.
func (l *lease) stop() {
	l.end()
	<-l.finished
}

// live reports whether the claim still stands.
func (l *lease) live() bool { return l.left() > 0 }

func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return 0
	}
	return l.ttl - elapsed(l.start, l.clock.Now())
}

func (l *lease) renewing(ctx context.Context) {
	defer close(l.finished)
	for l.live() {
		l.mu.Lock()
		pause := l.ttl / 3
		l.mu.Unlock()
		if l.clock.Sleep(ctx, max(pause, 10*time.Millisecond)) != nil {
			return
		}
		l.renew(ctx)
		if ctx.Err() != nil {
			return
		}
	}
}

// renew asks once for more time. Only the console's word ends the lease early:
// what is not known keeps the time that is left.
func (l *lease) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(l.left(), time.Millisecond))
	defer cancel()
	asked := l.clock.Now()
	granted, err := l.client.Renew(ctx, l.action, l.claim)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && !l.lost:
		l.start, l.ttl = asked, time.Duration(granted.TTLMillis)*time.Millisecond
	case HasCode(err, action.LeaseLost, action.WrongState, action.NotFound, action.Forbidden, action.Unauthorized):
		l.lost = true
	}
}
