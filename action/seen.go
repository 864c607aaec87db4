package action

import "time"

// seen is the moment that something observed counts from. Whoever observes it may
// have a clock that is ahead: it was not observed after it arrived.
func seen(observed, arrived time.Time) time.Time {
	if observed.IsZero() || observed.After(arrived) {
		return arrived
	}
	return observed
}

// readingOp names a reading of the object and an answer by key alike: the id of
// an observation counts once, whichever of the two it is taken for.
func readingOp(id string) string { return "observe:" + id }

// sentFrom returns when the first and the last request were recorded that may
// have left, of all, or of the step which an action is seen as (see of); zero
// when none may have.
func (a Action) sentFrom() (first, last time.Time) {
	for _, t := range a.Attempts {
		if t.NotSent {
			continue
		}
		if first.IsZero() {
			first = t.At
		}
		last = t.At
	}
	return first, last
}

// untimely reports whether what was answered proves nothing because of when it was
// observed: before what it would be about, which is every request so far where
// nothing was executed, and otherwise the first as well; or, that nothing was
// executed, in answer to a question by key when that may be forgotten.
func (a Action) untimely(f Found, at time.Time) bool {
	first, last := a.sentFrom()
	switch f.Outcome {
	case FoundUnknown:
		return false // it proves nothing anyway
	case FoundNotExecuted:
		known := a.keyUntil()
		forgotten := f.Source == a.Terms.StatusQuery && !known.IsZero() && !at.Before(known)
		return forgotten || at.Before(last)
	}
	return at.Before(first)
}

// displaced reports whether a reading was observed before the one that stands.
func (a Action) displaced(o Observation) bool {
	stands, found := a.Before()
	return found && o.Seen().Before(stands.Seen())
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
