package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpAgent is connected to an MCP server.
type mcpAgent struct{ *mcp.ClientSession }

func connected(t *testing.T, transport mcp.Transport) mcpAgent {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return mcpAgent{session}
}

// calls calls a tool, and reads what it says into into unless it is nil.
func (a mcpAgent) calls(t *testing.T, tool, arguments string, into any) string {
	t.Helper()
	result, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if into != nil && (result.IsError || json.Unmarshal([]byte(text), into) != nil) {
		t.Fatalf("%s %s answers %s", tool, arguments, text)
	}
	return text
}

// asked calls list_tools and leaves.
func asked(t *testing.T, transport mcp.Transport) string {
	t.Helper()
	a := connected(t, transport)
	text := a.calls(t, "list_tools", "{}", nil)
	if err := a.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	return text
}

// asTheGuideSays is the program as a framework is told to start it.
func asTheGuideSays(t *testing.T, url, key string) *exec.Cmd {
	t.Helper()
	var told struct {
		Servers map[string]struct {
			Args []string          `json:"args"`
			Env  map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	text := containing(t, blocks(t, "docs/plug-in.md", "json"), "mcpServers")
	if err := json.Unmarshal([]byte(text), &told); err != nil || told.Servers["countersign"].Env["COUNTERSIGN_KEY"] == "" {
		t.Fatalf("%v in %s", err, text)
	}
	cmd := exec.Command(os.Args[0], told.Servers["countersign"].Args...)
	cmd.Env = append(cmd.Env, asProgram+"=1", "PATH="+os.Getenv("PATH"), "COUNTERSIGN_URL="+url, "COUNTERSIGN_KEY="+key)
	return cmd
}

// proposesOverMCP is an agent's whole way: it finds the tool, proposes, waits
// for the person, and says what it may say.
func (f demoFile) proposesOverMCP(t *testing.T) {
	a := connected(t, &mcp.CommandTransport{Command: asTheGuideSays(t, f.Console, f.Keys.Proposer)})
	defer a.Close()
	if is := a.InitializeResult().ServerInfo; is.Version != productVersion() || strings.Contains(is.Version, "/") {
		t.Errorf("it is %s %q", is.Name, is.Version)
	}
	if said, err := asTheGuideSays(t, f.Console, "ck_00000000_0").CombinedOutput(); err == nil || !strings.Contains(string(said), "does not take the key") {
		t.Errorf("with a key of nobody: %v, %s", err, said)
	}
	const tool = "refunds.refund_order"
	if text := a.calls(t, "list_tools", `{"tool": "`+tool+`"}`, nil); !strings.Contains(text, "exclusiveMinimum") {
		t.Errorf("the tool is %s", text)
	}
	var seen struct {
		ActionID  string `json:"action_id"`
		State     string `json:"state"`
		Version   int64  `json:"version"`
		Required  int    `json:"approvals_required"`
		Statement struct {
			MaySay     []string `json:"may_say"`
			MustNotSay []string `json:"must_not_say"`
		} `json:"statement"`
	}
	a.calls(t, "propose_action", `{"tool": "`+tool+`", "actor": {"id": "u-anna-schmidt"}, "payload": {"order_id": "10083", "amount": 1.30, "reason": "over MCP"}}`, &seen)
	if seen.State != "proposed" || !slices.Contains(seen.Statement.MustNotSay, "done") {
		t.Fatalf("proposed %+v", seen)
	}
	sees := func(what string, holds func() bool) {
		t.Helper()
		eventually(t, "the agent to see "+what, func() bool {
			a.calls(t, "get_action", fmt.Sprintf(`{"action_id": %q, "wait_seconds": 5, "known_version": %d}`, seen.ActionID, seen.Version), &seen)
			return holds()
		})
	}
	sees("that one person is enough, once the order was read", func() bool { return seen.Required == 1 })
	f.signIn(t, "mia").approve(t, seen.ActionID)
	sees("it done", func() bool { return seen.State == "applied" })
	if say := a.calls(t, "what_may_i_say", fmt.Sprintf(`{"action_id": %q}`, seen.ActionID), nil); !strings.Contains(say, `"level":"completed"`) {
		t.Errorf("it may say %s", say)
	}
}

type bearing string

func (k bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// The program speaks MCP on its standard input and output, told as the guide
// tells it, and over HTTP.
func TestMCPCommand(t *testing.T) {
	env := onDatabase(t)
	env["COUNTERSIGN_SECRET"] = goodSecret()
	url, _, _ := served(t, env)
	works(t, env, "", "user", "add", "admin", "--role", "admin")
	key := keyText.FindString(works(t, env, "", "client", "add", "agent", "--role", "proposer", "--owner", "admin"))
	works(t, env, "", "tools", "apply", contractIn(t, `{"name": "shop.pack", "input_schema": {"type": "object"}}`))

	cmd := asTheGuideSays(t, url, key)
	var errs output
	cmd.Stderr = &errs
	if text := asked(t, &mcp.CommandTransport{Command: cmd}); !strings.Contains(text, "shop.pack") {
		t.Errorf("over standard input and output: %s\n%s", text, errs.String())
	}
	if !cmd.ProcessState.Success() {
		t.Errorf("it ended with %v\n%s", cmd.ProcessState, errs.String())
	}

	p := spawn(t, nil, "mcp", "--console", url, "--addr", "127.0.0.1:0")
	p.prints(t, "/mcp")
	address := regexp.MustCompile(`http://\S+/mcp`).FindString(p.out.String())
	transport := &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: bearing(key)}}
	if text := asked(t, transport); !strings.Contains(text, "shop.pack") {
		t.Errorf("over HTTP: %s\n%s", text, p.errs.String())
	}
	if state := p.signal(t, syscall.SIGTERM); !state.Success() {
		t.Errorf("it ended with %v\n%s", state, p.errs.String())
	}

	for _, wrong := range [][]string{{"mcp"}, {"mcp", "--key", key, "--entry", "tv"}, {"mcp", "--key", key, "--addr", "127.0.0.1:0"}} {
		if code, _, errs := console(t, nil, "", wrong...); code != exitUsage {
			t.Errorf("%q ended with %d: %s", wrong, code, errs)
		}
	}
}

// contractIn writes a definition to a file and returns its path.
func contractIn(t *testing.T, text string) string {
	t.Helper()
	file := t.TempDir() + "/contract.json"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
