package action

import (
	"encoding/json"
	"time"
)

// Actor is on whose behalf an action happens: a user of the business system.
type Actor struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Target is the one object that an action touches.
type Target struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// By is who caused an event, as they were then.
type By struct {
	Kind   string `json:"kind"` // person, client or system
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Role   string `json:"role,omitempty"`   // the role a person decided in
	Method string `json:"method,omitempty"` // how a person had signed in
}

// The kinds of By.
const (
	ByPerson = "person"
	ByClient = "client"
	BySystem = "system"
)

// Need is how many people of one role must approve.
type Need struct {
	Role      string `json:"role"`
	Approvals int    `json:"approvals"`
	StepUp    bool   `json:"step_up,omitempty"`
}

// Terms are the parts of the pinned contract version that the life of an
// action depends on. They are stored with the proposal, so that its history
// can be judged without the contract.
type Terms struct {
	Write           bool          `json:"write"`
	ConfirmationTTL time.Duration `json:"confirmation_ttl"`
	Lease           time.Duration `json:"lease"`
	SendWithin      time.Duration `json:"send_within"`
	Proves          Proof         `json:"proves"`
	RetrySameKey    bool          `json:"retry_same_key,omitempty"`
	KeyLifetime     time.Duration `json:"key_lifetime,omitempty"`
	FenceAfter      time.Duration `json:"fence_after,omitempty"`
	Deadline        time.Duration `json:"deadline,omitempty"`
	Before          string        `json:"before,omitempty"` // tool read before people decide
	Verify          bool          `json:"verify,omitempty"` // post-conditions are read back
	VerifyTries     int           `json:"verify_tries,omitempty"`
	VerifyWindow    time.Duration `json:"verify_window,omitempty"`
	Block           string        `json:"block"` // target, tool or none: what an open case holds up
	SecondPerson    bool          `json:"second_person,omitempty"`
	StatusQuery     string        `json:"status_query,omitempty"` // tool that asks by key
	MaxPolls        int           `json:"max_polls,omitempty"`    // how often it is asked
	AfterDone       bool          `json:"after_done,omitempty"`   // it resumes, by another tool, an action that was done already
	Steps           []StepTerms   `json:"steps,omitempty"`        // in their order; none: one request without a name
}

// What an open case of an action holds up.
const (
	BlockTarget = "target"
	BlockTool   = "tool"
	BlockNone   = "none"
)

// Links names other actions that this one belongs to.
type Links struct {
	Compensates string `json:"compensates,omitempty"`
	Resumes     string `json:"resumes,omitempty"`
	Replaces    string `json:"replaces,omitempty"`
}

// Decision is one person's yes or no to one revision.
type Decision struct {
	By           By        `json:"-"`
	Approve      bool      `json:"approve"`
	Revision     int       `json:"revision"`
	ProposalHash string    `json:"proposal_hash"`
	ReasonCode   string    `json:"reason_code,omitempty"`
	Note         string    `json:"-"`
	StepUp       bool      `json:"step_up,omitempty"`
	At           time.Time `json:"-"`
}

// Claim is an executor's hold on a confirmation.
type Claim struct {
	ID         string    `json:"id"`
	Client     string    `json:"client"`
	ClientName string    `json:"client_name,omitempty"`
	TakenAt    time.Time `json:"taken_at"`
	LeaseUntil time.Time `json:"lease_until"`
	Over       bool      `json:"over,omitempty"` // released, lapsed or finished
}

// Attempt is one wire request, recorded before it is sent.
type Attempt struct {
	ID          string    `json:"id"`
	Number      int       `json:"number"` // of the attempts of its step, from 1
	ClaimID     string    `json:"claim_id"`
	Step        string    `json:"step,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	At          time.Time `json:"at"`
	SendBy      time.Time `json:"send_by"`
	Outcome     Outcome   `json:"outcome,omitempty"` // "" until a receipt came
	NotSent     bool      `json:"not_sent,omitempty"`
}

// Definite reports whether the attempt's outcome is known.
func (a Attempt) Definite() bool { return a.Outcome == Success || a.Outcome == Failure }

// NotSent is the code of a FAILURE receipt for an attempt that never left.
const NotSent = "NOT_SENT"

// PreconditionFailed is the failure code of an action whose preconditions did
// not hold when it was about to run.
const PreconditionFailed = "PRECONDITION_FAILED"

// Receipt is what somebody reported of an attempt, and what it was judged to be.
type Receipt struct {
	ID                 string          `json:"id"`
	AttemptID          string          `json:"attempt_id"`
	Claimed            Outcome         `json:"claimed"` // as reported, and so are the next two
	ClaimedProves      Proof           `json:"claimed_proves,omitempty"`
	ClaimedCode        string          `json:"claimed_code,omitempty"`
	Outcome            Outcome         `json:"outcome"` // as judged by the contract
	Proves             Proof           `json:"proves,omitempty"`
	Code               string          `json:"code,omitempty"`
	HTTPStatus         int             `json:"http_status,omitempty"`
	Conflict           bool            `json:"conflict,omitempty"`
	ProviderRef        string          `json:"provider_ref,omitempty"`
	ObjectVersionAfter string          `json:"object_version_after,omitempty"`
	Wire               Wire            `json:"wire,omitzero"`
	By                 By              `json:"-"`
	At                 time.Time       `json:"-"`
	Body               json.RawMessage `json:"-"`
}

// Observation is the record of one read-only query.
type Observation struct {
	ID         string          `json:"id"`
	Tool       string          `json:"tool"`
	Step       string          `json:"step,omitempty"`    // whose own post-conditions it is about
	Version    string          `json:"version,omitempty"` // of the object, when the snapshot shows it
	Failed     bool            `json:"failed,omitempty"`
	Absent     bool            `json:"absent,omitempty"` // it failed because the object is definitely not there
	Other      bool            `json:"other,omitempty"`  // it failed because its snapshot is about another object: kept, and proves nothing
	Holds      Holds           `json:"holds,omitempty"`
	Final      bool            `json:"final,omitempty"` // a read-back of an object that changes no more
	Revision   int             `json:"revision"`
	ObservedAt time.Time       `json:"observed_at"`
	Wire       Wire            `json:"wire,omitzero"`
	By         By              `json:"-"`
	At         time.Time       `json:"-"`
	Snapshot   json.RawMessage `json:"-"`
	Error      string          `json:"-"`
}

// Seen is when it was observed, and at the latest when it arrived.
func (o Observation) Seen() time.Time { return seen(o.ObservedAt, o.At) }

// Seen is when it was observed, and at the latest when it arrived.
func (q Ask) Seen() time.Time { return seen(q.Found.ObservedAt, q.At) }

// Stall is that an approved action was taken and given back, because something
// that is looked at before it runs could not be told.
type Stall struct {
	Times int    // in a row: given back for another reason, or left to lapse, it begins anew
	Why   string // as the executor said the last time; "" when it did not
}

// Ask is one query about the operation itself, by its key, and its answer.
type Ask struct {
	Found    Found
	By       By
	At       time.Time
	Snapshot json.RawMessage
}

// Action is one logical thing to do, with everything known about it.
type Action struct {
	ID             string
	State          State
	Version        int64 // one more with every event
	Revision       int   // one more with every edit of the content
	Tool           string
	ToolVersion    int
	Client         By // the proposer
	Entry          string
	Scope          string
	TaskID         string
	RequestID      string
	Trace          string // W3C traceparent of the request that proposed it; "" for none
	Digest         string // of the request that proposed it
	Links          Links
	Actor          Actor
	Target         *Target
	ObjectVersion  *string
	Payload        json.RawMessage // canonical bytes (RFC 8785)
	PayloadHash    string
	ProposalHash   string
	ExecutionKey   string
	ContentVersion int64 // version of the event that set the payload
	Reason         string
	ExpiresIn      time.Duration // asked for, whole seconds
	ExpiresAt      *time.Time    // nil in drafts
	CreatedAt      time.Time
	ProposedAt     time.Time // when people were first shown the content that it has; zero in drafts
	UpdatedAt      time.Time
	Since          time.Time // when it came to its state
	Terms          Terms
	Needs          []Need
	Wanted         []Need // by a reading right before the run, when that is more than was approved
	Decisions      []Decision
	Confirmation   *Confirmation
	Claim          *Claim
	Attempts       []Attempt
	Receipts       []Receipt
	Observations   []Observation
	Asks           []Ask
	Proven         Proof
	ProvenAt       time.Time // when more was proven than before
	Case           *Case     // the latest, open or closed
	CaseMovedAt    time.Time // when the open case came to wait for what it waits for
	PastCases      []Case    // closed before it was opened, oldest first
	Steps          []Step    // what is known of each step; nil without steps
	Resumed        int       // how often an executor went on after an unknown outcome
	Stall          Stall     // why an approved action could not be run yet
	Concluded      string    // the linked action that an outcome in part was closed with
	FailureCode    string    // why a failed action failed
	sinceOp        string    // of the event that led to its state
	Unreadable     *Remains  // set only in lists, of an action whose events cannot be folded
	tooLate        bool      // to go on with what was never sent
	facts
	ops map[string]Event
}

// Remains is what lists go by where an action's events cannot be folded, because
// they are damaged or of a newer version: the rest of its row. All that such an
// action holds otherwise is of its row too; no command is ever decided on one.
type Remains struct {
	DueAt    *time.Time // when time alone changes it
	KeyUntil *time.Time
	Links    []string // ids of the actions that it compensates, resumes or replaces
}

// Binding returns the fields that an approval is bound to.
func (a Action) Binding() Binding {
	b := Binding{ActionID: a.ID, Revision: a.Revision, Tool: a.Tool, ToolVersion: a.ToolVersion,
		Actor: a.Actor.ID, ObjectVersion: a.ObjectVersion, PayloadHash: a.PayloadHash,
		ExecutionKey: a.ExecutionKey, ExpiresAt: a.ExpiresAt}
	if a.Target != nil {
		b.TargetType, b.TargetID = &a.Target.Type, &a.Target.ID
	}
	return b
}

// OpenAttempt returns the latest attempt without a definite outcome.
func (a Action) OpenAttempt() (Attempt, bool) {
	for i := len(a.Attempts) - 1; i >= 0; i-- {
		if !a.Attempts[i].Definite() {
			return a.Attempts[i], true
		}
	}
	return Attempt{}, false
}

// Executions counts the wire requests that may have reached the business
// system: attempts that were not reported as never sent.
func (a Action) Executions() int {
	n := 0
	for _, t := range a.Attempts {
		if !t.NotSent {
			n++
		}
	}
	return n
}

// FencedAt is the moment from which no attempt can take effect any more, as
// the contract promises. An attempt that was definitely refused cannot anyway,
// unless its answers contradict each other.
func (a Action) FencedAt() time.Time {
	if at, late := a.LateUntil(); late {
		return at
	}
	return a.UpdatedAt
}

// LateUntil is FencedAt where something that was sent may take effect late. False
// when nothing may: nothing left, or everything was definitely answered.
func (a Action) LateUntil() (at time.Time, late bool) {
	for _, t := range a.Attempts {
		over := t.Outcome == Failure || len(a.Steps) > 0 && (t.Outcome == Success || a.of(t.Step).said(FoundFailed))
		if !t.NotSent && (!over || a.Case != nil && a.Case.Kind == CaseContradiction) {
			at, late = t.SendBy.Add(a.Terms.FenceAfter), true
		}
	}
	return at, late
}

// Before returns the successful reading of the object that was observed last
// before anything was sent: what people decide this revision on. An older one
// that arrives later does not displace it.
func (a Action) Before() (latest Observation, found bool) {
	for _, o := range a.Observations {
		sent := len(a.Attempts) > 0 && !o.At.Before(a.Attempts[0].At)
		if o.Tool == a.Terms.Before && o.Tool != "" && !o.Failed && o.Revision == a.Revision && !sent && !o.Seen().Before(latest.Seen()) {
			latest, found = o, true
		}
	}
	return latest, found
}

// Done returns the event that a command with this op left, if it was run.
func (a Action) Done(op string) (Event, bool) {
	e, ok := a.ops[op]
	return e, ok
}

// StateAt is the state as of a moment: an action whose time is over is expired
// before the event that says so is written.
func (a Action) StateAt(now time.Time) State {
	if due, ok := a.DueAt(); ok && a.State.In(Proposed, Confirmed) && !now.Before(due) {
		return Expired
	}
	return a.State
}

// DueAt is the next moment at which time alone changes the action.
func (a Action) DueAt() (time.Time, bool) {
	if a.Unreadable != nil {
		return orNone(a.Unreadable.DueAt)
	}
	switch a.State {
	case Proposed:
		return *a.ExpiresAt, true
	case Confirmed:
		return a.Confirmation.ExpiresAt, true
	case Executing:
		return a.runsUntil(), true
	case Accepted:
		return later(a.Since, a.ProvenAt).Add(a.deadline()), a.awaitsCompletion()
	case ResultUnknown:
		if a.verdict() == DidNotHappen {
			return a.FencedAt(), true
		}
		return a.resumableUntil(), a.awaitsRetry() && a.Terms.KeyLifetime > 0
	}
	return time.Time{}, false
}

func orNone(at *time.Time) (time.Time, bool) {
	if at == nil {
		return time.Time{}, false
	}
	return *at, true
}

// runsUntil is when an executing action stops waiting: its lease ends, or its
// deadline since the live claim's attempt, whichever is first.
func (a Action) runsUntil() time.Time {
	until := a.Claim.LeaseUntil
	if n := len(a.Attempts); n > 0 && a.Attempts[n-1].ClaimID == a.Claim.ID {
		if end := a.Attempts[n-1].At.Add(a.deadline()); end.Before(until) {
			return end
		}
	}
	return until
}

// awaitsCompletion reports whether an accepted action can still prove more.
func (a Action) awaitsCompletion() bool {
	return a.Terms.Proves == ProvesCompleted
}

func (a Action) deadline() time.Duration {
	if a.Terms.Deadline <= 0 {
		return DefaultDeadline
	}
	return a.Terms.Deadline
}

// DefaultDeadline is how long an action may stay without proof after it was
// sent, or after it was accepted, when its contract does not say.
const DefaultDeadline = 15 * time.Minute
