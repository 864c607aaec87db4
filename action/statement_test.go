package action

import (
	"testing"
	"time"
)

func TestStatementLevels(t *testing.T) {
	for name, c := range map[string]struct {
		l       *life
		level   Level
		waiting bool
	}{
		"draft":       {stationLife(t, "draft"), LevelNotSubmitted, false},
		"proposed":    {stationLife(t, "proposed"), LevelNotSubmitted, true},
		"overdue":     {stationLife(t, "proposed").wait(time.Hour), LevelNotSubmitted, false},
		"confirmed":   {stationLife(t, "confirmed"), LevelNotSubmitted, false},
		"claimed":     {stationLife(t, "claimed"), LevelUnknown, false},
		"sent":        {stationLife(t, "sent"), LevelUnknown, false},
		"accepted":    {stationLife(t, "accepted"), LevelAccepted, false},
		"verifying":   {stationLife(t, "verifying"), LevelAccepted, false},
		"applied":     {stationLife(t, "applied"), LevelCompleted, false},
		"failed":      {stationLife(t, "failed"), LevelFailed, false},
		"conflict":    {stationLife(t, "conflict"), LevelFailed, false},
		"unknown":     {stationLife(t, "unknown"), LevelUnknown, false},
		"settling":    {stationLife(t, "settling"), LevelUnknown, false},
		"mismatch":    {stationLife(t, "mismatch"), LevelUnknown, false},
		"retried":     {newLife(t).retried(), LevelUnknown, false},
		"rejected":    {stationLife(t, "rejected"), LevelNotSubmitted, false},
		"cancelled":   {stationLife(t, "cancelled"), LevelNotSubmitted, false},
		"expired":     {stationLife(t, "expired"), LevelNotSubmitted, false},
		"queued":      {afterDo(t, newLife(t).sent(), Accepted, func(l *life) Command { return l.receipt("t1", Success, ProvesQueued) }), LevelQueued, false},
		"partly":      {afterDo(t, newLife(t).unknown(), ResultUnknown, func(l *life) Command { return l.settle(Partly) }), LevelPartial, false},
		"given up":    {afterDo(t, newLife(t).claimed(), Failed, func(*life) Command { return Release{Op: "r", By: executor, ClaimID: "c1", Code: "X"} }), LevelNotSubmitted, false},
		"never left":  {afterDo(t, newLife(t).sent(), Failed, func(l *life) Command { return l.failure("t1", NotSent, false) }), LevelNotSubmitted, false},
		"moved":       {afterDo(t, newLife(t).confirmed(), Conflict, func(l *life) Command { return l.reading("8", "") }), LevelNotSubmitted, false},
		"not ours":    {afterDo(t, newLife(t).confirmed(), ResultUnknown, func(l *life) Command { return l.evidence(FoundSucceeded, "") }), LevelUnknown, false},
		"found done":  {afterDo(t, newLife(t).unknown(), Applied, func(l *life) Command { return l.settle(Happened) }), LevelCompleted, false},
		"found taken": {foundTaken(t), LevelAccepted, false},
	} {
		level, waiting := c.l.a.Statement(c.l.now)
		if level != c.level || waiting != c.waiting {
			t.Errorf("%s: %q, waiting %v; want %q, %v", name, level, waiting, c.level, c.waiting)
		}
	}
}

func afterDo(t *testing.T, l *life, to State, c func(*life) Command) *life {
	t.Helper()
	l.do(c(l), to)
	return l
}

func foundTaken(t *testing.T) *life {
	l := newLife(t)
	l.terms.Proves = ProvesAccepted
	l.unknown().do(l.settle(Happened), Accepted)
	return l
}

func TestWork(t *testing.T) {
	want := map[string]Work{"confirmed": WorkExecute, "verifying": WorkVerify, "unknown": WorkRetry}
	for name := range stations() {
		if got := stationLife(t, name).a.Work(); got != want[name] {
			t.Errorf("%s: work %q, want %q", name, got, want[name])
		}
	}
}

func TestWorkReadsBeforePeopleDecide(t *testing.T) {
	l := newLife(t)
	l.terms.Before = "catalog.get_product"
	l.proposed()
	failed := func() AddObservation { c := l.reading("", ""); c.Observation.Failed = true; return c }
	for range 3 {
		if w := l.a.Work(); w != WorkObserve {
			t.Fatalf("work %q", w)
		}
		l.do(failed(), Proposed)
	}
	if w := l.a.Work(); w != WorkNone {
		t.Errorf("work %q after three reads in vain", w)
	}
	l.do(l.revise(), Proposed)
	if w := l.a.Work(); w != WorkObserve {
		t.Errorf("work %q for a new revision", w)
	}
	l.do(l.reading("8", ""), Proposed)
	if w := l.a.Work(); w != WorkNone {
		t.Errorf("work %q after it was read", w)
	}
}
