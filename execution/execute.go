package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

// run is one claim on one action, from taking it to giving it back or
// reporting what came of it.
type run struct {
	*Executor
	work     api.Work
	contract *contract.Contract
	system   System
	stopping context.Context // ends when no attempt may be recorded any more
	claim    string
	claimed  api.Claimed
	payload  []byte // canonical
	lease    *lease
	log      *slog.Logger
}

// execute claims a confirmation and carries it out, for the first time or, when
// nothing was executed, once more with the same key and bytes.
func (e *Executor) execute(ctx, stopping context.Context, c *contract.Contract, w api.Work) error {
	if w.ConfirmationRef == nil {
		return errors.New("the console offers an execution without a confirmation")
	}
	if stopping.Err() != nil {
		return errStopping
	}
	system, _ := e.config.serving(w.Tool)
	r := &run{Executor: e, work: w, contract: c, system: system, stopping: stopping, claim: action.NewSecret(16),
		log: e.opt.Logger.With("action", w.ActionID, "tool", w.Tool)}
	asked := e.opt.Clock.Now()
	var err error
	r.claimed, err = e.client.Claim(ctx, *w.ConfirmationRef,
		api.Claim{ClaimID: r.claim, ProposalHash: w.ProposalHash, ObjectVersion: w.ObjectVersion})
	if err != nil {
		return fmt.Errorf("claiming: %w", err)
	}
	r.lease = keep(ctx, e.client, w.ActionID, r.claim, asked, r.claimed.Lease)
	defer r.lease.stop()
	wire, err := r.ready(ctx)
	if err != nil {
		return r.giveBack(ctx, err)
	}
	return r.act(ctx, wire)
}

// ready looks again at everything that may have changed since the approval,
// and returns the request to send. Whoever goes on, with a retry or with a step
// that was never sent, asks again for the permission alone: what was sent before
// may have changed the object, and what the preconditions are about.
func (r *run) ready(ctx context.Context) (*wireCall, error) {
	payload, err := action.Canonical(r.claimed.Payload)
	if err != nil {
		return nil, fmt.Errorf("reading the claimed payload: %w", err)
	}
	if err := r.approved(ctx, payload); err != nil {
		return nil, err
	}
	if err := r.contract.ValidateInput(payload); err != nil {
		return nil, err
	}
	r.payload, r.work.Payload = payload, payload
	wire, err := r.prepare(r.claimed.Step)
	if err != nil {
		return nil, err
	}
	if err := r.permitted(ctx); err != nil {
		return nil, err
	}
	if action.Work(r.work.Kind) == action.WorkRetry {
		return wire, nil
	}
	return wire, r.unmoved(ctx)
}

// approved checks the signed token: what was claimed is what was approved,
// whatever else the console's answers say.
func (r *run) approved(ctx context.Context, payload []byte) error {
	pinned, err := contract.Parse(r.claimed.Contract)
	if err != nil {
		return fmt.Errorf("reading the claimed contract: %v", err) // no fault of the payload
	}
	if pinned.Name != r.work.Tool || r.claimed.ActionID != r.work.ActionID || r.claimed.ExecutionKey != r.work.ExecutionKey {
		return errors.New("the claim is about something else than the work")
	}
	r.contract = pinned
	said, err := r.keys.open(ctx, r.claimed.Token)
	if err != nil {
		return err
	}
	return said.bindsTo(r.work, *r.work.ConfirmationRef, payload, r.claimed.Now)
}

// permitted asks the business system whether the actor may do this now.
func (r *run) permitted(ctx context.Context) error {
	tool := r.contract.Execution.Permission
	if tool == "" {
		return nil
	}
	got, _, err := r.look(ctx, tool)
	if err != nil {
		return err
	}
	var answer struct {
		Allowed *bool `json:"allowed"`
	}
	if err := json.Unmarshal(got.snapshot, &answer); err != nil || answer.Allowed == nil {
		return fmt.Errorf("%s does not say whether it is allowed", tool)
	}
	if !*answer.Allowed {
		return toolError(Forbidden, r.work.Tool, "The business system does not allow this actor to do it.", nil)
	}
	return nil
}

// unmoved reports what the object and the preconditions look like now. The
// console judges: an action whose object has moved, or whose preconditions fail,
// does not stay executing. What nobody can tell is not sent either.
func (r *run) unmoved(ctx context.Context) error {
	conditions := r.contract.PreconditionReads()
	if before := r.contract.Approval.Before; before != "" && !slices.Contains(conditions, before) {
		if _, _, err := r.look(ctx, before); err != nil {
			return err
		}
	}
	var holds *bool
	for _, tool := range conditions {
		_, said, err := r.look(ctx, tool)
		if err != nil {
			return err
		}
		holds = said.holds
	}
	if len(conditions) > 0 && (holds == nil || !*holds) {
		return errors.New("the console does not say that the preconditions hold")
	}
	return nil
}

// look reads and reports, and fails unless there is a snapshot and the action
// is still executing.
func (r *run) look(ctx context.Context, tool string) (reading, judged, error) {
	if r.stopping.Err() != nil {
		return reading{}, judged{}, errStopping
	}
	got := r.read(ctx, tool, facts(r.work))
	said, err := r.report(ctx, r.work.ActionID, got)
	switch {
	case err != nil:
	case said.state != action.Executing:
		err = fmt.Errorf("%w: it is %s", errOver, said.state)
	case got.failure != "":
		err = fmt.Errorf("reading with %s: %s", tool, got.failure)
	}
	return got, said, err
}

// giveBack ends a claim that sent nothing. A reason that will not pass fails
// the action; any other leaves it to be claimed again, when the console says. It
// returns why.
func (r *run) giveBack(ctx context.Context, why error) error {
	if errors.Is(why, errOver) || !r.lease.live() {
		return why
	}
	release := api.Release{ClaimID: r.claim}
	e, final := AsToolError(why, r.work.Tool)
	if _, fromConsole := AsProblem(why); final && !fromConsole {
		release.Code = e.Code
	}
	if !errors.Is(why, errStopping) {
		release.Reason = reason(why)
	}
	if _, err := r.client.Release(ctx, r.work.ActionID, release); err != nil {
		r.log.Warn("the claim could not be given back; it will lapse", "error", err)
		return why
	}
	return fmt.Errorf("%w: %w", errGivenBack, why)
}

// reason is why a claim is given back, for people.
func reason(why error) string {
	text := why.Error()
	if p, ok := AsProblem(why); ok {
		text = cmp.Or(p.Title, p.Detail, p.Code)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// act makes the request, or in a contract with steps every one that is left, in
// the order that the console says, and reads back.
func (r *run) act(ctx context.Context, wire *wireCall) error {
	for {
		after, done, err := r.attempt(ctx, wire)
		if err != nil || !done || !action.State(after.State).In(action.Executing, action.Accepted) {
			return err
		}
		next := after.NextStep
		if wire.step != nil && next == nil && action.State(after.State) == action.Executing {
			if next, err = r.stepReadBack(ctx, wire); err != nil || next == nil {
				return err
			}
		}
		if next == nil {
			r.work.Kind, r.work.Version, r.work.Step = string(action.WorkVerify), after.Version, nil
			return r.readBack(ctx, r.contract, r.work)
		}
		if wire, err = r.prepare(next); err != nil {
			return r.giveBack(ctx, err)
		}
	}
}

// stepReadBack reads the post-conditions of a step back, as often as the contract
// says, and returns the next step, which may not begin before. It is nil when the
// action does not go on.
func (r *run) stepReadBack(ctx context.Context, wire *wireCall) (*api.Step, error) {
	verify := r.contract.Execution.Verify
	for try := range verify.Tries {
		if try > 0 && r.opt.Clock.Sleep(ctx, verify.Window.Duration/time.Duration(verify.Tries)) != nil {
			break
		}
		for _, tool := range wire.contract.PostconditionReads() {
			said, err := r.report(ctx, r.work.ActionID, r.readStep(ctx, tool, r.work, wire.step))
			if err != nil || said.state != action.Executing || said.next != nil {
				return said.next, err
			}
		}
	}
	return nil, r.giveBack(ctx, fmt.Errorf("step %s was not read back", wire.step.Name))
}

// attempt records an attempt, sends, and reports. It returns the action after it,
// and whether it was a success.
func (r *run) attempt(ctx context.Context, wire *wireCall) (after api.Action, done bool, err error) {
	if r.stopping.Err() != nil {
		return after, false, r.giveBack(ctx, errStopping)
	}
	tell, err := r.breakers[r.system.BaseURL].write()
	if err != nil {
		return after, false, r.giveBack(ctx, err)
	}
	attempt := api.Attempt{AttemptID: action.NewSecret(16), ClaimID: r.claim, Fingerprint: wire.fingerprint}
	if wire.step != nil {
		attempt.Step = wire.step.Name
	}
	asked := r.opt.Clock.Now()
	granted, err := r.client.StartAttempt(ctx, r.work.ActionID, attempt)
	if err != nil {
		tell(reply{err: errNotTried})
		return after, false, r.notStarted(ctx, attempt.AttemptID, err)
	}
	sent := r.opt.Clock.Now()
	got := r.send(ctx, wire, asked, time.Duration(granted.SendWithinMillis)*time.Millisecond)
	took := elapsed(sent, r.opt.Clock.Now())
	tell(got)
	outcome := wire.contract.Classify(got.answer(granted.Number))
	if r.opt.OnAttempt != nil {
		r.opt.OnAttempt(wire.contract.Name, string(outcome.Result), took)
	}
	r.log.Info("attempted", "step", attempt.Step, "number", granted.Number, "status", got.status, "outcome", outcome.Result, "reason", outcome.Reason)
	after, err = r.deliver(ctx, receipt(attempt.AttemptID, r.claim, got, outcome, took))
	return after, outcome.Result == action.Success, err
}

// notStarted handles an attempt that was refused, or of which it is not known
// whether it was recorded. Nothing was sent, and that is what is reported.
func (r *run) notStarted(ctx context.Context, attemptID string, why error) error {
	why = fmt.Errorf("recording the attempt: %w", why)
	if p, ok := AsProblem(why); ok && p.Unsettled() {
		nothing := api.Receipt{ReceiptID: action.NewSecret(16), AttemptID: attemptID, ClaimID: r.claim,
			Outcome: string(action.Failure), Code: contract.CodeNotSent}
		if _, err := r.deliver(ctx, nothing); !HasCode(err, action.NotFound) {
			return errors.Join(why, err)
		}
	}
	if HasCode(why, action.LeaseLost, action.AttemptOpen) {
		return why
	}
	return r.giveBack(ctx, why)
}
