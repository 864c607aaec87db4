package action

import (
	"testing"
	"time"
)

func TestTheOneRetry(t *testing.T) {
	l := newLife(t).unknown()
	l.refuse(l.retry("c2"), WrongState) // a miss was not said, by key
	l.do(l.evidence(FoundUnknown, ""), ResultUnknown)
	l.refuse(l.retry("c2"), WrongState)
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	caseID := l.a.CaseID()
	c := l.retry("c2")
	tr := l.do(c, Executing)
	if want := noon.Add(24 * time.Hour * 9 / 10); tr.Hold != HoldRun || !tr.Before.Equal(want) {
		t.Errorf("holds %q, before %v, want %v", tr.Hold, tr.Before, want)
	}
	if l.a.CaseID() != caseID {
		t.Error("the case did not stay open")
	}
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	c.By = rival
	l.refuse(c, AlreadyClaimed)
	other := l.attempt("c2", "t2")
	other.Fingerprint = "other bytes"
	l.refuse(other, StaleRevision)
	l.do(l.attempt("c2", "t2"), Executing)
	l.refuse(l.attempt("c2", "t3"), AttemptOpen)
	l.do(l.receipt("t2", Unknown, ""), ResultUnknown)
	if l.a.CaseID() != caseID {
		t.Error("the same unknown outcome has a second case")
	}
	// The answer was about the first attempt, and one retry is all.
	l.refuse(l.retry("c3"), WrongState)
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	l.refuse(l.retry("c3"), WrongState)
}

func TestNoRetryThatIsNotSafe(t *testing.T) {
	missed := func(change func(*Terms)) *life {
		l := newLife(t)
		change(&l.terms)
		l.unknown().do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		return l
	}
	t.Run("never", func(t *testing.T) {
		l := missed(func(t *Terms) { t.RetrySameKey = false })
		l.refuse(l.retry("c2"), WrongState)
	})
	t.Run("key forgotten", func(t *testing.T) {
		l := missed(func(*Terms) {}).wait(21*time.Hour + 35*time.Minute)
		l.do(l.evidence(FoundUnknown, ""), ResultUnknown)
		l.wait(time.Hour)
		if r := l.refuse(l.retry("c2"), ExpiredCode); r.Reason != "key" {
			t.Errorf("reason %q", r.Reason)
		}
	})
	t.Run("people are settling it", func(t *testing.T) {
		for _, verdict := range []string{DidNotHappen, Partly} {
			l := missed(func(*Terms) {})
			l.do(l.settle(verdict), ResultUnknown)
			l.refuse(l.retry("c2"), WrongState)
		}
	})
	t.Run("accepted once", func(t *testing.T) {
		l := stationLife(t, "accepted").wait(time.Hour)
		l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		if l.a.Case.Kind != CaseContradiction {
			t.Errorf("case %+v", l.a.Case)
		}
		l.refuse(l.retry("c2"), WrongState)
	})
	t.Run("said before it was sent", func(t *testing.T) {
		l := newLife(t).claimed()
		l.do(l.evidence(FoundNotExecuted, ""), Executing)
		l.do(l.attempt("c1", "t1"), Executing)
		l.do(l.evidence(FoundNotExecuted, ""), Executing) // it may not have arrived yet
		l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
		l.refuse(l.retry("c2"), WrongState)
	})
	t.Run("in confirmed too", func(t *testing.T) {
		l := newLife(t).confirmed()
		l.do(l.evidence(FoundNotExecuted, ""), Confirmed)
		l.do(l.claim(executor, "c1"), Executing)
		l.do(l.attempt("c1", "t1"), Executing)
		l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
		l.refuse(l.retry("c2"), WrongState)
	})
	t.Run("found done after all", func(t *testing.T) {
		l := missed(func(t *Terms) { t.Verify = true })
		l.do(l.evidence(FoundSucceeded, ProvesAccepted), Accepted)
		l.wait(time.Hour).do(Tick{CaseID: "cas_2"}, ResultUnknown)
		l.refuse(l.retry("c2"), WrongState)
	})
}

func TestE2_WhatAnAnswerByKeySays(t *testing.T) {
	t.Run("SUCCEEDED", func(t *testing.T) {
		l := newLife(t).unknown()
		l.do(l.evidence(FoundSucceeded, ProvesCompleted), Applied)
		if l.a.Executions() != 1 || l.a.CaseID() != "" {
			t.Errorf("%d executions, case %q", l.a.Executions(), l.a.CaseID())
		}
	})
	t.Run("NOT_EXECUTED, then retried", func(t *testing.T) {
		l := newLife(t).retried()
		l.do(l.receipt("t2", Success, ProvesCompleted), Applied)
		if l.a.Executions() != 2 || l.a.CaseID() != "" {
			t.Errorf("%d executions, case %q", l.a.Executions(), l.a.CaseID())
		}
	})
	t.Run("UNKNOWN", func(t *testing.T) {
		l := newLife(t).unknown()
		l.do(l.evidence(FoundUnknown, ProvesCompleted), ResultUnknown)
	})
	t.Run("anything else", func(t *testing.T) {
		l := newLife(t).unknown()
		l.do(l.evidence("DONE", ProvesCompleted), ResultUnknown)
	})
}

func TestAStoredRefusal(t *testing.T) {
	l := newLife(t).unknown()
	l.do(l.evidence(FoundFailed, ""), Failed) // no fence: the key is used up
	if l.a.FailureCode != FoundFailed {
		t.Errorf("code %q", l.a.FailureCode)
	}
	l.do(l.receipt("t1", Success, ProvesCompleted), ResultUnknown)
	l.do(l.settle(Happened), Applied)
	l.do(l.evidence(FoundFailed, ""), Applied) // weighed
	l = newLife(t).sent()
	l.do(l.failure("t1", "E1", false), Failed)
	l.do(l.evidence(FoundFailed, ""), Failed)
	if l.a.FailureCode != "E1" {
		t.Errorf("code %q", l.a.FailureCode)
	}
	// Accepted, overdue, and then refused.
	l = stationLife(t, "accepted").wait(3 * time.Minute)
	l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
	l.do(l.evidence(FoundFailed, ""), Failed)
	// A refusal of what was completed is for people.
	l = stationLife(t, "mismatch")
	l.do(l.evidence(FoundFailed, ""), ResultUnknown)
	if l.a.Case.Kind != CaseContradiction {
		t.Errorf("case %+v", l.a.Case)
	}
	// While it is executing the attempt's own answer decides, when it has one.
	l = newLife(t).sent()
	l.do(l.evidence(FoundFailed, ""), Executing)
	l.do(l.receipt("t1", Success, ProvesCompleted), ResultUnknown)
	if l.a.Case.Kind != CaseContradiction {
		t.Errorf("case %+v", l.a.Case)
	}
	l = newLife(t).sent()
	l.do(l.evidence(FoundFailed, ""), Executing)
	if l.do(l.receipt("t1", Unknown, ""), Failed); l.a.FailureCode != FoundFailed {
		t.Errorf("code %q", l.a.FailureCode)
	}
}

// A retry that nobody picks up ends with the key, and people hear of it.
func TestTheRetrysTimeEnds(t *testing.T) {
	l := stationLife(t, "unknown")
	due, ok := l.a.DueAt()
	if want := noon.Add(24 * time.Hour * 9 / 10); !ok || !due.Equal(want) || l.a.Work() != WorkRetry {
		t.Fatalf("due at %v %v, work %q", due, ok, l.a.Work())
	}
	caseID := l.a.CaseID()
	l.now = due
	l.do(Tick{}, ResultUnknown)
	if _, due := l.a.DueAt(); due || l.a.Work() == WorkRetry || l.a.CaseID() != caseID {
		t.Errorf("due %v, work %q, case %q", due, l.a.Work(), l.a.CaseID())
	}
	l.refuse(l.retry("c2"), WrongState)
}

func TestAnAnswerByKeyIsTakenOnce(t *testing.T) {
	l := newLife(t).unknown()
	c := l.evidence(FoundSucceeded, ProvesNothing)
	l.do(c, Accepted)
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	c.Found.Outcome = FoundNotExecuted
	l.refuse(c, IdempotencyKeyInUse)
}

// The system may commit what it has just called missing.
func TestReport27_AMissBeforeTheFenceClosesNothing(t *testing.T) {
	l := newLife(t)
	l.terms.RetrySameKey = false
	l.unknown()
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	if _, due := l.a.DueAt(); due {
		t.Error("an answer from before the fence closes it later")
	}
	fence := l.a.Attempts[0].SendBy.Add(2 * time.Minute)
	if !l.a.FencedAt().Equal(fence) {
		t.Errorf("fenced at %v, want %v", l.a.FencedAt(), fence)
	}
	l.now = fence.Add(-time.Nanosecond)
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	l.now = fence
	l.do(l.evidence(FoundNotExecuted, ""), Failed)
}

func TestAVerdictWaitsForTheFence(t *testing.T) {
	l := newLife(t).unknown()
	l.do(l.settle(DidNotHappen), ResultUnknown)
	if l.a.CaseID() == "" || l.a.Case.Verdict.By != ops || l.a.Case.Verdict.Note != "looked <&>" {
		t.Errorf("case %+v", l.a.Case)
	}
	due, ok := l.a.DueAt()
	if !ok || !due.Equal(l.a.Attempts[0].SendBy.Add(2*time.Minute)) {
		t.Fatalf("due at %v %v", due, ok)
	}
	l.now = due
	l.do(Tick{}, Failed)
	if l.a.CaseID() != "" || l.a.Case.Verdict == nil {
		t.Errorf("case %+v", l.a.Case)
	}
}

func TestNewsVoidsAWaitingVerdict(t *testing.T) {
	l := newLife(t).confirmed()
	l.do(l.evidence(FoundSucceeded, ProvesAccepted), ResultUnknown) // nothing was ever sent
	l.do(l.settle(DidNotHappen), Failed)
	l.do(l.evidence(FoundSucceeded, ProvesAccepted), Failed) // weighed
	l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown)

	l = newLife(t)
	l.terms.FenceAfter = time.Hour
	l.retried()
	l.do(l.failure("t1", "", false), Executing)
	l.do(l.receipt("t1", Success, ProvesAccepted), ResultUnknown)
	l.do(l.settle(DidNotHappen), ResultUnknown)
	if _, due := l.a.DueAt(); !due {
		t.Fatal("the verdict is not due")
	}
	l.do(l.receipt("t2", Success, ProvesCompleted), ResultUnknown)
	if _, due := l.a.DueAt(); due || l.a.Case.Verdict != nil {
		t.Error("a finding that nothing happened survived the proof that it did")
	}
}

// Where every request was definitely refused nothing is on its way; where
// answers contradict each other none of them counts for that.
func TestTheFence(t *testing.T) {
	l := newLife(t).sent().wait(time.Minute)
	l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
	l.do(l.failure("t1", "", false), Failed)
	l.do(l.receipt("t1", Success, ProvesCompleted), ResultUnknown)
	if want := l.a.Attempts[0].SendBy.Add(2 * time.Minute); !l.a.FencedAt().Equal(want) {
		t.Errorf("fenced at %v, want %v", l.a.FencedAt(), want)
	}
	l.do(l.settle(DidNotHappen), ResultUnknown)
	zero := newLife(t)
	zero.terms.FenceAfter = 0
	zero.unknown().wait(6 * time.Second)
	zero.do(zero.settle(DidNotHappen), Failed)
}

func TestSettleNeedsTheCaseAsItIs(t *testing.T) {
	l := newLife(t).unknown()
	c := l.settle(Happened)
	l.do(l.evidence(FoundUnknown, ""), ResultUnknown)
	l.refuse(c, StaleRevision)
	c = l.settle(Happened)
	c.CaseID = "cas_other"
	l.refuse(c, StaleRevision)
	c = l.settle(Happened)
	l.do(c, Applied)
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	c.Verdict.Verdict = DidNotHappen
	l.refuse(c, IdempotencyKeyInUse)
}

func TestHappenedIsAcceptedWhereNoMoreCanBeProven(t *testing.T) {
	l := newLife(t)
	l.terms.Proves = ProvesQueued
	l.unknown().do(l.settle(Happened), Accepted)
	if _, due := l.a.DueAt(); due || l.a.CaseID() != "" {
		t.Errorf("due %v, case %q", due, l.a.CaseID())
	}
	l.do(l.failure("t1", "", false), ResultUnknown) // denies what people found
}

func TestAPartlyFindingIsForPeople(t *testing.T) {
	for _, c := range []func(l *life) Command{
		func(l *life) Command { return l.failure("t1", "", false) },
		func(l *life) Command { return l.receipt("t1", Success, ProvesCompleted) },
		func(l *life) Command { return l.evidence(FoundNotExecuted, "") },
		func(l *life) Command { return l.evidence(FoundSucceeded, ProvesCompleted) },
	} {
		l := newLife(t).unknown().wait(24 * time.Hour)
		l.do(l.settle(Partly), ResultUnknown)
		l.do(c(l), ResultUnknown)
		if l.a.Case.Kind != CaseUnknown || l.a.Case.Verdict == nil {
			t.Errorf("case %+v", l.a.Case)
		}
	}
	l := newLife(t).unknown()
	l.do(l.settle(Partly), ResultUnknown)
	l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown)
	l.do(l.receipt("t1", Success, ProvesCompleted), ResultUnknown)
	l.do(l.failure("t1", "", false), ResultUnknown)
	if _, due := l.a.DueAt(); due {
		t.Error("time closes what was done in part")
	}
	if level, _ := l.a.Statement(l.now); level != LevelPartial {
		t.Errorf("statement %q", level)
	}
	l.do(l.settle(Happened), Applied)
}

func TestALapsedRetryGoesBackToItsCase(t *testing.T) {
	l := newLife(t).unknown()
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	c := *l.a.Case
	l.do(l.retry("c2"), Executing)
	l.do(Release{Op: "r", By: executor, ClaimID: "c2", CaseID: "cas_new"}, ResultUnknown)
	if work, at := l.a.NextWork(); work != WorkRetry || !at.After(l.now) {
		t.Errorf("given back, and then %q at %v", work, at)
	}
	l.do(l.retry("c3"), Executing)
	l.wait(time.Minute).do(Tick{CaseID: "cas_new"}, ResultUnknown)
	if l.a.Case.ID != c.ID || !l.a.Case.OpenedAt.Equal(c.OpenedAt) {
		t.Errorf("case %+v, was %+v", l.a.Case, c)
	}
}

// Half a microsecond would be rounded one way here and another in the database.
func TestWorkBeginsAtAWholeMicrosecond(t *testing.T) {
	l := newLife(t).unknown()
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	l.do(l.retry("c2"), Executing)
	l.do(Release{Op: "r", By: executor, ClaimID: "c2", CaseID: "cas_new"}, ResultUnknown)
	for range 100 {
		l.a.ID = NewID("act")
		if work, at := l.a.NextWork(); work != WorkRetry || at.Nanosecond()%1000 != 0 {
			t.Fatalf("%s: %q at %v", l.a.ID, work, at)
		}
	}
}

// The deadline of a retry counts from the retry.
func TestARetryHasItsOwnDeadline(t *testing.T) {
	l := newLife(t).unknown().wait(time.Hour)
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	l.do(l.retry("c2"), Executing)
	if due, _ := l.a.DueAt(); !due.Equal(l.now.Add(time.Minute)) {
		t.Errorf("due at %v, now %v", due, l.now)
	}
}

func TestADeadlineIsSettledByLaterProof(t *testing.T) {
	for name, settle := range map[string]func(l *life) Command{
		"receipt":  func(l *life) Command { return l.receipt("t1", Success, ProvesCompleted) },
		"evidence": func(l *life) Command { return l.evidence(FoundSucceeded, ProvesCompleted) },
	} {
		l := stationLife(t, "accepted").wait(3 * time.Minute)
		l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
		l.do(l.evidence(FoundSucceeded, ProvesAccepted), ResultUnknown) // known already
		l.do(settle(l), Applied)
		if l.a.CaseID() != "" {
			t.Errorf("%s: the case stayed open", name)
		}
	}
	l := stationLife(t, "accepted").wait(3 * time.Minute)
	l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
	l.do(l.failure("t1", "REFUSED", false), Failed)
}

// A success by key of something that nobody sent is not our success.
func TestSomebodyElsesSuccess(t *testing.T) {
	for _, station := range []string{"confirmed", "claimed", "rejected", "cancelled", "expired"} {
		l := stationLife(t, station)
		l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown)
		if l.a.Case.Kind != CaseContradiction || l.a.Executions() != 0 {
			t.Errorf("%s: case %+v", station, l.a.Case)
		}
		if l.a.Claim != nil && !l.a.Claim.Over {
			t.Errorf("%s: the claim is still live", station)
		}
		if _, open := l.a.OpenAttempt(); open {
			t.Errorf("%s: an attempt is open", station)
		}
		l.do(l.settle(DidNotHappen), Failed)
	}
}

func TestReport37_AClosedContradictionStaysClosed(t *testing.T) {
	l := stationLife(t, "applied")
	l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
	l.do(l.settle(Happened), Applied)
	l.do(l.evidence(FoundNotExecuted, ""), Applied) // the next sweep says the same
	l.do(l.evidence(FoundSucceeded, ProvesCompleted), Applied)
}
