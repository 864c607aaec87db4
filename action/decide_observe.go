package action

import "slices"

func (c AddObservation) op() string { return readingOp(c.Observation.ID) }

func (c AddObservation) again(_ Snapshot, left Event) error {
	if left.Kind == KindEvidence {
		return c.asked(left)
	}
	var d observed
	var b observationBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	return reused(c.By.same(left) && d.Observation.Tool == c.Observation.Tool && d.Observation.Step == c.Observation.Step && d.Observation.ObservedAt.Equal(seen(c.Observation.ObservedAt, left.At)) &&
		equalJSON(b.Snapshot, c.Observation.Snapshot) && b.Error == c.Observation.Error &&
		d.Observation.Wire.Status == c.Observation.Wire.Status && d.Observation.Wire.Code == c.Observation.Wire.Code)
}

// asked compares a reading with the answer by key that its id was used for.
func (c AddObservation) asked(left Event) error {
	var d evidenced
	var b evidenceBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	return reused(c.By.same(left) && d.Found.Source == c.Observation.Tool && d.Found.Step == c.Observation.Step &&
		seen(d.Found.ObservedAt, left.At).Equal(seen(c.Observation.ObservedAt, left.At)) && equalJSON(b.Snapshot, c.Observation.Snapshot))
}

func (c AddObservation) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if a.State == Draft {
		return Transition{}, s.need("observed", Proposed)
	}
	if c.Observation.Step != "" && !a.hasStep(c.Observation.Step) {
		return Transition{}, noStep()
	}
	d := observed{Observation: c.Observation}
	d.Observation.Revision, d.Observation.At = a.Revision, s.Now
	d.Observation.ObservedAt = d.Observation.Seen()
	if _, sent := a.of(c.Observation.Step).sentFrom(); d.Observation.ObservedAt.Before(sent) {
		d.Observation.Holds, d.Observation.Final = HoldsUnknown, false // it shows nothing of what was sent after it
	}
	if a.State == Proposed && !a.displaced(d.Observation) && !d.Observation.Failed && a.Terms.Before != "" && c.Observation.Tool == a.Terms.Before {
		d.Needs = s.needsAfter(c.Needs)
	}
	to, why := s.afterObservation(d.Observation)
	if to == a.State && a.unsent() && a.short(c.Needs) {
		to, d.Wanted = Conflict, c.Needs
	}
	if why != "" {
		d.Case = s.newCase(c.CaseID, why, c.op())
	}
	t, err := s.step(c.op(), c.By, KindObservation, to, d, observationBody{Snapshot: c.Observation.Snapshot, Error: c.Observation.Error})
	if why != "" {
		t.Hold = HoldCase
	}
	return t, err
}

// needsAfter is what a reading makes of the needs: once somebody has decided,
// or when nobody would have to, it changes nothing.
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
	switch {
	case a.unsent():
		if a.moved(o) || o.Absent {
			return Conflict, ""
		}
		if a.State == Executing && o.Holds == HoldsFalse { // a precondition
			return a.notDone()
		}
	case o.Step != "":
		if a.State == Executing && o.Holds == HoldsFalse && a.stepProven(o.Step) && s.verifyOver(o.Step) {
			return ResultUnknown, WhyMismatch
		}
	case a.State.In(Accepted, ResultUnknown) && a.Terms.Verify && a.Proven == ProvesCompleted:
		return s.verified(o)
	}
	return a.State, ""
}

// unsent reports whether people have decided and nothing was sent yet.
func (a Action) unsent() bool {
	return a.State == Confirmed || a.State == Executing && len(a.Attempts) == 0
}

// short reports whether what was read now asks for more people than the
// confirmation rests on, each in any role that their approval could count for
// when it was given: the object is not any more what they decided on.
func (a Action) short(needs []Need) bool {
	unproven := func(d Decision) bool { return !d.StepUp }
	return stepUp(needs) && slices.ContainsFunc(a.Counted(), unproven) || !Met(needs, a.Confirmation.Voters)
}

// moved reports whether a reading shows another version than was approved.
func (a Action) moved(o Observation) bool {
	return !o.Failed && o.Version != "" && a.ObjectVersion != nil && o.Version != *a.ObjectVersion
}

// Gone reports whether an action ended as a conflict because the object is not
// there.
func (a Action) Gone() bool {
	n := len(a.Observations)
	return a.State == Conflict && len(a.Attempts) == 0 && n > 0 && a.Observations[n-1].Absent
}

// Short reports whether an action ended as a conflict because what was read
// before it ran asks for more people than its confirmation rests on.
func (a Action) Short() bool { return a.State == Conflict && a.Wanted != nil }

// InVain returns the latest reading with a tool of what the action has now, and
// how many in a row have shown nothing; none when it showed something.
func (a Action) InVain(tool string) (last Observation, times int) {
	for i := len(a.Observations) - 1; i >= 0; i-- {
		o := a.Observations[i]
		if o.Tool != tool || o.Revision != a.Revision {
			continue
		}
		if !o.Failed {
			break
		}
		if times++; times == 1 {
			last = o
		}
	}
	return last, times
}

// readInVain returns the reading for the live claim that showed nothing, if the
// latest did.
func (a Action) readInVain() (Observation, bool) {
	n := len(a.Observations)
	if n == 0 || a.Claim == nil || a.Observations[n-1].At.Before(a.Claim.TakenAt) {
		return Observation{}, false
	}
	return a.Observations[n-1], a.Observations[n-1].Failed
}

// StalledBy returns the reading because of which the action was given back the
// last time, if it was one.
func (a Action) StalledBy() (Observation, bool) {
	if a.Stall.Times == 0 {
		return Observation{}, false
	}
	return a.readInVain()
}

// verified judges a read-back of the post-conditions (row D3 of docs/systems.md):
// a failed query says nothing, a mismatch counts once the window for it is over,
// or the object is final (row D2).
func (s Snapshot) verified(o Observation) (State, string) {
	a := s.Action
	switch {
	case o.Failed:
	case o.Holds == HoldsTrue && (a.State == Accepted || a.settles()):
		return Applied, ""
	case o.Holds == HoldsFalse && a.State == Accepted && (o.Final || s.verifyOver("")):
		return ResultUnknown, WhyMismatch
	}
	return a.State, ""
}

// verifyOver reports whether one more mismatch is the last that is waited for,
// of the whole or of a step.
func (s Snapshot) verifyOver(step string) bool {
	a := s.Action
	since := later(a.Since, a.ProvenAt)
	mismatches := 1
	for _, o := range a.Observations {
		if o.Holds == HoldsFalse && o.Step == step && o.At.After(since) {
			mismatches++
		}
	}
	return mismatches >= a.Terms.VerifyTries || !s.Now.Before(since.Add(a.Terms.VerifyWindow))
}
