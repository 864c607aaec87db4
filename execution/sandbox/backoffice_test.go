package sandbox_test

import (
	"net/http"
	"testing"
)

func TestB7_SomebodyElseMovesThePriceOn(t *testing.T) {
	s := open(t)
	s.setPrice("ours", to105, "If-Match", "8").want(t, http.StatusOK)
	byHand := s.control(http.MethodPut, "/catalog/products/SKU-4411", `{"price":110}`)
	byHand.wantField(t, "price", 110.0)
	byHand.wantField(t, "version", 10.0)
	s.setPrice("restore", `{"product_id":"SKU-4411","new_price":100}`, "If-Match", "9").wantCode(t, http.StatusPreconditionFailed, "version-moved")
	s.get("/catalog/products/SKU-4411").wantField(t, "price", 110.0)
	s.wantCounts("catalog", "restore", 1, 0)
	s.wantCounts("catalog", "back-office", 0, 1)

	s.control(http.MethodPut, "/catalog/products/SKU-4411", `{"status":"discontinued"}`).wantField(t, "price", 110.0)
	s.setPrice("late", to105, "If-Match", "11").wantCode(t, http.StatusUnprocessableEntity, "product-discontinued")
}

func TestSomebodyElseShipsTheOrder(t *testing.T) {
	s := open(t)
	s.control(http.MethodPut, "/orders/orders/10087", `{"status":"shipped"}`).wantField(t, "version", 2.0)
	s.cancel("10087", "a").wantCode(t, http.StatusUnprocessableEntity, "order-shipped")
	cancelled := s.control(http.MethodPut, "/orders/orders/10080", `{"status":"cancelled"}`)
	if cancelled.body["cancelled_at"] == nil {
		t.Errorf("cancelled without a time: %s", cancelled.raw)
	}
	s.control(http.MethodPut, "/orders/orders/10080", `{"status":"paid"}`).wantField(t, "cancelled_at", nil)
	s.control(http.MethodPut, "/orders/orders/10086", `{"cancels":"properly"}`).wantField(t, "version", 1.0)
	s.cancel("10086", "b").want(t, http.StatusOK)
	s.get("/orders/orders/10086").wantField(t, "status", "cancelled")
}

func TestBackOfficeRefusals(t *testing.T) {
	s := open(t)
	put := func(path, token, body string) reply {
		return s.send(t.Context(), once, http.MethodPut, path, token, body)
	}
	put("/catalog/products/SKU-4411", s.Tokens().CatalogWrite, `{"price":1}`).wantCode(t, http.StatusUnauthorized, "unauthorized")
	for path, bodies := range map[string][]string{
		"/catalog/products/SKU-4411": {`{}`, `{"price":0}`, `{"price":1,"status":"on_sale"}`, `{"status":"lost"}`, `{"name":"x"}`},
		"/orders/orders/10087":       {`{"status":"lost"}`, `{"cancels":"x"}`, `{"restores":"coupon_only"}`, `[]`},
	} {
		for _, body := range bodies {
			put(path, s.Tokens().Control, body).wantCode(t, http.StatusBadRequest, "malformed")
		}
	}
	put("/catalog/products/SKU-1", s.Tokens().Control, `{"price":1}`).wantCode(t, http.StatusNotFound, "product-not-found")
	put("/orders/orders/1", s.Tokens().Control, `{"status":"paid"}`).wantCode(t, http.StatusNotFound, "order-not-found")
}
