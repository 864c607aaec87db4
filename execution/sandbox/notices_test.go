package sandbox_test

import (
	"net/http"
	"testing"

	"countersign/action"
	"countersign/action/contract"
)

const notices = "/catalog/products/SKU-4411/notices"

func TestB8_OnlyTheNoticeIsMissing(t *testing.T) {
	s := open(t)
	c := contracts(t)["catalog.set_price_and_notify"]
	s.control(http.MethodPost, "/faults", `{"fault":"error-before","status":503,"path":"`+notices+`"}`)
	classify := func(r reply) contract.Outcome {
		return c.Classify(contract.Answer{Status: r.status, ContentType: r.header.Get("Content-Type"), Body: r.raw, Attempt: 1})
	}
	price := use{input: to105, key: "exk_1:price", version: "8", step: "price"}
	notify := use{input: to105, key: "exk_1:notify", version: "8", step: "notify"} // the version that was approved is no longer the present one
	if got := classify(s.call(c, price)); got.Result != action.Success {
		t.Fatalf("price: %+v", got)
	}
	if got := classify(s.call(c, notify)); got.Result != action.Unknown {
		t.Fatalf("notify: %+v", got)
	}
	s.get("/catalog/operations/exk_1:price").wantField(t, "status", "SUCCEEDED")
	s.get("/catalog/operations/exk_1:notify").wantField(t, "status", "NOT_FOUND")
	missing := s.get(notices + "?execution_key=exk_1")
	missing.wantField(t, "found", false)
	missing.wantField(t, "announced_price", nil)

	if got := classify(s.call(c, notify)); got.Result != action.Success {
		t.Fatalf("notify again: %+v", got)
	}
	s.call(c, notify).want(t, http.StatusOK) // and again: it was sent once
	sent := s.get(notices + "?execution_key=exk_1")
	sent.wantField(t, "found", true)
	sent.wantField(t, "sent", 1.0)
	sent.wantField(t, "announced_price", 105.0)
	s.wantCounts("catalog", "exk_1:price", 1, 1)
	s.wantCounts("catalog", "exk_1:notify", 3, 1)
	s.get(notices+"?execution_key=exk_10").wantField(t, "found", false) // no prefix of a longer key
	s.get(notices).wantField(t, "sent", 1.0)
	s.get("/catalog/products/SKU-4411").wantField(t, "version", 9.0)
}

func TestNoticeRefusals(t *testing.T) {
	s := open(t)
	s.post(notices, "a", to105).wantCode(t, http.StatusUnprocessableEntity, "price-differs")
	s.post(notices, "", to105).wantCode(t, http.StatusBadRequest, "missing-idempotency-key")
	s.post("/catalog/products/SKU-1/notices", "b", `{"product_id":"SKU-1","new_price":1}`).wantCode(t, http.StatusNotFound, "product-not-found")
	s.get("/catalog/products/SKU-1/notices").wantCode(t, http.StatusNotFound, "product-not-found")
	to100 := `{"product_id":"SKU-4411","new_price":100}`
	s.send(t.Context(), once, http.MethodPost, notices, s.Tokens().CatalogRead, to100, "Idempotency-Key", "c").
		wantCode(t, http.StatusForbidden, "read-only-credential")
	s.post(notices, "c", to100).want(t, http.StatusOK)
	s.post(notices, "c", to105).wantCode(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	s.setPrice("c", to105, "If-Match", "8").wantCode(t, http.StatusUnprocessableEntity, "idempotency-key-reused") // one key, one meaning
	s.get(notices).wantField(t, "sent", 1.0)
}
