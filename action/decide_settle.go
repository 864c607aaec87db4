package action

func (c AddEvidence) op() string { return "evidence:" + c.Found.ID }

func (c AddEvidence) again(_ Snapshot, left Event) error {
	return reused(readData[evidenced](left).Found == c.Found)
}

func (c AddEvidence) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if a.State.In(Draft, Proposed) {
		return Transition{}, s.need("answered for", Executing)
	}
	to, d := a.State, evidenced{Found: c.Found}
	switch {
	case c.Found.Outcome == FoundUnknown:
	case a.State.In(ResultUnknown):
		to = s.found(c.Found)
	case a.State.In(Executing, Accepted):
		if c.Found.Outcome == FoundSucceeded {
			to = s.succeeded(c.Found.Proves)
		}
	case c.Found.Outcome == FoundSucceeded && contradicts(a.State, Success),
		c.Found.Outcome == FoundNotExecuted && contradicts(a.State, Failure):
		to = ResultUnknown
		d.Case = s.newCase(c.CaseID, CaseContradiction, WhyContradiction)
	}
	t, err := s.step(c.op(), c.By, KindEvidence, to, d, nil)
	if d.Case != nil {
		t.Hold = HoldCase
	}
	return t, err
}

// found is what authoritative evidence makes of an unknown outcome. What
// contradicts an earlier truth is left to people.
func (s Snapshot) found(f Found) State {
	if s.Action.Case.Kind == CaseContradiction {
		return ResultUnknown
	}
	if f.Outcome == FoundSucceeded {
		return s.succeeded(f.Proves)
	}
	if s.fenced() && (!s.Action.Terms.RetrySameKey || s.Action.Retried) {
		return Failed
	}
	return ResultUnknown
}

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
	if !a.Terms.RetrySameKey || a.Retried || !a.NotExecuted || a.Case.Kind != CaseUnknown {
		return Transition{}, Refuse(WrongState, "A retry is not safe here: the contract must allow it, the business system must have said that nothing was executed, and only one is made.").Because("retry")
	}
	if a.Terms.KeyLifetime > 0 && !s.Now.Before(a.Attempts[0].At.Add(a.Terms.KeyLifetime*9/10)) {
		return Transition{}, Refuse(ExpiredCode, "The business system may have forgotten the key. Sending again could run it twice.").Because("key")
	}
	claim := Claim{ID: c.ClaimID, Client: c.By.ID, ClientName: c.By.Name, TakenAt: s.Now, LeaseUntil: s.Now.Add(a.Terms.Lease)}
	t, err := s.step(c.op(), c.By, KindRetried, Executing, claimed{claim}, nil)
	t.Hold = HoldRun
	return t, err
}

func (c Settle) op() string { return c.Op }

func (c Settle) again(_ Snapshot, left Event) error {
	v := readData[judged](left).Verdict
	return reused(v.Verdict == c.Verdict.Verdict && v.EvidenceKind == c.Verdict.EvidenceKind && v.EvidenceRef == c.Verdict.EvidenceRef)
}

func (c Settle) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.need("settled", ResultUnknown); err != nil {
		return Transition{}, err
	}
	if a.Case.ID != c.CaseID || a.Version != c.Version {
		return Transition{}, Refuse(StaleRevision, "Not recorded. Something new is known since you opened this case. Look again.")
	}
	to := ResultUnknown
	switch c.Verdict.Verdict {
	case Happened:
		to = Applied
		if a.Terms.Proves != ProvesCompleted {
			to = Accepted
		}
	case DidNotHappen:
		if s.fenced() {
			to = Failed
		}
	}
	return s.step(c.Op, c.By, KindVerdict, to, judged{Verdict: c.Verdict}, textBody{Note: c.Verdict.Note})
}
