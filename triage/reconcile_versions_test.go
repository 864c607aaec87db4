package triage_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// versioned is a tool whose contract changes.
const versioned = "shop.versioned"

// version is a version of that tool that compares one field of the payload, every
// five minutes.
func version(field string) string {
	return strings.Replace(stage.Contract(versioned, "", `reconcile: { list: shop.list, key: /key, at: /at, outcome: { succeeded: [SUCCEEDED], failed: [FAILED] }, `+
		`fields: { /`+field+`: /price }, settle: 1m, every: 5m, window: 1h }`), "new_price:", field+":", 1)
}

// doneBy is an action of a version that succeeded, as far as is known.
func doneBy(s *stage.Stage, field string) action.Action {
	s.T.Helper()
	p := stage.Proposal(versioned, stage.Product(), 105)
	p.Payload = []byte(strings.Replace(string(p.Payload), "new_price", field, 1))
	a, claim := s.Claim(s.Approve(s.Propose(p), s.Mia))
	a, attempt := s.Start(a, claim)
	return s.Report(a, stage.Receipt(attempt, claim, action.Success))
}

// operationOf is an action as the business system lists it.
func operationOf(a action.Action, field, price string) contract.Listed {
	return contract.Listed{Key: a.ExecutionKey, At: a.Attempts[0].At.Format(time.RFC3339Nano), Outcome: "SUCCEEDED",
		Fields: map[string]json.RawMessage{"/" + field: json.RawMessage(price)}}
}

// finished reports the only page of a run and compares it.
func finished(s *stage.Stage, c *stage.Console, run triage.Run, items ...contract.Listed) triage.Run {
	s.T.Helper()
	_, err := c.Reconciler.TakePage(background(), s.Executor, run.ID, triage.Listed{PageID: action.NewID("pag"), Items: items})
	if err == nil {
		err = c.Reconciler.Step(background())
	}
	if err != nil {
		s.T.Fatal(err)
	}
	run, _, err = c.DB.Run(background(), run.ID)
	if err != nil || run.State != triage.RunDone {
		s.T.Fatalf("the run is %s (%s), %v", run.State, run.Problem, err)
	}
	return run
}

// A field has another name in the third version, and the first was not compared
// at all: what was asked for by then is the same as before.
func TestAnActionIsWeighedWithItsOwnContract(t *testing.T) {
	s := set(t)
	s.Tool(stage.Contract(versioned, "", ""))
	first, gone := doneBy(s, "new_price"), doneBy(s, "new_price")
	s.Tool(version("new_price"))
	second, other := doneBy(s, "new_price"), doneBy(s, "new_price")
	s.Tool(version("price_now"))
	third := doneBy(s, "price_now")
	later := s.Later(2*time.Minute, storetest.Skewed) // none of them is too young
	stranger := operationOf(first, "price_now", "105")
	stranger.Key += "-extra"
	all := []contract.Listed{operationOf(first, "price_now", "7"), operationOf(second, "price_now", "105.00"), operationOf(other, "price_now", "106"),
		operationOf(third, "price_now", "105"), stranger}
	run := finished(s, later, asked(s, later, versioned), all...)
	if got := run.Totals; got.Matched != 2 || got.Mismatch != 1 || got.Others != 2 || got.OursOnly != 0 || got.TheirsOnly != 1 || got.Awaiting != 0 || got.Forms["decimals"] != 1 {
		t.Fatalf("%+v", got)
	}
	if a := s.Read(gone.ID); a.State != action.Applied || a.Case != nil {
		t.Errorf("one that no list has to know is %s", a.State)
	}
	found := foundIn(s, run)
	if d := found[other.ExecutionKey]; d.ToolVersion != 2 || len(d.Fields) != 1 || d.Fields[0].Field != "/new_price" || string(d.Fields[0].Ours) != "105" || string(d.Fields[0].Theirs) != "106" {
		t.Fatalf("found %+v", d)
	}
	before := s.Read(other.ID).Version
	if finished(s, later, asked(s, later, versioned), all...); s.Read(other.ID).Version != before {
		t.Error("the same difference was told twice")
	}

	// What a person says of it is content of its event, and stays.
	note := "ticket 8841"
	must(t, later.Reconciler.Explain(background(), triage.Who{ID: s.Ops().ID}, found[stranger.Key], note))
	var said struct {
		Data, Content string
		Salted        int
	}
	must(t, s.DB.Pool().QueryRow(`SELECT e.data, convert_from(b.content, 'UTF8') AS content, length(b.salt) AS salted FROM events e
		JOIN bodies b ON b.subject = e.subject AND b.version = e.version WHERE e.kind = 'difference_explained'`).Scan(&said.Data, &said.Content, &said.Salted))
	if strings.Contains(said.Data, "note") || said.Content != `{"note":"`+note+`"}` || said.Salted != 16 {
		t.Errorf("recorded %+v", said)
	}
	for table, column := range map[string]string{"reconciliations": "", "reconciliation_pages": "hash", "reconciliation_differences": "detail", "events": "data"} {
		queries := []string{"DELETE FROM " + table, "TRUNCATE " + table + " CASCADE"}
		if column != "" {
			queries = append(queries, "UPDATE "+table+" SET "+column+" = ''")
		}
		for _, query := range queries {
			if _, err := s.DB.Pool().Exec(query); err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: %v", query, err)
			}
		}
	}
}

// One action whose record does not belong together any more is left to a person,
// and the others are compared.
func TestOneActionThatCannotBeToldHoldsNoRunUp(t *testing.T) {
	s := set(t)
	s.Tool(version("new_price"))
	broken, same, other := doneBy(s, "new_price"), doneBy(s, "new_price"), doneBy(s, "new_price")
	owner, err := sql.Open("postgres", storetest.Owner(s.DSN))
	must(t, err)
	t.Cleanup(func() { owner.Close() })
	_, err = owner.Exec(`DELETE FROM events WHERE subject = $1 AND version = 2`, broken.ID)
	must(t, err)
	run := finished(s, s.Console, asked(s, s.Console, versioned), operationOf(broken, "new_price", "106"), operationOf(same, "new_price", "105"), operationOf(other, "new_price", "107"))
	if run.Totals.Mismatch != 2 || run.Totals.Matched != 1 {
		t.Fatalf("%+v", run.Totals)
	}
	for _, d := range foundIn(s, run) {
		if told := d.Untold == ""; told != (d.ActionID == other.ID) || d.CaseOpen != told || d.Why != triage.DiffersFields {
			t.Errorf("%s: %q, %+v", d.ActionID, d.Untold, d)
		}
	}
}

// A list that was read before an action had time to show there lacks nothing,
// however late its page is recorded.
func TestWhatAListIsTooEarlyForIsNotMissing(t *testing.T) {
	s := set(t)
	s.Tool(version("new_price"))
	a := doneBy(s, "new_price")
	run := asked(s, s.Console, versioned)
	late := s.Later(10*time.Minute, storetest.Skewed)
	if run = finished(s, late, run); run.Totals.OursOnly != 0 || run.Totals.Awaiting != 1 || s.Read(a.ID).State != action.Applied {
		t.Errorf("%+v", run.Totals)
	}
}

// Sweeps that were given up leave nothing out, and one that was too long is
// followed by shorter ones until everything was looked at.
func TestSweepsLeaveNothingOut(t *testing.T) {
	s := set(t)
	s.Tool(version("new_price"))
	sweep := func(c *stage.Console) triage.Run {
		t.Helper()
		must(t, c.Reconciler.Sweep(background()))
		open, _, err := c.DB.OpenRuns(background(), triage.Run{}, 2)
		if err != nil || len(open) != 1 {
			t.Fatalf("%d runs are open, %v", len(open), err)
		}
		return open[0]
	}
	tooMuch := func(c *stage.Console, run triage.Run, column string, n int, why string) {
		t.Helper()
		_, err := s.DB.Pool().Exec(fmt.Sprintf(`UPDATE reconciliations SET %s = $1 WHERE id = $2`, column), n, run.ID)
		must(t, err)
		page := triage.Listed{PageID: action.NewID("pag"), Next: "more", Items: []contract.Listed{{Key: "k", At: "2026-11-30T10:00:00Z"}}}
		if run, err = c.Reconciler.TakePage(background(), s.Executor, run.ID, page); err != nil || run.State != triage.RunGivenUp || !strings.Contains(run.Problem, why) {
			t.Fatalf("%s: %q, %v", run.State, run.Problem, err)
		}
	}
	half := func(run triage.Run) time.Time { return run.From.Add(run.To.Sub(run.From) / 2).Truncate(time.Second) }

	first := sweep(s.Console)
	later := s.Later(3*time.Hour, storetest.Skewed)
	must(t, later.Reconciler.Step(background())) // no executor was there
	second := sweep(later)
	if !second.From.Equal(first.From) || second.To.Sub(second.From) < 3*time.Hour {
		t.Fatalf("the first began at %s, the next at %s", first.From, second.From)
	}
	tooMuch(later, second, "listed", 5_000_000, "operations")
	third := sweep(later)
	if !third.From.Equal(second.From) || !third.To.Equal(half(second)) {
		t.Fatalf("after a sweep from %s to %s, one from %s to %s", second.From, second.To, third.From, third.To)
	}
	tooMuch(later, third, "pages", 50_000, "pages")
	fourth := sweep(later)
	if !fourth.From.Equal(second.From) || !fourth.To.Equal(half(third)) {
		t.Fatalf("after a sweep from %s to %s, one from %s to %s", third.From, third.To, fourth.From, fourth.To)
	}
	finished(s, later, fourth)
	fifth := sweep(later)
	if !fifth.From.Equal(fourth.To) || !fifth.To.After(second.To.Add(-time.Second)) {
		t.Fatalf("after one done until %s, one from %s to %s", fourth.To, fifth.From, fifth.To)
	}
	tooMuch(later, fifth, "listed", 5_000_000, "operations")
	sixth := sweep(later)
	if !sixth.From.Equal(fourth.To) || !sixth.To.Equal(half(fifth)) {
		t.Fatalf("after a sweep from %s to %s, one from %s to %s", fifth.From, fifth.To, sixth.From, sixth.To)
	}
	finished(s, later, sixth)
	seventh := sweep(later)
	if back := seventh.To.Add(-time.Hour); seventh.From.After(back) || seventh.From.After(sixth.To) {
		t.Errorf("it looks back until %s", seventh.From)
	}
	finished(s, later, seventh)
	must(t, later.Reconciler.Sweep(background()))
	if open, _, err := later.DB.OpenRuns(background(), triage.Run{}, 1); err != nil || len(open) != 0 {
		t.Errorf("nothing is due, and %+v is open, %v", open, err)
	}
}
