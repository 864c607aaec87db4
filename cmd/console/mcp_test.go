package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asked calls list_tools as an agent does.
func asked(t *testing.T, transport mcp.Transport) string {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_tools", Arguments: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	return result.Content[0].(*mcp.TextContent).Text
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
