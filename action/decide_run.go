package action

import (
	"strconv"
	"time"
)

func (c TakeClaim) op() string { return "claim:" + c.ClaimID }

func (c TakeClaim) again(s Snapshot, left Event) error {
	if left.By.ID != c.By.ID {
		return Refuse(AlreadyClaimed, "Another executor has claimed this confirmation.")
	}
	if err := s.bound(c.ProposalHash, c.ObjectVersion); err != nil {
		return err
	}
	return s.live(c.By.ID, c.ClaimID)
}

func (c TakeClaim) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if a.State == Executing {
		return Transition{}, Refuse(AlreadyClaimed, "Another executor has claimed this confirmation.")
	}
	if err := s.need("claimed", Confirmed); err != nil {
		return Transition{}, err
	}
	if err := s.bound(c.ProposalHash, c.ObjectVersion); err != nil {
		return Transition{}, err
	}
	if err := s.MayFollow(); err != nil {
		return Transition{}, err
	}
	claim := Claim{ID: c.ClaimID, Client: c.By.ID, ClientName: c.By.Name, TakenAt: s.Now, LeaseUntil: s.Now.Add(a.Terms.Lease)}
	t, err := s.step(c.op(), c.By, KindClaimed, Executing, claimed{claim}, nil)
	return s.toSend(t), err
}

// bound refuses a hash or an object version that was not approved, and an
// action whose stored parts do not belong together any more.
func (s Snapshot) bound(hash string, version *string) error {
	a := s.Action
	if err := s.sound(); err != nil {
		return err
	}
	if hash != a.ProposalHash {
		return Refuse(StaleRevision, "This is not the content that was approved. Read the action again.")
	}
	if !equalPtr(version, a.ObjectVersion) {
		return Refuse(VersionConflict, "The object version is not the one that was approved.")
	}
	return nil
}

// sound refuses when what is stored is not what people approved: every bound
// field is hashed again, and compared with each approval.
func (s Snapshot) sound() error {
	a := s.Action
	ok := s.Differs == "" && PayloadHash(a.Payload) == a.PayloadHash && a.Binding().Hash() == a.ProposalHash &&
		a.Confirmation != nil && a.Confirmation.Revision == a.Revision
	for _, d := range a.Decisions {
		ok = ok && (d.Revision != a.Revision || d.ProposalHash == a.ProposalHash)
	}
	if ok {
		return nil
	}
	return Refuse(StaleRevision, "What is stored is not what was approved. Do not run it; tell whoever runs this console.").Because("tampered")
}

// Verify reports whether a confirmation stands for this hash and version now.
// The refusal's code is the reason why not.
func (s Snapshot) Verify(hash string, version *string) error {
	if err := s.need("verified", Confirmed, Executing); err != nil {
		return err
	}
	if s.Action.StateAt(s.Now) == Expired {
		return Refuse(ExpiredCode, "The confirmation has expired.")
	}
	return s.bound(hash, version)
}

// live refuses unless the claim is this client's and its lease runs.
func (s Snapshot) live(client, claimID string) error {
	c := s.Action.Claim
	if s.Action.State != Executing || c == nil || c.Over || c.ID != claimID || c.Client != client || !s.Now.Before(c.LeaseUntil) {
		return Refuse(LeaseLost, "This claim is not live any more. Do not send. Report what you know; it is taken as evidence.")
	}
	return nil
}

func (c Renew) op() string { return c.Op }

func (c Renew) again(s Snapshot, left Event) error {
	if err := reused(c.By.same(left) && readData[claimed](left).Claim.ID == c.ClaimID); err != nil {
		return err
	}
	return s.live(c.By.ID, c.ClaimID)
}

func (c Renew) decide(s Snapshot) (Transition, error) {
	if err := s.live(c.By.ID, c.ClaimID); err != nil {
		return Transition{}, err
	}
	claim := *s.Action.Claim
	claim.LeaseUntil = s.Now.Add(s.Action.Terms.Lease)
	if until, ends := s.Action.renewableUntil(); ends {
		claim.LeaseUntil = earlier(claim.LeaseUntil, until)
		if !until.After(s.Action.Claim.LeaseUntil) {
			return Transition{Next: s.Action}, nil // it keeps the time that is left
		}
	}
	t, err := s.step(c.Op, c.By, KindRenewed, Executing, claimed{claim}, nil)
	t.Before = s.Action.Claim.LeaseUntil
	return t, err
}

// renewableUntil is how long a claim is extended under which nothing was sent yet:
// no longer than there is leave to send. False when there is no such end.
func (a Action) renewableUntil() (time.Time, bool) {
	switch n := len(a.Attempts); {
	case n > 0 && a.Attempts[n-1].ClaimID == a.Claim.ID:
		return time.Time{}, false
	case a.Resumed > 0:
		until := a.resumableUntil()
		return until, !until.IsZero()
	}
	return a.Confirmation.ExpiresAt, true
}

func (c Release) op() string { return c.Op }
func (c Release) again(_ Snapshot, left Event) error {
	var d ended
	var b endedBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	return reused(c.By.same(left) && d.Code == c.Code && b.Why == c.Why)
}

func (c Release) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.live(c.By.ID, c.ClaimID); err != nil {
		return Transition{}, err
	}
	for _, t := range a.Attempts {
		if t.ClaimID == c.ClaimID && (!t.Definite() || len(a.Steps) == 0) {
			return Transition{}, Refuse(AttemptOpen, "An attempt was recorded, so it may have been sent. Report a receipt instead of giving back.")
		}
	}
	if len(a.Attempts) > 0 { // before a step, or before the retry: what was sent is as unknown as it was
		return s.giveBack(c, KindReleased, ResultUnknown, WhyGivenBack)
	}
	if c.Code != "" {
		to, why := a.notDone()
		return s.giveBack(c, KindGivenUp, to, why)
	}
	return s.giveBack(c, KindReleased, s.unclaimed(), "")
}

// giveBack ends a claim, with a case where why says so.
func (s Snapshot) giveBack(c Release, kind Kind, to State, why string) (Transition, error) {
	_, unread := s.Action.readInVain()
	d := ended{Code: c.Code, Vain: kind == KindReleased && len(s.Action.Attempts) == 0 && (unread || c.Why != "")}
	if why != "" {
		d.Case = s.newCase(c.CaseID, why, c.Op)
	}
	var body any
	if c.Why != "" {
		body = endedBody{Why: c.Why}
	}
	t, err := s.step(c.Op, c.By, kind, to, d, body)
	if why != "" {
		t.Hold = HoldCase
	}
	return t, err
}

// unclaimed is the state of an action whose claim ended before any attempt.
func (s Snapshot) unclaimed() State {
	if s.Now.Before(s.Action.Confirmation.ExpiresAt) {
		return Confirmed
	}
	return Expired
}

func (c StartAttempt) op() string { return "attempt:" + c.AttemptID }

func (c StartAttempt) again(_ Snapshot, left Event) error {
	t := readData[attempted](left).Attempt
	return reused(c.By.same(left) && t.ClaimID == c.ClaimID && t.Step == c.Step && t.Fingerprint == c.Fingerprint)
}

func (c StartAttempt) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.live(c.By.ID, c.ClaimID); err != nil {
		return Transition{}, err
	}
	if err := s.sound(); err != nil {
		return Transition{}, err
	}
	if !a.hasStep(c.Step) {
		return Transition{}, noStep()
	}
	number := 1
	for _, t := range a.Attempts { // those of an earlier claim may be open: this is the retry
		switch {
		case t.Step == c.Step && t.Fingerprint != c.Fingerprint:
			return Transition{}, Refuse(StaleRevision, "The bytes differ from those of the first attempt. Send exactly the same again or not at all.")
		case t.ClaimID == c.ClaimID && !t.Definite():
			return Transition{}, Refuse(AttemptOpen, "Attempt "+t.ID+" has no outcome yet. Report its receipt first.")
		case t.ClaimID == c.ClaimID && t.Step == c.Step:
			return Transition{}, Refuse(AttemptOpen, "This claim has sent its one attempt already.")
		case t.Step == c.Step:
			number++
		}
	}
	if next, ok := a.NextStep(); len(a.Steps) > 0 && (!ok || next.Name != c.Step) {
		return Transition{}, Refuse(WrongState, "The steps are taken in their order, and this one is not the next.").Because("step").With("step", next.Name)
	}
	if err := s.MayFollow(); err != nil {
		return Transition{}, err
	}
	until := a.sendableUntil()
	if !s.Now.Before(until) {
		return Transition{}, forgotten()
	}
	attempt := Attempt{ID: c.AttemptID, Number: number, ClaimID: c.ClaimID, Step: c.Step,
		Fingerprint: c.Fingerprint, At: s.Now, SendBy: earlier(s.Now.Add(a.Terms.SendWithin), until)}
	t, err := s.step(c.op(), c.By, KindAttempted, Executing, attempted{attempt}, nil)
	t.Before = until
	return s.toSend(t), err
}

// sendableUntil is how long the holder of a live claim may send: as long as the
// lease runs, and what goes on after an unknown outcome only as long as its key is
// known.
func (a Action) sendableUntil() time.Time {
	until := a.Claim.LeaseUntil
	if known := a.resumableUntil(); a.Resumed > 0 && !known.IsZero() {
		until = earlier(until, known)
	}
	return until
}

func (c Tick) op() string                  { return "" }
func (c Tick) again(Snapshot, Event) error { return nil }

func (c Tick) decide(s Snapshot) (Transition, error) {
	a := s.Action
	due, ok := a.DueAt()
	if !ok || s.Now.Before(due) {
		return Transition{Next: a}, nil
	}
	op := "tick:" + strconv.FormatInt(a.Version, 10)
	by := By{Kind: BySystem}
	switch a.State {
	case Proposed, Confirmed:
		return s.step(op, by, KindExpired, Expired, ended{}, nil)
	case Executing:
		if len(a.Attempts) == 0 {
			return s.step(op, by, KindLapsed, s.unclaimed(), ended{}, nil)
		}
		why := WhyDeadline
		if due.Equal(a.Claim.LeaseUntil) {
			why = WhyLeaseLapsed
		}
		return s.unknown(op, by, KindOverdue, opened{Case: s.newCase(c.CaseID, why, op)})
	case Accepted:
		return s.unknown(op, by, KindOverdue, opened{Case: s.newCase(c.CaseID, WhyDeadline, op)})
	}
	if a.verdict() != DidNotHappen { // nobody picked up the retry while the key was known
		return s.step(op, by, KindOverdue, ResultUnknown, opened{}, nil)
	}
	return s.step(op, by, KindClosed, Failed, ended{}, nil)
}

// unknown moves to result_unknown; the case is in the data.
func (s Snapshot) unknown(op string, by By, kind Kind, data any) (Transition, error) {
	t, err := s.step(op, by, kind, ResultUnknown, data, nil)
	t.Hold = HoldCase
	return t, err
}

// newCase is the case for an outcome that is not known. An open one is kept,
// and becomes a contradiction when that is what it turns out to be.
func (s Snapshot) newCase(id, why, op string) *Case {
	a := s.Action
	c := Case{ID: id, Kind: CaseUnknown, Why: why, OpenedAt: s.Now, Open: true, Believed: a.State, Ground: a.sinceOp, News: op}
	if was := a.Case; a.CaseID() != "" {
		c = Case{ID: was.ID, Kind: was.Kind, Why: was.Why, OpenedAt: was.OpenedAt, Open: true,
			Believed: was.Believed, Ground: was.Ground, News: was.News, Other: was.Other}
		if why == WhyContradiction || why == WhyCompensated { // to what had been found out meanwhile
			c.Ground, c.News = a.foundBy(), op
		}
	}
	switch why {
	case WhyContradiction, WhyCompensated:
		c.Kind, c.Why = CaseContradiction, why
	case WhyCompensation, WhyStep:
		c.Why = why
	}
	return &c
}

// foundBy names the event that told most of an outcome so far: what proved it,
// or the latest failure, or what led to its state.
func (a Action) foundBy() string {
	if a.provenOp != "" {
		return a.provenOp
	}
	for i := len(a.Receipts) - 1; i >= 0; i-- {
		if a.Receipts[i].Outcome == Failure {
			return AddReceipt{Receipt: a.Receipts[i]}.op()
		}
	}
	return a.sinceOp
}
