package action

import (
	"slices"
	"time"
)

// seenStep is a step as a random life's events tell it.
type seenStep struct {
	terms    StepTerms
	proven   Proof
	verified bool
	begun    bool     // attempted, whether it left or not
	sent     []string // attempts that may have left
	wanted   bool     // a person had it sent again when nothing was on its way
	missed   int      // how many of them the business system had not executed when it said so, plus one
}

func (s seenStep) done() bool {
	return s.proven != ProvesNothing && s.proven.Stronger(s.terms.Proves) == s.proven && (s.verified || !s.terms.Verify)
}

// stepsSeen reads the steps, or the one request, from the events alone, without
// the last one.
func (w *walk) stepsSeen() []*seenStep {
	all := []*seenStep{{terms: StepTerms{Proves: w.terms.Proves}}}
	if len(w.terms.Steps) > 0 {
		all = nil
		for _, s := range w.terms.Steps {
			all = append(all, &seenStep{terms: s})
		}
	}
	last := map[string]time.Time{}
	of, definite, over := map[string]*seenStep{}, map[string]bool{}, map[string]time.Time{}
	named := func(name string) *seenStep {
		for _, s := range all {
			if s.terms.Name == name {
				return s
			}
		}
		return &seenStep{}
	}
	for _, e := range w.events {
		switch e.Kind {
		case KindAttempted:
			t := readData[attempted](e).Attempt
			of[t.ID] = named(t.Step)
			of[t.ID].begun, of[t.ID].sent = true, append(of[t.ID].sent, t.ID)
			over[t.ID], last[t.Step] = t.SendBy.Add(w.terms.FenceAfter), t.At
		case KindReceipt:
			r := readData[receipted](e).Receipt
			if s := of[r.AttemptID]; r.Outcome == Success {
				s.prove(r.Proves)
			} else if r.Outcome == Failure && r.Code == NotSent && (!definite[r.AttemptID] || e.To == Failed && e.From != Failed) {
				s.unsend(r.AttemptID)
			}
			definite[r.AttemptID] = definite[r.AttemptID] || r.Outcome == Success || r.Outcome == Failure
		case KindEvidence:
			f := readData[evidenced](e).Found
			if s := named(f.Step); f.Outcome == FoundSucceeded && s.begun {
				s.prove(f.Proves)
			} else if f.Outcome == FoundNotExecuted && e.From != Executing && !f.ObservedAt.Before(last[f.Step]) {
				s.missed = len(s.sent) + 1
			}
		case KindSendAgain:
			for _, s := range all {
				if !s.done() || len(all) == 1 {
					s.wanted = !slices.ContainsFunc(s.sent, func(id string) bool { return !definite[id] && e.At.Before(over[id]) })
					break
				}
			}
		case KindObservation:
			if o := readData[observed](e).Observation; o.Step != "" && o.Holds == HoldsTrue && named(o.Step).proven == ProvesCompleted {
				named(o.Step).verified = true
			}
		}
	}
	return all
}

func (s *seenStep) prove(p Proof) {
	if s.proven.Stronger(p) != s.proven {
		s.proven, s.missed, s.wanted = s.proven.Stronger(p), 0, false
	}
}

func (s *seenStep) unsend(id string) {
	for i, sent := range s.sent {
		if sent == id {
			s.sent = append(s.sent[:i:i], s.sent[i+1:]...)
			return
		}
	}
}

// mayGoOn looks for what lets somebody go on after an unknown outcome: all steps
// before are done, and the next was never sent, or once and was not executed.
func (w *walk) mayGoOn() bool {
	for _, s := range w.stepsSeen() {
		if s.done() && len(w.terms.Steps) > 0 {
			continue
		}
		if s.proven != ProvesNothing {
			return false
		}
		if len(s.sent) == 0 {
			return len(w.terms.Steps) > 0
		}
		return w.terms.RetrySameKey && len(s.sent) == 1 && (s.missed == 2 || s.wanted)
	}
	return false
}

// stepsHold is true between any two commands: a step begins when those before it
// are done, nothing may have left more than twice, and nobody hears more of it
// than evidence shows.
func (w *walk) stepsHold(level Level) {
	done, undone, all := 0, 0, w.stepsSeen()
	for i, s := range all {
		if len(s.sent) > 2 {
			w.r.Fatalf("step %q may have left %d times", s.terms.Name, len(s.sent))
		}
		if !s.begun && len(all) > 1 && w.a.StepState(w.a.Steps[i]) == StepDone {
			w.r.Fatalf("step %q is done, and was never attempted", s.terms.Name)
		}
		if i > 0 && len(s.sent) > 0 && !all[i-1].done() {
			w.r.Fatalf("step %q began before %q was done", s.terms.Name, all[i-1].terms.Name)
		}
		if len(all) > 1 && w.a.Steps[i].Done() != s.done() {
			w.r.Fatalf("step %q done: %v", s.terms.Name, w.a.Steps[i].Done())
		}
		if s.done() {
			done++
		} else if len(s.sent) == 0 || s.proven == ProvesNothing {
			undone++
		}
	}
	found := w.a.Case != nil && w.a.Case.Verdict != nil && w.a.Case.Verdict.Verdict == Partly
	if level == LevelPartial && !found && (done == 0 || undone == 0 || done+undone < len(all)) {
		w.r.Fatalf("said to be done in part with %d done and %d not", done, undone)
	}
}
