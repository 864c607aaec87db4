package action

import (
	"bytes"
	"time"
)

func (c AddReceipt) op() string { return "receipt:" + c.Receipt.ID }

func (c AddReceipt) again(_ Snapshot, left Event) error {
	var d receipted
	var b receiptBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	was, now := d.Receipt, c.Receipt
	return reused(was.AttemptID == now.AttemptID && was.Claimed == now.Claimed && was.HTTPStatus == now.HTTPStatus &&
		was.ProviderRef == now.ProviderRef && was.ObjectVersionAfter == now.ObjectVersionAfter && bytes.Equal(b.Body, now.Body))
}

func (c AddReceipt) decide(s Snapshot) (Transition, error) {
	attempt, ok := s.Action.attempt(c.Receipt.AttemptID)
	if !ok {
		return Transition{}, Refuse(NotFound, "No attempt with this attempt_id was recorded for this action.").At("/attempt_id", "is not an attempt of this action")
	}
	d := receipted{Receipt: c.Receipt}
	to, why := s.afterReceipt(attempt, c.Receipt)
	if why != "" {
		d.Case = s.newCase(c.CaseID, caseKind(why), why)
	}
	t, err := s.step(c.op(), c.By, KindReceipt, to, d, receiptBody{Body: c.Receipt.Body})
	if to == ResultUnknown {
		t.Hold = HoldCase
	}
	return t, err
}

func caseKind(why string) string {
	if why == WhyContradiction {
		return CaseContradiction
	}
	return CaseUnknown
}

// afterReceipt is the state that a receipt leads to, and why a case opens.
func (s Snapshot) afterReceipt(t Attempt, r Receipt) (State, string) {
	a := s.Action
	if t.Definite() && (r.Outcome == Unknown || r.Outcome == t.Outcome) {
		return s.strengthened(r), "" // nothing new, or more of the same
	}
	switch a.State {
	case Executing, Accepted:
		return s.runningReceipt(t, r)
	case ResultUnknown:
		if a.Case.Kind == CaseUnknown && !t.Definite() {
			return s.lateReceipt(t, r), ""
		}
		return ResultUnknown, ""
	}
	if contradicts(a.State, r.Outcome) {
		return ResultUnknown, WhyContradiction
	}
	return a.State, ""
}

// contradicts reports whether evidence about the operation denies the state.
func contradicts(s State, o Outcome) bool {
	switch o {
	case Success:
		return s.In(Failed, Conflict, Confirmed, Cancelled, Expired, Rejected)
	case Failure:
		return s.In(Applied, Accepted)
	}
	return false
}

// strengthened is the state after another success of the same attempt.
func (s Snapshot) strengthened(r Receipt) State {
	if s.Action.State.In(Executing, Accepted) && r.Outcome == Success {
		return s.succeeded(r.Proves)
	}
	return s.Action.State
}

func (s Snapshot) runningReceipt(t Attempt, r Receipt) (State, string) {
	a := s.Action
	switch {
	case t.Definite():
		return ResultUnknown, WhyContradiction
	case r.Outcome == Success:
		return s.succeeded(r.Proves), ""
	case r.Outcome == Unknown:
		return ResultUnknown, WhyUnknownReceipt
	case a.openBefore(t):
		return ResultUnknown, WhyEarlierAttempt
	case r.Conflict && t.Number == 1:
		return Conflict, ""
	}
	return Failed, ""
}

// lateReceipt settles an unknown outcome as far as the receipt does.
func (s Snapshot) lateReceipt(t Attempt, r Receipt) State {
	switch {
	case r.Outcome == Success:
		return s.succeeded(r.Proves)
	case r.Outcome == Failure && !s.Action.openBesides(t) && s.fenced():
		return Failed
	}
	return ResultUnknown
}

// succeeded is the state that a proof leads to.
func (s Snapshot) succeeded(p Proof) State {
	if s.Action.Proven.Stronger(p) == ProvesCompleted && !s.Action.Terms.Verify {
		return Applied
	}
	return Accepted
}

func (s Snapshot) fenced() bool {
	at, ok := s.Action.FencedAt()
	return ok && !s.Now.Before(at)
}

func (a Action) attempt(id string) (Attempt, bool) {
	for _, t := range a.Attempts {
		if t.ID == id {
			return t, true
		}
	}
	return Attempt{}, false
}

// openBefore reports whether an attempt before t lacks a definite outcome.
func (a Action) openBefore(t Attempt) bool {
	for _, u := range a.Attempts {
		if u.Number < t.Number && !u.Definite() {
			return true
		}
	}
	return false
}

func (a Action) openBesides(t Attempt) bool {
	for _, u := range a.Attempts {
		if u.ID != t.ID && !u.Definite() {
			return true
		}
	}
	return false
}

func (c AddObservation) op() string { return "observe:" + c.Observation.ID }

func (c AddObservation) again(_ Snapshot, left Event) error {
	var d observed
	var b observationBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	return reused(d.Observation.Tool == c.Observation.Tool && d.Observation.ObservedAt.Equal(c.Observation.ObservedAt) &&
		bytes.Equal(b.Snapshot, c.Observation.Snapshot) && b.Error == c.Observation.Error)
}

func (c AddObservation) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if a.State == Draft {
		return Transition{}, s.need("observed", Proposed)
	}
	d := observed{Observation: c.Observation}
	d.Observation.Revision = a.Revision
	if a.State == Proposed && !d.Observation.Failed && c.Observation.Tool == a.Terms.Before {
		d.Needs = s.needsAfter(c.Needs)
	}
	to, why := s.afterObservation(c.Observation)
	if why != "" {
		d.Case = s.newCase(c.CaseID, CaseUnknown, why)
	}
	t, err := s.step(c.op(), c.By, KindObservation, to, d, observationBody{Snapshot: c.Observation.Snapshot, Error: c.Observation.Error})
	if to == ResultUnknown && a.State != ResultUnknown {
		t.Hold = HoldCase
	}
	return t, err
}

// needsAfter is what a reading makes of the needs: once somebody has decided,
// or when nobody would have to, it does not lower them.
func (s Snapshot) needsAfter(needs []Need) []Need {
	for _, d := range s.Action.Decisions {
		if d.Revision == s.Action.Revision {
			return nil
		}
	}
	if !needsPeople(needs) {
		return nil
	}
	return needs
}

// afterObservation is the state that a reading leads to, and why a case opens.
func (s Snapshot) afterObservation(o Observation) (State, string) {
	a := s.Action
	switch a.State {
	case Confirmed:
		if a.moved(o) {
			return Conflict, ""
		}
	case Executing, Accepted:
		if len(a.Attempts) == 0 && a.moved(o) {
			return Conflict, ""
		}
		if len(a.Attempts) == 0 && o.Holds == HoldsFalse { // a precondition
			return Failed, ""
		}
		if len(a.Attempts) > 0 && a.Terms.Verify {
			return s.verified(o)
		}
	}
	return a.State, ""
}

// moved reports whether a reading shows another version than was approved.
func (a Action) moved(o Observation) bool {
	return !o.Failed && o.Version != "" && a.ObjectVersion != nil && o.Version != *a.ObjectVersion
}

// verified judges a read-back of the post-conditions (seed row D3): a failed
// query says nothing, a mismatch counts once the window for it is over.
func (s Snapshot) verified(o Observation) (State, string) {
	a := s.Action
	switch {
	case o.Holds == HoldsTrue && a.Proven == ProvesCompleted:
		return Applied, ""
	case o.Holds == HoldsFalse && a.State == Accepted && s.verifyOver():
		return ResultUnknown, WhyMismatch
	}
	return a.State, ""
}

func (s Snapshot) verifyOver() bool {
	a := s.Action
	var since time.Time
	for _, r := range a.Receipts {
		if r.Outcome == Success {
			since = r.At
			break
		}
	}
	mismatches := 1
	for _, o := range a.Observations {
		if o.Holds == HoldsFalse && o.At.After(since) {
			mismatches++
		}
	}
	return mismatches >= a.Terms.VerifyTries || !s.Now.Before(since.Add(a.Terms.VerifyWindow))
}
