package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"countersign/execution/sandbox"
	"countersign/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }

// shop is a seeded sandbox behind a real HTTP server.
type shop struct {
	testing.TB
	*sandbox.Sandbox
	dsn, url string
}

func open(t testing.TB) shop {
	t.Helper()
	dsn := storetest.Owner(storetest.New(t))
	s, err := sandbox.Open(t.Context(), dsn, sandbox.Tokens{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shop{t, s, dsn, serve(t, s)}
}

// serve runs the sandbox until t ends and returns its URL.
func serve(t testing.TB, s *sandbox.Sandbox) string {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		if err := s.Close(); err != nil { // first, so that no delayed request holds the server up
			t.Error(err)
		}
		server.Close()
	})
	return server.URL
}

// reply is an answer, or err when there was none.
type reply struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any
	err    error
}

// once sends every request on a connection of its own, so that Go's transport
// has no reason to repeat one.
var once = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// send sends one request; headers are name, value, name, value.
func (s shop) send(ctx context.Context, client *http.Client, method, path, token, body string, headers ...string) reply {
	s.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, raw: raw, body: fields(raw), err: err}
}

// fields are those of a JSON object; what is none has none.
func fields(raw []byte) map[string]any {
	var body map[string]any
	_ = json.Unmarshal(raw, &body)
	return body
}

// token is a credential of a system.
func (s shop) token(system string, write bool) string {
	s.Helper()
	read, w := s.Tokens().Of(system)
	if read == "" {
		s.Fatalf("no system %q", system)
	}
	if write {
		return w
	}
	return read
}

func (s shop) get(path string) reply {
	s.Helper()
	system, _, _ := strings.Cut(path[1:], "/")
	return s.send(s.Context(), once, http.MethodGet, path, s.token(system, false), "")
}

// post sends a write with the system's write token.
func (s shop) post(path, key, body string, headers ...string) reply {
	s.Helper()
	system, _, _ := strings.Cut(path[1:], "/")
	return s.send(s.Context(), once, http.MethodPost, path, s.token(system, true), body, append([]string{"Idempotency-Key", key}, headers...)...)
}

func (s shop) setPrice(key, body string, headers ...string) reply {
	s.Helper()
	return s.post("/catalog/products/SKU-4411/price", key, body, headers...)
}

func (s shop) refund(key, body string, headers ...string) reply {
	s.Helper()
	return s.post("/refunds/orders/10086/refunds", key, body, headers...)
}

// control sends a request with the control token and wants it to succeed.
func (s shop) control(method, path, body string) reply {
	s.Helper()
	r := s.send(s.Context(), once, method, path, s.Tokens().Control, body)
	r.want(s, http.StatusOK)
	return r
}

// counts are the write requests received under a key, and the real executions.
func (s shop) counts(system, key string) (received, executions float64) {
	s.Helper()
	r := s.control(http.MethodGet, "/faults/counts?system="+system+"&key="+key, "")
	return r.body["received"].(float64), r.body["executions"].(float64)
}

func (s shop) wantCounts(system, key string, received, executions float64) {
	s.Helper()
	if r, e := s.counts(system, key); r != received || e != executions {
		s.Errorf("key %s: %v requests received and %v executions, want %v and %v", key, r, e, received, executions)
	}
}

func (r reply) want(t testing.TB, status int) {
	t.Helper()
	if r.err != nil || r.status != status {
		t.Fatalf("answer %d %s (%v), want %d", r.status, r.raw, r.err, status)
	}
}

func (r reply) wantCode(t testing.TB, status int, code string) {
	t.Helper()
	r.want(t, status)
	if r.body["code"] != code || r.body["detail"] == "" {
		t.Fatalf("problem %s, want code %s and a detail", r.raw, code)
	}
}

func (r reply) wantField(t testing.TB, name string, value any) {
	t.Helper()
	if r.body[name] != value {
		t.Errorf("%s is %v, want %v, in %s", name, r.body[name], value, r.raw)
	}
}

// delayed tries something that has to be looked at while a delay lasts, which is a
// parameter of a fault. On a busy machine the look can come too late: then it is
// tried with a longer one, on a shop of its own.
func delayed(t *testing.T, ms int, inTime func(s shop, delay string) bool) {
	t.Helper()
	for _, ms := range []int{ms, 4 * ms, 30_000} {
		if inTime(open(t), fmt.Sprintf("; delay_ms=%d", ms)) {
			return
		}
	}
	t.Error("the delay was always over before anybody looked")
}

// eventually polls until ok, or fails after some minutes.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

const (
	to105  = `{"product_id":"SKU-4411","new_price":105}`
	to110  = `{"product_id":"SKU-4411","new_price":110}`
	back20 = `{"order_id":"10086","amount":20,"reason":"arrived broken"}`
)
