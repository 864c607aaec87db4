package action

import (
	"encoding/json"
	"testing"
	"time"
)

// A timeout is not a failure, and what is no answer at all is not either.
func TestReport24_UnknownIsUnknown(t *testing.T) {
	for _, o := range []Outcome{Unknown, "", "TIMEOUT"} {
		l := newLife(t).sent()
		l.do(l.receipt("t1", o, ProvesCompleted), ResultUnknown)
		if l.a.Proven != ProvesNothing || l.a.Receipts[0].Proves != ProvesNothing || l.a.Case.Why != WhyUnknownReceipt || l.a.CaseID() == "" {
			t.Errorf("%q: proven %q, case %+v", o, l.a.Proven, l.a.Case)
		}
	}
}

func TestUnknownNeverLowersWhatIsKnown(t *testing.T) {
	for name, l := range map[string]*life{
		"accepted":  stationLife(t, "accepted"),
		"verifying": stationLife(t, "verifying"),
		"applied":   stationLife(t, "applied"),
		"failed":    stationLife(t, "failed"),
		"conflict":  stationLife(t, "conflict"),
		"retried":   newLife(t).retried(), // of the first attempt, while the second is on its way
	} {
		before := l.a
		l.do(l.receipt("t1", Unknown, ProvesNothing), before.State)
		if l.a.Proven != before.Proven || l.a.FailureCode != before.FailureCode || l.a.Attempts[0].Outcome != before.Attempts[0].Outcome {
			t.Errorf("%s: from %+v to %+v", name, before, l.a)
		}
	}
}

func stationLife(t *testing.T, name string) *life {
	l := newLife(t)
	stations()[name](l)
	return l
}

func TestASuccessProvesAtMostWhatTheContractCan(t *testing.T) {
	for _, c := range []struct {
		can, claims, want Proof
		to                State
	}{
		{ProvesCompleted, ProvesCompleted, ProvesCompleted, Applied},
		{ProvesCompleted, ProvesQueued, ProvesQueued, Accepted},
		{ProvesCompleted, ProvesNothing, ProvesAccepted, Accepted},
		{ProvesQueued, ProvesCompleted, ProvesQueued, Accepted},
		{ProvesAccepted, ProvesCompleted, ProvesAccepted, Accepted},
		{ProvesCompleted, "certain", ProvesAccepted, Accepted},
	} {
		l := newLife(t)
		l.terms.Proves = c.can
		l.sent().do(l.receipt("t1", Success, c.claims), c.to)
		if l.a.Proven != c.want || l.a.Receipts[0].Proves != c.want {
			t.Errorf("%+v: proven %q", c, l.a.Proven)
		}
		l = newLife(t)
		l.terms.Proves = c.can
		l.unknown().do(l.evidence(FoundSucceeded, c.claims), c.to)
		if l.a.Proven != c.want {
			t.Errorf("%+v by key: proven %q", c, l.a.Proven)
		}
	}
}

func TestAReceiptDeliveredTwiceCountsOnce(t *testing.T) {
	l := newLife(t).sent()
	c := l.receipt("t1", Success, ProvesCompleted)
	c.Receipt.HTTPStatus = 200
	c.Receipt.Body = json.RawMessage("{\n  \"price\": 105, \"note\": \"<\u2028>\"\n}")
	l.do(c, Applied)
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	for name, change := range map[string]func(*Receipt){
		"outcome": func(r *Receipt) { r.Claimed = Failure },
		"status":  func(r *Receipt) { r.HTTPStatus = 201 },
		"body":    func(r *Receipt) { r.Body = json.RawMessage(`{"price":106}`) },
		"no body": func(r *Receipt) { r.Body = nil },
		"no JSON": func(r *Receipt) { r.Body = json.RawMessage(`{"price":`) },
		"version": func(r *Receipt) { r.ObjectVersionAfter = "9" },
		"ref":     func(r *Receipt) { r.ProviderRef = "x" },
	} {
		other := c
		change(&other.Receipt)
		if r := l.refuse(other, IdempotencyKeyInUse); r == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestAReadingReportedTwiceCountsOnce(t *testing.T) {
	l := newLife(t).proposed()
	c := l.reading("7", HoldsUnknown)
	c.Observation.Snapshot = json.RawMessage("{ \"price\": 100 }")
	l.do(c, Proposed)
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	c.Observation.Snapshot = json.RawMessage(`{"price":101}`)
	l.refuse(c, IdempotencyKeyInUse)
}

// A conflict is one only while nothing can have been done.
func TestConflictOnlyOnTheFirstAttempt(t *testing.T) {
	l := newLife(t).retried()
	l.do(l.failure("t2", "", true), ResultUnknown)
	if l.a.Case.Why != WhyUnknownReceipt || len(l.a.Receipts) != 2 {
		t.Errorf("case %+v", l.a.Case)
	}
	if len(l.events) == 0 || l.a.CaseID() == "" {
		t.Error("the case was closed")
	}
}

func TestAFailureSpeaksOfOneAttempt(t *testing.T) {
	t.Run("of the second, the first may have worked", func(t *testing.T) {
		l := newLife(t).retried()
		l.do(l.failure("t2", "", false), ResultUnknown)
		l.do(l.receipt("t1", Success, ProvesCompleted), Applied)
	})
	t.Run("of both", func(t *testing.T) {
		l := newLife(t).retried()
		l.do(l.failure("t2", "E2", false), ResultUnknown)
		l.do(l.failure("t1", "E1", false), Failed)
		if l.a.FailureCode != "E1" || l.a.CaseID() != "" {
			t.Errorf("code %q, case %q", l.a.FailureCode, l.a.CaseID())
		}
	})
	t.Run("of the first, the second is on its way", func(t *testing.T) {
		l := newLife(t).retried()
		l.do(l.failure("t1", "E1", false), Executing)
		if l.a.Claim.Over {
			t.Error("the second attempt lost its claim")
		}
		l.do(l.failure("t2", "E2", false), Failed)
	})
	t.Run("of the first, the second never left", func(t *testing.T) {
		l := newLife(t).retried()
		l.do(l.failure("t2", NotSent, false), ResultUnknown)
		if l.a.Executions() != 1 {
			t.Errorf("%d executions", l.a.Executions())
		}
	})
	t.Run("the first worked, the second was refused", func(t *testing.T) {
		l := newLife(t).retried()
		l.do(l.receipt("t1", Success, ProvesAccepted), Accepted)
		l.do(l.failure("t2", "", false), Accepted)
		l.do(l.receipt("t1", Success, ProvesCompleted), Applied)
		l.do(l.failure("t2", "", false), Applied)
	})
	t.Run("the first worked, the second contradicts itself", func(t *testing.T) {
		l := newLife(t).retried()
		l.do(l.receipt("t1", Success, ProvesAccepted), Accepted)
		l.do(l.failure("t2", "", false), Accepted)
		l.do(l.receipt("t2", Success, ProvesCompleted), Applied)
	})
	t.Run("while the retry is about to be sent", func(t *testing.T) {
		l := newLife(t).unknown()
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		l.do(l.retry("c2"), Executing)
		l.do(l.failure("t1", "E1", false), Failed)
		l.refuse(l.attempt("c2", "t2"), LeaseLost)
	})
}

func TestAReceiptAfterTheLeaseIsEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		receipt func(l *life) AddReceipt
		to      State
	}{
		"completed": {func(l *life) AddReceipt { return l.receipt("t1", Success, ProvesCompleted) }, Applied},
		"accepted":  {func(l *life) AddReceipt { return l.receipt("t1", Success, ProvesAccepted) }, Accepted},
		"failure":   {func(l *life) AddReceipt { return l.failure("t1", "", false) }, Failed},
		"not sent":  {func(l *life) AddReceipt { return l.failure("t1", NotSent, false) }, Failed},
		"unknown":   {func(l *life) AddReceipt { return l.receipt("t1", Unknown, "") }, ResultUnknown},
	} {
		l := newLife(t).sent().wait(time.Minute)
		l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
		l.do(c.receipt(l), c.to)
		if open := l.a.CaseID() != ""; open != (c.to == ResultUnknown) {
			t.Errorf("%s: case open %v", name, open)
		}
	}
}

func TestReport29_ALateFailureDowngradesNothing(t *testing.T) {
	l := stationLife(t, "applied")
	l.do(l.failure("t1", "LATE", false), ResultUnknown)
	if l.a.Case.Kind != CaseContradiction || l.a.FailureCode != "" {
		t.Errorf("case %+v, code %q", l.a.Case, l.a.FailureCode)
	}
	// No machine's answer settles it.
	l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown)
	l.do(l.evidence(FoundNotExecuted, ProvesNothing), ResultUnknown)
	l.do(l.receipt("t1", Success, ProvesCompleted), ResultUnknown)
	l.do(l.settle(Happened), Applied)
	// What people have weighed does not open a case again.
	l.do(l.failure("t1", "LATE", false), Applied)
}

// Accepted is not completed: a refusal later is an outcome where completion was
// awaited, and a contradiction where acceptance was final.
func TestAcceptedAndRefusedLater(t *testing.T) {
	l := stationLife(t, "accepted")
	l.do(l.failure("t1", "OUT_OF_STOCK", false), Failed)
	if l.a.FailureCode != "OUT_OF_STOCK" || l.a.Attempts[0].Outcome != Failure {
		t.Errorf("code %q, attempt %+v", l.a.FailureCode, l.a.Attempts[0])
	}
	l.do(l.receipt("t1", Success, ProvesAccepted), Failed) // weighed before
	l.do(l.receipt("t1", Success, ProvesCompleted), ResultUnknown)
	final := newLife(t)
	final.terms.Proves = ProvesAccepted
	final.sent().do(final.receipt("t1", Success, ProvesAccepted), Accepted)
	if _, due := final.a.DueAt(); due {
		t.Error("acceptance is final and something is due")
	}
	final.do(final.failure("t1", "", false), ResultUnknown)
	if final.a.Case.Kind != CaseContradiction {
		t.Errorf("case %+v", final.a.Case)
	}
}

// People, or an answer by key, said that it did not happen; then it turns out
// that it did.
func TestProvenAfterItWasClosedAsFailed(t *testing.T) {
	for name, c := range map[string]func(l *life) Command{
		"receipt":  func(l *life) Command { return l.receipt("t1", Success, ProvesAccepted) },
		"evidence": func(l *life) Command { return l.evidence(FoundSucceeded, ProvesAccepted) },
	} {
		l := newLife(t).unknown().wait(time.Hour)
		first := l.a.CaseID()
		l.do(l.settle(DidNotHappen), Failed)
		tr := l.do(c(l), ResultUnknown)
		if l.a.Case.Kind != CaseContradiction || l.a.Case.Why != WhyContradiction || l.a.CaseID() == first || tr.Hold != HoldCase {
			t.Errorf("%s: case %+v, holds %q", name, l.a.Case, tr.Hold)
		}
	}
}

func TestALaterCodeDoesNotReplaceWhyItFailed(t *testing.T) {
	l := newLife(t).sent()
	l.do(l.failure("t1", "E1", false), Failed)
	l.do(l.failure("t1", "E2", false), Failed)
	l.do(l.reading("7", HoldsFalse), Failed)
	if l.a.FailureCode != "E1" {
		t.Errorf("code %q", l.a.FailureCode)
	}
}

func TestOneAttemptThatContradictsItself(t *testing.T) {
	l := newLife(t).retried()
	l.do(l.failure("t1", "", false), Executing)
	l.do(l.receipt("t1", Success, ProvesCompleted), ResultUnknown)
	if l.a.Case.Kind != CaseContradiction || l.a.Case.Why != WhyContradiction {
		t.Errorf("the open case stayed %+v", l.a.Case)
	}
	if first := readData[receipted](l.events[4]).Case; first == nil || first.ID != l.a.Case.ID {
		t.Error("a second case was opened beside the first")
	}
}

func TestTheVersionMovedBeforeItRan(t *testing.T) {
	for name, l := range map[string]*life{"confirmed": newLife(t).confirmed(), "claimed": newLife(t).claimed()} {
		same := l.reading("7", HoldsUnknown)
		l.do(same, l.a.State)
		none := l.reading("", HoldsUnknown)
		l.do(none, l.a.State)
		failed := l.reading("8", HoldsUnknown)
		failed.Observation.Failed = true
		l.do(failed, l.a.State)
		l.do(l.reading("8", HoldsUnknown), Conflict)
		if l.a.Executions() != 0 {
			t.Errorf("%s: %d executions", name, l.a.Executions())
		}
	}
	// Once it was sent, another version may be its own doing.
	l := newLife(t).sent()
	l.do(l.reading("8", HoldsUnknown), Executing)
}

func TestReadingsAskForApprovals(t *testing.T) {
	two, none := []Need{{Role: "support", Approvals: 2}}, []Need{}
	before := func() *life {
		l := newLife(t)
		l.terms.Before = "catalog.get_product"
		return l.proposed()
	}
	reading := func(l *life, needs []Need) AddObservation { c := l.reading("7", ""); c.Needs = needs; return c }
	l := before()
	l.do(reading(l, two), Proposed)
	if l.a.Needs[0].Approvals != 2 {
		t.Error("the rules were not heard")
	}
	l.do(reading(l, none), Proposed)
	if l.a.Needs[0].Approvals != 2 {
		t.Error("a reading left nobody to ask")
	}
	l.do(l.vote(mia, true), Proposed)
	l.do(reading(l, []Need{{Role: "support", Approvals: 1}}), Proposed)
	if l.a.Needs[0].Approvals != 2 {
		t.Error("needs were lowered after somebody had decided on them")
	}
	l = before()
	other := reading(l, two)
	other.Observation.Tool = "catalog.other"
	l.do(other, Proposed)
	failed := reading(l, two)
	failed.Observation.Failed = true
	l.do(failed, Proposed)
	if l.a.Needs[0].Approvals != 1 {
		t.Error("a reading that was not made for the decision changed it")
	}
	if _, ok := l.a.Before(); ok {
		t.Error("a failed reading counts as one")
	}
	l.do(reading(l, two), Proposed)
	if o, ok := l.a.Before(); !ok || o.Version != "7" {
		t.Errorf("before: %+v %v", o, ok)
	}
	l.do(l.revise(), Proposed)
	if _, ok := l.a.Before(); ok {
		t.Error("a reading for an earlier revision counts")
	}
}

func TestReadingBack(t *testing.T) {
	verifying := func() *life { return stationLife(t, "verifying") }
	t.Run("holds", func(t *testing.T) {
		l := verifying()
		if w := l.a.Work(); w != WorkVerify {
			t.Errorf("work %q", w)
		}
		l.do(l.reading("8", HoldsFalse), Accepted)
		l.do(l.reading("8", HoldsTrue), Applied)
	})
	t.Run("tries used up", func(t *testing.T) {
		l := verifying()
		for range 2 {
			l.wait(time.Second).do(l.reading("8", HoldsFalse), Accepted)
		}
		l.wait(time.Second).do(l.reading("8", HoldsFalse), ResultUnknown)
		if l.a.Case.Why != WhyMismatch {
			t.Errorf("case %+v", l.a.Case)
		}
	})
	t.Run("window over", func(t *testing.T) {
		l := verifying().wait(20 * time.Second)
		l.do(l.reading("8", HoldsFalse), ResultUnknown)
	})
	t.Run("a failed query says nothing", func(t *testing.T) {
		l := verifying().wait(time.Minute)
		for _, h := range []Holds{HoldsUnknown, HoldsFalse, HoldsTrue} {
			c := l.reading("", h)
			c.Observation.Failed = true
			l.do(c, Accepted)
		}
	})
	t.Run("before completion is proven", func(t *testing.T) {
		l := newLife(t)
		l.terms.Verify = true
		l.sent().do(l.receipt("t1", Success, ProvesQueued), Accepted)
		for range 5 {
			l.wait(10*time.Second).do(l.reading("8", HoldsFalse), Accepted)
		}
		l.do(l.reading("8", HoldsTrue), Accepted)
		l.do(l.receipt("t1", Success, ProvesCompleted), Accepted)
		l.wait(time.Second).do(l.reading("8", HoldsFalse), Accepted) // a new window
		l.do(l.reading("8", HoldsTrue), Applied)
	})
	t.Run("proven by key, read back afterwards", func(t *testing.T) {
		l := newLife(t)
		l.terms.Verify = true
		l.unknown().wait(time.Hour).do(l.evidence(FoundSucceeded, ProvesCompleted), Accepted)
		l.wait(time.Second).do(l.reading("8", HoldsFalse), Accepted)
		if due, _ := l.a.DueAt(); !due.After(l.now) {
			t.Error("the deadline was over before it was read back")
		}
	})
	t.Run("later than the window", func(t *testing.T) {
		l := stationLife(t, "mismatch")
		l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown) // said before, and not true
		l.do(l.reading("8", HoldsTrue), Applied)
		if l.a.CaseID() != "" {
			t.Error("the case stayed open")
		}
	})
	t.Run("nobody reads back", func(t *testing.T) {
		l := verifying().wait(3 * time.Minute)
		l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
	})
}
