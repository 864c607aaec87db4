package mcpserver_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/mcpserver"
	"countersign/handlers"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }

// env is a real console, what reached it, and the protocol in front of it.
type env struct {
	*stage.Stage
	console *httptest.Server
	client  *execution.Client

	mu   sync.Mutex
	seen []string // method and path of every request to the console
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{Stage: stage.New(t, storetest.New(t))}
	e.console = httptest.NewUnstartedServer(nil)
	console, err := handlers.New(handlers.Config{Log: slog.New(slog.DiscardHandler), Approvals: e.Approvals, Triage: e.Triage, Reconcile: e.Reconciler, People: e.People,
		Callbacks: e.Callbacks, Sessions: people.NewSessions(e.DB, false), Reads: e.DB, Pages: e.DB, CaseReads: e.DB, TaskReads: e.DB, Directory: e.DB, Ready: e.DB.Ready,
		PublicURL: "http://" + e.console.Listener.Addr().String()})
	e.must(err)
	e.console.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.seen = append(e.seen, r.Method+" "+r.URL.EscapedPath())
		e.mu.Unlock()
		console.ServeHTTP(w, r)
	})
	e.console.Start()
	t.Cleanup(e.console.Close)
	e.client, err = execution.NewClient(e.console.URL, execution.NewSecret(e.key(e.Agent)), execution.Options{Logger: slog.New(slog.DiscardHandler)})
	e.must(err)
	return e
}

func (e *env) must(err error) {
	e.T.Helper()
	if err != nil {
		e.T.Fatal(err)
	}
}

func (e *env) key(c people.Client) string {
	e.T.Helper()
	_, text, err := e.People.CreateKey(e.T.Context(), stage.System(action.NewID("req")), c.ID, 0)
	e.must(err)
	return text
}

func quiet(o mcpserver.Options) mcpserver.Options {
	o.Logger = slog.New(slog.DiscardHandler)
	return o
}

// overStreams connects an agent over two streams, as over standard input and
// output.
func (e *env) overStreams(client *execution.Client, o mcpserver.Options) *mcp.ClientSession {
	e.T.Helper()
	in, theirOut := io.Pipe()
	theirIn, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- mcpserver.Serve(e.T.Context(), mcpserver.New(client, quiet(o)), in, out) }()
	session := e.connect(&mcp.IOTransport{Reader: theirIn, Writer: theirOut})
	e.T.Cleanup(func() {
		session.Close()
		if err := <-ended; err != nil {
			e.T.Errorf("serving ended with %v", err)
		}
	})
	return session
}

// overHTTP connects an agent over streamable HTTP, with a key.
func (e *env) overHTTP(address, key string) *mcp.ClientSession {
	e.T.Helper()
	session := e.connect(&mcp.StreamableClientTransport{Endpoint: address, MaxRetries: -1, HTTPClient: &http.Client{Transport: withKey(key)}})
	e.T.Cleanup(func() { session.Close() })
	return session
}

type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

func (e *env) connect(t mcp.Transport) *mcp.ClientSession {
	e.T.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(e.T.Context(), t, nil)
	e.must(err)
	return session
}

// said is what may be said to a customer.
type said struct {
	Level      string   `json:"level"`
	MaySay     []string `json:"may_say"`
	MustNotSay []string `json:"must_not_say"`
}

// offer is a tool as it is listed.
type offer struct {
	Tool        string          `json:"tool"`
	Writes      bool            `json:"writes"`
	InputSchema json.RawMessage `json:"input_schema"`
	Target      string          `json:"target"`
}

// answer is what a tool says, or refuses with.
type answer struct {
	said
	ActionID  string  `json:"action_id"`
	State     string  `json:"state"`
	Version   int64   `json:"version"`
	Page      string  `json:"page"`
	Note      string  `json:"note"`
	Statement said    `json:"statement"`
	Tools     []offer `json:"tools"`

	Code   string            `json:"code"`
	WayOut string            `json:"way_out"`
	Args   map[string]string `json:"args"`
	Errors []struct {
		Pointer string `json:"pointer"`
	} `json:"errors"`

	refused bool
	text    string
}

// at are the places that a refusal names.
func (a answer) at() (pointers []string) {
	for _, e := range a.Errors {
		pointers = append(pointers, e.Pointer)
	}
	return pointers
}

// call calls a tool with arguments as they are written.
func (e *env) call(s *mcp.ClientSession, tool, arguments string) answer {
	e.T.Helper()
	result, err := s.CallTool(e.T.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		e.T.Fatalf("%s %s: %v", tool, arguments, err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	a := answer{refused: result.IsError, text: text}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		e.T.Fatalf("%s answers %s: %v", tool, text, err)
	}
	if structured, err := json.Marshal(result.StructuredContent); err != nil || !strings.HasPrefix(string(structured), "{") {
		e.T.Fatalf("%s answers %s as structured content (%v)", tool, structured, err)
	}
	return a
}

// count is how many actions there are of a tool.
func (e *env) count(tool string) int {
	e.T.Helper()
	list, err := e.client.List(e.T.Context(), execution.Filter{Tool: tool, Limit: 200})
	e.must(err)
	return len(list.Items)
}
