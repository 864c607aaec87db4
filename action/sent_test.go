package action

import (
	"testing"
)

func TestVerdictsOfStepsAreTogetherOneOfTheWhole(t *testing.T) {
	l := newLife(t).inSteps().claimed()
	l.do(l.attempt("c1", "t1"), Executing)
	l.do(l.receipt("t1", Unknown, ""), ResultUnknown)
	says := func(want string, price, notify string) {
		t.Helper()
		said := map[string]string{}
		for step, verdict := range map[string]string{"price": price, "notify": notify} {
			if verdict != "" {
				said[step] = verdict
			}
		}
		if got, err := l.snap().Together(said); got != want || err != nil {
			t.Errorf("%v: %q, %v; want %q", said, got, err, want)
		}
	}
	if keys := l.a.Sent(); len(keys) != 1 || keys[0].Key != StepKey(l.a.ExecutionKey, "price") {
		t.Errorf("sent %v", keys)
	}
	says(Partly, Happened, "") // the notice was never sent
	says(DidNotHappen, DidNotHappen, "")
	says("", "", "")
	asked := l.evidence(FoundSucceeded, ProvesCompleted)
	asked.Found.Step = "notify"
	l.do(asked, ResultUnknown) // somebody else did it under our key: it is not known
	says("", Happened, "")
	says(Happened, Happened, Happened)
	says(Partly, DidNotHappen, Happened)

	l = newLife(t).between("t1")
	l.do(l.attempt("c1", "t2"), Executing)
	l.do(l.receipt("t2", Unknown, ""), ResultUnknown)
	says(Happened, "", Happened)
	says(Partly, "", DidNotHappen)
	if _, err := l.snap().Together(map[string]string{"price": DidNotHappen, "notify": DidNotHappen}); AsRefusal(err).Reason != "evidence-happened" {
		t.Errorf("against what the business system has proven: %v", err)
	}
	if len(l.a.Sent()) != 2 {
		t.Errorf("sent %v", l.a.Sent())
	}
}
