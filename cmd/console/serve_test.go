package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// goodSecret is what COUNTERSIGN_SECRET may be.
func goodSecret() string {
	return base64.StdEncoding.EncodeToString([]byte("a secret of 32 bytes for a test."))
}

// get reads a page or an answer.
func get(t *testing.T, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

var publicURL = regexp.MustCompile(`public-url +(http://\S+)`)

// served runs "serve" in this process until the test ends, or stop is called,
// which returns the exit code.
func served(t *testing.T, env environment, args ...string) (url string, out *output, stop func() int) {
	t.Helper()
	url, run := servedAt(t, env, publicURL, args...)
	return url, &run.out, run.stop
}

// running is "serve" in this process.
type running struct {
	out, errs output
	stop      func() int
}

// servedAt is served, and finds the address in what is printed.
func servedAt(t *testing.T, env environment, address *regexp.Regexp, args ...string) (string, *running) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), env.get, strings.NewReader(""), &r.out, &r.errs)
	}()
	r.stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { r.stop() })
	eventually(t, "the console to serve", func() bool {
		if len(ended) > 0 {
			t.Fatalf("serve ended with %d\n%s%s", r.stop(), r.out.String(), r.errs.String())
		}
		return address.MatchString(r.out.String())
	})
	return address.FindStringSubmatch(r.out.String())[1], r
}

func TestServeOnAServerOfOnesOwn(t *testing.T) {
	env := onDatabase(t)
	env["COUNTERSIGN_SECRET"] = goodSecret()
	url, out, stop := served(t, env)
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text := get(t, url+path); status != http.StatusOK {
			t.Errorf("%s answers %d %s", path, status, text)
		}
	}
	if status, _ := get(t, url+"/demo"); status != http.StatusNotFound {
		t.Errorf("a console that is no demo has a guide: %d", status)
	}
	if strings.Contains(out.String(), env["COUNTERSIGN_SECRET"]) || !strings.Contains(out.String(), "set, from COUNTERSIGN_SECRET") {
		t.Errorf("the summary:\n%s", out.String())
	}
	if code := stop(); code != exitOK {
		t.Errorf("ended with %d", code)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		conn.Close()
		t.Error("it still listens after it ended")
	}
}

// Whoever waits when the console stops is answered, not cut off.
func TestStopAnswersWhoWaits(t *testing.T) {
	env := onDatabase(t)
	env["COUNTERSIGN_SECRET"] = goodSecret()
	works(t, env, "", "user", "add", "admin", "--role", "admin")
	key := keyText.FindString(works(t, env, "", "client", "add", "executor", "--role", "executor", "--owner", "admin"))
	url, _, stop := served(t, env)
	answered := make(chan int, 1)
	go func() {
		status, _ := get(t, url+"/v1/work?wait=60s", "Authorization", "Bearer "+key)
		answered <- status
	}()
	eventually(t, "the executor to be seen", func() bool { return !strings.Contains(works(t, env, "", "client", "list"), "never") })
	if code := stop(); code != exitOK {
		t.Errorf("ended with %d", code)
	}
	if status := <-answered; status != http.StatusOK {
		t.Errorf("who waited was answered %d", status)
	}
}

func TestServeWantsASecret(t *testing.T) {
	env := onDatabase(t)
	if errs := fails(t, env, "", "serve", "--addr", "127.0.0.1:0"); !strings.Contains(errs, "openssl rand -base64 32") {
		t.Errorf("it says %q", errs)
	}
	env["COUNTERSIGN_SECRET"] = base64.StdEncoding.EncodeToString([]byte("too short"))
	if errs := fails(t, env, "", "serve", "--addr", "127.0.0.1:0"); !strings.Contains(errs, "at least 32") {
		t.Errorf("it says %q", errs)
	}
}

func TestOldSchemaIsRefusedThenMigrated(t *testing.T) {
	env := environment{"DATABASE_URL": emptyDatabase(t), "COUNTERSIGN_SECRET": goodSecret()}
	for _, line := range []string{"serve --addr 127.0.0.1:0", "user list", "fold --check"} {
		if errs := fails(t, env, "", strings.Fields(line)...); !strings.Contains(errs, "console migrate") {
			t.Errorf("console %s says %q", line, errs)
		}
	}
	_, want, err := schemaVersion(t.Context(), env["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	if out := works(t, env, "", "migrate"); !strings.Contains(out, fmt.Sprintf("schema 0 → %d", want)) {
		t.Errorf("migrate says %q", out)
	}
	if out := works(t, env, "", "migrate"); !strings.Contains(out, "nothing to do") {
		t.Errorf("migrate again says %q", out)
	}
	if out := works(t, env, "", "fold", "--check"); !strings.Contains(out, "0 actions, 0 events, 0 differences") {
		t.Errorf("fold says %q", out)
	}
}

func TestServeMigratesWhenTold(t *testing.T) {
	env := environment{"DATABASE_URL": emptyDatabase(t), "COUNTERSIGN_SECRET": goodSecret()}
	_, _, stop := served(t, env, "--migrate")
	if code := stop(); code != exitOK {
		t.Errorf("ended with %d", code)
	}
	if have, want, err := schemaVersion(t.Context(), env["DATABASE_URL"]); err != nil || have != want {
		t.Errorf("schema %d of %d, %v", have, want, err)
	}
}

func TestTakenPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, command := range []string{"serve", "demo"} {
		errs := fails(t, environment{"HOME": t.TempDir()}, "", command, "--data", t.TempDir(), "--addr", ln.Addr().String())
		if !strings.Contains(errs, "taken by another program") || !strings.Contains(errs, "--addr 127.0.0.1:0") {
			t.Errorf("%s says %q", command, errs)
		}
	}
}

// Administration goes on while a console runs PostgreSQL of its own, and after
// it was killed.
func TestServeOnOurOwnPostgreSQL(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	data := []string{"--data", dir}
	works(t, nil, "", append([]string{"user", "add", "admin", "--role", "admin"}, data...)...)
	for round, last := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		p := spawn(t, nil, append([]string{"serve", "--addr", "127.0.0.1:0", "--log", "json"}, data...)...)
		p.prints(t, "secret")
		url := publicURL.FindStringSubmatch(p.out.String())[1]
		if status, text := get(t, url+"/readyz"); status != http.StatusOK {
			t.Errorf("round %d: /readyz answers %d %s", round, status, text)
		}
		name := fmt.Sprintf("person%d", round)
		works(t, nil, "", append([]string{"user", "add", name, "--role", "ops"}, data...)...)
		if out := works(t, nil, "", append([]string{"user", "list"}, data...)...); !strings.Contains(out, name) || !strings.Contains(out, "admin") {
			t.Errorf("round %d: the list says\n%s", round, out)
		}
		if code, _, errs := console(t, nil, "", append([]string{"serve", "--addr", "127.0.0.1:0"}, data...)...); code != exitFailed || !strings.Contains(errs, "in use") {
			t.Errorf("round %d: a second console: %d %s", round, code, errs)
		}
		if state := p.signal(t, last); last == syscall.SIGTERM && state.ExitCode() != exitOK {
			t.Errorf("ended with %v\n%s", state, p.errs.String())
		}
		for _, line := range strings.Split(strings.TrimSpace(p.errs.String()), "\n") {
			if !strings.HasPrefix(line, "{") {
				t.Errorf("not JSON in the log: %s", line)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, runningFile)); err == nil {
		t.Error("after an orderly stop the database's address is still noted")
	}
}

// A console whose PostgreSQL dies does not go on as if nothing were wrong.
func TestPostgreSQLDies(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	p := spawn(t, nil, "serve", "--addr", "127.0.0.1:0", "--data", dir)
	p.prints(t, "secret")
	text, err := os.ReadFile(filepath.Join(dir, clusterDir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := bytes.Cut(text, []byte("\n"))
	var server int
	if _, err := fmt.Sscan(string(pid), &server); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the console to end", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	if p.cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(p.errs.String(), errDatabaseEnded.Error()) {
		t.Errorf("ended with %v\n%s", p.cmd.ProcessState, p.errs.String())
	}
}
