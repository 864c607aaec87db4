package triage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

const listed = "shop.listed"

// reconcile is how the operations of listed are compared.
const reconcile = `reconcile: { list: shop.list, key: /key, at: /at, outcome: { succeeded: [SUCCEEDED], queued: [QUEUED], failed: [FAILED] },
    fields: { /product_id: /product, /new_price: /price_cents, /memo: /memo }, settle: 1m, every: 10m, window: 1h }`

// reconciling makes a console with a tool whose operations can be listed.
func reconciling(t *testing.T) *stage.Stage {
	t.Helper()
	s := set(t)
	s.Tool("name: shop.list\nmode: read\ninput_schema: { type: object, properties: { from: { type: string }, to: { type: string } } }\nhttp: { method: GET, path: /operations }\n")
	s.Tool(strings.Replace(stage.Contract(listed, "", reconcile), "new_price: {", "memo: { type: string }, new_price: {", 1))
	return s
}

// did is an action that was done for a price, as far as is known.
func did(s *stage.Stage, price float64) action.Action { return didTo(s, stage.Product(), price) }

func didTo(s *stage.Stage, product string, price float64) action.Action {
	a := s.Approve(s.Propose(stage.Proposal(listed, product, price)), s.Mia)
	a, claim := s.Claim(a)
	a, attempt := s.Start(a, claim)
	return s.Report(a, stage.Receipt(attempt, claim, action.Success))
}

// came is an action of the tool that came to a state.
func came(s *stage.Stage, state action.State) action.Action {
	a := s.Propose(stage.Proposal(listed, stage.Product(), 105))
	if state == action.Proposed {
		return a
	}
	if a = s.Approve(a, s.Mia); state == action.Confirmed {
		return a
	}
	if state == action.Cancelled {
		snap, err := s.Approvals.Cancel(background(), s.Agent, a.ID, a.Version, "not wanted")
		if err != nil {
			s.T.Fatal(err)
		}
		return snap.Action
	}
	a, claim := s.Claim(a)
	if a, attempt := s.Start(a, claim); state != action.Executing {
		r := stage.Receipt(attempt, claim, map[action.State]action.Outcome{action.Applied: action.Success, action.Accepted: action.Success,
			action.Failed: action.Failure, action.Conflict: action.Failure, action.ResultUnknown: action.Unknown}[state])
		switch state {
		case action.Accepted:
			r.Proves = string(action.ProvesAccepted)
		case action.Conflict:
			r.HTTPStatus = 412
		}
		s.Report(a, r)
	}
	if a = s.Read(a.ID); a.State != state {
		s.T.Fatalf("the way to %s led to %s", state, a.State)
	}
	return a
}

// as is an action as the business system lists it. Members are field, value.
func as(a action.Action, outcome string, members ...string) contract.Listed {
	l := contract.Listed{Key: a.ExecutionKey, At: a.Attempts[0].At.Format(time.RFC3339Nano), Outcome: outcome,
		Fields: map[string]json.RawMessage{"/product_id": json.RawMessage(fmt.Sprintf("%q", a.Target.ID))}}
	for i := 0; i+1 < len(members); i += 2 {
		l.Fields[members[i]] = json.RawMessage(members[i+1])
	}
	return l
}

// asked is a run over the last hours until a while from now.
func asked(s *stage.Stage, c *stage.Console, tool string) triage.Run {
	s.T.Helper()
	run, err := c.Reconciler.Ask(background(), triage.Who{ID: s.Ops().ID}, triage.Asked{Op: action.NewSecret(8), Tool: tool, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)})
	if err != nil {
		s.T.Fatal(err)
	}
	return run
}

// compared is a run over, with what the business system lists, in a console that
// lives some time later.
func compared(s *stage.Stage, c *stage.Console, items ...contract.Listed) triage.Run {
	s.T.Helper()
	run := asked(s, c, listed)
	if _, err := c.Reconciler.TakePage(background(), s.Executor, run.ID, triage.Listed{PageID: action.NewID("pag"), Items: items}); err != nil {
		s.T.Fatal(err)
	}
	return stepped(s, c, run)
}

func stepped(s *stage.Stage, c *stage.Console, run triage.Run) triage.Run {
	s.T.Helper()
	if err := c.Reconciler.Step(background()); err != nil {
		s.T.Fatal(err)
	}
	run, _, err := s.DB.Run(background(), run.ID)
	if err != nil {
		s.T.Fatal(err)
	}
	return run
}

func foundIn(s *stage.Stage, run triage.Run) map[string]triage.Difference {
	s.T.Helper()
	all := map[string]triage.Difference{}
	for _, class := range []triage.Class{"", triage.ClassAwaiting} {
		list, err := s.DB.Differences(background(), triage.DifferenceFilter{Viewer: people.Viewer{All: true}, RunID: run.ID, Class: class, Limit: 500})
		if err != nil {
			s.T.Fatal(err)
		}
		for _, d := range list {
			all[d.Key] = d
		}
	}
	return all
}

// REPORTS 34: two of the same amount are two, and nothing is rounded.
func TestReport34_TwoOfTheSameAmountAreTwo(t *testing.T) {
	s := reconciling(t)
	later := s.Later(2*time.Minute, storetest.Skewed)
	product := stage.Product()
	first, second := didTo(s, product, 10), didTo(s, product, 10) // in all but their keys the same
	both := []contract.Listed{as(first, "SUCCEEDED", "/new_price", "1000"), as(second, "SUCCEEDED", "/new_price", "1000")}
	if run := compared(s, later, both...); run.Totals.Matched != 2 || run.Totals.Exceptions() != 0 {
		t.Errorf("totals %+v", run.Totals)
	}
	again := both[0]
	again.Key = "exk_" + strings.ToUpper(again.Key[4:10]) // paid once more, under a key that nobody knows
	run := compared(s, later, both[0], again)
	d := foundIn(s, run)
	if d[second.ExecutionKey].Class != triage.ClassOursOnly || d[again.Key].Class != triage.ClassTheirsOnly || run.Totals.Matched != 1 {
		t.Errorf("one stands for another: %+v", d)
	}
	for _, tt := range []struct {
		ours   float64
		theirs string
		same   bool
	}{
		{0.3, "0.30", true}, {0.3, `"0.30"`, true}, {0.3, "30", true}, {0.3, "0.30000000000000004", false}, {10.01, "10.005", false}, {10.01, "10.014", false},
		{1234567890.12, "1234567890.120", true}, {1234567890.12, "1234567890.13", false}, {100, "1e2", true}, {100, "1", false}, {1, "100", true}, {100, "null", false},
	} {
		a := did(s, tt.ours)
		run := compared(s, later, as(a, "SUCCEEDED", "/new_price", tt.theirs))
		if d := foundIn(s, run)[a.ExecutionKey]; (d.Key == "") != tt.same {
			t.Errorf("%v here, %s there: %+v", tt.ours, tt.theirs, d)
		}
	}
}

func TestEveryPairOfOutcomes(t *testing.T) {
	s := reconciling(t)
	later := s.Later(2*time.Minute, storetest.Skewed)
	type want struct {
		class triage.Class
		state action.State // afterwards
	}
	const none = ""
	for from, outcomes := range map[action.State]map[string]want{
		action.Applied:       {"SUCCEEDED": {none, action.Applied}, "FAILED": {triage.ClassMismatch, action.ResultUnknown}, "QUEUED": {triage.ClassMismatch, action.ResultUnknown}, none: {triage.ClassOursOnly, action.ResultUnknown}, "LOST": {triage.ClassMismatch, action.Applied}},
		action.Accepted:      {"SUCCEEDED": {none, action.Applied}, "FAILED": {triage.ClassMismatch, action.Failed}, "QUEUED": {triage.ClassAwaiting, action.Accepted}, none: {triage.ClassOursOnly, action.ResultUnknown}},
		action.Failed:        {"SUCCEEDED": {triage.ClassMismatch, action.ResultUnknown}, "FAILED": {none, action.Failed}, none: {none, action.Failed}, "QUEUED": {triage.ClassMismatch, action.ResultUnknown}},
		action.Conflict:      {"SUCCEEDED": {triage.ClassMismatch, action.ResultUnknown}, none: {none, action.Conflict}},
		action.ResultUnknown: {"SUCCEEDED": {triage.ClassAwaiting, action.Applied}, "FAILED": {triage.ClassAwaiting, action.Failed}, none: {triage.ClassAwaiting, action.ResultUnknown}, "QUEUED": {triage.ClassAwaiting, action.ResultUnknown}},
		action.Executing:     {"SUCCEEDED": {triage.ClassAwaiting, action.Executing}, none: {triage.ClassAwaiting, action.Executing}},
		action.Confirmed:     {"SUCCEEDED": {triage.ClassTheirsOnly, action.ResultUnknown}, "FAILED": {none, action.Confirmed}},
		action.Cancelled:     {"SUCCEEDED": {triage.ClassTheirsOnly, action.ResultUnknown}},
		action.Proposed:      {"SUCCEEDED": {triage.ClassTheirsOnly, action.Proposed}},
	} {
		for outcome, want := range outcomes {
			a := came(s, from)
			var items []contract.Listed
			if outcome != none {
				at := a
				if len(at.Attempts) == 0 {
					at.Attempts = []action.Attempt{{At: time.Now()}}
				}
				items = append(items, as(at, outcome, "/new_price", "105"))
			}
			d := foundIn(s, compared(s, later, items...))[a.ExecutionKey]
			if after := s.Read(a.ID); d.Class != want.class || after.State != want.state {
				t.Errorf("%s here, %q there: %q (%s), then %s; want %q, then %s", from, outcome, d.Class, d.Why, after.State, want.class, want.state)
			}
		}
	}
}

// flaky is a store whose console dies right before it notes what it has found.
type flaky struct {
	triage.RunStore
	deaths int
}

func (f *flaky) SaveRun(ctx context.Context, r triage.Run, found []triage.Difference, p triage.StoredPage) (bool, error) {
	if f.deaths > 0 {
		f.deaths--
		return false, errors.New("the console is gone")
	}
	return f.RunStore.SaveRun(ctx, r, found, p)
}

func TestAConsoleThatDiesHasSaidNothingTwice(t *testing.T) {
	s := reconciling(t)
	later := s.Later(2*time.Minute, storetest.Skewed)
	a, b := did(s, 10), did(s, 20)
	run := asked(s, s.Console, listed)
	_, err := later.Reconciler.TakePage(background(), s.Executor, run.ID, triage.Listed{PageID: "one", Items: []contract.Listed{as(a, "SUCCEEDED", "/new_price", "11"), as(b, "SUCCEEDED", "/new_price", "20")}})
	must(t, err)
	dying := triage.NewReconciler(s.DB, &flaky{later.DB, 1}, later.DB, later.Catalogue)
	if err := dying.Step(background()); err == nil {
		t.Fatal("it did not die")
	}
	if now := s.Read(a.ID); now.State != action.ResultUnknown {
		t.Fatalf("it died before it said anything: %s", now.State)
	}
	version := s.Read(a.ID).Version
	run = stepped(s, later, run)
	if run.State != triage.RunDone || run.Totals.Mismatch != 1 || run.Totals.Matched != 1 || s.Read(a.ID).Version != version {
		t.Errorf("%s, %+v, version %d, then %d", run.State, run.Totals, version, s.Read(a.ID).Version)
	}
	must(t, s.DB.DropStaged(background(), 1000))
	if rows, err := s.DB.Joined(background(), triage.Run{ID: run.ID}, 10); err != nil || len(rows) != 0 {
		t.Errorf("%d rows are left, %v", len(rows), err)
	}
	// Settled by a person, the same difference opens no second case.
	snap, err := s.Cases.Settle(background(), triage.Who{ID: s.Ops().ID}, triage.See(s.Read(a.ID)),
		triage.Finding{Verdict: action.Happened, EvidenceKind: action.EvidenceReference, EvidenceRef: "8841"})
	must(t, err)
	settled := snap.Action
	run = compared(s, later, as(a, "SUCCEEDED", "/new_price", "11"), as(b, "SUCCEEDED", "/new_price", "20"))
	if d := foundIn(s, run)[a.ExecutionKey]; s.Read(a.ID).State != settled.State || d.CaseID != settled.Case.ID || d.CaseOpen {
		t.Errorf("again: %s, %+v", s.Read(a.ID).State, d)
	}
	run = compared(s, later, as(a, "SUCCEEDED", "/new_price", "12"))
	if now := s.Read(a.ID); now.State != action.ResultUnknown || now.Case.ID == settled.Case.ID {
		t.Errorf("another difference: %s, %+v", now.State, run.Totals)
	}
}

func TestSweepsLeaveNoGapAndGiveUpVisibly(t *testing.T) {
	s := reconciling(t)
	sweep := func(c *stage.Console) (latest, done triage.Run) {
		t.Helper()
		must(t, c.Reconciler.Sweep(background()))
		latest, done, _, err := c.DB.Sweeps(background(), listed)
		must(t, err)
		return latest, done
	}
	first, _ := sweep(s.Console)
	now, err := s.DB.Now(background())
	must(t, err)
	if !first.Sweep || first.To.Sub(first.From) != time.Hour || now.Sub(first.To) < time.Minute {
		t.Fatalf("the first sweep is %+v", first)
	}
	if again, _ := sweep(s.Console); again.ID != first.ID {
		t.Error("another one before the first is over")
	}
	page := func(c *stage.Console, run triage.Run, cursor, next string) {
		t.Helper()
		_, err := c.Reconciler.TakePage(background(), s.Executor, run.ID, triage.Listed{PageID: action.NewID("pag"), Cursor: cursor, Next: next})
		must(t, err)
	}
	page(s.Console, first, "", "")
	first = stepped(s, s.Console, first)
	if first.State != triage.RunDone {
		t.Fatalf("the first is %s", first.State)
	}
	if again, _ := sweep(s.Console); again.ID != first.ID {
		t.Error("another one before it is due")
	}
	// An executor lists a page of the second and is gone: another one is offered
	// the rest, and without any the run is given up.
	soon := s.Later(20*time.Minute, storetest.Skewed)
	second, _ := sweep(soon)
	page(soon, second, "", "two")
	offers := func(c *stage.Console) (cursors []string) {
		t.Helper()
		runs, err := c.Reconciler.Offered(background(), func(triage.Run) bool { return true })
		must(t, err)
		for _, run := range runs {
			cursors = append(cursors, run.Cursor)
		}
		return cursors
	}
	if now, then := offers(soon), offers(s.Later(21*time.Minute, storetest.Skewed)); len(now) != 0 || len(then) != 1 || then[0] != "two" {
		t.Errorf("offered at once %q, a minute later %q", now, then)
	}
	late := s.Later(3*time.Hour, storetest.Skewed)
	second = stepped(s, late, second)
	if second.State != triage.RunGivenUp || second.Problem == "" || second.Totals.Matched != 0 {
		t.Errorf("the second is %s: %q, %+v", second.State, second.Problem, second.Totals)
	}
	third, done := sweep(late)
	if third.ID == second.ID || done.ID != first.ID || third.From.After(first.To) {
		t.Errorf("the third begins at %s, the first ended at %s", third.From, first.To)
	}
	// What never ends is given up, and so is what only fails; both with the reason.
	page(late, third, "", "two")
	circle, err := late.Reconciler.TakePage(background(), s.Executor, third.ID, triage.Listed{PageID: "p", Cursor: "two", Next: "two"})
	must(t, err)
	if circle.State != triage.RunGivenUp || circle.Problem == "" {
		t.Errorf("a circle is %s, %q", circle.State, circle.Problem)
	}
	run := asked(s, s.Console, listed)
	failed, err := s.Reconciler.TakePage(background(), s.Executor, run.ID, triage.Listed{PageID: "p", Error: "the system is away"})
	must(t, err)
	if failed.State != triage.RunWaiting || failed.Problem != "the system is away" || len(offers(s.Console)) != 0 || len(offers(soon)) != 1 {
		t.Errorf("after a failure: %+v", failed)
	}
	again, err := s.Reconciler.TakePage(background(), s.Executor, run.ID, triage.Listed{PageID: "p", Error: "the system is away"})
	if must(t, err); again.Tries != 1 || !again.OfferAt.Equal(failed.OfferAt) {
		t.Errorf("the same failure was counted twice: %+v", again)
	}
	_, err = s.Reconciler.TakePage(background(), s.Executor, run.ID, triage.Listed{PageID: "p", Error: "it is still away"})
	s.Refused(err, action.IdempotencyKeyInUse)
	_, err = late.Reconciler.TakePage(background(), s.Executor, third.ID, triage.Listed{PageID: "p", Cursor: "two", Next: "two"})
	must(t, err) // of what was given up with it
	if run = stepped(s, late, run); run.State != triage.RunGivenUp || run.Problem != "the system is away" {
		t.Errorf("in the end: %s, %q", run.State, run.Problem)
	}
}

func TestWhoMayReconcile(t *testing.T) {
	s := reconciling(t)
	ask := func(p people.Person, change func(*triage.Asked)) error {
		q := triage.Asked{Op: action.NewSecret(8), Tool: listed, From: time.Now().Add(-time.Hour), To: time.Now()}
		if change != nil {
			change(&q)
		}
		_, err := s.Reconciler.Ask(background(), triage.Who{ID: p.ID}, q)
		return err
	}
	s.Refused(ask(s.Mia, nil), action.Forbidden, "role")
	s.Refused(ask(s.PersonWith("one-tool", people.Grants{Roles: []string{people.RoleOps}, Tools: []string{stage.SetPrice}}), nil), action.Forbidden, "tool")
	s.Refused(ask(s.PersonWith("one-scope", people.Grants{Roles: []string{people.RoleOps}, Scopes: []string{"shop"}}), nil), action.Forbidden, "scope")
	s.Refused(ask(s.Ops(), func(q *triage.Asked) { q.Tool = stage.SetPrice }), action.InvalidArgument, "no-list")
	s.Refused(ask(s.Ops(), func(q *triage.Asked) { q.Tool = "shop.none" }), action.UnknownTool)
	s.Refused(ask(s.Ops(), func(q *triage.Asked) { q.From = q.To }), action.InvalidArgument, "period")
	s.Refused(ask(s.Ops(), func(q *triage.Asked) { q.From = q.To.AddDate(0, 0, -93) }), action.InvalidArgument, "window-long")
	s.Refused(ask(s.Ops(), func(q *triage.Asked) { q.From, q.To = q.To.Add(time.Hour), q.To.Add(2*time.Hour) }), action.InvalidArgument, "window-future")
}
