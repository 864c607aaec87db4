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
	if a.Unreadable != nil {
		return LevelUnknown, false
	}
	switch a.StateAt(now) {
	case Executing:
		return LevelUnknown, false
	case ResultUnknown:
		if v := a.Case.Verdict; v != nil && v.Verdict == Partly || a.Partly() {
			return LevelPartial, false
		}
		if a.Case.Kind == CaseUnknown && a.Executions() == 0 {
			return LevelNotSubmitted, false // it was to undo another action, and could not be begun
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
