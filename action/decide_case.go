package action

import (
	"encoding/hex"
	"strings"
	"time"
)

// seen refuses a command on a case that is not as its sender saw it.
func (s Snapshot) seen(what, caseID string, version int64, hash string) error {
	if err := s.need(what, ResultUnknown); err != nil {
		return err
	}
	a := s.Action
	if a.Case.ID == caseID && a.Version == version && a.SnapshotHash() == hash {
		return nil
	}
	return movedOn()
}

func movedOn() error {
	return Refuse(StaleRevision, "Not recorded. Something new is known since you opened this case. Look again.").Because("case")
}

// free refuses while somebody else holds the case.
func (s Snapshot) free(by By) error {
	h, held := s.Action.HeldBy(s.Now)
	if !held || h.ID == by.ID {
		return nil
	}
	return Refuse(AlreadyClaimed, h.Name+" has taken this case.").Because("case-held").
		With("by", h.Name).With("until", h.Until.UTC().Format(time.RFC3339))
}

func (c TakeCase) op() string { return c.Op }

// again holds as long as the person still holds the case: it may have been handed
// over since, or left.
func (c TakeCase) again(s Snapshot, _ Event) error {
	if err := s.free(c.By); err != nil {
		return err
	}
	if h, held := s.Action.HeldBy(s.Now); !held || h.ID != c.By.ID {
		return movedOn()
	}
	return nil
}

func (c TakeCase) decide(s Snapshot) (Transition, error) {
	if err := s.seen("taken", c.CaseID, c.Version, c.SnapshotHash); err != nil {
		return Transition{}, err
	}
	if err := s.free(c.By); err != nil {
		return Transition{}, err
	}
	since := s.Now
	if h, held := s.Action.HeldBy(s.Now); held {
		since = h.Since
	}
	h := Holding{ID: c.By.ID, Name: c.By.Name, Since: since, Until: s.Now.Add(TakeFor)}
	return s.step(c.Op, c.By, KindTaken, ResultUnknown, custody{Holder: &h}, nil)
}

func (c HandOver) op() string                  { return c.Op }
func (c HandOver) again(Snapshot, Event) error { return nil }

func (c HandOver) decide(s Snapshot) (Transition, error) {
	if err := s.seen("handed over", c.CaseID, c.Version, c.SnapshotHash); err != nil {
		return Transition{}, err
	}
	if err := s.free(c.By); err != nil {
		return Transition{}, err
	}
	d := custody{}
	if c.To != "" {
		d.Holder = &Holding{ID: c.To, Name: c.ToName, Since: s.Now, Until: s.Now.Add(HandOverFor)}
	}
	return s.step(c.Op, c.By, KindHandedOver, ResultUnknown, d, nil)
}

func (c AskAgain) op() string                  { return c.Op }
func (c AskAgain) again(Snapshot, Event) error { return nil }

func (c AskAgain) decide(s Snapshot) (Transition, error) {
	if err := s.seen("asked about again", c.CaseID, c.Version, c.SnapshotHash); err != nil {
		return Transition{}, err
	}
	a := s.Action
	switch {
	case a.Terms.StatusQuery == "" || a.Terms.MaxPolls == 0:
		return Transition{}, Refuse(WrongState, "The contract names no query that could be asked.").Because("no-query")
	case a.Case.Again >= MaxAskAgain:
		return Transition{}, Refuse(RateLimited, "It was asked about again often enough. Find out another way.").Because("asked-enough")
	}
	return s.step(c.Op, c.By, KindAskedAgain, ResultUnknown, custody{Holder: a.Case.Holder}, nil)
}

func (c SendAgain) op() string                  { return c.Op }
func (c SendAgain) again(Snapshot, Event) error { return nil }

func (c SendAgain) decide(s Snapshot) (Transition, error) {
	if err := s.seen("sent again", c.CaseID, c.Version, c.SnapshotHash); err != nil {
		return Transition{}, err
	}
	if err := s.free(c.By); err != nil {
		return Transition{}, err
	}
	if err := s.MaySendAgain(); err != nil {
		return Transition{}, err
	}
	t, err := s.step(c.Op, c.By, KindSendAgain, ResultUnknown, custody{Holder: s.Action.Case.Holder}, nil)
	t.Before = s.Action.resumableUntil()
	return t, err
}

// MaySendAgain says why a person may not have the one retry made now, or nil.
// That an answer is missing proves nothing, so the retry rests on the key: the
// business system surely remembers it, and nothing sent before can arrive after
// the retry and find it forgotten. Where the system itself has said that nothing
// was executed, an executor retries without anybody.
func (s Snapshot) MaySendAgain() error {
	a := s.Action
	if err := s.need("sent again", ResultUnknown); err != nil {
		return err
	}
	one, err := s.toResume()
	switch {
	case err != nil:
		return err
	case a.fresh(one.Action):
		return unsafe("next", "the next step was not sent yet, and an executor goes on with it")
	}
	if err := one.mayRetry(); err != nil {
		return err
	}
	if err := s.MayFollow(); err != nil {
		return err
	}
	switch {
	case s.AwaitedBy != "":
		return unsafe("awaited", "action "+s.AwaitedBy+", which is linked to it, waits to be approved or carried out; reject or cancel that one first").With("action", s.AwaitedBy)
	case a.pending() != nil:
		return unsafe("known", "people are settling it")
	case a.Terms.KeyLifetime <= 0:
		return unsafe("key-unknown", "the contract does not say how long the business system remembers the key")
	case one.Action.cleared():
		return unsafe("soon", "an executor is about to")
	case !one.fenced():
		until := one.Action.FencedAt().UTC().Format(time.RFC3339)
		return unsafe("fence", "what was sent before can arrive until "+until).With("until", until)
	}
	return nil
}

func (c Settle) op() string { return c.Op }

func (c Settle) again(_ Snapshot, left Event) error {
	v := readData[judged](left).Verdict
	return reused(v.Verdict == c.Verdict.Verdict && v.EvidenceKind == c.Verdict.EvidenceKind && v.EvidenceRef == c.Verdict.EvidenceRef)
}

func (c Settle) decide(s Snapshot) (Transition, error) {
	if err := s.seen("settled", c.CaseID, c.Version, c.Verdict.SnapshotHash); err != nil {
		return Transition{}, err
	}
	if err := s.free(c.By); err != nil {
		return Transition{}, err
	}
	if err := s.Action.mayFind(c.Verdict); err != nil {
		return Transition{}, err
	}
	d, to := judged{Verdict: c.Verdict}, s.settled(c.Verdict.Verdict)
	if first := s.Action.pending(); s.Action.Terms.SecondPerson {
		switch {
		case first == nil || first.Verdict != c.Verdict.Verdict:
			d.Waits, to = true, ResultUnknown
		case first.By.ID != c.By.ID:
			d.Confirms = true
		case first.EvidenceKind == c.Verdict.EvidenceKind && first.EvidenceRef == c.Verdict.EvidenceRef:
			return Transition{}, secondPerson()
		default: // the same from the same person, with better evidence
			d.Waits, to = true, ResultUnknown
		}
	}
	return s.step(c.Op, c.By, KindVerdict, to, d, textBody{Note: c.Verdict.Note})
}

func secondPerson() error {
	return Refuse(Forbidden, "You have settled this. Another person has to confirm it.").Because("second-person")
}

// settled is the state that a verdict leads to. That it did not happen counts
// once nothing can be on its way any more.
func (s Snapshot) settled(verdict string) State {
	switch {
	case verdict == Happened && s.Action.Terms.Proves != ProvesCompleted:
		return Accepted
	case verdict == Happened:
		return Applied
	case verdict == DidNotHappen && s.fenced():
		return Failed
	}
	return ResultUnknown
}

// mayFind refuses a verdict without its evidence, and one that evidence of the
// business system itself speaks against. Where that contradicts itself, or what
// was promised is not there, people weigh it.
func (a Action) mayFind(v Verdict) error {
	if err := a.rests(v); err != nil {
		return err
	}
	if a.weighed() {
		return nil
	}
	for _, one := range a.views() {
		if err := one.against(v.Verdict); err != nil {
			return err
		}
	}
	if missing, _ := a.Missing(); v.Verdict == Happened && len(missing) > 0 {
		return evidenceAgainst(DidNotHappen)
	}
	return nil
}

// Speaks returns why a verdict cannot be recorded now whatever it rests on, or
// nil.
func (s Snapshot) Speaks(verdict string) error {
	if s.Action.CaseID() == "" {
		return s.need("settled", ResultUnknown)
	}
	return s.Action.mayFind(Verdict{Verdict: verdict, EvidenceKind: EvidenceReference, EvidenceRef: "-"})
}

// Settled returns the action as it would be if a verdict stood now, for a
// preview.
func (s Snapshot) Settled(verdict string) Action {
	a := s.Action
	to := s.settled(verdict)
	if a.State != to {
		a.State, a.Since = to, s.Now
	}
	a.setCase(func(c *Case) { c.Verdict, c.Open = &Verdict{Verdict: verdict}, to == ResultUnknown })
	return a
}

// rests checks that a verdict names what it rests on.
func (a Action) rests(v Verdict) error {
	r := Refuse(InvalidArgument, "Say what became of it, and how you know.")
	switch v.Verdict {
	case Happened, DidNotHappen, Partly:
	default:
		r.At("/verdict", "must be happened, did_not_happen or partly")
	}
	switch v.EvidenceKind {
	case EvidenceReference:
		if strings.TrimSpace(v.EvidenceRef) == "" {
			r.At("/evidence_ref", "must be the business system's reference")
		}
	case EvidenceSnapshot:
		if !a.hasAnswer(v.EvidenceRef) {
			r.At("/evidence_ref", "must be the id or the hash of an answer that this action has")
		}
	case EvidenceStatement:
		if strings.TrimSpace(v.Note) == "" {
			r.At("/note", "must say what was stated")
		}
	case EvidenceFile:
		digits, marked := strings.CutPrefix(v.EvidenceRef, "sha256:")
		if raw, err := hex.DecodeString(digits); !marked || err != nil || len(raw) != 32 || digits != strings.ToLower(digits) {
			r.At("/evidence_ref", "must be sha256: and the file's 64 hex digits")
		}
	default:
		r.At("/evidence_kind", "must be provider_reference, snapshot, statement or file")
	}
	if len(r.Errors) > 0 {
		return r
	}
	return nil
}

// hasAnswer reports whether a reading or an answer by key has this id or hash, and
// is not about something else.
func (a Action) hasAnswer(ref string) bool {
	if ref == "" {
		return false
	}
	for _, o := range a.Observations {
		if !o.Other && (o.ID == ref || !o.Failed && ContentHash(o.Snapshot) == ref) {
			return true
		}
	}
	for _, q := range a.Asks {
		if !q.Found.Other && (q.Found.ID == ref || ContentHash(q.Snapshot) == ref) {
			return true
		}
	}
	return false
}

func (c Confirm) op() string { return c.Op }

func (c Confirm) again(_ Snapshot, left Event) error {
	var d judged
	var b textBody
	if err := unmarshalBoth(left, &d, &b); err != nil {
		return err
	}
	return reused(c.By.same(left) && d.Confirms == c.Agree && b.Note == c.Note)
}

func (c Confirm) decide(s Snapshot) (Transition, error) {
	if err := s.seen("confirmed", c.CaseID, c.Version, c.SnapshotHash); err != nil {
		return Transition{}, err
	}
	if err := s.free(c.By); err != nil {
		return Transition{}, err
	}
	first := s.Action.pending()
	switch {
	case first == nil:
		return Transition{}, Refuse(WrongState, "Nothing waits for a second person here.").Because("nothing-pending")
	case first.By.ID == c.By.ID:
		return Transition{}, secondPerson()
	case !c.Agree:
		return s.step(c.Op, c.By, KindRefused, ResultUnknown, judged{}, textBody{Note: c.Note})
	}
	if err := s.Action.mayFind(*first); err != nil {
		return Transition{}, err
	}
	v := *first
	v.SnapshotHash = c.SnapshotHash
	return s.step(c.Op, c.By, KindVerdict, s.settled(v.Verdict), judged{Verdict: v, Confirms: true}, textBody{Note: c.Note})
}
