package handlers

import (
	"time"

	"countersign/action"
	"countersign/web"
)

// missedOf are readings in a row that showed nothing; the last of them is o.
func missedOf(o action.Observation, times int) web.Missed {
	return web.Missed{From: systemOf(o.Tool), Times: times, Last: o.ObservedAt, Status: o.Wire.Status, Code: o.Wire.Code, Other: o.Other}
}

// stallOf is why an approved action was taken and could not be run; nil when it was
// not, or runs.
func stallOf(a action.Action, now time.Time) *web.Wait {
	state := a.StateAt(now)
	if a.Stall.Times == 0 || !state.In(action.Confirmed, action.Expired) {
		return nil
	}
	w := &web.Wait{Tries: a.Stall.Times, Why: web.Outside(a.Stall.Why), Over: state == action.Expired}
	if o, ok := a.StalledBy(); ok {
		m := missedOf(o, 1)
		w.Missed = &m
	}
	if _, next := a.NextWork(); state == action.Confirmed && next.Before(a.Confirmation.ExpiresAt) {
		w.Next = next
	}
	return w
}
