package triage_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// byOne reads what waits for a round one by one.
type byOne struct{ *store.DB }

func (o byOne) Concluded(ctx context.Context, after triage.Conclusion, _ int) ([]triage.Conclusion, error) {
	return o.DB.Concluded(ctx, after, 1)
}

func (o byOne) Joinable(ctx context.Context, after triage.ParkedCallback, _ int) ([]triage.ParkedCallback, error) {
	return o.DB.Joinable(ctx, after, 1)
}

// damage makes what is stored of an action unreadable, as only the database's
// owner can.
func (s *caseSet) damage(id string) {
	s.T.Helper()
	owner, err := sql.Open("postgres", storetest.Owner(s.DSN))
	must(s.t, err)
	defer owner.Close()
	_, err = owner.Exec(`UPDATE events SET kind = 'of-tomorrow' WHERE subject = $1 AND version = 1`, id)
	must(s.t, err)
}

// A linked action that cannot be read, or has not ended, stands first in every
// round and holds up nothing that comes after it.
func TestConcludingGoesOnBehindWhatDoesNotMove(t *testing.T) {
	s := casesOf(t)
	past := s.Later(3*time.Minute, storetest.Skewed)
	partly := func() action.Action {
		a, _ := s.unknown(askable)
		snap, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.Partly))
		must(t, err)
		return snap.Action
	}
	first, second, third := partly(), partly(), partly()
	lost := s.follow(past, first, action.LinkReplaces, 7, action.Success)
	s.damage(lost.ID)
	s.damage(second.ID)
	owner, err := sql.Open("postgres", storetest.Owner(s.DSN))
	must(t, err)
	defer owner.Close()
	_, err = owner.Exec(`UPDATE actions SET links = links || $1::text WHERE id = $2`, second.ID, lost.ID)
	must(t, err)
	s.follow(past, third, action.LinkReplaces, 7, action.Success)
	err = triage.New(byOne{past.DB}, past.Catalogue).Conclude(background())
	if err == nil || !strings.Contains(err.Error(), first.ID) || !strings.Contains(err.Error(), second.ID) || strings.Contains(err.Error(), third.ID) {
		t.Errorf("what cannot be concluded is not told: %v", err)
	}
	if a := s.Read(third.ID); a.State != action.Failed || a.FailureCode != action.Replaced {
		t.Errorf("behind what does not move, it is %s", a.State)
	}
}

// A callback about an action that cannot be read
// waits as long as it may, and others are joined behind it.
func TestJoiningGoesOnBehindWhatDoesNotMove(t *testing.T) {
	s := casesOf(t)
	const told = "shop.told"
	s.Tool(stage.Contract(told, "", `callback: { key: /key, outcome: { field: /status, succeeded: [SUCCEEDED] } }`))
	var waiting []action.Action
	for range 3 {
		a, _ := s.unknown(told)
		waiting = append(waiting, a)
	}
	for i, a := range waiting {
		_, err := s.DB.Park(background(), triage.ParkedCallback{Tool: told, WebhookID: string('a' + rune(i)), Key: a.ExecutionKey, Body: []byte(`{"key":"` + a.ExecutionKey + `","status":"SUCCEEDED"}`)})
		must(t, err)
	}
	s.damage(waiting[0].ID)
	s.damage(waiting[1].ID)
	callbacks, err := triage.NewCallbacks(byOne{s.DB}, byOne{s.DB}, s.Catalogue, []byte("a secret of 32 bytes for a round"))
	must(t, err)
	err = callbacks.JoinParked(background())
	if err == nil || strings.Count(err.Error(), "joining callback") != 2 {
		t.Errorf("what cannot be joined is not told: %v", err)
	}
	if a := s.Read(waiting[2].ID); a.State != action.Applied {
		t.Errorf("behind what does not move, it is %s", a.State)
	}
	left, _, err := s.DB.ParkedCallbacks(background(), people.Viewer{All: true}, 9)
	if err != nil || len(left) != 2 {
		t.Errorf("%d wait still: %v", len(left), err)
	}
}

// oneRun reads the runs that go on one by one.
type oneRun struct{ *store.DB }

func (o oneRun) OpenRuns(ctx context.Context, after triage.Run, _ int) ([]triage.Run, time.Time, error) {
	return o.DB.OpenRuns(ctx, after, 1)
}

// What is read page by page leaves no open run out: each is offered, and moved on.
func TestEveryOpenRunIsOfferedAndMovedOn(t *testing.T) {
	s := reconciling(t)
	rec := triage.NewReconciler(s.DB, oneRun{s.DB}, s.DB, s.Catalogue)
	var runs []triage.Run
	for range 3 {
		runs = append(runs, asked(s, s.Console, listed))
	}
	offered := func(wanted func(triage.Run) bool) int {
		t.Helper()
		found, err := rec.Offered(background(), wanted)
		must(t, err)
		return len(found)
	}
	if all, last := offered(func(triage.Run) bool { return true }), offered(func(r triage.Run) bool { return r.ID == runs[2].ID }); all != 3 || last != 1 {
		t.Errorf("%d and %d of 3 open runs are offered", all, last)
	}
	_, err := rec.TakePage(background(), s.Executor, runs[2].ID, triage.Listed{PageID: action.NewID("pag")})
	must(t, err)
	must(t, rec.Step(background()))
	if run, _, err := s.DB.Run(background(), runs[2].ID); err != nil || run.State != triage.RunDone {
		t.Errorf("the last of the open runs is %s, %v", run.State, err)
	}
}
