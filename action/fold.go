package action

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Fold computes an action from all its events, in order of version. The row
// that lists are made from equals it at any time.
func Fold(events []Event) (Action, error) {
	var a Action
	for _, e := range events {
		next, err := a.with(e)
		if err != nil {
			return Action{}, err
		}
		a = next
	}
	if a.Version == 0 {
		return Action{}, fmt.Errorf("folding: no events")
	}
	return a, nil
}

// with returns the action as it is after e. The receiver is left as it was.
func (a Action) with(e Event) (Action, error) {
	if e.Version != a.Version+1 || e.From != a.State {
		return a, fmt.Errorf("folding %s: event %d from %q does not follow version %d in %q",
			e.Subject, e.Version, e.From, a.Version, a.State)
	}
	n := a
	n.ID, n.Version, n.State, n.UpdatedAt = e.Subject, e.Version, e.To, e.At
	if e.To != e.From {
		n.Since, n.sinceOp = e.At, e.Op
	}
	n.ops = maps.Clone(a.ops)
	if n.ops == nil {
		n.ops = map[string]Event{}
	}
	n.ops[e.Op] = e
	if err := n.absorb(e); err != nil {
		return a, fmt.Errorf("folding %s event %d (%s): %w", e.Subject, e.Version, e.Kind, err)
	}
	if n.Claim != nil && !n.Claim.Over && n.State != Executing {
		n.endClaim()
	}
	if n.CaseID() != "" && !n.State.In(ResultUnknown, Executing) {
		n.closeCase(e)
	}
	if n.State != Failed {
		n.FailureCode = ""
	}
	if n.caseWaits() != a.caseWaits() {
		n.CaseMovedAt = e.At
	}
	if !n.whole() {
		return a, fmt.Errorf("folding %s event %d (%s): nothing in it leads to %s", e.Subject, e.Version, e.Kind, e.To)
	}
	return n, nil
}

// whole reports whether the action has what its state stands for.
func (a Action) whole() bool {
	switch a.State {
	case Proposed:
		return a.ExpiresAt != nil
	case Confirmed:
		return a.ExpiresAt != nil && a.Confirmation != nil
	case Executing:
		return a.ExpiresAt != nil && a.Confirmation != nil && a.Claim != nil && !a.Claim.Over
	case ResultUnknown:
		return a.Case != nil && a.Case.Open
	}
	return slices.Contains(States(), a.State)
}

func (a *Action) absorb(e Event) error {
	switch e.Kind {
	case KindDrafted, KindProposed, KindSubmitted, KindRevised:
		return a.absorbContent(e)
	case KindDecided:
		return a.absorbDecision(e)
	case KindCounted:
		var d counted
		err := json.Unmarshal(e.Data, &d)
		a.Confirmation = d.Confirmation
		return err
	case KindClaimed, KindRenewed, KindRetried, KindAttempted:
		return a.absorbRun(e)
	case KindReceipt:
		return a.absorbReceipt(e)
	case KindObservation:
		return a.absorbObservation(e)
	case KindEvidence:
		return a.absorbEvidence(e)
	case KindVerdict, KindRefused:
		return a.absorbVerdict(e)
	case KindTaken, KindHandedOver, KindAskedAgain, KindSendAgain:
		return a.absorbHolding(e)
	case KindGivenUp, KindCancelled, KindReleased, KindConcluded, KindOverdue:
		return a.absorbEnd(e)
	case KindLapsed:
		a.Stall = Stall{}
		return nil
	case KindExpired, KindClosed:
		return nil
	}
	return fmt.Errorf("unknown kind")
}

// absorbRun takes in what an executor begins.
func (a *Action) absorbRun(e Event) error {
	if e.Kind == KindAttempted {
		var d attempted
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		a.Attempts = append(slices.Clone(a.Attempts), d.Attempt)
		if a.CaseID() != "" { // what was wanted is done
			a.setCase(func(c *Case) { c.SendAgain = false })
		}
		return nil
	}
	var d claimed
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	a.Claim = &d.Claim
	if e.Kind == KindRetried {
		a.Resumed++
	}
	return nil
}

// absorbEnd takes in that something is over: a claim, the time for an outcome,
// or the action.
func (a *Action) absorbEnd(e Event) error {
	switch e.Kind {
	case KindConcluded:
		var d concluded
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if e.To == ResultUnknown {
			a.leaveToPeople()
			return nil
		}
		a.Concluded, a.FailureCode = d.Linked, concludedCode(d.How)
		return nil
	case KindOverdue:
		var d opened
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		a.openCase(d.Case)
		if e.From == ResultUnknown {
			a.leaveToPeople()
		}
		return nil
	}
	var d ended
	var b endedBody
	if err := unmarshalBoth(e, &d, &b); err != nil {
		return err
	}
	switch {
	case d.Vain:
		a.Stall = Stall{Times: a.Stall.Times + 1, Why: b.Why}
	case e.Kind == KindReleased:
		a.Stall = Stall{}
	}
	if e.Kind == KindGivenUp {
		a.FailureCode = d.Code
	} else if d.Code != "" {
		a.forgetMisses() // it will not pass by itself: people go on
	}
	a.openCase(d.Case)
	return nil
}

// leaveToPeople ends that executors go on with an unknown outcome by themselves.
func (a *Action) leaveToPeople() {
	a.forgetMisses()
	if a.CaseID() != "" {
		a.setCase(func(c *Case) { c.SendAgain = false })
	}
}

func (a *Action) absorbContent(e Event) error {
	var d content
	var b contentBody
	if err := unmarshalBoth(e, &d, &b); err != nil {
		return err
	}
	a.Entry, a.Scope, a.Terms = d.Entry, d.Scope, d.Terms
	if a.Version == 1 {
		a.Client, a.TaskID, a.RequestID, a.Trace, a.Digest, a.Links, a.CreatedAt = d.Client, d.TaskID, d.RequestID, d.Trace, d.Digest, d.Links, e.At
		a.Actor = Actor{ID: d.ActorID, Name: b.ActorName}
	}
	a.Revision, a.Tool, a.ToolVersion, a.Target = d.Revision, d.Tool, d.ToolVersion, d.Target
	a.ObjectVersion, a.PayloadHash, a.ProposalHash, a.ExecutionKey = d.ObjectVersion, d.PayloadHash, d.ProposalHash, d.ExecutionKey
	a.ExpiresIn, a.ExpiresAt, a.Needs, a.Confirmation = d.ExpiresIn, d.ExpiresAt, d.Needs, d.Confirmation
	a.Steps = nil
	for _, s := range d.Terms.Steps {
		a.Steps = append(a.Steps, Step{StepTerms: s})
	}
	if e.To == Proposed {
		a.ProposedAt = e.At
	}
	if e.Kind != KindSubmitted {
		a.Payload, a.Reason, a.ContentVersion = b.Payload, b.Reason, e.Version
	}
	return nil
}

func (a *Action) absorbDecision(e Event) error {
	var d decided
	var b textBody
	if err := unmarshalBoth(e, &d, &b); err != nil {
		return err
	}
	d.Decision.Note, d.Decision.By, d.Decision.At = b.Note, e.By, e.At
	a.Decisions = append(slices.Clone(a.Decisions), d.Decision)
	if d.Confirmation != nil {
		a.Confirmation = d.Confirmation
	}
	return nil
}

func (a *Action) absorbReceipt(e Event) error {
	var d receipted
	var b receiptBody
	if err := unmarshalBoth(e, &d, &b); err != nil {
		return err
	}
	r := d.Receipt
	r.Body, r.By, r.At = b.Body, e.By, e.At
	a.Receipts = append(slices.Clone(a.Receipts), r)
	a.Attempts = slices.Clone(a.Attempts)
	closes := a.State == Failed && e.From != Failed
	for i := range a.Attempts {
		if t := &a.Attempts[i]; t.ID == r.AttemptID && (!t.Definite() || closes) {
			t.Outcome, t.NotSent = r.Outcome, r.Outcome == Failure && r.Code == NotSent
		}
	}
	if r.Outcome != Unknown {
		a.void(false)
	}
	if t, _ := a.attempt(r.AttemptID); r.Outcome == Success {
		a.prove(t.Step, r.Proves, e)
	}
	switch {
	case closes && r.Outcome == Unknown:
		a.FailureCode = FoundFailed // the key told before, and the attempt's own answer says nothing else
	case closes:
		a.FailureCode = r.Code
	}
	a.openCase(d.Case)
	return nil
}

// prove notes what evidence shows, of a step where there are some. When it is
// more than people knew, their finding that nothing happened does not stand.
func (a *Action) prove(step string, p Proof, e Event) {
	if len(a.Steps) > 0 && !a.proveStep(step, p, e.Op) || len(a.Steps) == 0 && !a.proves(p) {
		return
	}
	if len(a.Steps) == 0 {
		a.Proven, a.missed = p, 0
	}
	a.ProvenAt, a.provenOp = e.At, e.Op
	a.void(true)
	if a.CaseID() != "" { // what a person wanted sent again is done
		a.setCase(func(c *Case) { c.SendAgain = false })
	}
}

func (a *Action) absorbObservation(e Event) error {
	var d observed
	var b observationBody
	if err := unmarshalBoth(e, &d, &b); err != nil {
		return err
	}
	o := d.Observation
	o.Snapshot, o.Error, o.By, o.At = b.Snapshot, b.Error, e.By, e.At
	a.Observations = append(slices.Clone(a.Observations), o)
	if d.Needs != nil {
		a.Needs = d.Needs
	}
	if d.Wanted != nil {
		a.Wanted = d.Wanted
	}
	if a.State == Failed && e.From == Executing {
		a.FailureCode = PreconditionFailed
	}
	if o.Holds != HoldsUnknown {
		a.void(false)
	}
	if o.Step != "" && o.Holds == HoldsTrue {
		a.changeStep(o.Step, func(s *Step) { s.Verified = s.proven() })
	}
	a.openCase(d.Case)
	return nil
}

func (a *Action) absorbEvidence(e Event) error {
	var d evidenced
	var b evidenceBody
	if err := unmarshalBoth(e, &d, &b); err != nil {
		return err
	}
	a.Asks = append(slices.Clone(a.Asks), Ask{Found: d.Found, By: e.By, At: e.At, Snapshot: b.Snapshot})
	if d.Found.Outcome != FoundUnknown {
		a.void(false)
	}
	switch d.Found.Outcome {
	case FoundSucceeded:
		if len(a.of(d.Found.Step).Attempts) > 0 {
			a.prove(d.Found.Step, d.Found.Proves, e)
		}
	case FoundFailed:
		if a.State == Failed && e.From != Failed {
			a.FailureCode = FoundFailed
		}
	case FoundNotExecuted:
		if e.From != Executing { // what is on its way may not have arrived
			a.miss(d.Found.Step)
		}
	}
	if d.Case != nil && d.Case.Kind == CaseContradiction {
		a.void(d.Found.Outcome == FoundSucceeded || d.Found.Outcome == FoundDiffers)
	}
	a.openCase(d.Case)
	return nil
}

func (a *Action) endClaim() {
	c := *a.Claim
	c.Over = true
	a.Claim = &c
}

// unmarshalBoth reads data and body. A body that retention removed is empty.
func unmarshalBoth(e Event, data, body any) error {
	if err := json.Unmarshal(e.Data, data); err != nil {
		return err
	}
	if len(e.Body) == 0 {
		return nil
	}
	return json.Unmarshal(e.Body, body)
}
