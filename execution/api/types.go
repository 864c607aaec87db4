// Package api holds the shapes of the HTTP API, served by the console and used
// by the client library: requests, responses and problems.
package api

import (
	"encoding/json"
	"time"
)

// Actor is on whose behalf an action happens.
type Actor struct {
	ID   string  `json:"id"`
	Name *string `json:"name"`
}

// Target is the one object that an action touches.
type Target struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Propose is the body of POST /v1/actions. ExpiresIn is a Go duration such as
// "15m", or whole seconds. The Idempotency-Key goes in the header.
type Propose struct {
	Tool          string          `json:"tool"`
	Actor         *Actor          `json:"actor"`
	Target        *Target         `json:"target,omitempty"`
	ObjectVersion *string         `json:"object_version,omitempty"`
	Payload       json.RawMessage `json:"payload"`
	Reason        string          `json:"reason,omitempty"`
	ExpiresIn     *Duration       `json:"expires_in,omitempty"`
	TaskID        string          `json:"task_id,omitempty"`
	Entry         string          `json:"entry,omitempty"`
	Draft         bool            `json:"draft,omitempty"`
	Compensates   string          `json:"compensates,omitempty"`
	Resumes       string          `json:"resumes,omitempty"`
	Replaces      string          `json:"replaces,omitempty"`
}

// Revise is the body of POST /v1/actions/{id}/revisions.
type Revise struct {
	Payload       json.RawMessage `json:"payload"`
	ObjectVersion *string         `json:"object_version,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	ExpiresIn     *Duration       `json:"expires_in,omitempty"`
}

// Cancel is the optional body of POST /v1/actions/{id}/cancel.
type Cancel struct {
	Reason string `json:"reason,omitempty"`
}

// ConfirmationState is what a confirmation stands for.
type ConfirmationState struct {
	Ref           string    `json:"ref"`
	ActionID      string    `json:"action_id"`
	State         string    `json:"state"`
	Revision      int       `json:"revision"`
	Tool          string    `json:"tool"`
	ToolVersion   int       `json:"tool_version"`
	ObjectVersion *string   `json:"object_version"`
	PayloadHash   string    `json:"payload_hash"`
	ProposalHash  string    `json:"proposal_hash"`
	ExecutionKey  string    `json:"execution_key"`
	ExpiresAt     time.Time `json:"expires_at"`
	Token         string    `json:"token"`
	Now           time.Time `json:"now"`
}

// Verify is the body of POST /v1/confirmations/{ref}/verify.
type Verify struct {
	ProposalHash  string  `json:"proposal_hash"`
	ObjectVersion *string `json:"object_version"`
}

// Verified answers Verify. Reason is a problem code when it is not valid.
type Verified struct {
	Valid  bool    `json:"valid"`
	Reason *string `json:"reason"`
}

// Claim is the body of POST /v1/confirmations/{ref}/claim. ClaimID is random
// for each executor process.
type Claim struct {
	ClaimID       string  `json:"claim_id"`
	ProposalHash  string  `json:"proposal_hash"`
	ObjectVersion *string `json:"object_version"`
}

// Lease is how long a claim stays live.
type Lease struct {
	TTLMillis int64     `json:"ttl_ms"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Claimed answers a claim: everything that is needed to run the action.
type Claimed struct {
	ActionID     string          `json:"action_id"`
	Contract     json.RawMessage `json:"contract"` // as pinned
	Payload      json.RawMessage `json:"payload"`  // canonical bytes
	ExecutionKey string          `json:"execution_key"`
	KeyExpiresAt *time.Time      `json:"key_expires_at"`
	Step         *Step           `json:"step"` // to attempt first; null for a contract without steps
	Lease        Lease           `json:"lease"`
	Token        string          `json:"token"`
	Now          time.Time       `json:"now"`
}

// Renew is the body of POST /v1/actions/{id}/lease. LeaseID makes a repetition
// recognisable; a new one extends the lease.
type Renew struct {
	ClaimID string `json:"claim_id"`
	LeaseID string `json:"lease_id,omitempty"`
}

// Release is the body of POST /v1/actions/{id}/release. With a Code the action
// cannot run and fails: FORBIDDEN, PRECONDITION_FAILED, TOOL_UNAVAILABLE,
// INVALID_ARGUMENT or UNKNOWN_TOOL. Reason, at most 256 bytes, says why it could
// not be run now: people see it, and it is offered again later every time.
type Release struct {
	ClaimID string `json:"claim_id"`
	Code    string `json:"code,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Step is one of several requests of an action, as it is to be sent or asked
// about: under its own key, bound to a version of the object or to none.
type Step struct {
	Name          string  `json:"name"`
	ExecutionKey  string  `json:"execution_key"`
	ObjectVersion *string `json:"object_version"`
}

// Attempt is the body of POST /v1/actions/{id}/attempts. Fingerprint is the
// SHA-256 of the bytes that will be sent.
type Attempt struct {
	AttemptID   string `json:"attempt_id"`
	ClaimID     string `json:"claim_id"`
	Step        string `json:"step,omitempty"`
	Fingerprint string `json:"fingerprint"`
}

// AttemptStarted is the leave to send one request, counted on the sender's
// own monotonic clock.
type AttemptStarted struct {
	Number           int       `json:"number"`
	SendWithinMillis int64     `json:"send_within_ms"`
	SendBy           time.Time `json:"send_by"`
}

// Receipt is the body of POST /v1/actions/{id}/receipts. Outcome is SUCCESS,
// FAILURE or UNKNOWN; Code tells more, e.g. NOT_SENT or EXECUTION_ERROR.
type Receipt struct {
	ReceiptID          string          `json:"receipt_id"`
	AttemptID          string          `json:"attempt_id"`
	ClaimID            string          `json:"claim_id"`
	Outcome            string          `json:"outcome"`
	Proves             string          `json:"proves,omitempty"`
	Code               string          `json:"code,omitempty"`
	HTTPStatus         int             `json:"http_status,omitempty"`
	ProviderRef        string          `json:"provider_ref,omitempty"`
	ObjectVersionAfter string          `json:"object_version_after,omitempty"`
	TookMillis         int64           `json:"took_ms,omitempty"` // until the answer was there
	Body               json.RawMessage `json:"body,omitempty"`
}

// Observation is the body of POST /v1/actions/{id}/observations: what a
// read-only query showed, or why it failed.
type Observation struct {
	ObservationID string          `json:"observation_id"`
	Tool          string          `json:"tool"`
	Step          string          `json:"step,omitempty"` // whose key was asked about, or whose post-conditions were read
	Snapshot      json.RawMessage `json:"snapshot,omitempty"`
	Error         string          `json:"error,omitempty"`
	ObservedAt    time.Time       `json:"observed_at"`
	ToolVersion   int             `json:"tool_version,omitempty"` // of the contract that the query followed
	Fingerprint   string          `json:"fingerprint,omitempty"`  // SHA-256 of the query
	TookMillis    int64           `json:"took_ms,omitempty"`      // until the answer was there
	ProviderRef   string          `json:"provider_ref,omitempty"` // the business system's name for the query
	HTTPStatus    int             `json:"http_status,omitempty"`  // of the answer; left out when there was none
	Code          string          `json:"code,omitempty"`         // why there is no snapshot, such as EXECUTION_ERROR
}

// CallbackTaken answers a callback: Status is joined or parked.
type CallbackTaken struct {
	Status string `json:"status"`
}

// Decision is one person's yes or no.
type Decision struct {
	Person     string    `json:"person"`
	Name       string    `json:"name"`
	Decision   string    `json:"decision"` // approve or reject
	Revision   int       `json:"revision"`
	Role       string    `json:"role"`
	Method     string    `json:"method"`
	ReasonCode *string   `json:"reason_code"`
	Reason     *string   `json:"reason"`
	At         time.Time `json:"at"`
	Counts     bool      `json:"counts"` // toward the current revision
}

// Approvals says what is needed and what is there.
type Approvals struct {
	Required  int        `json:"required"`
	Given     int        `json:"given"`
	Eligible  int        `json:"eligible"` // people who could still approve; -1 when too many to count
	Decisions []Decision `json:"decisions"`
}

// Confirmation is what an executor claims.
type Confirmation struct {
	Ref       string    `json:"ref"`
	ExpiresAt time.Time `json:"expires_at"`
	Token     string    `json:"token"`
}

// AttemptState is one recorded attempt.
type AttemptState struct {
	AttemptID string    `json:"attempt_id"`
	Number    int       `json:"number"`
	Step      *string   `json:"step"`
	At        time.Time `json:"at"`
	SendBy    time.Time `json:"send_by"`
	Outcome   *string   `json:"outcome"`
}

// StepState is one step of an action and what is known of it.
type StepState struct {
	Name         string  `json:"name"`
	ExecutionKey string  `json:"execution_key"`
	State        string  `json:"state"` // done, not_done or unknown
	Proven       *string `json:"proven"`
	Executions   int     `json:"handler_executions"`
}

// ReceiptState is one recorded receipt: as claimed, and as judged.
type ReceiptState struct {
	ReceiptID          string          `json:"receipt_id"`
	AttemptID          string          `json:"attempt_id"`
	Claimed            string          `json:"claimed"`
	Outcome            string          `json:"outcome"`
	Proves             *string         `json:"proves"`
	Code               *string         `json:"code"`
	HTTPStatus         *int            `json:"http_status"`
	ProviderRef        *string         `json:"provider_ref"`
	ObjectVersionAfter *string         `json:"object_version_after"`
	Body               json.RawMessage `json:"body"`
	At                 time.Time       `json:"at"`
}

// ObservationState is one recorded reading.
type ObservationState struct {
	ObservationID string          `json:"observation_id"`
	Tool          string          `json:"tool"`
	Step          *string         `json:"step"`
	Snapshot      json.RawMessage `json:"snapshot"`
	Error         *string         `json:"error"`
	HTTPStatus    *int            `json:"http_status"` // null when there was no answer, or nobody told
	Code          *string         `json:"code"`
	Holds         *bool           `json:"holds"`
	AboutOther    bool            `json:"about_other"` // the snapshot names another object or operation: it proves nothing
	ObservedAt    time.Time       `json:"observed_at"`
}

// Statement is what may and may not be said to a customer.
type Statement struct {
	Level      string    `json:"level"`
	MaySay     []string  `json:"may_say"`
	MustNotSay []string  `json:"must_not_say"`
	AsOf       time.Time `json:"as_of"`
}

// Links are an action's page and that of its task, and the actions that it
// belongs to: the one that it compensates, resumes or replaces, and those that do
// so with it.
type Links struct {
	Page        string         `json:"page"`
	Task        *string        `json:"task"`
	Compensates *string        `json:"compensates"`
	Resumes     *string        `json:"resumes"`
	Replaces    *string        `json:"replaces"`
	LinkedBy    []LinkedAction `json:"linked_by"`
}

// LinkedAction is an action that compensates, resumes or replaces another one.
type LinkedAction struct {
	ActionID string `json:"action_id"`
	Link     string `json:"link"` // compensates, resumes or replaces; unreadable where its history is
	State    string `json:"state"`
}

// Action is an action as the API shows it. Absent values are null.
type Action struct {
	ID                string             `json:"id"`
	State             string             `json:"state"`
	Version           int64              `json:"version"`
	Revision          int                `json:"revision"`
	Tool              string             `json:"tool"`
	ToolVersion       int                `json:"tool_version"`
	Actor             Actor              `json:"actor"`
	Target            *Target            `json:"target"`
	ObjectVersion     *string            `json:"object_version"`
	Payload           json.RawMessage    `json:"payload"`
	PayloadHash       string             `json:"payload_hash"`
	ProposalHash      string             `json:"proposal_hash"`
	ExecutionKey      string             `json:"execution_key"`
	ExpiresAt         *time.Time         `json:"expires_at"`
	CreatedAt         time.Time          `json:"created_at"`
	Reason            *string            `json:"reason"`
	Approvals         Approvals          `json:"approvals"`
	Confirmation      *Confirmation      `json:"confirmation"`
	Steps             []StepState        `json:"steps"`
	NextStep          *Step              `json:"next_step"` // what the live claim may attempt now
	Attempts          []AttemptState     `json:"attempts"`
	Receipts          []ReceiptState     `json:"receipts"`
	Observations      []ObservationState `json:"observations"`
	HandlerExecutions int                `json:"handler_executions"`
	RequestID         string             `json:"request_id"`
	TaskID            *string            `json:"task_id"`
	CaseID            *string            `json:"case_id"`
	Statement         Statement          `json:"statement"`
	Result            json.RawMessage    `json:"result"`
	Links             Links              `json:"links"`
	Unreadable        *string            `json:"unreadable"` // in lists: why nothing but the row of it is there
}

// List is one page of a list.
type List[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// Work is one thing an executor should do now.
type Work struct {
	Kind            string          `json:"kind"` // observe, execute, ask, verify, retry or list
	ActionID        string          `json:"action_id"`
	Tool            string          `json:"tool"`
	ToolVersion     int             `json:"tool_version"`
	Version         int64           `json:"version"`
	Actor           Actor           `json:"actor"`
	Target          *Target         `json:"target"`
	ObjectVersion   *string         `json:"object_version"`
	Payload         json.RawMessage `json:"payload"`
	ExecutionKey    string          `json:"execution_key"`
	ProposalHash    string          `json:"proposal_hash"`
	ConfirmationRef *string         `json:"confirmation_ref"`
	Traceparent     *string         `json:"traceparent"` // W3C Trace Context of the request that proposed it
	Read            *string         `json:"read"`        // the tool to read with
	Step            *Step           `json:"step"`        // what it is about; null for a contract without steps
	List            *ListWork       `json:"list"`        // what to list; such work belongs to no action
}

// WorkList answers GET /v1/work.
type WorkList struct {
	Items []Work    `json:"items"`
	Now   time.Time `json:"now"`
}

// Tool is a stored version of a contract.
type Tool struct {
	Name      string          `json:"name"`
	Version   int             `json:"version"`
	Active    bool            `json:"active"`
	Contract  json.RawMessage `json:"contract"`
	Assumed   []string        `json:"assumed"` // defaults that the definition left open
	CreatedAt time.Time       `json:"created_at"`
}

// Retire is the body of POST /v1/tools/{name}/retire: what happens to open
// actions, keep or cancel.
type Retire struct {
	OpenActions string `json:"open_actions"`
}

// FieldError names one wrong place in a request by JSON Pointer.
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// Problem is an RFC 9457 problem document. Its Type ends in the code.
type Problem struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Code      string            `json:"code"`
	Reason    string            `json:"reason,omitempty"`
	Args      map[string]string `json:"args,omitempty"`
	Errors    []FieldError      `json:"errors,omitempty"`
	RequestID string            `json:"request_id"`
}
