package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/mcpserver"
	"countersign/people"
	"countersign/store/stage"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve serves the protocol over HTTP, without a key of its own.
func (e *env) serve(o mcpserver.Options) string {
	e.T.Helper()
	server := httptest.NewServer(mcpserver.Handler(e.client.As(execution.Secret{}), quiet(o)))
	e.T.Cleanup(server.Close)
	return server.URL + mcpserver.Path
}

func setPrice(product, more string) string {
	return fmt.Sprintf(`{"tool": %q, "actor": {"id": "u-17"}, "payload": {"product_id": %q, "new_price": 105.0}%s}`, stage.SetPrice, product, more)
}

// An agent finds a tool, proposes, waits for people and learns what it may say,
// over both transports alike.
func TestAnAgentProposes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	sessions := map[string]*mcp.ClientSession{
		"streams": e.overStreams(e.client, mcpserver.Options{Entry: "chat"}),
		"HTTP":    e.overHTTP(e.serve(mcpserver.Options{Entry: "chat"}), e.key(e.Agent)),
	}
	for name, s := range sessions {
		t.Run(name, func(t *testing.T) {
			all := e.call(s, "list_tools", "{}")
			if !slices.ContainsFunc(all.Tools, func(o offer) bool { return o.Tool == stage.SetPrice && o.Writes && o.InputSchema == nil }) {
				t.Errorf("listed %s", all.text)
			}
			one := e.call(s, "list_tools", fmt.Sprintf(`{"tool": %q}`, stage.SetPrice))
			if len(one.Tools) != 1 || !strings.Contains(string(one.Tools[0].InputSchema), "new_price") || !strings.Contains(one.Tools[0].Target, "leave target out") {
				t.Errorf("listed alone %s", one.text)
			}

			a := e.call(s, "propose_action", setPrice(stage.Product(), `, "reason": "chat 17"`))
			if a.refused || a.State != "proposed" || a.Note != "" || a.Page != e.console.URL+"/actions/"+a.ActionID || a.Statement.Level != "not_submitted" {
				t.Fatalf("proposed %s", a.text)
			}
			e.Approve(e.Read(a.ActionID), e.Mia)
			seen := e.call(s, "get_action", fmt.Sprintf(`{"action_id": %q, "wait_seconds": 30, "known_version": %d}`, a.ActionID, a.Version))
			if seen.State != "confirmed" || !strings.Contains(seen.text, `"decision":"approve"`) || strings.Contains(seen.text, "token") {
				t.Errorf("seen %s", seen.text)
			}
			say := e.call(s, "what_may_i_say", fmt.Sprintf(`{"action_id": %q, "language": "zh"}`, a.ActionID))
			if say.Level != "not_submitted" || len(say.MaySay) == 0 || len(say.MustNotSay) == 0 || !regexp.MustCompile(`\p{Han}`).MatchString(say.MaySay[0]) {
				t.Errorf("may say %s", say.text)
			}
		})
	}
}

// Whatever an agent does twice is proposed once: the same call, the same in
// other words, one whose answer was lost, and one after it was done.
func TestReport25_ARepeatedCallIsTheSameAction(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.overStreams(e.client, mcpserver.Options{Entry: "chat"})
	tool := e.Tool(stage.Contract("shop.again", "", "")).Name
	ask := func(more string) answer {
		return e.call(s, "propose_action", strings.Replace(setPrice("sku-1", more), stage.SetPrice, tool, 1))
	}
	first := ask(`, "reason": "chat 17: cheaper elsewhere"`)
	for _, more := range []string{
		`, "reason": "chat 17: cheaper elsewhere"`,
		`, "reason": "The customer asks for a lower price."`,
		`, "expires_in": "10m"`,
		`, "idempotency_key": "another-try"`, // it is open, so this is no new wish
	} {
		again := ask(more)
		if again.refused || again.ActionID != first.ActionID {
			t.Errorf("asked again with %s: %s", more, again.text)
		}
	}

	done := e.Approve(e.Read(first.ActionID), e.Mia)
	claimed, claim := e.Claim(done)
	started, attempt := e.Start(claimed, claim)
	e.Report(started, stage.Receipt(attempt, claim, action.Success))
	after := ask(`, "reason": "in other words"`)
	if after.ActionID != first.ActionID || after.State != "applied" || !strings.Contains(after.Note, "proposed before") || !strings.Contains(after.Note, "idempotency_key") {
		t.Errorf("asked again after it was done: %s", after.text)
	}
	if n := e.count(tool); n != 1 {
		t.Fatalf("there are %d actions", n)
	}
	more := ask(`, "idempotency_key": "chat-18"`)
	if more.refused || more.ActionID == first.ActionID || more.Note != "" {
		t.Errorf("the same wanted once more, by another key: %s", more.text)
	}
	other := e.call(s, "propose_action", setPrice("sku-2", `, "idempotency_key": "chat-18"`))
	if !other.refused || other.Code != string(action.IdempotencyKeyReused) || other.Args["action"] != more.ActionID {
		t.Errorf("a key for something else: %s", other.text)
	}
}

// What nobody has to approve is confirmed at once, and no less new for it.
// Whoever waits for more is told what there is when the program ends.
func TestWaitingEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stopping := make(chan struct{})
	s := e.overStreams(e.client, mcpserver.Options{Entry: "chat", Stopping: stopping})
	a := e.call(s, "propose_action", strings.Replace(setPrice("sku-9", ""), stage.SetPrice, stage.Small, 1))
	if a.State != "confirmed" || a.Note != "" {
		t.Fatalf("proposed %s", a.text)
	}
	said := make(chan answer, 1)
	go func() {
		said <- e.call(s, "get_action", fmt.Sprintf(`{"action_id": %q, "wait_seconds": 60, "known_version": %d}`, a.ActionID, a.Version))
	}()
	close(stopping)
	select {
	case now := <-said:
		if now.refused || now.State != "confirmed" {
			t.Errorf("it says %s", now.text)
		}
	case <-time.After(40 * time.Second):
		t.Error("it still waits")
	}
}

// Refusals are answers of the tool: code, places, and what to do about it.
func TestRefusalsSayTheWayOut(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hidden := e.Tool(strings.Replace(stage.Contract("shop.hidden", "", ""), "mode: write", "mode: write\nentries: [workflow]", 1)).Name
	s := e.overStreams(e.client, mcpserver.Options{Entry: "chat", ActorID: "u-17"})
	act := func(payload, more string) string {
		return fmt.Sprintf(`{"tool": %q, "payload": %s%s}`, stage.SetPrice, payload, more)
	}
	gone := e.At(action.Rejected, nil)
	for _, c := range []struct {
		tool, arguments string
		code            action.Code
		at              string
	}{
		{"propose_action", act(`{"new_price": 1}`, ""), action.InvalidPayload, "/payload/product_id"},
		{"propose_action", act(`{"product_id": "a", "new_price": 9007199254740993}`, ""), action.InvalidPayload, "/payload/new_price"},
		{"propose_action", act(`{"product_id": "a", "product_id": "b"}`, ""), action.InvalidPayload, "/payload/product_id"},
		{"propose_action", act(`{"product_id": "a"}`, `, "entry": "workflow"`), action.InvalidArgument, "/entry"},
		{"propose_action", act(`{"product_id": "a"}`, `, "draft": true`), action.InvalidArgument, "/draft"},
		{"propose_action", act(`{"product_id": "a"}`, `, "actor": {"id": "u-18"}`), action.InvalidArgument, "/actor/id"},
		{"propose_action", act(`{"product_id": "a"}`, `, "idempotency_key": "a\nb"`), action.InvalidArgument, "/idempotency_key"},
		{"propose_action", fmt.Sprintf(`{"tool": %q, "payload": {"product_id": "a"}}`, hidden), action.UnknownTool, ""},
		{"propose_action", `{"tool": "shop.nothing", "payload": {}}`, action.UnknownTool, ""},
		{"list_tools", fmt.Sprintf(`{"tool": %q}`, hidden), action.UnknownTool, ""},
		{"get_action", `{"action_id": "../cases/x"}`, action.InvalidArgument, "/action_id"},
		{"get_action", fmt.Sprintf(`{"action_id": %q}`, action.NewID("act")), action.NotFound, ""},
		{"get_action", fmt.Sprintf(`{"action_id": %q, "wait_seconds": 61}`, action.NewID("act")), action.InvalidArgument, "/wait_seconds"},
		{"what_may_i_say", `{"action_id": "", "lang": "en"}`, action.InvalidArgument, "/lang"},
		{"propose_action", act(fmt.Sprintf(`{"product_id": %q, "new_price": 1}`, gone.Target.ID), fmt.Sprintf(`, "compensates": %q`, gone.ID)), action.WrongState, ""},
	} {
		a := e.call(s, c.tool, c.arguments)
		if !a.refused || a.Code != string(c.code) || a.WayOut == "" || strings.HasPrefix(a.WayOut, "Call again") || c.at != "" && !slices.Contains(a.at(), c.at) {
			t.Errorf("%s %s: %s, want %s at %s", c.tool, c.arguments, a.text, c.code, c.at)
		}
	}
	if listed := e.call(s, "list_tools", "{}"); strings.Contains(listed.text, hidden) {
		t.Error("a tool of another entry point is listed")
	}
	if a := e.call(s, "propose_action", act(fmt.Sprintf(`{"product_id": %q, "new_price": 12345678}`, stage.Product()), "")); e.Read(a.ActionID).Actor.ID != "u-17" {
		t.Errorf("on behalf of somebody else: %s", a.text)
	}
}

// There are four tools and nothing else, and with an admin's key they reach
// nothing more of the console: no decision, no settlement, no contract.
func TestNothingElseIsReachable(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	admin := e.Client("everything", e.Admin, people.RoleAdmin, people.RoleProposer, people.RoleExecutor, people.RoleReader)
	s := e.overHTTP(e.serve(mcpserver.Options{Entry: "chat"}), e.key(admin))
	listed, err := s.ListTools(t.Context(), nil)
	e.must(err)
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"get_action", "list_tools", "propose_action", "what_may_i_say"}; !slices.Equal(names, want) {
		t.Fatalf("the tools are %q", names)
	}
	capable := s.InitializeResult().Capabilities
	if capable.Prompts != nil || capable.Resources != nil || capable.Completions != nil {
		t.Errorf("it can also %+v", capable)
	}
	open := e.call(s, "propose_action", setPrice(stage.Product(), ""))
	for _, name := range []string{"approve_action", "decide", "settle_case", "put_tool", "claim", "report", "../v1/actions"} {
		if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(`{}`)}); err == nil {
			t.Errorf("it answers to %s", name)
		}
	}
	id := open.ActionID
	for _, tool := range names {
		for _, arguments := range []string{`{}`, `{"action_id":"` + id + `"}`, `{"action_id":"` + id + `/decisions"}`, `{"action_id":"` + id + `","decision":"approve"}`,
			`{"action_id":"../cases/cas_1/settlements"}`, `{"tool":"../actions/` + id + `/cancel"}`, `{"tool":"` + stage.SetPrice + `/retire"}`,
			`{"tool":"` + stage.SetPrice + `","approved":true,"payload":{"product_id":"a"}}`} {
			e.call(s, tool, arguments)
		}
	}
	if now := e.Read(id); now.State != action.Proposed || now.Version != 1 {
		t.Errorf("it is %s at version %d", now.State, now.Version)
	}
	reads := regexp.MustCompile(`^(POST /v1/actions|GET /v1/(actions/act_\w+(/statement)?|tools(/[^/]+)?))$`)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, request := range e.seen {
		if !reads.MatchString(request) {
			t.Errorf("it reached %s", request)
		}
	}
	if len(e.seen) < 4 {
		t.Errorf("it reached only %q", e.seen)
	}
}

// Over HTTP every request says who it is; web pages and names that are not this
// machine's get nowhere, and a key is nobody else's.
func TestHTTPIsGuarded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	address := e.serve(mcpserver.Options{Entry: "chat"})
	const body = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tools", "arguments": {}}}`
	good := e.key(e.Agent)
	with := func(text string) func(*http.Request) {
		return func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		}
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
		says   string
	}{
		"as it should be": {func(*http.Request) {}, 200, stage.SetPrice},
		"no key":          {func(r *http.Request) { r.Header.Del("Authorization") }, 401, "way_out"},
		"another scheme":  {func(r *http.Request) { r.Header.Set("Authorization", "Basic "+good) }, 401, ""},
		"a key of nobody": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer ck_00000000_0") }, 401, "does not take this API key"},
		"hello, key of nobody": {func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer ck_00000000_0")
			with(`{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}}`)(r)
		}, 401, `"code":"unauthorized"`},
		"a page elsewhere":    {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, ""},
		"a page, by its site": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, ""},
		"a name rebound":      {func(r *http.Request) { r.Host = "evil.example" }, 403, ""},
		"a name and its page": {func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") }, 403, ""},
		"a form":              {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, ""},
		"another place":       {func(r *http.Request) { r.URL.Path = "/v1/actions" }, 404, ""},
		"a batch":             {with(" \n[" + body + "," + body + "]"), 400, "Batches are not taken"},
		"a batch of old":      {func(r *http.Request) { with("[" + body + "]")(r); r.Header.Set("MCP-Protocol-Version", "2025-03-26") }, 400, "Batches are not taken"},
		"room before it":      {with("\n\t " + body), 200, stage.SetPrice},
		"nothing":             {with(""), 400, ""},
		"too much":            {with(strings.Repeat(" ", action.MaxBodyBytes) + body), 400, ""},
		"far too much":        {with(`{"jsonrpc": "2.0", "id": 1, "method": "` + strings.Repeat("x", action.MaxBodyBytes) + `"}`), 413, ""},
	} {
		r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(body))
		e.must(err)
		r.Header.Set("Authorization", "Bearer "+good)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		c.change(r)
		resp, err := http.DefaultClient.Do(r)
		e.must(err)
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		e.must(err)
		if challenge := resp.Header.Get("WWW-Authenticate"); (resp.StatusCode == 401) != strings.HasPrefix(challenge, "Bearer") {
			t.Errorf("%s: %d asks for %q", name, resp.StatusCode, challenge)
		}
		if resp.StatusCode != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
	// A client that sees one tool only sees one over the protocol too.
	narrow := e.ClientWith("narrow", e.Admin, people.ClientGrants{Roles: []string{people.RoleProposer}, Tools: []string{stage.Small}})
	if all := e.call(e.overHTTP(address, e.key(narrow)), "list_tools", "{}"); len(all.Tools) != 1 || all.Tools[0].Tool != stage.Small {
		t.Errorf("a limited key lists %s", all.text)
	}
}
