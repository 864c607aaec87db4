package handlers

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// lookedUp is a contract whose object is read before people decide.
const lookedUp = "shop.looked_up"

func (e *env) lookedUp() {
	e.T.Helper()
	e.Tool(`name: shop.look_up
mode: read
input_schema: { type: object }
target: { type: product, id: /product_id, scope: shop, block: none }
http: { method: GET, path: "/products/{product_id}" }
execution: { definite_failures: [404] }
display: { allow_output: [/price] }
`)
	e.Tool(replaced(stage.Contract(lookedUp, "", `postconditions: [ { read: shop.look_up, field: /price, expect: "value == payload.new_price" } ]`),
		"approval: {", "approval: { before: shop.look_up,"))
}

// read reports a reading of the object: what it showed, or what was answered.
func (e *env) read(id string, price, status int, code string) api.Action {
	e.T.Helper()
	o := api.Observation{ObservationID: action.NewID("obs"), Tool: "shop.look_up", ObservedAt: time.Now(), HTTPStatus: status, Code: code}
	if o.Error = "it showed nothing"; price > 0 {
		o.Error, o.Snapshot = "", fmt.Appendf(nil, `{"price":%d}`, price)
	}
	return into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+id+"/observations", o).want(201))
}

// A page says how often the object was read in vain and what was answered, why
// what was approved has not run yet, and that what is not there is not run.
func TestReadingsThatShowNothing(t *testing.T) {
	e := newEnv(t)
	e.lookedUp()
	b := e.as(e.Mia)
	a := e.proposed(lookedUp)
	b.open("/actions/" + a.ID).says("Now, not read yet")
	e.read(a.ID, 0, 0, "EXECUTION_ERROR")
	b.open("/actions/"+a.ID).says("asked once,", "shop did not answer")
	for range 2 {
		e.read(a.ID, 0, http.StatusNotFound, "")
	}
	b.open("/actions/"+a.ID).says("Now, asked 3×, last", "shop answered 404, not found", "It may not be there", "failed, 404")
	calls, _ := linesOf(e.get(people.RoleReader, "/v1/calls?ref="+a.ID))
	if len(calls) != 3 || calls[0].HTTPStatus != nil || valueOr(calls[0].Code) != "EXECUTION_ERROR" || valueOr(calls[2].HTTPStatus) != http.StatusNotFound || calls[2].Result != action.CallFailed {
		t.Errorf("recorded as %+v", calls)
	}
	at(t, e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: "o", Tool: "shop.look_up", Error: "x", ObservedAt: time.Now(),
		HTTPStatus: 9}).refused(action.InvalidArgument), "/http_status")
	e.Approve(e.Read(a.ID), e.Mia)
	a = into[api.Action](e.get(people.RoleExecutor, "/v1/actions/"+a.ID).want(200))
	tried := func(o func()) {
		claim := action.NewID("clm")
		e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
		o()
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/release", api.Release{ClaimID: claim, Reason: "the token cannot be checked"}).want(200)
	}
	tried(func() {})
	b.open("/actions/" + a.ID).says("Approved. Could not be run yet: “the token cannot be checked” (as the executor says), 1 try, next")
	tried(func() { e.read(a.ID, 0, 0, "EXECUTION_ERROR") })
	b.open("/actions/" + a.ID).says("Approved. Could not be run yet: shop did not answer, 2 tries, next")
	for _, w := range into[api.WorkList](e.get(people.RoleExecutor, "/v1/work?tool="+lookedUp).want(200)).Items {
		t.Errorf("offered at once: %+v", w)
	}
	if over := e.read(a.ID, 0, http.StatusNotFound, ""); over.State != string(action.Conflict) || over.HandlerExecutions != 0 {
		t.Errorf("%s", over.State)
	}
	b.open("/actions/"+a.ID).says("Not run, object not there", "Asked for", "shop answered 404, not found").lacks("Could not be run yet", ">After<")
}

// Once something was sent, the table says what was asked for beside what was
// read before and what was read since, and never what will be.
func TestWhatWasSentIsNotWhatWillBe(t *testing.T) {
	e := newEnv(t)
	e.lookedUp()
	b := e.as(e.Mia)
	a := e.proposed(lookedUp)
	e.read(a.ID, 100, http.StatusOK, "")
	b.open("/actions/"+a.ID).says("Now, read from shop", "After", "1 field changes")
	e.Approve(e.Read(a.ID), e.Mia)
	a = into[api.Action](e.get(people.RoleExecutor, "/v1/actions/"+a.ID).want(200))
	claim, attempt := action.NewID("clm"), action.NewID("att")
	e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: attempt, ClaimID: claim, Fingerprint: "sha256:ab"}).want(201)
	sent := []string{"Before, read from shop", "Asked for", "1 field was to change"}
	never := []string{">Now<", ">After<", "1 field changes"}
	b.open("/actions/" + a.ID).says(sent...).lacks(append(never, "Later")...)
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Unknown)).want(201)
	e.read(a.ID, 101, http.StatusOK, "")
	b.open("/actions/" + a.ID).says(append(sent, "Later, read from shop", "100105+5", "101")...).lacks(never...)
}

// What a success makes of a field stands beside what it is now, also where it is
// read back with another tool than the one that is read before people decide; an
// equal name of something else promises nothing.
func TestAPromiseThatAnotherToolReadsBack(t *testing.T) {
	e := newEnv(t)
	for name, values := range map[string]string{"shop.compare": "[open, signed_off]", "shop.ledger": "[open, signed_off]", "shop.coupon": "[open, void]"} {
		e.Tool(`name: ` + name + `
mode: read
input_schema: { type: object }
output_schema: { type: object, properties: { status: { enum: ` + values + ` } } }
target: { type: product, id: /product_id, scope: shop, block: none }
http: { method: GET, path: "/products/{product_id}" }
display: { allow_output: [/status] }
`)
	}
	for tool, read := range map[string]string{"shop.sign_off": "shop.ledger", "shop.void": "shop.coupon"} {
		e.Tool(replaced(stage.Contract(tool, "", `postconditions: [ { read: `+read+`, field: /status, expect: "value == 'signed_off'" } ]`),
			"approval: {", "approval: { before: shop.compare,"))
		a := e.proposed(tool)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: "shop.compare",
			Snapshot: []byte(`{"status":"open"}`), ObservedAt: time.Now()}).want(201)
		page := e.as(e.Mia).open("/actions/" + a.ID).want(200).says("open")
		if read != "shop.ledger" {
			page.lacks("field changes")
			continue
		}
		page.says("1 field changes", "signed_off")
		e.Approve(e.Read(a.ID), e.Mia)
		a = into[api.Action](e.get(people.RoleExecutor, "/v1/actions/"+a.ID).want(200))
		claim, attempt := action.NewID("clm"), action.NewID("att")
		e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: attempt, ClaimID: claim, Fingerprint: "sha256:ab"}).want(201)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Unknown)).want(201)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: "shop.compare",
			Snapshot: []byte(`{"status":"half_open"}`), ObservedAt: time.Now()}).want(201)
		e.as(e.Mia).open("/actions/"+a.ID).want(200).says("Asked for", "1 field was to change", "Later, read from shop", "half_open").lacks("if it succeeds")
	}
}
