package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution"
	"countersign/execution/sandbox"
	"countersign/handlers"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }

// bench is a console and a shop, both real, with a place for faults in front of
// the console.
type bench struct {
	*stage.Stage
	shop    *httptest.Server
	refunds *sandbox.Sandbox
	tokens  sandbox.Tokens
	console *httptest.Server
	key     string
	pace    int // of short times; 1 where none are over

	mu     sync.Mutex
	faults map[string]fault // by the last part of the path
}

// fault stands in for the console's answer to a call.
type fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{Stage: stage.New(t, storetest.New(t)), pace: 1, faults: map[string]fault{}}
	if try, ok := t.(*trial); ok {
		b.pace = try.pace
	}
	b.openShop(storetest.Owner(b.DSN))
	_, key, err := b.People.CreateKey(t.Context(), stage.System(action.NewID("req")), b.Executor.ID, 0)
	b.must(err)
	b.key = key
	b.console = httptest.NewUnstartedServer(nil)
	console, err := handlers.New(handlers.Config{Log: slog.New(slog.DiscardHandler), Approvals: b.Approvals, Triage: b.Triage, Cases: b.Cases, Callbacks: b.Callbacks, Reconcile: b.Reconciler, People: b.People,
		Sessions: people.NewSessions(b.DB, false), Reads: b.DB, Pages: b.DB, CaseReads: b.DB, TaskReads: b.DB, Overview: b.DB, Directory: b.DB, Stops: b.DB, Ready: b.DB.Ready,
		PublicURL: "http://" + b.console.Listener.Addr().String()})
	b.must(err)
	b.console.Config.Handler = b.faulty(console.ServeHTTP)
	b.console.Start()
	t.Cleanup(b.console.Close)
	return b
}

func (b *bench) must(err error) {
	b.T.Helper()
	if err != nil {
		b.T.Fatal(err)
	}
}

func (b *bench) openShop(dsn string) {
	shop, err := sandbox.Open(b.T.Context(), dsn, sandbox.Tokens{})
	b.must(err)
	b.must(shop.Seed(b.T.Context()))
	b.tokens, b.refunds = shop.Tokens(), shop
	b.shop = httptest.NewServer(shop.Handler())
	b.T.Cleanup(func() { shop.Close(); b.shop.Close() })
	files, err := fs.Glob(sandbox.Contracts(), "*.yaml")
	b.must(err)
	for _, file := range files {
		raw, err := fs.ReadFile(sandbox.Contracts(), file)
		b.must(err)
		b.Tool(string(raw))
	}
}

// config serves the whole shop.
func (b *bench) config() execution.Config {
	return execution.Config{
		Console: b.console.URL, Key: execution.NewSecret(b.key), Wait: time.Second, Poll: 10 * time.Millisecond,
		Systems: b.systems(),
	}
}

func (b *bench) systems() (all []execution.System) {
	for _, name := range sandbox.Systems() {
		read, write := b.tokens.Of(name)
		all = append(all, execution.System{Tools: []string{name + ".*"}, BaseURL: b.shop.URL + "/" + name, ActorHeader: "X-Actor",
			ReadToken: execution.NewSecret(read), WriteToken: execution.NewSecret(write)})
	}
	return all
}

// start runs an executor until the test, or stop, ends it.
func (b *bench) start(config execution.Config) (stop func() error) {
	b.T.Helper()
	return b.startWith(config, execution.Options{})
}

func (b *bench) startWith(config execution.Config, options execution.Options) (stop func() error) {
	b.T.Helper()
	executor, err := execution.New(config, options)
	b.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- executor.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	b.T.Cleanup(func() {
		if err := stop(); err != nil {
			b.T.Errorf("the executor ended with %v", err)
		}
	})
	return stop
}

func (b *bench) propose(tool, actor, payload, version string) action.Action {
	b.T.Helper()
	p := approvals.Proposal{Key: action.NewSecret(8), Tool: tool, Actor: action.Actor{ID: actor}, Payload: json.RawMessage(payload), Entry: "chat"}
	if version != "" {
		p.ObjectVersion = &version
	}
	snap, _, err := b.Approvals.Propose(b.T.Context(), b.Agent, p)
	b.must(err)
	return snap.Action
}

// approve has as many people approve as it takes: two while nothing was read.
func (b *bench) approve(a action.Action) action.Action {
	b.T.Helper()
	for _, p := range []people.Person{b.Mia, b.Ken} {
		if a.State != action.Proposed {
			break
		}
		snap, err := b.Approvals.Decide(b.T.Context(), p.ID, a.ID, approvals.Ballot{Approve: true, Revision: a.Revision,
			ProposalHash: a.ProposalHash, Method: people.ByPassword, StepUp: true})
		b.must(err)
		a = snap.Action
	}
	if a.State != action.Confirmed {
		b.T.Fatalf("approved and still %s", a.State)
	}
	return a
}

// get reads an action from its events.
func (b *bench) get(id string) action.Action {
	b.T.Helper()
	snap, err := b.DB.Snapshot(b.T.Context(), id)
	b.must(err)
	return snap.Action
}

// await waits until an action is as wanted.
func (b *bench) await(id, what string, wanted func(action.Action) bool) action.Action {
	b.T.Helper()
	for deadline := time.Now().Add(b.patience()); ; time.Sleep(5 * time.Millisecond) {
		a := b.get(id)
		if wanted(a) {
			return a
		}
		if time.Now().After(deadline) {
			text, err := json.MarshalIndent(a, "", " ")
			b.must(err)
			b.T.Fatalf("never %s: %s", what, text)
		}
	}
}

func (b *bench) awaitState(id string, s action.State) action.Action {
	b.T.Helper()
	return b.await(id, string(s), func(a action.Action) bool { return a.State == s })
}

// shopDo calls the shop with one of its tokens.
func (b *bench) shopDo(method, path, token, body string, header ...string) string {
	b.T.Helper()
	req, err := http.NewRequest(method, b.shop.URL+path, strings.NewReader(body))
	b.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	b.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	b.must(err)
	if resp.StatusCode >= 300 {
		b.T.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return string(text)
}

// arm makes the shop fail at something; what it delays is delayed at the test's pace.
func (b *bench) arm(fault string) {
	b.T.Helper()
	const longest = 30_000 // that the shop takes
	fault = delays.ReplaceAllStringFunc(fault, func(delay string) string {
		ms, err := strconv.Atoi(strings.TrimPrefix(delay, `"delay_ms":`))
		b.must(err)
		return fmt.Sprintf(`"delay_ms":%d`, min(b.pace*ms, longest))
	})
	b.shopDo("POST", "/faults", b.tokens.Control, fault)
}

var delays = regexp.MustCompile(`"delay_ms":[0-9]+`)

// product reads what the catalogue holds.
func (b *bench) product(id string) (price float64, version int) {
	b.T.Helper()
	var p struct {
		Price   float64 `json:"price"`
		Version int     `json:"version"`
	}
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/catalog/products/"+id, b.tokens.CatalogRead, "")), &p))
	return p.Price, p.Version
}

// executions is how often the shop really did what a key asked for.
func (b *bench) executions(system, key string) int {
	b.T.Helper()
	token, _ := b.tokens.Of(system)
	var o struct {
		Executions int `json:"executions"`
	}
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/"+system+"/operations/"+key, token, "")), &o))
	return o.Executions
}

// fail puts a fault before the calls whose path ends in a word.
func (b *bench) fail(word string, f fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults[word] = f
}

func (b *bench) faulty(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		f := b.faults[path.Base(r.URL.Path)]
		b.mu.Unlock()
		if f != nil {
			f(w, r, serve)
			return
		}
		serve(w, r)
	}
}

// once uses a fault for the first n calls only.
func once(n int, f fault) fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		mu.Lock()
		n--
		hit := n >= 0
		mu.Unlock()
		if hit {
			f(w, r, serve)
			return
		}
		serve(w, r)
	}
}

// answerLost lets a call take effect and cuts the connection.
func answerLost(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	serve(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// neverArrives cuts the connection before the call takes effect.
func neverArrives(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }

// leaping is a clock that a test puts forward.
type leaping struct{ leap atomic.Int64 }

func (l *leaping) Now() time.Time { return time.Now().Add(time.Duration(l.leap.Load())) }

func (l *leaping) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask calls a read tool directly.
func (b *bench) ask(q execution.Question) (json.RawMessage, error) {
	b.T.Helper()
	tools, err := execution.NewTools(b.config(), execution.Options{})
	b.must(err)
	return tools.Ask(b.T.Context(), q)
}
