package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

// unserved is how long work is left alone after a look at its contract showed
// that this executor cannot do it.
const unserved = 5 * time.Minute

// maxReason bounds what the console is told of why a claim is given back, in bytes.
const maxReason = 256

var (
	errUnserved = errors.New("nothing here serves this tool")
	errOver     = errors.New("the action moved on without this claim")
	errStopping = errors.New("the executor is stopping")
	// errGivenBack ends a claim that the console offers again when it is time.
	errGivenBack = errors.New("given back")
)

// Executor does the work that the console offers for the tools it serves.
// Several of them, in any number of processes, share it: only one gets each
// claim.
type Executor struct {
	*Tools
	keys *keyring
	pace *pace
}

// New makes an executor. Its configuration is checked; nothing is contacted.
func New(config Config, options Options) (*Executor, error) {
	tools, err := NewTools(config, options)
	if err != nil {
		return nil, err
	}
	if len(tools.config.Systems) == 0 {
		return nil, errors.New("the executor's configuration: systems: name at least one")
	}
	clock := tools.opt.Clock
	return &Executor{Tools: tools, keys: &keyring{client: tools.client, clock: clock}, pace: newPace(clock)}, nil
}

// Run works until ctx ends. Then claims without an attempt are given back, and
// attempts under way are sent, awaited and reported, for as long as the
// configuration allows. It fails at once when the console refuses
// the key, and otherwise keeps trying.
func (e *Executor) Run(ctx context.Context) error {
	hard, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var running sync.WaitGroup
	slots := make(chan struct{}, e.config.Concurrency)
	telling, hush := context.WithCancel(ctx)
	var teller sync.WaitGroup
	teller.Go(func() { e.tell(telling) })
	defer teller.Wait()
	defer hush()
	err := e.poll(ctx, func(w api.Work) {
		running.Go(func() {
			defer func() { <-slots }()
			e.perform(hard, ctx, w)
		})
	}, slots)
	defer time.AfterFunc(e.config.StopWithin, abandon).Stop()
	running.Wait()
	return err
}

// poll asks for work and starts it until ctx ends.
func (e *Executor) poll(ctx context.Context, start func(api.Work), slots chan struct{}) error {
	failures := 0
	for ctx.Err() == nil {
		asked := e.opt.Clock.Now()
		list, err := e.client.Work(ctx, e.config.Wait, e.config.patterns())
		if HasCode(err, action.Unauthorized, action.Forbidden) {
			return fmt.Errorf("asking for work: %w", err)
		}
		if failures = failures + 1; err == nil {
			failures = 0
		}
		if failures == 1 && ctx.Err() == nil {
			e.opt.Logger.Warn("the console gives no work; trying on", "error", err)
		}
		waited := err == nil && len(list.Items) == 0 && e.opt.Clock.Now().Sub(asked) >= e.config.Poll
		if started := e.startAll(ctx, list.Items, start, slots); started > 0 || waited {
			continue
		}
		if e.opt.Clock.Sleep(ctx, jitter(2*backoff(failures+1, e.config.Poll, max(longHold, e.config.Poll)))) != nil {
			return nil
		}
	}
	return nil
}

// startAll starts what is due, waiting for free slots.
func (e *Executor) startAll(ctx context.Context, items []api.Work, start func(api.Work), slots chan struct{}) (started int) {
	for _, w := range items {
		if !e.handles(w) || !e.pace.begin(w.Kind, subject(w)) {
			continue
		}
		select {
		case slots <- struct{}{}:
			start(w)
			started++
		case <-ctx.Done():
			e.pace.end(w.Kind, subject(w), false, 0)
			return started
		}
	}
	return started
}

func (e *Executor) handles(w api.Work) bool {
	_, served := e.config.serving(w.Tool)
	return served && slices.Contains([]action.Work{action.WorkObserve, action.WorkExecute, action.WorkVerify, action.WorkAsk, action.WorkRetry, action.WorkList}, action.Work(w.Kind))
}

// subject is what a piece of work is about: an action, or a reconciliation.
func subject(w api.Work) string {
	if w.List != nil {
		return w.List.RunID
	}
	return w.ActionID
}

// perform does one piece of work. What failed is tried again later; when there
// is more to do, the console says.
func (e *Executor) perform(ctx, stopping context.Context, w api.Work) {
	ctx, span := e.working(ctx, w)
	defer span.End()
	err := e.dispatch(ctx, stopping, w)
	log := e.opt.Logger.With("kind", w.Kind, "subject", subject(w), "tool", w.Tool)
	failed, wait := err != nil, time.Duration(0)
	switch {
	case errors.Is(err, errUnserved):
		wait = unserved
		log.Info("left alone", "reason", err)
	case errors.Is(err, errAway):
		failed, wait = false, jitter(e.config.ProbeAfter) // no worse the longer it lasts
		log.Info("left alone", "reason", err)
	case errors.Is(err, errOvertaken):
		failed = false
	case errors.Is(err, errOver), errors.Is(err, errStopping):
		log.Info("stopped", "reason", err)
	case errors.Is(err, errGivenBack):
		failed = false
		log.Warn("not done", "error", err)
	case err != nil:
		log.Warn("not done", "error", err)
	}
	e.pace.end(w.Kind, subject(w), failed, wait)
}

func (e *Executor) dispatch(ctx, stopping context.Context, w api.Work) error {
	c, err := e.contractOf(ctx, w)
	if err != nil {
		return err
	}
	if err := e.reachable(ctx, c, w); err != nil {
		return err
	}
	switch action.Work(w.Kind) {
	case action.WorkObserve:
		return e.observe(ctx, c, w)
	case action.WorkVerify:
		return e.readBack(ctx, c, w)
	case action.WorkAsk:
		return e.ask(ctx, c, w)
	case action.WorkList:
		return e.list(ctx, stopping, c, w)
	}
	return e.execute(ctx, stopping, c, w)
}

// contractOf returns the contract that the work is pinned to, when it can be
// carried out here.
func (e *Executor) contractOf(ctx context.Context, w api.Work) (*contract.Contract, error) {
	c, err := e.contracts.version(ctx, w.Tool, w.ToolVersion)
	switch {
	case err != nil:
		return nil, err
	case c.HTTP == nil && len(c.Execution.Steps) == 0:
		return nil, fmt.Errorf("%w: its contract does not say how to call it", errUnserved)
	}
	return c, nil
}

// observe reads what people should see before they decide, and whether the
// actor may do this at all.
func (e *Executor) observe(ctx context.Context, c *contract.Contract, w api.Work) error {
	before := c.Approval.Before
	if w.Read != nil && *w.Read != "" {
		before = *w.Read
	}
	var failed error
	for _, tool := range []string{c.Execution.Permission, before} {
		if tool == "" {
			continue
		}
		r := e.read(ctx, tool, facts(w))
		if _, err := e.reportFor(ctx, w, r); err != nil {
			return err
		}
		if r.failure != "" {
			failed = fmt.Errorf("reading with %s: %s", tool, r.failure)
		}
	}
	return failed
}

// readBack looks whether the post-conditions of the whole, or of the step that
// the work names, hold; the console judges.
func (e *Executor) readBack(ctx context.Context, c *contract.Contract, w api.Work) error {
	if w.Step != nil {
		one, err := c.ForStep(w.Step.Name)
		if err != nil {
			return err
		}
		c = one
	}
	for _, tool := range c.PostconditionReads() {
		after, err := e.reportFor(ctx, w, e.readStep(ctx, tool, w, w.Step))
		if err != nil {
			return err
		}
		if !after.state.In(action.Executing, action.Accepted) && w.Step == nil {
			return nil
		}
	}
	return nil
}

// ask asks by key what became of the operation. It changes nothing; the console
// judges the answer, and that there was none.
func (e *Executor) ask(ctx context.Context, c *contract.Contract, w api.Work) error {
	if w.Read == nil {
		return fmt.Errorf("%w: its contract names no status query", errUnserved)
	}
	_, err := e.reportFor(ctx, w, e.readStep(ctx, *w.Read, w, w.Step))
	return err
}
