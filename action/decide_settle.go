package action

import (
	"slices"
	"time"
)

func (c AddEvidence) op() string { return "evidence:" + c.Found.ID }

func (c AddEvidence) again(s Snapshot, left Event) error {
	var d evidenced
	var b evidenceBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	return reused(d.Found == c.found(s.Action) && equalJSON(b.Snapshot, c.Snapshot))
}

// found is the answer for what it is worth.
func (c AddEvidence) found(a Action) Found {
	f := c.Found
	f.Proves = ProvesNothing
	if f.Outcome == FoundSucceeded {
		f.Proves = a.worth(c.Found.Proves)
	}
	return f
}

func (c AddEvidence) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if a.State.In(Draft, Proposed) {
		return Transition{}, s.need("answered for", Executing)
	}
	d := evidenced{Found: c.found(a)}
	to, why := s.afterEvidence(d.Found)
	to, why = s.afterLate(d.Found.Proves, c.UndoneBy, to, why)
	if why != "" {
		d.Case = s.newCase(c.CaseID, why, c.op())
		if why == WhyCompensated {
			d.Case.Other = c.UndoneBy
		}
	}
	t, err := s.step(c.op(), c.By, KindEvidence, to, d, evidenceBody{Snapshot: c.Snapshot})
	if why != "" {
		t.Hold = HoldCase
	}
	return t, err
}

// afterEvidence is the state that an answer about the operation, by its key,
// leads to, and why a case opens.
func (s Snapshot) afterEvidence(f Found) (State, string) {
	a := s.Action
	switch f.Outcome {
	case FoundSucceeded:
		return s.afterSuccess(f.Proves, a.failedBesides(Attempt{}))
	case FoundFailed:
		return s.afterRefusal()
	case FoundNotExecuted:
		return s.afterMiss()
	}
	return a.State, ""
}

// afterRefusal is the state that a stored refusal of the key leads to. The key
// itself is the fence: whatever still arrives under it is refused as well.
func (s Snapshot) afterRefusal() (State, string) {
	a := s.Action
	open := a.State == ResultUnknown && a.settles()
	awaited := a.awaitsCompletion() && a.Proven != ProvesCompleted
	switch {
	case open && (a.Proven == ProvesNothing || awaited), a.State == Accepted && awaited:
		return a.notDone()
	case a.said(FoundFailed): // weighed then
	case open, a.State.In(Accepted, Applied):
		return ResultUnknown, WhyContradiction
	}
	return a.State, ""
}

// said reports whether a query by key was answered so before.
func (a Action) said(outcome string) bool {
	return slices.ContainsFunc(a.Asks, func(q Ask) bool { return q.Found.Outcome == outcome })
}

// afterMiss is the state that "it was not executed" leads to. What is on its
// way while the action is executing may not have arrived.
func (s Snapshot) afterMiss() (State, string) {
	a := s.Action
	open := a.State == ResultUnknown && a.settles()
	switch {
	case !a.NotExecuted && (a.State.In(Accepted, Applied) || open && a.Proven != ProvesNothing):
		return ResultUnknown, WhyContradiction
	case open && a.Proven == ProvesNothing && s.fenced() && s.mayRetry() != nil:
		return a.notDone()
	}
	return a.State, ""
}

// fenced reports whether nothing that was sent can take effect any more.
func (s Snapshot) fenced() bool { return !s.Now.Before(s.Action.FencedAt()) }

func (c StartRetry) op() string { return "retry:" + c.ClaimID }

func (c StartRetry) again(s Snapshot, left Event) error {
	if left.By.ID != c.By.ID {
		return Refuse(AlreadyClaimed, "Another executor has picked up this retry.")
	}
	return s.live(c.By.ID, c.ClaimID)
}

func (c StartRetry) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.need("sent again", ResultUnknown); err != nil {
		return Transition{}, err
	}
	if !a.cleared() {
		return Transition{}, unsafe("not-cleared", "the business system has not said, by key, that nothing was executed, and no person wants it sent")
	}
	if err := s.mayRetry(); err != nil {
		return Transition{}, err
	}
	if err := s.bound(c.ProposalHash, c.ObjectVersion); err != nil {
		return Transition{}, err
	}
	claim := Claim{ID: c.ClaimID, Client: c.By.ID, ClientName: c.By.Name, TakenAt: s.Now, LeaseUntil: s.Now.Add(a.Terms.Lease)}
	t, err := s.step(c.op(), c.By, KindRetried, Executing, claimed{claim}, nil)
	t.Before, t.Hold = a.keyUntil(), HoldRun
	return t, err
}

// cleared reports whether the one retry is to be made: the business system has
// said, by key, that nothing was executed, or a person wants it.
func (a Action) cleared() bool { return a.NotExecuted || a.CaseID() != "" && a.Case.SendAgain }

// mayRetry says why the one retry may not be made, whoever wants it.
func (s Snapshot) mayRetry() error {
	a := s.Action
	switch {
	case !a.Terms.RetrySameKey:
		return unsafe("contract", "the contract does not allow it")
	case a.Retried:
		return unsafe("used", "only one is made")
	case !a.settles() || a.verdict() != "" || a.Proven != ProvesNothing || len(a.Attempts) == 0:
		return unsafe("known", "something is known of the outcome, or people are settling it")
	case a.Terms.KeyLifetime > 0 && !s.Now.Before(a.keyUntil()):
		return Refuse(ExpiredCode, "The business system may have forgotten the key. Sending again could run it twice.").Because("key")
	}
	return nil
}

// awaitsRetry reports whether the one retry may be picked up, as long as the
// business system knows the key.
func (a Action) awaitsRetry() bool {
	return a.cleared() && a.Terms.RetrySameKey && !a.Retried && a.settles() && a.verdict() == "" &&
		a.Proven == ProvesNothing && len(a.Attempts) > 0
}

// unsafe refuses a retry; pages say why by the reason.
func unsafe(reason, why string) *Refusal {
	return Refuse(WrongState, "A retry is not safe here: "+why+".").Because("retry-" + reason)
}

// keyUntil is how long the business system surely knows the execution key,
// counted from the first attempt, with a margin. It is zero where the contract
// does not say, and before anything was sent.
func (a Action) keyUntil() time.Time {
	if a.Terms.KeyLifetime <= 0 || len(a.Attempts) == 0 {
		return time.Time{}
	}
	return a.Attempts[0].At.Add(a.Terms.KeyLifetime * 9 / 10)
}
