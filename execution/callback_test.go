package execution_test

import (
	"testing"

	"countersign/action"
	"countersign/execution/sandbox"
)

// calledBack connects the refund desk's callbacks with the console, and makes
// asking by key impossible: what is found out, callbacks tell.
func (b *bench) calledBack() {
	b.T.Helper()
	by := action.By{Kind: action.BySystem}
	_, err := b.Callbacks.AddSecret(b.T.Context(), refund, b.tokens.RefundsSecret, by)
	b.must(err)
	b.must(b.refunds.CallBack(b.T.Context(), sandbox.Refunds, b.console.URL+"/v1/callbacks/"+refund, ""))
	b.arm(`{"system":"refunds","method":"GET","path":"/refunds/operations","fault":"error-before","count":0}`)
}

func (b *bench) refund(order string) action.Action {
	b.T.Helper()
	return b.approve(b.propose(refund, "u-li-na", `{"order_id":"`+order+`","amount":10,"reason":"arrived broken"}`, ""))
}

// Order 10094 is accepted with 202, and done when a callback says so. Forged
// callbacks count for nothing, repeated ones once, early and late ones like any
// other. What they say is no proof: it is read back first.
func TestA3_A5_A13_Callbacks(t *testing.T) {
	b := newBench(t)
	b.calledBack()
	want := map[string]action.State{b.refund("10094").ID: action.Applied}
	for order, c := range map[string]struct {
		fault string
		state action.State
	}{
		"10077": {`"deliveries":3`, action.Applied},
		"10078": {`"early":true`, action.Applied},
		"10079": {`"forged":"wrong","outcome":"refused"`, action.Failed},
		"10080": {`"forged":"stale","outcome":"refused"`, action.Failed},
		"10081": {`"forged":"unsigned","outcome":"refused"`, action.Failed},
		"10082": {`"queued":true`, action.Applied},
		"10083": {`"callback_ms":300`, action.Applied},
		"10086": {`"outcome":"in_word"`, action.Accepted},
	} {
		b.arm(`{"object":"` + order + `","system":"refunds","method":"POST","fault":"accept","delay_ms":50,` + c.fault + `}`)
		want[b.refund(order).ID] = c.state
	}
	b.start(b.config())
	for id, state := range want {
		a := b.await(id, "told and settled as "+string(state), func(a action.Action) bool {
			readBack := len(a.Observations) > 0 && !a.Observations[len(a.Observations)-1].At.Before(a.ProvenAt)
			return a.State == state && told(a) > 0 && (a.Proven == action.ProvesCompleted) == (state != action.Failed) && (readBack || state == action.Failed)
		})
		if len(a.Attempts) != 1 || told(a) > 2 || a.Receipts[0].HTTPStatus != 202 {
			t.Errorf("%s: told %d times in %d attempts, %+v", state, told(a), len(a.Attempts), a.Receipts)
		}
		seen := map[string]bool{}
		for _, q := range a.Asks {
			if q.Found.Source == "callback" && seen[q.Found.ID] {
				t.Errorf("%s counted twice", q.Found.ID)
			}
			seen[q.Found.ID] = true
		}
	}
}

// told counts the callbacks that an action has.
func told(a action.Action) int {
	n := 0
	for _, q := range a.Asks {
		if q.Found.Source == "callback" {
			n++
		}
	}
	return n
}
