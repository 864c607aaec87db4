package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"countersign/execution/api"
)

// desk stores a contract for refunds of a test's own, which nobody has to
// approve, and returns its name. More lines are added below execution.
func (c *console) desk(t *testing.T, execution string) string {
	t.Helper()
	name := unique("desk") + ".refund"
	contract := map[string]any{
		"name": name, "title": map[string]string{"en": "Refund an order", "zh": "订单退款"}, "mode": "write",
		"input_schema": map[string]any{"type": "object", "required": []string{"order_id", "amount", "currency"}, "properties": map[string]any{
			"order_id": map[string]any{"type": "string"}, "amount": map[string]any{"type": "number"}, "currency": map[string]any{"type": "string"}}},
		"target": map[string]any{"type": "order", "id": "/order_id", "scope": "shop"}, "object_version": "optional",
		"approval": map[string]any{"ttl": "1h", "confirmation_ttl": "30m", "rules": json.RawMessage(`[{"when":"true","role":"support","approvals":0}]`)},
		"http":     map[string]any{"method": "POST", "path": "/orders/{order_id}/refunds", "body": "payload"},
		"execution": merged(t, `{"proves":"completed","retry":"same_key","key_lifetime":"24h","definite_failures":[400,404,422],"conflicts":[412],
			"lease":"10m","fence_after":"60s","deadline":"1h","status_query":{"tool":"desk.operation","max_polls":1}}`, execution),
		"display": map[string]any{"summary": map[string]string{"en": "Refund {{amount}} on order {{order_id}}", "zh": "订单 {{order_id}} 退款 {{amount}}"},
			"money": map[string]any{"/amount": map[string]any{"currency": "/currency", "minor_units": 2}}}}
	c.call(t, http.StatusCreated, c.Keys.Admin, http.MethodPut, "/v1/tools/"+name, contract, nil)
	return name
}

// lost is a refund that was sent and of which nobody knows what became.
func (c *console) lost(t *testing.T, tool string, amount float64, currency string) api.Action {
	t.Helper()
	return c.ends(t, c.refund(t, tool, amount, currency).ID, noAnswer)
}

func (c *console) refund(t *testing.T, tool string, amount float64, currency string) api.Action {
	t.Helper()
	return c.propose(t, api.Propose{Tool: tool, Payload: fmt.Appendf(nil, `{"order_id":%q,"amount":%v,"currency":%q}`, unique("1"), amount, currency)})
}

// noAnswer is what an executor reports that cannot tell what became of it.
var noAnswer = api.Receipt{Outcome: "UNKNOWN", HTTPStatus: http.StatusServiceUnavailable, Code: "EXECUTION_ERROR"}

// answered reports what the desk says of an operation, asked by its key.
func (c *console) answered(t *testing.T, a api.Action, status string) api.Action {
	t.Helper()
	c.call(t, http.StatusCreated, c.Keys.Executor, http.MethodPost, "/v1/actions/"+a.ID+"/observations", api.Observation{
		ObservationID: unique("obs-"), Tool: "desk.operation", Snapshot: fmt.Appendf(nil, `{"status":%q}`, status), ObservedAt: time.Now()}, &a)
	return a
}

// unsaid is a lost refund of which the desk says nothing that proves anything:
// a person has to find out.
func (c *console) unsaid(t *testing.T, tool string, amount float64) api.Action {
	t.Helper()
	return c.answered(t, c.lost(t, tool, amount, "EUR"), "NOT_FOUND")
}

func caseOf(a api.Action) string {
	if a.CaseID == nil {
		return "/triage/none-of-" + a.ID
	}
	return "/triage/" + *a.CaseID
}

// caseRows are the cases that a page of unknown results shows.
func (p *tab) caseRows() []string {
	p.t.Helper()
	return eval[[]string](p, `[...document.querySelectorAll(".row .effect a")].map(a => a.getAttribute("href"))`)
}

// settle fills in what is known of a case and how, and records it.
func (p *tab) settle(verdict, reference, note string) *tab {
	p.t.Helper()
	p.choose("#evidence_kind", "provider_reference").fill("#evidence_ref", reference).fill("#note", note)
	return p.click("input[name=verdict][value=" + verdict + "]").follow("form.settle button.final")
}
