package mcpserver

import (
	"errors"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
)

// refusal is what an agent is told when something is not done.
type refusal struct {
	Code      string            `json:"code"`
	Detail    string            `json:"detail"`
	WayOut    string            `json:"way_out"`
	Errors    []api.FieldError  `json:"errors,omitempty"` // places in the arguments, by JSON Pointer
	Reason    string            `json:"reason,omitempty"`
	Args      map[string]string `json:"args,omitempty"`
	Wait      int               `json:"wait_seconds,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
}

// refusalOf tells an error: of what is neither the console's nor ours to say,
// only that it happened.
func refusalOf(err error) refusal {
	if p, ok := execution.AsProblem(err); ok {
		return refusal{Code: p.Code, Detail: p.Detail, WayOut: wayOut(action.Code(p.Code)), Errors: p.Errors, Reason: p.Reason, Args: p.Args,
			Wait: int(p.RetryAfter / time.Second), RequestID: p.RequestID}
	}
	var r *action.Refusal
	if !errors.As(err, &r) {
		r = action.Refuse(action.Internal, "Something went wrong between you and the console.")
	}
	told := refusal{Code: string(r.Code), Detail: r.Detail, WayOut: wayOut(r.Code), Reason: r.Reason, Args: r.Args}
	for _, e := range r.Errors {
		told.Errors = append(told.Errors, api.FieldError{Pointer: e.Pointer, Detail: e.Detail})
	}
	return told
}

// wayOut is what an agent can do after a refusal.
func wayOut(code action.Code) string {
	switch code {
	case action.Malformed, action.InvalidPayload, action.InvalidArgument:
		return "Correct the places that the errors name, and call again."
	case action.UnknownTool, action.NotFound:
		return "Use a name or an id as list_tools or propose_action answered it. What you may not see is not there."
	case action.Unauthorized:
		return "Tell the user that the API key is not accepted. Trying again does not help."
	case action.Forbidden:
		return "Tell the user that this agent may not do it. Trying again does not help."
	case action.IdempotencyKeyReused, action.IdempotencyKeyInUse:
		return "Look at the action that args.action names. For another wish, give another idempotency_key."
	case action.DuplicateOpenAction:
		return "The same is open already. Wait for what becomes of it."
	case action.TargetBlocked:
		return "It is not known what became of another action on the same object. Wait until people have settled it, and tell the user so."
	case action.VersionConflict, action.StaleRevision:
		return "The object has changed. Read it again, and propose what is right now."
	case action.Paused, action.ToolUnavailable:
		return "Tell the user that this is stopped for now. Do not look for another way to do it."
	case action.RateLimited:
		return "Wait as long as wait_seconds says, and call again."
	case action.BudgetExhausted:
		return "Stop, and tell the user what was done and what was not. A person may extend the task."
	case action.TooLarge:
		return "Send less, such as a reference to the content."
	case action.OutcomeUnknown, action.Internal, "unreachable": // what a client says of a read that nobody answered
		return "Call again with the same arguments: it takes effect once. If it stays so, tell the user."
	}
	return "Calling again with the same arguments does not help. Look at the action with get_action, and tell the user what became of it."
}
