package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"countersign/action"
	"countersign/execution/api"
)

// methodNotAllowed is the one refusal that only HTTP knows.
const methodNotAllowed action.Code = "method-not-allowed"

// kind is how a refusal is told over HTTP.
type kind struct {
	code   action.Code
	status int
	title  string
	means  string // and the way out
}

// kinds are all refusals, in the order of their status.
func kinds() []kind {
	return []kind{
		{action.Malformed, 400, "The request cannot be read", "Body, header or address are not written the way they must be. Nothing was done. Correct what the detail names."},
		{action.MissingIdempotencyKey, 400, "The Idempotency-Key is missing", "A proposal needs the header Idempotency-Key, so that repeating it takes effect once. Send a value that names what you want done."},
		{action.Unauthorized, 401, "Who you are is not known", "The API key is missing, unknown, expired or revoked, or you are not signed in."},
		{action.Forbidden, 403, "You may not do this", "You are known, but your roles or limits do not include this. The reason says which of them."},
		{action.NotFound, 404, "Not found", "There is no such thing, or you may not see it."},
		{action.UnknownTool, 404, "No such tool", "There is no tool of this name that you may use. GET /v1/tools lists them."},
		{methodNotAllowed, 405, "The address does not take this method", "The header Allow lists the methods that it takes."},
		{action.StaleRevision, 409, "The content has changed", "What you refer to is not what is there now. Read it again and decide anew."},
		{action.VersionConflict, 409, "The object has another version", "The version of the business object is not the one that was approved."},
		{action.WrongState, 409, "Not in this state", "The action is in a state in which this cannot be done."},
		{action.AlreadyClaimed, 409, "Already claimed", "Another executor has claimed the confirmation."},
		{action.LeaseLost, 409, "The claim is over", "The claim is not live any more. Do not send; report what you know, it is taken as evidence."},
		{action.AttemptOpen, 409, "An attempt is open", "An earlier attempt has no outcome yet. Report its receipt first."},
		{action.AlreadyDecided, 409, "Already decided", "Somebody has decided on this already."},
		{action.DuplicateOpenAction, 409, "The same is open already", "The same actor, tool, target and payload are open as another action, which is named."},
		{action.TargetBlocked, 409, "The target is blocked", "The result of another action on the same object is not known yet. It has to be settled first."},
		{action.IdempotencyKeyInUse, 409, "The id was used for something else", "An id that names a request was used before with other content. Use a new one for something new."},
		{action.ExpiredCode, 410, "Expired", "The time for this is over. Propose it again if it is still wanted."},
		{action.TooLarge, 413, "Too large", "Send a reference to large content instead of the content."},
		{action.InvalidPayload, 422, "The payload is refused", "The errors name the places by JSON Pointer, and the way out."},
		{action.InvalidArgument, 422, "The request is refused", "The errors name the places, and the way out."},
		{action.IdempotencyKeyReused, 422, "The Idempotency-Key was used for another request", "The same key means the same request. Use a new key for a new request."},
		{action.PreconditionRequired, 428, "If-Match is missing", "Send the version that you have read as If-Match: \"7\", so that you change what you saw."},
		{action.RateLimited, 429, "Too many", "Wait as long as Retry-After says."},
		{action.BudgetExhausted, 429, "The budget is used up", "The task's budget does not allow more."},
		{action.Internal, 500, "Something went wrong here", "Nothing is lost: repeat the request with the same key, and tell the operator the request_id."},
		{action.ToolUnavailable, 503, "The tool is not available", "The tool was taken out of use, or cannot be reached."},
		{action.Paused, 503, "Paused", "An operator has paused this."},
		{action.OutcomeUnknown, 503, "It is not known whether this took effect", "Repeat the request with the same key or id: it takes effect once."},
	}
}

// kindOf returns how a code is told.
func kindOf(code action.Code) kind {
	all := kinds()
	if i := slices.IndexFunc(all, func(k kind) bool { return k.code == code }); i >= 0 {
		return all[i]
	}
	return kind{code: code, status: http.StatusInternalServerError, title: "Something went wrong here"}
}

// fail answers with what went wrong, as a page or as a problem document. Of an
// error that is no refusal only the log learns more.
func (s *server) fail(w http.ResponseWriter, r *http.Request, page bool, c caller, err error) {
	x := exchangeOf(r)
	refusal := action.AsRefusal(err)
	x.code, x.cause = refusal.Code, errors.Unwrap(refusal)
	if errors.Is(r.Context().Err(), context.Canceled) {
		return // whoever asked is gone
	}
	if written(w) {
		x.cause, x.cut = err, true // nothing more can be said in an answer that has begun
		return
	}
	w.Header().Del("Content-Disposition") // a refusal is no file
	if wait := refusal.Args["retry_after"]; wait != "" {
		w.Header().Set("Retry-After", wait)
	} else if refusal.Code == action.OutcomeUnknown || refusal.Code == action.RateLimited {
		w.Header().Set("Retry-After", "1")
	} else if refusal.Code == action.Paused {
		w.Header().Set("Retry-After", "30")
	}
	if page {
		s.refusePage(w, r, c, kindOf(refusal.Code).status, refusal)
		return
	}
	s.refuseProblem(w, r, refusal)
}

// written reports whether an answer has begun.
func written(w http.ResponseWriter) bool {
	answer, ok := w.(interface{ Status() int })
	return ok && answer.Status() != 0
}

func (s *server) refuseProblem(w http.ResponseWriter, r *http.Request, refusal *action.Refusal) {
	k := kindOf(refusal.Code)
	p := api.Problem{Type: "/problems/" + string(refusal.Code), Title: k.title, Status: k.status, Detail: refusal.Detail,
		Code: string(refusal.Code), Reason: refusal.Reason, Args: refusal.Args, RequestID: requestID(r)}
	for _, e := range refusal.Errors {
		p.Errors = append(p.Errors, api.FieldError{Pointer: e.Pointer, Detail: e.Detail})
	}
	w.Header().Del("ETag")
	w.Header().Set("Content-Type", "application/problem+json")
	if err := send(w, k.status, p); err != nil {
		exchangeOf(r).cause = err
	}
}

// respond answers with JSON.
func respond(w http.ResponseWriter, status int, body any) error {
	w.Header().Set("Content-Type", "application/json")
	return send(w, status, body)
}

// send writes JSON as it is: without HTML escapes, so that payload bytes stay
// what they are.
func send(w http.ResponseWriter, status int, body any) error {
	text, err := encodeJSON(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	return nil
}

func encodeJSON(body any) ([]byte, error) {
	var text jsonText
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return text, nil
}

type jsonText []byte

func (t *jsonText) Write(p []byte) (int, error) { *t = append(*t, p...); return len(p), nil }

// showProblem tells people what a problem type means.
func (s *server) showProblem(w http.ResponseWriter, r *http.Request, _ caller) error {
	code := action.Code(parameter(r, "code"))
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.code == code })
	if i < 0 {
		return action.Refuse(action.NotFound, "There is no problem of this name.")
	}
	k := kinds()[i]
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, err := fmt.Fprintf(w, "%s (HTTP status %d)\n\n%s\n\n%s\n", k.code, k.status, k.title, k.means)
	return err
}
