package api

import "time"

// Executor is the body of POST /v1/executors: what an executor process says of
// itself, several times a minute, so that people can see it. Instance is made up
// by the process. Tools are names, or prefixes that end in "*".
type Executor struct {
	Instance string         `json:"instance"`
	Name     string         `json:"name,omitempty"`
	Tools    []string       `json:"tools"`
	Systems  []SystemHealth `json:"systems"`
}

// SystemHealth tells whether a business system is left alone because it does not
// answer. Reads and Writes are closed, open or half-open, as breakers are: open
// means left alone, half-open that a single read finds out.
type SystemHealth struct {
	System string     `json:"system"` // its base URL, without credentials
	Reads  string     `json:"reads"`
	Writes string     `json:"writes"`
	Since  *time.Time `json:"since,omitempty"` // when it was first left alone
}

// ExecutorNoted answers Executor.
type ExecutorNoted struct {
	Now time.Time `json:"now"`
}
