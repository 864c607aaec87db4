package action

import (
	"slices"
	"strconv"
	"time"
)

// To returns the action that the links lead to, and by which name: compensates,
// resumes or replaces. Both are empty when there is none.
func (l Links) To() (id, how string) {
	switch {
	case l.Compensates != "":
		return l.Compensates, LinkCompensates
	case l.Resumes != "":
		return l.Resumes, LinkResumes
	}
	if l.Replaces != "" {
		how = LinkReplaces
	}
	return l.Replaces, how
}

// How one action belongs to another.
const (
	LinkCompensates = "compensates" // undoes what it did
	LinkResumes     = "resumes"     // does what is left of it
	LinkReplaces    = "replaces"    // is wanted in its stead
)

// Follow refuses an action that is to follow this one while it could still take
// effect, or when there is nothing to follow.
func (s Snapshot) Follow(how string) error {
	a := s.Action
	state := a.StateAt(s.Now)
	refuse := func(reason, detail string) *Refusal {
		return Refuse(WrongState, "Action "+a.ID+" "+detail).Because(reason).With("action", a.ID).With("state", string(state))
	}
	switch {
	case state.In(Draft, Proposed, Confirmed):
		return refuse("link-open", "has not run and still may. Cancel it first.")
	case state == Executing, state == Accepted && a.awaitsCompletion():
		return refuse("link-running", "is still being carried out. Wait for its outcome.")
	case state == ResultUnknown && !s.fenced():
		until := a.FencedAt().UTC().Format(time.RFC3339)
		return refuse("link-fence", "has no known outcome and can take effect until "+until+". Try again after that.").With("until", until)
	case how == LinkCompensates && state.In(Failed, Conflict, Rejected, Cancelled, Expired):
		return refuse("link-nothing", "did nothing that could be undone.")
	case how == LinkReplaces && state.In(Accepted, Applied):
		return refuse("link-done", "was carried out. Compensate it first.")
	}
	return nil
}

// Left returns which of these steps are left to do after this action, whose
// outcome is known of each of them.
func (s Snapshot) Left(steps []StepTerms) ([]StepTerms, error) {
	missing, known := s.Action.Missing()
	if !known {
		return nil, Refuse(WrongState, "It is not known whether every step of action "+s.Action.ID+" was done. Find that out first.").
			Because("link-unknown").With("action", s.Action.ID)
	}
	var left []StepTerms
	for _, t := range steps {
		if slices.ContainsFunc(missing, func(m StepTerms) bool { return m.Name == t.Name }) {
			left = append(left, t)
		}
	}
	if len(left) == 0 {
		return nil, Refuse(WrongState, "Nothing of action "+s.Action.ID+" is left to do.").Because("link-complete").With("action", s.Action.ID)
	}
	return left, nil
}

// Ended reports whether the action has taken effect as far as its contract can
// prove.
func (a Action) Ended() bool {
	return a.State == Applied || a.State == Accepted && !a.awaitsCompletion()
}

// Produced is the version of the object that the action left behind, "" when no
// answer told it.
func (a Action) Produced() string {
	for i := len(a.Receipts) - 1; i >= 0; i-- {
		if r := a.Receipts[i]; r.Outcome == Success && r.ObjectVersionAfter != "" {
			return r.ObjectVersionAfter
		}
	}
	return ""
}

// notDone is where an action ends that was sent and has definitely failed, and
// why a case opens: one that undoes another leaves the object as it should not
// be, which people have to look at after that one try.
func (a Action) notDone() (State, string) {
	if a.Links.Compensates != "" {
		return ResultUnknown, WhyCompensation
	}
	return Failed, ""
}

// afterLate is where a success leads that proves more than was known, of an
// action that another one has undone meanwhile: which of the two the object
// shows now, nobody knows.
func (s Snapshot) afterLate(p Proof, by string, to State, why string) (State, string) {
	if by == "" || !s.Action.proves(p) || !s.Action.State.In(ResultUnknown, Failed) {
		return to, why
	}
	return ResultUnknown, WhyCompensated
}

func (c Conclude) op() string                  { return "linked:" + c.Linked }
func (c Conclude) again(Snapshot, Event) error { return nil }

// The failure codes of an action that was done in part and did not stay so.
const (
	Compensated = "COMPENSATED" // what was done of it was undone
	Replaced    = "REPLACED"    // another action was done in its stead
)

func concludedCode(how string) string {
	switch how {
	case LinkCompensates:
		return Compensated
	case LinkReplaces:
		return Replaced
	}
	return ""
}

// decide closes what was done in part: as done when the rest is done by the
// other action, as far as that can be proven; as not done when the other action
// has undone the part, or is done in its stead. One that did not take effect
// closes nothing. What was not done in part is left to people: no executor goes
// on with it beside the other action.
func (c Conclude) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.need("concluded", ResultUnknown); err != nil {
		return Transition{}, err
	}
	ended := c.Outcome.In(Applied, Accepted)
	if ended && !a.Partly() && a.awaitsRetry() {
		op := c.op() + ":" + strconv.FormatInt(a.Version, 10)
		return s.step(op, c.By, KindConcluded, ResultUnknown, concluded{Linked: c.Linked, How: c.How}, nil)
	}
	if !ended || !a.Partly() || !s.fenced() {
		return Transition{}, Refuse(WrongState, "It was not done in part, or the linked action has not taken effect.").Because("not-partly")
	}
	to := Failed
	if c.How == LinkResumes {
		if to = c.Outcome; a.Terms.Proves != ProvesCompleted {
			to = Accepted
		}
	}
	return s.step(c.op(), c.By, KindConcluded, to, concluded{Linked: c.Linked, How: c.How}, nil)
}
