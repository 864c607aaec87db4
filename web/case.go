package web

import (
	"time"
)

// CasePage is the page of one case at /triage/{case}, open or settled.
type CasePage struct {
	ID          string
	ActionID    string
	Status      Status // of the action
	Why         string // why it was opened: unknown-receipt, lease-lapsed, deadline, mismatch, earlier-attempt-open, contradiction
	OpenedAt    time.Time
	Effect      Effect // the question is whether it happened
	Measure     *Measure
	For         Text
	Title       Text // of the tool
	Tool        Text
	ToolVersion int
	Target      *Target
	System      Text // the business system; empty is "the system"
	Holder      *Holder
	Refused     *Refusal // what the person just tried and was not recorded
	Paused      []Pause  // what keeps it from running
	News        []Told   // what became known since the refused form was opened

	Sent      []Sending
	Answers   []Answer
	Asked     Asked
	Object    *Comparison // nil: nothing was read since
	RunSteps  []RunStep   // when the action takes several requests
	LateUntil time.Time   // until when a late answer is possible; zero: none was sent

	Block     *TargetBlock // nil: nothing is blocked
	Statement *Statement
	Key       KeyLife
	Support   *SupportBlock

	Contradiction *Contradiction
	Stands        *Settlement   // recorded while the case is open: waits for the fence, or was done in part
	Second        *SecondPerson // one person settled it, another has to confirm
	Settled       *Settlement   // nil while it is open
	Earlier       []Settlement  // superseded and refused ones, oldest first

	Links     []LinkedAction
	Steps     Steps
	Snapshots []Snapshot // see NewSnapshots
	Story     []Told
	Record    CaseRecord
}

// open reports whether the case can still be settled.
func (p CasePage) open() bool { return p.Settled == nil }

// Holder is who has taken the case.
type Holder struct {
	Name  Text
	Mine  bool
	Since time.Time
	Until time.Time // when the lease ends; zero when it does not
}

// Sending is one attempt.
type Sending struct {
	Number  int
	At      time.Time
	By      Text
	NotSent bool // the request never left
}

// Answer is what came back of an attempt: a receipt or a callback.
type Answer struct {
	Step       Text // whose answer it is; empty where there are no steps
	At         time.Time
	Outcome    string // SUCCESS, FAILURE or UNKNOWN, as judged
	Claimed    string // as the executor called it; "" or the same as Outcome is not said
	HTTPStatus int
	Ref        Text
	Waited     time.Duration // how long nothing came back; only with UNKNOWN and no status
}

// Comparison is the object as it is now against what was promised.
type Comparison struct {
	Source   Text
	At       time.Time
	Version  Text
	Compared int // fields that were looked at
	Differ   []Mismatch
	Same     []Normalised // fields that agree only after the form was made the same
}

// Mismatch is one field that is not as it should be if it had happened.
type Mismatch struct {
	Label    Text
	Raw      bool // the label is the object's own name, not a word
	Expected Value
	Observed Value
	Before   *Value   // before the first attempt; nil when nobody read it
	Forms    []string // what was made the same first: zone, decimals, exponent, absent
}

// Normalised is a field whose values agree although they are written apart.
type Normalised struct {
	Label Text
	Forms []string // zone, decimals, exponent, absent
}

// TargetBlock is what an open case keeps from running.
type TargetBlock struct {
	Scope string // target, tool (only this tool on the target) or none
}

// SupportBlock is what the provider's support needs to find the operation.
type SupportBlock struct {
	Key     string
	Target  *Target
	Measure *Measure
	Ref     Text      // the provider's own reference; empty when none is known
	From    time.Time // when it can have arrived
	To      time.Time
	Zone    *time.Location // where the provider works; nil when the contract does not say
}

// Contradiction is two things that cannot both be true.
type Contradiction struct {
	Recorded Side
	Later    Side
	Undone   *LinkedAction // the action that has undone it meanwhile, where that is why
}

// Side is one of them.
type Side struct {
	Status  Status // what was recorded; State "" when Outcome says it
	Outcome string // SUCCESS or FAILURE: what the later evidence says of the operation
	Source  Text   // who says so: "PayHub, by key", "Jonas Weber"
	At      time.Time
	Ref     Text
	Proves  string // accepted, queued, completed
	Note    Text
}

// Settlement is a verdict that a person gave.
type Settlement struct {
	Verdict string // happened, did_not_happen or partly; "" when it was found out
	By      Text
	Role    string // then
	At      time.Time
	Kind    string // see EvidenceKinds
	Ref     Text
	Note    Text
	Second  Seconder      // who agreed to it or did not; without a name when one was enough
	Found   string        // how it was found out, also after a verdict that did not close it; see the Found words
	FoundAt time.Time     // when
	Linked  *LinkedAction // FoundLinked: the action that took effect, where the viewer may see it
	Waits   time.Time     // recorded, but state and block stay until then; zero when they do not
}

// Seconder is the other person whose word a verdict waited for.
type Seconder struct {
	By      Text
	Role    string // then
	At      time.Time
	Note    Text
	Refused bool // they did not agree
}

// How an outcome was found out, when no person's verdict closed its case.
const (
	FoundAsked    = "asked"    // by asking by key
	FoundTold     = "told"     // the business system told, without being asked by key
	FoundAnswered = "answered" // an answer came late
	FoundRead     = "read"     // by reading back
	FoundLinked   = "linked"   // an action that is linked to it has taken effect
)

// SecondPerson is a settlement that another person has to confirm. Its form
// posts to /triage/{case}/settlements: second (confirm or refuse) and note, and
// what every form of the page posts.
type SecondPerson struct {
	First   Settlement
	Outcome VerdictOutcome // what confirming will change
	May     bool           // the viewer can be the second person
	Mine    bool           // the viewer was the first
	Can     []Text         // who can; when the viewer cannot
	Op      string
	Note    Own
}

// EvidenceKinds lists what a verdict can rest on, in the order of the form.
// evidence_ref is the provider's reference, the hash of a snapshot, whose
// statement the note tells, or the file's sha256: and 64 hex digits.
func EvidenceKinds() []string {
	return []string{"provider_reference", "snapshot", "statement", "file"}
}

// Verdicts lists what a person can find, in the order of the form.
func Verdicts() []string { return []string{"happened", "did_not_happen", "partly"} }

// Steps is what can be done, by rising danger. Nil is not offered at all. Every
// form posts op, and version and snapshot_hash of the page's Record.
type Steps struct {
	Take     *Step     // POST /triage/{case}/take
	HandOver *HandOver // nil unless the viewer has it
	Ask      *Step     // POST /triage/{case}/ask
	Again    *Step     // sending again, same key: POST /triage/{case}/retry, and an executor does it
	Resume   *Reversal // nil unless it is known what is left to do
	Reverse  *Reversal
	Settle   *SettleForm // nil when the viewer may not: see WhyNot
	WhyNot   string      // why there is no Settle: role, held (by the Holder) or running
}

// Step is something to do, or why it cannot be done now.
type Step struct {
	Op     string
	WhyNot string // "" when it can be done: role, held, next, no-query, asked-enough, key-gone, used, key-unknown, contract, fence (see LateUntil), known, linked, awaited, soon, wanted, budget, running
}

// HandOver posts to /triage/{case}/hand-over: person (an id, "" for nobody).
type HandOver struct {
	Op     string
	People []Option // who may have it
}

// Reversal proposes a linked action, which takes it back or does the rest; it runs only after its own approval.
type Reversal struct {
	Curl   Text   // a request that proposes it; empty when WhyNot says why
	WhyNot string // no-tool: no contract can reverse it; no-before: nobody read what stood before; no-version: nor which version it has; masked: the contract hides what it would hold
	Linked []LinkedAction
}

// LinkedAction is another action that has to do with this one.
type LinkedAction struct {
	ID     string
	How    string // compensates, resumes or replaces; with _by when it is the other one that does, with _beside or _done when it is to do so, or did, with the same as this one
	Holds  bool   // nobody has it sent again while the action of the page waits
	Effect Effect
	Status Status
}

// SettleForm posts to /triage/{case}/settlements: verdict, evidence_kind,
// evidence_ref or evidence_reading, and note, and what every form of the page
// posts. Nothing is chosen for the person; a reading that they choose is evidence of
// the kind snapshot, without a kind and a reference.
type SettleForm struct {
	Op        string
	Outcomes  []VerdictOutcome // one per verdict
	TwoPeople bool             // the contract wants a second person

	Verdict string // kept after a refusal
	Kind    string // kept after a refusal
	Ref     Own
	Reading string // the hash of the reading that was chosen; kept after a refusal
	Note    Own
}

// VerdictOutcome is what a verdict would change.
type VerdictOutcome struct {
	Verdict   string
	Status    Status
	Statement Statement
	Block     string    // lifted, until (see Until), linked (until the linked action settles), none (there is none)
	Until     time.Time // state, sentence and block wait until then
	Refused   *Refusal  // authoritative evidence speaks against it: it cannot be chosen
}

// CaseRecord is what stands at the bottom for those who check.
type CaseRecord struct {
	RequestID    string // of the request that proposed the action
	SnapshotHash string // of everything that the page is drawn from
	Version      int64
	ExecutionKey string
	PayloadHash  string
}
