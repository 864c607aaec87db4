package web

import (
	"context"
	"time"
)

// ActionPage is the page of one action, in every state.
type ActionPage struct {
	ID          string
	Calls       []Call // in the order in which the console learnt of them
	Status      Status
	ExpiresAt   time.Time // zero in drafts and once it is over
	At          time.Time // when the state was reached
	Effect      Effect
	Measure     *Measure
	StreamURL   string // held while the page is open; says what became of the decision that it tells of; "" for none
	Title       Text   // of the tool
	Tool        Text
	ToolVersion int
	Target      *Target
	Warnings    []Warning
	Refused     *Refusal // what the person just tried and was not recorded
	Paused      []Pause  // what keeps it from running
	Wait        *Wait    // why it was taken and could not be run; nil when it was not
	Fields      FieldTable
	RunSteps    []RunStep // when it takes several requests
	Who         Who
	Why         Why
	Checks      Checks
	Success     Success
	Bar         Bar
	Statement   *Statement // once something can be said to the customer
	Proof       *Proof     // once it ran
	Links       []LinkedAction
	Answer      *Snapshot  // what the business system said to the request that succeeded
	Snapshots   []Snapshot // everything that was read
	Story       []Told
	Record      Record
}

// Who is for whom and by which program an action was proposed.
type Who struct {
	For       Text
	AskedBy   Text
	Reason    Text // as the program wrote it
	Decisions []Decision
	Task      *PartOfTask // nil when it belongs to none
	Unasked   Unasked     // why nobody was asked, "" when somebody had to be
}

// Unasked is why an action needed nobody's approval.
type Unasked string

// Why nobody was asked.
const (
	UnaskedClaim Unasked = "claim" // the tool says of itself that it only reads
	UnaskedReads Unasked = "reads" // its contract says so
	UnaskedRules Unasked = "rules" // the contract's rules ask nobody
)

// Decision is one person's yes or no as the page tells it.
type Decision struct {
	By         Text
	Approve    bool
	Role       string // then
	Method     string // password, passkey, link
	ReasonCode string
	Note       Text
	At         time.Time
	Void       bool // on an earlier revision
	Lost       bool // an approval that does not count, because its giver may not decide any more, or could not when it was confirmed
}

// Why explains who decides and what the viewer counts as.
type Why struct {
	Rules    []Rule // those that apply
	Required int
	Given    int
	You      Standing
	Roles    []string // the viewer's
	Can      []Text   // who else can approve
}

// Standing is what the viewer counts as for one action.
type Standing string

// The standings.
const (
	StandEnough      Standing = "enough"       // your approval is enough
	StandCounts      Standing = "counts"       // yours counts, more are needed
	StandApproved    Standing = "approved"     // you approved it
	StandWrongRole   Standing = "wrong_role"   // none of your roles is asked for
	StandOwner       Standing = "owner"        // you own the program that asked
	StandActor       Standing = "actor"        // it is for you or your own account
	StandTooLate     Standing = "too_late"     // decided, expired or cancelled
	StandNotAnything Standing = "not_approver" // you have no approving role
)

// able reports whether the viewer may decide.
func (s Standing) able() bool { return s == StandEnough || s == StandCounts }

// Checks is what was looked at, so that people need not.
type Checks struct {
	PayloadHash     string
	ProposalHash    string
	Permission      Permission
	VersionProposed Text // empty: not stated
	VersionSeen     Text // empty: not read
	Recent          int  // other actions on the same target in 30 days; -1 unknown
	RecentLast      Text // effect of the latest of them
	RecentLastAt    time.Time
	Rejections      []Rejection // of the same content
}

// Permission is whether the actor may do this in the business system.
type Permission struct {
	Checked bool // the contract names a check and it was made
	Named   bool // the contract names a check
	Allowed bool
	Actor   Text
	Source  Text
	At      time.Time
}

// Rejection is an earlier no to the same content.
type Rejection struct {
	ActionID   string
	By         Text
	At         time.Time
	ReasonCode string
}

// Success says what a success would prove, and what not.
type Success struct {
	Proves  string // accepted, queued or completed
	System  Text
	Checks  []Text // post-conditions that are read back
	Meaning Text   // what a success means in the system's own terms, as the contract says it
}

// BarKind says what the bar under the fields offers.
type BarKind string

// The bars.
const (
	BarNone     BarKind = ""
	BarDecide   BarKind = "decide"
	BarCannot   BarKind = "cannot"   // the viewer may not, others can
	BarNobody   BarKind = "nobody"   // nobody can
	BarApproved BarKind = "approved" // the viewer did, others must
	BarExpired  BarKind = "expired"
	BarBlocked  BarKind = "blocked" // an open case holds the target
	BarStepUp   BarKind = "step_up"
)

// Bar is the place where people decide, or learn why they cannot.
type Bar struct {
	Kind    BarKind
	Form    *DecideForm // BarDecide; BarBlocked and BarStepUp, where it only rejects, for who may
	CaseID  string      // BarBlocked
	CaseURL string      // BarBlocked; "" when there is no page for it
	At      time.Time   // BarExpired, BarApproved
	StepUp  string      // BarStepUp: where to prove who you are
}

// DecideForm posts to /actions/{id}/decisions: decision (approve or reject),
// proposal_hash, revision, op, shown, reason_code, reason.
type DecideForm struct {
	ProposalHash string
	Revision     int
	Op           string    // makes a repeated post the same decision
	Note         Own       // kept after a refusal
	ReasonCode   string    // kept after a refusal
	FullURL      string    // set when not all is shown: there is no Approve then
	Shown        time.Time // when it was served right after another decision, so that Approve waits a moment; else zero
}

// ReasonCodes lists why people reject, in the order of the form.
func ReasonCodes() []string {
	return []string{"wrong_target", "wrong_amount", "not_allowed", "duplicate", "not_needed", "need_information", "suspicious"}
}

// reasonWords is a reason code in words; an unknown one stands as written.
func reasonWords(code string) any {
	if key := "reason." + code; known(key) {
		return msg(key)
	}
	return Outside(code)
}

// Statement is what may and may not be said to the customer.
type Statement struct {
	Level   string // not_submitted, accepted, queued, completed, partial, failed, unknown
	Waiting bool   // people still have to decide
	Later   bool   // the contract names a mechanism that will tell more
	AsOf    time.Time
}

// MaySay returns the sentences that may be said, in one language.
func (s Statement) MaySay(l Lang) []string {
	ctx := WithLocale(context.Background(), Locale{Lang: l})
	level := s.Level
	if level == "not_submitted" && s.Waiting {
		level = "waiting"
	}
	out := []string{T(ctx, "statement.say."+level)}
	if s.Later {
		out = append(out, T(ctx, "statement.say.later"))
	}
	return out
}

// MustNotSay returns the words that must not be said, in one language.
func (s Statement) MustNotSay(l Lang) []string {
	ctx := WithLocale(context.Background(), Locale{Lang: l})
	var out []string
	for _, word := range map[string][]string{
		"not_submitted": {"submitted", "done"},
		"accepted":      {"done"},
		"queued":        {"done"},
		"partial":       {"done"},
		"failed":        {"done", "never_submitted"},
		"unknown":       {"done", "failed"},
	}[s.Level] {
		out = append(out, T(ctx, "statement.not."+word))
	}
	return out
}

// Proof is what the execution proved.
type Proof struct {
	Receipts   []Receipt
	ReadBack   []ReadBack
	Executions int // wire requests that may have reached the system
	Attempts   int
	NotProven  bool // read-back was promised and is missing
	OpenCase   string
	CaseURL    string
	Retried    bool
	FailedCode string
}

// Receipt is one answer that an executor reported.
type Receipt struct {
	Step       Text   // whose answer it is; empty where there are no steps
	Outcome    string // SUCCESS, FAILURE or UNKNOWN
	Proves     string
	HTTPStatus int
	Ref        Text
	At         time.Time
}

// ReadBack is one post-condition that was looked at.
type ReadBack struct {
	Field Text
	Value Value
	Holds string // yes, no or unknown
	At    time.Time
}

// Record is what stands below the decision, for those who check.
type Record struct {
	ProposalHash string // "" in drafts
	PayloadHash  string
	Revision     int
	Version      int64
	ExecutionKey string
	ClientID     string
	RequestID    string
	Confirmation string
	Payload      Payload
	RuleSource   Text
	Curl         Text
}

// StalePage says that a decision was not recorded because the content had
// changed: what was seen beside what is there now.
type StalePage struct {
	ActionID  string
	Status    Status
	ExpiresAt time.Time
	Title     Text
	Tool      Text
	Version   int
	Target    *Target
	Fields    FieldTable // TableStale
	Approve   bool
	SentAt    time.Time
	Note      Own
	SawRev    int
	NowRev    int
	RevisedBy Text
	RevisedAt time.Time
	Rules     []Rule
}

// first returns the first field that changed, for the heading.
func (p StalePage) first() (Field, int) {
	for _, f := range p.Fields.Fields {
		if f.Group == Changed {
			return f, p.Fields.Count(Changed) - 1
		}
	}
	return Field{}, 0
}
