package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"countersign/execution/sandbox"
)

// TestFaults switches each fault on by header and looks at what the caller
// sees, what happened, and what is known by key.
func TestFaults(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		fault      string
		status     int     // 0: no answer
		executions float64 // real ones
		known      string  // status by key
		header     string  // that the answer must have
	}{
		{"lost-request", 0, 0, "NOT_EXECUTED", ""},
		{"error-before", 500, 0, "NOT_EXECUTED", ""},
		{"error-before; status=503", 503, 0, "NOT_EXECUTED", ""},
		{"error-before; status=307", 307, 0, "NOT_EXECUTED", "Location"},
		{"too-many", 429, 0, "NOT_EXECUTED", "Retry-After"},
		{"delay-then-act; delay_ms=1", 200, 1, "SUCCEEDED", ""},
		{"slow; delay_ms=1", 200, 1, "SUCCEEDED", ""},
		{"act-then-reset", 0, 1, "SUCCEEDED", ""},
		{"act-then-delay; delay_ms=1", 200, 1, "SUCCEEDED", ""},
		{"error-after", 500, 1, "SUCCEEDED", ""},
		{"error-after; status=504", 504, 1, "SUCCEEDED", ""},
		{"malformed", 200, 1, "SUCCEEDED", ""},
		{"lie", 200, 0, "NOT_EXECUTED", ""},
		{"record-only", 200, 0, "SUCCEEDED", ""},
		{"duplicate", 200, 1, "SUCCEEDED", ""},
		{"duplicate; ignore_key=true", 200, 2, "SUCCEEDED", ""},
	} {
		t.Run(c.fault, func(t *testing.T) {
			key := strings.NewReplacer(" ", "", ";", "-", "=", "-").Replace(c.fault)
			r := s.refund(key, `{"order_id":"10086","amount":1,"reason":"x"}`, sandbox.FaultHeader, c.fault)
			if r.status != c.status || (c.status == 0) != (r.err != nil) {
				t.Errorf("answer %d (%v), want %d", r.status, r.err, c.status)
			}
			if c.header != "" && r.header.Get(c.header) == "" {
				t.Errorf("no header %s", c.header)
			}
			if readable := json.Valid(r.raw); c.status != 0 && readable == (c.fault == "malformed") {
				t.Errorf("body %q", r.raw)
			}
			s.wantCounts("refunds", key, 1, c.executions)
			s.get("/refunds/operations/"+key).wantField(t, "status", c.known)
			s.get("/refunds/orders/10086/refunds?execution_key="+key).wantField(t, "amount", c.executions)

			log := s.control(http.MethodGet, "/faults/log?system=refunds&key="+key, "").body["items"].([]any)
			first := log[0].(map[string]any)
			name, _, _ := strings.Cut(c.fault, ";")
			if first["fault"] != name || first["status"] != float64(c.status) || first["credential"] != "write" {
				t.Errorf("log %v", first)
			}
		})
	}
}

func TestResetIsAReset(t *testing.T) {
	s := open(t)
	r := s.setPrice("k", to105, "If-Match", "8", sandbox.FaultHeader, "act-then-reset")
	if !errors.Is(r.err, syscall.ECONNRESET) {
		t.Errorf("error %v, want a connection reset", r.err)
	}
	r = s.setPrice("k2", to105, "If-Match", "8", sandbox.FaultHeader, "lost-request")
	if r.err == nil || errors.Is(r.err, syscall.ECONNRESET) {
		t.Errorf("error %v, want a connection that ends", r.err)
	}
}

// TestReceivedIsNotExecuted shows both counters apart: Go's transport repeats
// a POST that has an Idempotency-Key when a warm connection breaks.
func TestReceivedIsNotExecuted(t *testing.T) {
	s := open(t)
	warm := &http.Client{Transport: &http.Transport{}}
	defer warm.CloseIdleConnections()
	for i := range 20 { // where it is slow it keeps no connection warm, and repeats nothing
		key := fmt.Sprint("warm-", i)
		s.send(t.Context(), warm, http.MethodGet, "/refunds/health", s.Tokens().RefundsRead, "").want(t, http.StatusOK)
		s.control(http.MethodPost, "/faults", `{"fault":"act-then-reset","key":"`+key+`"}`)
		r := s.send(t.Context(), warm, http.MethodPost, "/refunds/orders/10086/refunds", s.Tokens().RefundsWrite, `{"order_id":"10086","amount":1,"reason":"x"}`,
			"Idempotency-Key", key)
		if r.err == nil {
			r.want(t, http.StatusOK)
			s.wantCounts("refunds", key, 2, 1)
			return
		}
		s.wantCounts("refunds", key, 1, 1)
	}
	t.Error("nothing was ever repeated")
}

func TestLateRequestActsWithoutItsCaller(t *testing.T) {
	delayed(t, 2000, func(s shop, delay string) bool {
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan reply)
		go func() {
			gone <- s.send(ctx, once, http.MethodPost, "/catalog/products/SKU-4411/price", s.Tokens().CatalogWrite, to105,
				"Idempotency-Key", "late", "If-Match", "8", sandbox.FaultHeader, "delay-then-act"+delay)
		}()
		eventually(t, "the request arrives", func() bool { received, _ := s.counts("catalog", "late"); return received == 1 })
		missed := s.get("/catalog/operations/late").body["status"] == "NOT_FOUND" // and yet it will happen
		hangUp()
		answered := (<-gone).err == nil
		eventually(t, "it happens", func() bool { return s.get("/catalog/operations/late").body["status"] == "SUCCEEDED" })
		s.wantCounts("catalog", "late", 1, 1)
		return missed && !answered
	})
}

func TestSlowRequestIsSeenAtWork(t *testing.T) {
	for _, c := range []struct {
		working string
		send    func(shop, ...string) reply
		path    string
	}{
		{"IN_PROGRESS", func(s shop, h ...string) reply { return s.setPrice("slow", to105, append(h, "If-Match", "8")...) }, "/catalog/operations/slow"},
		{"UNKNOWN", func(s shop, h ...string) reply { return s.refund("slow", back20, h...) }, "/refunds/operations/slow"},
	} {
		delayed(t, 1000, func(s shop, delay string) bool {
			done := make(chan reply)
			go func() { done <- c.send(s, sandbox.FaultHeader, "slow"+delay) }()
			var status any
			eventually(t, c.working, func() bool {
				status = s.get(c.path).body["status"]
				return status == c.working || status == "SUCCEEDED"
			})
			var second reply
			if status == c.working {
				second = c.send(s) // waits for the first, and is answered from its record
			}
			first := <-done
			first.want(t, http.StatusOK)
			if status != c.working || second.status == http.StatusConflict { // it waits for some seconds only
				return false
			}
			second.want(t, http.StatusOK)
			if second.header.Get("Idempotent-Replayed") != "true" || string(first.raw) != string(second.raw) {
				t.Errorf("%s, then %s", first.raw, second.raw)
			}
			return true
		})
	}
}

func TestKeyThatIsHeldTooLongIsBusy(t *testing.T) {
	delayed(t, 4000, func(s shop, delay string) bool {
		done := make(chan reply)
		go func() { done <- s.refund("held", back20, sandbox.FaultHeader, "slow"+delay) }()
		eventually(t, "it is at work", func() bool {
			status := s.get("/refunds/operations/held").body["status"]
			return status == "UNKNOWN" || status == "SUCCEEDED"
		})
		second := s.refund("held", back20)
		(<-done).want(t, http.StatusOK)
		s.wantCounts("refunds", "held", 2, 1)
		if second.status == http.StatusOK {
			return false
		}
		second.wantCode(t, http.StatusConflict, "in-progress")
		return true
	})
}

func TestB9_SuccessWithTheCatalogueUnchanged(t *testing.T) {
	s := open(t)
	r := s.setPrice("k", to105, "If-Match", "8", sandbox.FaultHeader, "record-only")
	r.want(t, http.StatusOK)
	r.wantField(t, "new_price", 105.0)
	s.get("/catalog/operations/k").wantField(t, "status", "SUCCEEDED")
	s.get("/catalog/products/SKU-4411").wantField(t, "price", 100.0)
}

func TestArmedFaultsHitWhatTheyName(t *testing.T) {
	s := open(t)
	s.control(http.MethodPost, "/faults", `{"fault":"error-before","status":503,"system":"refunds","object":"10086","count":2}`)
	s.control(http.MethodPost, "/faults", `{"fault":"too-many","path":"/catalog/products/SKU-4411/","method":"*","count":0}`)
	s.control(http.MethodPost, "/faults", `{"fault":"error-before","status":502,"key":"never","rate":0.000000001,"count":0}`)
	if n := len(s.control(http.MethodGet, "/faults", "").body["items"].([]any)); n != 3 {
		t.Errorf("%d faults armed, want 3", n)
	}
	s.get("/refunds/orders/10086").want(t, http.StatusOK) // reads pass unless they are named
	s.refund("a", back20).want(t, http.StatusServiceUnavailable)
	s.refund("b", back20, sandbox.FaultHeader, "error-before; status=500").want(t, http.StatusInternalServerError) // takes none
	s.send(t.Context(), once, http.MethodPost, "/refunds/orders/10086/refunds", s.Tokens().RefundsRead, back20).want(t, http.StatusForbidden)
	s.refund("b", back20).want(t, http.StatusServiceUnavailable)
	s.refund("b", back20).want(t, http.StatusOK)
	for range 3 {
		s.setPrice("c", to105, "If-Match", "8").want(t, http.StatusTooManyRequests)
	}
	s.control(http.MethodDelete, "/faults", "")
	s.setPrice("c", to105, "If-Match", "8").want(t, http.StatusOK)
}

func TestFaultsThatAreRefused(t *testing.T) {
	s := open(t)
	for _, body := range []string{
		`{"fault":"meteor"}`, `{}`, `[]`, `{"fault":"slow","delay_ms":30001}`, `{"fault":"slow","delay_ms":-1}`,
		`{"fault":"error-before","status":200}`, `{"fault":"lie","count":-1}`, `{"fault":"lie","rate":0}`, `{"fault":"lie","x":1}`,
	} {
		s.send(t.Context(), once, http.MethodPost, "/faults", s.Tokens().Control, body).wantCode(t, http.StatusBadRequest, "malformed")
	}
	for _, header := range []string{"meteor", "slow; delay_ms=x", ";;"} {
		s.refund("h", back20, sandbox.FaultHeader, header).wantCode(t, http.StatusBadRequest, "malformed")
	}
	s.wantCounts("refunds", "h", 3, 0)
}

func TestLogIsPaged(t *testing.T) {
	s := open(t)
	for range 3 {
		s.get("/catalog/products/SKU-4411").want(t, http.StatusOK)
	}
	page := s.control(http.MethodGet, "/faults/log?object=SKU-4411&limit=2", "")
	rest := s.control(http.MethodGet, "/faults/log?object=SKU-4411&limit=2&cursor="+page.body["next_cursor"].(string), "")
	if len(page.body["items"].([]any)) != 2 || len(rest.body["items"].([]any)) != 1 || rest.body["next_cursor"] != nil {
		t.Errorf("pages %s and %s", page.raw, rest.raw)
	}
	for _, token := range []string{s.Tokens().CatalogRead, s.Tokens().Control} {
		if strings.Contains(string(page.raw), token) {
			t.Error("the log holds a token")
		}
	}
}

func TestRestartKeepsRecordsAndFaults(t *testing.T) {
	s := open(t)
	s.refund("k", back20).want(t, http.StatusOK)
	s.control(http.MethodPost, "/faults", `{"fault":"too-many","key":"next"}`)
	second, err := sandbox.Open(t.Context(), s.dsn, s.Tokens())
	if err != nil {
		t.Fatal(err)
	}
	s.Sandbox, s.url = second, serve(t, second)
	if r := s.refund("k", back20); r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("another process does not know the key: %s", r.raw)
	}
	s.refund("next", back20).want(t, http.StatusTooManyRequests)
}

func TestTokensMustBeUsable(t *testing.T) {
	for _, tokens := range []sandbox.Tokens{
		{CatalogRead: "short"},
		{CatalogRead: "the-same-token-twice", CatalogWrite: "the-same-token-twice"},
	} {
		if _, err := sandbox.Open(t.Context(), "postgres://nowhere.invalid/x", tokens); err == nil || strings.Contains(err.Error(), "nowhere") {
			t.Errorf("tokens were taken: %v", err)
		}
	}
}

// TestRepeatToASystemThatForgotTheKey is refused, though the first request
// worked: what is recorded under the key stays true.
func TestRepeatToASystemThatForgotTheKey(t *testing.T) {
	s := open(t)
	const all = `{"order_id":"10086","amount":42,"reason":"arrived broken"}`
	s.refund("k", all, sandbox.FaultHeader, "error-after; status=504").want(t, http.StatusGatewayTimeout)
	s.refund("k", all, sandbox.FaultHeader, "forget-key").wantCode(t, http.StatusUnprocessableEntity, "already-refunded")
	s.get("/refunds/operations/k").wantField(t, "status", "SUCCEEDED")
	s.wantCounts("refunds", "k", 2, 1)
}

func TestD3_ReadersLagBehind(t *testing.T) {
	delayed(t, 3000, func(s shop, delay string) bool {
		done := s.cancel("10087", "k", sandbox.FaultHeader, "lag"+delay)
		done.want(t, http.StatusOK)
		lags := s.get("/orders/orders/10087").body["status"] == "paid"
		eventually(t, "it can be seen", func() bool { return s.get("/orders/orders/10087").body["status"] == "cancelled" })
		s.get("/orders/orders/10087").wantField(t, "cancelled_at", done.body["cancelled_at"])
		s.wantCounts("orders", "k", 1, 1)
		return lags
	})
}
