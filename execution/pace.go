package execution

import (
	"sync"
	"time"
)

const (
	firstHold = time.Second
	longHold  = 30 * time.Second
	forgetIn  = 10 * time.Minute
)

// pace keeps the same piece of work from being tried too often. It holds only
// hints; losing them is harmless.
type pace struct {
	clock Clock

	mu    sync.Mutex
	busy  map[string]bool // action ids that are being worked on
	holds map[string]hold // by kind and action
}

type hold struct {
	failures int
	until    time.Time
}

func newPace(clock Clock) *pace {
	return &pace{clock: clock, busy: map[string]bool{}, holds: map[string]hold{}}
}

// begin reports whether a piece of work may start now, and marks its action as
// being worked on.
func (p *pace) begin(kind, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[id] || p.clock.Now().Before(p.holds[kind+" "+id].until) {
		return false
	}
	p.busy[id] = true
	return true
}

// end marks an action as free again. After a failure the work waits, longer
// every time; otherwise it waits as told.
func (p *pace) end(kind, id string, failed bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, id)
	now, key := p.clock.Now(), kind+" "+id
	switch {
	case failed:
		n := p.holds[key].failures + 1
		p.holds[key] = hold{n, now.Add(max(wait, jitter(backoff(n, 2*firstHold, 2*longHold))))}
	case wait > 0:
		p.holds[key] = hold{0, now.Add(wait)}
	default:
		delete(p.holds, key)
	}
	for k, h := range p.holds {
		if now.Sub(h.until) > forgetIn {
			delete(p.holds, k)
		}
	}
}
