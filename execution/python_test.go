package execution_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
)

// python runs the executor of the guide for a tool, and the reads of its system,
// until it is killed.
func (b *bench) python(tool string) *process {
	b.T.Helper()
	system, _, _ := strings.Cut(tool, ".")
	read, write := b.tokens.Of(system)
	p := b.run(tool, []string{"PYTHONDONTWRITEBYTECODE=1", "COUNTERSIGN_URL=" + b.console.URL, "COUNTERSIGN_KEY=" + b.key,
		"SYSTEM_URL=" + b.shop.URL + "/" + system, "SYSTEM_READ_TOKEN=" + read, "SYSTEM_WRITE_TOKEN=" + write, "SYSTEM_ACTOR_HEADER=X-Actor"},
		"python3", "../docs/executor.py", tool, system+".get_*", system+".may_*")
	b.T.Cleanup(func() {
		p.kill()
		if strings.Contains(p.log.String(), "Traceback") {
			b.T.Errorf("the executor said:\n%s", p.log.String())
		}
	})
	return p
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
	paced(t, func(t *trial) {
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
			victim := b.python(tool)
			b.eventually("an attempt that is under way", func() bool {
				a := b.get(actions[i].ID)
				return len(a.Attempts) == 1 && a.Attempts[0].Outcome == ""
			})
			victim.kill()
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
	})
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
	return b.answeredLateFor("", what, holds)
}

// answeredLateFor is answeredLate for the first call about an action.
func (b *bench) answeredLateFor(id, what string, holds func() bool) fault {
	late := once(1, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		answer := httptest.NewRecorder()
		serve(answer, r)
		b.eventually(what, holds)
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes()) // whoever asked may be gone
	})
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		if !strings.Contains(r.URL.Path, id) {
			serve(w, r)
			return
		}
		late(w, r, serve)
	}
}

// What it learns too late it does not act on: when its lease has lapsed it lets
// go, and when the time to send is over it says that nothing was sent.
func TestExecutorInPython_DoesNotSendLate(t *testing.T) {
	orSkipPython(t)
	t.Parallel()
	paced(t, func(t *trial) {
		const tool = "refunds.python_late"
		b := newBench(t)
		b.hurried(tool)
		b.sweeping()
		b.full("LATE", 2)
		lapsed := b.approved(tool, "LATE-000001")
		b.fail("lease", func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) })
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
	})
}

// Killed between any two steps of a contract and started again, it takes only
// the step that is missing.
func TestExecutorInPython_TakesOnlyTheStepThatIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute")
	}
	orSkipPython(t)
	t.Parallel()
	paced(t, func(t *trial) {
		b := newBench(t)
		b.killedBetweenSteps(b.python)
	})
}

// While something is slow it keeps its claim; what was claimed and is not what
// was approved, or does not stand any more, it gives back unsent, and says why;
// what is not there is not run.
func TestExecutorInPython_KeepsItsClaimAndSendsOnlyWhatWasApproved(t *testing.T) {
	orSkipPython(t)
	t.Parallel()
	paced(t, func(t *trial) {
		const tool = "refunds.python_kept"
		b := newBench(t)
		b.hurried(tool)
		b.sweeping()
		b.full("KEPT", 3)
		other, fallen, slow := b.approved(tool, "KEPT-000001"), b.approved(tool, "KEPT-000002"), b.approved(tool, "KEPT-000003")
		gone := b.approved(tool, "KEPT-000009")
		rewritten := func(path, from, to string) fault {
			return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
				answer := httptest.NewRecorder()
				serve(answer, r)
				said := answer.Body.String()
				if strings.Contains(r.URL.Path, path) && answer.Code == http.StatusOK {
					said = strings.Replace(said, from, to, 1)
				}
				w.WriteHeader(answer.Code)
				io.WriteString(w, said)
			}
		}
		b.fail("claim", rewritten(other.Confirmation.Ref, `"amount":10`, `"amount":11`))
		b.fail("verify", rewritten(fallen.Confirmation.Ref, `{"valid":true`, `{"valid":false`))
		var claim action.Claim
		b.fail("observations", b.answeredLateFor(slow.ID, "the first lease to be over", func() bool {
			a := b.get(slow.ID)
			if claim.ID == "" {
				claim = *a.Claim
			}
			return time.Now().After(claim.LeaseUntil.Add(100 * time.Millisecond))
		}))
		p := b.python(tool)
		a := b.ends(slow.ID, action.Applied)
		if len(a.Attempts) != 1 || a.Attempts[0].ClaimID != claim.ID || !a.Attempts[0].At.After(claim.LeaseUntil) {
			t.Errorf("it was claimed again, or nothing was slow: %s, %+v, %+v", story(a), a.Attempts, claim)
		}
		b.eventually("both to be given back", func() bool {
			return strings.Contains(p.log.String(), other.ID+" it is not what was approved: ['payload_hash']") && strings.Contains(p.log.String(), fallen.ID+" the confirmation does not stand")
		})
		for id, why := range map[string]string{other.ID: "it is not what was approved", fallen.ID: "the confirmation does not stand"} {
			if a := b.get(id); len(a.Attempts) != 0 || b.sent(a.ExecutionKey) != 0 || !strings.HasPrefix(a.Stall.Why, why) {
				t.Errorf("%s, %+v", story(a), a.Stall)
			}
		}
		if a := b.ends(gone.ID, action.Conflict); len(a.Attempts) != 0 || !a.Gone() {
			t.Errorf("an order that is not there: %s", story(a))
		}
		b.fail("claim", nil)
		b.fail("verify", nil)
		for _, id := range []string{other.ID, fallen.ID} {
			b.ends(id, action.Applied)
		}
	})
}

// What a person has paused it leaves alone, and a desk that does not answer, and
// goes on when that is over.
func TestExecutorInPython_LeavesAloneWhatIsPausedOrAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute")
	}
	orSkipPython(t)
	t.Parallel()
	paced(t, func(t *trial) {
		const tool, refunds = "refunds.python_paused", 12
		b := newBench(t)
		b.hurried(tool)
		b.full("STOP", 2*refunds)
		var all []action.Action
		propose := func(to int) {
			for i := len(all); i < to; i++ {
				all = append(all, b.approved(tool, fmt.Sprintf("STOP-%06d", i+1)))
			}
		}
		propose(refunds)
		pause := sync.OnceValue(func() error { // after it was offered: what is paused is not
			_, err := approvals.StartPause(context.Background(), b.DB, action.NewID("pau"), approvals.PauseTool, tool, "amounts are wrong", b.Admin.As(people.RoleAdmin, people.ByPassword))
			return err
		})
		b.fail("claim", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			if err := pause(); err != nil {
				t.Error(err)
			}
			serve(w, r)
		})
		var asked atomic.Int32
		b.fail("work", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) { asked.Add(1); serve(w, r) })
		p := b.python(tool)
		b.eventually("it to be told, and to ask for other work", func() bool { return asked.Load() > 3 && strings.Contains(p.log.String(), "was paused by Admin") })
		b.must(approvals.EndPause(t.Context(), b.DB, approvals.PauseTool, tool, stage.System("go on").By))
		for _, a := range all {
			b.ends(a.ID, action.Applied)
		}
		if n := strings.Count(p.log.String(), "was paused by Admin"); n > refunds/2 { // four at a time are on their way
			t.Errorf("it tried %d times:\n%s", n, p.log.String())
		}

		b.arm(`{"system":"refunds","method":"*","fault":"error-before","status":503,"count":0}`)
		propose(2 * refunds)
		claimed := func() (n int) {
			for _, a := range all[refunds:] {
				if a := b.get(a.ID); a.Claim != nil {
					n++
				}
			}
			return n
		}
		const away = "the business system does not answer"
		b.eventually("every refund to be left alone", func() bool { return strings.Count(p.log.String(), away)+claimed() >= refunds })
		if n := claimed(); n > 8 { // four at a time, twice
			t.Errorf("it claimed %d times:\n%s", n, p.log.String())
		}
		b.shopDo("DELETE", "/faults", b.tokens.Control, "")
		for _, a := range all {
			if a = b.ends(a.ID, action.Applied); len(a.Attempts) != 1 || b.sent(a.ExecutionKey) != 1 {
				t.Errorf("sent %d times: %s", b.sent(a.ExecutionKey), story(a))
			}
		}
	})
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
		b.never("doubled: %s was paid %v in %d executions: %s", order, paid, done, story(a))
	case a.State == action.Applied && paid == 0, a.State == action.Failed && paid != 0:
		b.never("overstated: %s is %s and was paid %v: %s", order, a.State, paid, story(a))
	}
}
