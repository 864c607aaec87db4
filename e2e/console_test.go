package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// console is a running program.
type console struct {
	url, dir string
	env      []string // beside what every program gets
	Console  string
	Sandbox  string
	Users    []struct {
		Username, Password string
		Roles              []string
	}
	Keys struct{ Proposer, Executor, Reader, Admin string }
}

// printed is what a program prints, readable while it runs.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *printed) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *printed) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts the program in a folder of its own, with env beside what every
// program gets, and waits until it prints what ready matches.
func (s *shared) launch(env []string, ready *regexp.Regexp, args ...string) (dir string, found []string, err error) {
	program, err := s.program()
	if err != nil {
		return "", nil, err
	}
	if dir, err = s.folder(); err != nil {
		return "", nil, err
	}
	var out printed
	cmd := exec.Command(program, append(args, "--addr", "127.0.0.1:0", "--data", dir)...)
	cmd.Env = append(ordinary(), env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended, stopping := make(chan struct{}), make(chan struct{})
	go func() {
		err := cmd.Wait()
		select {
		case <-stopping:
		default:
			fmt.Fprintf(os.Stderr, "console %s ended by itself: %v\n%s", args[0], err, out.String())
		}
		close(ended)
	}()
	s.atEnd(func() {
		close(stopping)
		cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience):
			cmd.Process.Kill()
		}
	})
	deadline := time.After(patience)
	for {
		if found = ready.FindStringSubmatch(out.String()); found != nil {
			return dir, found, nil
		}
		select {
		case <-ended:
			return "", nil, fmt.Errorf("console %s ended: %s", args[0], out.String())
		case <-deadline:
			return "", nil, fmt.Errorf("console %s was not ready in %s: %s", args[0], patience, out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *shared) startDemo() (*console, error) {
	dir, _, err := s.launch(nil, regexp.MustCompile("Ctrl-C stops everything"), "demo", "--no-traffic")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		return nil, err
	}
	c := &console{dir: dir}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, err
	}
	c.url = c.Console
	return c, nil
}

// ordinary is the environment that every program gets.
func ordinary() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} }

// serve starts an empty console of one's own.
func serve(t *testing.T, env ...string) *console {
	t.Helper()
	dir, found, err := here.launch(env, regexp.MustCompile(`public-url +(http://\S+)`), "serve")
	if err != nil {
		t.Fatal(err)
	}
	return &console{url: found[1], dir: dir, env: env}
}

// admin runs a command of the program on the console's database.
func (c *console) admin(t *testing.T, args ...string) string {
	t.Helper()
	program, err := here.program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append(args, "--data", c.dir)...)
	cmd.Env = append(ordinary(), c.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("console %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// unique is a word that no other test uses.
func unique(prefix string) string {
	return prefix + strings.ToLower(action.NewSecret(5))
}

// person makes somebody with a role, for these tools only when any are given,
// and returns their username and the path of a link that signs them in once.
func (c *console) person(t *testing.T, role string, tools ...string) (username, link string) {
	t.Helper()
	username = unique(role + "-")
	args := []string{"user", "add", username, "--role", role, "--public-url", c.url}
	for _, tool := range tools {
		args = append(args, "--tool", tool)
	}
	out := c.admin(t, args...)
	path := regexp.MustCompile(`https?://[^/\s]+(/login/\S+)`).FindStringSubmatch(out)
	if path == nil {
		t.Fatalf("no link in %s", out)
	}
	return username, path[1]
}

// password is that of one of the demo's people.
func (c *console) password(t *testing.T, username string) string {
	t.Helper()
	for _, u := range c.Users {
		if u.Username == username {
			return u.Password
		}
	}
	t.Fatalf("demo.json has no %s", username)
	return ""
}

// call calls the API, and reads the answer into into unless it is nil.
func (c *console) call(t *testing.T, want int, key, method, path string, body, into any, header ...string) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, c.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", unique("k"))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s answers %d %s (%v), want %d", method, path, resp.StatusCode, answer, err, want)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatalf("%s %s answers %s: %v", method, path, answer, err)
		}
	}
}

// propose proposes as the demo's agent does.
func (c *console) propose(t *testing.T, p api.Propose) api.Action {
	t.Helper()
	if p.Actor == nil {
		name := "Anna Schmidt"
		p.Actor = &api.Actor{ID: "u-anna-schmidt", Name: &name}
	}
	var a api.Action
	c.call(t, http.StatusCreated, c.Keys.Proposer, http.MethodPost, "/v1/actions", p, &a)
	return a
}

// revise replaces an action's content.
func (c *console) revise(t *testing.T, a api.Action, payload string) api.Action {
	t.Helper()
	var b api.Action
	c.call(t, http.StatusCreated, c.Keys.Proposer, http.MethodPost, "/v1/actions/"+a.ID+"/revisions",
		api.Revise{Payload: json.RawMessage(payload)}, &b, "If-Match", fmt.Sprintf(`"%d"`, a.Version))
	return b
}

func (c *console) read(t *testing.T, id string) api.Action {
	t.Helper()
	var a api.Action
	c.call(t, http.StatusOK, c.Keys.Reader, http.MethodGet, "/v1/actions/"+id, nil, &a)
	return a
}

// reaches waits until an action is in a state.
func (c *console) reaches(t *testing.T, id, state string) api.Action {
	t.Helper()
	var a api.Action
	eventually(t, id+" to be "+state, func() bool {
		a = c.read(t, id)
		return a.State == state
	})
	return a
}

// stays checks that an action is as it was.
func (c *console) stays(t *testing.T, was api.Action) {
	t.Helper()
	if now := c.read(t, was.ID); now.State != was.State || now.Version != was.Version {
		t.Fatalf("%s was %s at version %d, and is %s at %d", was.ID, was.State, was.Version, now.State, now.Version)
	}
}
