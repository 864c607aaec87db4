package action

import "time"

// Case is one unknown or contradictory outcome. What is stored with the event
// that opens it says what it is about; the rest follows from later events.
type Case struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"` // unknown or contradiction
	Why      string    `json:"why"`  // see the Why constants
	OpenedAt time.Time `json:"opened_at"`
	Open     bool      `json:"open"`

	// The two sides. Believed is the state before, Ground names the event that
	// led to it (Action.Done returns it), News the event that speaks against
	// it, or of which nothing is known.
	Believed State  `json:"believed,omitempty"`
	Ground   string `json:"ground,omitempty"`
	News     string `json:"news,omitempty"`
	Other    string `json:"other,omitempty"` // the action that has undone this one meanwhile

	// SendAgain says that a person wants the one retry although the business
	// system has not said that nothing was executed: the key protects it.
	SendAgain bool `json:"-"`

	Verdict  *Verdict  `json:"-"` // the one that stands
	Pending  *Verdict  `json:"-"` // waits for a second person
	Earlier  []Verdict `json:"-"` // superseded or voided, oldest first
	Holder   *Holding  `json:"-"` // who has taken it, also when the time is over
	Again    int       `json:"-"` // how often people asked for more queries
	AgainAt  time.Time `json:"-"` // when they last did
	ClosedAt time.Time `json:"-"`
	ClosedBy string    `json:"-"` // op of the event that closed it
}

// The kinds of case.
const (
	CaseUnknown       = "unknown"
	CaseContradiction = "contradiction"
)

// Why a case was opened.
const (
	WhyUnknownReceipt = "unknown-receipt"
	WhyLeaseLapsed    = "lease-lapsed"
	WhyDeadline       = "deadline"
	WhyMismatch       = "mismatch"
	WhyEarlierAttempt = "earlier-attempt-open"
	WhyContradiction  = "contradiction"
	WhyCompensation   = "compensation-failed" // it was to undo another action, and was refused
	WhyCompensated    = "compensated"         // it took effect, and another action has undone it meanwhile
	WhyGivenBack      = "given-back"          // between two steps
	WhyStep           = "step-failed"         // some steps were done, and one was not
)

// Verdict is what a person found out about an unknown outcome. It is never
// edited: another one supersedes it while the case is open.
type Verdict struct {
	Verdict      string    `json:"verdict"` // happened, did_not_happen or partly
	EvidenceKind string    `json:"evidence_kind"`
	EvidenceRef  string    `json:"evidence_ref,omitempty"`
	SnapshotHash string    `json:"snapshot_hash"` // of what the person saw; see Action.SnapshotHash
	By           By        `json:"-"`
	At           time.Time `json:"-"`
	Note         string    `json:"-"`
	Second       *Second   `json:"-"` // who confirmed or refused it
}

// Second is another person's answer to a verdict that waits for one.
type Second struct {
	Agree bool
	By    By
	At    time.Time
	Note  string
}

// What a verdict says.
const (
	Happened     = "happened"
	DidNotHappen = "did_not_happen"
	Partly       = "partly"
)

// What a verdict rests on.
const (
	EvidenceReference = "provider_reference" // the ref is the business system's own
	EvidenceSnapshot  = "snapshot"           // the ref is the id of an answer that the action has, or the hash of its content
	EvidenceStatement = "statement"          // the ref is whose it is; the note says what
	EvidenceFile      = "file"               // the ref is the file's "sha256:" and 64 hex digits
)

// Holding is a person's hold on a case: nobody else settles it meanwhile.
type Holding struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Until time.Time `json:"until"`
	Since time.Time `json:"since"`
}

// How long a case is held once it is taken, or handed to somebody who has to
// come for it first.
const (
	TakeFor     = 15 * time.Minute
	HandOverFor = 4 * time.Hour
)

// MaxAskAgain is how often people may ask for more queries about one case.
const MaxAskAgain = 10

// CaseID returns the id of the open case, or "".
func (a Action) CaseID() string {
	if a.Case != nil && a.Case.Open {
		return a.Case.ID
	}
	return ""
}

// CaseNamed returns the case of the action that has this id.
func (a Action) CaseNamed(id string) (Case, bool) {
	if a.Case != nil && a.Case.ID == id {
		return *a.Case, true
	}
	for _, c := range a.PastCases {
		if c.ID == id {
			return c, true
		}
	}
	return Case{}, false
}

// Closing says what closed a case: the kind of the event, and the linked action
// that it was the end of, if it was one.
func (a Action) Closing(c Case) (kind Kind, linked string) {
	e, ok := a.ops[c.ClosedBy]
	if !ok || c.Open {
		return "", ""
	}
	if e.Kind == KindConcluded {
		linked = readData[concluded](e).Linked
	}
	return e.Kind, linked
}

// HeldBy returns who holds the open case at a moment.
func (a Action) HeldBy(now time.Time) (Holding, bool) {
	if a.CaseID() == "" || a.Case.Holder == nil || !now.Before(a.Case.Holder.Until) {
		return Holding{}, false
	}
	return *a.Case.Holder, true
}

// verdict is what people found out about the open case so far, or "". What
// waits for a second person is not found out.
func (a Action) verdict() string {
	if a.CaseID() == "" || a.Case.Verdict == nil {
		return ""
	}
	return a.Case.Verdict.Verdict
}

// pending is the verdict that waits for a second person.
func (a Action) pending() *Verdict {
	if a.CaseID() == "" {
		return nil
	}
	return a.Case.Pending
}

// KeyUntil is how long the business system surely knows the execution key,
// counted from the first attempt of the step that is next, with a margin. False
// when nothing was sent or the contract does not say.
func (a Action) KeyUntil() (time.Time, bool) {
	if a.Unreadable != nil {
		return orNone(a.Unreadable.KeyUntil)
	}
	if a.Terms.KeyLifetime <= 0 || len(a.Attempts) == 0 {
		return time.Time{}, false
	}
	return a.resumableUntil(), true
}

// AskedSince counts the queries by key since the latest attempt, or since a
// person asked for more, and how many are made.
func (a Action) AskedSince() (n, most int) {
	if a.Terms.StatusQuery == "" {
		return 0, 0
	}
	return a.asked(), a.Terms.MaxPolls
}

// provenDone reports whether evidence shows as much as the contract lets it.
func (a Action) provenDone() bool {
	return a.Proven != ProvesNothing && a.Proven.Stronger(a.Terms.Proves) == a.Proven
}

// provenUndone reports whether evidence shows that nothing was done: every
// request was definitely refused, the key has a stored refusal, or the business
// system denied the key when nothing could be on its way any more. It looks at
// one request; see views.
func (a Action) provenUndone() bool {
	if a.Proven != ProvesNothing || len(a.Attempts) == 0 {
		return false
	}
	if a.failedBesides(Attempt{}) {
		return true
	}
	last, fence := a.Attempts[len(a.Attempts)-1].At, a.FencedAt()
	for _, q := range a.Asks {
		switch q.Found.Outcome {
		case FoundFailed:
			return true
		case FoundNotExecuted:
			if at := q.Seen(); at.After(last) && !at.Before(fence) {
				return true
			}
		}
	}
	return false
}
