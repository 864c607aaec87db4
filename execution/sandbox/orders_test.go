package sandbox_test

import (
	"net/http"
	"testing"
)

func (s shop) cancel(order, key string, headers ...string) reply {
	s.Helper()
	return s.post("/orders/orders/"+order+"/cancel", key, `{"order_id":"`+order+`","reason":"ordered twice"}`, headers...)
}

func (s shop) restore(order, coupon, key string, headers ...string) reply {
	s.Helper()
	return s.post("/orders/orders/"+order+"/coupon/restore", key, `{"order_id":"`+order+`","coupon_code":"`+coupon+`"}`, headers...)
}

func TestD1_AnOrderThatSaysOKAndWritesNothing(t *testing.T) {
	s := open(t)
	before := s.get("/orders/orders/10086")
	lied := s.cancel("10086", "k86", "If-Match", `"1"`)
	lied.want(t, http.StatusOK)
	lied.wantField(t, "ok", true)
	lied.wantField(t, "order_status", "cancelled")
	if after := s.get("/orders/orders/10086"); string(after.raw) != string(before.raw) || after.header.Get("ETag") != `"1"` {
		t.Errorf("the order changed: %s", after.raw)
	}
	s.get("/orders/operations/k86").wantField(t, "status", "NOT_FOUND") // and that proves nothing
	s.wantCounts("orders", "k86", 1, 0)

	done := s.cancel("10087", "k87", "If-Match", `"1"`)
	done.want(t, http.StatusOK)
	after := s.get("/orders/orders/10087")
	after.wantField(t, "status", "cancelled")
	after.wantField(t, "cancelled_at", done.body["cancelled_at"])
	after.wantField(t, "version", 2.0)
	s.get("/orders/operations/k87").wantField(t, "status", "SUCCEEDED")
	if again := s.cancel("10087", "k87", "If-Match", `"1"`); string(again.raw) != string(done.raw) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the replay differs: %s", again.raw)
	}
	s.wantCounts("orders", "k87", 2, 1)
}

func TestD4_CouponIsVoidedByHalfACancelAndRestored(t *testing.T) {
	s := open(t)
	half := s.cancel("10088", "k", "If-Match", "1")
	half.want(t, http.StatusOK)
	half.wantField(t, "order_status", "cancelled")
	order := s.get("/orders/orders/10088")
	order.wantField(t, "status", "paid")
	order.wantField(t, "cancelled_at", nil)
	order.wantField(t, "coupon_status", "void")
	s.get("/orders/orders/10088/coupon").wantField(t, "status", "void")
	s.wantCounts("orders", "k", 1, 1)

	s.restore("10088", "AUTUMN-K88", "stale", "If-Match", "1").wantCode(t, http.StatusPreconditionFailed, "version-moved")
	s.restore("10088", "AUTUMN-K88", "r", "If-Match", "2").want(t, http.StatusOK)
	coupon := s.get("/orders/orders/10088/coupon")
	coupon.wantField(t, "status", "valid")
	coupon.wantField(t, "value", 25.0)
	coupon.wantField(t, "version", 3.0)
	s.wantCounts("orders", "r", 1, 1)
	s.restore("10088", "AUTUMN-K88", "again").wantCode(t, http.StatusUnprocessableEntity, "coupon-not-void")
}

func TestD4_ACompensationThatLies(t *testing.T) {
	s := open(t)
	s.cancel("10089", "k").want(t, http.StatusOK)
	lied := s.restore("10089", "MOON-24-X89", "r")
	lied.want(t, http.StatusOK)
	lied.wantField(t, "coupon_status", "valid")
	s.get("/orders/orders/10089/coupon").wantField(t, "status", "void")
	s.get("/orders/operations/r").wantField(t, "status", "NOT_FOUND")
	s.wantCounts("orders", "r", 1, 0)
}

func TestOrderRefusals(t *testing.T) {
	s := open(t)
	const unprocessable = http.StatusUnprocessableEntity
	s.cancel("10083", "a").wantCode(t, unprocessable, "order-shipped")
	s.cancel("10084", "b").wantCode(t, unprocessable, "order-settled")
	s.cancel("10085", "c").wantCode(t, unprocessable, "order-cancelled")
	s.cancel("99999", "d").wantCode(t, http.StatusNotFound, "order-not-found")
	s.cancel("10086", "e", "If-Match", "7").wantCode(t, http.StatusPreconditionFailed, "version-moved")
	s.get("/orders/operations/a").wantField(t, "status", "FAILED")
	s.restore("10085", "OTHER", "f").wantCode(t, http.StatusNotFound, "coupon-not-found")
	s.restore("10087", "OTHER", "g").wantCode(t, http.StatusNotFound, "coupon-not-found")
	s.get("/orders/orders/10087/coupon").wantCode(t, http.StatusNotFound, "coupon-not-found")
	s.get("/orders/orders/99999/coupon").wantCode(t, http.StatusNotFound, "order-not-found")
	s.get("/orders/orders/99999").wantCode(t, http.StatusNotFound, "order-not-found")
	s.cancel("10080", "").wantCode(t, http.StatusBadRequest, "missing-idempotency-key")
	for _, body := range []string{
		`{"order_id":"10080"}`, `{"order_id":"10081","reason":"x"}`, `{"order_id":"10080","reason":""}`,
		`{"order_id":"10080","reason":"x","coupon_code":"y"}`, `[]`,
	} {
		s.post("/orders/orders/10080/cancel", "h", body).wantCode(t, http.StatusBadRequest, "malformed")
	}
	s.post("/orders/orders/10081/coupon/restore", "h", `{"order_id":"10081","reason":"x"}`).wantCode(t, http.StatusBadRequest, "malformed")
	s.get("/orders/operations/h").wantField(t, "status", "NOT_FOUND")
	s.get("/orders/orders/10080").wantField(t, "version", 1.0)

	s.restore("10085", "HELLO-5-N85", "i").want(t, http.StatusOK) // of an order that was really cancelled
	s.get("/orders/orders/10085").wantField(t, "coupon_status", "valid")
	if n := len(s.get("/orders/orders").body["items"].([]any)); n != 12 {
		t.Errorf("%d orders, want 12", n)
	}
}

func TestOrdersTakeFaultsLikeTheOthers(t *testing.T) {
	s := open(t)
	if r := s.cancel("10087", "k", "X-Sandbox-Fault", "act-then-reset"); r.err == nil {
		t.Fatalf("answered %s", r.raw)
	}
	s.get("/orders/operations/k").wantField(t, "status", "SUCCEEDED")
	s.control(http.MethodPost, "/faults", `{"fault":"error-before","status":503,"system":"orders","object":"10080"}`)
	s.cancel("10080", "l").want(t, http.StatusServiceUnavailable)
	s.cancel("10080", "l").want(t, http.StatusOK)
	fenced := s.send(t.Context(), once, http.MethodPost, "/orders/operations/m/fence", s.Tokens().OrdersWrite, "")
	fenced.wantField(t, "fenced", true)
	s.cancel("10081", "m").wantCode(t, http.StatusGone, "key-fenced")
}

// TestD7_AnAnswerNamesItsRequest finds the request in the log by the id that
// its caller was given.
func TestD7_AnAnswerNamesItsRequest(t *testing.T) {
	s := open(t)
	r := s.cancel("10087", "k")
	items := s.control(http.MethodGet, "/faults/log?system=orders&key=k", "").body["items"].([]any)
	if entry := items[0].(map[string]any); r.header.Get("Request-Id") == "" || entry["request_id"] != r.header.Get("Request-Id") {
		t.Errorf("the answer says %q, the log %v", r.header.Get("Request-Id"), entry)
	}
}
