package execution_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// What is verified of a tool that reads before it is handed over: who asks, whose
// object it is, what is missing, what is out of date, and that no more comes
// back than the contract allows.
func TestB11_ToolsThatRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fails := func(t *testing.T, q execution.Question, code string) {
		t.Helper()
		var e *execution.ToolError
		if got, err := b.ask(q); !errors.As(err, &e) || e.Code != code {
			t.Errorf("answered %s, %v, want %s", got, err, code)
		}
	}
	check := func(customer, order string) execution.Question {
		return execution.Question{Tool: "deliveries.check_delivery", Entry: "chat", ActorID: customer, Payload: []byte(`{"order_ref":"` + order + `"}`)}
	}
	t.Run("identity", func(t *testing.T) { // is the session's, whatever the payload says
		got, err := b.ask(execution.Question{Tool: "catalog.may_set_price", Entry: "chat", ActorID: "u-wang-wei", Payload: []byte(`{"product_id":"SKU-4411","actor_id":"u-li-na"}`)})
		if err != nil || !strings.Contains(string(got), `"allowed":false`) || !strings.Contains(string(got), "u-wang-wei") {
			t.Errorf("answered %s, %v", got, err)
		}
		fails(t, check("", "10083"), execution.ExecutionError)
		config := b.config()
		config.Key = execution.NewSecret("ck_not_a_key")
		tools, err := execution.NewTools(config, execution.Options{})
		b.must(err)
		if _, err := tools.Ask(t.Context(), check("c-2013", "10083")); err == nil {
			t.Error("a program that nobody knows was answered")
		}
	})
	t.Run("ownership", func(t *testing.T) {
		if got, err := b.ask(check("c-2013", "10083")); err != nil || !strings.Contains(string(got), `"status":"delivered"`) {
			t.Errorf("the customer's own: %s, %v", got, err)
		}
		fails(t, check("c-2017", "10083"), execution.ExecutionError)
	})
	t.Run("missing data", func(t *testing.T) { // is an error or a null, never an empty success
		fails(t, check("c-2013", "1"), execution.ExecutionError)
		fails(t, execution.Question{Tool: "catalog.get_product", Payload: []byte(`{"product_id":"SKU-0"}`)}, execution.ExecutionError)
		b.arm(`{"system":"catalog","method":"GET","fault":"malformed"}`)
		fails(t, execution.Question{Tool: "catalog.get_product", Payload: []byte(`{"product_id":"SKU-4411"}`)}, execution.ExecutionError)
		got, err := b.ask(execution.Question{Tool: "service.get_request", Entry: "chat", Payload: []byte(`{"customer_id":"c-2020"}`)})
		if err != nil || !strings.Contains(string(got), `"found":false`) || !strings.Contains(string(got), `"request_status":null`) {
			t.Errorf("nothing there: %s, %v", got, err)
		}
	})
	t.Run("out of date", func(t *testing.T) { // is read again, and says when it was seen
		price := func() string {
			got, err := b.ask(execution.Question{Tool: "catalog.get_product", Payload: []byte(`{"product_id":"SKU-4413"}`)})
			b.must(err)
			return string(got)
		}
		before := price()
		b.shopDo(http.MethodPut, "/catalog/products/SKU-4413", b.tokens.Control, `{"price":26}`)
		if now := price(); !strings.Contains(before, `"price":24.9`) || !strings.Contains(now, `"price":26`) || !strings.Contains(now, `"updated_at"`) {
			t.Errorf("read %s, then %s", before, now)
		}
		if got, err := b.ask(check("c-2013", "10083")); err != nil || !strings.Contains(string(got), `"observed_at":"2026-09-20T09:00:00Z"`) {
			t.Errorf("not told when: %s, %v", got, err)
		}
		b.must(b.Catalogue.Retire(t.Context(), "orders.get_coupon", "keep", b.Admin.As("admin", people.ByPassword)))
		fails(t, execution.Question{Tool: "orders.get_coupon", Payload: []byte(`{"order_id":"10088"}`)}, execution.ToolUnavailable)
	})
	t.Run("no more than needed", func(t *testing.T) {
		raw := b.shopDo(http.MethodGet, "/refunds/orders/10086/refunds", b.tokens.RefundsRead, "")
		got, err := b.ask(execution.Question{Tool: "refunds.get_refund", Payload: []byte(`{"order_id":"10086"}`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, inner := range []string{`"customer_id"`, `"refunds"`} {
			if !strings.Contains(raw, inner) || strings.Contains(string(got), inner) {
				t.Errorf("%s: the desk says %s, the tool %s", inner, raw, got)
			}
		}
	})
}

// asked proposes over HTTP under a key of the caller's.
func (s speaker) asked(key, tool, payload, version string) (api.Action, error) {
	p := api.Propose{Tool: tool, Entry: "chat", Actor: &api.Actor{ID: actor}, Payload: []byte(payload)}
	if version != "" {
		p.ObjectVersion = &version
	}
	return s.client.Propose(s.T.Context(), p, key)
}

// What is verified of a tool that writes: cancelling, a second confirmation, a
// second request, one key for two things, and a version that moved.
func TestB11_ToolsThatWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	t.Run("cancelling", func(t *testing.T) {
		waiting := b.propose(setPrice, actor, to105, "8")
		approved := b.approve(b.propose(refund, actor, `{"order_id":"10070","amount":1,"reason":"late"}`, ""))
		for _, a := range []action.Action{waiting, approved} {
			if _, err := s.client.Cancel(t.Context(), a.ID, a.Version, "not wanted"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.Approvals.Decide(t.Context(), b.Mia.ID, waiting.ID, stage.Ballot(waiting))
		if err == nil || b.get(waiting.ID).State != action.Cancelled || b.get(approved.ID).State != action.Cancelled {
			t.Errorf("approved what was cancelled: %v", err)
		}
	})
	t.Run("a second confirmation", func(t *testing.T) {
		a := b.propose(setPrice, actor, `{"product_id":"SKU-4412","new_price":150}`, "5")
		a = b.approve(a)
		for _, p := range []people.Person{b.Mia, b.Ken} { // again, and too late
			_, _ = b.Approvals.Decide(t.Context(), p.ID, a.ID, approvals.Ballot{Approve: true, Revision: a.Revision, ProposalHash: a.ProposalHash, Method: people.ByPassword, StepUp: true})
		}
		if now := b.get(a.ID); now.Version != a.Version || now.Confirmation.Ref != a.Confirmation.Ref {
			t.Errorf("confirmed again: %s", story(now))
		}
		claim := func(id string) error {
			_, err := b.Approvals.Claim(t.Context(), b.Executor, a.Confirmation.Ref, id, approvals.Bound{ProposalHash: a.ProposalHash, ObjectVersion: a.ObjectVersion})
			return err
		}
		if first, again, other := claim("one"), claim("one"), claim("two"); first != nil || again != nil || !action.IsCode(other, action.AlreadyClaimed) {
			t.Errorf("claimed: %v, again %v, by another %v", first, again, other)
		}
	})
	b.start(b.config())
	t.Run("a second request", func(t *testing.T) {
		first, err := s.asked("price of 4413", setPrice, `{"product_id":"SKU-4413","new_price":26}`, "3")
		b.must(err)
		again, err := s.asked("price of 4413", setPrice, `{"new_price":26.0,"product_id":"SKU-4413"}`, "3")
		if err != nil || again.ID != first.ID {
			t.Errorf("again: %s and %s, %v", first.ID, again.ID, err)
		}
		b.arm(`{"object":"SKU-4413","system":"catalog","fault":"duplicate"}`) // and the network delivers it twice
		b.approve(b.get(first.ID))
		done := b.awaitState(first.ID, action.Applied)
		if n := b.executions("catalog", done.ExecutionKey); n != 1 {
			t.Errorf("done %d times", n)
		}
	})
	t.Run("one key for two things", func(t *testing.T) {
		_, err := s.asked("price of 4413", setPrice, `{"product_id":"SKU-4413","new_price":27}`, "3")
		if !execution.HasCode(err, action.IdempotencyKeyReused) {
			t.Errorf("the console: %v", err)
		}
		const path = "/refunds/orders/10079/refunds" // and so does the business system
		first, err := post(b, path, `{"order_id":"10079","amount":1,"reason":"late"}`, b.tokens.RefundsWrite)
		b.must(err)
		again, err := post(b, path, `{"order_id":"10079","amount":2,"reason":"late"}`, b.tokens.RefundsWrite)
		b.must(err)
		if first != http.StatusOK || again != http.StatusUnprocessableEntity || b.refunded("10079") != 1 {
			t.Errorf("the desk: %d, %d, refunded %v", first, again, b.refunded("10079"))
		}
	})
	t.Run("a version that moved", func(t *testing.T) {
		old := b.propose(setPrice, actor, `{"product_id":"SKU-4447","new_price":28}`, "1")
		b.shopDo(http.MethodPut, "/catalog/products/SKU-4447", b.tokens.Control, `{"price":29}`)
		b.approve(old)
		old = b.awaitState(old.ID, action.Conflict)
		if price, _ := b.product("SKU-4447"); len(old.Attempts) != 0 || price != 29 {
			t.Errorf("%v: %s", price, story(old))
		}
		now := b.linked(action.Links{Replaces: old.ID}, setPrice, `{"product_id":"SKU-4447","new_price":28}`, "2")
		b.awaitState(now.ID, action.Applied)
	})
}

// What is verified of a tool that writes when nobody answers: that it was done,
// that it was not, and that it goes on where it stopped, each found out and
// nothing done twice.
func TestB11_WritesThatTimedOut(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b := newBench(t)
		b.sweeping()
		b.hurriedOf(setPrice, "catalog.hurried")
		b.start(b.config())
		run := func(product, version, fault string) action.Action {
			b.arm(`{"system":"catalog","object":"` + product + `",` + fault + `}`)
			return b.approve(b.propose("catalog.hurried", actor, `{"product_id":"`+product+`","new_price":20}`, version))
		}
		done := run("SKU-4413", "3", `"fault":"act-then-delay","delay_ms":3000`)
		not := run("SKU-4425", "2", `"fault":"delay-then-act","delay_ms":2500`)
		b.await(not.ID, "attempted", func(a action.Action) bool { return len(a.Attempts) == 1 })
		b.shopDo(http.MethodPut, "/catalog/products/SKU-4425", b.tokens.Control, `{"status":"discontinued"}`)
		b.arm(`{"system":"refunds","object":"10078","fault":"lost-request"}`)
		lost := b.approve(b.propose(refund, actor, `{"order_id":"10078","amount":10,"reason":"late"}`, ""))
		for name, want := range map[string]struct {
			id       string
			state    action.State
			attempts int
			system   string
			times    int
		}{
			"done after the time":     {done.ID, action.Applied, 1, "catalog", 1},
			"not done after the time": {not.ID, action.Failed, 1, "catalog", 0},
			"went on":                 {lost.ID, action.Applied, 2, "refunds", 1},
		} {
			a := b.ends(want.id, want.state)
			if n := b.executions(want.system, a.ExecutionKey); n != want.times || len(a.Attempts) != want.attempts {
				t.Errorf("%s: done %d times in %d attempts: %s", name, n, len(a.Attempts), story(a))
			}
			if len(a.Attempts) == 2 && a.Attempts[0].Fingerprint != a.Attempts[1].Fingerprint {
				t.Errorf("%s with something else: %+v", name, a.Attempts)
			}
			text, err := json.Marshal(a.Receipts)
			if err != nil || want.state == action.Failed && strings.Contains(string(text), `"outcome":"SUCCESS"`) {
				t.Errorf("%s: receipts %s", name, text)
			}
		}
	})
}
