package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution"
)

// processEnv tells a process of this test binary what to serve.
const processEnv = "EXECUTOR_PROCESS"

// served is what an executor's process is told.
type served struct {
	Console, Key, BaseURL, Read, Write string
	Tools                              []string
}

// TestExecutorProcess is no test: it is the executor of the tests below.
func TestExecutorProcess(t *testing.T) {
	var s served
	raw := os.Getenv(processEnv)
	if raw == "" {
		t.Skip("it is the executor of other tests")
	}
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	executor, err := execution.New(execution.Config{Console: s.Console, Key: execution.NewSecret(s.Key), Wait: time.Second, Poll: 10 * time.Millisecond,
		StopWithin: time.Second, Systems: []execution.System{{Tools: s.Tools, BaseURL: s.BaseURL, ActorHeader: "X-Actor",
			ReadToken: execution.NewSecret(s.Read), WriteToken: execution.NewSecret(s.Write)}}},
		execution.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := executor.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// process is an executor in a process of its own.
type process struct {
	*exec.Cmd
	log  heard
	wait func() error
}

// heard is what a process has said so far.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// process starts an executor of one tool of a system, and of all its reads.
func (b *bench) process(tool string) *process {
	b.T.Helper()
	system, _, _ := strings.Cut(tool, ".")
	read, write := b.tokens.Of(system)
	raw, err := json.Marshal(served{b.console.URL, b.key, b.shop.URL + "/" + system, read, write,
		[]string{tool, system + ".get_*", system + ".may_*", system + ".lookup_*"}})
	b.must(err)
	return b.run(tool, []string{processEnv + "=" + string(raw)}, os.Args[0], "-test.run=^TestExecutorProcess$")
}

// run starts a program that is an executor of a tool, until it is killed.
func (b *bench) run(tool string, env []string, program string, args ...string) *process {
	b.T.Helper()
	p := &process{Cmd: exec.Command(program, args...)}
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = &p.log, &p.log
	b.must(p.Start())
	p.wait = sync.OnceValue(p.Wait)
	b.T.Cleanup(func() {
		p.Process.Kill()
		p.wait()
		if b.T.Failed() {
			b.T.Logf("executor of %s:\n%s", tool, p.log.String())
		}
	})
	return p
}

// kill ends the process at once, and returns when it has ended.
func (p *process) kill() {
	p.Process.Kill()
	p.wait()
}

// crash is a moment at which an executor is killed, and what comes of it.
type crash struct {
	name     string
	fault    string // of the refund desk, on the first request
	call     string // the last part of the path of a call to the console
	nth      int    // the first, the second …
	recorded bool   // it is killed after the console has recorded it, otherwise before
	attempts int    // that may have been sent, in the end
	end      action.State
	paid     float64

	order    string
	action   action.Action
	victim   chan *process // holds it from its start until it is killed
	happened chan struct{}
}

// starts gives the moment somebody to kill, whose first call may have come already.
func (c *crash) starts(p *process) { c.victim <- p }

// happens kills the victim.
func (c *crash) happens() {
	(<-c.victim).kill()
	close(c.happened)
}

// came waits until the victim has been killed.
func (b *bench) came(c *crash) {
	b.T.Helper()
	select {
	case <-c.happened:
	case <-time.After(b.patience()):
		b.T.Fatalf("%s: it never came to that: %s", c.name, story(b.get(c.action.ID)))
	}
}

func crashes() []*crash {
	const lost, reset = `"fault":"lost-request"`, `"fault":"act-then-reset"`
	done, failed := action.Applied, action.Failed
	return []*crash{
		{name: "before the claim is recorded", call: "claim", nth: 1, attempts: 1, end: done, paid: 10},
		{name: "after the claim", call: "claim", nth: 1, recorded: true, attempts: 1, end: done, paid: 10},
		{name: "after looking at the preconditions", call: "observations", nth: 1, recorded: true, attempts: 1, end: done, paid: 10},
		{name: "before the attempt is recorded", call: "attempts", nth: 1, attempts: 1, end: done, paid: 10},
		{name: "after the attempt, before sending", call: "attempts", nth: 1, recorded: true, attempts: 2, end: done, paid: 10},
		{name: "after sending, before the receipt", call: "receipts", nth: 1, attempts: 1, end: done, paid: 10},
		{name: "after the receipt, before reading back", call: "receipts", nth: 1, recorded: true, attempts: 1, end: done, paid: 10},
		{name: "while reading back", call: "observations", nth: 2, attempts: 1, end: done, paid: 10},
		{name: "after reading back", call: "observations", nth: 2, recorded: true, attempts: 1, end: done, paid: 10},
		{name: "after an unknown receipt", fault: reset, call: "receipts", nth: 1, recorded: true, attempts: 1, end: done, paid: 10},
		{name: "while asking by key", fault: reset, call: "observations", nth: 2, attempts: 1, end: done, paid: 10},
		{name: "after asking by key", fault: reset, call: "observations", nth: 2, recorded: true, attempts: 1, end: done, paid: 10},
		{name: "after asking by key, not executed", fault: lost, call: "observations", nth: 2, recorded: true, attempts: 2, end: done, paid: 10},
		{name: "after the retry's attempt, before sending", fault: lost, call: "attempts", nth: 2, recorded: true, attempts: 2, end: failed, paid: 0},
		{name: "after the retry was sent", fault: lost, call: "receipts", nth: 2, attempts: 2, end: done, paid: 10},
	}
}

// An executor that is killed between any two steps, and started again, finds
// out first: nothing takes effect twice, and what is said in the end is true.
func TestKilledBetweenAnyTwoStepsNothingIsDoneTwice(t *testing.T) {
	paced(t, func(t *trial) {
		b := newBench(t)
		b.sweeping()
		all := crashes()
		b.full("KILL", len(all))
		for i, c := range all {
			tool := fmt.Sprintf("refunds.crash_%d", i)
			b.hurried(tool)
			c.order = fmt.Sprintf("KILL-%06d", i+1)
			c.action = b.approved(tool, c.order)
			if c.fault != "" {
				b.arm(`{"object":"` + c.order + `",` + c.fault + `}`)
			}
		}
		b.killed(all, b.process)
		for _, c := range all {
			a := b.ends(c.action.ID, c.end)
			if got := b.refunded(c.order); got != c.paid {
				t.Errorf("%s: %v was paid: %s", c.name, got, story(a))
			}
			if n := b.executions("refunds", a.ExecutionKey); float64(n)*10 != c.paid {
				t.Errorf("%s: done %d times", c.name, n)
			}
			if n := b.executions("refunds", a.ExecutionKey); n > 1 {
				b.never("%s: done %d times", c.name, n)
			}
			if len(a.Attempts) != c.attempts || b.sent(a.ExecutionKey) > c.attempts {
				t.Errorf("%s: %d attempts, %d sent: %s", c.name, len(a.Attempts), b.sent(a.ExecutionKey), story(a))
			}
		}
	})
}

// killed has each action carried out by an executor that is killed at its moment,
// and then by another one.
func (b *bench) killed(all []*crash, start func(tool string) *process) {
	b.T.Helper()
	b.crashing(all)
	for _, c := range all {
		c.starts(start(c.action.Tool))
	}
	for _, c := range all {
		b.came(c)
		start(c.action.Tool)
	}
}

// crashing kills each victim at its moment.
func (b *bench) crashing(all []*crash) {
	for _, c := range all {
		c.victim, c.happened = make(chan *process, 1), make(chan struct{})
	}
	var mu sync.Mutex
	counts := map[string]int{}
	due := func(word, path string) *crash {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			about := strings.Contains(path, c.action.ID) || c.action.Confirmation != nil && strings.Contains(path, c.action.Confirmation.Ref)
			if c.call != word || !about {
				continue
			}
			if counts[c.action.ID]++; counts[c.action.ID] == c.nth {
				return c
			}
		}
		return nil
	}
	for _, word := range []string{"claim", "observations", "attempts", "receipts"} {
		b.fail(word, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			c := due(word, r.URL.Path)
			if c == nil {
				serve(w, r)
				return
			}
			if c.recorded {
				serve(httptest.NewRecorder(), r)
			}
			c.happens()
			panic(http.ErrAbortHandler)
		})
	}
}
