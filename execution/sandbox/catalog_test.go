package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestB5_PriceChangeWithKeyAndVersion(t *testing.T) {
	s := open(t)
	seen := s.get("/catalog/products/SKU-4411")
	seen.want(t, http.StatusOK)
	seen.wantField(t, "price", 100.0)
	if seen.header.Get("ETag") != `"8"` {
		t.Fatalf("ETag %s, want \"8\"", seen.header.Get("ETag"))
	}

	first := s.setPrice("k1", to105, "If-Match", `"8"`)
	first.want(t, http.StatusOK)
	first.wantField(t, "version", 9.0)
	if first.header.Get("ETag") != `"9"` || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("headers of the first answer: %v", first.header)
	}
	again := s.setPrice("k1", ` { "new_price": 105.00, "product_id": "SKU-4411" } `, "If-Match", `"8"`)
	again.want(t, http.StatusOK)
	if string(again.raw) != string(first.raw) || again.header.Get("ETag") != `"9"` || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the replay differs: %v %s", again.header, again.raw)
	}
	s.setPrice("k1", to110, "If-Match", `"9"`).wantCode(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	s.wantCounts("catalog", "k1", 3, 1)

	moved := s.setPrice("k2", to110, "If-Match", `"8"`)
	moved.wantCode(t, http.StatusPreconditionFailed, "version-moved")
	if moved.header.Get("ETag") != `"9"` {
		t.Errorf("a conflict tells the version by ETag, got %q", moved.header.Get("ETag"))
	}
	s.get("/catalog/products/SKU-4411").wantField(t, "price", 105.0)
	s.wantCounts("catalog", "k2", 1, 0)
	s.get("/catalog/operations/k2").wantField(t, "status", "FAILED")
}

func TestB7_RestoringAPriceThatMovedOnIsRefused(t *testing.T) {
	s := open(t)
	s.setPrice("ours", to105, "If-Match", "8").want(t, http.StatusOK)
	s.setPrice("somebody-else", to110, "If-Match", "9").want(t, http.StatusOK)
	s.setPrice("restore", `{"product_id":"SKU-4411","new_price":100}`, "If-Match", "9").want(t, http.StatusPreconditionFailed)
	s.get("/catalog/products/SKU-4411").wantField(t, "price", 110.0)
}

func TestPriceRefusals(t *testing.T) {
	s := open(t)
	post := func(path, body string, headers ...string) reply {
		return s.send(t.Context(), once, http.MethodPost, "/catalog/products/"+path, s.Tokens().CatalogWrite, body, headers...)
	}
	amount := func(text string) string { return `{"product_id":"SKU-4411","new_price":` + text + `}` }
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
		code             string
	}{
		{"no key", "SKU-4411/price", to105, []string{"If-Match", "8"}, 400, "missing-idempotency-key"},
		{"no version", "SKU-4411/price", to105, []string{"Idempotency-Key", "a"}, 428, "precondition-required"},
		{"any version", "SKU-4411/price", to105, []string{"Idempotency-Key", "a", "If-Match", "*"}, 400, "malformed"},
		{"unknown product", "SKU-1/price", `{"product_id":"SKU-1","new_price":1}`, []string{"Idempotency-Key", "b", "If-Match", "1"}, 404, "product-not-found"},
		{"discontinued", "SKU-4399/price", `{"product_id":"SKU-4399","new_price":1}`, []string{"Idempotency-Key", "c", "If-Match", "4"}, 422, "product-discontinued"},
		{"another product in the body", "SKU-4412/price", to105, []string{"Idempotency-Key", "d", "If-Match", "5"}, 400, "malformed"},
		{"not allowed", "SKU-4411/price", to105, []string{"Idempotency-Key", "e", "If-Match", "8", "X-Actor", "u-tom-becker"}, 422, "actor-not-allowed"},
		{"unknown field", "SKU-4411/price", `{"product_id":"SKU-4411","new_price":1,"x":1}`, []string{"Idempotency-Key", "f", "If-Match", "8"}, 400, "malformed"},
		{"two values", "SKU-4411/price", to105 + to105, []string{"Idempotency-Key", "f", "If-Match", "8"}, 400, "malformed"},
		{"third decimal", "SKU-4411/price", amount("1.001"), []string{"Idempotency-Key", "f", "If-Match", "8"}, 400, "malformed"},
		{"zero", "SKU-4411/price", amount("0"), []string{"Idempotency-Key", "f", "If-Match", "8"}, 400, "malformed"},
		{"negative", "SKU-4411/price", amount("-1"), []string{"Idempotency-Key", "f", "If-Match", "8"}, 400, "malformed"},
		{"huge", "SKU-4411/price", amount("1e400"), []string{"Idempotency-Key", "f", "If-Match", "8"}, 400, "malformed"},
		{"huge body", "SKU-4411/price", amount("1" + strings.Repeat(" ", 70_000)), []string{"Idempotency-Key", "f", "If-Match", "8"}, 413, "too-large"},
		{"long key", "SKU-4411/price", to105, []string{"Idempotency-Key", strings.Repeat("k", 201), "If-Match", "8"}, 400, "malformed"},
		{"text that PostgreSQL cannot store", "SKU%00/price", to105, []string{"Idempotency-Key", "f", "If-Match", "8"}, 400, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) { post(c.path, c.body, c.headers...).wantCode(t, c.status, c.code) })
	}
	s.get("/catalog/products/SKU-4411").wantField(t, "version", 8.0)
	s.get("/catalog/operations/f").wantField(t, "status", "NOT_FOUND") // what is malformed leaves no trace
	s.setPrice("f", to105, "If-Match", "8").want(t, http.StatusOK)
}

func TestPermissionCanBeRevoked(t *testing.T) {
	s := open(t)
	const question = "/catalog/people/u-li-na/may_set_price?product_id=SKU-4411"
	s.get(question).wantField(t, "allowed", true)
	s.get("/catalog/people/u-tom-becker/may_set_price").wantField(t, "allowed", false)
	s.get("/catalog/people/nobody/may_set_price").wantField(t, "allowed", false)
	s.control(http.MethodPut, "/catalog/people/u-li-na", `{"may_set_price":false}`).wantField(t, "name", "Li Na")
	s.get(question).wantField(t, "allowed", false)
	s.setPrice("late", to105, "If-Match", "8", "X-Actor", "u-li-na").wantCode(t, http.StatusUnprocessableEntity, "actor-not-allowed")
}

func TestFifty_SameKeyRequestsExecuteOnce(t *testing.T) {
	s := open(t)
	for _, system := range []string{"catalog", "refunds"} {
		replies := make([]reply, 50)
		var wg sync.WaitGroup
		for i := range replies {
			wg.Go(func() {
				if system == "catalog" {
					replies[i] = s.setPrice("race", to105, "If-Match", "8")
				} else {
					replies[i] = s.refund("race", `{"order_id":"10086","amount":0.5,"reason":"late"}`)
				}
			})
		}
		wg.Wait()
		fresh := 0
		for _, r := range replies {
			r.want(t, http.StatusOK)
			if string(r.raw) != string(replies[0].raw) {
				t.Errorf("%s: answers differ: %s, %s", system, r.raw, replies[0].raw)
			}
			if r.header.Get("Idempotent-Replayed") == "" {
				fresh++
			}
		}
		if fresh != 1 {
			t.Errorf("%s: %d answers say they are first, want 1", system, fresh)
		}
		s.wantCounts(system, "race", 50, 1)
	}
	s.get("/catalog/products/SKU-4411").wantField(t, "version", 9.0)
	s.get("/refunds/orders/10086").wantField(t, "refunded", 0.5)
}

func TestFiftyKeysRaceForOneVersion(t *testing.T) {
	s := open(t)
	var wg sync.WaitGroup
	statuses := make([]int, 50)
	for i := range statuses {
		wg.Go(func() { statuses[i] = s.setPrice(fmt.Sprintf("k%d", i), to105, "If-Match", "8").status })
	}
	wg.Wait()
	won, lost := 0, 0
	for _, status := range statuses {
		switch status {
		case http.StatusOK:
			won++
		case http.StatusPreconditionFailed:
			lost++
		}
	}
	if won != 1 || lost != 49 {
		t.Errorf("%d won and %d lost, want 1 and 49", won, lost)
	}
}

func TestFencedKeyNeverActs(t *testing.T) {
	s := open(t)
	fence := func(key, token string) reply {
		return s.send(t.Context(), once, http.MethodPost, "/catalog/operations/"+key+"/fence", token, "")
	}
	fence("k", s.Tokens().CatalogRead).wantCode(t, http.StatusForbidden, "read-only-credential")
	for range 2 { // and again
		r := fence("k", s.Tokens().CatalogWrite)
		r.want(t, http.StatusOK)
		r.wantField(t, "status", "FAILED")
		r.wantField(t, "fenced", true)
	}
	s.setPrice("k", to105, "If-Match", "8").wantCode(t, http.StatusGone, "key-fenced")
	s.wantCounts("catalog", "k", 1, 0)

	s.setPrice("done", to105, "If-Match", "8").want(t, http.StatusOK)
	r := fence("done", s.Tokens().CatalogWrite)
	r.wantField(t, "status", "SUCCEEDED") // too late, and it says so
	r.wantField(t, "executions", 1.0)
}

func TestOperationsAreListedByWindow(t *testing.T) {
	s := open(t)
	want := []string{}
	for i := range 7 {
		key := fmt.Sprintf("op-%d", i)
		s.setPrice(key, to105, "If-Match", fmt.Sprint(8+i)).want(t, http.StatusOK)
		want = append(want, key)
	}
	keys := func(query string) (keys []string) {
		for cursor := ""; ; {
			r := s.get("/catalog/operations?limit=3" + query + cursor)
			r.want(t, http.StatusOK)
			for _, item := range r.body["items"].([]any) {
				keys = append(keys, item.(map[string]any)["key"].(string))
			}
			if r.body["next_cursor"] == nil {
				return keys
			}
			cursor = "&cursor=" + r.body["next_cursor"].(string)
		}
	}
	if got := keys(""); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	third := s.get("/catalog/operations/op-3").body["at"].(string)
	if got := keys("&from=" + third); fmt.Sprint(got) != fmt.Sprint(want[3:]) {
		t.Errorf("from %s: %v, want %v", third, got, want[3:])
	}
	if got := keys("&to=" + third); fmt.Sprint(got) != fmt.Sprint(want[:3]) {
		t.Errorf("until %s: %v, want %v", third, got, want[:3])
	}
	for _, bad := range []string{"limit=0", "limit=501", "from=yesterday", "cursor=zzz"} {
		s.get("/catalog/operations?"+bad).wantCode(t, http.StatusBadRequest, "malformed")
	}
}

func TestSeedIsIdempotentAndKeepsWork(t *testing.T) {
	s := open(t)
	s.setPrice("k", to105, "If-Match", "8").want(t, http.StatusOK)
	if err := s.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.get("/catalog/products/SKU-4411").wantField(t, "price", 105.0)
	if n := len(s.get("/catalog/products").body["items"].([]any)); n != 12 {
		t.Errorf("%d products, want 12", n)
	}
	if n := len(s.get("/refunds/orders").body["items"].([]any)); n != 25 {
		t.Errorf("%d orders, want 25", n)
	}
	if n := len(s.get("/refunds/orders/10073/refunds").body["refunds"].([]any)); n != 1 {
		t.Errorf("%d refunds on 10073, want 1", n)
	}
	first := s.get("/catalog/products?limit=5")
	rest := s.get("/catalog/products?limit=50&cursor=" + first.body["next_cursor"].(string))
	if n := len(rest.body["items"].([]any)); n != 7 {
		t.Errorf("second page has %d products, want 7", n)
	}
}
