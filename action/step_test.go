package action

import (
	"testing"
	"time"
)

// ofStep makes a command speak of a step.
func ofStep(step string, c StartAttempt) StartAttempt { c.Step = step; return c }

func (l *life) states() (all []StepState) {
	for _, s := range l.a.Steps {
		all = append(all, l.a.StepState(s))
	}
	return all
}

// stands holds the steps, what may be said, and what there is to do.
func (l *life) stands(level Level, work Work, states ...StepState) {
	l.t.Helper()
	got, _ := l.a.Statement(l.now)
	all := l.states()
	if got != level || l.a.Work() != work || len(all) != 2 || all[0] != states[0] || all[1] != states[1] {
		l.t.Fatalf("in %s: steps %v, says %s, work %q; want %v, %s, %q", l.a.State, all, got, l.a.Work(), states, level, work)
	}
	l.check()
}

func TestStepsAreTakenInTheirOrder(t *testing.T) {
	l := newLife(t).inSteps().claimed()
	if r := l.refuse(ofStep("notify", l.attempt("c1", "t1")), WrongState); r.Reason != "step" || r.Args["step"] != "price" {
		t.Errorf("%+v", r)
	}
	l.refuse(ofStep("", l.attempt("c1", "t1")), InvalidArgument)
	l.refuse(ofStep("other", l.attempt("c1", "t1")), InvalidArgument)
	l.do(l.attempt("c1", "t1"), Executing)
	l.refuse(ofStep("notify", l.attempt("c1", "t2")), AttemptOpen)
	after := l.receipt("t1", Success, ProvesCompleted)
	after.Receipt.ObjectVersionAfter = "8"
	l.do(after, Executing)
	l.refuse(ofStep("price", l.attempt("c1", "t2")), AttemptOpen)
	if v := l.a.StepVersion("price"); *v != "7" {
		t.Errorf("the first step is bound to %s", *v)
	}
	l.stands(LevelUnknown, WorkNone, StepDone, StepNotDone)
	l.do(l.attempt("c1", "t2"), Executing)
	if v := l.a.StepVersion("notify"); v == nil || *v != "8" || l.a.Attempts[1].Number != 1 {
		t.Errorf("the second step is bound to %v, attempt %d", v, l.a.Attempts[1].Number)
	}
	l.stands(LevelUnknown, WorkNone, StepDone, StepUnknown)
	l.do(l.receipt("t2", Success, ProvesCompleted), Applied)
	l.stands(LevelCompleted, WorkNone, StepDone, StepDone)
}

func TestB8_OnlyWhatIsMissingGoesOn(t *testing.T) {
	lapsed := func() *life {
		l := newLife(t).between("t1")
		l.wait(time.Minute).do(Tick{CaseID: "cas_1"}, ResultUnknown)
		return l
	}
	t.Run("killed between two steps", func(t *testing.T) {
		l := lapsed()
		l.stands(LevelPartial, WorkRetry, StepDone, StepNotDone)
		l.do(l.retry("c2"), Executing)
		l.refuse(ofStep("price", l.attempt("c2", "t2")), WrongState)
		l.do(l.attempt("c2", "t2"), Executing)
		l.do(l.receipt("t2", Success, ProvesCompleted), Applied)
		l.stands(LevelCompleted, WorkNone, StepDone, StepDone)
	})
	t.Run("even where nothing is sent twice", func(t *testing.T) {
		l := newLife(t)
		l.terms.RetrySameKey = false
		l.between("t1").wait(time.Minute).do(Tick{CaseID: "cas_1"}, ResultUnknown)
		l.do(l.retry("c2"), Executing)
		l.do(l.attempt("c2", "t2"), Executing)
		l.do(l.receipt("t2", Unknown, ""), ResultUnknown)
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		l.refuse(l.retry("c3"), WrongState)
	})
	t.Run("the first step is not known", func(t *testing.T) {
		l := newLife(t).inSteps().claimed()
		l.do(l.attempt("c1", "t1"), Executing)
		l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
		l.stands(LevelUnknown, WorkAsk, StepUnknown, StepNotDone)
		if s, ok := l.a.AskedStep(); !ok || s.Name != "price" {
			t.Errorf("asks about %q", s.Name)
		}
		l.refuse(l.retry("c2"), WrongState)
		l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown)
		l.stands(LevelPartial, WorkRetry, StepDone, StepNotDone)
	})
	t.Run("an answer about another step does not tell", func(t *testing.T) {
		for _, outcome := range []string{FoundNotExecuted, FoundFailed} {
			l := newLife(t).inSteps().claimed()
			l.do(l.attempt("c1", "t1"), Executing)
			l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
			about := l.evidence(outcome, "")
			about.Found.Step = "notify"
			l.do(about, ResultUnknown) // the price may have changed
		}
	})
	t.Run("the second step is not known", func(t *testing.T) {
		l := newLife(t).between("t1")
		l.do(l.attempt("c1", "t2"), Executing)
		l.do(l.receipt("t2", Unknown, ""), ResultUnknown)
		l.stands(LevelUnknown, WorkAsk, StepDone, StepUnknown)
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		l.stands(LevelUnknown, WorkRetry, StepDone, StepUnknown)
		l.do(l.retry("c2"), Executing)
		l.do(l.attempt("c2", "t3"), Executing)
		l.do(l.failure("t3", "", false), ResultUnknown) // the first may still arrive
		l.do(l.evidence(FoundSucceeded, ProvesCompleted), Applied)
	})
	t.Run("the key's time counts", func(t *testing.T) {
		l := lapsed().wait(22 * time.Hour)
		if r := l.refuse(l.retry("c2"), ExpiredCode); r.Reason != "key" {
			t.Errorf("%+v", r)
		}
		due, _ := l.a.DueAt()
		l.do(Tick{}, ResultUnknown)
		if _, still := l.a.DueAt(); still || l.a.Work() != WorkNone || !l.a.Exhausted() {
			t.Errorf("due %v, work %q", due, l.a.Work())
		}
	})
	t.Run("not without an end", func(t *testing.T) {
		l := lapsed()
		for i := range maxResumes {
			claim := "c" + string(rune('b'+i))
			work, at := l.a.NextWork()
			if work != WorkRetry || i > 0 && !at.After(l.now) {
				t.Fatalf("the %d. time: %q at %v", i+1, work, at)
			}
			l.do(l.retry(claim), Executing)
			l.do(Release{Op: l.op(), By: executor, ClaimID: claim, CaseID: "cas_2"}, ResultUnknown)
		}
		l.refuse(l.retry("c9"), WrongState)
		if l.a.Work() != WorkNone || !l.a.Exhausted() {
			t.Errorf("work %q", l.a.Work())
		}
	})
	t.Run("not what will not pass", func(t *testing.T) {
		l := lapsed()
		l.do(l.retry("c2"), Executing)
		l.do(Release{Op: l.op(), By: executor, ClaimID: "c2", Code: "FORBIDDEN", CaseID: "cas_2"}, ResultUnknown)
		l.refuse(l.retry("c3"), WrongState)
		if l.a.FailureCode != "" || !l.a.Exhausted() {
			t.Errorf("code %q, work %q", l.a.FailureCode, l.a.Work())
		}
	})
}

func TestAStepRefusedForGood(t *testing.T) {
	l := newLife(t).inSteps().claimed()
	l.do(l.attempt("c1", "t1"), Executing)
	l.do(l.failure("t1", "", true), Conflict) // nothing was done: as without steps
	l = newLife(t).between("t1")
	l.do(l.attempt("c1", "t2"), Executing)
	l.do(l.failure("t2", "", true), ResultUnknown)
	if l.a.Case.Why != WhyStep || !l.a.Partly() || !l.a.Exhausted() {
		t.Errorf("%+v", l.a.Case)
	}
	l.stands(LevelPartial, WorkNone, StepDone, StepNotDone)
	for verdict, reason := range map[string]string{Happened: "evidence-did-not-happen", DidNotHappen: "evidence-happened"} {
		if r := l.refuse(l.settle(verdict), WrongState); r.Reason != reason {
			t.Errorf("%s: %s", verdict, r.Reason)
		}
	}
	left, err := l.snap().Left(l.terms.Steps)
	if err != nil || len(left) != 1 || left[0].Name != "notify" || l.snap().Follow(LinkResumes) != nil {
		t.Errorf("%v is left: %v, %v", left, err, l.snap().Follow(LinkResumes))
	}
	// Later it says that it was done after all: that is for people.
	l.do(l.receipt("t2", Success, ProvesCompleted), ResultUnknown)
	if l.a.Case.Kind != CaseContradiction || l.a.Partly() {
		t.Errorf("%+v", l.a.Case)
	}
	l.stands(LevelUnknown, WorkNone, StepDone, StepDone)
}

// A step that was only accepted is not done: the next one waits.
func TestAStepThatWasOnlyAccepted(t *testing.T) {
	l := newLife(t).inSteps().claimed()
	l.do(l.attempt("c1", "t1"), Executing)
	l.do(l.receipt("t1", Success, ProvesAccepted), ResultUnknown)
	l.stands(LevelUnknown, WorkAsk, StepUnknown, StepNotDone)
	l.refuse(l.retry("c2"), WrongState)
	if _, err := l.snap().Left(l.terms.Steps); AsRefusal(err).Reason != "link-unknown" {
		t.Errorf("%v", err)
	}
	l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown)
	l.stands(LevelPartial, WorkRetry, StepDone, StepNotDone)
}

// The first step's own post-conditions are read back before the next begins.
func TestAStepIsReadBackBeforeTheNext(t *testing.T) {
	reading := func(l *life, h Holds) AddObservation {
		c := l.reading("8", h)
		c.Observation.Step = "price"
		return c
	}
	answered := func() *life {
		l := newLife(t).inSteps()
		l.terms.Steps[0].Verify, l.terms.VerifyTries = true, 2
		l.claimed().do(l.attempt("c1", "t1"), Executing)
		l.do(l.receipt("t1", Success, ProvesCompleted), Executing)
		l.refuse(ofStep("notify", l.attempt("c1", "t2")), WrongState)
		l.wait(time.Second)
		return l
	}
	l := answered()
	l.do(reading(l, HoldsTrue), Executing)
	l.do(ofStep("notify", l.attempt("c1", "t2")), Executing)
	l = answered()
	l.do(reading(l, HoldsFalse), Executing)
	l.wait(time.Second).do(reading(l, HoldsFalse), ResultUnknown)
	if l.a.Case.Why != WhyMismatch {
		t.Errorf("%+v", l.a.Case)
	}
	l.stands(LevelUnknown, WorkNone, StepUnknown, StepNotDone)
	l.do(reading(l, HoldsTrue), ResultUnknown)
	l.stands(LevelPartial, WorkRetry, StepDone, StepNotDone)
	l = answered()
	l.wait(time.Minute).do(Tick{CaseID: "cas_1"}, ResultUnknown)
	l.stands(LevelUnknown, WorkVerify, StepUnknown, StepNotDone)
}

// A retry of which nothing left does not use up the one that is allowed.
func TestARetryThatNeverLeftIsNotOne(t *testing.T) {
	for name, l := range map[string]*life{"one request": newLife(t).unknown(), "a step": func() *life {
		l := newLife(t).between("t0")
		l.do(l.attempt("c1", "t1"), Executing)
		l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
		return l
	}()} {
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		l.do(l.retry("c2"), Executing)
		l.do(l.attempt("c2", "t2"), Executing)
		l.do(l.failure("t2", NotSent, false), ResultUnknown)
		if l.a.Retried() || !l.a.NotExecuted() || l.a.Work() != WorkRetry {
			t.Errorf("%s: used %v, denied %v, work %q", name, l.a.Retried(), l.a.NotExecuted(), l.a.Work())
		}
		l.do(l.retry("c3"), Executing)
		l.do(l.attempt("c3", "t3"), Executing)
		l.do(l.receipt("t3", Unknown, ""), ResultUnknown)
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		l.refuse(l.retry("c4"), WrongState)
		l.check()
	}
}

// What was never attempted from here is not done by what anybody says of it: an
// answer that it happened is for people to explain, and proves nothing.
func TestWhatWasNeverAttemptedIsNotDone(t *testing.T) {
	stations := map[string]func() *life{
		"going on": func() *life { return newLife(t).between("t1") },
		"stopped between": func() *life {
			l := newLife(t).between("t1")
			l.wait(time.Minute).do(Tick{CaseID: "cas_1"}, ResultUnknown)
			return l
		},
		"the step before is not known": func() *life {
			l := newLife(t).inSteps().claimed()
			l.do(l.attempt("c1", "t1"), Executing)
			l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
			return l
		},
		"people found that nothing happened": func() *life {
			l := newLife(t).inSteps().claimed()
			l.do(l.attempt("c1", "t1"), Executing)
			l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
			l.do(l.settle(DidNotHappen), ResultUnknown)
			return l
		},
	}
	about := func(l *life, outcome string) AddEvidence {
		c := l.evidence(outcome, ProvesCompleted)
		c.Found.Step = "notify"
		return c
	}
	for name, station := range stations {
		for _, outcome := range []string{FoundSucceeded, FoundFailed, FoundNotExecuted} {
			l := station()
			before, work := l.a.State, l.a.Work()
			if outcome != FoundSucceeded {
				if l.do(about(l, outcome), before); l.a.Work() != work || l.states()[1] != StepNotDone {
					t.Errorf("%s, %s: work %q, %v", name, outcome, l.a.Work(), l.states())
				}
				continue
			}
			c := about(l, outcome)
			if l.do(c, ResultUnknown); l.a.Case.Kind != CaseContradiction || l.a.Steps[1].Proven != ProvesNothing || l.states()[1] != StepUnknown || l.a.verdict() != "" {
				t.Errorf("%s: %+v, %v", name, l.a.Case, l.states())
			}
			if again, err := l.try(c); err != nil || again.Event.Kind != "" {
				t.Errorf("%s, told once more: %q, %v", name, again.Event.Kind, err)
			}
			if _, err := l.snap().Left(l.terms.Steps); AsRefusal(err).Reason != "link-unknown" || l.a.Work() != WorkNone {
				t.Errorf("%s: what is left is %v, work %q", name, err, l.a.Work())
			}
			l.wait(time.Hour).do(l.settle(DidNotHappen), Failed)
			l.do(about(l, outcome), Failed) // weighed before
			l.check()
		}
	}
	// A reading of what the step would have left behind says nothing of it either.
	l := newLife(t)
	l.terms.VerifyTries = 1
	l.between("t1")
	for _, h := range []Holds{HoldsTrue, HoldsFalse} {
		c := l.reading("8", h)
		c.Observation.Step = "notify"
		l.do(c, Executing)
		l.stands(LevelUnknown, WorkNone, StepDone, StepNotDone)
	}
}
