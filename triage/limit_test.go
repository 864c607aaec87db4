package triage_test

import (
	"database/sql"
	"fmt"
	"testing"

	"countersign/action"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// An executor that reports without end is held back, and what it says for the
// first time is heard all the same.
func TestWhatIsKeptOfAnActionHasALimit(t *testing.T) {
	s := casesOf(t)
	owner, err := sql.Open("postgres", storetest.Owner(s.DSN))
	must(t, err)
	defer owner.Close()
	a, claim, attempt := running(s.Stage, askable)
	observe := func(o triage.Observation) error {
		_, err := s.Triage.Observe(background(), s.Executor, a.ID, o)
		return err
	}
	report := func(r triage.Receipt) error {
		_, err := s.Triage.Report(background(), s.Executor, a.ID, r)
		return err
	}
	fill := func() { // what was reported last, 198 times more
		t.Helper()
		tx, err := owner.Begin()
		must(t, err)
		for _, query := range []string{
			`INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
				SELECT e.subject, e.version + i, e.op || i, e.kind, e.by_kind, e.by_id, e.by_name, e.by_role, e.by_method, e.from_state, e.to_state, e.at,
					regexp_replace(e.data, '"id":"(rcp|obs)_', format('"id":"%s-\1_', i))
				FROM events e, generate_series(1, 198) i WHERE e.subject = $1 AND e.version = (SELECT version FROM actions WHERE id = $1)`,
			`UPDATE actions SET version = version + 198 WHERE id = $1`,
		} {
			_, err := tx.Exec(query, a.ID)
			must(t, err)
		}
		must(t, tx.Commit())
	}
	same := func(name string, again, another func() error) {
		t.Helper()
		must(t, another())
		must(t, again())
		fill()
		must(t, again())
		if err := another(); !action.IsCode(err, action.RateLimited) {
			t.Errorf("one more of 200 %s: %v", name, err)
		}
	}
	receipt := stage.Receipt(attempt, claim, action.Unknown)
	same("receipts", func() error { return report(receipt) }, func() error { return report(stage.Receipt(attempt, claim, action.Unknown)) })
	pending := func() triage.Observation { return reading("shop.operation", `{"status":"PENDING"}`) }
	answer := pending()
	same("answers", func() error { return observe(answer) }, func() error { return observe(pending()) })
	for range 2 { // what says something, however often
		must(t, observe(reading("shop.operation", `{"status":"NOT_EXECUTED"}`)))
	}
	must(t, report(stage.Receipt(attempt, claim, action.Success))) // what was not said before
	must(t, observe(reading("shop.operation", fmt.Sprintf(`{"status":%q}`, "FAILED"))))
	look := func() triage.Observation { return reading("shop.look", `{"price":1}`) }
	first := look()
	same("readings", func() error { return observe(first) }, func() error { return observe(look()) })
	if a = s.Read(a.ID); len(a.Receipts) != 201 || len(a.Asks) != 203 || len(a.Observations) != 200 {
		t.Errorf("%d receipts, %d answers, %d readings are kept", len(a.Receipts), len(a.Asks), len(a.Observations))
	}
}
