package sandbox_test

import (
	"context"
	"net/http"
	"testing"
)

func TestRefundIsPaidOnceAndReadBack(t *testing.T) {
	s := open(t)
	before := s.get("/refunds/orders/10086/refunds?execution_key=k1")
	before.want(t, http.StatusOK)
	before.wantField(t, "found", false)
	before.wantField(t, "amount", 0.0)
	before.wantField(t, "refundable", 42.0)
	s.get("/refunds/operations/k1").wantField(t, "status", "NOT_EXECUTED")
	s.get("/refunds/keys/k1/refund").wantCode(t, http.StatusNotFound, "refund-not-found")

	paid := s.refund("k1", `{"order_id":"10086","amount":20.50,"reason":"arrived broken"}`, "If-Match", `"1"`)
	paid.want(t, http.StatusOK)
	paid.wantField(t, "amount", 20.5)
	paid.wantField(t, "refunded", 20.5)
	again := s.refund("k1", `{"reason":"arrived broken","order_id":"10086","amount":20.5}`, "If-Match", `"1"`)
	again.want(t, http.StatusOK)
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.raw) != string(paid.raw) {
		t.Errorf("the replay differs: %s", again.raw)
	}
	s.refund("k1", back20).wantCode(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	s.wantCounts("refunds", "k1", 3, 1)

	for _, path := range []string{"/refunds/orders/10086/refunds?execution_key=k1", "/refunds/keys/k1/refund"} {
		after := s.get(path)
		after.wantField(t, "found", true)
		after.wantField(t, "amount", 20.5)
		after.wantField(t, "refund_id", paid.body["refund_id"])
		after.wantField(t, "refundable", 21.5)
		after.wantField(t, "order_status", "partly_refunded")
	}
	s.get("/refunds/orders/10087/refunds?execution_key=k1").wantField(t, "found", false) // another order
	op := s.get("/refunds/operations/k1")
	op.wantField(t, "status", "SUCCEEDED")
	op.wantField(t, "executions", 1.0)
	if answer, _ := op.body["answer"].(map[string]any); answer["refund_id"] != paid.body["refund_id"] {
		t.Errorf("the operation does not keep its answer: %s", op.raw)
	}
}

func TestRefundRefusals(t *testing.T) {
	s := open(t)
	s.refund("over", `{"order_id":"10086","amount":42.01,"reason":"x"}`).wantCode(t, http.StatusUnprocessableEntity, "over-refund")
	s.get("/refunds/operations/over").wantField(t, "status", "FAILED")
	s.refund("moved", back20, "If-Match", `"7"`).wantCode(t, http.StatusPreconditionFailed, "version-moved")
	s.refund("", back20).wantCode(t, http.StatusBadRequest, "missing-idempotency-key")
	s.refund("empty", `{"order_id":"10086","amount":1,"reason":""}`).wantCode(t, http.StatusBadRequest, "malformed")
	s.refund("other", `{"order_id":"10087","amount":1,"reason":"x"}`).wantCode(t, http.StatusBadRequest, "malformed")
	post := func(order string) reply {
		return s.send(t.Context(), once, http.MethodPost, "/refunds/orders/"+order+"/refunds", s.Tokens().RefundsWrite,
			`{"order_id":"`+order+`","amount":1,"reason":"x"}`, "Idempotency-Key", order)
	}
	post("99999").wantCode(t, http.StatusNotFound, "order-not-found")
	post("10093").wantCode(t, http.StatusUnprocessableEntity, "order-closed")
	s.get("/refunds/orders/10086").wantField(t, "refunded", 0.0)

	s.refund("all", `{"order_id":"10086","amount":42,"reason":"x"}`).want(t, http.StatusOK)
	s.get("/refunds/orders/10086").wantField(t, "status", "refunded")
	s.refund("more", `{"order_id":"10086","amount":0.01,"reason":"x"}`).wantCode(t, http.StatusUnprocessableEntity, "already-refunded")
}

func TestE2_TimeoutAfterSuccessIsKnownByKey(t *testing.T) {
	s := open(t)
	ctx, hangUp := context.WithCancel(t.Context())
	answer := make(chan reply)
	go func() {
		answer <- s.send(ctx, once, http.MethodPost, "/refunds/orders/10086/refunds", s.Tokens().RefundsWrite, back20,
			"Idempotency-Key", "t1", "X-Sandbox-Fault", "act-then-delay; delay_ms=30000")
	}()
	eventually(t, "the refund is known by its key", func() bool {
		return s.get("/refunds/operations/t1").body["status"] == "SUCCEEDED"
	})
	hangUp()
	if r := <-answer; r.err == nil {
		t.Errorf("the caller got an answer: %s", r.raw)
	}
	replay := s.refund("t1", back20)
	replay.want(t, http.StatusOK)
	if replay.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the second request was not answered from the record")
	}
	s.wantCounts("refunds", "t1", 2, 1)
}

func TestE2_NotExecutedCanBeSentAgain(t *testing.T) {
	s := open(t)
	if r := s.refund("t2", back20, "X-Sandbox-Fault", "lost-request"); r.err == nil {
		t.Fatalf("a lost request was answered: %s", r.raw)
	}
	s.get("/refunds/operations/t2").wantField(t, "status", "NOT_EXECUTED")
	s.wantCounts("refunds", "t2", 1, 0)
	s.refund("t2", back20).want(t, http.StatusOK)
	s.wantCounts("refunds", "t2", 2, 1)
}

func TestD6_ReadTokensCannotWrite(t *testing.T) {
	s := open(t)
	tokens := s.Tokens()
	post := func(path, token, body string) reply {
		return s.send(t.Context(), once, http.MethodPost, path, token, body, "Idempotency-Key", "c", "If-Match", "8")
	}
	const price, refund, cancel = "/catalog/products/SKU-4411/price", "/refunds/orders/10086/refunds", "/orders/orders/10087/cancel"
	const twice = `{"order_id":"10087","reason":"ordered twice"}`
	post(cancel, tokens.OrdersRead, twice).wantCode(t, http.StatusForbidden, "read-only-credential")
	post(cancel, tokens.RefundsWrite, twice).wantCode(t, http.StatusUnauthorized, "unauthorized")
	post(price, tokens.CatalogRead, to105).wantCode(t, http.StatusForbidden, "read-only-credential")
	post(refund, tokens.RefundsRead, back20).wantCode(t, http.StatusForbidden, "read-only-credential")
	post(price, tokens.RefundsWrite, to105).wantCode(t, http.StatusUnauthorized, "unauthorized")
	post(refund, tokens.CatalogWrite, back20).wantCode(t, http.StatusUnauthorized, "unauthorized")
	post(refund, tokens.Control, back20).wantCode(t, http.StatusUnauthorized, "unauthorized")
	post("/faults", tokens.RefundsWrite, `{"fault":"lie"}`).wantCode(t, http.StatusUnauthorized, "unauthorized")
	s.wantCounts("catalog", "c", 2, 0)
	s.wantCounts("refunds", "c", 3, 0)
	s.wantCounts("orders", "c", 2, 0)
	s.get("/orders/orders/10087").wantField(t, "status", "paid")
	s.get("/catalog/products/SKU-4411").wantField(t, "version", 8.0)
	s.get("/refunds/orders/10086").wantField(t, "refunded", 0.0)
}
