package action

import (
	"slices"
	"time"
)

// Wire is what an executor tells of the request behind a receipt, a reading or
// an answer by key, beside what came of it.
type Wire struct {
	ToolVersion int    `json:"tool_version,omitempty"` // of the contract that it followed
	Digest      string `json:"digest,omitempty"`       // SHA-256 of what was sent
	TookMillis  int64  `json:"took_ms,omitempty"`      // until it was answered; 0 when nobody told
	RequestID   string `json:"request_id,omitempty"`   // the business system's name for it
	Status      int    `json:"http_status,omitempty"`  // of the answer; 0 when there was none, or nobody told
	Code        string `json:"code,omitempty"`         // why it showed nothing, such as EXECUTION_ERROR
}

// Call is the record of one request to a business system: an attempt, a reading
// or a question by key. It follows from the events of its action.
type Call struct {
	ID     string
	Kind   string // CallAttempt, CallRead or CallAsk
	Number int    // of an attempt; 0 otherwise
	Step   string
	Tool   string
	Wire      // what is not told is empty
	By     By // who made it
	At     time.Time
	Result string // CallOpen, SUCCESS, FAILURE, UNKNOWN, CallAnswered, CallFailed or what an answer by key says
}

// The kinds of a call.
const (
	CallAttempt = "attempt"
	CallRead    = "read"
	CallAsk     = "ask"
)

// What became of a call, beside the outcomes.
const (
	CallOpen     = "OPEN"     // an attempt that nobody has reported on
	CallAnswered = "ANSWERED" // a reading that showed something
	CallFailed   = "FAILED"   // a reading that showed nothing
)

// Calls returns the record of every request that was made for an action, in the
// order in which the console learnt of them. Callbacks and lists of operations
// are no calls of ours and are left out.
func (a Action) Calls() []Call {
	var calls []Call
	for _, t := range a.Attempts {
		calls = append(calls, a.attemptCall(t))
	}
	for _, o := range a.Observations {
		c := Call{ID: o.ID, Kind: CallRead, Step: o.Step, Tool: o.Tool, Wire: o.Wire, By: o.By, At: o.At, Result: CallAnswered}
		if o.Failed {
			c.Result = CallFailed
		}
		calls = append(calls, c)
	}
	for _, q := range a.Asks {
		if q.Found.Source == a.Terms.StatusQuery || q.Found.Wire != (Wire{}) {
			calls = append(calls, Call{ID: q.Found.ID, Kind: CallAsk, Step: q.Found.Step, Tool: q.Found.Source, Wire: q.Found.Wire, By: q.By, At: q.At,
				Result: q.Found.Outcome})
		}
	}
	slices.SortStableFunc(calls, func(x, y Call) int { return x.At.Compare(y.At) })
	return calls
}

// attemptCall is an attempt with the latest receipt about it.
func (a Action) attemptCall(t Attempt) Call {
	c := Call{ID: t.ID, Kind: CallAttempt, Number: t.Number, Step: t.Step, Tool: a.Tool, At: t.At, Result: CallOpen,
		Wire: Wire{ToolVersion: a.ToolVersion, Digest: t.Fingerprint}}
	for _, e := range a.ops {
		if e.Kind == KindAttempted && readData[attempted](e).Attempt.ID == t.ID {
			c.By = e.By
		}
	}
	for _, r := range a.Receipts {
		if r.AttemptID == t.ID {
			c.Result, c.Code, c.Status, c.RequestID = string(r.Outcome), r.Code, r.HTTPStatus, r.ProviderRef
			c.TookMillis = max(c.TookMillis, r.Wire.TookMillis)
		}
	}
	return c
}
