package triage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

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
