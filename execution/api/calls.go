package api

import (
	"encoding/json"
	"time"
)

// Call is one line of GET /v1/calls: the record of one request to a business
// system. It follows from the events of its action.
type Call struct {
	CallID           string          `json:"call_id"`
	Kind             string          `json:"kind"` // attempt, read or ask
	Number           *int            `json:"number"`
	ActionID         string          `json:"action_id"`
	TaskID           *string         `json:"task_id"`
	RequestID        string          `json:"request_id"` // of the request that proposed the action
	TraceID          *string         `json:"trace_id"`   // W3C Trace Context: the trace that the request and callbacks about it belong to; null without one
	Tool             string          `json:"tool"`
	ToolVersion      *int            `json:"tool_version"` // of the contract that it followed; null when nobody told
	Step             *string         `json:"step"`
	Parameters       json.RawMessage `json:"parameters"`        // of an attempt, without what the contract hides
	ParametersDigest string          `json:"parameters_digest"` // payload_hash of the action
	Fingerprint      *string         `json:"fingerprint"`       // SHA-256 of what was sent
	ActorID          string          `json:"actor_id"`
	Proposer         string          `json:"proposer"` // id of the client
	Executor         *string         `json:"executor"` // id of the client
	At               time.Time       `json:"at"`       // an attempt was recorded, an answer came
	TookMillis       *int64          `json:"took_ms"`  // null when nobody told
	Result           string          `json:"result"`   // SUCCESS, FAILURE, UNKNOWN, OPEN; ANSWERED, FAILED; SUCCEEDED, FAILED, NOT_EXECUTED, UNKNOWN
	Code             *string         `json:"code"`
	HTTPStatus       *int            `json:"http_status"`
	ProviderRef      *string         `json:"provider_ref"` // the business system's name for the request
	Final            CallFinal       `json:"final"`
}

// CallsUnreadable is a line in place of an action's calls.
type CallsUnreadable struct {
	ActionID   string `json:"action_id"`
	State      string `json:"state"`
	Unreadable string `json:"unreadable"` // why
}

// CallFinal is what the action of a call has come to, as of now.
type CallFinal struct {
	State             string  `json:"state"`
	Target            *Target `json:"target"`
	ObjectVersion     *string `json:"object_version"` // that it left behind
	HandlerExecutions int     `json:"handler_executions"`
	CaseID            *string `json:"case_id"` // open
	SettledBy         *string `json:"settled_by"`
}

// CallsEnd is the last line of GET /v1/calls: without it the answer was cut off.
type CallsEnd struct {
	End        bool    `json:"end"`
	NextCursor *string `json:"next_cursor"` // null: there are no more
}
