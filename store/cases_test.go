package store_test

import (
	"testing"

	"countersign/action"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// A page of unknown results costs what it shows, not how many there are.
func TestACasePageReadsWhatItShows(t *testing.T) {
	t.Parallel()
	s := set(t)
	const open, page = 20_000, 50
	a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
	a, attempt := s.Start(a, claim)
	a = s.Report(a, stage.Receipt(attempt, claim, action.Unknown))
	storetest.Multiply(t, storetest.Owner(s.DSN), a.ID, open)
	narrow := s.Open(s.DSN, store.Options{MaxConns: 1}) // whose counts can be flushed
	db := owner(t, s)
	cost := func(what string, read func()) {
		t.Helper()
		for range 8 { // past the point where a prepared statement gets its one plan
			read()
		}
		flush := func() {
			_, err := narrow.DB.Pool().Exec(`SELECT pg_stat_force_next_flush()`)
			must(t, err)
		}
		flush()
		before := readSoFar(t, db)
		read()
		flush()
		after := readSoFar(t, db)
		if scans, rows := after.scans-before.scans, after.rows-before.rows; scans > 0 || rows > 3*page {
			t.Errorf("%s: %d whole scans, %d rows for a page of %d", what, scans, rows, page)
		}
	}
	for _, tab := range []triage.CaseTab{triage.TabPerson, triage.TabOpen, triage.TabSecond, triage.TabSettled} {
		f := triage.CaseFilter{Viewer: people.Viewer{Limited: true, Scopes: []string{"shop"}}, Tab: tab, Limit: page}
		read := func() []action.Action {
			t.Helper()
			found, _, err := narrow.DB.Cases(background(), f)
			must(t, err)
			return found
		}
		if first := read(); len(first) == page { // the page after the first is what has to be found
			c := triage.CursorAt(first[page-1], tab)
			f.After = &c
		} else if tab == triage.TabPerson || tab == triage.TabOpen {
			t.Fatalf("%s lists %d", tab, len(first))
		}
		cost(string(tab), func() { read() })
	}
	f := triage.CaseFilter{Viewer: people.Viewer{Limited: true, Scopes: []string{"shop"}}, Tab: triage.TabPerson}
	since, err := s.DB.Now(background())
	must(t, err)
	cost("what is new", func() {
		if n, err := narrow.DB.CaseNews(background(), f, since, 100); n != 0 || err != nil {
			t.Fatalf("%d new: %v", n, err)
		}
	})
	n, err := s.DB.CaseCount(background(), triage.CaseFilter{Viewer: people.Viewer{All: true}, Tab: triage.TabPerson}, 100)
	if err != nil || n != 100 {
		t.Errorf("counted %d: %v", n, err)
	}
}
