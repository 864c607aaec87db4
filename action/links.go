package action

import (
	"fmt"
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

// MayFollow refuses to send an action that was to follow another one and may not
// now, or not any more: the other has done meanwhile what this one was to do, or
// nothing that this one could undo, or is being carried out itself; or a third one
// has followed it. Of an action that follows none it is nil.
func (s Snapshot) MayFollow() error {
	a := s.Action
	id, how := a.Links.To()
	if id == "" {
		return nil
	}
	if s.Original == nil || s.Original.Action.Version == 0 || s.Original.Differs != "" {
		return Refuse(WrongState, "Action "+id+", which this one is linked to, cannot be read.").Because("link-unreadable").With("action", id)
	}
	original := *s.Original
	if how == LinkResumes {
		now, err := original.Resumed(a.Tool, a.Terms)
		if err != nil {
			return err
		}
		if len(now.Steps) != len(a.Terms.Steps) || now.AfterDone != a.Terms.AfterDone {
			return doneMeanwhile(id)
		}
	}
	if err := original.Follow(how); err != nil {
		return err
	}
	if s.Beside != "" {
		return Beside(s.Beside)
	}
	if how == LinkCompensates && a.ObjectVersion != nil {
		return original.Action.Undone(a.ObjectVersion)
	}
	return nil
}

// Beside refuses an action because another one, linked to the same one, has taken
// effect or may have.
func Beside(id string) *Refusal {
	return Refuse(WrongState, "Action "+id+", which is linked to the same action as this one, has taken effect or may have. Only one of them is carried out: what comes after that one is linked to it.").
		Because("link-beside").With("action", id)
}

// toSend is a transition that lets an action be sent, or leads there: it rests on
// the action that this one is linked to, and on what its target shows.
func (s Snapshot) toSend(t Transition) Transition {
	t.Hold = HoldRun
	if s.Original != nil {
		t.Original = s.Original.Action.Version
	}
	return t
}

// Undone refuses a version of the object that is not the one that the action left
// behind: what others did to the object since then stays.
func (a Action) Undone(version *string) error {
	produced := a.Produced()
	if produced == "" || version != nil && *version == produced {
		return nil
	}
	return Refuse(VersionConflict, fmt.Sprintf("A compensation undoes what action %s left behind, which is version %q of the object. If that is not its version any more, others have changed it since.", a.ID, produced)).
		Because("compensation").With("action", a.ID).With("object_version", produced).
		At("/object_version", fmt.Sprintf("must be %q", produced))
}

func doneMeanwhile(original string) error {
	return Refuse(WrongState, "What is left to do of action "+original+" has been done meanwhile, or some of it. Cancel this one, and propose what is left.").
		Because("link-moved").With("action", original)
}

func nothingLeft(original string) error {
	return Refuse(WrongState, "Nothing of action "+original+" is left to do.").Because("link-complete").With("action", original)
}

// Resumed returns the terms of an action of a tool that resumes this one now: by
// the same tool it takes the steps that are left, and as a whole it is refused
// once this one is done; by another tool it goes on from what this one came to.
func (s Snapshot) Resumed(tool string, t Terms) (Terms, error) {
	done := s.Action.State.In(Accepted, Applied)
	var err error
	switch {
	case tool != s.Action.Tool:
		t.AfterDone = done
	case len(t.Steps) > 0:
		t.Steps, err = s.Left(t.Steps)
	case done:
		err = nothingLeft(s.Action.ID)
	}
	return t, err
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
		return nil, nothingLeft(s.Action.ID)
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
// on with it beside the other action, nor with what follows one that has done it.
func (c Conclude) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.need("concluded", ResultUnknown); err != nil {
		return Transition{}, err
	}
	ended := c.Outcome.In(Applied, Accepted)
	original, _ := a.Links.To()
	own := c.Linked == original // and not one that is linked to this one
	if ended && !a.Partly() && a.awaitsRetry() && (!own || s.MayFollow() != nil) {
		op := c.op() + ":" + strconv.FormatInt(a.Version, 10)
		return s.step(op, c.By, KindConcluded, ResultUnknown, concluded{Linked: c.Linked, How: c.How}, nil)
	}
	if own || !ended || !a.Partly() || !s.fenced() {
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
