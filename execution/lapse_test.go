package execution_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"countersign/action"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

const hurried = "refunds.hurried"

// held lets the first call wait until the gate opens, and any other through.
func held(g gateway) fault {
	return once(1, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		<-g.open
		serve(w, r)
	})
}

// lapsing is a bench on which leases lapse, with one approved refund.
func lapsing(t testing.TB, fault string, replace ...string) (*bench, action.Action) {
	b := newBench(t)
	b.sweeping()
	b.hurried(hurried, replace...)
	b.full("LAPSE", 1)
	if fault != "" {
		b.arm(fault)
	}
	return b, b.approved(hurried, "LAPSE-000001")
}

// paidOnce checks that it was paid once and never more.
func (b *bench) paidOnce(a action.Action) {
	b.T.Helper()
	switch n, paid := b.executions("refunds", a.ExecutionKey), b.refunded("LAPSE-000001"); {
	case n > 1 || paid > 10:
		b.never("done %d times, %v paid: %s", n, paid, story(a))
	case n != 1 || paid != 10:
		b.T.Errorf("done %d times, %v paid: %s", n, paid, story(a))
	}
}

// lateReceipt reports of an attempt after all is over.
func (b *bench) lateReceipt(a action.Action, t action.Attempt, o action.Outcome, status int) action.Action {
	b.T.Helper()
	r := stage.Receipt(t.ID, t.ClaimID, o)
	r.HTTPStatus = status
	snap, err := b.Triage.Report(b.T.Context(), b.Executor, a.ID, r)
	b.must(err)
	return snap.Action
}

// The first attempt is done, but its executor hangs until its lease is over.
// Another one finds out; what the first says later changes nothing.
func TestLapsedLease_SlowFirstAttempt(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, "")
		g, open := newGateway(t)
		b.fail("receipts", held(g))
		b.fail("lease", neverArrives)
		b.start(b.serving(hurried))
		b.ends(a.ID, action.ResultUnknown)
		b.start(b.serving(hurried))
		a = b.ends(a.ID, action.Applied)
		open()
		b.eventually("the late receipt", func() bool { return len(b.get(a.ID).Receipts) == 1 })
		a = b.get(a.ID)
		b.paidOnce(a)
		if a.State != action.Applied || len(a.Attempts) != 1 || a.CaseID() != "" {
			t.Errorf("%s", story(a))
		}
	})
}

// The first request is on its way for longer than anybody waits; asked by key,
// nothing was executed, so it is sent once more, and that is what is done. Then
// the first arrives.
func TestLapsedLease_ReleasedRetryWithALateSuccess(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"delay-then-act","delay_ms":6000}`)
		g, open := newGateway(t)
		b.fail("receipts", held(g))
		b.fail("lease", neverArrives)
		b.start(b.serving(hurried))
		b.ends(a.ID, action.ResultUnknown)
		b.start(b.serving(hurried))
		a = b.ends(a.ID, action.Applied)
		if len(a.Attempts) != 2 {
			t.Errorf("%s", story(a))
		}
		b.eventually("the first request to be answered", func() bool {
			answered := 0
			for _, c := range b.calls("system=refunds&key=" + a.ExecutionKey) {
				if c.Method == http.MethodPost && c.Status != nil && *c.Status == http.StatusOK {
					answered++
				}
			}
			return answered == 2
		})
		open()
		b.eventually("the late receipt", func() bool { return len(b.get(a.ID).Receipts) == 2 })
		a = b.lateReceipt(a, a.Attempts[0], action.Success, http.StatusOK)
		b.paidOnce(a)
		if a.State != action.Applied || a.CaseID() != "" {
			t.Errorf("%s", story(a))
		}
	})
}

// The desk has forgotten the key: the retry finds the order refunded already
// and is refused. That refusal is no failure while the first attempt is open.
func TestLapsedLease_RetryIsAnsweredAlreadyRefunded(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"delay-then-act","delay_ms":2000}`)
		b.arm(`{"object":"LAPSE-000001","fault":"forget-key"}`)
		g, open := newGateway(t)
		var attempts atomic.Int64
		b.fail("attempts", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			if attempts.Add(1) == 2 { // the retry waits until the first has arrived
				<-g.open
			}
			serve(w, r)
		})
		b.start(b.serving(hurried))
		b.eventually("the first request to take effect", func() bool { return b.refunded("LAPSE-000001") > 0 })
		open()
		a = b.ends(a.ID, action.Applied)
		b.paidOnce(a)
		if len(a.Attempts) != 2 || len(a.Receipts) != 2 || a.Receipts[1].HTTPStatus != http.StatusUnprocessableEntity {
			t.Errorf("%s: %+v", story(a), a.Receipts)
		}
	})
}

// An executor is paused with the leave to send in its hand. A person says that
// it did not happen; that closes the case only behind the fence, and when the
// executor wakes it does not send.
func TestLapsedLease_PausedSendAfterDidNotHappen(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, "")
		ops := b.Person("olga", people.RoleOps)
		var paused *process
		started := make(chan struct{})
		b.fail("attempts", once(1, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			leave := httptest.NewRecorder()
			serve(leave, r)
			<-started
			if err := paused.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
			for !stopped(paused.Process.Pid) { // a signal takes its time to arrive
				runtime.Gosched()
			}
			maps.Copy(w.Header(), leave.Header())
			w.WriteHeader(leave.Code)
			w.Write(leave.Body.Bytes())
		}))
		paused = b.process(hurried)
		close(started)
		a = b.ends(a.ID, action.ResultUnknown)
		finding := triage.Finding{Verdict: action.DidNotHappen, EvidenceKind: action.EvidenceReference, EvidenceRef: "desk call 4711", Note: "They have no such refund."}
		snap, err := b.Cases.Settle(t.Context(), triage.Who{ID: ops.ID, Method: people.ByPassword}, triage.See(a), finding)
		b.must(err)
		if snap.Action.State != action.ResultUnknown && snap.Action.UpdatedAt.Before(a.FencedAt()) {
			t.Errorf("closed before the fence: %s", story(snap.Action))
		}
		a = b.ends(a.ID, action.Failed)
		b.must(paused.Process.Signal(syscall.SIGCONT))
		b.eventually("the executor to say that it did not send", func() bool { return len(b.get(a.ID).Receipts) == 1 })
		a = b.get(a.ID)
		if a.State != action.Failed || a.Receipts[0].Code != action.NotSent || b.sent(a.ExecutionKey) != 0 || b.refunded("LAPSE-000001") != 0 {
			t.Errorf("%s: %+v", story(a), a.Receipts)
		}
	})
}

// A contract that says never: nothing is sent again, not even when the desk
// says that nothing was executed.
func TestA6_RetryNeverIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"lost-request"}`, "retry: same_key", "retry: never")
		b.start(b.serving(hurried))
		a = b.ends(a.ID, action.Failed) // behind the fence
		if n := b.sent(a.ExecutionKey); n != 1 || len(a.Attempts) != 1 || b.refunded("LAPSE-000001") != 0 {
			t.Errorf("sent %d times: %s", n, story(a))
		}
		for _, q := range a.Asks {
			if q.Found.Outcome != action.FoundNotExecuted {
				t.Errorf("the desk answered %s", q.Found.Outcome)
			}
		}
	})
}

// stopped reports whether a process stands still.
func stopped(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // nothing to wait for where there is no /proc
	}
	_, rest, _ := strings.Cut(string(status), ") ")
	return strings.HasPrefix(rest, "T")
}
