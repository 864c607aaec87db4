package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// somebodysServer is an MCP server with tools as people write them, listed a few
// at a time, for whoever has its token.
func somebodysServer(t *testing.T, answerInJSON bool) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "3"}, &mcp.ServerOptions{PageSize: 2, Logger: slog.New(slog.DiscardHandler)})
	for _, tool := range []*mcp.Tool{
		{Name: "update_contact", Description: "Changes a contact", InputSchema: json.RawMessage(
			`{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer","maximum":9007199254740993}},"required":["zeta"]}`)},
		{Name: "find_contact", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		{Name: "send\u202email", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "broken", InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"text"}}}`)},
		{Name: "archive", InputSchema: json.RawMessage(`{"type":"object"}`)},
	} {
		server.AddTool(tool, nil)
	}
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: answerInJSON})
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer crm-token" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		streamable.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { listening.CloseClientConnections(); listening.Close() })
	return listening.URL
}

// A tool list becomes contracts by the way that any definition does: first
// looked at with what is assumed, then written, then stored.
func TestImportFromAnMCPServer(t *testing.T) {
	env := onDatabase(t)
	env["MCP_TOKEN"] = "crm-token"
	dir := filepath.Join(t.TempDir(), "contracts")
	for _, answerInJSON := range []bool{true, false} {
		url := somebodysServer(t, answerInJSON)
		code, out, errs := console(t, env, "", "tools", "import-mcp", "--url", url, "--prefix", "crm.")
		if code != exitFailed || !strings.Contains(errs, "2 of 5 were refused") || !strings.Contains(errs, "/input_schema/properties/x/type") || strings.Contains(out+errs, "\u202e") {
			t.Errorf("looking ended with %d\n%s%s", code, out, errs)
		}
		for _, line := range []string{"crm.update_contact writes not written", "crm.find_contact reads not written", `"broken" - refused`, `"send\u202email" - refused`,
			"/approval/rules one approval by support crm.archive, crm.update_contact", "/execution/retry never all", "readOnlyHint", "Nothing was written"} {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), line) {
				t.Errorf("it does not say %q\n%s", line, out)
			}
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("looking wrote something")
	}

	url := somebodysServer(t, true)
	importing := func() (string, string) {
		_, out, errs := console(t, env, "", "tools", "import-mcp", "--url", url, "--prefix", "crm.", "--into", dir)
		return strings.Join(strings.Fields(out), " "), errs
	}
	if out, errs := importing(); !strings.Contains(out, "crm.archive writes written") {
		t.Fatalf("importing: %s\n%s", out, errs)
	}
	text, err := os.ReadFile(filepath.Join(dir, "crm.update_contact.json"))
	if err != nil || strings.Index(string(text), `"zeta"`) > strings.Index(string(text), `"alpha"`) || !strings.Contains(string(text), "9007199254740993") {
		t.Errorf("not as the server wrote it (%v):\n%s", err, text)
	}
	if out := works(t, env, "", "tools", "apply", dir); strings.Count(out, "new") != 3 {
		t.Errorf("stored\n%s", out)
	}
	mine := filepath.Join(dir, "crm.archive.json")
	if err := os.WriteFile(mine, []byte(`{"name": "crm.archive", "mine": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs := importing()
	if kept, err := os.ReadFile(mine); err != nil || !strings.Contains(string(kept), "mine") || !strings.Contains(errs, "says something else") {
		t.Errorf("somebody's work is now %s (%v)\n%s", kept, err, errs)
	}
	if !strings.Contains(out, "crm.find_contact reads same") {
		t.Errorf("importing again: %s", out)
	}
}

// A program can be the server: here it is our own.
func TestImportFromAProgram(t *testing.T) {
	t.Parallel()
	program := fmt.Sprintf("%s=1 %s mcp --console http://127.0.0.1:1 --key ck_none", asProgram, os.Args[0])
	out := works(t, nil, "", "tools", "import-mcp", "--stdio", program)
	if out = strings.Join(strings.Fields(out), " "); !strings.Contains(out, "propose_action writes") || !strings.Contains(out, "what_may_i_say reads") {
		t.Errorf("it made %s", out)
	}
	// The program is somebody else's: it gets no secret of ours, and a server no
	// token that was meant for another.
	env := append(os.Environ(), "COUNTERSIGN_SECRET=ours", "DATABASE_URL=ours", "MCP_TOKEN=ours", "THEIRS=1")
	if left := strings.Join(notOurs(env), " "); strings.Contains(left, "ours") || !strings.Contains(left, "THEIRS=1") {
		t.Errorf("the program gets %s", left)
	}
	var reached atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer elsewhere.Close()
	sent := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer sent.Close()
	if code, _, _ := console(t, environment{"MCP_TOKEN": "crm-token"}, "", "tools", "import-mcp", "--url", sent.URL); code != exitFailed || reached.Load() != 0 {
		t.Errorf("sent on: ended with %d, and elsewhere was reached %d times", code, reached.Load())
	}

	for _, wrong := range [][]string{{}, {"--url", "http://127.0.0.1:1", "--stdio", "true"}} {
		if code, _, _ := console(t, nil, "", append([]string{"tools", "import-mcp"}, wrong...)...); code != exitUsage {
			t.Errorf("%q ended with %d", wrong, code)
		}
	}
	for _, gone := range [][]string{{"--url", "http://127.0.0.1:1"}, {"--stdio", "true"}, {"--stdio", "echo hello"}} {
		if code, _, errs := console(t, nil, "", append([]string{"tools", "import-mcp"}, gone...)...); code != exitFailed || !strings.Contains(errs, "listing the server's tools") {
			t.Errorf("%q ended with %d: %s", gone, code, errs)
		}
	}
}
