package execution_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution"
)

const (
	ingrid, pavel = "u-ingrid-holm", "u-pavel-dvorak"
	september     = `{"reconciliation_id":"REC-2026-09"}`
	signed        = `{"reconciliation_id":"REC-2026-09","explanations":[
		{"reference":"10084","voucher":"PSP-70015","text":"the provider kept a scheme fee of 3.00"},
		{"reference":"10087","voucher":"GL-88007","text":"paid under PAY-3302"},
		{"reference":"PAY-3302","voucher":"PSP-70016","text":"order 10087, the provider named no order"}]}`
	adjusted = `{"reconciliation_id":"REC-2026-09","reference":"10084","amount":-3,"text":"scheme fee of September"}`
	reported = `{"reconciliation_id":"REC-2026-09","report_id":"RPT-2026-09-1"}`
)

// closed is how far a reconciliation is: the three completions.
type closed struct {
	Status      string `json:"status"`
	Reports     int    `json:"reports"`
	Adjustments int    `json:"adjustments"`
	Version     int    `json:"version"`
}

func (b *bench) closed() (c closed) {
	b.T.Helper()
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/ledger/reconciliations/REC-2026-09", b.tokens.LedgerRead, "")), &c))
	return c
}

// Both sides are read through one tool, on one scale; what differs is told as a
// fact, with the vouchers on which it can be looked up.
func TestB4_DifferencesAreFactsToExplain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	raw, err := b.ask(execution.Question{Tool: "ledger.compare_sides", Entry: "chat", ActorID: ingrid, Payload: []byte(september)})
	b.must(err)
	var c struct {
		Currency, Grain string
		Matched         int
		Lines           []struct {
			Reference, Class string
			Books, Statement *float64
			Difference       float64
			Vouchers         []string
			Explanation      *string
		}
	}
	b.must(json.Unmarshal(raw, &c))
	differs := map[string]string{}
	for _, l := range c.Lines {
		if l.Class == "matched" {
			continue
		}
		differs[l.Reference] = fmt.Sprint(l.Class, " ", l.Difference, " ", l.Books != nil, " ", l.Statement != nil)
		if len(l.Vouchers) == 0 || l.Explanation != nil {
			t.Errorf("%+v", l)
		}
		for _, voucher := range l.Vouchers {
			evidence, err := b.ask(execution.Question{Tool: "ledger.get_voucher", Entry: "chat", Payload: []byte(`{"voucher":"` + voucher + `"}`)})
			b.must(err)
			var v struct{ Reference string }
			b.must(json.Unmarshal(evidence, &v))
			if v.Reference != l.Reference {
				t.Errorf("voucher %s is about %s, not %s", voucher, v.Reference, l.Reference)
			}
		}
	}
	want := "map[10084:differs -3 true true 10087:books_only -42 true false PAY-3302:statement_only 42 false true]"
	if c.Currency != "EUR" || c.Grain != "reference" || c.Matched != 4 || fmt.Sprint(differs) != want {
		t.Errorf("%s in %s, %d matched, differences %v", c.Grain, c.Currency, c.Matched, differs)
	}
	if now := b.closed(); now != (closed{Status: "open", Version: 1}) {
		t.Errorf("looking changed %+v", now)
	}
}

// Signing off, reporting and posting are three actions, each with its own
// approval, receipt and proof. None of them does another.
func TestB4_ThreeCompletions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	b.start(b.config())
	run := func(tool, actor, payload, version string, ends action.State) action.Action {
		t.Helper()
		return b.awaitState(b.approve(b.propose(tool, actor, payload, version)).ID, ends)
	}
	early := run("ledger.post_adjustment", pavel, adjusted, "1", action.Failed)
	if early.FailureCode != action.PreconditionFailed || len(early.Attempts) != 0 {
		t.Errorf("posting what nobody signed off: %s", story(early))
	}
	s.says(early.ID, "not_submitted")
	unexplained := run("ledger.sign_off", ingrid, `{"reconciliation_id":"REC-2026-09","explanations":[]}`, "1", action.Failed)
	s.says(unexplained.ID, "failed")

	signature := run("ledger.sign_off", ingrid, signed, "1", action.Applied)
	if now := b.closed(); now != (closed{"signed_off", 0, 0, 2}) {
		t.Errorf("signing off did %+v", now)
	}
	report := run("ledger.make_report", pavel, reported, "2", action.Applied)
	if now := b.closed(); now != (closed{"signed_off", 1, 0, 2}) {
		t.Errorf("reporting did %+v", now)
	}
	if a := run("ledger.post_adjustment", ingrid, adjusted, "2", action.Failed); a.FailureCode != execution.Forbidden || len(a.Attempts) != 0 {
		t.Errorf("who signs off may post: %s", story(a))
	}
	posting := run("ledger.post_adjustment", pavel, adjusted, "2", action.Applied)
	if now := b.closed(); now != (closed{"signed_off", 1, 1, 3}) {
		t.Errorf("posting did %+v", now)
	}
	proofs := map[string][]string{signature.ID: {"ledger.get_reconciliation"}, report.ID: {"ledger.get_report"}, posting.ID: {"ledger.get_adjustment"}}
	for _, a := range []action.Action{signature, report, posting} {
		last := a.Observations[len(a.Observations)-1]
		if len(a.Receipts) != 1 || a.Receipts[0].Proves != action.ProvesCompleted || !slices.Contains(proofs[a.ID], last.Tool) || last.Holds != action.HoldsTrue {
			t.Errorf("%s is proven by %+v and %+v", a.Tool, a.Receipts, last)
		}
		s.says(a.ID, "completed")
	}
	if len(proofs) != 3 {
		t.Error("two of them are one action")
	}
}

// The ledger keeps no record of keys: what is not known of it is asked of
// nobody, sent by nobody again, and settled by people.
func TestB4_WhatHasNoKeysIsNeverRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	b.arm(`{"system":"ledger","fault":"act-then-reset"}`)
	b.start(b.config())
	a := b.awaitState(b.approve(b.propose("ledger.sign_off", ingrid, signed, "1")).ID, action.ResultUnknown)
	s.says(a.ID, "unknown")
	_, _, err := b.Approvals.Propose(t.Context(), b.Agent, approvals.Proposal{Key: "k", Tool: "ledger.make_report", Actor: action.Actor{ID: ingrid}, Payload: []byte(reported), Entry: "chat"})
	if !action.IsCode(err, action.TargetBlocked) {
		t.Errorf("a report on what nobody knows: %v", err)
	}
	posts := 0
	for _, c := range b.calls("system=ledger") {
		if c.Method == "POST" {
			posts++
		}
	}
	if posts != 1 || len(a.Attempts) != 1 || a.CaseID() == "" || b.closed().Status != "signed_off" {
		t.Errorf("sent %d times: %s", posts, story(a))
	}
}
