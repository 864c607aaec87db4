package contract

import (
	"strings"
	"testing"
	"time"

	"countersign/action"
)

// compared is a contract with a reconcile part.
func compared(reconcile, more string) string {
	return `name: desk.pay
input_schema: { type: object, required: [amount], properties: { amount: { type: number }, order: { type: string } } }
http: { method: POST, path: /pay }
execution:
  reconcile: { ` + reconcile + ` }
` + more
}

func TestReconcileDefaultsAndRefusals(t *testing.T) {
	const least = `list: desk.list, key: /id, at: /when`
	c, err := Parse([]byte(compared(least, "")))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Execution.Reconcile
	if r.Input != (ListInput{"from", "to", "cursor", "limit"}) || r.Page != 200 || r.Items != "/items" || r.Next != "/next_cursor" || r.Settle.Duration != 15*time.Minute ||
		r.Every.Duration != 0 || r.Outcome.Field != "/status" || len(r.Outcome.Succeeded) != 1 || r.Fields == nil {
		t.Errorf("defaults %+v", r)
	}
	if refs := c.References(); len(refs) != 1 || refs[0].Tool != "desk.list" || !refs[0].Reads {
		t.Errorf("references %+v", refs)
	}
	if c, err := Parse([]byte(compared(least+`, every: 1h`, ""))); err != nil || c.Execution.Reconcile.Window.Duration != time.Hour {
		t.Errorf("a window is as long as the interval: %v", err)
	}
	for name, tt := range map[string]struct{ contract, pointer string }{
		"a gap":              {compared(least+`, every: 2h, window: 1h`, ""), "/execution/reconcile/window"},
		"an unknown field":   {compared(least+`, fields: { /sum: /sum }`, ""), "/execution/reconcile/fields/~1sum"},
		"one place twice":    {compared(least+`, fields: { /amount: /id }`, ""), "/execution/reconcile"},
		"a place in another": {compared(least+`, fields: { /amount: /when/amount }`, ""), "/execution/reconcile"},
		"no money":           {compared(least+`, currency: /currency`, ""), "/execution/reconcile/currency"},
		"a tool that reads":  {compared(least, "mode: read\n"), "/execution/reconcile"},
		"no list":            {compared(`key: /id, at: /when`, ""), "/execution/reconcile"},
		"an unknown key":     {compared(least+`, lists: x`, ""), "/execution/reconcile/lists"},
		"no duration":        {compared(least+`, settle: soon`, ""), "/execution/reconcile/settle"},
		"steps":              {strings.Replace(compared(least, ""), "execution:\n", "execution:\n  key_lifetime: 1h\n  steps: [ { name: one, http: { method: POST, path: /one } } ]\n", 1), "/execution/reconcile"},
	} {
		_, err := Parse([]byte(tt.contract))
		r := action.AsRefusal(err)
		if err == nil || len(r.Errors) == 0 || !strings.HasPrefix(r.Errors[0].Pointer, tt.pointer) {
			t.Errorf("%s: %v at %v", name, err, r.Errors)
		}
	}
}

func TestPagesAreReadWholeOrNotAtAll(t *testing.T) {
	c, err := Parse([]byte(compared(`list: desk.list, key: /id, at: /when, fields: { /amount: /paid/sum, /order: /order }, currency: /paid/in`, "display: { money: { /amount: { currency: EUR } } }\n")))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Execution.Reconcile
	const page = `{"items":[{"id":"exk_1","when":"2026-11-30T12:00:00+08:00","status":"SUCCEEDED","paid":{"sum":42.0,"in":"EUR"},"order":null},
		{"id":7,"when":"2026-11-30T04:00:00Z","status":"PENDING"}],"next_cursor":"n2"}`
	items, next, err := r.ReadPage([]byte(page))
	if err != nil || next != "n2" || len(items) != 2 {
		t.Fatalf("%d operations, then %q, %v", len(items), next, err)
	}
	first := items[0]
	if string(first.Fields["/amount"]) != "42.0" || string(first.Fields["/order"]) != "null" || first.Currency != "EUR" || first.Key != "exk_1" || items[1].Key != "7" || len(items[1].Fields) != 0 {
		t.Errorf("read %+v", items)
	}
	if c.ReadListed(first).Outcome != action.Success || c.ReadListed(items[1]).Outcome != action.Unknown {
		t.Error("the outcomes are read wrong")
	}
	again, _, err := r.ReadPage(r.Pageful(items...))
	if err != nil || len(again) != 2 || string(again[0].Fields["/amount"]) != "42.0" || again[0].At != first.At {
		t.Errorf("written again: %+v, %v", again, err)
	}
	for name, wrong := range map[string]string{
		"no JSON": `<html>`, "no list": `{"items":{}}`, "no key": `{"items":[{"when":"2026-11-30T04:00:00Z"}]}`, "an empty key": `{"items":[{"id":"","when":"2026-11-30T04:00:00Z"}]}`,
		"no time": `{"items":[{"id":"a"}]}`, "a time that is none": `{"items":[{"id":"a","when":"noon"}]}`, "a cursor that is none": `{"items":[],"next_cursor":{}}`,
	} {
		if _, _, err := r.ReadPage([]byte(wrong)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	list, err := Parse([]byte(`{"name":"desk.list","mode":"read","input_schema":{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"},"cursor":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	for cursor, want := range map[string]string{"": `{"from":"2026-11-30T04:00:00Z","to":"2026-11-30T05:00:00Z"}`, "n2": `{"cursor":"n2","from":"2026-11-30T04:00:00Z","to":"2026-11-30T05:00:00Z"}`} {
		if got, err := r.Query(list, at, at.Add(time.Hour), cursor); err != nil || string(got) != want {
			t.Errorf("asks %s, %v", got, err)
		}
	}
}
