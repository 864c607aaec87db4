package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"countersign/execution/sandbox"
)

var start = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// list reads all refund operations of a window, by key.
func (s shop) list(query string) map[string]map[string]any {
	s.Helper()
	all := map[string]map[string]any{}
	for cursor := ""; ; {
		r := s.get("/refunds/operations?limit=500" + query + cursor)
		r.want(s, http.StatusOK)
		for _, item := range r.body["items"].([]any) {
			op := item.(map[string]any)
			all[op["key"].(string)] = op
		}
		if r.body["next_cursor"] == nil {
			return all
		}
		cursor = "&cursor=" + r.body["next_cursor"].(string)
	}
}

const window = "&from=2026-10-01T00:00:00Z&to=2026-10-02T00:00:00Z"

func TestBulkRefundsLookLikeAnyOther(t *testing.T) {
	s := open(t)
	const n = 10_000
	r := s.control(http.MethodPost, "/faults/refunds", fmt.Sprintf(`{"prefix":"b","count":%d,"amount":42,"from":"2026-10-01T00:00:00Z","step_ms":1000}`, n))
	r.wantField(t, "made", float64(n))
	if all := s.list(window); len(all) != n {
		t.Errorf("%d operations listed, want %d", len(all), n)
	}
	got := s.get("/refunds/orders/b-000002/refunds?execution_key=b-000002")
	got.wantField(t, "amount", 42.0)
	got.wantField(t, "order_status", "refunded")
	op := s.get("/refunds/operations/b-000002")
	op.wantField(t, "at", "2026-10-01T00:00:01Z")
	op.wantField(t, "executions", 1.0)

	replay := s.post("/refunds/orders/b-000002/refunds", "b-000002", `{"order_id":"b-000002","amount":42,"reason":"seeded"}`)
	replay.want(t, http.StatusOK)
	if refundID := got.body["refund_id"]; replay.header.Get("Idempotent-Replayed") != "true" || replay.body["refund_id"] != refundID {
		t.Errorf("replay %s, want refund %v", replay.raw, refundID)
	}
	s.refund("own", back20).want(t, http.StatusOK) // the numbers go on behind them
	s.send(t.Context(), once, http.MethodPost, "/faults/refunds", s.Tokens().Control, `{"prefix":"b","count":1,"amount":1,"from":"2026-10-01T00:00:00Z"}`).
		wantCode(t, http.StatusConflict, "key-taken")
}

func TestBulkRefundsAddUpOnAnOrder(t *testing.T) {
	s := open(t)
	seed := func(refunds ...sandbox.PaidRefund) error {
		return s.SeedRefunds(t.Context(), func(yield func(sandbox.PaidRefund) bool) {
			for _, r := range refunds {
				if !yield(r) {
					return
				}
			}
		})
	}
	r := sandbox.PaidRefund{OrderID: "10086", AmountCents: 1050, Reason: "late", Actor: "u-li-na", At: start}
	first, second := r, r
	first.Key, second.Key, second.At = "k1", "k2", start.Add(time.Hour)
	if err := seed(second, first); err != nil {
		t.Fatal(err)
	}
	s.get("/refunds/orders/10086").wantField(t, "refunded", 21.0)
	answer := s.get("/refunds/operations/k1").body["answer"].(map[string]any)
	if answer["refunded"] != 10.5 || answer["version"] != 2.0 {
		t.Errorf("the first of two answers %v", answer)
	}
	again := s.post("/refunds/orders/10086/refunds", "k2", `{"order_id":"10086","amount":10.5,"reason":"late"}`, "X-Actor", "u-li-na")
	again.want(t, http.StatusOK)
	again.wantField(t, "version", 3.0)
	third := r
	third.Key, third.AmountCents = "k3", 2101
	if err := seed(third); err == nil {
		t.Error("more was refunded than was paid")
	}
	if err := seed(sandbox.PaidRefund{OrderID: "x", AmountCents: 1, Reason: "x", At: start}); err == nil {
		t.Error("a refund without a key was taken")
	}
	s.get("/refunds/orders/10086").wantField(t, "refunded", 21.0)
}

func TestA8_RefundsDivergeSilently(t *testing.T) {
	s := open(t)
	s.control(http.MethodPost, "/faults/refunds", `{"prefix":"d","count":20,"amount":42,"from":"2026-10-01T00:00:00Z","step_ms":1000}`)
	before := s.list(window)
	key := func(i int) string { return fmt.Sprintf("d-%06d", i) }
	answer := func(op map[string]any) map[string]any { return op["answer"].(map[string]any) }
	for i, c := range []struct {
		kind  string
		check func(op map[string]any) bool
	}{
		{"amount", func(op map[string]any) bool { return answer(op)["amount"] == 42.01 && op["status"] == "SUCCEEDED" }},
		{"status", func(op map[string]any) bool { return op["status"] == "FAILED" && op["executions"] == 0.0 }},
		{"missing", func(op map[string]any) bool { return op == nil }},
		{"extra", func(op map[string]any) bool { return op["status"] == "SUCCEEDED" }},
		{"time-zone", func(op map[string]any) bool {
			return op["at"] == "2026-10-01T08:00:04+08:00" && answer(op)["refunded_at"] == "2026-10-01T08:00:04.000000+08:00"
		}},
		{"decimals", func(op map[string]any) bool { return answer(op)["amount"] == 42.0 }},
		{"amount-text", func(op map[string]any) bool { return answer(op)["amount"] == "42.0" }},
		{"null", func(op map[string]any) bool {
			note, there := answer(op)["note"]
			return there && note == nil
		}},
	} {
		s.control(http.MethodPost, "/faults/divergence", `{"kind":"`+c.kind+`","keys":["`+key(i+1)+`"]}`).wantField(t, "diverged", 1.0)
		if op := s.list(window)[key(i+1)]; !c.check(op) {
			t.Errorf("%s: %v", c.kind, op)
		}
	}
	after := s.list(window)
	if after[key(4)+"-extra"] == nil || len(after) != len(before) {
		t.Errorf("%d operations, of them an extra one: %v", len(after), after[key(4)+"-extra"])
	}
	for i := 9; i <= 20; i++ {
		if fmt.Sprint(after[key(i)]) != fmt.Sprint(before[key(i)]) {
			t.Errorf("%s changed: %v", key(i), after[key(i)])
		}
	}
	raw := string(s.get("/refunds/operations/" + key(6)).raw)
	var decimals struct {
		Answer struct{ Amount json.RawMessage }
	}
	if err := json.Unmarshal([]byte(raw), &decimals); err != nil || string(decimals.Answer.Amount) != "42.0" {
		t.Errorf("amount as decimals: %s (%v)", raw, err)
	}
	s.get("/refunds/orders/"+key(1)).wantField(t, "version", 2.0) // silently
	s.get("/refunds/orders/"+key(1)+"/refunds?execution_key="+key(1)).wantField(t, "amount", 42.01)
	s.get("/refunds/orders/"+key(2)).wantField(t, "refunded", 0.0)
	s.get("/refunds/orders/"+key(4)).wantField(t, "refunded", 84.0)
}

func TestDivergenceRefusals(t *testing.T) {
	s := open(t)
	s.refund("k", back20).want(t, http.StatusOK)
	diverge := func(body string) reply {
		return s.send(t.Context(), once, http.MethodPost, "/faults/divergence", s.Tokens().Control, body)
	}
	for _, body := range []string{`{}`, `{"kind":"amount"}`, `{"kind":"meteor","keys":["k"]}`, `{"kind":"amount","keys":[1]}`} {
		diverge(body).wantCode(t, http.StatusBadRequest, "malformed")
	}
	diverge(`{"kind":"amount","keys":["k","nobody"]}`).wantCode(t, http.StatusConflict, "not-paid")
	s.get("/refunds/orders/10086").wantField(t, "refunded", 20.0)
	if err := s.Diverge(t.Context(), sandbox.DivergeExtra, "k"); err != nil { // what was asked for over HTTP can diverge too
		t.Error(err)
	}
	for _, body := range []string{`{}`, `{"prefix":"a","count":0,"amount":1}`, `{"prefix":"a","count":200001,"amount":1}`, `{"prefix":"","count":1,"amount":1}`, `{"prefix":"a","count":1}`} {
		for _, path := range []string{"/faults/orders", "/faults/refunds"} {
			s.send(t.Context(), once, http.MethodPost, path, s.Tokens().Control, body).wantCode(t, http.StatusBadRequest, "malformed")
		}
	}
}

func TestOrdersAreMadeInBulk(t *testing.T) {
	s := open(t)
	for range 2 { // and again
		s.control(http.MethodPost, "/faults/orders", `{"prefix":"o","count":1000,"amount":42.5}`)
	}
	s.get("/refunds/orders/o-001000").wantField(t, "refundable", 42.5)
	s.post("/refunds/orders/o-000001/refunds", "k", `{"order_id":"o-000001","amount":42.5,"reason":"late"}`).want(t, http.StatusOK)
}
