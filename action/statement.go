package action

import "time"

// Level is what has been proven to a customer; sentences follow from it.
type Level string

// The levels of a statement.
const (
	LevelNotSubmitted Level = "not_submitted"
	LevelAccepted     Level = "accepted"
	LevelQueued       Level = "queued"
	LevelCompleted    Level = "completed"
	LevelPartial      Level = "partial"
	LevelFailed       Level = "failed"
	LevelUnknown      Level = "unknown"
)

// Statement returns the level that the evidence reaches at a moment, and
// whether people still have to decide.
func (a Action) Statement(now time.Time) (level Level, waiting bool) {
	switch a.StateAt(now) {
	case Executing:
		return LevelUnknown, false
	case ResultUnknown:
		if v := a.Case.Verdict; v != nil && v.Verdict == Partly {
			return LevelPartial, false
		}
		return LevelUnknown, false
	case Accepted:
		if a.Proven == ProvesQueued {
			return LevelQueued, false
		}
		return LevelAccepted, false
	case Applied:
		return LevelCompleted, false
	case Failed, Conflict:
		if a.Executions() > 0 {
			return LevelFailed, false
		}
		return LevelNotSubmitted, false
	case Proposed:
		return LevelNotSubmitted, true
	}
	return LevelNotSubmitted, false
}

// Work is a kind of work that an executor should do on an action.
type Work string

// The kinds of work. WorkNone means there is nothing to do.
const (
	WorkNone    Work = ""
	WorkObserve Work = "observe"
	WorkExecute Work = "execute"
	WorkVerify  Work = "verify"
)

// Work says what an executor should do now.
func (a Action) Work() Work {
	switch a.State {
	case Proposed:
		if _, read := a.Before(); a.Terms.Before != "" && !read && a.failedReads() < maxReads {
			return WorkObserve
		}
	case Confirmed:
		return WorkExecute
	case Accepted:
		if a.Terms.Verify && a.Proven == ProvesCompleted {
			return WorkVerify
		}
	}
	return WorkNone
}

// maxReads bounds how often an object is read in vain before people decide.
const maxReads = 3

func (a Action) failedReads() int {
	n := 0
	for _, o := range a.Observations {
		if o.Failed && o.Revision == a.Revision {
			n++
		}
	}
	return n
}
