package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"countersign/execution/api"
)

// warehouse is the service of docs/http-api.md, which no one here wrote, as the
// document says to start it and to put it behind contracts.
type warehouse struct {
	demoFile
	data, dir string // of the demo; of the document's files
	door      *httptest.Server

	mu       sync.Mutex
	requests []string // method and path, as they arrived
	lose     bool     // answers to what changes something
}

const httpGuide = "docs/http-api.md"

func newWarehouse(t *testing.T, f demoFile, data string) *warehouse {
	t.Helper()
	program, err := filepath.Abs("../../e2e/warehouse/node_modules/.bin/json-server")
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("json-server is missing here, and make check installs it: %v", err)
	}
	w := &warehouse{demoFile: f, data: data, dir: t.TempDir()}
	text := func(language string) string { return blocks(t, httpGuide, language)[0] }
	w.write(t, "warehouse.json", text("json"))
	at := w.start(t, program, strings.Fields(containing(t, blocks(t, httpGuide, ""), "npx json-server"))[2:])
	w.open(t, at)
	for _, block := range blocks(t, httpGuide, "yaml") {
		name, found := strings.CutPrefix(strings.SplitN(block, "\n", 2)[0], "# ")
		if !found {
			t.Fatalf("no file is named by %s", block)
		}
		w.write(t, name, strings.ReplaceAll(block, "http://127.0.0.1:4010", w.door.URL))
	}
	return w
}

func (w *warehouse) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(w.dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// start starts the service as the document says, on a port that is free: when
// another program was faster, on the next one.
func (w *warehouse) start(t *testing.T, program string, args []string) *url.URL {
	t.Helper()
	i := slices.Index(args, "4010")
	var said output
	for range 20 {
		at := &url.URL{Scheme: "http", Host: freePort(t)}
		args[i] = at.Port()
		cmd := exec.Command(program, args...)
		cmd.Dir = w.dir
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			cmd.Wait() // it is killed, or has no port
			close(ended)
		}()
		t.Cleanup(func() {
			cmd.Process.Kill()
			<-ended
		})
		if serves(t, at, ended) {
			return at
		}
	}
	t.Fatalf("the service ends by itself:\n%s", said.String())
	return nil
}

// freePort is an address that is free now, and is not handed out to programs that
// ask for any: those are further up.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil && ln.Close() == nil {
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// serves waits until the service answers, or has ended.
func serves(t *testing.T, at *url.URL, ended chan struct{}) (answers bool) {
	t.Helper()
	eventually(t, "the service to answer", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		resp, err := http.Get(at.String() + "/products/mug-1")
		if err == nil {
			resp.Body.Close()
		}
		answers = err == nil && resp.StatusCode == http.StatusOK
		return answers
	})
	return answers
}

// open makes the door through which the executor comes: it counts what arrives,
// and can lose answers.
func (w *warehouse) open(t *testing.T, at *url.URL) {
	proxy := httputil.NewSingleHostReverseProxy(at)
	w.door = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.requests = append(w.requests, r.Method+" "+r.URL.Path)
		lose := w.lose && r.Method != http.MethodGet
		w.mu.Unlock()
		if lose {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(w.door.Close)
}

// arrived counts the requests that change something.
func (w *warehouse) arrived(request string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if r == request {
			n++
		}
	}
	return n
}

// holds reads what the service has.
func (w *warehouse) holds(t *testing.T, path string, into any) {
	t.Helper()
	resp, err := http.Get(w.door.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(text, into) != nil {
		t.Fatalf("%s answers %s (%v)", path, text, err)
	}
}

// approved proposes, and approves on the page.
func (w *warehouse) approved(t *testing.T, tool, payload string) api.Action {
	t.Helper()
	var a api.Action
	w.call(t, http.StatusCreated, w.Keys.Proposer, http.MethodPost, "/v1/actions", fmt.Sprintf(`{"tool":%q,"actor":{"id":"u-1"},"payload":%s}`, tool, payload), &a)
	w.decided(t, &a)
	return a
}

// decided has a person approve, who sees the price of now where there is one.
func (w *warehouse) decided(t *testing.T, a *api.Action) {
	t.Helper()
	if a.Tool == "warehouse.set_price" {
		w.until(t, a, "read", func() bool { return len(a.Observations) > 0 })
	}
	w.signIn(t, "mia").approve(t, a.ID)
}

func (w *warehouse) until(t *testing.T, a *api.Action, what string, holds func() bool) {
	t.Helper()
	eventually(t, a.ID+" to be "+what, func() bool {
		w.call(t, http.StatusOK, w.Keys.Reader, http.MethodGet, "/v1/actions/"+a.ID, "", a)
		return holds()
	})
}

// run follows the document: contracts, executor, and then propose, approve,
// execute, read back; and an answer that is lost.
func (w *warehouse) run(t *testing.T) {
	var executor *process
	for _, line := range strings.Split(containing(t, blocks(t, httpGuide, ""), "console tools apply"), "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimPrefix(line, "COUNTERSIGN_KEY=$EXECUTOR_KEY ")
		switch args := strings.Fields(line); {
		case len(args) == 0:
		case args[1] == "executor":
			executor = spawnIn(t, w.dir, environment{"COUNTERSIGN_URL": w.Console, "COUNTERSIGN_KEY": w.Keys.Executor}, args[1:]...)
		default:
			p := spawnIn(t, w.dir, environment{"COUNTERSIGN_DATA": w.data}, args[1:]...)
			if <-p.ended; !p.cmd.ProcessState.Success() || strings.Count(p.out.String(), "new") != 4 {
				t.Fatalf("%s: %s%s", line, p.out.String(), p.errs.String())
			}
		}
	}

	var price api.Action
	shell := reader{w.data, filepath.Join(w.dir, "shell")}
	shell.paste(t, containing(t, blocks(t, "docs/plug-in.md", "sh"), "demo --env"))
	if out := shell.paste(t, containing(t, blocks(t, httpGuide, "sh"), "curl")); json.Unmarshal([]byte(out), &price) != nil || price.State != "proposed" {
		t.Fatalf("proposing answers %s", out)
	}
	w.decided(t, &price)
	done := w.reaches(t, price.ID, "applied")
	var mug struct{ Price float64 }
	if w.holds(t, "/products/mug-1", &mug); mug.Price != 13.1 || w.arrived("PATCH /products/mug-1") != 1 || done.HandlerExecutions != 1 {
		t.Errorf("the price is %v after %d requests", mug.Price, w.arrived("PATCH /products/mug-1"))
	}
	if last := done.Observations[len(done.Observations)-1]; last.Tool != "warehouse.get_product" || last.Holds == nil || !*last.Holds {
		t.Errorf("not read back: %+v", done.Observations)
	}
	credit := w.approved(t, "warehouse.give_credit", `{"customer_id":"c-1","amount":5}`)
	w.reaches(t, credit.ID, "applied")
	w.losesAnAnswer(t)
	if state := executor.signal(t, syscall.SIGTERM); !state.Success() {
		t.Errorf("the executor ended with %v", state)
	}
	w.runsInGo(t)
}

// losesAnAnswer gives a credit whose answer is lost: nobody knows, a person is
// asked, and nothing is sent a second time.
func (w *warehouse) losesAnAnswer(t *testing.T) {
	t.Helper()
	before := w.arrived("POST /credits")
	w.mu.Lock()
	w.lose = true
	w.mu.Unlock()
	a := w.approved(t, "warehouse.give_credit", `{"customer_id":"c-2","amount":7}`)
	w.until(t, &a, "unknown, with a case", func() bool { return a.State == "result_unknown" && a.CaseID != nil })
	var left api.WorkList
	w.call(t, http.StatusOK, w.Keys.Executor, http.MethodGet, "/v1/work?tool=warehouse.*", "", &left)
	var credits []struct {
		Customer string `json:"customer_id"`
		Key      string `json:"execution_key"`
	}
	w.holds(t, "/credits?customer_id=c-2", &credits)
	if n := w.arrived("POST /credits") - before; n != 1 || len(left.Items) != 0 || len(a.Attempts) != 1 || a.Statement.Level != "unknown" {
		t.Errorf("after a lost answer: sent %d times, %+v is left to do, it says %+v", n, left.Items, a.Statement)
	}
	if len(credits) != 1 || credits[0].Key != a.ExecutionKey {
		t.Errorf("the service has %+v", credits)
	}
}

// runsInGo executes with the program of docs/plug-in.md.
func (w *warehouse) runsInGo(t *testing.T) {
	t.Helper()
	w.write(t, "main.go", containing(t, blocks(t, "docs/plug-in.md", "go"), "execution.New("))
	program := filepath.Join(w.dir, "executor")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(w.dir, "main.go"))
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{"COUNTERSIGN_URL=" + w.Console, "COUNTERSIGN_KEY=" + w.Keys.Executor, "WAREHOUSE_URL=" + w.door.URL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var errs output
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.lose = false
	w.mu.Unlock()
	a := w.approved(t, "warehouse.set_price", `{"product_id":"mug-1","price":14}`)
	w.reaches(t, a.ID, "applied")
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		t.Errorf("it ended with %v: %s", err, errs.String())
	}
}
