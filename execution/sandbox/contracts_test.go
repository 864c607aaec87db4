package sandbox_test

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/execution/sandbox"
)

func contracts(t *testing.T) map[string]*contract.Contract {
	t.Helper()
	files, err := fs.Glob(sandbox.Contracts(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*contract.Contract{}
	for _, file := range files {
		raw, err := fs.ReadFile(sandbox.Contracts(), file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := contract.Parse(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, err := rule.Compile(c); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if c.Name+".yaml" != file {
			t.Errorf("%s describes %s", file, c.Name)
		}
		all[c.Name] = c
	}
	return all
}

func TestContractsSpeakBothLanguages(t *testing.T) {
	for name, c := range contracts(t) {
		texts := map[string]contract.Text{"title": c.Title, "description": c.Description}
		if c.Mode == contract.Write {
			texts["summary"] = c.Display.Summary
			for _, field := range c.Fields() {
				texts["label of "+field] = c.Display.Labels["/"+field]
			}
		}
		for what, text := range texts {
			if text["en"] == "" || text["zh"] == "" {
				t.Errorf("%s: %s is %v", name, what, text)
			}
		}
	}
}

// use is one call of a tool.
type use struct {
	tool, input  string
	key, version string // "": none
	step         string // "": the tool has no steps
	actor        string // "": Li Na
}

// uses is every tool once and more, in an order that makes sense.
func uses() []use {
	const product, order = `{"product_id":"SKU-4411"}`, `{"order_id":"10086"}`
	const reconciliation = `{"reconciliation_id":"REC-2026-09"}`
	const span = `{"from":"2026-01-01T00:00:00Z","to":"2126-01-01T00:00:00+08:00","limit":1}`
	return []use{
		{tool: "catalog.get_product", input: product},
		{tool: "catalog.may_set_price", input: `{"product_id":"SKU-4411","actor_id":"u-li-na"}`},
		{tool: "catalog.get_operation", input: `{"execution_key":"k"}`},
		{tool: "catalog.set_price", input: to105, key: "k", version: "8"},
		{tool: "catalog.get_operation", input: `{"execution_key":"k"}`},
		{tool: "catalog.get_notices", input: product},
		{tool: "catalog.notify_price", input: to105, key: "k2"},
		{tool: "catalog.get_notices", input: `{"product_id":"SKU-4411","execution_key":"k2"}`},
		{tool: "catalog.set_price_and_notify", input: to110, key: "k3:price", version: "9", step: "price"},
		{tool: "catalog.set_price_and_notify", input: to110, key: "k3:notify", version: "9", step: "notify"},
		{tool: "refunds.get_refund", input: order},
		{tool: "refunds.get_operation", input: `{"execution_key":"k"}`},
		{tool: "refunds.refund_order", input: back20, key: "k", version: "1"},
		{tool: "refunds.get_operation", input: `{"execution_key":"k"}`},
		{tool: "refunds.refund_order", input: later20, key: "k3"},
		{tool: "refunds.get_operation", input: `{"execution_key":"k3"}`},
		{tool: "orders.get_order", input: `{"order_id":"10088"}`},
		{tool: "orders.get_coupon", input: `{"order_id":"10088"}`},
		{tool: "orders.get_operation", input: `{"execution_key":"k"}`},
		{tool: "orders.cancel_order", input: `{"order_id":"10088","reason":"ordered twice"}`, key: "k", version: "1"},
		{tool: "orders.get_coupon", input: `{"order_id":"10088"}`},
		{tool: "orders.restore_coupon", input: `{"order_id":"10088","coupon_code":"AUTUMN-K88"}`, key: "k2", version: "2"},
		{tool: "orders.get_operation", input: `{"execution_key":"k"}`},
		{tool: "catalog.list_operations", input: span},
		{tool: "refunds.list_operations", input: span},
		{tool: "orders.list_operations", input: span},
		{tool: "orders.cancel_order", input: `{"order_id":"10087","reason":"ordered twice"}`, key: "k3"},
		{tool: "orders.get_order", input: `{"order_id":"10087"}`},
		{tool: "notes.get_conversation", input: `{"conversation_id":"talk-501"}`},
		{tool: "notes.may_save_minutes", input: `{"customer_id":"c-2016","actor_id":"u-mia-chen"}`},
		{tool: "notes.get_notes", input: `{"customer_id":"c-2016"}`},
		{tool: "notes.get_operation", input: `{"execution_key":"k"}`},
		{tool: "notes.save_minutes", input: minutes501, key: "k"},
		{tool: "notes.get_notes", input: `{"customer_id":"c-2016","execution_key":"k"}`},
		{tool: "notes.get_operation", input: `{"execution_key":"k"}`},
		{tool: "notes.list_operations", input: span},
		{tool: "service.get_request", input: `{"customer_id":"c-2016"}`},
		{tool: "service.submit_request", input: `{"customer_id":"c-2016","topic":"delivery","wish":"leave it with the neighbour"}`, key: "k"},
		{tool: "service.get_request", input: `{"customer_id":"c-2016","execution_key":"k"}`},
		{tool: "service.get_operation", input: `{"execution_key":"k"}`},
		{tool: "service.list_operations", input: span},
		{tool: "ledger.get_reconciliation", input: reconciliation},
		{tool: "ledger.compare_sides", input: reconciliation},
		{tool: "ledger.get_voucher", input: `{"voucher":"PSP-70015"}`},
		{tool: "ledger.may_sign_off", input: `{"actor_id":"u-ingrid-holm"}`},
		{tool: "ledger.may_report", input: `{"actor_id":"u-ingrid-holm"}`},
		{tool: "ledger.may_post", input: `{"actor_id":"u-ingrid-holm"}`},
		{tool: "ledger.sign_off", input: explained, version: "1"},
		{tool: "ledger.make_report", input: `{"reconciliation_id":"REC-2026-09","report_id":"RPT-2026-09-1"}`, version: "2"},
		{tool: "ledger.get_report", input: `{"reconciliation_id":"REC-2026-09","report_id":"RPT-2026-09-1"}`},
		{tool: "ledger.post_adjustment", input: fee10084, version: "2"},
		{tool: "ledger.get_adjustment", input: `{"reconciliation_id":"REC-2026-09","reference":"10084"}`},
		{tool: "messages.lookup_current_rule", input: `{"question":"R9?"}`},
		{tool: "messages.may_send", input: `{"conversation_id":"c-a","actor_id":"u-li-na"}`},
		{tool: "messages.get_message", input: `{"conversation_id":"c-a","message_id":"m-1"}`},
		{tool: "messages.send_to_conversation", input: `{"conversation_id":"c-a","message_id":"m-1","body":"公告"}`, key: "k"},
		{tool: "messages.get_message", input: `{"conversation_id":"c-a","message_id":"m-1","body":"公告"}`},
		{tool: "deliveries.check_delivery", input: `{"order_ref":"10083"}`, actor: "c-2013"},
	}
}

// call sends a request exactly as the contract says.
func (s shop) call(c *contract.Contract, u use) reply {
	s.Helper()
	system, _, _ := strings.Cut(c.Name, ".")
	c, err := c.ForStep(u.step)
	if err != nil {
		s.Fatal(err)
	}
	wire, err := c.Request(s.url+"/"+system, []byte(u.input), u.key, u.version)
	if err != nil {
		s.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.Context(), wire.Method, wire.URL, bytes.NewReader(wire.Body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header = wire.Header
	req.Header.Set("Authorization", "Bearer "+s.token(system, c.Mode == contract.Write))
	if system == sandbox.Messages || system == sandbox.Deliveries {
		req.Header.Set("X-Actor", cmp.Or(u.actor, "u-li-na"))
	}
	resp, err := once.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return reply{status: resp.StatusCode, header: resp.Header, raw: raw, body: fields(raw)}
}

// TestContractsDescribeWhatIsServed calls every tool the way its contract
// says and holds the answers to what it promises.
func TestContractsDescribeWhatIsServed(t *testing.T) {
	s := open(t)
	all := contracts(t)
	for _, u := range uses() {
		c := all[u.tool]
		if c == nil {
			t.Fatalf("there is no contract %s", u.tool)
		}
		if err := c.ValidateInput([]byte(u.input)); err != nil {
			t.Errorf("%s %s: %v", u.tool, u.input, err)
		}
		r := s.call(c, u)
		got := c.Classify(contract.Answer{Status: r.status, ContentType: r.header.Get("Content-Type"), Body: r.raw, Attempt: 1})
		if got.Result != action.Success {
			t.Errorf("%s answered %d %s: %s", u.tool, r.status, r.raw, got.Reason)
		}
		for _, pointer := range c.Display.AllowOutput {
			if _, ok := r.body[strings.TrimPrefix(pointer, "/")]; !ok && r.status == http.StatusOK {
				t.Errorf("%s allows %s, which is not in %s", u.tool, pointer, r.raw)
			}
		}
	}
	for name := range all {
		if !slices.ContainsFunc(uses(), func(u use) bool { return u.tool == name }) {
			t.Errorf("%s is never called here", name)
		}
	}
}

func TestContractsNameToolsThatExist(t *testing.T) {
	all := contracts(t)
	for name, c := range all {
		for _, ref := range c.References() {
			other := all[ref.Tool]
			if other == nil || ref.Reads != (other.Mode == contract.Read) {
				t.Errorf("%s%s names %s, which is no such tool here", name, ref.Pointer, ref.Tool)
			}
		}
		for _, condition := range slices.Concat(c.Execution.Preconditions, c.Execution.Postconditions) {
			if !strings.Contains(string(all[condition.Read].OutputSchema), `"`+strings.TrimPrefix(condition.Field, "/")+`"`) {
				t.Errorf("%s reads %s of %s, which promises no such field", name, condition.Field, condition.Read)
			}
		}
	}
}
