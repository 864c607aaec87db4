package action

import "time"

// Sent is a key under which something may have been sent: that of the action,
// or in a contract with steps that of one step.
type Sent struct {
	Step, Key   string
	First, Last time.Time // of its attempts; zero when there was none
}

// Sent lists the keys under which something may have been sent, in the order of
// the steps. Without steps it is the action's own, whatever was attempted.
func (a Action) Sent() []Sent {
	names := []string{""}
	if len(a.Steps) > 0 {
		names = nil
		for _, s := range a.Steps {
			if a.of(s.Name).Executions() > 0 {
				names = append(names, s.Name)
			}
		}
	}
	var all []Sent
	for _, name := range names {
		s := Sent{Step: name, Key: StepKey(a.ExecutionKey, name)}
		if own := a.of(name).Attempts; len(own) > 0 {
			s.First, s.Last = own[0].At, own[len(own)-1].At
		}
		all = append(all, s)
	}
	return all
}

// Together returns the verdict of the whole that verdicts of its steps, by their
// names, amount to; what is not among them stands as evidence shows it. It is ""
// when that is not known of one, and WrongState when the business system itself
// speaks against one.
func (s Snapshot) Together(said map[string]string) (string, error) {
	a := s.Action
	if len(a.Steps) == 0 {
		return said[""], nil
	}
	found := map[string]bool{}
	for _, step := range a.Steps {
		one, verdict := a.of(step.Name), said[step.Name]
		if verdict != "" && a.CaseID() != "" && !a.weighed() {
			if err := one.against(verdict); err != nil {
				return "", err
			}
		}
		switch state := a.StepState(step); {
		case verdict != "":
		case state == StepDone:
			verdict = Happened
		case state == StepNotDone:
			verdict = DidNotHappen
		default:
			return "", nil
		}
		found[verdict] = true
	}
	switch {
	case found[Happened] && found[DidNotHappen]:
		return Partly, nil
	case found[Happened]:
		return Happened, nil
	}
	return DidNotHappen, nil
}

// weighed reports whether people weigh evidence that contradicts itself, or that
// what was promised is not there.
func (a Action) weighed() bool { return a.Case.Kind == CaseContradiction || a.Case.Why == WhyMismatch }

// against says why evidence of the business system itself speaks against a
// verdict. It looks at one request.
func (a Action) against(verdict string) error {
	switch {
	case verdict == DidNotHappen && a.provenDone():
		return evidenceAgainst(Happened)
	case verdict == Happened && a.provenUndone():
		return evidenceAgainst(DidNotHappen)
	}
	return nil
}

func evidenceAgainst(proven string) error {
	if proven == Happened {
		return Refuse(WrongState, "The business system has proven that it happened.").Because("evidence-happened")
	}
	return Refuse(WrongState, "The business system has proven that it did not happen.").Because("evidence-did-not-happen")
}
