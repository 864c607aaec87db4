package main

import (
	"bytes"
	"context"
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/store/storetest"
)

// asProgram makes this test binary be the program itself, for tests that need
// a process to signal or to kill.
const asProgram = "COUNTERSIGN_TEST_AS_PROGRAM"

// patience bounds what a test waits for.
const patience = 4 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main() // ends the process
	}
	os.Exit(storetest.Run(m))
}

// environment is what a command sees beside its flags.
type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// console runs a command to its end, in this process.
func console(t *testing.T, env environment, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var o, e bytes.Buffer
	code = run(ctx, args, env.get, strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

// works runs a command that has to succeed and returns what it prints.
func works(t *testing.T, env environment, in string, args ...string) string {
	t.Helper()
	code, out, errs := console(t, env, in, args...)
	if code != exitOK {
		t.Fatalf("console %s ended with %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// onDatabase is an environment with a migrated database of its own.
func onDatabase(t *testing.T) environment {
	t.Helper()
	return environment{"DATABASE_URL": storetest.Owner(storetest.New(t))}
}

// emptyDatabase makes a database without any schema and returns its owner's URL.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	template := storetest.Owner(storetest.New(t))
	u, err := url.Parse(template)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("postgres", template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	name := strings.TrimPrefix(u.Path, "/") + "_empty"
	if _, err := db.Exec(`CREATE DATABASE ` + name + ` TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec(`DROP DATABASE ` + name + ` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

// dataFolder is a folder that PostgreSQL's account may pass through, which
// those of t.TempDir are not.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "countersign-console-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// output is what a program prints, readable while it is still printing.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is the program in a process of its own.
type process struct {
	cmd       *exec.Cmd
	out, errs output
	ended     chan struct{}
}

// spawn starts the program; env is added to what it needs to start at all.
func spawn(t *testing.T, env environment, args ...string) *process {
	t.Helper()
	return spawnIn(t, "", env, args...)
}

// spawnIn starts the program in a folder.
func spawnIn(t *testing.T, dir string, env environment, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Dir = dir
	p.cmd.Env = append(p.cmd.Env, asProgram+"=1", "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"))
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait() // how it ended is asked of ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// prints waits until the program has printed a text.
func (p *process) prints(t *testing.T, text string) {
	t.Helper()
	eventually(t, "the program to print "+text, func() bool {
		select {
		case <-p.ended:
			t.Fatalf("the program ended with %v\n%s%s", p.cmd.ProcessState, p.out.String(), p.errs.String())
		default:
		}
		return strings.Contains(p.out.String(), text)
	})
}

// signal sends a signal and waits for the end.
func (p *process) signal(t *testing.T, s os.Signal) *os.ProcessState {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%v did not end the program\n%s%s", s, p.out.String(), p.errs.String())
	}
	return p.cmd.ProcessState
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
