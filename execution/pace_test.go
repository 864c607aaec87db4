package execution_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// paces are how many times as long the short times of a contract are, try by
// try.
var paces = []int{1, 3, 5}

// trial is one try of a test in which times are over: of an answer, a lease, a
// fence. They are short, or the test would be long; where a machine is busy they
// are over for steps that are none of the test's business. Then what comes about
// is right and not what the test is about, and it is tried again with longer
// times. What is wrong at every pace is wrong.
type trial struct {
	testing.TB // of the test
	pace       int
	ctx        context.Context

	mu     sync.Mutex
	failed bool
	said   []string
	ends   []func()
}

// paced tries a test at one pace after the other, until it holds.
func paced(t *testing.T, test func(t *trial)) {
	t.Helper()
	for _, pace := range paces {
		ctx, cancel := context.WithCancel(t.Context())
		try := &trial{TB: t, pace: pace, ctx: ctx}
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer try.end()
			defer cancel()
			test(try)
		}()
		<-over
		if !try.Failed() {
			return
		}
		t.Logf("with times %d times as long:\n%s", pace, strings.Join(try.all(), "\n"))
	}
	t.Error("it holds at no pace")
}

// end does what is left to do in the end, the last first.
func (t *trial) end() {
	if len(t.ends) == 0 {
		return
	}
	last := t.ends[len(t.ends)-1]
	t.ends = t.ends[:len(t.ends)-1]
	defer t.end()
	last()
}

func (t *trial) say(failed bool, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, strings.TrimSuffix(text, "\n"))
	t.failed = t.failed || failed
}

func (t *trial) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said
}

// What a test says and does through the testing package is of this try alone.

func (t *trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

func (t *trial) Context() context.Context        { return t.ctx }
func (t *trial) Cleanup(f func())                { t.ends = append(t.ends, f) }
func (t *trial) Log(args ...any)                 { t.say(false, fmt.Sprintln(args...)) }
func (t *trial) Logf(form string, args ...any)   { t.say(false, fmt.Sprintf(form, args...)) }
func (t *trial) Error(args ...any)               { t.say(true, fmt.Sprintln(args...)) }
func (t *trial) Errorf(form string, args ...any) { t.say(true, fmt.Sprintf(form, args...)) }
func (t *trial) Fail()                           { t.say(true, "failed") }
func (t *trial) FailNow()                        { t.Fail(); runtime.Goexit() }
func (t *trial) Fatal(args ...any)               { t.Error(args...); runtime.Goexit() }
func (t *trial) Fatalf(form string, args ...any) { t.Errorf(form, args...); runtime.Goexit() }

// at is a short time at the pace of the test.
func (b *bench) at(d time.Duration) time.Duration { return time.Duration(b.pace) * d }

// never fails the test at any pace: it says of something that is wrong on however
// slow a machine.
func (b *bench) never(form string, args ...any) {
	b.T.Helper()
	if try, ok := b.T.(*trial); ok {
		try.TB.Errorf(form, args...)
	}
	b.T.Errorf(form, args...)
}

// patience bounds what a test waits for. A try that may be followed by a slower
// one is given up sooner.
func (b *bench) patience() time.Duration {
	if try, ok := b.T.(*trial); ok && try.pace < paces[len(paces)-1] {
		return time.Minute * time.Duration(try.pace)
	}
	return 4 * time.Minute
}
