package execution_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/store"
)

// python runs the executor of the guide for a tool until it is killed.
func (b *bench) python(tool string) (kill func()) {
	b.T.Helper()
	cmd := exec.Command("python3", "../docs/executor.py", tool, "refunds.get_*")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "COUNTERSIGN_URL="+b.console.URL, "COUNTERSIGN_KEY="+b.key,
		"SYSTEM_URL="+b.shop.URL+"/refunds", "SYSTEM_READ_TOKEN="+b.tokens.RefundsRead, "SYSTEM_WRITE_TOKEN="+b.tokens.RefundsWrite)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	b.must(cmd.Start())
	kill = sync.OnceFunc(func() {
		b.must(cmd.Process.Kill())
		cmd.Wait() // it was killed
		if strings.Contains(said.String(), "Traceback") || b.T.Failed() {
			b.T.Errorf("the executor said:\n%s", said.String())
		}
	})
	b.T.Cleanup(kill)
	return kill
}

// The executor of the guide, in another language, runs refunds while requests
// and answers are lost, late, doubled or refused, and is killed twice in the
// middle of one: nothing is paid twice, nothing is lost, and no word is said
// beyond what happened.
func TestExecutorInPython_NothingIsLostOrDoubled(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute")
	}
	orSkipPython(t)
	t.Parallel()
	const tool, refunds = "refunds.python", 60
	b := newBench(t)
	b.hurried(tool, "max_polls: 6", "max_polls: 4", "{ when: \"true\", role: support, approvals: 1 }", "{ when: \"true\", role: support, approvals: 2 }")
	b.sweeping()
	b.shopDo("POST", "/faults/orders", b.tokens.Control, fmt.Sprintf(`{"prefix":"PY","count":%d,"amount":30}`, refunds)) // enough to be paid twice
	order := func(i int) string { return fmt.Sprintf("PY-%06d", i+1) }
	b.spoil(refunds, order, 21, 41)
	var actions []action.Action
	propose := func(from, to int) {
		for i := from; i < to; i++ {
			actions = append(actions, b.approved(tool, order(i)))
		}
	}
	propose(0, 22)
	for _, i := range []int{21, 41} {
		kill := b.python(tool)
		b.eventually("an attempt that is under way", func() bool {
			a := b.get(actions[i].ID)
			return len(a.Attempts) == 1 && a.Attempts[0].Outcome == ""
		})
		kill()
		propose(len(actions), min(i+20+1, refunds))
	}
	propose(len(actions), refunds)
	b.python(tool)
	b.python(tool) // from now on two of them share the work
	ends := map[action.State]int{}
	for i, a := range actions {
		b.eventually(order(i)+" to come to an end", func() bool {
			a = b.get(a.ID)
			return a.State.In(action.Applied, action.Failed) || a.State == action.ResultUnknown && a.CaseID() != "" && a.Exhausted()
		})
		b.judge(order(i), a)
		ends[a.State]++
	}
	_, err := b.DB.FoldCheck(t.Context(), "", func(d store.Difference) { t.Errorf("the events say otherwise: %+v", d) })
	b.must(err)
	if ends[action.Applied] < 40 || ends[action.Failed] < 3 {
		t.Errorf("it ended as %v: this shows little", ends)
	}
	for _, i := range []int{21, 41} {
		if a := b.get(actions[i].ID); len(a.Asks) == 0 || a.State != action.Applied || b.sent(a.ExecutionKey) != 1 {
			t.Errorf("killed in the middle: %s, sent %d times", story(a), b.sent(a.ExecutionKey))
		}
	}
}

// spoil arms a fault for every second order, and makes those slow in the middle
// of which the executor is killed.
func (b *bench) spoil(refunds int, order func(int) string, killed ...int) {
	b.T.Helper()
	faults := []string{`"lost-request"`, `"act-then-reset"`, `"error-before","status":503`, `"error-after"`, `"too-many"`, `"act-then-delay","delay_ms":1600`,
		`"malformed"`, `"duplicate"`, `"delay-then-act","delay_ms":1300`, `"error-before","status":404`}
	for i := range refunds {
		if i%2 == 0 {
			b.arm(fmt.Sprintf(`{"system":"refunds","object":%q,"fault":%s}`, order(i), faults[i/2%len(faults)]))
		}
	}
	for _, i := range killed {
		b.arm(fmt.Sprintf(`{"system":"refunds","object":%q,"fault":"act-then-delay","delay_ms":3000}`, order(i)))
	}
}

// answeredLate lets the first call take effect, and answers when something holds.
func (b *bench) answeredLate(what string, holds func() bool) fault {
	return once(1, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		answer := httptest.NewRecorder()
		serve(answer, r)
		b.eventually(what, holds)
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes()) // whoever asked may be gone
	})
}

// What it learns too late it does not act on: when its lease has lapsed it lets
// go, and when the time to send is over it says that nothing was sent.
func TestExecutorInPython_DoesNotSendLate(t *testing.T) {
	orSkipPython(t)
	t.Parallel()
	const tool = "refunds.python_late"
	b := newBench(t)
	b.hurried(tool)
	b.sweeping()
	b.full("LATE", 2)
	lapsed := b.approved(tool, "LATE-000001")
	b.fail("observations", b.answeredLate("the lease to lapse", func() bool { return b.get(lapsed.ID).State == action.Confirmed }))
	b.python(tool)
	if a := b.ends(lapsed.ID, action.Applied); len(a.Attempts) != 1 || b.sent(a.ExecutionKey) != 1 {
		t.Errorf("after a lapsed lease: sent %d times: %s", b.sent(a.ExecutionKey), story(a))
	}

	late := b.approved(tool, "LATE-000002")
	b.fail("attempts", b.answeredLate("the time to send to be over", func() bool {
		a := b.get(late.ID)
		return len(a.Attempts) > 0 && time.Now().After(a.Attempts[0].SendBy.Add(100*time.Millisecond))
	}))
	b.eventually("the refund to come to an end", func() bool { return b.get(late.ID).State.In(action.Applied, action.Failed) })
	a := b.get(late.ID)
	if a.Attempts[0].Outcome != action.Failure || a.Receipts[0].Code != action.NotSent || b.sent(a.ExecutionKey) != len(a.Attempts)-1 {
		t.Errorf("after the time to send: sent %d times: %s", b.sent(a.ExecutionKey), story(a))
	}
	b.judge("LATE-000002", a)
}

// orSkipPython ends the test where there is no Python; where CI is set there
// has to be one.
func orSkipPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") == "" {
		t.Skip("python3 is missing here, and make check installs it")
	}
}

// judge holds an action against what the refund desk did.
func (b *bench) judge(order string, a action.Action) {
	b.T.Helper()
	paid, done := b.refunded(order), b.executions("refunds", a.ExecutionKey)
	switch {
	case paid != 0 && paid != 10 || done > 1:
		b.T.Errorf("doubled: %s was paid %v in %d executions: %s", order, paid, done, story(a))
	case a.State == action.Applied && paid == 0, a.State == action.Failed && paid != 0:
		b.T.Errorf("overstated: %s is %s and was paid %v: %s", order, a.State, paid, story(a))
	}
}
