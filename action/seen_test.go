package action

import (
	"testing"
	"time"
)

// askedOnce is an unknown outcome of a contract without a retry, whose fence is
// over, and when it was sent.
func askedOnce(t *testing.T) (l *life, sent, fence time.Time) {
	l = newLife(t)
	l.terms.RetrySameKey = false
	l.terms.StatusQuery, l.terms.MaxPolls = "catalog.get_operation", 3
	l.unknown()
	sent, fence = l.a.Attempts[0].At, l.a.FencedAt()
	l.now = fence.Add(time.Hour)
	return l, sent, fence
}

func (l *life) evidenceOf(outcome string, observed time.Time) AddEvidence {
	c := l.evidence(outcome, ProvesCompleted)
	c.Found.ObservedAt = observed
	return c
}

// What was read before a request was recorded says nothing of it, however late it
// arrives, and that nothing was executed counts from the fence on.
func TestAnAnswerOfBeforeItWasSentProvesNothing(t *testing.T) {
	for _, outcome := range []string{FoundNotExecuted, FoundSucceeded, FoundFailed} {
		l, sent, fence := askedOnce(t)
		l.do(l.evidenceOf(outcome, sent.Add(-time.Microsecond)), ResultUnknown)
		if f := l.a.Asks[0].Found; f.Outcome != FoundUnknown || f.Untimely != outcome || f.Proves != ProvesNothing || l.a.Proven != ProvesNothing || l.a.NotExecuted() {
			t.Errorf("%s: %+v, proven %q", outcome, f, l.a.Proven)
		}
		if n, _ := l.a.AskedSince(); n != 1 || l.a.Work() != WorkAsk {
			t.Errorf("%s: asked %d times, then %q", outcome, n, l.a.Work())
		}
		if outcome != FoundNotExecuted {
			continue
		}
		l.do(l.evidenceOf(outcome, fence.Add(-time.Microsecond)), ResultUnknown)
		if l.a.of("").provenUndone() {
			t.Error("an answer of before the fence proves that nothing happened")
		}
		l.do(l.evidenceOf(outcome, fence), Failed)
	}
	// A clock that is ahead moves nothing forward.
	l, _, fence := askedOnce(t)
	l.now = fence.Add(-time.Microsecond)
	l.do(l.evidenceOf(FoundNotExecuted, fence.Add(time.Hour)), ResultUnknown)
	// What was read at the moment of sending counts.
	l, sent, _ := askedOnce(t)
	l.do(l.evidenceOf(FoundSucceeded, sent), Applied)
}

// That nothing stands under a key says nothing once the business system may have
// forgotten it. What is listed, or reported on its own account, is no answer by key.
func TestNotExecutedProvesNothingOnceTheKeyMayBeForgotten(t *testing.T) {
	for _, source := range []string{"catalog.get_operation", "catalog.list"} {
		l, sent, _ := askedOnce(t)
		known := sent.Add(24 * time.Hour * 9 / 10)
		l.now = known.Add(time.Hour)
		late := l.evidenceOf(FoundNotExecuted, known)
		late.Found.Source = source
		if source != l.a.Terms.StatusQuery {
			l.do(late, Failed)
			continue
		}
		l.do(late, ResultUnknown)
		if f := l.a.Asks[0].Found; f.Outcome != FoundUnknown || f.Untimely != FoundNotExecuted || l.a.of("").provenUndone() {
			t.Errorf("%+v, proven undone: %v", f, l.a.of("").provenUndone())
		}
		if tr, err := l.try(late); err != nil || tr.Event.Kind != "" {
			t.Errorf("the same again: wrote %q: %v", tr.Event.Kind, err)
		}
		l.do(l.settle(Happened), Applied) // people may know better
		l, _, _ = askedOnce(t)
		l.now = known.Add(time.Hour)
		l.do(l.evidenceOf(FoundNotExecuted, known.Add(-time.Microsecond)), Failed)
	}
}

func TestAnAnswerOfBeforeItWasSentClearsNoRetry(t *testing.T) {
	l := newLife(t).unknown()
	first := l.a.Attempts[0].At
	l.wait(time.Minute).do(l.evidenceOf(FoundNotExecuted, first.Add(-time.Second)), ResultUnknown)
	l.refuse(l.retry("c2"), WrongState)
	l.do(l.evidenceOf(FoundNotExecuted, first.Add(time.Second)), ResultUnknown)
	l.do(l.retry("c2"), Executing)
	l.wait(2*time.Second).do(l.attempt("c2", "t2"), Executing)
	l.do(l.receipt("t2", Unknown, ""), ResultUnknown)
	l.now = l.a.FencedAt().Add(time.Minute)
	// Of between the two requests: that nothing was executed is about one of them
	// only, that something was is proof.
	l.do(l.evidenceOf(FoundNotExecuted, first.Add(time.Second)), ResultUnknown)
	if l.a.NotExecuted() {
		t.Error("an answer about the first request is one about the second")
	}
	l.do(l.evidenceOf(FoundSucceeded, first.Add(time.Second)), Applied)
}

func TestAReadingOfBeforeItWasSentShowsNothing(t *testing.T) {
	for _, h := range []Holds{HoldsTrue, HoldsFalse} {
		l := newLife(t)
		l.terms.Verify, l.terms.VerifyTries = true, 1
		l.claimed().do(l.attempt("c1", "t1"), Executing)
		sent := l.now
		l.wait(time.Second).do(l.receipt("t1", Success, ProvesCompleted), Accepted)
		l.wait(time.Hour)
		c := l.reading("7", h)
		c.Observation.ObservedAt, c.Observation.Final = sent.Add(-time.Microsecond), true
		l.do(c, Accepted)
		if o := l.a.Observations[0]; o.Holds != HoldsUnknown || o.Final {
			t.Errorf("%+v", o)
		}
		c = l.reading("8", h)
		c.Observation.ObservedAt = l.now.Add(100 * 365 * 24 * time.Hour)
		l.do(c, map[Holds]State{HoldsTrue: Applied, HoldsFalse: ResultUnknown}[h])
		if o := l.a.Observations[1]; !o.ObservedAt.Equal(l.now) {
			t.Errorf("observed at %v, now %v", o.ObservedAt, l.now)
		}
		l.wait(time.Hour)
		if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
			t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
		}
	}
}

func TestAnOlderReadingDisplacesNone(t *testing.T) {
	l := newLife(t)
	l.terms.Before = "catalog.get_product"
	l.do(l.propose(), Proposed)
	fresh := l.reading("7", HoldsUnknown)
	l.do(fresh, Proposed)
	older := l.reading("6", HoldsUnknown)
	older.Observation.ObservedAt, older.Needs = l.now.Add(-time.Second), []Need{}
	l.do(older, Proposed)
	if b, _ := l.a.Before(); b.ID != fresh.Observation.ID || !needsPeople(l.a.Needs) || len(l.a.Observations) != 2 {
		t.Errorf("%+v stands, needs %+v", b, l.a.Needs)
	}
	newer := l.reading("8", HoldsUnknown)
	l.do(newer, Proposed)
	if b, _ := l.a.Before(); b.ID != newer.Observation.ID {
		t.Errorf("%+v stands", b)
	}
}

// An id is used once, whether it was taken for a reading or an answer by key.
func TestAnObservationCountsOnce(t *testing.T) {
	l := newLife(t)
	l.terms.RetrySameKey = false
	l.claimed()
	before := l.reading("", HoldsUnknown)
	before.Observation.Tool = "catalog.get_operation"
	l.do(before, Executing)
	l.do(l.attempt("c1", "t1"), Executing)
	l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
	l.now = l.a.FencedAt()
	same := l.evidenceOf(FoundNotExecuted, before.Observation.ObservedAt)
	same.Found.ID, same.Snapshot = before.Observation.ID, before.Observation.Snapshot
	if tr, err := l.try(same); err != nil || tr.Event.Kind != "" || l.a.State != ResultUnknown {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	other := same
	other.Snapshot = []byte(`{"status":"NOT_EXECUTED"}`)
	l.refuse(other, IdempotencyKeyInUse)
	later := same
	later.Found.ObservedAt = before.Observation.ObservedAt.Add(-time.Second)
	l.refuse(later, IdempotencyKeyInUse)

	answer := l.evidenceOf(FoundUnknown, l.now)
	answer.Snapshot = before.Observation.Snapshot
	l.do(answer, ResultUnknown)
	reading := l.reading("", HoldsUnknown)
	reading.Observation.ID, reading.Observation.Tool = answer.Found.ID, answer.Found.Source
	if tr, err := l.try(reading); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	reading.Observation.Tool = "catalog.get_product"
	l.refuse(reading, IdempotencyKeyInUse)
}
