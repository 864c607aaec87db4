package web

import "time"

// Call is one request to a business system, as the page of its action lists it.
type Call struct {
	Kind    string // attempt, read or ask
	Number  int    // of an attempt
	Step    Text
	Tool    Text
	Version int // of the contract; 0 when nobody told
	Digest  string
	By      Text
	At      time.Time
	Took    time.Duration // 0 when nobody told
	Result  string
	Status  int
	Ref     Text // the business system's name for it
}

func (c Call) what() Msg {
	if c.Kind == "attempt" {
		return msg("calls.attempt", "number", c.Number)
	}
	return msg("calls." + c.Kind)
}

func (c Call) result() Msg {
	m := msg(firstKnown("calls.result."+c.Result, "calls.result.else"), "result", code{Outside(c.Result)})
	if c.Status > 0 {
		return msg("list.comma", "a", m, "b", code{c.Status})
	}
	return m
}
