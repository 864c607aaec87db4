package action

import (
	"encoding/json"
	"time"
)

// Command is something a person, a client or time asks of an action.
type Command interface {
	// decide is the rule of the command; see Decide.
	decide(s Snapshot) (Transition, error)
	// op is the caller's name of the command: repeating it changes nothing.
	op() string
	// again refuses a repetition that is not one: the event that this op left
	// was for other content, or its effect is over.
	again(s Snapshot, left Event) error
}

// Snapshot is what a command is decided on.
type Snapshot struct {
	Action Action
	Now    time.Time // the database's clock
	// Authority holds, for everybody who decided on the current revision and
	// for the person deciding now, the roles that count on this action now.
	Authority map[string][]string
	// Rests are the people and the program whom this authority, or that of who gives
	// the command, was read of, by what their events are filed under, with their
	// versions: it is written only while they stand.
	Rests map[string]int64
	// Differs names a column of the row that is not what the events say, as
	// only somebody with other access to the database can bring about.
	Differs string
	// FollowedBy is an action, linked to this one, that is carried out, has taken
	// effect or may have. "" when there is none.
	FollowedBy string
	// Original is the action that this one is linked to, as it is now: without a
	// version when it cannot be read. Nil when there is none.
	Original *Snapshot
	// AwaitedBy is an action, linked to this one whose outcome is unknown, that
	// waits to be approved or carried out. "" when there is none.
	AwaitedBy string
	// Beside is another action, linked to the same one as this, that has taken
	// effect or may have. "" when there is none.
	Beside string
}

// Content is what a program asks for.
type Content struct {
	ToolVersion   int
	Scope         string
	Target        *Target
	ObjectVersion *string
	Payload       json.RawMessage // canonical
	Reason        string
	ExpiresIn     time.Duration
	Terms         Terms
	Needs         []Need
}

// Propose starts an action. It is the one command without an earlier state:
// see Create.
type Propose struct {
	Op        string
	By        By
	ID        string
	Draft     bool
	Tool      string
	Actor     Actor
	Entry     string
	TaskID    string
	RequestID string
	Trace     string // W3C traceparent of the request; "" for none
	Links     Links
	Key       string // execution key
	Ref       string // confirmation ref, used when nobody has to approve
	Digest    string // of the request as sent: the same key must mean the same request
	Content
}

// Submit proposes a draft with what the contract says now.
type Submit struct {
	Op          string
	By          By
	ToolVersion int
	Scope       string
	Target      *Target
	Terms       Terms
	Needs       []Need
	Ref         string
}

// Revise replaces the content and voids every decision on earlier revisions.
type Revise struct {
	Op            string
	By            By
	Scope         string
	ObjectVersion *string
	Payload       json.RawMessage // canonical
	Reason        string
	ExpiresIn     time.Duration
	Needs         []Need
	SecondPerson  bool // two people settle an unknown outcome of this content
	Ref           string
}

// Vote is one person's approve or reject of exactly what they were shown.
type Vote struct {
	Op           string
	By           By
	Approve      bool
	Revision     int
	ProposalHash string
	ReasonCode   string
	Note         string
	StepUp       bool   // the person proved anew who they are
	Ref          string // confirmation ref, used by the last needed approval
}

// Count confirms a proposal whose approvals are enough by now without another
// one: somebody who had approved has their authority back.
type Count struct {
	Ref string // confirmation ref
}

// Cancel ends an action that has not run.
type Cancel struct {
	Op     string
	By     By
	Reason string
}

// Tick tells the action that time has passed: expiry, a lapsed lease, a
// deadline, a fence.
type Tick struct{ CaseID string }

// TakeClaim takes the confirmation for one executor process.
type TakeClaim struct {
	By            By
	ClaimID       string
	ProposalHash  string
	ObjectVersion *string
}

// Renew extends a live claim's lease.
type Renew struct {
	Op      string
	By      By
	ClaimID string
}

// Release gives a claim back before any attempt, or before the next step. With
// a code the action cannot run at all and fails when nothing was sent so far:
// permission refused, tool unavailable.
type Release struct {
	Op      string
	By      By
	ClaimID string
	Code    string
	Why     string // it could not be run now: what is looked at before it runs could not be told
	CaseID  string
}

// StartAttempt asks to send one wire request.
type StartAttempt struct {
	By          By
	AttemptID   string
	ClaimID     string
	Step        string
	Fingerprint string
}

// AddReceipt reports what is known of an attempt. Receipt.Outcome is what the
// contract makes of what was claimed.
type AddReceipt struct {
	By      By
	Receipt Receipt
	CaseID  string
	// UndoneBy is the action that was sent to undo this one, if any was.
	UndoneBy string
}

// AddObservation reports a read-only query. Needs is what the rules ask for
// with this reading, when it shows what people decide on.
type AddObservation struct {
	By          By
	Observation Observation
	Needs       []Need
	CaseID      string
}

// AddEvidence reports what the business system says of the operation itself.
type AddEvidence struct {
	By       By
	Found    Found
	Snapshot json.RawMessage // what was answered
	CaseID   string
	UndoneBy string // as in AddReceipt
}

// StartRetry picks up the one safe retry of an unknown outcome, of exactly what
// was approved.
type StartRetry struct {
	By            By
	ClaimID       string
	ProposalHash  string
	ObjectVersion *string
}

// TakeCase takes an open case for a while, or keeps it. Version and
// SnapshotHash are what the person saw, here and below.
type TakeCase struct {
	Op           string
	By           By
	CaseID       string
	Version      int64
	SnapshotHash string
}

// HandOver gives an open case to somebody else, or back: to nobody.
type HandOver struct {
	Op           string
	By           By
	CaseID       string
	Version      int64
	SnapshotHash string
	To           string // id of a person, or ""
	ToName       string
}

// AskAgain has the business system asked by key again, as often as the contract
// says.
type AskAgain struct {
	Op           string
	By           By
	CaseID       string
	Version      int64
	SnapshotHash string
}

// SendAgain has an executor make the one retry of an unknown outcome, under the
// same key, although the business system has not said that nothing was executed.
type SendAgain struct {
	Op           string
	By           By
	CaseID       string
	Version      int64
	SnapshotHash string
}

// Conclude closes the case of an action that was done in part, because the
// action that is linked to it has ended in Outcome. One that was not is left to
// people where an executor would have gone on with it.
type Conclude struct {
	By      By
	Linked  string // id
	How     string // see Links.To
	Outcome State
}

// Settle is a person's verdict on an unknown outcome. Verdict.SnapshotHash is
// what they saw.
type Settle struct {
	Op      string
	By      By
	CaseID  string
	Version int64
	Verdict Verdict
}

// Confirm is a second person's answer to a verdict that waits for one.
type Confirm struct {
	Op           string
	By           By
	CaseID       string
	Version      int64
	SnapshotHash string
	Agree        bool
	Note         string
}
