package action

import (
	"encoding/json"
	"time"
)

// Kind says what an event records.
type Kind string

// Every kind of event that an action can have.
const (
	KindDrafted     Kind = "drafted"
	KindProposed    Kind = "proposed"
	KindSubmitted   Kind = "submitted"
	KindRevised     Kind = "revised"
	KindDecided     Kind = "decided"
	KindCancelled   Kind = "cancelled"
	KindExpired     Kind = "expired"
	KindClaimed     Kind = "claimed"
	KindRenewed     Kind = "renewed"
	KindReleased    Kind = "released"
	KindLapsed      Kind = "lapsed"
	KindGivenUp     Kind = "given_up"
	KindAttempted   Kind = "attempted"
	KindReceipt     Kind = "receipt"
	KindObservation Kind = "observation"
	KindOverdue     Kind = "overdue"
	KindRetried     Kind = "retried"
	KindEvidence    Kind = "evidence"
	KindTaken       Kind = "taken"       // a case, by a person
	KindHandedOver  Kind = "handed_over" // a case, to another person or to nobody
	KindAskedAgain  Kind = "asked_again" // a person wants more queries by key
	KindSendAgain   Kind = "send_again"  // a person wants the one retry, under the same key
	KindVerdict     Kind = "verdict"
	KindRefused     Kind = "verdict_refused" // by a second person
	KindClosed      Kind = "closed"
	KindCounted     Kind = "counted"   // approvals are enough since somebody's authority is back
	KindConcluded   Kind = "concluded" // by the end of an action that is linked to it
)

// Event is the record of one transition or one piece of evidence. Data is
// small, structural and kept for ever; Body is content (payloads, texts,
// snapshots) that retention may remove. Both are JSON objects.
type Event struct {
	Subject string // id of the action, or "client:…", "person:…", "tool:…" for administrative changes
	Version int64  // 1 for the first event of a subject
	Op      string // the caller's name of the command; unique for a subject
	Kind    Kind
	By      By
	From    State // "" for the first event
	To      State
	At      time.Time
	Data    json.RawMessage
	Body    json.RawMessage // nil when there is none
}

// content is what drafted, proposed, submitted and revised events record.
type content struct {
	Client        By            `json:"client,omitzero"`
	Entry         string        `json:"entry,omitempty"`
	Scope         string        `json:"scope,omitempty"`
	TaskID        string        `json:"task_id,omitempty"`
	RequestID     string        `json:"request_id,omitempty"`
	Trace         string        `json:"trace,omitempty"`
	Digest        string        `json:"digest,omitempty"` // of the request as sent
	Links         Links         `json:"links,omitzero"`
	Revision      int           `json:"revision"`
	Tool          string        `json:"tool"`
	ToolVersion   int           `json:"tool_version"`
	ActorID       string        `json:"actor_id"`
	Target        *Target       `json:"target"`
	ObjectVersion *string       `json:"object_version"`
	PayloadHash   string        `json:"payload_hash"`
	ProposalHash  string        `json:"proposal_hash"`
	ExecutionKey  string        `json:"execution_key"`
	ExpiresIn     time.Duration `json:"expires_in"`
	ExpiresAt     *time.Time    `json:"expires_at"`
	Terms         Terms         `json:"terms"`
	Needs         []Need        `json:"needs"`
	Confirmation  *Confirmation `json:"confirmation,omitempty"` // zero-approval rules
}

// contentBody is the removable part of content.
type contentBody struct {
	Payload   json.RawMessage `json:"payload,omitempty"` // absent when it did not change
	Reason    string          `json:"reason,omitempty"`
	ActorName string          `json:"actor_name,omitempty"`
}

type decided struct {
	Decision
	Confirmation *Confirmation `json:"confirmation,omitempty"`
}

type counted struct {
	Confirmation *Confirmation `json:"confirmation"`
}

type textBody struct {
	Note string `json:"note,omitempty"`
}

type claimed struct {
	Claim Claim `json:"claim"`
}

type ended struct {
	Code string `json:"code,omitempty"`
	Vain bool   `json:"vain,omitempty"` // it was taken to be run and could not be
	Case *Case  `json:"case,omitempty"`
}

type endedBody struct {
	Why string `json:"why,omitempty"`
}

type concluded struct {
	Linked string `json:"linked"`
	How    string `json:"how"`
}

type attempted struct {
	Attempt Attempt `json:"attempt"`
}

type receipted struct {
	Receipt Receipt `json:"receipt"`
	Case    *Case   `json:"case,omitempty"`
}

type receiptBody struct {
	Body json.RawMessage `json:"body,omitempty"`
}

type observed struct {
	Observation Observation `json:"observation"`
	Needs       []Need      `json:"needs,omitempty"`  // as they stand with this reading
	Wanted      []Need      `json:"wanted,omitempty"` // when they are more than the confirmation rests on
	Case        *Case       `json:"case,omitempty"`
}

type observationBody struct {
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	Error    string          `json:"error,omitempty"`
}

type opened struct {
	Case *Case `json:"case,omitempty"`
}

// Found is what a query about the operation itself, by its key, answered.
type Found struct {
	ID          string `json:"id"`
	Source      string `json:"source"`         // the tool or callback it came from
	Step        string `json:"step,omitempty"` // whose key it was
	Outcome     string `json:"outcome"`
	Proves      Proof  `json:"proves,omitempty"`
	ProviderRef string `json:"provider_ref,omitempty"`
	Wire        Wire   `json:"wire,omitzero"`

	// ObservedAt is when the answer was read, by the clock of who did. Zero: when
	// it arrived.
	ObservedAt time.Time `json:"observed_at,omitzero"`
	// Untimely is what an answer said that proves nothing because of when it was read:
	// before the request which it would be about, or, that nothing was executed, when
	// the business system may have forgotten the key. Its outcome is UNKNOWN then.
	Untimely string `json:"untimely,omitempty"`
	// Other is that the answer names another object or operation than was asked
	// about: it proves nothing, and its outcome is UNKNOWN.
	Other bool `json:"other,omitempty"`
}

// What a query by key can answer (row E2 of docs/systems.md), or a list of
// operations show.
const (
	FoundSucceeded   = "SUCCEEDED"
	FoundFailed      = "FAILED" // a stored refusal: the key can have no other outcome any more
	FoundNotExecuted = "NOT_EXECUTED"
	FoundDiffers     = "DIFFERS" // another operation stands under the key than was asked for
	FoundUnknown     = "UNKNOWN"
)

type evidenced struct {
	Found Found `json:"found"`
	Case  *Case `json:"case,omitempty"`
}

type evidenceBody struct {
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
}

type judged struct {
	Verdict  Verdict `json:"verdict,omitzero"`
	Waits    bool    `json:"waits,omitempty"`    // for a second person
	Confirms bool    `json:"confirms,omitempty"` // the verdict that waits
}

type custody struct {
	Holder *Holding `json:"holder"`
}

// encode writes v as JSON without HTML escaping, so that canonical payload
// bytes inside it stay byte for byte what they were.
func encode(v any) (json.RawMessage, error) {
	var buf jsonBuffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(buf[:len(buf)-1]), nil
}

type jsonBuffer []byte

func (b *jsonBuffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }
