package action

import (
	"testing"
	"time"
)

func TestSecondPerson(t *testing.T) {
	two := func() *life {
		l := newLife(t)
		l.terms.SecondPerson = true
		return l.unknown()
	}
	t.Run("confirms", func(t *testing.T) {
		l := two()
		l.do(l.settle(Happened), ResultUnknown)
		if v := l.a.Case.Pending; v == nil || v.By != ops || v.SnapshotHash != l.a.SnapshotHash() || l.a.Case.Verdict != nil {
			t.Fatalf("case %+v", l.a.Case)
		}
		if l.a.Exhausted() || l.a.Work() != WorkNone {
			t.Errorf("needs a person %v, work %q while another person is waited for", l.a.Exhausted(), l.a.Work())
		}
		if level, _ := l.a.Statement(l.now); level != LevelUnknown {
			t.Errorf("one person's finding is said to customers: %s", level)
		}
		if r := l.refuse(l.settle(Happened), Forbidden); r.Reason != "second-person" {
			t.Errorf("reason %q", r.Reason)
		}
		l.do(l.confirm(otto, true), Applied)
		if v := l.a.Case.Verdict; v.By != ops || v.Second == nil || v.Second.By != otto || v.Second.Note != "so <&>" || l.a.Case.Pending != nil {
			t.Errorf("verdict %+v", v)
		}
	})
	t.Run("finds the same", func(t *testing.T) {
		l := two()
		l.do(l.settle(Happened), ResultUnknown)
		same := l.settle(Happened)
		same.By, same.Verdict.EvidenceRef = otto, "r-10"
		l.do(same, Applied)
	})
	t.Run("finds otherwise", func(t *testing.T) {
		l := two()
		l.do(l.settle(Happened), ResultUnknown)
		other := l.settle(DidNotHappen)
		other.By = otto
		l.do(other, ResultUnknown)
		if c := l.a.Case; c.Pending.By != otto || len(c.Earlier) != 1 || c.Earlier[0].Verdict != Happened {
			t.Errorf("case %+v", c)
		}
		l.refuse(l.confirm(otto, true), Forbidden)
		l.wait(time.Hour).do(l.confirm(ops, true), Failed)
	})
	t.Run("refuses", func(t *testing.T) {
		l := two()
		l.do(l.settle(Happened), ResultUnknown)
		l.do(l.confirm(otto, false), ResultUnknown)
		if c := l.a.Case; c.Pending != nil || len(c.Earlier) != 1 || c.Earlier[0].Second.Agree || !l.a.Exhausted() {
			t.Errorf("case %+v", c)
		}
	})
	t.Run("corrects their own evidence", func(t *testing.T) {
		l := two()
		l.do(l.settle(Happened), ResultUnknown)
		better := l.settle(Happened)
		better.Verdict.EvidenceRef = "r-11"
		l.do(better, ResultUnknown)
		if c := l.a.Case; c.Pending.EvidenceRef != "r-11" || len(c.Earlier) != 1 {
			t.Errorf("case %+v", c)
		}
	})
	t.Run("something new is known", func(t *testing.T) {
		for name, news := range map[string]func(*life) Command{
			"a success by key": func(l *life) Command { return l.evidence(FoundSucceeded, ProvesCompleted) },
			"a denial":         func(l *life) Command { return l.evidence(FoundNotExecuted, "") },
			"a late receipt":   func(l *life) Command { return l.receipt("t1", Success, ProvesCompleted) },
		} {
			l := two()
			l.do(l.settle(Happened), ResultUnknown)
			stale := l.confirm(otto, true)
			l.do(l.evidence(FoundUnknown, ""), ResultUnknown)
			if l.a.Case.Pending == nil {
				t.Fatal("an answer that says nothing voids a verdict")
			}
			l.do(news(l), map[string]State{"a denial": ResultUnknown}[name]+map[bool]State{true: Applied}[name != "a denial"])
			if l.a.Case.Pending != nil || len(l.a.Case.Earlier) != 1 {
				t.Errorf("%s: case %+v", name, l.a.Case)
			}
			if _, err := l.try(stale); err == nil {
				t.Errorf("%s: confirmed what was not seen", name)
			}
		}
	})
}

func TestEvidenceOfAVerdict(t *testing.T) {
	l := newLife(t).unknown()
	answer := l.evidence(FoundUnknown, "")
	answer.Snapshot = []byte(`{"status":"unheard"}`)
	l.do(answer, ResultUnknown)
	hash := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		kind, ref, note, wrong string
	}{
		{EvidenceReference, "", "", "/evidence_ref"},
		{EvidenceReference, "RF-1", "", ""},
		{EvidenceSnapshot, "nothing", "", "/evidence_ref"},
		{EvidenceSnapshot, answer.Found.ID, "", ""},
		{EvidenceSnapshot, ContentHash(answer.Snapshot), "", ""},
		{EvidenceStatement, "the customer", " ", "/note"},
		{EvidenceStatement, "the customer", "has the money", ""},
		{EvidenceFile, "books.csv", "", "/evidence_ref"},
		{EvidenceFile, hash[:70], "", "/evidence_ref"},
		{EvidenceFile, hash, "", ""},
		{"rumour", "x", "y", "/evidence_kind"},
	} {
		v := Verdict{Verdict: Happened, EvidenceKind: c.kind, EvidenceRef: c.ref, Note: c.note}
		err := l.a.mayFind(v)
		if c.wrong == "" && err != nil || c.wrong != "" && (!IsCode(err, InvalidArgument) || AsRefusal(err).Errors[0].Pointer != c.wrong) {
			t.Errorf("%s %q %q: %v", c.kind, c.ref, c.note, err)
		}
	}
}

// What the business system has proven is not for people to deny, unless it
// contradicts itself.
func TestVerdictsAgainstProof(t *testing.T) {
	t.Run("it happened", func(t *testing.T) {
		l := newLife(t).unknown()
		l.do(l.settle(Partly), ResultUnknown)
		l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown)
		if r := l.refuse(l.settle(DidNotHappen), WrongState); r.Reason != "evidence-happened" || l.snap().Speaks(DidNotHappen) == nil {
			t.Errorf("reason %q", r.Reason)
		}
		l.do(l.settle(Happened), Applied)
	})
	t.Run("accepted only", func(t *testing.T) {
		l := stationLife(t, "accepted").wait(time.Hour)
		l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
		l.do(l.settle(DidNotHappen), Failed) // taken, and never done
	})
	t.Run("it did not", func(t *testing.T) {
		l := newLife(t).unknown().wait(time.Hour)
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown) // the retry is still allowed
		if r := l.refuse(l.settle(Happened), WrongState); r.Reason != "evidence-did-not-happen" {
			t.Errorf("reason %q", r.Reason)
		}
		l.do(l.settle(DidNotHappen), Failed)
	})
	t.Run("before the fence it may yet", func(t *testing.T) {
		l := newLife(t).unknown()
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		l.do(l.settle(Happened), Applied)
	})
	t.Run("what was promised is not there", func(t *testing.T) {
		l := stationLife(t, "mismatch")
		l.wait(time.Hour).do(l.settle(DidNotHappen), Failed)
	})
	t.Run("contradiction", func(t *testing.T) {
		for _, v := range []struct {
			verdict string
			state   State
		}{{Happened, Applied}, {DidNotHappen, Failed}} {
			l := stationLife(t, "applied").wait(time.Hour)
			l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
			l.do(l.settle(v.verdict), v.state)
		}
	})
}

// A finding is superseded, never edited, and only while nothing is closed.
func TestReport37_AVerdictIsSupersededNotEdited(t *testing.T) {
	l := newLife(t).unknown()
	l.do(l.settle(DidNotHappen), ResultUnknown)
	l.do(l.settle(Partly), ResultUnknown)
	l.do(l.settle(Happened), Applied)
	c := l.a.Case
	if len(c.Earlier) != 2 || c.Earlier[0].Verdict != DidNotHappen || c.Earlier[1].Verdict != Partly || c.Verdict.Verdict != Happened {
		t.Errorf("case %+v", c)
	}
	l.refuse(Settle{Op: l.op(), By: ops, CaseID: c.ID, Version: l.a.Version, Verdict: Verdict{Verdict: DidNotHappen, SnapshotHash: l.a.SnapshotHash()}}, WrongState)
	if c.ClosedAt != l.now || c.ClosedBy == "" {
		t.Errorf("closed at %v by %q", c.ClosedAt, c.ClosedBy)
	}
}

// Late truth reopens with a case of its own that shows both sides.
func TestLateTruthReopensWithBothSides(t *testing.T) {
	for name, c := range map[string]struct {
		verdict string
		closed  State
		late    func(*life) Command
	}{
		"it had happened": {DidNotHappen, Failed, func(l *life) Command { return l.receipt("t1", Success, ProvesCompleted) }},
		"it had not":      {Happened, Applied, func(l *life) Command { return l.failure("t1", "REFUSED", false) }},
	} {
		l := newLife(t).unknown().wait(time.Hour)
		settle := l.settle(c.verdict)
		l.do(settle, c.closed)
		first, late := l.a.Case.ID, c.late(l)
		l.wait(time.Hour).do(late, ResultUnknown)
		got := l.a.Case
		if got.ID == first || got.Kind != CaseContradiction || got.Believed != c.closed || got.Ground != settle.Op || got.News != late.op() {
			t.Errorf("%s: case %+v", name, got)
		}
		ground, ok := l.a.Done(got.Ground)
		if news, there := l.a.Done(got.News); !ok || !there || ground.By != ops || news.By != executor {
			t.Errorf("%s: the sides are %v and %v", name, ground.Kind, news.Kind)
		}
		if was, ok := l.a.CaseNamed(first); !ok || was.Open || was.Verdict.Verdict != c.verdict || len(l.a.PastCases) != 1 {
			t.Errorf("%s: the first case is %+v", name, was)
		}
		l.check()
	}
}

// An open case becomes a contradiction of what had been found out meanwhile.
func TestAnOpenCaseTurnsIntoAContradiction(t *testing.T) {
	l := stationLife(t, "accepted").wait(time.Hour)
	l.do(Tick{CaseID: "cas_1"}, ResultUnknown)
	late := l.evidence(FoundNotExecuted, "")
	l.do(late, ResultUnknown)
	c := l.a.Case
	ground, _ := l.a.Done(c.Ground)
	if c.ID != "cas_1" || c.Kind != CaseContradiction || c.News != late.op() || ground.Kind != KindReceipt {
		t.Errorf("case %+v, ground %s", c, ground.Kind)
	}
}

// That others change the object later contradicts nothing.
func TestDriftByOthersDoesNotReopen(t *testing.T) {
	l := stationLife(t, "verifying")
	l.do(l.reading("8", HoldsTrue), Applied)
	l.wait(time.Hour).do(l.reading("9", HoldsFalse), Applied)
	if l.a.CaseID() != "" {
		t.Errorf("case %+v", l.a.Case)
	}
}

// REPORTS 37: the probing ends visibly, and people can have it go on, within
// bounds.
func TestReport37_AskingNeverStopsSilently(t *testing.T) {
	l := newLife(t)
	l.terms.StatusQuery, l.terms.MaxPolls = "catalog.get_operation", 3
	l.unknown()
	ask := func(want int) {
		t.Helper()
		for i := range want {
			work, at := l.a.NextWork()
			if work != WorkAsk || l.a.Exhausted() {
				t.Fatalf("after %d answers: %q", i, work)
			}
			l.now = later(l.now, at)
			l.do(l.evidence(FoundUnknown, ""), ResultUnknown)
		}
		if !l.a.Exhausted() || l.a.Work() != WorkNone {
			t.Fatalf("after %d answers nobody is needed and %q is done", want, l.a.Work())
		}
	}
	ask(3)
	for range MaxAskAgain {
		l.wait(time.Second).do(l.askAgain(ops), ResultUnknown)
		if n, most := l.a.AskedSince(); n != 0 || most != 3 {
			t.Errorf("asked %d of %d", n, most)
		}
		ask(3)
	}
	l.refuse(l.askAgain(ops), RateLimited)
	l.do(l.settle(Happened), Applied)
	if l.a.Exhausted() {
		t.Error("a settled case needs a person")
	}
}

// People may have it asked while a finding waits for the fence, and the answer
// counts.
func TestAskingWhileAFindingWaits(t *testing.T) {
	l := newLife(t)
	l.terms.StatusQuery, l.terms.MaxPolls = "catalog.get_operation", 3
	l.unknown()
	l.do(l.settle(DidNotHappen), ResultUnknown)
	if l.a.Work() != WorkNone || l.a.Exhausted() {
		t.Errorf("work %q, needs a person %v", l.a.Work(), l.a.Exhausted())
	}
	l.wait(time.Second).do(l.askAgain(ops), ResultUnknown)
	if l.a.Work() != WorkAsk {
		t.Errorf("work %q", l.a.Work())
	}
	l.do(l.evidence(FoundSucceeded, ProvesCompleted), Applied)
}

func TestACaseIsHeldForAWhile(t *testing.T) {
	l := newLife(t).unknown()
	take := l.take(ops)
	l.do(take, ResultUnknown)
	if tr, err := l.try(take); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	r := l.refuse(l.take(otto), AlreadyClaimed)
	if r.Args["by"] != ops.Name || r.Args["until"] == "" {
		t.Errorf("args %v", r.Args)
	}
	settle := l.settle(Happened)
	settle.By = otto
	l.refuse(settle, AlreadyClaimed)
	l.refuse(l.handOver(otto, otto), AlreadyClaimed)
	l.wait(10*time.Minute).do(l.take(ops), ResultUnknown)
	if h, ok := l.a.HeldBy(l.now); !ok || h.ID != ops.ID || !h.Until.Equal(l.now.Add(TakeFor)) || !h.Since.Before(l.now) {
		t.Errorf("held %+v", h)
	}
	l.do(l.handOver(ops, otto), ResultUnknown)
	l.refuse(l.take(ops), AlreadyClaimed)
	l.wait(time.Hour).do(l.take(otto), ResultUnknown)
	l.do(l.handOver(otto, By{}), ResultUnknown)
	if _, ok := l.a.HeldBy(l.now); ok {
		t.Error("given back, and still held")
	}
	l.do(l.take(ops), ResultUnknown)
	l.wait(TakeFor)
	l.do(l.take(otto), ResultUnknown) // the time was over
	l.do(l.evidence(FoundSucceeded, ProvesCompleted), Applied)
	if l.a.Case.Holder != nil {
		t.Error("a closed case is held")
	}
}

// Whatever becomes known makes another hash; who holds the case does not.
func TestTheSnapshotHashCoversWhatIsKnown(t *testing.T) {
	l := newLife(t).unknown()
	seen := map[string]bool{l.a.SnapshotHash(): true}
	for i, c := range []Command{l.evidence(FoundUnknown, ""), l.reading("7", HoldsUnknown), l.receipt("t1", Unknown, "")} {
		l.do(c, ResultUnknown)
		if h := l.a.SnapshotHash(); seen[h] {
			t.Errorf("news %d leaves the hash as it was", i)
		} else {
			seen[h] = true
		}
	}
	other := l.a
	other.Observations = append([]Observation{}, l.a.Observations...)
	other.Observations[0].Snapshot = []byte(`{"price":101}`)
	if other.SnapshotHash() == l.a.SnapshotHash() {
		t.Error("other content has the same hash")
	}
	before := l.a.SnapshotHash()
	l.do(l.take(ops), ResultUnknown)
	if l.a.SnapshotHash() != before {
		t.Error("taking a case changes what is known")
	}
}

func TestAPreviewIsWhatSettlingDoes(t *testing.T) {
	for _, verdict := range []string{Happened, DidNotHappen, Partly} {
		for _, passed := range []time.Duration{0, time.Hour} {
			l := newLife(t).unknown().wait(passed)
			preview := l.snap().Settled(verdict)
			was := l.a.Case.Verdict
			l.do(l.settle(verdict), preview.State)
			want, _ := l.a.Statement(l.now)
			if got, _ := preview.Statement(l.now); got != want || preview.CaseID() != l.a.CaseID() || was != nil {
				t.Errorf("%s after %v: says %s, %s came", verdict, passed, got, want)
			}
		}
	}
}

// That a case was taken is repeated to who took it only while they hold it.
func TestTakenIsSaidOnlyToWhoHoldsTheCase(t *testing.T) {
	for name, end := range map[string]func(*life){
		"handed over to nobody":   func(l *life) { l.do(l.handOver(ops, By{}), ResultUnknown) },
		"held for its whole time": func(l *life) { l.now = l.a.Case.Holder.Until },
		"settled":                 func(l *life) { l.do(l.settle(Happened), Applied) },
	} {
		l := newLife(t).unknown()
		take := l.take(ops)
		l.do(take, ResultUnknown)
		if _, err := l.try(take); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		end(l)
		if _, err := l.try(take); !IsCode(err, StaleRevision) {
			t.Errorf("%s, it is taken again: %v", name, err)
		}
	}
}
