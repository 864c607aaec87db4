package action

import (
	"slices"
	"time"
)

func (c AddEvidence) op() string { return readingOp(c.Found.ID) }

func (c AddEvidence) again(s Snapshot, left Event) error {
	if left.Kind == KindObservation {
		return c.read(left)
	}
	var d evidenced
	var b evidenceBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	was, now := d.Found, c.found(s.Action)
	if was.Untimely != "" {
		was.Outcome, was.Proves, was.Untimely = was.Untimely, now.Proves, ""
	}
	was.Wire, now.Wire = Wire{}, Wire{} // it may have taken longer, or been asked later, the second time
	was.ObservedAt, now.ObservedAt = time.Time{}, time.Time{}
	return reused(c.By.same(left) && was == now && equalJSON(b.Snapshot, c.Snapshot))
}

// read compares an answer by key with the reading that its id was used for, before
// anything was sent.
func (c AddEvidence) read(left Event) error {
	var d observed
	var b observationBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	return reused(c.By.same(left) && d.Observation.Tool == c.Found.Source && d.Observation.Step == c.Found.Step &&
		d.Observation.ObservedAt.Equal(seen(c.Found.ObservedAt, left.At)) && equalJSON(b.Snapshot, c.Snapshot))
}

// found is the answer for what it is worth.
func (c AddEvidence) found(a Action) Found {
	f := c.Found
	f.Proves = ProvesNothing
	if f.Outcome == FoundSucceeded {
		f.Proves = a.of(f.Step).worth(c.Found.Proves)
	}
	return f
}

func (c AddEvidence) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if a.State.In(Draft, Proposed) {
		return Transition{}, s.need("answered for", Executing)
	}
	if !a.hasStep(c.Found.Step) {
		return Transition{}, noStep()
	}
	one := s
	one.Action = a.of(c.Found.Step)
	d := evidenced{Found: c.found(a)}
	if f := &d.Found; one.Action.untimely(*f, seen(f.ObservedAt, s.Now)) {
		f.Untimely, f.Outcome, f.Proves = f.Outcome, FoundUnknown, ProvesNothing
	}
	to, why := one.afterEvidence(d.Found)
	if len(one.Action.Attempts) > 0 {
		to, why = one.afterLate(d.Found.Proves, c.UndoneBy, to, why)
	}
	to, why = s.together(one.Action, c.Found.Step, d.Found.Proves, to, why)
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
	if len(a.Attempts) == 0 {
		return s.afterUnasked(f)
	}
	switch f.Outcome {
	case FoundSucceeded:
		return s.afterSuccess(f.Proves, a.failedBesides(Attempt{}))
	case FoundFailed:
		return s.afterRefusal()
	case FoundNotExecuted:
		return s.afterMiss(f)
	case FoundDiffers:
		return s.afterDifference()
	}
	return a.State, ""
}

// afterUnasked is the state that an answer leads to about what was never
// attempted from here. That something happened under the key is for people to
// explain, and proves nothing; that nothing did says nothing new.
func (s Snapshot) afterUnasked(f Found) (State, string) {
	a := s.Action
	told := slices.ContainsFunc(a.Asks, func(q Ask) bool {
		return q.Found.Outcome == FoundSucceeded && q.Found.Proves.Stronger(f.Proves) == q.Found.Proves
	})
	switch {
	case f.Outcome == FoundDiffers:
		return s.afterDifference()
	case f.Outcome != FoundSucceeded, told, a.State == ResultUnknown && !a.settles():
		return a.State, ""
	}
	return ResultUnknown, WhyContradiction
}

// afterDifference is the state that another operation under the key leads to
// than was asked for. Only people can weigh that.
func (s Snapshot) afterDifference() (State, string) {
	a := s.Action
	if a.State == Executing || a.State == ResultUnknown && !a.settles() {
		return a.State, ""
	}
	return ResultUnknown, WhyContradiction
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
// way while the action is executing may not have arrived, and so may what the
// fence was not over for when it was observed.
func (s Snapshot) afterMiss(f Found) (State, string) {
	a := s.Action
	open := a.State == ResultUnknown && a.settles()
	switch {
	case !a.notExecuted() && (a.State.In(Accepted, Applied) || open && a.Proven != ProvesNothing):
		return ResultUnknown, WhyContradiction
	case open && a.Proven == ProvesNothing && s.fencedAt(seen(f.ObservedAt, s.Now)) && s.mayRetry() != nil:
		return a.notDone()
	}
	return a.State, ""
}

// fenced reports whether nothing that was sent can take effect any more.
func (s Snapshot) fenced() bool { return !s.Now.Before(s.Action.FencedAt()) }

// fencedAt reports whether that was so when something was observed.
func (s Snapshot) fencedAt(observed time.Time) bool {
	until, late := s.Action.LateUntil()
	return s.fenced() && (!late || !observed.Before(until))
}

func (c StartRetry) op() string { return "retry:" + c.ClaimID }

func (c StartRetry) again(s Snapshot, left Event) error {
	if left.By.ID != c.By.ID {
		return Refuse(AlreadyClaimed, "Another executor has picked up this retry.")
	}
	if err := s.bound(c.ProposalHash, c.ObjectVersion); err != nil {
		return err
	}
	return s.live(c.By.ID, c.ClaimID)
}

func (c StartRetry) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.need("sent again", ResultUnknown); err != nil {
		return Transition{}, err
	}
	if err := s.mayResume(); err != nil {
		return Transition{}, err
	}
	if err := s.bound(c.ProposalHash, c.ObjectVersion); err != nil {
		return Transition{}, err
	}
	if err := s.MayFollow(); err != nil {
		return Transition{}, err
	}
	claim := Claim{ID: c.ClaimID, Client: c.By.ID, ClientName: c.By.Name, TakenAt: s.Now, LeaseUntil: s.Now.Add(a.Terms.Lease)}
	t, err := s.step(c.op(), c.By, KindRetried, Executing, claimed{claim}, nil)
	t.Before = a.resumableUntil()
	return s.toSend(t), err
}

// mayResume says why nobody may go on with the step that is next: send it once
// more, or for the first time where those before it are done.
func (s Snapshot) mayResume() error {
	a := s.Action
	one, err := s.toResume()
	switch {
	case err != nil:
		return err
	case a.Resumed >= maxResumes:
		return unsafe("used", "it was picked up often enough")
	case a.fresh(one.Action):
		if until := a.resumableUntil(); !until.IsZero() && !s.Now.Before(until) {
			return forgotten()
		}
		return nil
	case !one.Action.cleared():
		return unsafe("not-cleared", "the business system has not said, by key, that nothing was executed, and no person wants it sent")
	}
	return one.mayRetry()
}

// toResume returns the action seen as the step that is next, or says why there is
// none to go on with, whoever wants it.
func (s Snapshot) toResume() (one Snapshot, err error) {
	next, left := s.Action.next()
	one = s
	one.Action = s.Action.of(next.Name)
	switch {
	case s.FollowedBy != "":
		return one, Followed(s.FollowedBy)
	case !left || next.Proven != ProvesNothing:
		return one, unsafe("known", "every step is done, or it is not known whether the one before is")
	}
	return one, nil
}

// fresh reports whether a step, seen by itself, may be begun after an unknown
// outcome: it was never sent, and all before it are done.
func (a Action) fresh(one Action) bool {
	return len(a.Steps) > 0 && one.Executions() == 0 && a.Executions() > 0 && !a.tooLate && a.settles() && a.verdict() == ""
}

// maxResumes is how often one action is picked up again. More than one happens
// only when executors end, or send nothing, again and again.
const maxResumes = 10

// cleared reports whether the one retry of one request is to be made: the
// business system has said, by key, that nothing was executed, or a person wants it.
func (a Action) cleared() bool { return a.notExecuted() || a.CaseID() != "" && a.Case.SendAgain }

// mayRetry says why the one retry may not be made, whoever wants it.
func (s Snapshot) mayRetry() error {
	a := s.Action
	switch {
	case s.FollowedBy != "":
		return Followed(s.FollowedBy)
	case !a.Terms.RetrySameKey:
		return unsafe("contract", "the contract does not allow it")
	case a.Retried():
		return unsafe("used", "only one is made")
	case !a.settles() || a.verdict() != "" || a.Proven != ProvesNothing || len(a.Attempts) == 0:
		return unsafe("known", "something is known of the outcome, or people are settling it")
	case a.Terms.KeyLifetime > 0 && !s.Now.Before(a.keyUntil()):
		return forgotten()
	}
	return nil
}

// Followed refuses to go on with an action, or to send it again, that another one
// is linked to: what the other does, or undoes, would be done twice, or again.
func Followed(by string) *Refusal {
	return unsafe("linked", "action "+by+", which is linked to it, is carried out, has taken effect or may have").With("action", by)
}

func forgotten() error {
	return Refuse(ExpiredCode, "The business system may have forgotten the key. Sending again could run it twice.").Because("key")
}

// awaitsRetry reports whether the step that is next may be picked up, as long
// as the business system knows the key.
func (a Action) awaitsRetry() bool {
	next, left := a.next()
	one := a.of(next.Name)
	if !left || next.Proven != ProvesNothing || a.Resumed >= maxResumes {
		return false
	}
	return a.fresh(one) || one.cleared() && a.Terms.RetrySameKey && !one.Retried() && a.settles() && a.verdict() == "" &&
		one.Proven == ProvesNothing && len(one.Attempts) > 0
}

// Retried reports whether the one safe retry was used: a request that may have
// left was sent once more.
func (a Action) Retried() bool {
	next, _ := a.next()
	return a.of(next.Name).Executions() > 1
}

// NotExecuted reports whether the business system itself said so of the step
// that is next, by key, since it was last sent.
func (a Action) NotExecuted() bool {
	next, _ := a.next()
	return a.of(next.Name).notExecuted()
}

// notExecuted looks at one request. What was recorded and never left changes
// nothing of an answer.
func (a Action) notExecuted() bool {
	return a.missed > 0 && !slices.ContainsFunc(a.Attempts[a.missed-1:], func(t Attempt) bool { return !t.NotSent })
}

// miss notes an answer, about all that was sent so far, that nothing was executed.
func (a *Action) miss(step string) {
	said := len(a.of(step).Attempts) + 1
	if a.of(step).notExecuted() {
		return
	}
	if len(a.Steps) == 0 {
		a.missed = said
		return
	}
	a.changeStep(step, func(s *Step) { s.missed = said })
}

// forgetMisses is for answers that came too long ago to go on because of them.
func (a *Action) forgetMisses() {
	a.missed, a.tooLate = 0, true
	a.Steps = slices.Clone(a.Steps)
	for i := range a.Steps {
		a.Steps[i].missed = 0
	}
}

// unsafe refuses a retry; pages say why by the reason.
func unsafe(reason, why string) *Refusal {
	return Refuse(WrongState, "A retry is not safe here: "+why+".").Because("retry-" + reason)
}

// resumableUntil is how long somebody may go on with the step that is next: as
// long as its key is known, counted from the first request of all when it was
// not sent itself.
func (a Action) resumableUntil() time.Time {
	next, _ := a.next()
	if one := a.of(next.Name); len(one.Attempts) > 0 {
		return one.keyUntil()
	}
	return a.keyUntil()
}

// keyUntil is how long the business system surely knows the execution key,
// counted from the first attempt, with a margin. It is zero where the contract
// does not say, and before anything was sent.
func (a Action) keyUntil() time.Time {
	if a.Terms.KeyLifetime <= 0 || len(a.Attempts) == 0 {
		return time.Time{}
	}
	return a.Attempts[0].At.Add((a.Terms.KeyLifetime * 9 / 10).Truncate(time.Microsecond)) // as finely as it is stored
}
