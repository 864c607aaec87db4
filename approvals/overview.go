package approvals

import (
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/people"
)

// Looked is how many rows an overview looks at: the most urgent, or the newest.
// What there is beyond them it does not count.
const Looked = 1000

// Waiting is what waits at one place.
type Waiting struct {
	N        int        `db:"n"`
	More     bool       `db:"more"`     // there is more than was looked at
	Expiring int        `db:"expiring"` // of them, soon
	Oldest   *time.Time `db:"oldest"`   // since when, of what was looked at; nil when nothing waits
}

// Figures counts what is open in the whole console.
type Figures struct {
	Proposed   Waiting    `db:"proposed"`
	Confirmed  Waiting    `db:"confirmed"` // and not taken by an executor
	NeedPerson int        `db:"need_person"`
	NeedSecond int        `db:"need_second"`
	Asking     int        `db:"asking"`
	OldestCase *time.Time `db:"oldest_case"`
	Pauses     int        `db:"pauses"`
	Now        time.Time  `db:"now"`
}

// Took narrows a list to what people decided on within a span of time, counted
// from what they were shown last.
type Took struct {
	From, To time.Duration // To is not within; 0: any longer time
	Nobody   bool          // instead: what nobody decided on in time
}

// Decided is how long people took to decide on one proposal.
type Decided struct {
	Took   time.Duration
	Nobody bool // did in time
}

// PaceFilter says which proposals are looked at: the newest of a span of time,
// at most Looked.
type PaceFilter struct {
	Viewer   people.Viewer
	From, To time.Time
}

// Executor is what one executor process last said of itself.
type Executor struct {
	ClientID string
	Instance string // made up by the process
	Name     string
	Tools    []string // names, or prefixes that end in "*"
	Systems  []SystemHealth
	SeenAt   time.Time
}

// SystemHealth tells whether an executor leaves a business system alone because
// it does not answer.
type SystemHealth struct {
	System string     `json:"system"` // its base URL
	Reads  string     `json:"reads"`  // closed, open or half-open
	Writes string     `json:"writes"`
	Since  *time.Time `json:"since,omitempty"` // when the first of them opened
}

// Away reports whether the system is left alone, for writing at least.
func (h SystemHealth) Away() bool { return h.Reads != BreakerClosed || h.Writes != BreakerClosed }

// The states of a breaker. Half open, a single read finds out.
const (
	BreakerClosed   = "closed"
	BreakerOpen     = "open"
	BreakerHalfOpen = "half-open"
)

// ExecutorFresh is how old what an executor said of itself may be, to count as
// how things are now.
const ExecutorFresh = time.Minute

// Bounds of what an executor says of itself.
const (
	maxExecutorText    = 128
	maxExecutorTools   = 500
	maxExecutorSystems = 100
	maxSystemText      = 512
)

// Check refuses what cannot be kept.
func (e Executor) Check() error {
	r := action.Refuse(action.InvalidArgument, "What the executor says of itself is refused. The errors say where.")
	if e.Instance == "" || len(e.Instance) > maxExecutorText || len(e.Name) > maxExecutorText {
		r.At("/instance", "instance and name have at most 128 bytes, and instance at least one")
	}
	if len(e.Tools) > maxExecutorTools || len(e.Systems) > maxExecutorSystems {
		r.At("/tools", "at most 500 tools and 100 systems")
	}
	for i, s := range e.Systems {
		if s.System == "" || len(s.System) > maxSystemText || !breakerState(s.Reads) || !breakerState(s.Writes) {
			r.At(fmt.Sprintf("/systems/%d", i), "has a system of 1 to 512 bytes; reads and writes are closed, open or half-open")
		}
	}
	if len(r.Errors) > 0 {
		return r
	}
	return nil
}

func breakerState(s string) bool {
	return s == BreakerClosed || s == BreakerOpen || s == BreakerHalfOpen
}

// SystemsJSON is the systems as they are stored.
func (e Executor) SystemsJSON() (string, error) {
	raw, err := json.Marshal(e.Systems)
	if err != nil {
		return "", fmt.Errorf("encoding the systems of an executor: %w", err)
	}
	return string(raw), nil
}
