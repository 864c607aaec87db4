package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"countersign/execution/api"
)

// tool stores a contract of a test's own and returns its name. rules are the
// lines of its approval rules; more lines are added at the top and below
// execution.
func (c *console) tool(t *testing.T, rules, execution string) string {
	t.Helper()
	name := unique("shelf") + ".set_price"
	contract := map[string]any{
		"name": name, "title": map[string]string{"en": "Change a shelf price", "zh": "修改货架价格"}, "mode": "write",
		"input_schema": map[string]any{"type": "object", "required": []string{"product_id", "new_price"}, "properties": map[string]any{
			"product_id": map[string]any{"type": "string"}, "new_price": map[string]any{"type": "number"}, "memo": map[string]any{"type": "string"}}},
		"target": map[string]any{"type": "product", "id": "/product_id", "scope": "shop"}, "object_version": "optional",
		"approval": map[string]any{"ttl": "1h", "confirmation_ttl": "30m", "rules": json.RawMessage("[" + rules + "]")},
		"http":     map[string]any{"method": "POST", "path": "/products/{product_id}/price", "body": "payload"},
		"execution": merged(t, `{"proves":"completed","retry":"same_key","key_lifetime":"24h","definite_failures":[400,404,422],
			"conflicts":[412],"lease":"10m","fence_after":"60s","deadline":"1h"}`, execution),
		"display": map[string]any{"summary": map[string]string{"en": "{{product_id}} to {{new_price}}", "zh": "{{product_id}} 改为 {{new_price}}"},
			"labels": map[string]any{"/new_price": map[string]string{"en": "New price", "zh": "新价格"}}}}
	c.call(t, http.StatusCreated, c.Keys.Admin, http.MethodPut, "/v1/tools/"+name, contract, nil)
	return name
}

// merged is an object with the entries of another put over it.
func merged(t *testing.T, base, over string) map[string]any {
	t.Helper()
	entries := map[string]any{}
	for _, text := range []string{base, over} {
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &entries); err != nil {
			t.Fatal(err)
		}
	}
	return entries
}

// Approval rules of a test's own contracts.
const (
	twoSupport  = `{"when":"true","role":"support","approvals":2}`
	twoStepUp   = `{"when":"true","role":"support","approvals":2,"step_up":true}`
	nobodyHolds = `{"when":"true","role":"lighthouse","approvals":1}`
)

// price proposes to set the price of a product that no other test talks about.
func (c *console) price(t *testing.T, tool string, price float64) api.Action {
	t.Helper()
	return c.priceOf(t, tool, unique("SKU-"), price)
}

func (c *console) priceOf(t *testing.T, tool, product string, price float64) api.Action {
	t.Helper()
	return c.propose(t, api.Propose{Tool: tool, Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":%v}`, product, price),
		Reason: "The supplier raised the price."})
}

// lasting proposes something that expires soon.
func (c *console) lasting(t *testing.T, tool string, life time.Duration) api.Action {
	t.Helper()
	d := api.Duration(life)
	return c.propose(t, api.Propose{Tool: tool, Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":105}`, unique("SKU-")), ExpiresIn: &d})
}

// claimed takes a confirmed action as an executor does, and returns the claim.
func (c *console) claimed(t *testing.T, id string) (a api.Action, claim string) {
	t.Helper()
	a, claim = c.read(t, id), unique("process-")
	if a.Confirmation == nil {
		t.Fatalf("%s is %s, and has no confirmation", id, a.State)
	}
	var ref api.ConfirmationState
	c.call(t, http.StatusOK, c.Keys.Executor, http.MethodGet, "/v1/actions/"+id, nil, &a)
	c.call(t, http.StatusOK, c.Keys.Executor, http.MethodGet, "/v1/confirmations/"+a.Confirmation.Ref, nil, &ref)
	c.call(t, http.StatusOK, c.Keys.Executor, http.MethodPost, "/v1/confirmations/"+ref.Ref+"/claim",
		api.Claim{ClaimID: claim, ProposalHash: a.ProposalHash, ObjectVersion: a.ObjectVersion}, nil)
	return a, claim
}

// ends runs a confirmed action and reports what came of it.
func (c *console) ends(t *testing.T, id string, r api.Receipt) api.Action {
	t.Helper()
	return c.report(t, id, c.sent(t, id), r)
}

// sent runs a confirmed action, of which nothing has come yet.
func (c *console) sent(t *testing.T, id string) api.Attempt {
	t.Helper()
	_, claim := c.claimed(t, id)
	attempt := api.Attempt{AttemptID: unique("try-"), ClaimID: claim, Fingerprint: "sha256:ab"}
	c.call(t, http.StatusCreated, c.Keys.Executor, http.MethodPost, "/v1/actions/"+id+"/attempts", attempt, nil)
	return attempt
}

// report tells what came of an attempt.
func (c *console) report(t *testing.T, id string, sent api.Attempt, r api.Receipt) (a api.Action) {
	t.Helper()
	r.ReceiptID, r.AttemptID, r.ClaimID = unique("receipt-"), sent.AttemptID, sent.ClaimID
	c.call(t, http.StatusCreated, c.Keys.Executor, http.MethodPost, "/v1/actions/"+id+"/receipts", r, &a)
	return a
}
