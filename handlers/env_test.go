package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
)

// env is a console that answers HTTP, with its cast and a key for every role.
type env struct {
	*stage.Stage
	server   *httptest.Server
	inner    *server           // behind it
	keys     map[string]string // by role
	clients  map[string]people.Client
	log      *lockedBuffer
	stopping chan struct{}
}

// newEnv starts a console on a database of its own.
func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{Stage: stage.New(t, storetest.New(t)), keys: map[string]string{}, clients: map[string]people.Client{}, log: &lockedBuffer{}, stopping: make(chan struct{})}
	e.server, e.inner = e.open(e.Console)
	e.clients[people.RoleProposer], e.clients[people.RoleExecutor] = e.Agent, e.Executor
	e.clients[people.RoleReader] = e.Client("reader", e.Admin, people.RoleReader)
	e.clients[people.RoleAdmin] = e.Client("admin", e.Admin, people.RoleAdmin)
	for role, c := range e.clients {
		e.keys[role] = e.key(c, 0)
	}
	return e
}

// serve starts a server over a console's services.
func (e *env) serve(c *stage.Console) *httptest.Server {
	e.T.Helper()
	server, _ := e.open(c)
	return server
}

func (e *env) open(c *stage.Console) (*httptest.Server, *server) {
	e.T.Helper()
	return e.openWith(c, nil)
}

// openWith is open with a demo's company beside it, or nil.
func (e *env) openWith(c *stage.Console, demo Demo) (*httptest.Server, *server) {
	e.T.Helper()
	served := routes()
	if demo != nil {
		served = append(served, demoRoutes()...)
	}
	listening := httptest.NewUnstartedServer(nil)
	inner, err := newServer(Config{Log: slog.New(slog.NewJSONHandler(e.log, nil)), Approvals: c.Approvals, Triage: c.Triage, Cases: c.Cases, Callbacks: c.Callbacks, Reconcile: c.Reconciler, People: c.People,
		Sessions: people.NewSessions(c.DB, false), Reads: c.DB, Pages: c.DB, CaseReads: c.DB, RunReads: c.DB, TaskReads: c.DB, Overview: c.DB, Directory: c.DB, Stops: c.DB, Ready: c.DB.Ready, Stopping: e.stopping,
		Demo: demo, PublicURL: "http://" + listening.Listener.Addr().String()}, served)
	if err != nil {
		e.T.Fatal(err)
	}
	listening.Config.Handler = inner.mux
	listening.Start()
	e.T.Cleanup(listening.Close)
	return listening, inner
}

// later starts a server on the same database that lives some time later.
func (e *env) later(d time.Duration) *httptest.Server {
	e.T.Helper()
	return e.serve(e.Open(storetest.Skewed(e.DSN, d), store.Options{MaxConns: 2}))
}

// key makes an API key of a client.
func (e *env) key(c people.Client, life time.Duration) string {
	e.T.Helper()
	_, text, err := e.People.CreateKey(context.Background(), stage.System(action.NewID("req")), c.ID, life)
	if err != nil {
		e.T.Fatal(err)
	}
	return text
}

// limited makes a key with a role for one tool.
func (e *env) limited(role, tool string) string {
	e.T.Helper()
	return e.key(e.ClientWith(action.NewSecret(8), e.Admin, people.ClientGrants{Roles: []string{role}, Tools: []string{tool}}), 0)
}

// call is one request to make.
type request struct {
	method, path string
	key          string // API key; "" for none
	body         any    // string and []byte as they are, else as JSON
	header       map[string]string
}

// answer is what came back.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do makes a request.
func (e *env) do(q request) answer {
	e.T.Helper()
	return send1(e.T, e.server.Client(), e.server.URL, q)
}

func send1(t testing.TB, client *http.Client, base string, q request) answer {
	t.Helper()
	var body io.Reader
	switch b := q.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	case []byte:
		body = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequest(q.method, base+q.path, body)
	if err != nil {
		t.Fatal(err)
	}
	if q.key != "" {
		r.Header.Set("Authorization", "Bearer "+q.key)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return answer{t, resp.StatusCode, resp.Header, text}
}

// get reads with a role's key.
func (e *env) get(role, path string) answer {
	e.T.Helper()
	return e.do(request{method: get, path: path, key: e.keys[role]})
}

// post sends a body with a role's key. Pairs are header names and values.
func (e *env) post(role, path string, body any, headers ...string) answer {
	e.T.Helper()
	return e.do(request{method: post, path: path, key: e.keys[role], body: body, header: pairs(headers)})
}

func pairs(headers []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		m[headers[i]] = headers[i+1]
	}
	return m
}

// want fails the test unless the status is this one.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// into decodes the body.
func into[T any](a answer) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%v in %s", err, a.body)
	}
	return v
}

// refused checks a problem document and returns it.
func (a answer) refused(code action.Code) api.Problem {
	a.t.Helper()
	p := into[api.Problem](a)
	k := kindOf(code)
	switch {
	case a.status != k.status || p.Status != k.status || p.Code != string(code) || p.Type != "/problems/"+string(code):
		a.t.Fatalf("status %d, want %q: %s", a.status, code, a.body)
	case a.header.Get("Content-Type") != "application/problem+json":
		a.t.Errorf("%s came as %q", code, a.header.Get("Content-Type"))
	case p.Title == "" || p.Detail == "" || p.RequestID == "" || p.RequestID != a.header.Get("X-Request-Id"):
		a.t.Errorf("an incomplete problem: %s", a.body)
	}
	return p
}

// at checks that a problem names a place.
func at(t testing.TB, p api.Problem, pointer string) {
	t.Helper()
	for _, e := range p.Errors {
		if e.Pointer == pointer && e.Detail != "" {
			return
		}
	}
	t.Errorf("%s does not name %q: %+v", p.Code, pointer, p.Errors)
}

// proposal is a body that the API takes.
func proposal(tool, product string, price float64) map[string]any {
	return map[string]any{"tool": tool, "actor": map[string]any{"id": "u-17", "name": "Lin"},
		"payload": map[string]any{"product_id": product, "new_price": price}, "reason": "the season is over"}
}

// with returns a body with a member replaced; nil removes it.
func with(body map[string]any, name string, value any) map[string]any {
	changed := map[string]any{}
	for k, v := range body {
		changed[k] = v
	}
	if changed[name] = value; value == nil {
		delete(changed, name)
	}
	return changed
}

// proposed proposes a price for a product of its own, through the API.
func (e *env) proposed(tool string) api.Action {
	e.T.Helper()
	return into[api.Action](e.post(people.RoleProposer, "/v1/actions", proposal(tool, stage.Product(), 105), "Idempotency-Key", action.NewID("key")).want(201))
}

// bound is what an executor sends of an action when it claims.
func bound(a api.Action, claim string) api.Claim {
	return api.Claim{ClaimID: claim, ProposalHash: a.ProposalHash, ObjectVersion: a.ObjectVersion}
}

// confirmed returns an action that was approved, as the API shows it.
func (e *env) confirmed(tool string) api.Action {
	e.T.Helper()
	a := e.proposed(tool)
	e.Approve(e.Read(a.ID), e.Mia)
	return into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200))
}

// claimed returns an action that the executor has claimed, and its claim_id.
func (e *env) claimed(tool string) (api.Action, string) {
	e.T.Helper()
	a, claim := e.confirmed(tool), action.NewID("clm")
	e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
	return a, claim
}

// attempted returns an action with an open attempt, its claim_id and attempt_id.
func (e *env) attempted(tool string) (a api.Action, claim, attempt string) {
	e.T.Helper()
	a, claim = e.claimed(tool)
	attempt = action.NewID("att")
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: attempt, ClaimID: claim, Fingerprint: "sha256:ab"}).want(201)
	return a, claim, attempt
}

// unknown is an action whose outcome nobody knows.
func (e *env) unknown(tool string) api.Action {
	e.T.Helper()
	a, claim, attempt := e.attempted(tool)
	return into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Unknown)).want(201))
}

func receipt(attempt, claim string, outcome action.Outcome) api.Receipt {
	r := stage.Receipt(attempt, claim, outcome)
	return api.Receipt{ReceiptID: r.ID, AttemptID: attempt, ClaimID: claim, Outcome: r.Outcome, Proves: r.Proves, HTTPStatus: r.HTTPStatus,
		ProviderRef: r.ProviderRef, Body: r.Body}
}

func quotedVersion(v int64) string { return fmt.Sprintf("%q", fmt.Sprint(v)) }

func replaced(text, old, now string) string { return strings.ReplaceAll(text, old, now) }

// waitUntil polls a condition until it holds.
func waitUntil(t testing.TB, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.After(3 * time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatal("it did not come about in time")
		}
	}
}
