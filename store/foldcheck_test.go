package store_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
)

// checked runs FoldCheck and returns what it found, as "action column".
func checked(t *testing.T, db *store.DB, id string) (store.FoldResult, []string) {
	t.Helper()
	var found []string
	result, err := db.FoldCheck(context.Background(), id, func(d store.Difference) {
		if d.Row == d.Events {
			t.Errorf("%s %s: reported, though both say %s", d.Action, d.Column, d.Row)
		}
		found = append(found, d.Action+" "+d.Column)
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Differences != len(found) {
		t.Errorf("counted %d differences, reported %d", result.Differences, len(found))
	}
	return result, found
}

func TestFoldEqualsTheRowInEveryState(t *testing.T) {
	s := stage.New(t, storetest.New(t))
	later := s.Later(48*time.Hour, storetest.Skewed)
	events := 0
	for _, state := range action.States() {
		a := s.At(state, later)
		events += int(a.Version)
	}
	result, found := checked(t, s.DB, "")
	if len(found) > 0 {
		t.Errorf("differences: %q", found)
	}
	if want := len(action.States()); result.Actions != want || result.Events != events {
		t.Errorf("looked at %+v, want %d actions and %d events", result, want, events)
	}
}

// Whatever state an action was left in, a draft that was given up among them: what
// the business system proves of its key can be written, and a case opens where that
// is news.
func TestWhatTheBusinessSystemProvesCanBeWrittenInEveryState(t *testing.T) {
	s := stage.New(t, storetest.New(t))
	later := s.Later(48*time.Hour, storetest.Skewed)
	draft := s.At(action.Draft, later)
	snap, err := s.Approvals.Cancel(background(), s.Agent, draft.ID, draft.Version, "not wanted")
	must(t, err)
	all := []action.Action{snap.Action}
	for _, state := range action.States() {
		if !state.In(action.Draft, action.Proposed) { // it has not left anything that could be asked about
			all = append(all, s.At(state, later))
		}
	}
	for _, a := range all {
		told := action.AddEvidence{By: action.By{Kind: action.BySystem}, CaseID: action.NewID("cas"),
			Found: action.Found{ID: action.NewID("obs"), Source: "shop.query", Outcome: action.FoundSucceeded, Proves: action.ProvesCompleted}}
		snap, err := action.Change(background(), s.DB, a.ID, func(action.Snapshot) (action.Command, error) { return told, nil })
		news := !a.State.In(action.Accepted, action.Applied, action.ResultUnknown)
		if got := snap.Action; err != nil || news != (got.CaseID() != "") {
			t.Errorf("%s became %s, case %q: %v", a.State, got.State, got.CaseID(), err)
		}
	}
	if _, found := checked(t, s.DB, ""); len(found) > 0 {
		t.Errorf("differences: %q", found)
	}
}

// What somebody with the owner's password changes is found, column by column.
func TestFoldCheckFindsWhatWasChanged(t *testing.T) {
	s := stage.New(t, storetest.New(t))
	owner, err := sql.Open("postgres", storetest.Owner(s.DSN))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close() })
	change := func(query string, args ...any) {
		t.Helper()
		if r, err := owner.Exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		} else if n, _ := r.RowsAffected(); n != 1 {
			t.Fatalf("%s changed %d rows", query, n)
		}
	}
	whole := s.Confirmed(stage.SetPrice, stage.Product())
	for column, query := range map[string]string{
		"state":            `UPDATE actions SET state = 'applied' WHERE id = $1`,
		"payload_hash":     `UPDATE actions SET payload_hash = 'sha256:00' WHERE id = $1`,
		"deciders":         `UPDATE actions SET deciders = '{}' WHERE id = $1`,
		"expires_at":       `UPDATE actions SET expires_at = expires_at + interval '1 microsecond' WHERE id = $1`,
		"target_id":        `UPDATE actions SET target_id = 'elsewhere' WHERE id = $1`,
		"confirmation_ref": `UPDATE actions SET confirmation_ref = 'cnf_other' || id WHERE id = $1`,
		"row":              `DELETE FROM actions WHERE id = $1`,
	} {
		a := s.Confirmed(stage.SetPrice, stage.Product())
		change(query, a.ID)
		if _, found := checked(t, s.DB, a.ID); !slices.Equal(found, []string{a.ID + " " + column}) {
			t.Errorf("%s: found %q", column, found)
		}
	}
	forged := s.Confirmed(stage.SetPrice, stage.Product())
	change(`UPDATE bodies SET content = convert_to(replace(convert_from(content, 'UTF8'), '105', '501'), 'UTF8') WHERE subject = $1 AND version = 1`, forged.ID)
	if _, found := checked(t, s.DB, forged.ID); !slices.Equal(found, []string{forged.ID + " payload"}) {
		t.Errorf("a payload that was changed: found %q", found)
	}
	cut := s.Confirmed(stage.SetPrice, stage.Product())
	change(`DELETE FROM events WHERE subject = $1 AND version = 2`, cut.ID)
	if _, found := checked(t, s.DB, cut.ID); len(found) == 0 || !strings.HasPrefix(found[0], cut.ID) {
		t.Errorf("an event that was removed: found %q", found)
	}
	if _, found := checked(t, s.DB, whole.ID); len(found) > 0 {
		t.Errorf("an action that nobody touched: found %q", found)
	}
	if result, found := checked(t, s.DB, ""); result.Actions != 9 || len(found) < 9 {
		t.Errorf("all of them: looked at %+v, found %q", result, found)
	}
}

// More actions than one statement reads.
func TestFoldCheckGoesOnAfterABatch(t *testing.T) {
	s := stage.New(t, storetest.New(t))
	const many = 430
	for range many {
		s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	}
	if result, found := checked(t, s.DB, ""); result.Actions != many || len(found) > 0 {
		t.Errorf("looked at %+v, found %q", result, found)
	}
}
