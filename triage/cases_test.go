package triage_test

import (
	"fmt"
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

// A 404 of the status query is a no only where the contract says so, whatever it
// says of other requests; nothing else that shows nothing is.
func TestAMissIsANoWhereTheContractSaysSo(t *testing.T) {
	s := casesOf(t)
	const sure = "shop.sure"
	s.Tool(stage.Contract(sure, "", `status_query: { tool: shop.operation, max_polls: 20, authoritative_miss: true }`))
	for _, c := range []struct {
		tool   string
		status int
		miss   bool
	}{{sure, 404, true}, {sure, 410, true}, {sure, 403, false}, {sure, 500, false}, {sure, 0, false}, {askable, 404, false}} {
		a, _ := s.unknown(c.tool)
		o := reading("shop.operation", "")
		o.Snapshot, o.Error, o.Wire.Status = nil, "it showed nothing", c.status
		snap, err := s.Triage.Observe(background(), s.Executor, a.ID, o)
		must(t, err)
		if got := snap.Action; got.State != action.ResultUnknown || got.NotExecuted() != c.miss || (got.Work() == action.WorkRetry) != c.miss {
			t.Errorf("%d by %s: %s, not executed: %t, to do: %q", c.status, c.tool, got.State, got.NotExecuted(), got.Work())
		}
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
