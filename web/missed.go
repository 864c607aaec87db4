package web

import (
	"strconv"
	"time"
)

// Missed is readings in a row that showed nothing.
type Missed struct {
	From   Text // the business system; empty is "the system"
	Times  int
	Last   time.Time
	Status int    // HTTP status of the last answer; 0 when there was none, or nobody told
	Code   string // of the last: EXECUTION_ERROR when it was asked, TOOL_UNAVAILABLE when it could not be, "" when the status says it
	Other  bool   // the last showed another object
}

// words says how often it was asked and what came of it.
func (m Missed) words() Msg {
	return msg("missed.line", "n", m.Times, "at", shown{m.Last, Minute}, "what", m.answer())
}

// answer is what came of the last.
func (m Missed) answer() Msg {
	key := "missed.untold"
	switch {
	case m.Other:
		key = "missed.else"
	case m.Status >= 200 && m.Status < 300:
		key = "missed.unreadable"
	case m.Status > 0:
		key = firstKnown("missed.status_"+strconv.Itoa(m.Status), "missed.status")
	case m.Code == "EXECUTION_ERROR":
		key = "missed.silent"
	case m.Code != "":
		key = "missed.unasked"
	}
	return msg(key, "from", systemWords(m.From), "status", m.Status)
}

// Wait is why an approved action has not run, although an executor took it.
type Wait struct {
	Tries  int
	Missed *Missed   // the reading that showed nothing; nil when it was not that
	Why    Text      // as the executor said, without Missed
	Next   time.Time // when it is offered to executors again; zero when its time is over before
	Over   bool      // it has ended meanwhile
}

// words says why it waits, how often it was tried and when it is again.
func (w Wait) words() Msg {
	why := msg("wait.said", "why", w.Why)
	switch {
	case w.Missed != nil:
		why = w.Missed.answer()
	case w.Why.Empty():
		why = msg("wait.untold")
	}
	key := "wait.next"
	switch {
	case w.Over:
		key = "wait.over"
	case w.Next.IsZero():
		key = "wait.last"
	}
	return msg(key, "why", why, "n", w.Tries, "at", shown{w.Next, Minute})
}
