package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/sandbox"
)

// hurried stores the refund contract under another name and with short times:
// a second to answer, a lease of two, a fence of three, at the test's pace. More
// may be replaced.
func (b *bench) hurried(name string, replace ...string) {
	b.T.Helper()
	b.hurriedOf(refund, name, replace...)
}

func (b *bench) hurriedOf(tool, name string, replace ...string) {
	b.T.Helper()
	raw, err := fs.ReadFile(sandbox.Contracts(), tool+".yaml")
	b.must(err)
	pairs := append(replace, "name: "+tool, "name: "+name, "timeout: 10s", "timeout: "+b.at(time.Second).String(), "lease: 60s", "lease: "+b.at(2*time.Second).String(),
		"fence_after: 60s", "fence_after: "+b.at(3*time.Second).String()) // what is told to be replaced goes first, and is not replaced again
	if strings.Contains(string(raw), "window: 20s") { // it is read back
		pairs = append(pairs, "window: 20s", "window: "+b.at(3*time.Second).String())
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(raw), pairs[i]) {
			b.T.Fatalf("the contract of %s has no %q", tool, pairs[i])
		}
	}
	b.Tool(strings.NewReplacer(pairs...).Replace(string(raw)))
}

// serving is an executor's configuration for one tool of the refund desk.
func (b *bench) serving(tool string) execution.Config {
	return execution.Config{Console: b.console.URL, Key: execution.NewSecret(b.key), Wait: time.Second, Poll: 10 * time.Millisecond,
		Systems: []execution.System{{Tools: []string{tool, "refunds.get_*"}, BaseURL: b.shop.URL + "/refunds",
			ReadToken: execution.NewSecret(b.tokens.RefundsRead), WriteToken: execution.NewSecret(b.tokens.RefundsWrite)}}}
}

// sweeping does what the console's background does: what time alone brings about.
func (b *bench) sweeping() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := action.Sweep(ctx, b.DB, b.DB.Due, 100); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		done <- nil
	}()
	b.T.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.T.Errorf("the sweep ended: %v", err)
		}
	})
}

// full makes orders of which everything is to be refunded.
func (b *bench) full(prefix string, n int) {
	b.T.Helper()
	b.shopDo("POST", "/faults/orders", b.tokens.Control, fmt.Sprintf(`{"prefix":%q,"count":%d,"amount":10}`, prefix, n))
}

// approved is an approved refund of all of an order.
func (b *bench) approved(tool, order string) action.Action {
	b.T.Helper()
	return b.approve(b.propose(tool, "u-li-na", fmt.Sprintf(`{"order_id":%q,"amount":10,"reason":"arrived broken"}`, order), ""))
}

// refunded is how much was paid back on an order.
func (b *bench) refunded(order string) float64 {
	b.T.Helper()
	var o struct {
		Refunded float64 `json:"refunded"`
	}
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/refunds/orders/"+order, b.tokens.RefundsRead, "")), &o))
	return o.Refunded
}

// sent are the requests that came in under a key to do something.
func (b *bench) sent(key string) int {
	b.T.Helper()
	n := 0
	for _, c := range b.calls("system=refunds&key=" + key) {
		if c.Method == "POST" {
			n++
		}
	}
	return n
}

// ends waits until an action is in a state, however long leases and fences take,
// or in one that it does not leave by itself.
func (b *bench) ends(id string, s action.State) action.Action {
	b.T.Helper()
	for deadline := time.Now().Add(b.patience()); ; time.Sleep(20 * time.Millisecond) {
		if a := b.get(id); a.State == s {
			return a
		} else if time.Now().After(deadline) || a.State.In(action.Applied, action.Failed, action.Conflict) {
			b.T.Fatalf("it never is %s: %s", s, story(a))
		}
	}
}

// eventually waits until something holds.
func (b *bench) eventually(what string, holds func() bool) {
	b.T.Helper()
	for deadline := time.Now().Add(b.patience()); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.T.Fatalf("waited in vain for %s", what)
		}
	}
}

// story is an action in one line.
func story(a action.Action) string {
	var attempts []string
	for _, t := range a.Attempts {
		attempts = append(attempts, fmt.Sprintf("%d:%s", t.Number, t.Outcome))
	}
	var asks []string
	for _, q := range a.Asks {
		asks = append(asks, q.Found.Outcome)
	}
	return fmt.Sprintf("%s, attempts %v, asked %v, %d receipts, proven %q, failed with %q", a.State, attempts, asks, len(a.Receipts), a.Proven, a.FailureCode)
}

// gateway holds calls back until it is opened.
type gateway struct{ open chan struct{} }

func newGateway(t testing.TB) (g gateway, open func()) {
	g = gateway{make(chan struct{})}
	opened := false
	open = func() {
		if !opened {
			opened = true
			close(g.open)
		}
	}
	t.Cleanup(open)
	return g, open
}
