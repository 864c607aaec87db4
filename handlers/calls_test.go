package handlers

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// linesOf reads a file of calls, and what its last line says.
func linesOf(a answer) (calls []api.Call, end api.CallsEnd) {
	a.t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(a.want(200).body)))
	for decoder.More() {
		var line struct {
			api.Call
			api.CallsEnd
		}
		if err := decoder.Decode(&line); err != nil {
			a.t.Fatal(err)
		}
		if end = line.CallsEnd; !end.End {
			calls = append(calls, line.Call)
		}
	}
	if !end.End {
		a.t.Fatalf("the file does not say that it ends: %s", a.body)
	}
	return calls, end
}

// refundOnce is a contract that can be asked about and hides a phone number.
const refundOnce = "shop.refund_once"

// traced is an action that was read, sent without an answer, asked about twice
// and handed to a person. Its program named the request that proposed it.
func (e *env) traced(request string) api.Action {
	e.T.Helper()
	e.Tool(replaced(stage.Contract(refundOnce, "", "status_query: { tool: shop.operation, max_polls: 2 }"), "new_price: { type: number }",
		"new_price: { type: number }, customer: { type: object, properties: { phone: { type: string }, name: { type: string } } }") +
		"display: { mask: [/customer/phone] }\n")
	body := proposal(refundOnce, stage.Product(), 105)
	body["payload"].(map[string]any)["customer"] = map[string]any{"phone": "0170-5550199", "name": "Lin"}
	body["task_id"] = e.task(api.TaskLimits{Writes: new(5)}).ID
	a := into[api.Action](e.post(people.RoleProposer, "/v1/actions", body, "Idempotency-Key", action.NewID("key"), "X-Request-Id", request,
		"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").want(201))
	e.Approve(e.Read(a.ID), e.Mia)
	a = into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200))
	observe := func(tool string, snapshot string, o api.Observation) {
		e.T.Helper()
		o.ObservationID, o.Tool, o.Snapshot, o.ObservedAt = action.NewID("obs"), tool, []byte(snapshot), time.Now()
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", o).want(201)
	}
	claim, attempt := action.NewID("clm"), action.NewID("att")
	e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
	observe(stage.ReadPrice, `{"price":100,"phone":"0170-5550199"}`, api.Observation{ToolVersion: 1, Fingerprint: "sha256:cd", TookMillis: 12, ProviderRef: "shop-1"})
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: attempt, ClaimID: claim, Fingerprint: "sha256:ab"}).want(201)
	r := receipt(attempt, claim, action.Unknown)
	r.TookMillis, r.HTTPStatus, r.ProviderRef = 10_000, 504, "shop-2"
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", r).want(201)
	observe("shop.operation", `{"status":"NOT_FOUND"}`, api.Observation{TookMillis: 7})
	observe("shop.operation", `{"status":"NOT_FOUND"}`, api.Observation{})
	return into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200))
}

// The record of every call has everything that the row names, and nothing that
// the contract hides.
func TestB10_TheRecordOfEveryCall(t *testing.T) {
	e := newEnv(t)
	a := e.traced("chat-8841-turn-3")
	e.confirmed(stage.SetPrice) // was never called
	file := e.get(people.RoleReader, "/v1/calls").lacks("0170-5550199")
	calls, end := linesOf(file)
	if file.header.Get("Content-Type") != "application/jsonl; charset=utf-8" || end.NextCursor != nil || len(calls) != 4 {
		t.Fatalf("%d calls as %s, %+v", len(calls), file.header.Get("Content-Type"), end)
	}
	for i, want := range []struct {
		kind, tool, result, ref string
		took                    int64
		version                 int
	}{{"read", stage.ReadPrice, "ANSWERED", "shop-1", 12, 1}, {"attempt", refundOnce, "UNKNOWN", "shop-2", 10_000, 1},
		{"ask", "shop.operation", "UNKNOWN", "", 7, 0}, {"ask", "shop.operation", "UNKNOWN", "", 0, 0}} {
		c := calls[i]
		if c.Kind != want.kind || c.Tool != want.tool || c.Result != want.result || valueOr(c.ProviderRef) != want.ref || valueOr(c.TookMillis) != want.took ||
			valueOr(c.ToolVersion) != want.version {
			t.Errorf("call %d: %+v", i, c)
		}
		if c.ActionID != a.ID || valueOr(c.TaskID) != e.Read(a.ID).TaskID || c.RequestID != "chat-8841-turn-3" || c.ParametersDigest != a.PayloadHash || c.ActorID != "u-17" ||
			c.Proposer != e.Agent.ID || valueOr(c.TraceID) != "4bf92f3577b34da6a3ce929d0e0e4736" || valueOr(c.Executor) != e.Executor.ID || c.At.IsZero() {
			t.Errorf("call %d is not told whose it is: %+v", i, c)
		}
		if c.Final.State != "result_unknown" || c.Final.HandlerExecutions != 1 || valueOr(c.Final.CaseID) != *a.CaseID || c.Final.Target == nil {
			t.Errorf("call %d ends in %+v", i, c.Final)
		}
	}
	var parameters struct{ Customer struct{ Phone, Name string } }
	if err := json.Unmarshal(calls[1].Parameters, &parameters); err != nil || parameters.Customer.Name != "Lin" || parameters.Customer.Phone == "" {
		t.Errorf("parameters %s (%v)", calls[1].Parameters, err)
	}
	if valueOr(calls[1].Fingerprint) != "sha256:ab" || valueOr(calls[1].HTTPStatus) != 504 || valueOr(calls[1].Number) != 1 {
		t.Errorf("the attempt: %+v", calls[1])
	}
	older := e.unknown(stage.SetPrice)
	first, end := linesOf(e.get(people.RoleReader, "/v1/calls?limit=1"))
	if len(first) != 1 || first[0].ActionID != older.ID || end.NextCursor == nil {
		t.Fatalf("a page of one: %+v, %+v", first, end)
	}
	rest, end := linesOf(e.get(people.RoleReader, "/v1/calls?cursor="+*end.NextCursor))
	if len(rest) != 4 || end.NextCursor != nil {
		t.Errorf("after it: %d, %+v", len(rest), end)
	}
	if none, _ := linesOf(e.get(people.RoleReader, "/v1/calls?task=another")); len(none) != 0 {
		t.Errorf("of another task: %+v", none)
	}
	e.get(people.RoleReader, "/v1/calls?from=yesterday").refused(action.InvalidArgument)
	e.get(people.RoleReader, "/v1/calls?cursor=x").refused(action.InvalidArgument)
	b := e.as(e.Admin)
	b.open("/actions/"+a.ID).want(200).says("1 request may have reached the business system.", "10,000 ms", "not told", "shop-2").lacks("0170-5550199")
	own, _ := linesOf(b.open("/history.jsonl?q=" + a.ID))
	if len(own) != 4 {
		t.Errorf("a person's file has %d calls", len(own))
	}
}

func valueOr[T any](p *T) (zero T) {
	if p == nil {
		return zero
	}
	return *p
}

// One id leads, from the box on any page, to receipts, snapshots, repeated
// questions and the hand-over.
func TestD7_OneIDFindsTheWholeTrace(t *testing.T) {
	e := newEnv(t)
	olga, otto := e.Person("olga", people.RoleOps), e.Person("otto", people.RoleOps)
	a := e.traced("chat-8841-turn-3")
	b := e.as(olga)
	path := "/triage/" + *a.CaseID
	page := b.open(path).want(200).holds(`href="/history?q=chat-8841-turn-3"`)
	b.send(path+"/take", page.seenOn()).leads(path)
	b.send(path+"/hand-over", also(b.open(path).seenOn(), "to", otto.ID)).leads(path)
	for _, from := range []string{"/approvals", "/overview", "/tools", path} {
		if !strings.Contains(string(b.open(from).body), `<form class="finder" method="get" action="/history">`) {
			t.Errorf("%s has no box to look an id up", from)
		}
	}
	attempt := e.Read(a.ID).Attempts[0].ID
	for _, ref := range []string{"chat-8841-turn-3", attempt, "shop-2", a.ExecutionKey, *a.CaseID, a.PayloadHash} {
		b.open("/history?" + url.Values{"q": {ref}}.Encode()).want(200).says("1 shown").holds(`href="/actions/` + a.ID + `"`)
		if calls, _ := linesOf(e.get(people.RoleReader, "/v1/calls?"+url.Values{"ref": {ref}}.Encode())); len(calls) != 4 {
			t.Errorf("%s finds %d calls", ref, len(calls))
		}
	}
	b.open("/actions/"+a.ID).want(200).holds(`href="/history?q=chat-8841-turn-3"`).says("shop-1", "shop-2", "asked by key", "Olga handed the case over")
	kinds := []action.Kind{}
	for _, event := range e.events(a.ID) {
		kinds = append(kinds, event.Kind)
	}
	for _, kind := range []action.Kind{action.KindReceipt, action.KindObservation, action.KindEvidence, action.KindTaken, action.KindHandedOver} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no event %s in %v", kind, kinds)
		}
	}
}
