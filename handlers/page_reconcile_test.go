package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

// compared lists these operations for a run and finishes it.
func (e *env) compared(run triage.Run, items ...api.ListedOperation) triage.Run {
	e.T.Helper()
	e.post(people.RoleExecutor, "/v1/reconciliations/"+run.ID+"/pages", api.ListedPage{PageID: action.NewID("pag"), Items: items}).want(201)
	if err := e.Reconciler.Step(e.T.Context()); err != nil {
		e.T.Fatal(err)
	}
	run, _, err := e.DB.Run(e.T.Context(), run.ID)
	if err != nil || run.State != triage.RunDone {
		e.T.Fatalf("the run is %s, %v", run.State, err)
	}
	return run
}

// done is an action that was done, as far as is known.
func (e *env) done(tool string) api.Action {
	e.T.Helper()
	a, claim, attempt := e.attempted(tool)
	r := receipt(attempt, claim, action.Success)
	return into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", r).want(201))
}

// listedNow is an operation as it was just done.
func listedNow(a api.Action, outcome, price string) api.ListedOperation {
	return api.ListedOperation{Key: a.ExecutionKey, At: a.Attempts[0].At.Format(time.RFC3339Nano), Outcome: outcome,
		Fields: map[string]json.RawMessage{"/new_price": json.RawMessage(price)}}
}

func TestReconciliationPages(t *testing.T) {
	e := newEnv(t)
	e.lists()
	ops, auditor := e.as(e.Ops()), e.as(e.Person("otto", people.RoleAuditor))
	ops.open("/reconciliation").want(http.StatusOK).says("Nothing was compared yet.", "Compare now").holds(`<option value="shop.listable"`)
	auditor.open("/reconciliation").want(http.StatusOK).lacks("Compare now")

	same, other, gone := e.done(listable), e.done(listable), e.done(listable)
	proposed := e.proposed(listable)

	// Asked for, once however often the form is sent, and refused where the window is none.
	page := ops.open("/reconciliation")
	ask := formOf("op", page.op(), "tool", listable, "from", time.Now().UTC().Add(-time.Hour).Format(formTime), "to", time.Now().UTC().Add(time.Hour).Format(formTime))
	started := ops.send("/reconciliation", ask)
	path := started.header.Get("Location")
	ops.send("/reconciliation", ask).leads(path)
	ops.open(path).want(http.StatusOK).says("Waiting for an executor", "Nothing was found so far.")
	for field, wrong := range map[string]string{"from": "yesterday", "to": "2020-01-01T00:00", "tool": stage.SetPrice, "op": ""} {
		bad := formOf("op", newOp(), "tool", listable, "from", ask.Get("from"), "to", ask.Get("to"))
		bad.Set(field, wrong)
		ops.send("/reconciliation", bad).want(http.StatusUnprocessableEntity)
	}
	auditor.send("/reconciliation", ask).want(http.StatusForbidden)
	auditor.send(path+"/explanations", formOf("key", "exk_1", "note", "x")).want(http.StatusForbidden)
	e.as(e.Mia).open("/reconciliation").want(http.StatusForbidden)

	// One of each class.
	run, _, err := e.DB.Run(t.Context(), strings.TrimPrefix(path, "/reconciliation/"))
	if err != nil {
		t.Fatal(err)
	}
	stranger := listedNow(same, "SUCCEEDED", "105")
	stranger.Key = "exk_01-=extra"
	unsent := listedNow(same, "SUCCEEDED", "105")
	unsent.Key = proposed.ExecutionKey
	foreign := stranger
	foreign.Key = "their-own"
	run = e.compared(run, listedNow(same, "SUCCEEDED", `"105.00"`), listedNow(other, "SUCCEEDED", "106"), stranger, unsent, foreign)
	got := run.Totals
	got.Forms = nil
	if want := (triage.Totals{Matched: 1, Mismatch: 1, TheirsOnly: 2, Awaiting: 1, Others: 1}); got.Matched != want.Matched || got.Mismatch != want.Mismatch ||
		got.TheirsOnly != want.TheirsOnly || got.Awaiting != want.Awaiting || got.Others != want.Others || got.OursOnly != 0 || run.Totals.Forms["decimals"] != 1 {
		t.Fatalf("totals %+v", run.Totals)
	}
	shown := ops.open(path).want(http.StatusOK).says("Something else was done", "105 here, 106 there", "Case open", "Nothing here knows this key",
		"Nothing was sent under this key", "1 × decimals")
	auditor.open(path).says("Not explained yet").lacks("Record explanation")
	ops.open(path+"?class=awaiting").says("Awaited, no exception", "Too recent to be missing").lacks("Case open")
	ops.open(path + "?class=theirs_only").lacks("106 there")
	_ = gone

	// Explained once, kept for the next run, and not in place of a case.
	note := "Entered at the counter, ticket 8841"
	explain := formOf("op", shown.op(), "key", stranger.Key, "note", note, "class", "theirs_only")
	ops.send(path+"/explanations", explain).leads(path + "?class=theirs_only")
	ops.send(path+"/explanations", explain).leads(path + "?class=theirs_only")
	explain.Set("note", "something else")
	ops.send(path+"/explanations", explain).want(http.StatusConflict).says("Ops has explained it already.")
	ops.send(path+"/explanations", formOf("key", other.ExecutionKey, "note", "no")).want(http.StatusConflict).says("This difference has a case")
	ops.send(path+"/explanations", formOf("key", unsent.Key, "note", " ")).want(http.StatusUnprocessableEntity)
	ops.send(path+"/explanations", formOf("key", gone.ExecutionKey, "note", "no")).want(http.StatusConflict)
	ops.send(path+"/explanations", formOf("key", "exk_9", "note", "no")).want(http.StatusNotFound)
	auditor.open(path).says("Explained by Ops", note)
	again, err := e.Reconciler.Ask(t.Context(), triage.Who{ID: e.Ops().ID}, triage.Asked{Op: newOp(), Tool: listable, From: run.From, To: run.To})
	if err != nil {
		t.Fatal(err)
	}
	e.compared(again, listedNow(same, "SUCCEEDED", `"105.00"`), listedNow(other, "SUCCEEDED", "106"), stranger)
	auditor.open("/reconciliation/"+again.ID).says("Explained by Ops", note)
	file := auditor.open(path + "/differences.csv").want(http.StatusOK)
	for _, part := range []string{"\uFEFFkey,class,why", stranger.Key + ",theirs_only,unknown,", ",here /new_price,there /new_price,", ",105,106,differs", note} {
		if !strings.Contains(string(file.body), part) {
			t.Errorf("the file lacks %q: %s", part, file.body)
		}
	}
	for reads, whole := range map[int]bool{1: false, 2: false, 1000: true} {
		if rows, got := auditor.sheet(e.spread(1, reads) + path + "/differences.csv"); got != whole || whole && len(rows) != 4 {
			t.Errorf("of %d reads: %d rows (%v)", reads, len(rows), got)
		}
	}
	auditor.open("/reconciliation").says("Compared")
	e.as(e.PersonWith("uli", people.Grants{Roles: []string{people.RoleOps}, Tools: []string{stage.SetPrice}})).open(path).want(http.StatusNotFound)
	if kinds := e.Kinds("reconciliation:" + run.ID); len(kinds) != 2 { // what is said of a difference is an event of that
		t.Errorf("recorded %v", kinds)
	}
}

// REPORTS 36: what is awaited is no exception, whichever side lags behind.
func TestReport36_AwaitingIsNoException(t *testing.T) {
	e := newEnv(t)
	e.lists()
	young, unknown := e.done(listable), e.unknown(listable)
	queued := e.done(listable)
	run := e.compared(e.run(), listedNow(queued, "QUEUED", "105"))
	if run.Totals.Exceptions() != 0 || run.Totals.Awaiting < 3 {
		t.Errorf("totals %+v", run.Totals)
	}
	for _, a := range []api.Action{young, queued} {
		if now := e.Read(a.ID); now.State != action.Applied {
			t.Errorf("%s is %s", a.ID, now.State)
		}
	}
	e.as(e.Ops()).open("/reconciliation/" + run.ID).says("Nothing here.").lacks("Case open")
	// What the system has decided meanwhile settles what nobody knew.
	run = e.compared(e.run(), listedNow(unknown, "SUCCEEDED", "105"))
	if now := e.Read(unknown.ID); now.State != action.Applied || run.Totals.Exceptions() != 0 {
		t.Errorf("found out: %s, %+v", now.State, run.Totals)
	}
}

// What a contract hides is hidden on both sides, and in the file.
func TestReconciliationHidesWhatContractsHide(t *testing.T) {
	e := newEnv(t)
	e.lists()
	secret := strings.Replace(stage.Contract("shop.secret", "", `reconcile: { list: shop.list, key: /key, at: /at, fields: { /card: /card }, settle: 1m }`),
		"new_price: {", "card: { type: string }, new_price: {", 1) + "display: { mask: [/card] }\n"
	e.Tool(secret)
	p := stage.Proposal("shop.secret", stage.Product(), 105)
	p.Payload = []byte(strings.Replace(string(p.Payload), "{", `{"card":"4711-ours",`, 1))
	a, claim := e.Claim(e.Approve(e.Propose(p), e.Mia))
	a, attempt := e.Start(a, claim)
	a = e.Report(a, stage.Receipt(attempt, claim, action.Success))
	run, err := e.Reconciler.Ask(t.Context(), triage.Who{ID: e.Ops().ID}, triage.Asked{Op: newOp(), Tool: "shop.secret", From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	e.compared(run, api.ListedOperation{Key: a.ExecutionKey, At: a.Attempts[0].At.Format(time.RFC3339Nano), Outcome: "SUCCEEDED",
		Fields: map[string]json.RawMessage{"/card": json.RawMessage(`"4711-theirs"`)}})
	ops := e.as(e.Ops())
	ops.open("/reconciliation/"+run.ID).says("Something else was done", "Case open").lacks("4711")
	ops.open("/reconciliation/" + run.ID + "/differences.csv").want(http.StatusOK).holds(contract.Hidden).lacks("4711")
	ops.open("/triage/" + e.Read(a.ID).CaseID()).want(http.StatusOK).lacks("4711")
}

// The file has every difference, however many, and says what an action did not take.
func TestTheFileOfARunEndsWithItsLastRow(t *testing.T) {
	e := newEnv(t)
	run := e.run()
	const rows = 20_001
	_, err := e.DB.Pool().Exec(`INSERT INTO reconciliation_differences (run_id, key, class, tool, scope, action_id, case_id, digest, detail)
		SELECT $1, 'exk_' || lpad(n::text, 6, '0'), 'mismatch', $2, '', '', '', '', '{"tool_version":1,"why":"untold","untold":"Its record is broken."}'
		FROM generate_series(1, $3::int) n`, run.ID, listable, rows)
	if err != nil {
		t.Fatal(err)
	}
	auditor := e.as(e.Person("otto", people.RoleAuditor))
	auditor.open("/reconciliation/"+run.ID).says("Known there, not taken here", "Its action does not say so: Its record is broken.")
	// Its figures count every scope, so that who is limited to some sees none of them.
	limited := people.Grants{Roles: []string{people.RoleOps}, Tools: []string{listable}}
	e.as(e.PersonWith("whole", limited)).open("/reconciliation").want(http.StatusOK).holds(run.ID)
	limited.Scopes = []string{"shop"}
	scoped := e.as(e.PersonWith("scoped", limited))
	scoped.open("/reconciliation").want(http.StatusOK).lacks(run.ID)
	for _, path := range []string{"/reconciliation/" + run.ID, "/reconciliation/" + run.ID + "/differences.csv"} {
		scoped.open(path).want(http.StatusNotFound).lacks("exk_0")
	}
	file := string(auditor.open("/reconciliation/" + run.ID + "/differences.csv").want(http.StatusOK).body)
	if lines := strings.Count(file, "\n"); lines != rows+1 || !strings.Contains(file, "exk_020001,mismatch,untold,") || !strings.Contains(file, "Its record is broken.") {
		t.Errorf("the file has %d lines and ends with %q", lines, file[max(0, len(file)-200):])
	}
}
