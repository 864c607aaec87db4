package action

import (
	"testing"
	"time"
)

// A person has the same sent once more although nobody could say that nothing
// was executed: the key protects it, once nothing else is on its way.
func TestAPersonSendsAgain(t *testing.T) {
	l := newLife(t).unknown()
	l.do(l.evidence(FoundUnknown, ""), ResultUnknown)
	if r := l.refuse(l.sendAgain(ops), WrongState); r.Reason != "retry-fence" || r.Args["until"] != l.a.FencedAt().UTC().Format(time.RFC3339) {
		t.Fatalf("before the fence: %s %v", r.Reason, r.Args)
	}
	l.now = l.a.FencedAt()
	l.held(ops)
	stale := l.sendAgain(ops)
	l.do(l.evidence(FoundUnknown, ""), ResultUnknown)
	l.refuse(stale, StaleRevision)
	c := l.sendAgain(ops)
	tr := l.do(c, ResultUnknown)
	if !tr.Before.Equal(noon.Add(24*time.Hour*9/10)) || l.a.Work() != WorkRetry || l.a.Exhausted() || l.a.Case.Holder == nil {
		t.Fatalf("before %v, work %q, needs a person %v, held by %v", tr.Before, l.a.Work(), l.a.Exhausted(), l.a.Case.Holder)
	}
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	if r := l.refuse(l.sendAgain(ops), WrongState); r.Reason != "retry-soon" {
		t.Errorf("a second time: %s", r.Reason)
	}
	l.do(l.retry("c2"), Executing)
	l.do(l.attempt("c2", "t2"), Executing)
	if l.a.Case.SendAgain {
		t.Error("another request may be sent for what one person wanted once")
	}
	l.do(l.receipt("t2", Unknown, ""), ResultUnknown)
	l.wait(time.Hour)
	if r := l.refuse(l.sendAgain(ops), WrongState); r.Reason != "retry-used" {
		t.Errorf("after the retry: %s", r.Reason)
	}
}

// What a person wanted does not outlive what it rested on.
func TestSendingAgainEnds(t *testing.T) {
	wanted := func() *life {
		l := newLife(t).unknown().wait(3 * time.Minute)
		l.do(l.sendAgain(ops), ResultUnknown)
		return l
	}
	t.Run("with the key", func(t *testing.T) {
		l := wanted()
		due, ok := l.a.DueAt()
		if l.now = due; !ok || !due.Equal(noon.Add(24*time.Hour*9/10)) {
			t.Fatalf("due %v %v", due, ok)
		}
		l.refuse(l.retry("c2"), ExpiredCode)
		l.do(Tick{}, ResultUnknown)
		if _, due := l.a.DueAt(); due || l.a.Work() == WorkRetry || l.a.Case.SendAgain {
			t.Errorf("due %v, work %q", due, l.a.Work())
		}
	})
	t.Run("with a proof", func(t *testing.T) {
		l := wanted()
		l.do(l.evidence(FoundSucceeded, ProvesCompleted), Applied)
		l.refuse(l.retry("c2"), WrongState)
	})
	t.Run("with a finding", func(t *testing.T) {
		l := wanted()
		l.do(l.settle(Partly), ResultUnknown)
		if l.a.Work() == WorkRetry {
			t.Error("it is sent again after people found out")
		}
		l.refuse(l.retry("c2"), WrongState)
	})
	t.Run("with a finding that waits for another person", func(t *testing.T) {
		l := newLife(t)
		l.terms.SecondPerson = true
		l.unknown().wait(3 * time.Minute)
		l.do(l.settle(Happened), ResultUnknown)
		if r := l.refuse(l.sendAgain(ops), WrongState); r.Reason != "retry-known" {
			t.Errorf("reason %s", r.Reason)
		}
	})
}

// Moments are as fine as they are stored.
func TestTheKeysEndIsAWholeMicrosecond(t *testing.T) {
	l := newLife(t)
	l.terms.KeyLifetime = time.Hour + 3*time.Microsecond
	l.unknown()
	if until, ok := l.a.KeyUntil(); !ok || until.Nanosecond()%1000 != 0 {
		t.Errorf("%v %v", until, ok)
	}
}
