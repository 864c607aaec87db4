// Package contract describes one business capability (a tool): what it takes,
// what it acts on, who must approve it, how it is called and what an answer
// proves. It reads contracts, checks payloads against them, builds the wire
// request and classifies the answer. The console and the client library use
// the same code, so both judge alike; expressions are evaluated elsewhere
// (package rule), because the client library does not need them.
package contract

import (
	"encoding/json"
	"slices"

	"countersign/action"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Mode tells whether a tool changes anything.
type Mode string

// The two modes.
const (
	Read  Mode = "read"  // changes nothing: needs no approval
	Write Mode = "write" // changes something
)

// VersionUse tells what a proposal says about the version of its object.
type VersionUse string

// How object versions are used.
const (
	VersionRequired VersionUse = "required"
	VersionOptional VersionUse = "optional"
	VersionNone     VersionUse = "none"
)

// Block tells what an unsettled outcome keeps others from doing.
type Block string

// What is blocked while a case is open.
const (
	BlockTarget Block = "target" // every write to the same target
	BlockTool   Block = "tool"   // this tool on the same target
	BlockNone   Block = "none"   // nothing
)

// Retry tells whether one wire request may be sent again.
type Retry string

// The retry rules.
const (
	RetrySameKey Retry = "same_key" // once more, same key and bytes, while the key is remembered
	RetryNever   Retry = "never"
)

// Contract is one version of a tool's description, with every default filled
// in. Parse makes it; it is never changed afterwards, and safe for concurrent
// use. As JSON it is a full contract that Parse reads back.
type Contract struct {
	Name          string                     `json:"name"`
	Title         Text                       `json:"title,omitempty"`
	Description   Text                       `json:"description,omitempty"`
	Mode          Mode                       `json:"mode"`
	Entries       []string                   `json:"entries,omitempty"` // entry points that load the tool; empty means every one
	InputSchema   json.RawMessage            `json:"input_schema"`      // JSON Schema 2020-12, keys in the order they were written
	OutputSchema  json.RawMessage            `json:"output_schema,omitempty"`
	Validate      []string                   `json:"validate,omitempty"` // expressions over the payload that must hold
	Target        *Target                    `json:"target,omitempty"`   // nil: the request names the target
	ObjectVersion VersionUse                 `json:"object_version"`
	Approval      Approval                   `json:"approval"`
	HTTP          *HTTP                      `json:"http,omitempty"` // nil: no generic way to call it
	Execution     Execution                  `json:"execution"`
	Display       Display                    `json:"display,omitzero"`
	Annotations   map[string]json.RawMessage `json:"annotations,omitempty"` // kept and shown, never acted on

	source   []byte
	assumed  []Assumption
	bare     bool
	fields   []field
	composed bool  // the schema may take fields from elsewhere than "properties"
	schema   *node // the input schema
	input    *jsonschema.Schema
	output   *jsonschema.Schema
}

// Target names the business object that an action is about.
type Target struct {
	Type   string   `json:"type"`
	ID     Pointers `json:"id"`               // into the payload; several are joined by "/"
	Answer Pointers `json:"answer,omitempty"` // of a tool that reads: into its answer, where each of them stands; nil: where they stand in the payload, if at all
	Scope  string   `json:"scope,omitempty"`  // a literal, or a JSON Pointer into the payload
	Block  Block    `json:"block"`
}

// Approval says who must agree, and for how long a yes is good.
type Approval struct {
	TTL             Duration `json:"ttl"`              // from submission to expiry
	ConfirmationTTL Duration `json:"confirmation_ttl"` // from the last approval to expiry
	Before          string   `json:"before,omitempty"` // read tool whose snapshot an executor takes before the decision
	Rules           []Rule   `json:"rules,omitempty"`
}

// Rule asks for approvals when its expression holds.
type Rule struct {
	When      string `json:"when"`
	Role      string `json:"role"`
	Approvals int    `json:"approvals"`
	StepUp    bool   `json:"step_up,omitempty"` // the approver must prove who they are again
}

// HTTP says how an executor calls the business system. The base URL and the
// credentials are the executor's own.
type HTTP struct {
	Method      string            `json:"method"`
	Path        string            `json:"path"` // {field} or {/json/pointer} is replaced by the payload's value
	Headers     map[string]string `json:"headers,omitempty"`
	Body        Body              `json:"body"`
	Idempotency string            `json:"idempotency"` // "header", "none", or a JSON Pointer "/field" into the body
}

// Execution says how an action is carried out, and what proves that it was.
type Execution struct {
	Permission       string       `json:"permission,omitempty"` // read tool that tells whether the actor may
	Preconditions    []Condition  `json:"preconditions,omitempty"`
	Proves           action.Proof `json:"proves"` // the most that a success can prove
	Retry            Retry        `json:"retry"`
	KeyLifetime      Duration     `json:"key_lifetime,omitzero"` // how long the system remembers an execution key; zero: unknown
	DefiniteFailures []int        `json:"definite_failures"`     // HTTP statuses that prove nothing happened
	Conflicts        []int        `json:"conflicts"`             // HTTP statuses that say the object has another version
	Timeout          Duration     `json:"timeout"`               // of one wire request
	Lease            Duration     `json:"lease"`                 // how long a claim lives without renewal
	StatusQuery      *StatusQuery `json:"status_query,omitempty"`
	FenceAfter       Duration     `json:"fence_after"` // after the last possible send, nothing can happen any more
	Verify           Verify       `json:"verify"`
	Postconditions   []Condition  `json:"postconditions,omitempty"`
	TerminalWhen     string       `json:"terminal_when,omitempty"` // the object can change no more: stop reading back
	Deadline         Duration     `json:"deadline"`                // from the claim until the outcome counts as unknown
	Callback         *Callback    `json:"callback,omitempty"`
	Steps            []Step       `json:"steps,omitempty"`
	Compensation     string       `json:"compensation,omitempty"`       // tool that undoes this one
	SecondPersonWhen string       `json:"second_person_when,omitempty"` // expression over the payload: two people settle an unknown outcome
	Reconcile        *Reconcile   `json:"reconcile,omitempty"`          // nil: the system cannot list its operations
}

// Condition is a predicate on one field of what a read tool returns.
type Condition struct {
	Read   string `json:"read"`
	Field  string `json:"field"` // JSON Pointer into the snapshot
	Expect string `json:"expect"`
}

// StatusQuery asks the business system what became of an execution key.
type StatusQuery struct {
	Tool              string   `json:"tool"`
	AuthoritativeMiss bool     `json:"authoritative_miss"` // a 404 or 410 proves that it was not executed: see Missed
	MaxPolls          int      `json:"max_polls"`
	Outcome           Readings `json:"outcome"`
}

// Verify bounds the reading back of post-conditions.
type Verify struct {
	Tries  int      `json:"tries"`
	Window Duration `json:"window"` // a mismatch counts only after it
}

// Callback tells how an asynchronous receipt is joined and read.
type Callback struct {
	Key     string   `json:"key"` // JSON Pointer to the operation's key in the callback
	Outcome Readings `json:"outcome"`
}

// Readings maps what a business system writes in one field to an outcome.
// A value in no list reads as unknown.
type Readings struct {
	Field       string   `json:"field"` // JSON Pointer
	Succeeded   []string `json:"succeeded,omitempty"`
	Accepted    []string `json:"accepted,omitempty"`
	Queued      []string `json:"queued,omitempty"`
	Failed      []string `json:"failed,omitempty"`
	NotExecuted []string `json:"not_executed,omitempty"`
}

// Display says how an action is shown.
type Display struct {
	Summary     Text             `json:"summary,omitempty"` // {{field}} or {{/json/pointer}} is the payload's value
	Labels      map[string]Text  `json:"labels,omitempty"`  // by JSON Pointer
	Measures    []Measure        `json:"measures,omitempty"`
	Proves      Text             `json:"proves,omitempty"`       // what a success means, and what not, in the system's own terms
	Money       map[string]Money `json:"money,omitempty"`        // by JSON Pointer
	Mask        []string         `json:"mask,omitempty"`         // JSON Pointers, "*" stands for any one key or index
	AllowOutput []string         `json:"allow_output,omitempty"` // what of a tool's output may be seen; empty: nothing
	Links       []string         `json:"links,omitempty"`
}

// Measure is a number worth seeing first.
type Measure struct {
	Name  Text        `json:"name"`
	Value string      `json:"value"`
	Unit  Text        `json:"unit,omitempty"`
	Kind  MeasureKind `json:"kind,omitempty"`
}

// MeasureKind says how a measure is written. Where a contract does not say, a
// measure that takes what stands now from what is asked for is a change.
type MeasureKind string

// The kinds there are.
const (
	MeasureChange MeasureKind = "change" // with its sign: how far from what stands now
	MeasureShare  MeasureKind = "share"  // a part of something, without a plus
	MeasureAmount MeasureKind = "amount" // how much, in its unit
)

// Money says in which currency an amount is. Amounts are in major units.
type Money struct {
	Currency   string `json:"currency"`    // ISO 4217, or a JSON Pointer into the payload
	MinorUnits int    `json:"minor_units"` // how many decimals the currency has
	// Moves says whether the amount changes hands when the action happens, and so
	// may be added up. Unset: its name says so, or it is not known; see Contract.Moved.
	Moves *bool `json:"moves,omitempty"`
}

// Assumption is a default that the contract's author did not state.
type Assumption struct {
	Pointer string // JSON Pointer into the contract
	Value   string // as it would have been written
}

// Assumed lists the defaults that were assumed, in the contract's order.
func (c *Contract) Assumed() []Assumption { return c.assumed }

// Bare reports whether the contract came from a bare tool definition.
func (c *Contract) Bare() bool { return c.bare }

// Source returns the document as it was put, as compact JSON with its keys in
// their order. Keep it as text: the order of properties is shown to people.
func (c *Contract) Source() []byte { return c.source }

// Loads reports whether an entry point loads the tool. An entry point that
// nobody named, "", loads only what every one loads.
func (c *Contract) Loads(entry string) bool {
	return len(c.Entries) == 0 || slices.Contains(c.Entries, entry)
}
