package action

import (
	"bytes"
	"encoding/json"
	"slices"
)

func (c AddReceipt) op() string { return "receipt:" + c.Receipt.ID }

func (c AddReceipt) again(_ Snapshot, left Event) error {
	var d receipted
	var b receiptBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	was, now := d.Receipt, c.Receipt
	return reused(c.By.same(left) && was.AttemptID == now.AttemptID && was.Claimed == now.Claimed &&
		was.ClaimedProves == now.ClaimedProves && was.ClaimedCode == now.ClaimedCode && was.HTTPStatus == now.HTTPStatus &&
		was.ProviderRef == now.ProviderRef && was.ObjectVersionAfter == now.ObjectVersionAfter && equalJSON(b.Body, now.Body))
}

// equalJSON compares what was stored, which is compact, with what is sent again.
func equalJSON(stored, sent json.RawMessage) bool {
	var compact bytes.Buffer
	if len(sent) > 0 && json.Compact(&compact, sent) != nil {
		return false
	}
	return bytes.Equal(stored, compact.Bytes())
}

func (c AddReceipt) decide(s Snapshot) (Transition, error) {
	attempt, ok := s.Action.attempt(c.Receipt.AttemptID)
	if !ok {
		return Transition{}, Refuse(NotFound, "No attempt with this attempt_id was recorded for this action.").At("/attempt_id", "is not an attempt of this action")
	}
	one := s
	one.Action = s.Action.of(attempt.Step)
	d := receipted{Receipt: c.Receipt}
	d.Receipt.Proves = ProvesNothing
	if c.Receipt.Outcome == Success {
		d.Receipt.Proves = one.Action.worth(c.Receipt.Proves)
	}
	to, why := one.afterReceipt(attempt, d.Receipt)
	to, why = one.afterLate(d.Receipt.Proves, c.UndoneBy, to, why)
	to, why = s.together(one.Action, attempt.Step, d.Receipt.Proves, to, why)
	if why != "" {
		d.Case = s.newCase(c.CaseID, why, c.op())
		if why == WhyCompensated {
			d.Case.Other = c.UndoneBy
		}
	}
	t, err := s.step(c.op(), c.By, KindReceipt, to, d, receiptBody{Body: c.Receipt.Body})
	if why != "" {
		t.Hold = HoldCase
	}
	return t, err
}

// worth is what a success proves: at least that it was accepted, at most what
// the contract can prove.
func (a Action) worth(claimed Proof) Proof {
	return ProvesAccepted.Stronger(claimed.weaker(a.Terms.Proves))
}

// proves reports whether a proof shows more than was known.
func (a Action) proves(p Proof) bool { return a.Proven.Stronger(p) != a.Proven }

// afterReceipt is the state that a receipt leads to, and why a case opens.
// Whatever is neither success nor failure is unknown, which never lowers what
// is known.
func (s Snapshot) afterReceipt(t Attempt, r Receipt) (State, string) {
	a := s.Action
	switch r.Outcome {
	case Success:
		return s.afterSuccess(r.Proves, t.Outcome == Failure)
	case Failure:
		return s.afterFailure(t, r)
	}
	switch {
	case a.State != Executing, t.ClaimID != a.Claim.ID, t.Definite():
		return a.State, ""
	case a.Proven == ProvesNothing && a.said(FoundFailed): // told meanwhile, by the key
		return a.notDone()
	}
	return ResultUnknown, WhyUnknownReceipt
}

// afterSuccess is the state that a success leads to, reported or found by key,
// and why a case opens. denied says that as far as was known it cannot be.
func (s Snapshot) afterSuccess(p Proof, denied bool) (State, string) {
	a := s.Action
	switch {
	case !a.proves(p), a.State == Applied, a.State == ResultUnknown && !a.settles():
		return a.State, "" // weighed before, as it was, or for people to weigh
	case (denied || a.said(FoundFailed)) && a.State != Accepted:
		return ResultUnknown, WhyContradiction
	case a.State.In(Executing, Accepted, ResultUnknown):
		return a.after(p), ""
	}
	return ResultUnknown, WhyContradiction
}

// after is the state that a proof leads to.
func (a Action) after(p Proof) State {
	if p == ProvesCompleted && !a.Terms.Verify {
		return Applied
	}
	return Accepted
}

// afterFailure is the state that a definite failure of one attempt leads to,
// and why a case opens. It says nothing of the other attempts: while one of
// them may have worked, nothing is settled.
func (s Snapshot) afterFailure(t Attempt, r Receipt) (State, string) {
	a := s.Action
	last := a.failedBesides(t)
	switch {
	case a.failedBefore(t): // weighed then
	case a.State == Executing:
		return s.refused(t, r, last)
	case !a.State.In(Accepted, Applied, ResultUnknown), a.State == ResultUnknown && !a.settles():
	case a.State == ResultUnknown && a.Proven == ProvesNothing:
		if last {
			return a.notDone()
		}
	case t.Outcome != Success && !last:
	case last && a.State != Applied && a.awaitsCompletion() && a.Proven != ProvesCompleted && r.Code != NotSent:
		return a.notDone() // accepted, and refused later
	default:
		return ResultUnknown, WhyContradiction
	}
	return a.State, ""
}

// refused is the state that a failure leads to while a claim is live.
func (s Snapshot) refused(t Attempt, r Receipt, last bool) (State, string) {
	switch {
	case last && r.Conflict && t.Number == 1:
		return Conflict, ""
	case last:
		return s.Action.notDone()
	case t.ClaimID == s.Action.Claim.ID:
		return ResultUnknown, WhyEarlierAttempt
	}
	return Executing, "" // of an earlier claim: the live one goes on
}

// settles reports whether evidence alone may settle the open case. What
// contradicts itself, was done in part, or did not undo what it should, is left
// to people.
func (a Action) settles() bool {
	return a.Case.Kind == CaseUnknown && a.Case.Why != WhyCompensation && a.verdict() != Partly
}

func (a Action) attempt(id string) (Attempt, bool) {
	for _, t := range a.Attempts {
		if t.ID == id {
			return t, true
		}
	}
	return Attempt{}, false
}

func (a Action) failedBefore(t Attempt) bool {
	return slices.ContainsFunc(a.Receipts, func(r Receipt) bool { return r.AttemptID == t.ID && r.Outcome == Failure })
}

// failedBesides reports whether every attempt but t has definitely failed.
func (a Action) failedBesides(t Attempt) bool {
	for _, u := range a.Attempts {
		if u.ID != t.ID && u.Outcome != Failure {
			return false
		}
	}
	return true
}
