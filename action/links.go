package action

import "time"

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
