package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"countersign/action"
)

// weaker returns the weaker of two proofs.
func weaker(a, b action.Proof) action.Proof {
	if a.Stronger(b) == a {
		return b
	}
	return a
}

// Codes of refusals before the call and of results after it.
const (
	CodeUnknownTool     = "UNKNOWN_TOOL"
	CodeInvalidArgument = "INVALID_ARGUMENT"
	CodeToolUnavailable = "TOOL_UNAVAILABLE"
	CodeNotSent         = action.NotSent    // nothing left this machine
	CodeExecutionError  = "EXECUTION_ERROR" // sent, outcome not known
)

// Errors of the transport, as an Answer names them.
const (
	ErrNotSent = "not_sent" // provably nothing was sent
	ErrTimeout = "timeout"
	ErrReset   = "reset"     // the connection broke
	ErrBody    = "body"      // the answer began and could not be read to its end
	ErrOther   = "transport" // anything else
)

// Answer is what came back from one wire request.
type Answer struct {
	Status      int    // HTTP status, 0 when there was no answer
	ContentType string // of the answer
	Body        []byte // read to its end, unless Err says otherwise
	Err         string // one of the Err constants, "" when the answer was read
	Attempt     int    // number of the attempt, from 1
}

// Outcome is what an answer or a reported receipt is worth.
type Outcome struct {
	Result   action.Outcome
	Conflict bool         // FAILURE because the object has another version, on the first attempt
	Proves   action.Proof // of a success
	Code     string       // NOT_SENT or EXECUTION_ERROR, "" otherwise
	Reason   string       // one English sentence, safe to show
}

// Classify tells what an answer is worth. Only what the contract lists as
// definite is a failure, only a readable promise is a success; everything
// else may or may not have happened.
func (c *Contract) Classify(a Answer) Outcome {
	if a.Err == ErrNotSent {
		return Outcome{Result: action.Failure, Code: CodeNotSent, Reason: "nothing was sent"}
	}
	if a.Err != "" || a.Status == 0 {
		return unknown(transportReason(a.Err))
	}
	if o, ok := c.definite(a.Status, a.Attempt); ok {
		return o
	}
	if !succeeds(a.Status) {
		return unknown(fmt.Sprintf("status %d does not say whether it happened", a.Status))
	}
	if reason := c.unreadable(a); reason != "" {
		return unknown(fmt.Sprintf("status %d, but %s", a.Status, reason))
	}
	return c.success(a.Status, action.ProvesCompleted)
}

// Claimed is a receipt as an executor reports it.
type Claimed struct {
	Result  action.Outcome
	Proves  action.Proof
	Status  int    // HTTP status, 0 when there was none
	Code    string // NOT_SENT when nothing was sent
	Attempt int    // number of the attempt, from 1
	Body    []byte // what the system answered; nil when not reported
}

// Judge tells what a reported receipt is worth: at most what it claims, and at
// most what the contract lets such an answer prove.
func (c *Contract) Judge(r Claimed) Outcome {
	switch r.Result {
	case action.Success:
		return c.judgeSuccess(r)
	case action.Failure:
		if r.Code == CodeNotSent && r.Status == 0 {
			return Outcome{Result: action.Failure, Code: CodeNotSent, Reason: "nothing was sent"}
		}
		if o, ok := c.definite(r.Status, r.Attempt); ok {
			return o
		}
		return unknown(fmt.Sprintf("a failure with status %d is not definite under this contract", r.Status))
	}
	return unknown("the executor could not tell")
}

func (c *Contract) judgeSuccess(r Claimed) Outcome {
	if r.Status != 0 && !succeeds(r.Status) {
		return unknown(fmt.Sprintf("a success was claimed on status %d", r.Status))
	}
	if r.Body != nil {
		if reason := c.unreadable(Answer{Status: r.Status, Body: r.Body, ContentType: "application/json"}); reason != "" {
			return unknown("a success was claimed, but " + reason)
		}
	}
	claimed := r.Proves
	if claimed == action.ProvesNothing {
		claimed = action.ProvesAccepted
	}
	return c.success(r.Status, claimed)
}

func (c *Contract) success(status int, claimed action.Proof) Outcome {
	proof := weaker(claimed, c.Execution.Proves)
	if status == 202 { // RFC 9110: accepted, not completed
		proof = weaker(proof, action.ProvesAccepted)
	}
	return Outcome{Result: action.Success, Proves: proof, Reason: "the system answered as promised"}
}

// definite tells whether a status proves that nothing happened.
func (c *Contract) definite(status, attempt int) (Outcome, bool) {
	switch {
	case attempt <= 1 && slices.Contains(c.Execution.Conflicts, status):
		return Outcome{Result: action.Failure, Conflict: true, Reason: fmt.Sprintf("status %d: the object has another version", status)}, true
	case slices.Contains(c.Execution.DefiniteFailures, status):
		return Outcome{Result: action.Failure, Reason: fmt.Sprintf("status %d is a definite refusal", status)}, true
	}
	return Outcome{}, false
}

// Absent reports whether a status proves that what was asked for is not there:
// 404 and 410, where the contract lists them as definite.
func (c *Contract) Absent(status int) bool {
	return (status == http.StatusNotFound || status == http.StatusGone) && slices.Contains(c.Execution.DefiniteFailures, status)
}

// Missed reports whether a status proves that the business system has executed
// nothing under the key that it was asked about: 404 and 410, where the contract
// says that they do (authoritative_miss).
func (q StatusQuery) Missed(status int) bool {
	return q.AuthoritativeMiss && (status == http.StatusNotFound || status == http.StatusGone)
}

// unreadable tells why a success does not read as promised, "" when it does.
func (c *Contract) unreadable(a Answer) string {
	if len(a.Body) == 0 {
		if c.output != nil {
			return "the promised answer is empty"
		}
		return ""
	}
	if !json.Valid(a.Body) {
		return "the answer is not JSON"
	}
	if c.output == nil {
		return ""
	}
	if a.ContentType != "" && !strings.Contains(a.ContentType, "json") {
		return "the answer is not JSON"
	}
	if err := c.ValidateOutput(a.Body); err != nil {
		return "the answer is not what the contract promises"
	}
	return ""
}

// succeeds reports whether a status says that the request as a whole was
// taken. Partial (206) and several (207, 208) outcomes do not.
func succeeds(status int) bool { return status >= 200 && status <= 205 }

func unknown(reason string) Outcome {
	return Outcome{Result: action.Unknown, Code: CodeExecutionError, Reason: reason}
}

func transportReason(err string) string {
	switch err {
	case ErrTimeout:
		return "no answer in time"
	case ErrReset:
		return "the connection broke after the request was sent"
	case ErrBody:
		return "the answer broke off"
	}
	return "there was no readable answer"
}
