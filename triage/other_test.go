package triage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// What is read of another object proves nothing of this one: not what people
// decide on, not that it moved, not that it is as was promised, and not what
// people settle with. It is kept, as what it is.
func TestD3_AReadingOfAnotherObjectProvesNothing(t *testing.T) {
	s := set(t)
	s.Tool(strings.Replace(stage.Contract("shop.judged", `{ when: "payload.new_price < before.price * 2.0", role: support, approvals: 1 }, { when: "payload.new_price >= before.price * 2.0", role: support, approvals: 2 }`,
		`postconditions: [ { read: shop.read_price, field: /price, expect: "value == payload.new_price" } ]`), "approval: {", "approval: { before: shop.read_price,", 1))
	later := s.Later(2*time.Minute, storetest.Skewed)
	read := func(c *stage.Console, a action.Action, snapshot string) action.Action {
		t.Helper()
		snap, err := c.Triage.Observe(background(), s.Executor, a.ID, reading(stage.ReadPrice, snapshot))
		must(t, err)
		return snap.Action
	}
	p := stage.Proposal("shop.judged", stage.Product(), 105)
	version := "7"
	p.ObjectVersion = &version
	a := s.Propose(p)
	own := func(price int) string {
		return fmt.Sprintf(`{"product_id":%q,"price":%d,"version":7}`, a.Target.ID, price)
	}
	a = read(s.Console, a, `{"product_id":"another","price":500,"version":3}`)
	if _, found := a.Before(); found || a.State != action.Proposed || !a.Observations[0].Other || len(a.Observations[0].Snapshot) == 0 || a.Work() != action.WorkObserve {
		t.Fatalf("another one before the decision: %+v, %s, wants %q", a.Observations, a.State, a.Work())
	}
	a = read(s.Console, a, own(40))
	if before, found := a.Before(); !found || before.Version != "7" || a.Needs[0].Approvals != 2 {
		t.Fatalf("its own before the decision: %+v, %+v", before, a.Needs)
	}
	a, claim := s.Claim(s.Approve(a, s.Mia, s.Ken))
	if a = read(s.Console, a, `{"product_id":"another","price":1,"version":3}`); a.State != action.Executing {
		t.Fatalf("another one before it runs makes it %s", a.State)
	}
	a, attempt := s.Start(a, claim)
	a = s.Report(a, stage.Receipt(attempt, claim, action.Success))
	if a = read(s.Console, a, `{"product_id":"another","price":105}`); a.State != action.Accepted {
		t.Fatalf("another one as promised makes it %s", a.State)
	}
	tool, err := s.Catalogue.Version(background(), a.Tool, a.ToolVersion)
	must(t, err)
	if all, err := triage.Compare(background(), tool, a); err != nil || len(all) != 1 || all[0].Holds == action.HoldsTrue || all[0].Snapshot != nil {
		t.Errorf("compared: %+v, %v", all, err)
	}
	for range 3 { // as often as a mismatch is waited for
		a = read(later, a, `{"product_id":"another","price":99}`)
	}
	if a.State != action.Accepted {
		t.Fatalf("another one that differs makes it %s", a.State)
	}
	for range 3 {
		a = read(later, a, own(99))
	}
	if a.State != action.ResultUnknown {
		t.Fatalf("its own, which differs, makes it %s", a.State)
	}
	other := a.Observations[len(a.Observations)-4]
	for _, ref := range []string{other.ID, action.ContentHash(other.Snapshot)} {
		_, err = later.Cases.Settle(background(), who(s.Ops()), triage.See(a),
			triage.Finding{Verdict: action.Happened, EvidenceKind: action.EvidenceSnapshot, EvidenceRef: ref, Note: "it was read"})
		s.Refused(err, action.InvalidArgument)
	}
	if a = read(later, a, own(105)); a.State != action.Applied {
		t.Errorf("its own, as promised, makes it %s", a.State)
	}
}

// An answer by key that names another operation says nothing of this one.
func TestE2_AnAnswerAboutAnotherOperationProvesNothing(t *testing.T) {
	s := set(t)
	s.Tool("name: shop.operation\nmode: read\ninput_schema: { type: object, required: [execution_key], properties: { execution_key: { type: string } } }\nhttp: { method: GET, path: \"/operations/{execution_key}\" }\n")
	s.Tool(stage.Contract("shop.asked", "", "status_query: { tool: shop.operation, max_polls: 4 }"))
	a, claim, attempt := running(s, "shop.asked")
	a = s.Report(a, stage.Receipt(attempt, claim, action.Unknown))
	asked := func(key, status string) action.Action {
		t.Helper()
		o := reading("shop.operation", fmt.Sprintf(`{"execution_key":%q,"status":%q}`, key, status))
		var snap action.Snapshot
		var err error
		for range 2 { // the same again changes nothing
			snap, err = s.Triage.Observe(background(), s.Executor, a.ID, o)
			must(t, err)
		}
		return snap.Action
	}
	for _, status := range []string{"SUCCEEDED", "FAILED", "NOT_EXECUTED"} {
		if a = asked("another-key", status); a.State != action.ResultUnknown || a.Asks[len(a.Asks)-1].Found.Outcome != action.FoundUnknown || !a.Asks[len(a.Asks)-1].Found.Other {
			t.Errorf("%s of another key: %s, %+v", status, a.State, a.Asks)
		}
	}
	if len(a.Asks) != 3 {
		t.Errorf("%d answers", len(a.Asks))
	}
	if a = asked(a.ExecutionKey, "SUCCEEDED"); a.State != action.Applied {
		t.Errorf("its own makes it %s", a.State)
	}
}
