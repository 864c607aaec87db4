package execution

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// Problem is what the console said no with, or why nothing was heard of it.
type Problem struct {
	api.Problem               // Status is 0 when there was no answer
	RetryAfter  time.Duration // what the console asked for; 0: nothing
	cause       error
}

// Error is the code and the console's sentence.
func (p *Problem) Error() string {
	text := p.Code + ": " + cmp.Or(p.Detail, p.Title, http.StatusText(p.Status))
	if p.cause != nil {
		text += " (" + p.cause.Error() + ")"
	}
	return text
}

// Unwrap returns what broke underneath, e.g. a context's error.
func (p *Problem) Unwrap() error { return p.cause }

// Unsettled reports whether the call may or may not have had its effect: the
// same call, under the same key or id, tells.
func (p *Problem) Unsettled() bool {
	definite := p.Has(action.ToolUnavailable, action.Paused)
	return p.Status == 0 || p.Status >= http.StatusInternalServerError && !definite
}

// Has reports whether the problem has one of the codes.
func (p *Problem) Has(codes ...action.Code) bool { return slices.Contains(codes, action.Code(p.Code)) }

// AsProblem returns the problem in err's chain.
func AsProblem(err error) (*Problem, bool) {
	var p *Problem
	return p, errors.As(err, &p)
}

// HasCode reports whether err is a problem with one of the codes.
func HasCode(err error, codes ...action.Code) bool {
	p, ok := AsProblem(err)
	return ok && p.Has(codes...)
}

// unanswered is a call of which nothing was heard.
func unanswered(method string, err error) *Problem {
	p := &Problem{cause: err}
	p.Code, p.Detail = string(action.OutcomeUnknown), "The console did not answer, so it is not known whether this took effect. Repeat it with the same key."
	if method == http.MethodGet {
		p.Code, p.Detail = "unreachable", "The console did not answer."
	}
	return p
}

// refused reads an answer that is no success. Whatever stands between client
// and console may answer without a problem document.
func (a answer) refused() *Problem {
	p := &Problem{RetryAfter: a.retryAfter}
	if a.decode(&p.Problem) != nil {
		p.Problem = api.Problem{}
	}
	p.Status = a.status
	if p.Code == "" && p.Type != "" {
		p.Code = path.Base(p.Type)
	}
	if p.Code == "" {
		p.Code = string(plainCode(a.status))
		p.Detail = fmt.Sprintf("The console's address answered with status %d and no explanation.", a.status)
	}
	return p
}

// plainCode names a status that came without a problem document.
func plainCode(status int) action.Code {
	switch status {
	case http.StatusUnauthorized:
		return action.Unauthorized
	case http.StatusForbidden:
		return action.Forbidden
	case http.StatusNotFound:
		return action.NotFound
	case http.StatusRequestEntityTooLarge:
		return action.TooLarge
	case http.StatusTooManyRequests:
		return action.RateLimited
	}
	if status >= http.StatusInternalServerError {
		return action.OutcomeUnknown
	}
	return action.Malformed
}
