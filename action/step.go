package action

import (
	"slices"
	"time"
)

// StepTerms is what the life of an action depends on of one step of its
// contract: one of several wire requests, made in their order.
type StepTerms struct {
	Name        string `json:"name"`
	Proves      Proof  `json:"proves"`                 // the most that its success can prove: then it is done
	StatusQuery string `json:"status_query,omitempty"` // tool that asks by its key
	Verify      bool   `json:"verify,omitempty"`       // its own post-conditions are read back before the next begins
}

// Step is a step of an action and what evidence shows of it. An action without
// steps is as if it had one without a name.
type Step struct {
	StepTerms
	Proven   Proof
	Verified bool // a reading of its post-conditions held
	facts
}

// facts are when and by which event most was proven, and how many attempts there
// were, plus one, when the business system said that nothing was executed.
type facts struct {
	provenOp string
	missed   int
}

// StepState is what is known of a step.
type StepState string

// The states of a step.
const (
	StepDone    StepState = "done"
	StepNotDone StepState = "not_done" // never sent as far as anybody knows, or definitely refused
	StepUnknown StepState = "unknown"
)

// StepKey is the key that a step is sent and asked about under; the action's
// own where there are no steps.
func StepKey(executionKey, step string) string {
	if step == "" {
		return executionKey
	}
	return executionKey + ":" + step
}

// Done reports whether a step has proven all it can, and was read back where
// that is wanted.
func (s Step) Done() bool { return s.proven() && (s.Verified || !s.Verify) }

// proven reports whether answers have proven all that the step can.
func (s Step) proven() bool {
	return s.Proven != ProvesNothing && s.Proven.Stronger(s.Proves) == s.Proven
}

// stepProven reports whether answers have proven all that a step can.
func (a Action) stepProven(name string) bool {
	return slices.ContainsFunc(a.Steps, func(s Step) bool { return s.Name == name && s.proven() })
}

// StepState returns what is known of a step of the action.
func (a Action) StepState(s Step) StepState {
	one := a.of(s.Name)
	switch {
	case s.Done():
		return StepDone
	case s.Proven == ProvesNothing && (one.Executions() == 0 && !one.happenedUnasked() || one.provenUndone()):
		return StepNotDone
	}
	return StepUnknown
}

// happenedUnasked reports whether something happened under the key of what was
// never attempted from here, as an answer says. It looks at one request.
func (a Action) happenedUnasked() bool {
	return len(a.Attempts) == 0 && (a.said(FoundSucceeded) || a.said(FoundDiffers))
}

// inPart reports whether evidence shows that some steps are done and all others
// are not.
func (a Action) inPart() bool {
	found := map[StepState]bool{}
	for _, s := range a.Steps {
		found[a.StepState(s)] = true
	}
	return found[StepDone] && found[StepNotDone] && !found[StepUnknown]
}

// StepDoneAt is when most of a step was proven; zero when nothing was.
func (a Action) StepDoneAt(s Step) time.Time { return a.ops[s.provenOp].At }

// Partly reports whether an unknown outcome is known to be one in part: by
// evidence of its steps, or because people found so.
func (a Action) Partly() bool {
	if a.State != ResultUnknown || a.Case.Kind != CaseUnknown {
		return false
	}
	return a.verdict() == Partly || a.verdict() == "" && a.inPart()
}

// Missing lists the steps that are not done. False when it is not known of one
// of them whether it is.
func (a Action) Missing() (missing []StepTerms, known bool) {
	known = true
	for _, s := range a.Steps {
		switch a.StepState(s) {
		case StepNotDone:
			missing = append(missing, s.StepTerms)
		case StepUnknown:
			known = false
		}
	}
	return missing, known
}

// next is the first step that is not done. False when every one is.
func (a Action) next() (Step, bool) {
	for _, s := range a.Steps {
		if !s.Done() {
			return s, true
		}
	}
	return Step{}, len(a.Steps) == 0
}

// NextStep returns the step that the live claim may attempt now.
func (a Action) NextStep() (Step, bool) {
	s, left := a.next()
	if len(a.Steps) == 0 || !left || s.Proven != ProvesNothing || a.State != Executing {
		return Step{}, false
	}
	for _, t := range a.Attempts {
		if t.ClaimID == a.Claim.ID && (!t.Definite() || t.Step == s.Name) {
			return Step{}, false
		}
	}
	return s, true
}

// CurrentStep is the name of the first step that is not done; "" when every one
// is, or there are none.
func (a Action) CurrentStep() string {
	s, _ := a.next()
	return s.Name
}

// StepExecutions is Executions of one step.
func (a Action) StepExecutions(name string) int { return a.of(name).Executions() }

// Resends counts the requests that may have been sent once more, or that a live
// claim may send once more: of each step, or of an action without steps, all but
// the first.
func (a Action) Resends() int {
	first, n, claimed := map[string]bool{}, 0, false
	for _, t := range a.Attempts {
		if !t.NotSent && first[t.Step] {
			n++
		}
		first[t.Step] = first[t.Step] || !t.NotSent
		claimed = claimed || a.Claim != nil && t.ClaimID == a.Claim.ID
	}
	if a.State == Executing && !claimed && first[a.CurrentStep()] {
		n++
	}
	return n
}

// StepVersion is the version of the object that a step is bound to: the first
// to what was approved, later ones to what the earlier ones left behind, when
// an answer had told it by the time they were first attempted.
func (a Action) StepVersion(name string) *string {
	at := slices.IndexFunc(a.Steps, func(s Step) bool { return s.Name == name })
	if at <= 0 {
		return a.ObjectVersion
	}
	var version *string
	own := a.of(name).Attempts
	for _, r := range a.Receipts {
		t, _ := a.attempt(r.AttemptID)
		earlier := slices.ContainsFunc(a.Steps[:at], func(s Step) bool { return s.Name == t.Step })
		if earlier && r.Outcome == Success && r.ObjectVersionAfter != "" && (len(own) == 0 || !r.At.After(own[0].At)) {
			version = &r.ObjectVersionAfter
		}
	}
	return version
}

// hasStep reports whether evidence of this step can be about the action.
func (a Action) hasStep(name string) bool {
	if len(a.Steps) == 0 {
		return name == ""
	}
	return slices.ContainsFunc(a.Steps, func(s Step) bool { return s.Name == name })
}

func noStep() error {
	return Refuse(InvalidArgument, "The action has no such step.").At("/step", "must name a step of the contract, and be left out where it has none")
}

// of returns the action as if one step were all of it, so that what holds for
// an action with one request holds for each.
func (a Action) of(name string) Action {
	at := slices.IndexFunc(a.Steps, func(s Step) bool { return s.Name == name })
	if at < 0 {
		return a
	}
	s, one := a.Steps[at], a
	one.Steps, one.Attempts, one.Receipts, one.Asks = nil, nil, nil, nil
	for _, t := range a.Attempts {
		if t.Step == name {
			one.Attempts = append(one.Attempts, t)
		}
	}
	for _, r := range a.Receipts {
		if _, own := one.attempt(r.AttemptID); own {
			one.Receipts = append(one.Receipts, r)
		}
	}
	for _, q := range a.Asks {
		if q.Found.Step == name {
			one.Asks = append(one.Asks, q)
		}
	}
	one.Terms.Proves, one.Terms.StatusQuery, one.Terms.Verify = s.Proves, s.StatusQuery, false
	one.Proven, one.facts = s.Proven, s.facts
	if a.State.In(Executing, Accepted) && s.Proven != ProvesNothing { // the others are still being carried out
		if one.State = Accepted; s.proven() {
			one.State = one.after(s.Proven)
		}
	}
	return one
}

// views are the action's steps, each as if it were all of it.
func (a Action) views() []Action {
	if len(a.Steps) == 0 {
		return []Action{a}
	}
	var all []Action
	for _, s := range a.Steps {
		all = append(all, a.of(s.Name))
	}
	return all
}

// together is where the action goes when one of its steps, seen by itself, goes
// from one state to another, and why a case opens. proven is what the step has
// proven then.
func (s Snapshot) together(one Action, name string, proven Proof, to State, why string) (State, string) {
	a := s.Action
	switch {
	case len(a.Steps) == 0, why != "":
		return to, why
	case to == one.State:
		return a.State, ""
	case to.In(Accepted, Applied):
		return s.further(name, proven)
	}
	for _, other := range a.views() { // refused, for good
		if other.Proven != ProvesNothing {
			return ResultUnknown, WhyStep
		}
	}
	for _, other := range a.Steps {
		if other.Name != name && a.StepState(other) == StepUnknown { // it may have happened
			return a.State, ""
		}
	}
	return to, ""
}

// further is where the action goes when a step has proven more than before.
func (s Snapshot) further(name string, proven Proof) (State, string) {
	a := s.Action
	a.Steps = slices.Clone(a.Steps)
	all := ProvesCompleted
	var done Step
	for i := range a.Steps {
		if t := &a.Steps[i]; t.Name == name {
			t.Proven = t.Proven.Stronger(proven)
			done = *t
		}
		all = all.weaker(a.Steps[i].Proven)
	}
	switch {
	case all != ProvesNothing:
		return a.after(all), ""
	case a.State == Executing && !done.proven():
		return ResultUnknown, WhyUnknownReceipt // taken in hand; the next one waits until it is done
	}
	return a.State, ""
}

// proveStep notes what evidence shows of a step, and what follows for all of
// them. It reports whether that is more than was known.
func (a *Action) proveStep(name string, p Proof, op string) bool {
	a.Steps = slices.Clone(a.Steps)
	more, all := false, ProvesCompleted
	for i := range a.Steps {
		if s := &a.Steps[i]; s.Name == name && s.Proven.Stronger(p) != s.Proven {
			s.Proven, s.provenOp, s.missed, more = p, op, 0, true
		}
		all = all.weaker(a.Steps[i].Proven)
	}
	a.Proven = all
	return more
}

// changeStep changes what is known of a step, or of the action where there are none.
func (a *Action) changeStep(name string, change func(*Step)) {
	a.Steps = slices.Clone(a.Steps)
	for i := range a.Steps {
		if a.Steps[i].Name == name {
			change(&a.Steps[i])
		}
	}
}
