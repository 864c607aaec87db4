package triage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// The contracts of these tests: a price change that can be asked about, and one
// for which two people settle from 100 on.
const (
	askable = "shop.askable"
	risky   = "shop.risky"
)

// caseSet is a console with two people who settle.
type caseSet struct {
	*stage.Stage
	t          *testing.T
	olga, otto people.Person
}

func casesOf(t *testing.T) *caseSet {
	t.Helper()
	s := &caseSet{Stage: set(t), t: t}
	s.olga, s.otto = s.Person("olga", people.RoleOps), s.Person("otto", people.RoleOps)
	query := `status_query: { tool: shop.operation, max_polls: 2 }`
	s.Tool(stage.Contract(askable, "", query))
	s.Tool(stage.Contract(risky, "", query+"\n  second_person_when: \"payload.new_price >= 100.0\""))
	return s
}

// unknown returns an action whose one attempt has no known outcome.
func (s *caseSet) unknown(tool string) (action.Action, string) {
	s.T.Helper()
	a, claim, attempt := running(s.Stage, tool)
	a = s.Report(a, stage.Receipt(attempt, claim, action.Unknown))
	if a.State != action.ResultUnknown {
		s.T.Fatalf("%s is %s", a.ID, a.State)
	}
	return a, attempt
}

// answer reports an answer by key.
func (s *caseSet) answer(a action.Action, status string) action.Action {
	s.T.Helper()
	snap, err := s.Triage.Observe(background(), s.Executor, a.ID, reading("shop.operation", fmt.Sprintf(`{"status":%q}`, status)))
	must(s.t, err)
	return snap.Action
}

func who(p people.Person) triage.Who { return triage.Who{ID: p.ID, Method: "password"} }

func found(verdict string) triage.Finding {
	return triage.Finding{Verdict: verdict, EvidenceKind: action.EvidenceReference, EvidenceRef: "RF-1", Note: "by phone"}
}

func (s *caseSet) tab(tab triage.CaseTab) []string {
	s.T.Helper()
	list, _, err := s.DB.Cases(background(), triage.CaseFilter{Viewer: people.Viewer{All: true}, Tab: tab, Limit: 100})
	must(s.t, err)
	ids := []string{}
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return ids
}

func (s *caseSet) in(a action.Action) string {
	s.T.Helper()
	var tabs []string
	for _, tab := range []triage.CaseTab{triage.TabPerson, triage.TabAsking, triage.TabSecond, triage.TabSettled} {
		for _, id := range s.tab(tab) {
			if id == a.ID {
				tabs = append(tabs, string(tab))
			}
		}
	}
	return strings.Join(tabs, ",")
}

// REPORTS 24, 36, 37: a timeout is a case, what is still asked is no exception,
// and when asking is over a person is told.
func TestReport24_36_37_FromTimeoutToSettled(t *testing.T) {
	s := casesOf(t)
	a, _ := s.unknown(askable)
	if got := s.in(a); got != "asking" {
		t.Fatalf("a new case is in %q", got)
	}
	a = s.answer(a, "UNHEARD")
	a = s.answer(a, "UNHEARD")
	if got := s.in(a); got != "person" || a.Work() != action.WorkNone {
		t.Fatalf("asked in vain, it is in %q and %q is done", got, a.Work())
	}
	snap, err := s.Cases.AskAgain(background(), who(s.olga), triage.See(a))
	must(t, err)
	if got := s.in(a); got != "asking" || snap.Action.Work() != action.WorkAsk {
		t.Fatalf("asked again, it is in %q", got)
	}
	for range 2 {
		a = s.answer(a, "UNHEARD")
	}
	snap, err = s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.Happened))
	must(t, err)
	if got := s.in(a); got != "settled" || snap.Action.State != action.Applied {
		t.Errorf("settled, it is %s in %q", snap.Action.State, got)
	}
	v := snap.Action.Case.Verdict
	if v.By.ID != s.olga.ID || v.By.Role != people.RoleOps || v.By.Method != "password" || v.Note != "by phone" || v.SnapshotHash != a.SnapshotHash() {
		t.Errorf("verdict %+v", v)
	}
	again, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.Happened))
	if err != nil || again.Action.Version != snap.Action.Version {
		t.Errorf("the same form again: %v, version %d", err, again.Action.Version)
	}
	_, err = s.Cases.Settle(background(), who(s.olga), triage.See(snap.Action), found(action.DidNotHappen))
	s.Refused(err, action.WrongState)
	if result, err := s.DB.FoldCheck(background(), a.ID, func(d store.Difference) { t.Error(d) }); err != nil || result.Actions != 1 {
		t.Error(err)
	}
}

// REPORTS 25: the one retry has the key and the bytes of the first attempt.
func TestReport25_ARetryKeepsItsKey(t *testing.T) {
	s := casesOf(t)
	a, _ := s.unknown(askable)
	key := a.ExecutionKey
	a = s.answer(a, "NOT_EXECUTED")
	if a.Work() != action.WorkRetry {
		t.Fatalf("to do: %q", a.Work())
	}
	c, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
	must(t, err)
	if c.Action.ExecutionKey != key || c.Action.State != action.Executing || c.Action.CaseID() != a.CaseID() {
		t.Errorf("%s with key %s, case %q", c.Action.State, c.Action.ExecutionKey, c.Action.CaseID())
	}
}

// REPORTS 26: what was definitely refused is proposed again under a new key, so
// that the stored refusal is not its answer.
func TestReport26_ANewProposalHasANewKey(t *testing.T) {
	s := casesOf(t)
	a, claim, attempt := running(s.Stage, askable)
	a = s.Report(a, stage.Receipt(attempt, claim, action.Failure))
	p := stage.Proposal(askable, a.Target.ID, 105)
	if b := s.Propose(p); a.State != action.Failed || b.ExecutionKey == a.ExecutionKey || b.PayloadHash != a.PayloadHash {
		t.Errorf("%s, keys %s and %s", a.State, a.ExecutionKey, b.ExecutionKey)
	}
}

// REPORTS 28, 29: neither a server's trouble nor a late refusal undoes what is
// known.
func TestReport28_29_WhatIsKnownIsNotLowered(t *testing.T) {
	s := casesOf(t)
	for _, status := range []int{408, 429, 500, 503} {
		a, claim, attempt := running(s.Stage, askable)
		r := stage.Receipt(attempt, claim, action.Failure)
		r.HTTPStatus = status
		if a = s.Report(a, r); a.State != action.ResultUnknown {
			t.Errorf("%d makes it %s", status, a.State)
		}
	}
	a, attempt := s.unknown(askable)
	snap, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.Happened))
	must(t, err)
	first := snap.Action.Case.ID
	late := s.Report(snap.Action, stage.Receipt(attempt, a.Claim.ID, action.Failure))
	c := late.Case
	if late.State != action.ResultUnknown || c.Kind != action.CaseContradiction || c.ID == first || c.Believed != action.Applied {
		t.Fatalf("%s, case %+v", late.State, c)
	}
	ground, _ := late.Done(c.Ground)
	news, _ := late.Done(c.News)
	if ground.By.ID != s.olga.ID || news.By.ID != s.Executor.ID {
		t.Errorf("the sides are of %s and %s", ground.By.Name, news.By.Name)
	}
	for _, id := range []string{first, c.ID} {
		if snap, err := s.Cases.Find(background(), people.Viewer{All: true}, id); err != nil || snap.Action.ID != a.ID {
			t.Errorf("case %s is of %s: %v", id, snap.Action.ID, err)
		}
	}
	if got := s.in(a); got != "person" {
		t.Errorf("a contradiction is in %q", got)
	}
}

// REPORTS 27: a miss, and a person who takes it for a no, wait for the fence.
func TestReport27_NobodySaysNoBeforeTheFence(t *testing.T) {
	s := casesOf(t)
	a, _ := s.unknown(askable)
	snap, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.DidNotHappen))
	must(t, err)
	if got := s.in(a); snap.Action.State != action.ResultUnknown || got != "asking" {
		t.Fatalf("%s in %q", snap.Action.State, got)
	}
	_, _, err = s.Approvals.Propose(background(), s.Agent, stage.Proposal(askable, a.Target.ID, 106))
	s.Refused(err, action.TargetBlocked)
	later := s.Later(3*time.Minute, storetest.Skewed)
	must(t, action.Sweep(background(), later.DB, later.DB.Due, 10))
	if got := s.Read(a.ID); got.State != action.Failed || s.in(a) != "settled" {
		t.Errorf("after the fence it is %s in %q", got.State, s.in(a))
	}
	s.Propose(stage.Proposal(askable, a.Target.ID, 107)) // the block went with the case
}

func TestTwoPeopleSettleWhereTheContractSaysSo(t *testing.T) {
	s := casesOf(t)
	a, _ := s.unknown(risky)
	snap, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.Happened))
	must(t, err)
	a = snap.Action
	if got := s.in(a); got != "second" || a.State != action.ResultUnknown {
		t.Fatalf("%s in %q", a.State, got)
	}
	_, err = s.Cases.Confirm(background(), who(s.olga), triage.See(a), true, "")
	s.Refused(err, action.Forbidden, "second-person")
	snap, err = s.Cases.Confirm(background(), who(s.otto), triage.See(a), true, "seen it too")
	must(t, err)
	if v := snap.Action.Case.Verdict; snap.Action.State != action.Applied || v.By.ID != s.olga.ID || v.Second.By.ID != s.otto.ID {
		t.Errorf("%s, verdict %+v", snap.Action.State, v)
	}
	p := stage.Proposal(risky, stage.Product(), 99)
	cheap := s.Approve(s.Propose(p), s.Mia)
	cheap, claim := s.Claim(cheap)
	cheap, attempt := s.Start(cheap, claim)
	cheap = s.Report(cheap, stage.Receipt(attempt, claim, action.Unknown))
	snap, err = s.Cases.Settle(background(), who(s.olga), triage.See(cheap), found(action.Happened))
	if err != nil || snap.Action.State != action.Applied {
		t.Errorf("below the limit: %s, %v", snap.Action.State, err)
	}
}

func TestOnlyThoseWhoMaySettle(t *testing.T) {
	s := casesOf(t)
	a, _ := s.unknown(askable)
	seen := triage.See(a)
	auditor := s.Person("ada", people.RoleAuditor)
	elsewhere := s.PersonWith("eve", people.Grants{Roles: []string{people.RoleOps}, Scopes: []string{"bank"}})
	for name, c := range map[string]struct {
		person people.Person
		code   action.Code
	}{"support": {s.Mia, action.Forbidden}, "an auditor": {auditor, action.Forbidden}, "an admin": {s.Admin, action.Forbidden}, "ops of another scope": {elsewhere, action.NotFound}} {
		for what, call := range map[string]func() error{
			"take": func() error { _, err := s.Cases.Take(background(), who(c.person), seen); return err },
			"ask":  func() error { _, err := s.Cases.AskAgain(background(), who(c.person), seen); return err },
			"hand": func() error { _, err := s.Cases.HandOver(background(), who(c.person), seen, s.otto.ID); return err },
			"settle": func() error {
				_, err := s.Cases.Settle(background(), who(c.person), seen, found(action.Happened))
				return err
			},
			"confirm": func() error { _, err := s.Cases.Confirm(background(), who(c.person), seen, true, ""); return err },
		} {
			if err := call(); !action.IsCode(err, c.code) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	_, err := s.Cases.HandOver(background(), who(s.olga), seen, auditor.ID)
	s.Refused(err, action.InvalidArgument, "receiver")
	_, err = s.Cases.HandOver(background(), who(s.olga), seen, "per_nobody")
	s.Refused(err, action.InvalidArgument)
	_, err = s.Cases.Take(background(), who(s.olga), triage.Seen{CaseID: action.NewID("cas")})
	s.Refused(err, action.NotFound)
	snap, err := s.Cases.HandOver(background(), who(s.olga), seen, s.otto.ID)
	must(t, err)
	_, err = s.Cases.Settle(background(), who(s.olga), triage.See(snap.Action), found(action.Happened))
	if r := s.Refused(err, action.AlreadyClaimed, "case-held"); r.Args["by"] != s.otto.Name {
		t.Errorf("held by %q", r.Args["by"])
	}
	s.Grant(s.otto, people.Grants{Roles: []string{people.RoleSupport}}) // and is not asked any more
	_, err = s.Cases.Settle(background(), who(s.otto), triage.See(snap.Action), found(action.Happened))
	s.Refused(err, action.Forbidden)
	if got := s.Read(a.ID); got.State != action.ResultUnknown || got.Version != snap.Action.Version {
		t.Errorf("refusals left events: %v", s.Kinds(a.ID))
	}
}

// atOnce gives commands at the same time and returns how many were recorded.
func atOnce(t *testing.T, code action.Code, calls ...func() error) (won int) {
	t.Helper()
	results := make([]error, len(calls))
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i, call := range calls {
		wg.Go(func() { <-start; results[i] = call() })
	}
	close(start)
	wg.Wait()
	for _, err := range results {
		if err == nil {
			won++
		} else if !action.IsCode(err, code) && !action.IsCode(err, action.WrongState) {
			t.Errorf("lost with %v", err)
		}
	}
	return won
}

func TestOfManyAtOnceOneWins(t *testing.T) {
	s := casesOf(t)
	other := s.Open(s.DSN, store.Options{MaxConns: 4})
	for range 5 {
		a, attempt := s.unknown(askable)
		seen := triage.See(a)
		take := func(c *stage.Console, p people.Person) func() error {
			return func() error { _, err := c.Cases.Take(background(), who(p), seen); return err }
		}
		if n := atOnce(t, action.StaleRevision, take(s.Console, s.olga), take(other, s.otto)); n != 1 {
			t.Errorf("%d took it", n)
		}
		a = s.Read(a.ID)
		holder := map[string]people.Person{s.olga.ID: s.olga, s.otto.ID: s.otto}[a.Case.Holder.ID]
		seen = triage.See(a)
		settle := func(c *stage.Console, verdict string) func() error {
			return func() error { _, err := c.Cases.Settle(background(), who(holder), seen, found(verdict)); return err }
		}
		if n := atOnce(t, action.StaleRevision, settle(s.Console, action.Happened), settle(other, action.Partly)); n != 1 {
			t.Errorf("%d verdicts were recorded", n)
		}
		_ = attempt
	}
	for range 5 { // a verdict against a receipt that comes late
		a, attempt := s.unknown(askable)
		seen := triage.See(a)
		settled := 0
		atOnce(t, action.StaleRevision, func() error {
			_, err := s.Cases.Settle(background(), who(s.olga), seen, found(action.Happened))
			if err == nil {
				settled++
			}
			return err
		}, func() error {
			_, err := other.Triage.Report(background(), s.Executor, a.ID, stage.Receipt(attempt, a.Claim.ID, action.Failure))
			return err
		})
		got := s.Read(a.ID)
		contradiction := got.State == action.ResultUnknown && got.Case.Kind == action.CaseContradiction
		if settled == 1 != contradiction || settled == 0 && got.State != action.Failed {
			t.Errorf("settled %d times, it is %s", settled, got.State)
		}
	}
}

// REPORTS 35: a bulk command is about the list that was shown. What came or
// moved meanwhile is left alone, and every item has its result.
func TestReport35_BulkIsOfAFrozenList(t *testing.T) {
	s := casesOf(t)
	var items []triage.Seen
	var actions []action.Action
	for range 4 {
		a, _ := s.unknown(askable)
		actions, items = append(actions, a), append(items, triage.See(a))
	}
	s.answer(actions[1], "UNHEARD")
	s.answer(actions[2], "SUCCEEDED")
	fresh, _ := s.unknown(askable)
	results, err := s.Cases.AskAll(background(), who(s.olga), append(items, items[0]))
	must(t, err)
	if len(results) != 4 || results[0].Err != nil || !action.IsCode(results[1].Err, action.StaleRevision) ||
		!action.IsCode(results[2].Err, action.WrongState) || results[3].Err != nil {
		t.Errorf("results %+v", results)
	}
	if got := s.Read(fresh.ID); got.Version != fresh.Version {
		t.Error("a case that came later was touched")
	}
	again, err := s.Cases.AskAll(background(), who(s.olga), items[:1])
	if err != nil || again[0].Err != nil || again[0].Action.Version != results[0].Action.Version {
		t.Errorf("the same list again: %+v, %v", again, err)
	}
	taken, err := s.Cases.TakeAll(background(), who(s.olga), []triage.Seen{triage.See(s.Read(actions[0].ID)), items[1]})
	if err != nil || taken[0].Err != nil || !action.IsCode(taken[1].Err, action.StaleRevision) {
		t.Errorf("taken %+v, %v", taken, err)
	}
	if _, err = s.Cases.AskAll(background(), who(s.olga), make([]triage.Seen, triage.MaxBulk+1)); !action.IsCode(err, action.TooLarge) {
		t.Errorf("a list without end: %v", err)
	}
}

func TestAProvidersFileIsMatchedByKey(t *testing.T) {
	s := casesOf(t)
	var items []triage.Seen
	keys := map[string]string{}
	actions := map[string]action.Action{}
	for _, name := range []string{"yes", "no", "odd", "twice", "absent", "stale", "other", "risky"} {
		tool := askable
		if name == "risky" {
			tool = risky
		}
		a, _ := s.unknown(tool)
		keys[name], actions[name], items = a.ExecutionKey, a, append(items, triage.See(a))
	}
	s.answer(actions["stale"], "UNHEARD")
	file := "\ufeffOutcome,key,reference,amount\r\nSUCCEEDED," + keys["yes"] + ",RF-1,105.00\r\nnot executed," + keys["no"] + ",,\r\n" +
		"not found," + keys["odd"] + ",,\r\nSUCCEEDED," + keys["twice"] + ",,\r\nFAILED," + keys["twice"] + ",,\r\nSUCCEEDED," + keys["stale"] + ",,\r\n" +
		"SUCCEEDED," + keys["other"] + ",,1.05\r\nSUCCEEDED,exk_stranger,,\r\n\"happened\"," + keys["risky"] + ",\"RF,2\",105\r\n"
	f, err := triage.ReadProviderFile([]byte(file))
	must(t, err)
	want := map[string]triage.Match{"yes": triage.MatchHappened, "no": triage.MatchDidNotHappen, "risky": triage.MatchHappened, "odd": triage.MatchUnclear,
		"twice": triage.MatchTwice, "absent": triage.MatchAbsent, "stale": triage.MatchStale, "other": triage.MatchDiffers}
	check := func(rows []triage.ImportRow) {
		t.Helper()
		got := map[string]triage.Match{}
		for i, r := range rows {
			if r.Action == nil {
				if r.Match != triage.MatchStranger || r.Line.Key != "exk_stranger" {
					t.Errorf("row %d: %+v", i, r)
				}
				continue
			}
			for name, key := range keys {
				if r.Action.ExecutionKey == key {
					got[name] = r.Match
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(rows) != len(want)+1 {
			t.Errorf("%d rows: %v, want %v", len(rows), got, want)
		}
	}
	rows, err := s.Cases.Preview(background(), who(s.olga), f, items)
	must(t, err)
	check(rows)
	for name, a := range actions {
		if name != "stale" && s.Read(a.ID).Version != a.Version {
			t.Fatalf("the dry run changed %s", name)
		}
	}
	rows, err = s.Cases.Import(background(), who(s.olga), f, items, "from their support")
	must(t, err)
	check(rows)
	for name, want := range map[string]action.State{"yes": action.Applied, "absent": action.ResultUnknown, "odd": action.ResultUnknown, "other": action.ResultUnknown} {
		if got := s.Read(actions[name].ID); got.State != want {
			t.Errorf("%s is %s", name, got.State)
		}
	}
	v := s.Read(actions["yes"].ID).Case.Verdict
	if v.EvidenceKind != action.EvidenceFile || v.EvidenceRef != f.Hash || v.By.ID != s.olga.ID || v.Note != "Line 2: SUCCEEDED, reference RF-1\nfrom their support" {
		t.Errorf("verdict %+v", v)
	}
	if got := s.Read(actions["no"].ID); got.State != action.ResultUnknown || got.Case.Verdict.Verdict != action.DidNotHappen {
		t.Errorf("before the fence: %s", got.State)
	}
	if got := s.in(actions["risky"]); got != "second" {
		t.Errorf("a file settles alone where two people have to: %q", got)
	}
	for content, reason := range map[string]string{"": "file-empty", "a,b\n1,2\n": "file-columns", "key,outcome\n\"x\n": "file-line",
		"key,outcome\nx\n": "file-line", "key,outcome\n\xff,x\n": "file-encoding", strings.Repeat("x", triage.MaxImportBytes+1): "file-too-large"} {
		_, err := triage.ReadProviderFile([]byte(content))
		s.Refused(err, action.InvalidArgument, reason)
	}
}

// Lists have the case whose key is forgotten first in front, page by page.
func TestCasesAreSortedByTheirDeadline(t *testing.T) {
	s := casesOf(t)
	s.Tool(strings.Replace(stage.Contract("shop.forgetful", "", ""), "key_lifetime: 24h", "key_lifetime: 1h", 1))
	s.Tool(strings.Replace(strings.Replace(stage.Contract("shop.keyless", "", ""), "key_lifetime: 24h", "", 1), "retry: same_key", "retry: never", 1))
	var want []string
	for _, tool := range []string{"shop.keyless", stage.SetPrice, stage.SetPrice, "shop.forgetful"} {
		a, _ := s.unknown(tool)
		want = append(want, a.ID)
	}
	want = []string{want[3], want[1], want[2], want[0]}
	var got []string
	f := triage.CaseFilter{Viewer: people.Viewer{All: true}, Tab: triage.TabPerson, Limit: 1}
	for range 5 {
		page, _, err := s.DB.Cases(background(), f)
		must(t, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page[0].ID)
		c := triage.CursorAt(page[0], f.Tab)
		f.After = &c
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	for _, c := range []struct {
		f    triage.CaseFilter
		want int
	}{
		{triage.CaseFilter{Viewer: people.Viewer{All: true}, Tab: triage.TabOpen}, 4},
		{triage.CaseFilter{Viewer: people.Viewer{All: true}, Tool: stage.SetPrice}, 2},
		{triage.CaseFilter{Viewer: people.Viewer{All: true}, Ref: s.Read(want[0]).ExecutionKey}, 1},
		{triage.CaseFilter{Viewer: people.Viewer{All: true}, Keys: []string{s.Read(want[0]).ExecutionKey, s.Read(want[1]).ExecutionKey}}, 2},
		{triage.CaseFilter{Viewer: people.Viewer{Limited: true, Scopes: []string{"bank"}}}, 0},
	} {
		n, err := s.DB.CaseCount(background(), c.f, 10)
		if err != nil || n != c.want {
			t.Errorf("%+v counts %d, want %d: %v", c.f, n, c.want, err)
		}
	}
	groups := triage.Groups([]action.Action{s.Read(want[1]), s.Read(want[0]), s.Read(want[2])})
	if len(groups) != 2 && len(groups) != 3 || groups[0].Tool != stage.SetPrice { // three where a quarter of an hour begins in between
		t.Errorf("groups %+v", groups)
	}
}

func TestMoneyIsNeverAddedAcrossCurrencies(t *testing.T) {
	got := triage.Total([]contract.Amount{{Text: "42.00", Currency: "EUR"}, {Text: "0.1", Currency: "EUR"}, {Text: "7", Currency: "USD"}, {Text: "3"}, {Text: "many", Currency: "EUR"}})
	if fmt.Sprint(got) != "[{ 3} {EUR 42.10} {USD 7}]" {
		t.Errorf("%v", got)
	}
}

// D5: the case shows what was asked for, what was read, and what is not as it
// should be: order 10086 answers well and writes nothing.
func TestD5_ACaseShowsTheMismatch(t *testing.T) {
	s := casesOf(t)
	s.Tool(strings.Replace(stage.Contract("shop.checked", "", `verify: { tries: 1 }
  postconditions:
    - { read: shop.read_price, field: /price, expect: "value == payload.new_price" }
    - { read: shop.read_price, field: /id, expect: "value == payload.product_id" }`), "approval: {", "approval: { before: shop.read_price,", 1))
	product := stage.Product()
	a := s.Propose(stage.Proposal("shop.checked", product, 105))
	snap, err := s.Triage.Observe(background(), s.Executor, a.ID, reading(stage.ReadPrice, `{"price":"100.00"}`))
	must(t, err)
	a, claim := s.Claim(s.Approve(snap.Action, s.Mia))
	a, attempt := s.Start(a, claim)
	a = s.Report(a, stage.Receipt(attempt, claim, action.Success))
	snap, err = s.Triage.Observe(background(), s.Executor, a.ID, reading(stage.ReadPrice, fmt.Sprintf(`{"id":%q,"price":100}`, product)))
	must(t, err)
	a = snap.Action
	if a.State != action.ResultUnknown || a.Case.Why != action.WhyMismatch {
		t.Fatalf("%s, case %+v", a.State, a.Case)
	}
	tool, err := s.Catalogue.Version(background(), a.Tool, a.ToolVersion)
	must(t, err)
	fields, err := triage.Compare(background(), tool, a)
	must(t, err)
	price := fields[0]
	if len(fields) != 2 || price.Holds != action.HoldsFalse || string(price.Before) != `"100.00"` || string(price.Expected) != "105" ||
		string(price.Observed) != "100" || price.Source != stage.ReadPrice || price.At.IsZero() || fields[1].Holds != action.HoldsTrue {
		t.Errorf("fields %+v", fields)
	}
	if got := triage.Readings(a); len(got) != 2 || got[0].At.After(got[1].At) {
		t.Errorf("readings %+v", got)
	}
	_, _, err = s.Approvals.Propose(background(), s.Agent, stage.Proposal(stage.SetPrice, product, 1))
	s.Refused(err, action.TargetBlocked)
	snap, err = s.Cases.Settle(context.Background(), who(s.olga), triage.See(a), triage.Finding{Verdict: action.DidNotHappen,
		EvidenceKind: action.EvidenceSnapshot, EvidenceRef: action.ContentHash(a.Observations[1].Snapshot)})
	if err != nil || snap.Action.Case.Verdict.Verdict != action.DidNotHappen {
		t.Errorf("settled with what was read: %v", err)
	}
}
