package execution

import (
	"errors"
	"fmt"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

// Codes of a ToolError. With the first three nothing was called; with
// ExecutionError the tool was, and whether it worked is not known.
const (
	UnknownTool     = contract.CodeUnknownTool
	InvalidArgument = contract.CodeInvalidArgument
	ToolUnavailable = contract.CodeToolUnavailable
	ExecutionError  = contract.CodeExecutionError
)

// Forbidden is the code of an execution that the business system does not
// allow the actor; it is given up before it starts.
const Forbidden = "FORBIDDEN"

// ToolError says in a form that a program can branch on why a tool was not
// called, or what is wrong with the call.
type ToolError struct {
	Code   string           // see the constants
	Tool   string           // as it was asked for
	Reason string           // one English sentence, safe to show
	Errors []api.FieldError // of InvalidArgument: every wrong place
	cause  error
}

// Error is the code, the tool and the sentence.
func (e *ToolError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Code, e.Tool, e.Reason) }

// Unwrap returns what broke underneath, for logs only.
func (e *ToolError) Unwrap() error { return e.cause }

func toolError(code, tool, reason string, cause error) *ToolError {
	return &ToolError{Code: code, Tool: tool, Reason: reason, cause: cause}
}

// AsToolError translates an error of this package into a ToolError for the
// tool that was asked for: a proposal that the console refuses because of the
// tool or its arguments reads like a direct call. Other refusals (rights,
// states, limits) are no errors of a tool, and not ok.
func AsToolError(err error, tool string) (e *ToolError, ok bool) {
	if errors.As(err, &e) {
		return e, true
	}
	if p, found := AsProblem(err); found {
		code := codeOf(action.Code(p.Code))
		return &ToolError{Code: code, Tool: tool, Reason: p.Detail, Errors: p.Errors, cause: err}, code != ""
	}
	var r *action.Refusal
	if errors.As(err, &r) {
		e := toolError(codeOf(r.Code), tool, r.Detail, err)
		for _, f := range r.Errors {
			e.Errors = append(e.Errors, api.FieldError{Pointer: f.Pointer, Detail: f.Detail})
		}
		return e, e.Code != ""
	}
	return nil, false
}

func codeOf(code action.Code) string {
	switch code {
	case action.UnknownTool:
		return UnknownTool
	case action.InvalidPayload, action.InvalidArgument, action.Malformed, action.TooLarge:
		return InvalidArgument
	case action.ToolUnavailable, action.Paused:
		return ToolUnavailable
	}
	return ""
}
