package web

import "time"

// SignInPage posts to /login: username, password, next.
type SignInPage struct {
	Username Own
	Next     string // a path of ours
	Refused  *Refusal
	Ended    bool // the session is over
}

// SignInLinkPage is where a one-time link leads. Opening it changes nothing;
// its form posts to the link itself.
type SignInLinkPage struct {
	Action   string // path of the link
	Name     Text
	Username Text
	Roles    []string
	Expires  time.Time // zero when it does not
	Refused  *Refusal
}

// ErrorPage tells what went wrong and what to do next.
type ErrorPage struct {
	Status    int // 400, 403, 404, 409, 410, 413, 422, 429, 500, 503
	Refusal   *Refusal
	RequestID string
	Back      string // where to go; "" is the approvals
	RetryIn   time.Duration
}
