package execution_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/execution"
	"countersign/execution/sandbox"
	"countersign/people"
	"countersign/store"
	"countersign/store/storetest"
	"countersign/triage"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }

// patience bounds what a test waits for.
const patience = 15 * time.Second

// bench is a shop and a console's rules and store on real PostgreSQL, with the
// calls that executors make served over HTTP.
type bench struct {
	t         *testing.T
	db        *store.DB
	catalogue *rule.Catalogue
	approvals *approvals.Service
	triage    *triage.Service
	proposer  people.Client
	executor  people.Client
	support   []people.Person
	shop      *httptest.Server
	tokens    sandbox.Tokens
	console   *httptest.Server

	mu     sync.Mutex
	faults map[string]fault // by the last part of the path
}

// fault stands in for the console's answer to a call.
type fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, faults: map[string]fault{}}
	dsn := storetest.New(t)
	var err error
	b.db, err = store.Open(t.Context(), dsn, store.Options{})
	b.must(err)
	t.Cleanup(func() { b.db.Close() })
	signer, err := approvals.NewSigner(t.Context(), b.db, bytes.Repeat([]byte("s"), 32), "https://console.example", "executors")
	b.must(err)
	b.catalogue = rule.NewCatalogue(b.db)
	b.approvals = approvals.New(b.db, b.catalogue, b.db, signer, approvals.DefaultMaxOpen)
	b.triage = triage.New(b.db, b.catalogue)
	b.openShop(storetest.Owner(dsn))
	b.openAccounts()
	b.console = httptest.NewServer(b.routes())
	t.Cleanup(b.console.Close)
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) openShop(dsn string) {
	shop, err := sandbox.Open(b.t.Context(), dsn, sandbox.Tokens{})
	b.must(err)
	b.must(shop.Seed(b.t.Context()))
	b.tokens = shop.Tokens()
	b.shop = httptest.NewServer(shop.Handler())
	b.t.Cleanup(func() { shop.Close(); b.shop.Close() })
	files, err := fs.Glob(sandbox.Contracts(), "*.yaml")
	b.must(err)
	for _, file := range files {
		raw, err := fs.ReadFile(sandbox.Contracts(), file)
		b.must(err)
		b.put(strings.TrimSuffix(file, ".yaml"), raw)
	}
}

func (b *bench) put(name string, raw []byte) {
	b.t.Helper()
	_, _, err := b.catalogue.Save(b.t.Context(), name, raw, action.By{Kind: action.BySystem})
	b.must(err)
}

func (b *bench) openAccounts() {
	service := people.New(b.db)
	by := func() people.Command {
		return people.Command{Op: action.NewSecret(10), By: action.By{Kind: action.BySystem, Name: "test"}}
	}
	owner, err := service.CreatePerson(b.t.Context(), by(), people.NewPerson{Username: "owner", Name: "Owner"})
	b.must(err)
	for _, name := range []string{"mia", "tom"} {
		p, err := service.CreatePerson(b.t.Context(), by(), people.NewPerson{Username: name, Name: name,
			Grants: people.Grants{Roles: []string{people.RoleSupport}}})
		b.must(err)
		b.support = append(b.support, p)
	}
	client := func(role string) people.Client {
		c, err := service.CreateClient(b.t.Context(), by(), people.NewClient{Name: role, Owner: owner.ID,
			ClientGrants: people.ClientGrants{Roles: []string{role}}})
		b.must(err)
		return c
	}
	b.proposer, b.executor = client(people.RoleProposer), client(people.RoleExecutor)
}

// config serves the whole shop.
func (b *bench) config() execution.Config {
	return execution.Config{
		Console: b.console.URL, Key: execution.NewSecret("csk_test"), Wait: time.Second, Poll: 10 * time.Millisecond,
		Systems: []execution.System{
			{Tools: []string{"catalog.*"}, BaseURL: b.shop.URL + "/catalog", ActorHeader: "X-Actor",
				ReadToken: execution.NewSecret(b.tokens.CatalogRead), WriteToken: execution.NewSecret(b.tokens.CatalogWrite)},
			{Tools: []string{"refunds.*"}, BaseURL: b.shop.URL + "/refunds",
				ReadToken: execution.NewSecret(b.tokens.RefundsRead), WriteToken: execution.NewSecret(b.tokens.RefundsWrite)},
		},
	}
}

// start runs an executor until the test, or stop, ends it.
func (b *bench) start(config execution.Config) (stop func() error) {
	b.t.Helper()
	return b.startWith(config, execution.Options{})
}

func (b *bench) startWith(config execution.Config, options execution.Options) (stop func() error) {
	b.t.Helper()
	executor, err := execution.New(config, options)
	b.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- executor.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	b.t.Cleanup(func() {
		if err := stop(); err != nil {
			b.t.Errorf("the executor ended with %v", err)
		}
	})
	return stop
}

func (b *bench) propose(tool, actor, payload, version string) action.Action {
	b.t.Helper()
	p := approvals.Proposal{Key: action.NewSecret(8), Tool: tool, Actor: action.Actor{ID: actor}, Payload: json.RawMessage(payload), Entry: "chat"}
	if version != "" {
		p.ObjectVersion = &version
	}
	snap, _, err := b.approvals.Propose(b.t.Context(), b.proposer, p)
	b.must(err)
	return snap.Action
}

// approve has as many people approve as it takes: two while nothing was read.
func (b *bench) approve(a action.Action) action.Action {
	b.t.Helper()
	for _, p := range b.support {
		if a.State != action.Proposed {
			break
		}
		snap, err := b.approvals.Decide(b.t.Context(), p.ID, a.ID, approvals.Ballot{Approve: true, Revision: a.Revision,
			ProposalHash: a.ProposalHash, Method: people.ByPassword, StepUp: true})
		b.must(err)
		a = snap.Action
	}
	if a.State != action.Confirmed {
		b.t.Fatalf("approved and still %s", a.State)
	}
	return a
}

// get reads an action from its events.
func (b *bench) get(id string) action.Action {
	b.t.Helper()
	snap, err := b.db.Snapshot(b.t.Context(), id)
	b.must(err)
	return snap.Action
}

// await waits until an action is as wanted.
func (b *bench) await(id, what string, wanted func(action.Action) bool) action.Action {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		a := b.get(id)
		if wanted(a) {
			return a
		}
		if time.Now().After(deadline) {
			text, err := json.MarshalIndent(a, "", " ")
			b.must(err)
			b.t.Fatalf("never %s: %s", what, text)
		}
	}
}

func (b *bench) awaitState(id string, s action.State) action.Action {
	b.t.Helper()
	return b.await(id, string(s), func(a action.Action) bool { return a.State == s })
}

// shopDo calls the shop with one of its tokens.
func (b *bench) shopDo(method, path, token, body string, header ...string) string {
	b.t.Helper()
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
		b.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return string(text)
}

func (b *bench) arm(fault string) { b.shopDo("POST", "/faults", b.tokens.Control, fault) }

// product reads what the catalogue holds.
func (b *bench) product(id string) (price float64, version int) {
	b.t.Helper()
	var p struct {
		Price   float64 `json:"price"`
		Version int     `json:"version"`
	}
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/catalog/products/"+id, b.tokens.CatalogRead, "")), &p))
	return p.Price, p.Version
}

// executions is how often the shop really did what a key asked for.
func (b *bench) executions(system, key string) int {
	b.t.Helper()
	token := map[string]string{"catalog": b.tokens.CatalogRead, "refunds": b.tokens.RefundsRead}[system]
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
	b.t.Helper()
	tools, err := execution.NewTools(b.config(), execution.Options{})
	b.must(err)
	return tools.Ask(b.t.Context(), q)
}
