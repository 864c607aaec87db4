package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"countersign/execution/api"
)

const (
	demoReady      = "Ctrl-C stops everything"
	sandboxControl = "control of the sandbox"
)

// startDemo runs the demo in a process of its own and reads its demo.json.
func startDemo(t *testing.T, dir string, more ...string) (*process, demoFile) {
	t.Helper()
	return startDemoWith(t, environment{"COUNTERSIGN_SANDBOX_CONTROL": sandboxControl}, dir, more...)
}

func startDemoWith(t *testing.T, env environment, dir string, more ...string) (*process, demoFile) {
	t.Helper()
	p := spawn(t, env, append([]string{"demo", "--addr", "127.0.0.1:0", "--data", dir}, more...)...)
	p.prints(t, demoReady)
	f, found, err := readDemoFile(dir)
	if err != nil || !found {
		t.Fatalf("demo.json: %v, %v", found, err)
	}
	return p, f
}

// call calls the API and expects a status.
func (f demoFile) call(t *testing.T, status int, key, method, path string, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.Console+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "test-"+newPassword())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s answers %d %s (%v)", method, path, resp.StatusCode, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s answers %s: %v", method, path, text, err)
		}
	}
}

// reaches follows an action until it is in a state.
func (f demoFile) reaches(t *testing.T, id, state string) api.Action {
	t.Helper()
	var a api.Action
	eventually(t, id+" to be "+state, func() bool {
		f.call(t, http.StatusOK, f.Keys.Proposer, http.MethodGet, fmt.Sprintf("/v1/actions/%s?wait=2s&since=%d", id, a.Version), "", &a)
		return a.State == state
	})
	return a
}

// browser is somebody signed in, by forms alone.
type browser struct {
	*http.Client
	console string
}

func (f demoFile) signIn(t *testing.T, username string) browser {
	t.Helper()
	i := slices.IndexFunc(f.Users, func(u demoUser) bool { return u.Username == username })
	if i < 0 {
		t.Fatalf("demo.json has no %s", username)
	}
	b := f.browser(t)
	b.post(t, "/login", url.Values{"username": {username}, "password": {f.Users[i].Password}})
	return b
}

func (f demoFile) browser(t *testing.T) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return browser{&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, f.Console}
}

func (b browser) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := b.Get(b.console + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s answers %d (%v)\n%s", path, resp.StatusCode, err, text)
	}
	return string(text)
}

// post sends a form as a browser does, and expects to be sent on.
func (b browser) post(t *testing.T, path string, form url.Values) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.console+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.console)
	resp, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("POST %s answers %d\n%s", path, resp.StatusCode, text)
	}
}

// approve opens an action's page and approves what it shows.
func (b browser) approve(t *testing.T, id string) {
	t.Helper()
	page := b.get(t, "/actions/"+id)
	form := url.Values{"decision": {"approve"}}
	for _, name := range []string{"proposal_hash", "revision"} {
		m := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("the page of %s has no field %s:\n%s", id, name, page)
		}
		form.Set(name, m[1])
	}
	b.post(t, "/actions/"+id+"/decisions", form)
}

// isRead waits until an action's object was read: until then the rules may ask
// for two people.
func (f demoFile) isRead(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the object to be read", func() bool {
		var a api.Action
		f.call(t, http.StatusOK, f.Keys.Proposer, http.MethodGet, "/v1/actions/"+id, "", &a)
		return slices.ContainsFunc(a.Observations, func(o api.ObservationState) bool { return strings.Contains(o.Tool, ".get_") }) // not only whether the actor may
	})
}

var printedCurl = regexp.MustCompile(`(?s)  curl .*?\n\n`)

// pasted runs what the demo prints for pasting, and returns the action.
func pasted(t *testing.T, printed string) api.Action {
	t.Helper()
	command := printedCurl.FindString(printed)
	out, err := exec.CommandContext(t.Context(), "bash", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v: %s", command, err, out)
	}
	var a api.Action
	if err := json.Unmarshal(out, &a); err != nil || a.ID == "" {
		t.Fatalf("%s\nanswers %s (%v)", command, out, err)
	}
	return a
}

// The whole way: what is printed is pasted, a person approves, the executor
// acts on the shop and reads back; then a crash, and it all goes on.
func TestDemo(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	p, f := startDemo(t, dir, "--no-traffic")
	checkDemoFile(t, f, dir)

	a := pasted(t, p.out.String())
	if a.State != "proposed" || a.Tool != "refunds.refund_order" {
		t.Fatalf("the pasted command made %+v", a)
	}
	f.isRead(t, a.ID)
	f.signIn(t, "mia").approve(t, a.ID)
	if done := f.reaches(t, a.ID, "applied"); len(done.Receipts) != 1 || done.HandlerExecutions != 1 || done.Receipts[0].Outcome != "SUCCESS" {
		t.Errorf("done as %+v", done)
	}
	checkLinks(t, f, p.out.String())
	checkVariables(t, f, p.out.String())
	checkCallback(t, f)
	checkGuide(t, f)

	// Killed with a decision on record and another proposal waiting.
	var waiting api.Action
	f.call(t, http.StatusCreated, f.Keys.Proposer, http.MethodPost, "/v1/actions",
		`{"tool":"bank.transfer_funds","actor":{"id":"u-1"},"target":{"type":"account","id":"DE1"},"payload":{"from_account":"a","to_account":"DE1","amount":5}}`, &waiting)
	p.signal(t, syscall.SIGKILL)
	p, g := startDemo(t, dir, "--no-traffic")
	if f.Keys != g.Keys || !slices.EqualFunc(f.Users, g.Users, func(a, b demoUser) bool { return a.Username == b.Username && a.Password == b.Password }) {
		t.Errorf("after a restart demo.json says %+v, before %+v", g, f)
	}
	g.reaches(t, a.ID, "applied")
	g.signIn(t, "jonas").approve(t, waiting.ID)
	if left := g.reaches(t, waiting.ID, "confirmed"); len(left.Attempts) != 0 {
		t.Errorf("somebody executed a tool that the sandbox does not have: %+v", left)
	}
	if out := works(t, nil, "", "fold", "--check", "--data", dir); !strings.Contains(out, " 0 differences") {
		t.Errorf("fold says %s", out)
	}

	if state := p.signal(t, syscall.SIGINT); state.ExitCode() != exitOK {
		t.Errorf("Ctrl-C ended it with %v\n%s", state, p.errs.String())
	}
	eventually(t, "every process of it to end", func() bool {
		left, _ := exec.Command("pgrep", "-f", dir).Output() // it fails where it finds none
		return len(left) == 0
	})
}

// checkVariables pastes the printed command for variables into a shell.
func checkVariables(t *testing.T, f demoFile, printed string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^  eval .*$`).FindString(printed)
	shell := exec.Command("sh", "-c", strings.Replace(line, "go run ./cmd/console", shellQuoted(os.Args[0]), 1)+`; echo "$CONSOLE $PROPOSER_KEY $ADMIN_KEY"`)
	shell.Env = append(os.Environ(), asProgram+"=1")
	if out, err := shell.CombinedOutput(); err != nil || string(out) != f.Console+" "+f.Keys.Proposer+" "+f.Keys.Admin+"\n" {
		t.Errorf("%s sets %s (%v)", line, out, err)
	}
	for _, word := range []string{"", "/var/lib/demo", "with room", "it's", "$HOME`id`", "ü"} {
		if out, err := exec.Command("sh", "-c", "printf %s "+shellQuoted(word)).Output(); err != nil || string(out) != word {
			t.Errorf("%q becomes %q (%v)", word, out, err)
		}
	}
}

func checkDemoFile(t *testing.T, f demoFile, dir string) {
	t.Helper()
	info, err := os.Stat(demoPath(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("demo.json: %v, %v", info.Mode(), err)
	}
	count := map[string]int{}
	for _, u := range f.Users {
		for _, r := range u.Roles {
			count[r]++
		}
		f.signIn(t, u.Username).get(t, "/account")
	}
	if count["support"] != 2 || count["ops"] != 2 || count["auditor"] != 1 || count["admin"] != 1 {
		t.Errorf("roles: %v", count)
	}
	for role, key := range map[string]string{"proposer": f.Keys.Proposer, "executor": f.Keys.Executor, "reader": f.Keys.Reader, "admin": f.Keys.Admin} {
		f.call(t, http.StatusOK, key, http.MethodGet, "/v1/tools", "", nil)
		if role == "admin" {
			f.call(t, http.StatusCreated, key, http.MethodPut, "/v1/tools/try.one", `{"name":"try.one","description":"d","inputSchema":{"type":"object"}}`, nil)
		}
	}
	if status, _ := get(t, f.Sandbox+"/catalog/health"); status != http.StatusOK && status != http.StatusUnauthorized {
		t.Errorf("the sandbox answers %d", status)
	}
	if out := works(t, nil, "", "demo", "--env", "--data", dir); !strings.Contains(out, "export PROPOSER_KEY="+f.Keys.Proposer+"\n") || !strings.HasSuffix(out, "export COUNTERSIGN_DATA='"+dir+"'\n") {
		t.Errorf("--env prints %s", out)
	}
}

// checkCallback refunds an order whose bank takes its time: the sandbox accepts,
// and tells the console when it is done.
func checkCallback(t *testing.T, f demoFile) {
	t.Helper()
	var a api.Action
	f.call(t, http.StatusCreated, f.Keys.Proposer, http.MethodPost, "/v1/actions",
		`{"tool":"refunds.refund_order","actor":{"id":"u-anna-schmidt"},"payload":{"order_id":"10094","amount":9.5,"reason":"late"}}`, &a)
	f.isRead(t, a.ID)
	f.signIn(t, "mia").approve(t, a.ID)
	f.reaches(t, a.ID, "applied")
	eventually(t, "the callback to be taken", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.Sandbox+"/faults/callbacks?key="+a.ExecutionKey, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+sandboxControl)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), `"delivered":1`) && strings.Contains(string(text), `"last_status":200`)
	})
}

// checkLinks opens every printed link: looking uses none up, the button does.
func checkLinks(t *testing.T, f demoFile, printed string) {
	t.Helper()
	links := regexp.MustCompile(`(?m)^  (support|ops|auditor|admin) +\w+ +http://[^/]+(/login/\S+)$`).FindAllStringSubmatch(printed, -1)
	if len(links) != 4 {
		t.Fatalf("%d sign-in links in\n%s", len(links), printed)
	}
	for _, link := range links {
		b := f.browser(t)
		b.get(t, link[2])
		b.get(t, link[2])
		b.post(t, link[2], nil)
		if page := b.get(t, "/account"); page == "" {
			t.Errorf("the link of %s signs nobody in", link[1])
		}
	}
}

// With the agent there is something to look at from the first moment.
func TestDemoAgent(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	_, f := startDemo(t, dir)
	var list api.List[api.Action]
	f.call(t, http.StatusOK, f.Keys.Reader, http.MethodGet, "/v1/actions?limit=50", "", &list)
	tools := map[string]int{}
	for _, a := range list.Items {
		if tools[a.Tool]++; a.TaskID == nil || *a.TaskID != *list.Items[0].TaskID {
			t.Errorf("%s belongs to the task %v", a.Tool, a.TaskID)
		}
	}
	for _, tool := range []string{"notes.save_minutes", "service.submit_request", "ledger.sign_off", "messages.send_to_conversation", "deliveries.check_delivery"} {
		if tools[tool] != 1 {
			t.Errorf("%s was proposed %d times at the start", tool, tools[tool])
		}
	}
	if tools["catalog.set_price"] != 2 || tools["refunds.refund_order"] != 1 || tools["bank.transfer_funds"] != 1 || tools["orders.cancel_order"] != 1 || tools["mail.send_message"] != 1 {
		t.Errorf("at the start the agent proposed %v", tools)
	}
	for _, a := range list.Items {
		if a.Tool == "catalog.set_price" {
			eventually(t, "the executor to read the price of today", func() bool {
				var now api.Action
				f.call(t, http.StatusOK, f.Keys.Reader, http.MethodGet, "/v1/actions/"+a.ID, "", &now)
				return len(now.Observations) > 0
			})
		}
	}
}
