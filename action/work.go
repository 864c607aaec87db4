package action

import (
	"hash/fnv"
	"time"
)

// Work is a kind of work that an executor should do on an action.
type Work string

// The kinds of work. WorkNone means there is nothing to do.
const (
	WorkNone    Work = ""
	WorkObserve Work = "observe" // read the object before people decide
	WorkExecute Work = "execute" // claim and run
	WorkVerify  Work = "verify"  // read the post-conditions back
	WorkAsk     Work = "ask"     // ask by key what became of the operation
	WorkRetry   Work = "retry"   // send the same once more, under the same key
	WorkList    Work = "list"    // list a window of operations; it belongs to no action
)

// maxReads bounds how often an object is read in vain before people decide.
const maxReads = 3

// Work says what an executor should do.
func (a Action) Work() Work {
	work, _ := a.NextWork()
	return work
}

// NextWork says what an executor should do, and from when, as finely as the
// database counts: a moment between two microseconds would be rounded one way
// in the row and another in the fold.
func (a Action) NextWork() (Work, time.Time) {
	work, at := a.nextWork()
	return work, at.Truncate(time.Microsecond)
}

func (a Action) nextWork() (Work, time.Time) {
	switch a.State {
	case Proposed:
		if _, read := a.Before(); a.Terms.Before != "" && !read {
			if n, last := a.readsInVain(); n < maxReads {
				return WorkObserve, later(a.Since, a.paced(last, n))
			}
		}
	case Confirmed:
		return WorkExecute, a.pacedUpTo(mostStall, a.Since, a.Stall.Times)
	case Accepted:
		if a.Terms.Verify && a.Proven == ProvesCompleted {
			return WorkVerify, a.verifyAt()
		}
		if a.awaitsCompletion() {
			return a.ask()
		}
	case ResultUnknown:
		return a.findOut()
	}
	return WorkNone, time.Time{}
}

// findOut is how an unknown outcome is settled without a person.
func (a Action) findOut() (Work, time.Time) {
	if !a.settles() || a.verdict() != "" || a.pending() != nil {
		if a.Case.AgainAt.IsZero() {
			return WorkNone, time.Time{}
		}
		return a.ask() // because a person wants to know
	}
	if a.awaitsRetry() {
		return WorkRetry, a.paced(a.Since, a.Resumed)
	}
	if _, ok := a.UnreadStep(); ok && a.Case.Why != WhyMismatch {
		if n, last := a.readsOfStep(); n < maxReads {
			return WorkVerify, a.paced(later(a.Since, last), n)
		}
	}
	return a.ask()
}

// UnreadStep returns the step whose success has still to be read back before
// the next begins.
func (a Action) UnreadStep() (Step, bool) {
	s, left := a.next()
	return s, left && s.Verify && s.proven()
}

// readsOfStep counts the readings since the case was opened that did not show
// that the step is done, and says when the last was.
func (a Action) readsOfStep() (n int, last time.Time) {
	s, _ := a.next()
	for _, o := range a.Observations {
		if o.Step == s.Name && !o.At.Before(a.Case.OpenedAt) {
			n, last = n+1, o.At
		}
	}
	return n, last
}

// AskedStep returns the step to ask about by its key: the first whose outcome is
// not known, and when people want to know more, the one that was sent last. False
// when there is none.
func (a Action) AskedStep() (Step, bool) {
	var last Step
	for _, s := range a.Steps {
		one := a.of(s.Name)
		if !s.proven() && a.StepState(s) == StepUnknown {
			return s, true
		}
		if one.Executions() > 0 {
			last = s
		}
	}
	again := a.CaseID() != "" && !a.Case.AgainAt.IsZero()
	return last, len(a.Steps) == 0 || again && last.Name != ""
}

// ask is the next query by key, while there are any left.
func (a Action) ask() (Work, time.Time) {
	n := a.asked()
	step, ok := a.AskedStep()
	if !ok || a.Query(step.Name) == "" || n >= a.Terms.MaxPolls {
		return WorkNone, time.Time{}
	}
	last := later(a.Since, a.askedFrom())
	if len(a.Asks) > 0 && n > 0 {
		last = later(last, a.Asks[len(a.Asks)-1].At)
	}
	return WorkAsk, a.paced(last, n)
}

// Query is the tool that asks about a step by its key; "" when there is none.
func (a Action) Query(step string) string { return a.of(step).Terms.StatusQuery }

// asked counts the queries by key since the latest attempt, or since a person
// asked for more.
func (a Action) asked() int {
	n, from := 0, a.askedFrom()
	for _, q := range a.Asks {
		if q.Found.Source == a.Query(q.Found.Step) && !q.At.Before(from) {
			n++
		}
	}
	return n
}

func (a Action) askedFrom() (from time.Time) {
	if n := len(a.Attempts); n > 0 {
		from = a.Attempts[n-1].At
	}
	if a.CaseID() != "" {
		from = later(from, a.Case.AgainAt)
	}
	return from
}

// Exhausted reports whether an unknown outcome waits for a person: nothing is
// left that could be found out without one. A verdict that waits, for another
// person or for the fence, needs nobody more.
func (a Action) Exhausted() bool {
	return a.State == ResultUnknown && a.Work() == WorkNone && a.pending() == nil && a.verdict() != DidNotHappen
}

// caseWaits is what an open case waits for.
func (a Action) caseWaits() (w struct {
	id             string
	person, second bool
}) {
	if w.id = a.CaseID(); w.id != "" {
		w.person, w.second = a.Exhausted(), a.Case.Pending != nil
	}
	return w
}

// verifyAt spreads the read-backs over the window that the contract gives.
func (a Action) verifyAt() time.Time {
	last := later(a.Since, a.ProvenAt)
	for _, o := range a.Observations {
		if !o.At.Before(last) {
			last = o.At
		}
	}
	if last.Equal(later(a.Since, a.ProvenAt)) {
		return last
	}
	return last.Add(a.Terms.VerifyWindow / time.Duration(max(1, a.Terms.VerifyTries)))
}

// How long is waited after the n-th try, and at most.
const (
	firstPause = 2 * time.Second
	mostPause  = 5 * time.Minute
	mostStall  = time.Minute // an approval does not last
)

// paced is when to try again after n tries: twice as long each time, spread by
// a part that differs from action to action.
func (a Action) paced(last time.Time, n int) time.Time { return a.pacedUpTo(mostPause, last, n) }

func (a Action) pacedUpTo(most time.Duration, last time.Time, n int) time.Time {
	if n == 0 {
		return last
	}
	pause := min(most, firstPause<<min(n-1, 10))
	spread := fnv.New32a()
	spread.Write([]byte(a.ID))
	spread.Write([]byte{byte(n)})
	return last.Add(pause + pause*time.Duration(spread.Sum32()%256)/1024)
}

func (a Action) readsInVain() (int, time.Time) {
	n, last := 0, a.Since
	for _, o := range a.Observations {
		if o.Failed && o.Revision == a.Revision {
			n, last = n+1, o.At
		}
	}
	return n, last
}
