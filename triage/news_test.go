package triage_test

import (
	"testing"
	"time"

	"countersign/people"
	"countersign/triage"
)

// New in a tab is what was not in it: a case that was only taken is no news, one
// that came over from another tab is.
func TestNewsOfATab(t *testing.T) {
	t.Parallel()
	s := casesOf(t)
	now := func() time.Time {
		t.Helper()
		at, err := s.DB.Now(background())
		must(t, err)
		return at
	}
	news := func(since time.Time) (asking, person int) {
		t.Helper()
		count := func(tab triage.CaseTab) int {
			n, err := s.DB.CaseNews(background(), triage.CaseFilter{Viewer: people.Viewer{All: true}, Tab: tab}, since, 100)
			must(t, err)
			return n
		}
		return count(triage.TabAsking), count(triage.TabPerson)
	}
	want := func(what string, since time.Time, asking, person int) {
		t.Helper()
		if a, p := news(since); a != asking || p != person {
			t.Errorf("%s: %d new where it is asked, %d where a person is needed; want %d and %d", what, a, p, asking, person)
		}
	}
	empty := now()
	a, _ := s.unknown(askable)
	asking := now()
	want("it became unknown", empty, 1, 0)
	want("nothing since", asking, 0, 0)
	for !a.Exhausted() {
		a = s.answer(a, "NOT_FOUND")
	}
	exhausted := now()
	want("asking is over", empty, 0, 1)
	want("asking is over, as somebody sees who saw it being asked", asking, 0, 1)
	_, err := s.Cases.Take(background(), who(s.olga), triage.See(a))
	must(t, err)
	want("it was taken", exhausted, 0, 0)
}
