package handlers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

func TestPlacesThatAreNone(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{"/v1", "/v1/", "/v1/nothing", "/v1/actions/", "/v1/actions/x/y/z", "/.well-known/nothing"} {
		e.get(people.RoleAdmin, path).refused(action.NotFound)
	}
	if a := e.get("", "/nothing"); a.status != http.StatusNotFound || a.header.Get("Content-Type") == "application/problem+json" {
		t.Errorf("a page that is none: %d %v", a.status, a.header)
	}
	for path, allow := range map[string]string{"/v1/actions": "GET, HEAD, POST", "/v1/work": "GET, HEAD", "/v1/tools/x": "GET, HEAD, PUT", "/v1/confirmations/x/claim": "POST"} {
		for _, method := range []string{http.MethodDelete, http.MethodPatch, http.MethodOptions} {
			a := e.do(request{method: method, path: path, key: e.keys[people.RoleAdmin]})
			if a.refused(methodNotAllowed); a.header.Get("Allow") != allow {
				t.Errorf("%s %s allows %q, want %q", method, path, a.header.Get("Allow"), allow)
			}
		}
	}
	for _, path := range []string{"/v1/nothing", "/nothing"} { // there is no method to allow where there is nothing
		if a := e.do(request{method: "PROPFIND", path: path, key: e.keys[people.RoleAdmin]}).want(http.StatusNotFound); len(a.header.Values("Allow")) > 0 {
			t.Errorf("%s allows %q", path, a.header.Values("Allow"))
		}
	}
	if a := e.do(request{method: "PROPFIND", path: "/v1/actions", key: e.keys[people.RoleAdmin]}); a.refused(methodNotAllowed).Code == "" || a.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("an unknown method: %d, allowed %q", a.status, a.header.Get("Allow"))
	}
}

func TestHead(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.SetPrice)
	head := e.do(request{method: http.MethodHead, path: "/v1/actions/" + a.ID, key: e.keys[people.RoleProposer]}).want(200)
	if len(head.body) > 0 || head.header.Get("ETag") != `"1"` {
		t.Errorf("%q %v", head.body, head.header)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{"/v1/actions", "/v1/nothing", "/healthz", "/readyz", "/.well-known/jwks.json", "/nothing", "/v1/openapi.json"} {
		h := e.get(people.RoleReader, path).header
		for _, name := range []string{"X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Content-Security-Policy", "Cross-Origin-Opener-Policy",
			"Cross-Origin-Resource-Policy", "Permissions-Policy", "Cache-Control", "X-Request-Id"} {
			if h.Get(name) == "" {
				t.Errorf("%s has no %s", path, name)
			}
		}
		if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || h.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: %v", path, h)
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is for other sites", path)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	e := newEnv(t)
	for sent, kept := range map[string]bool{"trace-1.2_3": true, "short": false, strings.Repeat("x", 65): false, "has space here": false, "ümlauts-too": false} {
		a := e.do(request{method: get, path: "/healthz", header: pairs([]string{"X-Request-Id", sent})})
		got := a.header.Get("X-Request-Id")
		if (got == sent) != kept || !kept && !action.ValidID("req", got) {
			t.Errorf("%q became %q", sent, got)
		}
	}
}

// The log says who did what and never what with: no keys, bodies, queries or
// addresses, where one-time links stand.
func TestLogHoldsNoSecrets(t *testing.T) {
	e := newEnv(t)
	e.propose(with(proposal(stage.SetPrice, stage.Product(), 105), "reason", "s3cr3t-reason")).want(201)
	e.propose(`{"tool":"s3cr3t-body"`).refused(action.Malformed)
	e.get(people.RoleReader, "/v1/actions?actor=s3cr3t-query").want(200)
	e.get("", "/nothing/s3cr3t-address")
	e.do(request{method: get, path: "/v1/actions", key: "s3cr3t-key"}).refused(action.Unauthorized)
	log := e.log.String()
	for _, secret := range append([]string{"s3cr3t"}, e.keys[people.RoleProposer], e.keys[people.RoleReader]) {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	for _, wanted := range []string{`"route":"propose"`, `"who":"` + e.Agent.ID + `"`, `"code":"malformed"`, `"status":201`, `"request_id":"req_`} {
		if !strings.Contains(log, wanted) {
			t.Errorf("the log does not say %s", wanted)
		}
	}
}

// A page that names no referrer makes browsers post its forms with the Origin
// "null", which is how a form of another site comes: over plain HTTP under an
// address, where they send nothing else, nobody could sign in.
func TestFormsOfEveryPageSayWhereTheyComeFrom(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	secret, err := e.People.NewLink(context.Background(), stage.System(action.NewID("req")), e.Mia.ID, linkLife)
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{"/login/" + secret, "/nothing"}
	for _, rt := range routes() {
		if rt.method == get && rt.page() && rt.holds != forever {
			addresses = append(addresses, someAddress(rt))
		}
	}
	for _, address := range addresses {
		for _, b := range []*browser{admin, e.newBrowser()} {
			if policy := b.open(address).header.Get("Referrer-Policy"); policy != "same-origin" {
				t.Errorf("%s has the referrer policy %q", address, policy)
			}
		}
	}
}

// alone is a server with routes of the test's own.
func (e *env) alone(table ...route) (*httptest.Server, *server) {
	e.T.Helper()
	inner, err := newServer(Config{Log: slog.New(slog.NewJSONHandler(e.log, nil)), Approvals: e.Approvals, Triage: e.Triage, People: e.People,
		Sessions: people.NewSessions(e.DB, false), Reads: e.DB, Pages: e.DB, Directory: e.DB, Stops: e.DB, Ready: e.DB.Ready, PublicURL: "https://console.example"}, table)
	if err != nil {
		e.T.Fatal(err)
	}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "console.example" // as a proxy passes it on
		inner.mux.ServeHTTP(w, r)
	}))
	e.T.Cleanup(listening.Close)
	return listening, inner
}

func TestPanicsAndBrokenAnswers(t *testing.T) {
	e := newEnv(t)
	boom := func(*server, http.ResponseWriter, *http.Request, caller) error { panic("s3cr3t boom") }
	broken := func(*server, http.ResponseWriter, *http.Request, caller) error { return errors.New("s3cr3t cause") }
	halfway := func(_ *server, w http.ResponseWriter, _ *http.Request, _ caller) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("half an answer")
	}
	late := func(_ *server, w http.ResponseWriter, _ *http.Request, _ caller) error {
		_, _ = io.WriteString(w, strings.Repeat("a line\n", 10_000))
		panic("too late")
	}
	listening, _ := e.alone(route{get, "/v1/boom", "boom", anyone(), boom, 0, nil}, route{get, "/v1/broken", "broken", anyone(), broken, 0, nil},
		route{get, "/v1/halfway", "halfway", anyone(), halfway, 0, nil}, route{get, "/late", "late", anyone(), late, 0, nil},
		route{get, "/metrics", "metrics", keys(people.RoleReader), (*server).showMetrics, 0, nil})
	for _, path := range []string{"/v1/boom", "/v1/broken"} {
		a := send1(t, http.DefaultClient, listening.URL, request{method: get, path: path})
		if a.refused(action.Internal); bytes.Contains(a.body, []byte("s3cr3t")) {
			t.Errorf("%s tells %s", path, a.body)
		}
		if a.header.Get("Strict-Transport-Security") == "" {
			t.Error("a console reached over TLS does not insist on it")
		}
	}
	for _, path := range []string{"/v1/halfway", "/late"} { // nobody may take a part for the whole
		if got, err := http.Get(listening.URL + path); err == nil {
			if text, err := io.ReadAll(got.Body); err == nil {
				t.Errorf("%s ends like a whole answer after %d bytes", path, len(text))
			}
			got.Body.Close()
		}
	}
	for _, wanted := range []string{"s3cr3t boom", "s3cr3t cause", `"cut":true,"code":"internal","error":"half an answer"`, `"cut":true,"code":"internal","error":"panic: too late"`} {
		waitUntil(t, func() bool { return strings.Contains(e.log.String(), wanted) }) // it is written once the answer has ended
	}
	if strings.Contains(e.log.String(), `"level":"INFO","msg":"request"`) {
		t.Errorf("of what failed the log says %s", e.log.String())
	}
	measured := send1(t, http.DefaultClient, listening.URL, request{method: get, path: "/metrics", key: e.keys[people.RoleReader]}).want(200)
	if n := metric(measured, `countersign_http_request_seconds_count{class="5xx",method="GET",route="late"}`); n != "1" {
		t.Errorf("an answer that was cut off is counted as failed %q times", n)
	}
}

// unlisted reads no list of actions.
type unlisted struct{ Reads }

func (unlisted) Actions(context.Context, approvals.Filter) ([]action.Action, time.Time, error) {
	return nil, time.Time{}, errors.New("no list")
}

// What went wrong before a file began is told on a page, not saved as the file.
func TestARefusalIsNoFile(t *testing.T) {
	e := newEnv(t)
	b := e.as(e.Mia)
	e.inner.Reads = unlisted{e.inner.Reads}
	a := b.open("/history.jsonl").want(http.StatusInternalServerError)
	if a.header.Get("Content-Disposition") != "" || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("it comes as %v", a.header)
	}
}

// A form has to come from a page of ours; a key is no cookie and needs no page.
func TestOtherSites(t *testing.T) {
	e := newEnv(t)
	taken := func(_ *server, w http.ResponseWriter, _ *http.Request, _ caller) error {
		return respond(w, http.StatusOK, "taken")
	}
	listening, _ := e.alone(route{post, "/form", "form", visitor(), taken, 0, nil}, route{get, "/form", "showForm", visitor(), taken, 0, nil},
		route{post, "/v1/call", "call", keys(people.RoleAdmin), taken, 0, nil})
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"neither header":        {nil, 403},
		"another site":          {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a sibling":             {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"another origin":        {[]string{"Origin", "https://evil.example"}, 403},
		"no origin to name":     {[]string{"Origin", "null"}, 403},
		"our own page":          {[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		"typed in":              {[]string{"Sec-Fetch-Site", "none"}, 200},
		"our origin by a proxy": {[]string{"Origin", "https://console.example"}, 200},
	} {
		if a := send1(t, http.DefaultClient, listening.URL, request{method: post, path: "/form", header: pairs(c.headers)}); a.status != c.status {
			t.Errorf("%s: %d, want %d", name, a.status, c.status)
		}
		send1(t, http.DefaultClient, listening.URL, request{method: post, path: "/v1/call", key: e.keys[people.RoleAdmin], header: pairs(c.headers)}).want(200)
	}
	send1(t, http.DefaultClient, listening.URL, request{method: get, path: "/form", header: pairs([]string{"Sec-Fetch-Site", "cross-site"})}).want(200)
}

func TestHealthAndReadiness(t *testing.T) {
	e := newEnv(t)
	e.get("", "/healthz").want(200)
	e.get("", "/readyz").want(200)
	e.inner.Ready = func(context.Context) error { return errors.New("s3cr3t: no database") }
	if a := e.get("", "/readyz"); a.status != http.StatusServiceUnavailable || bytes.Contains(a.body, []byte("s3cr3t")) {
		t.Errorf("not ready: %d %s", a.status, a.body)
	}
	e.get("", "/healthz").want(200)
}

func TestPublicKeys(t *testing.T) {
	e := newEnv(t)
	a := e.get("", "/.well-known/jwks.json").want(200)
	set := into[struct {
		Keys []struct{ Kty, Crv, Kid, X, D string }
	}](a)
	if len(set.Keys) != 1 || set.Keys[0].Kty != "OKP" || set.Keys[0].Crv != "Ed25519" || set.Keys[0].X == "" || set.Keys[0].D != "" {
		t.Errorf("%s", a.body)
	}
}

func TestEveryProblemIsExplained(t *testing.T) {
	e := newEnv(t)
	for _, k := range kinds() {
		a := e.get("", "/problems/"+string(k.code)).want(200)
		if !bytes.Contains(a.body, []byte(k.means)) || k.title == "" || k.status < 400 {
			t.Errorf("%s: %s", k.code, a.body)
		}
	}
	e.get("", "/problems/none").refused(action.NotFound)
}

// The design fixes the codes and their statuses.
func TestStatusOfEveryCode(t *testing.T) {
	fixed := map[action.Code]int{"malformed": 400, "missing-idempotency-key": 400, "unauthorized": 401, "forbidden": 403, "not-found": 404,
		"unknown-tool": 404, "stale-revision": 409, "version-conflict": 409, "wrong-state": 409, "already-claimed": 409, "lease-lost": 409,
		"attempt-open": 409, "already-decided": 409, "duplicate-open-action": 409, "target-blocked": 409, "idempotency-key-in-use": 409,
		"expired": 410, "too-large": 413, "invalid-payload": 422, "invalid-argument": 422, "idempotency-key-reused": 422, "precondition-required": 428,
		"rate-limited": 429, "budget-exhausted": 429, "tool-unavailable": 503, "paused": 503, "outcome-unknown": 503, "internal": 500, "method-not-allowed": 405}
	for code, status := range fixed {
		if got := kindOf(code).status; got != status {
			t.Errorf("%s is %d, want %d", code, got, status)
		}
	}
	for _, k := range kinds() {
		if fixed[k.code] == 0 {
			t.Errorf("%s is not fixed here", k.code)
		}
	}
}

func TestPublicURLs(t *testing.T) {
	e := newEnv(t)
	for _, wrong := range []string{"", "console.example", "ftp://console.example", "/path", "http://"} {
		cfg := e.inner.Config
		cfg.PublicURL = wrong
		if _, err := New(cfg); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

// Every route of the table is answered, and only those.
func TestTableIsComplete(t *testing.T) {
	e := newEnv(t)
	for _, rt := range routes() {
		if rt.method != get && rt.method != post && rt.method != put {
			t.Errorf("%s has the method %s", rt.name, rt.method)
		}
		if api := !rt.page() && strings.HasPrefix(rt.pattern, "/v1/"); api && rt.call == nil {
			t.Errorf("%s says nothing of what it takes and gives", rt.name)
		}
		if rt.call == nil {
			continue
		}
		a := e.do(request{method: rt.method, path: someAddress(rt)})
		if code := into[api.Problem](a).Code; a.status == http.StatusNotFound && code == "not-found" || a.status == http.StatusMethodNotAllowed {
			t.Errorf("%s %s is not there: %s", rt.method, rt.pattern, a.body)
		}
		if len(rt.who.keys) > 0 && slices.Contains(rt.who.keys, "") {
			t.Errorf("%s lets in a role without a name", rt.name)
		}
	}
}
