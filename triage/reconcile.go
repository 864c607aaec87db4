package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/people"
)

// RunState is how far a reconciliation is.
type RunState string

// The states of a run. Only one that is done says anything about what it was to
// compare.
const (
	RunWaiting   RunState = "waiting"   // for an executor
	RunListing   RunState = "listing"   // page by page
	RunJoining   RunState = "joining"   // our records to theirs
	RunComparing RunState = "comparing" // each with its counterpart
	RunDone      RunState = "done"
	RunGivenUp   RunState = "given_up" // nothing was compared, or not everything
)

// Open reports whether a run goes on.
func (s RunState) Open() bool { return s != RunDone && s != RunGivenUp }

// NoRun refuses what names a run that is not there, or not for who asks.
func NoRun() *action.Refusal {
	return action.Refuse(action.NotFound, "There is no such reconciliation, or you may not see it.").Because("reconciliation")
}

// Listing reports whether a run needs an executor to go on.
func (s RunState) Listing() bool { return s == RunWaiting || s == RunListing }

// Class is what became of one operation when both sides were compared.
type Class string

// The classes. Awaiting is no exception: one side may just lag behind.
const (
	ClassMatched    Class = "matched"
	ClassAwaiting   Class = "awaiting"
	ClassMismatch   Class = "mismatch"
	ClassOursOnly   Class = "ours_only"
	ClassTheirsOnly Class = "theirs_only"
	ClassOthers     Class = "others" // not of this tool, or of a version whose operations are not listed
)

// Totals counts a run's operations by class, and those that are the same though
// written apart, by how.
type Totals struct {
	Matched    int64               `json:"matched"`
	Awaiting   int64               `json:"awaiting"`
	Mismatch   int64               `json:"mismatch"`
	OursOnly   int64               `json:"ours_only"`
	TheirsOnly int64               `json:"theirs_only"`
	Others     int64               `json:"others"`
	Forms      map[rule.Form]int64 `json:"forms,omitempty"`
}

// Exceptions counts what somebody or something has to account for.
func (t Totals) Exceptions() int64 { return t.Mismatch + t.OursOnly + t.TheirsOnly }

// Run is one reconciliation: a tool's operations of a window, as the business
// system lists them, held against ours.
type Run struct {
	ID          string
	Op          string // what asked for it; unique
	Version     int64
	Tool        string
	ToolVersion int
	From, To    time.Time // To is not in it
	Sweep       bool      // nobody asked for it
	By          action.By
	State       RunState
	Cursor      string // of the page that comes next
	Pages       int64
	Listed      int64
	Tries       int    // in a row that failed
	Problem     string // why the last try failed, or why it was given up
	AskedAt     time.Time
	StartedAt   *time.Time // its first page was recorded
	ProgressAt  time.Time
	OfferAt     time.Time // from when an executor may take it up
	EndedAt     *time.Time
	JoinedAt    time.Time // our records are joined up to here: the time and action of an attempt
	JoinedID    string
	Compared    string // the key up to which both sides were compared
	Totals      Totals
}

// Explanation is what a person found out about a difference.
type Explanation struct {
	By    action.By `json:"by"`
	At    time.Time `json:"at"`
	Note  string    `json:"note"`
	RunID string    `json:"run_id"` // of the run in which it was said
}

// FieldCompared is one field of both sides. Values are as they stand there; nil
// is one that is not there.
type FieldCompared struct {
	Field  string          `json:"field"` // JSON Pointer into the payload, or "currency"
	Ours   json.RawMessage `json:"ours,omitempty"`
	Theirs json.RawMessage `json:"theirs,omitempty"`
	Same   bool            `json:"same,omitempty"`
	Forms  []rule.Form     `json:"forms,omitempty"` // how the two are written apart
}

// Difference is one operation of a run that is not simply matched.
type Difference struct {
	RunID       string
	Tool        string
	ToolVersion int // whose contract weighed it: the action's, or the run's when there is no action
	Key         string
	Class       Class
	Why         string // see the Differs constants
	Untold      string // why its action could not be told, for a person; "" when it was, or there was nothing to tell
	Digest      string // the same difference again has the same
	Scope       string // of our action
	ActionID    string // "" when there is none
	CaseID      string // the case that it opened, or that weighed it before; "" for none
	CaseOpen    bool   // as of now
	Ours        action.State
	Theirs      *contract.Listed
	Fields      []FieldCompared
	Explained   *Explanation
}

// How two sides differ.
const (
	DiffersOutcome  = "outcome"   // what became of it
	DiffersFields   = "fields"    // what was done
	DiffersTwice    = "twice"     // the business system lists the key twice, with different content
	DiffersMissing  = "missing"   // the business system does not know it
	DiffersUnknown  = "unknown"   // nothing here knows the key
	DiffersUnsent   = "unsent"    // nothing was ever sent under the key
	DiffersUnclear  = "unclear"   // its outcome cannot be read
	DiffersNotFinal = "not_final" // one side has no outcome yet
	DiffersYoung    = "young"     // too short a while ago
	DiffersUntold   = "untold"    // the business system knows more, and the action does not take it
)

// Reconciler compares what is recorded here with what business systems list.
type Reconciler struct {
	ledger    Ledger
	runs      RunStore
	staging   StagingStore
	catalogue *rule.Catalogue
}

// RunStore keeps runs and their differences.
type RunStore interface {
	// Person returns a person as they are now; NotFound when there is none.
	Person(ctx context.Context, id string) (people.Person, error)
	// AddRun adds a run that is asked for, and returns it; the same op again
	// returns the run that it made.
	AddRun(ctx context.Context, r Run) (Run, error)
	// Run returns a run and the database's clock; NotFound when there is none.
	Run(ctx context.Context, id string) (Run, time.Time, error)
	// OpenRuns returns the runs that go on, oldest first, after one.
	OpenRuns(ctx context.Context, after Run, limit int) ([]Run, time.Time, error)
	// SaveRun moves a run on by one version, with what was found on the way, or
	// the page that was reported and does not count. False when somebody else has
	// moved it.
	SaveRun(ctx context.Context, r Run, found []Difference, page StoredPage) (bool, error)
	// Explain records what a person says of a difference. It returns what
	// stands afterwards, which somebody else may have said; NotFound when there
	// is no such difference.
	Explain(ctx context.Context, d Difference, e Explanation) (Explanation, error)
}

// StagingStore lays both sides of a run side by side, and knows what is due.
type StagingStore interface {
	// Page returns the hash of a page that a run has, or "".
	Page(ctx context.Context, runID, pageID string) (string, error)
	// AddPage adds a page that continues at the run's cursor. False when the run
	// does not wait for that page.
	AddPage(ctx context.Context, p StoredPage) (bool, error)
	// JoinOurs joins some more of our records to a run that is joining.
	JoinOurs(ctx context.Context, r Run, limit int) error
	// Joined returns the operations of a run after the last compared, by key.
	Joined(ctx context.Context, r Run, limit int) ([]Joined, error)
	// Tools lists the newest version of every tool by name, after a name.
	Tools(ctx context.Context, after string, limit int) ([]rule.ToolVersion, error)
	// Sweeps returns the latest sweep of a tool, the one that is done and reaches
	// furthest, and the one that looked back furthest; zero where there is none.
	Sweeps(ctx context.Context, tool string) (latest, done, first Run, err error)
}

// StoredPage is a page as it is laid out for the comparison.
type StoredPage struct {
	RunID, PageID string
	Hash          string
	Cursor, Next  string // Next is "" on the last page
	By            action.By
	Items         []contract.Listed
}

// Joined is one operation with both of its sides.
type Joined struct {
	Key         string
	Theirs      *contract.Listed // nil when they do not list it
	Twice       bool             // they list it twice, with different content
	InWindow    bool             // one of our attempts is in the window
	Sent        time.Time        // the latest of those
	ActionID    string           // "" when the key is nobody's here
	OwnKey      string           // the key of that action
	Tool        string
	ToolVersion int
	Scope       string
	State       action.State
	Payload     json.RawMessage
}

// NewReconciler makes the service.
func NewReconciler(l Ledger, r RunStore, s StagingStore, c *rule.Catalogue) *Reconciler {
	return &Reconciler{ledger: l, runs: r, staging: s, catalogue: c}
}

// maxWindow bounds what one run looks at.
const maxWindow = 92 * 24 * time.Hour

// Asked is what a person wants compared.
type Asked struct {
	Op       string
	Tool     string
	From, To time.Time
}

// Ask starts a run in the name of a person, who has to be trusted with settling
// all of the tool's unknown results. Asking with the same Op again is once.
func (r *Reconciler) Ask(ctx context.Context, who Who, q Asked) (Run, error) {
	person, err := r.runs.Person(ctx, who.ID)
	if err != nil {
		return Run{}, err
	}
	if err := people.May(person, people.ToSettle, people.Subject{Tool: q.Tool}); err != nil {
		return Run{}, err
	}
	tool, err := r.catalogue.Latest(ctx, q.Tool)
	if err != nil {
		return Run{}, err
	}
	if tool.Contract.Execution.Reconcile == nil {
		return Run{}, action.Refuse(action.InvalidArgument, "The contract of this tool does not say how its operations are listed.").Because("no-list").
			At("/tool", "must be a tool whose contract says how its operations are listed")
	}
	q.From, q.To = q.From.UTC().Truncate(time.Second), q.To.UTC().Truncate(time.Second)
	op := fmt.Sprintf("ask:%s:%s:%s:%d:%d", person.ID, q.Op, q.Tool, q.From.Unix(), q.To.Unix())
	refusal := action.Refuse(action.InvalidArgument, "This window cannot be compared.")
	switch now := tool.Now; {
	case !q.From.Before(q.To):
		refusal.Because("period").At("/to", "must be after from")
	case q.To.Sub(q.From) > maxWindow:
		refusal.Because("window-long").At("/from", "must be at most 92 days before to")
	case q.From.After(now):
		refusal.Because("window-future").At("/from", "must not be in the future")
	case q.To.After(now):
		q.To = now.UTC().Truncate(time.Second).Add(time.Second)
	}
	if len(refusal.Errors) > 0 {
		return Run{}, refusal
	}
	return r.runs.AddRun(ctx, Run{ID: action.NewID("rec"), Op: op, Tool: q.Tool, ToolVersion: tool.Version,
		From: q.From, To: q.To, By: action.By{Kind: action.ByPerson, ID: person.ID, Name: person.Name, Role: people.RoleOps, Method: who.Method}})
}

// MaxExplanation bounds what is said of a difference, in bytes.
const MaxExplanation = 2000

// Explain records what a person found out about a difference that no case
// settles. It is said once; the same difference in a later run has it, too.
func (r *Reconciler) Explain(ctx context.Context, who Who, d Difference, note string) error {
	person, err := r.runs.Person(ctx, who.ID)
	if err != nil {
		return err
	}
	if err := people.May(person, people.ToSettle, people.Subject{Tool: d.Tool, Scope: d.Scope}); err != nil {
		return err
	}
	switch note = strings.TrimSpace(note); {
	case d.CaseOpen:
		return action.Refuse(action.WrongState, "This difference has a case. Settle that.").Because("has-case").With("case", d.CaseID)
	case d.Class == ClassAwaiting:
		return action.Refuse(action.WrongState, "This is awaited; there is nothing to explain yet.").Because("awaiting")
	case note == "":
		return action.Refuse(action.InvalidArgument, "Say what explains the difference.").Because("required").At("/note", "is required")
	case len(note) > MaxExplanation:
		return action.Refuse(action.InvalidArgument, "The explanation is too long.").Because("note-long").At("/note", fmt.Sprintf("must have at most %d bytes", MaxExplanation))
	}
	said := Explanation{By: action.By{Kind: action.ByPerson, ID: person.ID, Name: person.Name, Role: people.RoleOps, Method: who.Method}, Note: note, RunID: d.RunID}
	stands, err := r.runs.Explain(ctx, d, said)
	if err == nil && (stands.By.ID != said.By.ID || stands.Note != said.Note) {
		err = action.Refuse(action.AlreadyDecided, stands.By.Name+" has explained this already.").Because("explained").With("by", stands.By.Name)
	}
	return err
}

// RunFilter says which runs a list shows, newest first. Empty members do not
// filter.
type RunFilter struct {
	Viewer people.Viewer
	ID     string
	Before string // id of the last run of the page before
	Limit  int
}

// DifferenceFilter says which differences of a run a list shows, by key. With
// neither Class nor Key: those that somebody has to account for.
type DifferenceFilter struct {
	Viewer people.Viewer
	RunID  string
	Class  Class
	Key    string
	After  string // key of the last one of the page before
	Limit  int
}
