package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// still is a clock whose sleeps end at once and move it forward.
type still struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func (s *still) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *still) Sleep(ctx context.Context, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
	s.slept = append(s.slept, d)
	return ctx.Err()
}

// console serves a script: the n-th request gets the n-th handler, the last
// one serves the rest. It keeps what it was asked.
type console struct {
	*httptest.Server
	client *Client
	clock  *still

	mu   sync.Mutex
	seen []seen
}

type seen struct {
	method, uri, body string
	header            http.Header
}

func newConsole(t *testing.T, script ...http.HandlerFunc) *console {
	t.Helper()
	c := &console{clock: &still{now: time.Now()}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		n := min(len(c.seen), len(script)-1)
		c.seen = append(c.seen, seen{r.Method, r.RequestURI, string(body), r.Header})
		c.mu.Unlock()
		script[n](w, r)
	}))
	t.Cleanup(c.Close)
	var err error
	c.client, err = NewClient(c.URL, NewSecret("csk_test"), Options{Clock: c.clock, Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *console) requests() []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func problem(status int, code action.Code) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"type":"https://countersign.example/problems/%s","status":%d,"code":"%s","detail":"d"}`, code, status, code))
}

func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		reset(conn)
	}
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, `{"id":"act_1"`)
}

const anAction = `{"id":"act_1","state":"proposed","version":1}`

func propose(c *console, key string) (api.Action, error) {
	return c.client.Propose(context.Background(), api.Propose{Tool: "t", Actor: &api.Actor{ID: "a"},
		Payload: json.RawMessage(`{"text":"<a&b>"}`)}, key)
}

func TestClientRepeatsWhatItDidNotHearOf(t *testing.T) {
	c := newConsole(t, hangUp, cutOff, problem(503, action.OutcomeUnknown), says(502, "<html>bad gateway</html>"),
		problem(500, action.Internal), says(201, anAction))
	a, err := propose(c, "wish-1")
	if err != nil || a.ID != "act_1" {
		t.Fatalf("%+v, %v", a, err)
	}
	all := c.requests()
	if len(all) != 6 {
		t.Fatalf("%d requests", len(all))
	}
	for _, r := range all {
		if r.header.Get("Idempotency-Key") != "wish-1" || r.body != all[0].body {
			t.Errorf("a repetition differs: %+v", r)
		}
	}
	if !strings.Contains(all[0].body, `{"text":"<a&b>"}`) {
		t.Errorf("the payload was rewritten: %s", all[0].body)
	}
	for i, d := range c.clock.slept {
		if most := backoff(i+1, firstPause, longPause); d < most/2 || d > most {
			t.Errorf("pause %d is %s, want %s to %s", i, d, most/2, most)
		}
	}
}

func TestClientGivesUpInTheEnd(t *testing.T) {
	for name, down := range map[string]http.HandlerFunc{"503": problem(503, action.OutcomeUnknown), "cut": hangUp} {
		c := newConsole(t, down)
		_, err := propose(c, "")
		p, ok := AsProblem(err)
		if !ok || !p.Unsettled() || !p.Has(action.OutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
		all := c.requests()
		if len(all) != maxTries {
			t.Errorf("%s: %d requests", name, len(all))
		}
		key := all[0].header.Get("Idempotency-Key")
		if key == "" || slices.ContainsFunc(all, func(r seen) bool { return r.header.Get("Idempotency-Key") != key }) {
			t.Errorf("%s: the made-up key changed", name)
		}
	}
}

func TestClientNeverRepeatsARefusal(t *testing.T) {
	for status, code := range map[int]action.Code{
		400: action.Malformed, 401: action.Unauthorized, 403: action.Forbidden, 404: action.NotFound, 409: action.AlreadyClaimed,
		410: action.ExpiredCode, 413: action.TooLarge, 422: action.InvalidPayload, 428: action.PreconditionRequired, 429: action.RateLimited,
	} {
		c := newConsole(t, problem(status, code))
		_, err := propose(c, "k")
		if p, ok := AsProblem(err); !ok || p.Status != status || !p.Has(code) || p.Unsettled() {
			t.Errorf("%d: %v", status, err)
		}
		if n := len(c.requests()); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
	for _, code := range []action.Code{action.ToolUnavailable, action.Paused} {
		c := newConsole(t, problem(503, code))
		if _, err := propose(c, "k"); !HasCode(err, code) || len(c.requests()) != 1 {
			t.Errorf("%s: %v after %d requests", code, err, len(c.requests()))
		}
	}
	t.Run("plain", func(t *testing.T) {
		c := newConsole(t, says(404, "not here"))
		if _, err := c.client.Get(t.Context(), "act_1"); !HasCode(err, action.NotFound) {
			t.Error(err)
		}
	})
}

func TestClientWaitsAsAsked(t *testing.T) {
	c := newConsole(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3")
		problem(503, action.OutcomeUnknown)(w, r)
	}, says(200, anAction))
	if _, err := c.client.Get(t.Context(), "act_1"); err != nil {
		t.Fatal(err)
	}
	if len(c.clock.slept) != 1 || c.clock.slept[0] != 3*time.Second {
		t.Errorf("slept %v", c.clock.slept)
	}
}

func TestClientFollowsNothing(t *testing.T) {
	elsewhere := newConsole(t, says(200, anAction))
	c := newConsole(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	if _, err := propose(c, "k"); err == nil {
		t.Error("a redirect counts as an answer")
	}
	if n := len(elsewhere.requests()); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

func TestClientStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newConsole(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	_, err := c.client.Propose(ctx, api.Propose{}, "k")
	if p, ok := AsProblem(err); !ok || !p.Unsettled() || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := len(c.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestCallsOfTheAPI(t *testing.T) {
	version := "8"
	for want, call := range map[string]func(context.Context, *Client) error{
		"POST /v1/actions/act_1/submit": func(ctx context.Context, c *Client) error { _, err := c.Submit(ctx, "act_1", 7); return err },
		"POST /v1/actions/act_1/revisions": func(ctx context.Context, c *Client) error {
			_, err := c.Revise(ctx, "act_1", 7, api.Revise{})
			return err
		},
		"POST /v1/actions/act_1/cancel": func(ctx context.Context, c *Client) error { _, err := c.Cancel(ctx, "act_1", 7, "no"); return err },
		"GET /v1/actions/act_1":         func(ctx context.Context, c *Client) error { _, err := c.Get(ctx, "act_1"); return err },
		"GET /v1/actions/a%2F..%3Fb":    func(ctx context.Context, c *Client) error { _, err := c.Get(ctx, "a/..?b"); return err },
		"GET /v1/actions/act_1?since=7&wait=30s": func(ctx context.Context, c *Client) error {
			_, err := c.Await(ctx, "act_1", 7, 30*time.Second)
			return err
		},
		"GET /v1/actions?cursor=c&limit=5&state=applied": func(ctx context.Context, c *Client) error {
			_, err := c.List(ctx, Filter{State: "applied", Limit: 5, Cursor: "c"})
			return err
		},
		"GET /v1/actions/act_1/statement?lang=zh": func(ctx context.Context, c *Client) error { _, err := c.Statement(ctx, "act_1", "zh"); return err },
		"POST /v1/confirmations/cnf_1/verify": func(ctx context.Context, c *Client) error {
			_, err := c.Verify(ctx, "cnf_1", api.Verify{ObjectVersion: &version})
			return err
		},
		"POST /v1/confirmations/cnf_1/claim": func(ctx context.Context, c *Client) error { _, err := c.Claim(ctx, "cnf_1", api.Claim{}); return err },
		"POST /v1/actions/act_1/lease":       func(ctx context.Context, c *Client) error { _, err := c.Renew(ctx, "act_1", "clm"); return err },
		"POST /v1/actions/act_1/release": func(ctx context.Context, c *Client) error {
			_, err := c.Release(ctx, "act_1", api.Release{})
			return err
		},
		"POST /v1/actions/act_1/attempts": func(ctx context.Context, c *Client) error {
			_, err := c.StartAttempt(ctx, "act_1", api.Attempt{})
			return err
		},
		"POST /v1/actions/act_1/receipts": func(ctx context.Context, c *Client) error {
			_, err := c.Report(ctx, "act_1", api.Receipt{})
			return err
		},
		"POST /v1/actions/act_1/observations": func(ctx context.Context, c *Client) error {
			_, err := c.Observe(ctx, "act_1", api.Observation{})
			return err
		},
		"GET /v1/work?tool=catalog.%2A&tool=t&wait=30s": func(ctx context.Context, c *Client) error {
			_, err := c.Work(ctx, 30*time.Second, []string{"catalog.*", "t"})
			return err
		},
		"PUT /v1/tools/t": func(ctx context.Context, c *Client) error {
			_, err := c.PutTool(ctx, "t", []byte("name: t"))
			return err
		},
		"GET /v1/tools/t?version=3":  func(ctx context.Context, c *Client) error { _, err := c.Tool(ctx, "t", 3); return err },
		"GET /v1/tools?entry=chat":   func(ctx context.Context, c *Client) error { _, err := c.Tools(ctx, "chat"); return err },
		"POST /v1/tools/t/retire":    func(ctx context.Context, c *Client) error { return c.RetireTool(ctx, "t", "keep") },
		"GET /.well-known/jwks.json": func(ctx context.Context, c *Client) error { _, err := c.Keys(ctx); return err },
	} {
		c := newConsole(t, says(200, `{}`))
		if err := call(t.Context(), c.client); err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		got := c.requests()[0]
		if got.method+" "+got.uri != want {
			t.Errorf("%s %s, want %s", got.method, got.uri, want)
		}
		if got.header.Get("Authorization") != "Bearer csk_test" {
			t.Errorf("%s: Authorization %q", want, got.header.Get("Authorization"))
		}
		needsVersion := strings.HasSuffix(want, "submit") || strings.HasSuffix(want, "revisions") || strings.HasSuffix(want, "cancel")
		if tag := got.header.Get("If-Match"); (tag == `"7"`) != needsVersion {
			t.Errorf("%s: If-Match %q", want, tag)
		}
	}
}
