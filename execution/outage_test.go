package execution_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"countersign/action"
)

// call is one request in the shop's own log.
type call struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Key    string    `json:"key"`
	Status *int      `json:"status"`

	Credential string `json:"credential"`
}

func (b *bench) calls(query string) []call {
	b.T.Helper()
	var log struct {
		Items []call `json:"items"`
	}
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/faults/log?limit=500&"+query, b.tokens.Control, "")), &log))
	return log.Items
}

// Refunds get no answer, several in a row: no more are sent until a read has
// shown that the desk is back. Meanwhile it is asked what became of them.
func TestE4_NoRefundIsAProbe(t *testing.T) {
	b := newBench(t)
	b.arm(`{"system":"refunds","fault":"lost-request","count":3}`)
	var ids []string
	for order := 10074; order < 10080; order++ {
		a := b.propose(refund, "u-li-na", fmt.Sprintf(`{"order_id":"%d","amount":10,"reason":"arrived late"}`, order), "")
		ids = append(ids, b.approve(a).ID)
	}
	config := b.config()
	config.Concurrency, config.BreakAfter, config.ProbeAfter = 1, 3, time.Second
	b.start(config)
	for _, id := range ids {
		a := b.awaitState(id, action.Applied)
		if n := b.executions("refunds", a.ExecutionKey); n != 1 {
			t.Errorf("%s was paid %d times", id, n)
		}
	}
	lost, read := 0, false
	var last time.Time
	for _, c := range b.calls("system=refunds") {
		switch {
		case c.Method == http.MethodPost && lost < 3:
			lost, last = lost+1, c.At
		case c.Method == http.MethodPost:
			if !read || c.At.Sub(last) < config.ProbeAfter {
				t.Errorf("a refund was sent %s after the last that got no answer, a read in between: %v", c.At.Sub(last), read)
			}
			return
		case lost == 3 && c.Status != nil && *c.Status == http.StatusOK && c.At.Sub(last) >= config.ProbeAfter:
			read = true
		}
	}
	t.Error("no refund was sent afterwards")
}

// Nothing answers at all: approved refunds stay approved, and nothing is tried.
func TestE4_NothingIsClaimedWhileASystemIsAway(t *testing.T) {
	b := newBench(t)
	b.arm(`{"system":"refunds","method":"*","fault":"lost-request","count":0}`)
	var approved []action.Action
	for order := 10074; order < 10078; order++ {
		a := b.propose(refund, "u-li-na", fmt.Sprintf(`{"order_id":"%d","amount":10,"reason":"arrived late"}`, order), "")
		approved = append(approved, b.approve(a))
	}
	config := b.config()
	config.BreakAfter, config.ProbeAfter = 2, 50*time.Millisecond
	stop := b.start(config)
	reads := func() int { return len(b.calls("system=refunds")) }
	for deadline := time.Now().Add(b.patience()); reads() < 6; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the desk was looked for %d times", reads())
		}
	}
	b.must(stop())
	for _, a := range approved {
		if got := b.get(a.ID); got.State != action.Confirmed || len(got.Attempts) != 0 {
			t.Errorf("%s with %d attempts", got.State, len(got.Attempts))
		}
	}
	for _, c := range b.calls("system=refunds") {
		if c.Method == http.MethodPost {
			t.Errorf("%s %s was sent to a desk that does not answer", c.Method, c.Path)
		}
	}
	b.shopDo("DELETE", "/faults", b.tokens.Control, "")
	b.start(config)
	for _, a := range approved {
		b.awaitState(a.ID, action.Applied)
	}
}

// Three executors are offered the same question at once: it counts once, and
// the next one is asked only when it is due.
func TestSeveralExecutorsAskNoMoreThanOne(t *testing.T) {
	b := newBench(t)
	b.arm(`{"object":"10080","fault":"act-then-reset"}`)
	b.arm(`{"system":"refunds","method":"GET","path":"/refunds/operations","fault":"error-before","count":0}`)
	a := b.approve(b.propose(refund, "u-li-na", `{"order_id":"10080","amount":10,"reason":"arrived broken"}`, ""))
	for range 3 {
		b.start(b.config())
	}
	a = b.await(a.ID, "asked three times", func(a action.Action) bool { return len(a.Asks) >= 3 })
	for i := 1; i < len(a.Asks); i++ {
		if gap := a.Asks[i].At.Sub(a.Asks[i-1].At); gap < 2*time.Second {
			t.Errorf("question %d came %s after the one before", i+1, gap)
		}
	}
}
