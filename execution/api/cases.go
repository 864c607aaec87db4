package api

import "time"

// Case is one unknown or contradictory outcome: read-only for programs, because
// only people settle.
type Case struct {
	ID           string     `json:"id"`
	ActionID     string     `json:"action_id"`
	Tool         string     `json:"tool"`
	Target       *Target    `json:"target"`
	Kind         string     `json:"kind"` // unknown or contradiction; "" where it cannot be read
	Why          string     `json:"why"`
	Open         bool       `json:"open"`
	OpenedAt     time.Time  `json:"opened_at"`
	ClosedAt     *time.Time `json:"closed_at"`
	Believed     *string    `json:"believed"` // the state before, which a contradiction speaks against
	Asking       Asking     `json:"asking"`
	ExecutionKey string     `json:"execution_key"`
	KeyExpiresAt *time.Time `json:"key_expires_at"` // until when the same key is surely safe
	FencedAt     *time.Time `json:"fenced_at"`      // from when nothing that was sent can take effect any more
	Holder       *Holder    `json:"holder"`
	Pending      *Verdict   `json:"pending"` // waits for a second person
	Verdict      *Verdict   `json:"verdict"` // stands
	Earlier      []Verdict  `json:"earlier"` // superseded, oldest first
	SnapshotHash string     `json:"snapshot_hash"`
	Version      int64      `json:"version"` // of the action
	Links        CaseLinks  `json:"links"`
	Unreadable   *string    `json:"unreadable"` // in lists: why nothing but the row of its action is there
}

// CaseLinks are addresses that belong to a case.
type CaseLinks struct {
	Page string `json:"page"`
}

// Asking tells how far finding out by itself is.
type Asking struct {
	NeedsPerson bool       `json:"needs_person"` // nothing is left to find out without one
	Asked       int        `json:"asked"`        // since the latest attempt, or since a person had it asked again
	Most        int        `json:"most"`         // how often it is asked
	LastAt      *time.Time `json:"last_at"`
	LastAnswer  *string    `json:"last_answer"` // SUCCEEDED, FAILED, NOT_EXECUTED, DIFFERS or UNKNOWN
	Next        *string    `json:"next"`        // ask, retry or verify
	NextAt      *time.Time `json:"next_at"`
}

// Holder is who has taken a case.
type Holder struct {
	Person string    `json:"person"`
	Name   string    `json:"name"`
	Until  time.Time `json:"until"`
}

// Verdict is what a person found out.
type Verdict struct {
	Verdict      string    `json:"verdict"` // happened, did_not_happen or partly
	EvidenceKind string    `json:"evidence_kind"`
	EvidenceRef  *string   `json:"evidence_ref"`
	SnapshotHash string    `json:"snapshot_hash"` // of what the person saw
	Person       string    `json:"person"`
	Name         string    `json:"name"`
	At           time.Time `json:"at"`
	Note         *string   `json:"note"`
	Second       *Second   `json:"second"`
}

// Second is another person's answer to a verdict that waited for one.
type Second struct {
	Agree  bool      `json:"agree"`
	Person string    `json:"person"`
	Name   string    `json:"name"`
	At     time.Time `json:"at"`
	Note   *string   `json:"note"`
}
