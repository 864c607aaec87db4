package action

import (
	"errors"
	"maps"
)

// Code names a kind of refusal. It is the last segment of the problem type
// that an API caller sees (RFC 9457), and the key of the page's words.
type Code string

// Every refusal the product can give. The HTTP status belongs to the handlers.
const (
	Malformed             Code = "malformed"
	MissingIdempotencyKey Code = "missing-idempotency-key"
	Unauthorized          Code = "unauthorized"
	Forbidden             Code = "forbidden"
	NotFound              Code = "not-found"
	UnknownTool           Code = "unknown-tool"
	StaleRevision         Code = "stale-revision"
	VersionConflict       Code = "version-conflict"
	WrongState            Code = "wrong-state"
	AlreadyClaimed        Code = "already-claimed"
	LeaseLost             Code = "lease-lost"
	AttemptOpen           Code = "attempt-open"
	AlreadyDecided        Code = "already-decided"
	DuplicateOpenAction   Code = "duplicate-open-action"
	TargetBlocked         Code = "target-blocked"
	IdempotencyKeyInUse   Code = "idempotency-key-in-use"
	ExpiredCode           Code = "expired"
	TooLarge              Code = "too-large"
	PreconditionRequired  Code = "precondition-required"
	InvalidPayload        Code = "invalid-payload"
	InvalidArgument       Code = "invalid-argument"
	IdempotencyKeyReused  Code = "idempotency-key-reused"
	RateLimited           Code = "rate-limited"
	BudgetExhausted       Code = "budget-exhausted"
	ToolUnavailable       Code = "tool-unavailable"
	Paused                Code = "paused"
	OutcomeUnknown        Code = "outcome-unknown"
	Internal              Code = "internal"
)

// FieldError names one wrong place in a request.
type FieldError struct {
	Pointer string `json:"pointer"` // JSON Pointer (RFC 6901) into the body; "" is the whole body
	Detail  string `json:"detail"`  // what is wrong there and the way out, safe to show
}

// Refusal is the one error type that may reach a user. Nothing in it is
// internal: Detail, Args and Errors are all safe to show.
type Refusal struct {
	Code   Code
	Reason string            // finer key for the page's words, e.g. "self-approval"; may be empty
	Detail string            // one English sentence for API callers, with the way out
	Args   map[string]string // values the words refer to, e.g. "by": "Mia Chen"
	Errors []FieldError
	cause  error
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

// Unwrap returns the internal cause, for logs only.
func (r *Refusal) Unwrap() error { return r.cause }

// Refuse makes a refusal.
func Refuse(code Code, detail string) *Refusal { return &Refusal{Code: code, Detail: detail} }

// Because sets the finer key of the words.
func (r *Refusal) Because(reason string) *Refusal { r.Reason = reason; return r }

// With adds a value that the words refer to.
func (r *Refusal) With(key, value string) *Refusal {
	r.Args = maps.Clone(r.Args)
	if r.Args == nil {
		r.Args = map[string]string{}
	}
	r.Args[key] = value
	return r
}

// At adds a wrong place.
func (r *Refusal) At(pointer, detail string) *Refusal {
	r.Errors = append(r.Errors, FieldError{pointer, detail})
	return r
}

// From keeps an internal cause for the log. It is never shown.
func (r *Refusal) From(err error) *Refusal { r.cause = err; return r }

// AsRefusal returns the refusal in err's chain, or an internal one that
// hides err's text.
func AsRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return Refuse(Internal, "Something went wrong on our side. Nothing is lost: repeat the request with the same key.").From(err)
}

// Refused reports whether err is a refusal that trying again does not change:
// neither trouble that passes nor a fault of the console.
func Refused(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code != OutcomeUnknown && r.Code != Internal
}

// IsCode reports whether err is a refusal of the given kind.
func IsCode(err error, code Code) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code == code
}
