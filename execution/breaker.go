package execution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"

	"github.com/sony/gobreaker/v2"
)

var (
	errAway     = errors.New("the business system does not answer")
	errNotTried = errors.New("nothing was sent") // says nothing about the system
)

// breaker leaves a business system alone after failures in a row, and lets a
// single read find out whether it is back. What may change something never
// does that. Reading and writing fail apart: while writes get no answer it is
// still asked what became of them.
type breaker struct {
	reads, writes *circuit

	mu    sync.Mutex
	since time.Time     // when the first of them opened; zero while both are closed
	moved chan struct{} // gets something when one of them has changed
}

type circuit = gobreaker.TwoStepCircuitBreaker[reply]

func newBreaker(base string, after int, pause time.Duration, o Options, moved chan struct{}) *breaker {
	b := &breaker{moved: moved}
	one := func(what string) *circuit {
		return gobreaker.NewTwoStepCircuitBreaker[reply](gobreaker.Settings{
			Name:        base,
			MaxRequests: 1,
			Timeout:     pause,
			ReadyToTrip: func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= after },
			IsExcluded:  func(err error) bool { return errors.Is(err, errNotTried) },
			OnStateChange: func(base string, from, to gobreaker.State) {
				o.Logger.Warn("a business system's breaker", "system", base, "for", what, "was", from.String(), "is", to.String())
				b.move(to, o.Clock.Now())
			},
		})
	}
	b.reads, b.writes = one("reads"), one("writes")
	return b
}

// move notes that one of the two has changed. It may not ask either of them:
// they wait for it.
func (b *breaker) move(to gobreaker.State, now time.Time) {
	b.mu.Lock()
	if to == gobreaker.StateOpen && b.since.IsZero() {
		b.since = now
	}
	b.mu.Unlock()
	select {
	case b.moved <- struct{}{}:
	default: // somebody will look anyway
	}
}

// health is what the breaker does now.
func (b *breaker) health(system string) api.SystemHealth {
	h := api.SystemHealth{System: system, Reads: b.reads.State().String(), Writes: b.writes.State().String()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if closed := gobreaker.StateClosed.String(); h.Reads == closed && h.Writes == closed {
		b.since = time.Time{}
		return h
	}
	if !b.since.IsZero() {
		h.Since = new(b.since.UTC())
	}
	return h
}

// answers reports whether the system is there, as far as is known.
func (b *breaker) answers(writing bool) bool {
	return b.reads.State() == gobreaker.StateClosed && (!writing || b.writes.State() == gobreaker.StateClosed)
}

// read gives leave for a request that changes nothing, which may be the one
// that finds out. The caller tells what came back.
func (b *breaker) read() (tell func(reply), err error) {
	done, err := b.reads.Allow()
	if err != nil {
		return nil, errAway
	}
	forWrites := func(error) {}
	if b.writes.State() == gobreaker.StateHalfOpen {
		if probed, err := b.writes.Allow(); err == nil {
			forWrites = probed
		}
	}
	return func(r reply) {
		err := r.away()
		done(err)
		forWrites(err)
	}, nil
}

// write gives leave for a request that may change something, only while the
// system answers. The caller tells what came back.
func (b *breaker) write() (tell func(reply), err error) {
	if !b.answers(true) {
		return nil, errAway
	}
	done, err := b.writes.Allow()
	if err != nil {
		return nil, errAway
	}
	if !b.answers(true) { // just now: then this would be the one that finds out
		done(errNotTried)
		return nil, errAway
	}
	return func(r reply) { done(r.away()) }, nil
}

// away says that a reply shows a system that is not there: nothing came back,
// or somebody in between answered for it.
func (r reply) away() error {
	switch {
	case errors.Is(r.err, errLate), errors.Is(r.err, errNotTried), errors.Is(r.err, context.Canceled):
		return errNotTried // of our own doing
	case r.status == 0 && r.err != nil:
		return fmt.Errorf("%w: %w", errAway, r.err)
	case r.status == http.StatusBadGateway, r.status == http.StatusServiceUnavailable, r.status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: it answers %d", errAway, r.status)
	}
	return nil
}

// breakers are those of the systems in a configuration, by base URL.
type breakers map[string]*breaker

func newBreakers(c Config, o Options, moved chan struct{}) breakers {
	all := breakers{}
	for _, s := range c.Systems {
		if all[s.BaseURL] == nil {
			all[s.BaseURL] = newBreaker(s.BaseURL, c.BreakAfter, c.ProbeAfter, o, moved)
		}
	}
	return all
}

// reachable refuses work on a system that does not answer. Whether it is back
// is found out by a read of the work's own contract; nothing is reported of it.
func (e *Executor) reachable(ctx context.Context, c *contract.Contract, w api.Work) error {
	system, _ := e.config.serving(w.Tool)
	b := e.breakers[system.BaseURL]
	writing := slices.Contains([]action.Work{action.WorkExecute, action.WorkRetry}, action.Work(w.Kind))
	if !b.answers(writing) {
		e.probe(ctx, c, system, w)
	}
	if !b.answers(writing) {
		return errAway
	}
	return nil
}

// probe reads with the first of a contract's tools that only read and ask the
// same system, or asks that system for nothing.
func (e *Executor) probe(ctx context.Context, c *contract.Contract, system System, w api.Work) {
	for _, tool := range probes(c) {
		if s, served := e.config.serving(tool); served && s.BaseURL == system.BaseURL {
			e.read(ctx, tool, facts(w))
			return
		}
	}
	req, err := http.NewRequest(http.MethodHead, system.BaseURL, nil)
	if err != nil {
		return // the address was checked: it does not happen
	}
	if system.ReadToken.Set() {
		req.Header.Set("Authorization", "Bearer "+system.ReadToken.Reveal())
	}
	e.readOnce(ctx, system, req, probeTimeout)
}

// probeTimeout bounds a request for nothing.
const probeTimeout = 5 * time.Second

// probes are the tools of a contract that only read.
func probes(c *contract.Contract) []string {
	tools := []string{c.Approval.Before, c.Execution.Permission}
	if q := c.Execution.StatusQuery; q != nil {
		tools = append(tools, q.Tool)
	}
	return append(append(tools, c.PreconditionReads()...), c.PostconditionReads()...)
}
