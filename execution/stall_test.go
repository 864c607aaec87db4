package execution_test

import (
	"net/http"
	"testing"
	"time"

	"countersign/action"
)

// A reading says what was answered. What is definitely not there is not run,
// whoever approved it; what cannot be told is tried again, later every time.
func TestWhatIsReadBeforeItRunsShowsNothing(t *testing.T) {
	b := newBench(t)
	stop := b.start(b.config())
	a := b.propose(refund, "u-li-na", `{"order_id":"99999","amount":10,"reason":"arrived late"}`, "")
	a = b.await(a.ID, "read in vain", func(a action.Action) bool { _, n := a.InVain(a.Terms.Before); return n > 0 })
	if last, _ := a.InVain(a.Terms.Before); !last.Absent || last.Wire.Status != http.StatusNotFound || last.Wire.Code != "" || a.State != action.Proposed {
		t.Errorf("%s, %+v", a.State, last)
	}
	b.approve(a)
	a = b.awaitState(a.ID, action.Conflict)
	if !a.Gone() || len(a.Attempts) != 0 || a.Stall.Times != 0 {
		t.Errorf("%+v", a.Stall)
	}
	for _, c := range a.Calls() {
		if c.Tool == a.Terms.Before && (c.Result != action.CallFailed || c.Status != http.StatusNotFound) {
			t.Errorf("recorded as %+v", c)
		}
	}
	b.must(stop())
	b.arm(`{"system":"catalog","method":"GET","fault":"error-before","status":503,"count":2}`)
	a = b.approve(b.propose(setPrice, actor, to105, "8"))
	b.start(b.config())
	a = b.awaitState(a.ID, action.Applied)
	if a.Stall.Times != 2 || a.Stall.Why == "" {
		t.Errorf("stalled %+v", a.Stall)
	}
	var failed []time.Time
	for _, o := range a.Observations {
		if o.Failed {
			failed = append(failed, o.At)
		}
	}
	if len(failed) != 2 || failed[1].Sub(failed[0]) < 2*time.Second {
		t.Errorf("tried at %v", failed)
	}
}
