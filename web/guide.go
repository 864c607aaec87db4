package web

// GuidePage leads a newcomer through what the console is for.
type GuidePage struct {
	Op      string
	Steps   []GuideStep
	Refused *Refusal
}

// GuideStep is a danger, and how far it was played.
type GuideStep struct {
	Name   string
	Next   string       // name of the step after it, "" after the last
	Main   *GuideAction // what shows it, nil before it was played
	Rest   *GuideAction // what its turn proposed
	Turns  bool         // something can happen to it meanwhile
	InPart bool         // not before it was done in part
	Turned bool         // and has
	Over   bool         // it can be played no more
}

// GuideAction is an action that a step of the guide is about.
type GuideAction struct {
	ID     string
	CaseID string // "" without an unknown result
	Status Status
	Final  bool // accepted, and nothing more will be known of it
}

// GuideBack is the way back to a step of the guide.
type GuideBack struct {
	Step int // from 1
	Name string
}

// guidePhase is how far a step is, which says what to do next.
type guidePhase string

const (
	guideUnplayed guidePhase = ""
	guideWaits    guidePhase = "waits"   // for a decision
	guideTurned   guidePhase = "turned"  // and has changed meanwhile
	guideRest     guidePhase = "rest"    // the rest waits for a decision
	guideRuns     guidePhase = "runs"    // decided, and more is to come by itself
	guidePart     guidePhase = "part"    // done in part
	guideUnknown  guidePhase = "unknown" // may or may not have happened
	guideMissed   guidePhase = "missed"  // at its end, without what can happen meanwhile
	guideEnd      guidePhase = "end"
	guideNot      guidePhase = "not" // ended without running
)

// live is the action that the step goes on with: the rest while it is wanted.
func (s GuideStep) live() *GuideAction {
	if s.Rest != nil && s.Rest.phase() != guideNot {
		return s.Rest
	}
	return s.Main
}

func (a GuideAction) phase() guidePhase {
	switch state := a.Status.State; {
	case !state.decided():
		return guideWaits
	case state == Unknown && a.Status.How == HowInPart:
		return guidePart
	case state == Unknown:
		return guideUnknown
	case state == Applied, a.Final, state == Failed && (a.Status.How == HowSettled || a.Status.How == HowLinked):
		return guideEnd
	case state == Confirmed, state == Executing, state == Accepted:
		return guideRuns
	}
	return guideNot
}

func (s GuideStep) phase() guidePhase {
	live := s.live()
	if live == nil {
		return guideUnplayed
	}
	switch phase := live.phase(); {
	case phase == guideWaits && live == s.Rest:
		return guideRest
	case phase == guideWaits && s.Turned:
		return guideTurned
	case phase == guideEnd && s.Turns && !s.Turned:
		return guideMissed
	default:
		return phase
	}
}

// turning reports whether it is time for what can happen meanwhile.
func (s GuideStep) turning() bool {
	if s.InPart {
		return s.phase() == guidePart
	}
	return s.Turns && s.phase() == guideWaits
}

// begins reports whether the step can be played, once more if it was before.
func (s GuideStep) begins() bool {
	switch s.phase() {
	case guideUnplayed, guideUnknown, guideMissed, guideEnd, guideNot:
		return !s.Over
	}
	return false
}

// now says what has become of the step, and what to do next.
func (s GuideStep) now() string {
	phase := string(s.phase())
	return firstKnown("guide."+s.Name+"."+phase, "guide.now."+phase)
}
