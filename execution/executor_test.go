package execution_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution"
)

const (
	setPrice = "catalog.set_price"
	refund   = "refunds.refund_order"
	actor    = "u-anna-schmidt"
	to105    = `{"product_id":"SKU-4411","new_price":105}`
)

func TestB5_PriceChangeIsAppliedOnce(t *testing.T) {
	b := newBench(t)
	b.start(b.config())
	a := b.propose(setPrice, actor, to105, "8")
	b.await(a.ID, "read before the decision", func(a action.Action) bool { _, read := a.Before(); return read })
	b.approve(a)
	done := b.awaitState(a.ID, action.Applied)
	if price, version := b.product("SKU-4411"); price != 105 || version != 9 {
		t.Errorf("price %v, version %d", price, version)
	}
	if n := b.executions("catalog", a.ExecutionKey); n != 1 || done.Executions() != 1 {
		t.Errorf("done %d times, %d attempts", n, done.Executions())
	}
	r := done.Receipts[0]
	if r.Outcome != action.Success || r.Proves != action.ProvesCompleted || r.HTTPStatus != 200 || r.ObjectVersionAfter != "9" {
		t.Errorf("receipt %+v", r)
	}
	var tools []string
	for _, o := range done.Observations {
		tools = append(tools, o.Tool)
	}
	want := "[catalog.may_set_price catalog.get_product catalog.may_set_price catalog.get_product catalog.get_product]"
	if got := fmt.Sprint(tools); got != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

func TestB5_MovedObjectIsAConflict(t *testing.T) {
	b := newBench(t)
	a := b.approve(b.propose(setPrice, actor, to105, "8"))
	b.shopDo("POST", "/catalog/products/SKU-4411/price", b.tokens.CatalogWrite, `{"product_id":"SKU-4411","new_price":110}`,
		"Idempotency-Key", "somebody-else", "If-Match", `"8"`)
	b.start(b.config())
	done := b.awaitState(a.ID, action.Conflict)
	if len(done.Attempts) != 0 || b.executions("catalog", a.ExecutionKey) != 0 {
		t.Errorf("%d attempts", len(done.Attempts))
	}
}

func TestA9_ApprovalDoesNotReplacePermission(t *testing.T) {
	b := newBench(t)
	a := b.approve(b.propose(setPrice, "u-wang-wei", to105, "8"))
	b.start(b.config())
	done := b.awaitState(a.ID, action.Failed)
	if done.FailureCode != execution.Forbidden || len(done.Attempts) != 0 {
		t.Errorf("failed with %q after %d attempts", done.FailureCode, len(done.Attempts))
	}
}

func TestPreconditionsAreLookedAtBeforeTheCall(t *testing.T) {
	b := newBench(t)
	a := b.approve(b.propose(setPrice, actor, `{"product_id":"SKU-4399","new_price":35}`, "4"))
	b.start(b.config())
	done := b.awaitState(a.ID, action.Failed)
	if done.FailureCode != action.PreconditionFailed || len(done.Attempts) != 0 {
		t.Errorf("failed with %q after %d attempts", done.FailureCode, len(done.Attempts))
	}
}

func TestUnreachableSystemGivesTheClaimBack(t *testing.T) {
	b := newBench(t)
	b.arm(`{"system":"catalog","method":"GET","fault":"error-before","status":503,"count":1}`)
	a := b.approve(b.propose(setPrice, actor, to105, "8"))
	b.start(b.config())
	done := b.awaitState(a.ID, action.Applied) // by a second claim
	if n := b.executions("catalog", a.ExecutionKey); n != 1 || len(done.Attempts) != 1 {
		t.Errorf("done %d times in %d attempts", n, len(done.Attempts))
	}
}

// What is not known is asked for by key: a success is taken over without a
// second call, and what was not executed is sent once more.
func TestE2_A4_UnknownIsAskedForAndSentOnceMore(t *testing.T) {
	b := newBench(t)
	attempts := map[string]int{
		`"fault":"act-then-reset"`: 1, `"fault":"error-after"`: 1, `"fault":"malformed"`: 1,
		`"fault":"error-before"`: 2, `"fault":"error-before","status":429`: 2, `"fault":"error-before","status":307`: 2, `"fault":"lost-request"`: 2,
	}
	proposed := map[string]action.Action{}
	order := 10080
	for fault := range attempts {
		object := fmt.Sprint(order)
		order++
		b.arm(`{"object":"` + object + `",` + fault + `}`)
		proposed[fault] = b.approve(b.propose(refund, "u-li-na", `{"order_id":"`+object+`","amount":10,"reason":"arrived broken"}`, ""))
	}
	b.start(b.config())
	for fault, a := range proposed {
		done := b.awaitState(a.ID, action.Applied)
		if done.Case == nil || done.Case.Open || len(done.Asks) == 0 || len(done.Attempts) != attempts[fault] {
			t.Errorf("%s: case %+v, asked %d times, %d attempts, want %d", fault, done.Case, len(done.Asks), len(done.Attempts), attempts[fault])
		}
		if n := b.executions("refunds", a.ExecutionKey); n != 1 {
			t.Errorf("%s: paid %d times", fault, n)
		}
	}
}

func TestB6_WhatCannotBeFoundOutStaysUnknown(t *testing.T) {
	b := newBench(t)
	b.arm(`{"object":"10080","fault":"act-then-reset"}`)
	b.arm(`{"system":"refunds","method":"GET","path":"/refunds/operations","fault":"error-before","count":0}`)
	a := b.approve(b.propose(refund, "u-li-na", `{"order_id":"10080","amount":10,"reason":"arrived broken"}`, ""))
	b.start(b.config())
	done := b.awaitState(a.ID, action.ResultUnknown)
	if done.CaseID() == "" || done.Executions() != 1 {
		t.Errorf("case %q, %d attempts", done.CaseID(), done.Executions())
	}
	b.shopDo("DELETE", "/faults", b.tokens.Control, "")
	if n := b.executions("refunds", a.ExecutionKey); n != 1 {
		t.Errorf("paid %d times", n)
	}
}

func TestB6_DefiniteRefusalIsAFailure(t *testing.T) {
	b := newBench(t)
	b.arm(`{"fault":"error-before","status":422}`)
	a := b.approve(b.propose(refund, "u-li-na", `{"order_id":"10086","amount":42,"reason":"arrived broken"}`, ""))
	b.start(b.config())
	if done := b.awaitState(a.ID, action.Failed); done.Executions() != 1 || done.Receipts[0].HTTPStatus != 422 {
		t.Errorf("%+v", done.Receipts)
	}
}

func TestLostAnswersOfTheConsoleChangeNothing(t *testing.T) {
	b := newBench(t)
	order := 10077
	for _, word := range []string{"claim", "observations", "attempts", "receipts", "jwks.json"} {
		for name, f := range map[string]fault{"after it took effect": answerLost, "before": neverArrives} {
			b.fail(word, once(2, f))
			order++
			a := b.approve(b.propose(refund, "u-li-na", fmt.Sprintf(`{"order_id":"%d","amount":10,"reason":"arrived broken"}`, order), ""))
			stop := b.start(b.config())
			done := b.awaitState(a.ID, action.Applied)
			b.must(stop())
			if n := b.executions("refunds", a.ExecutionKey); n != 1 || len(done.Attempts) != 1 || len(done.Receipts) != 1 {
				t.Errorf("%s, %s: done %d times, %d attempts, %d receipts", word, name, n, len(done.Attempts), len(done.Receipts))
			}
			b.fail(word, nil)
		}
	}
}

// An attempt of which nobody knows whether it was recorded is never sent.
func TestUnansweredAttemptIsNotSent(t *testing.T) {
	b := newBench(t)
	b.fail("attempts", answerLost)
	a := b.approve(b.propose(setPrice, actor, to105, "8"))
	b.start(b.config())
	done := b.awaitState(a.ID, action.Failed)
	if done.Executions() != 0 || done.Receipts[0].Code != action.NotSent || b.executions("catalog", a.ExecutionKey) != 0 {
		t.Errorf("%d executions, receipts %+v", done.Executions(), done.Receipts)
	}
}

// The console says yes, but its answer comes after the time to send is over.
func TestLateLeaveIsNotUsed(t *testing.T) {
	b := newBench(t)
	clock := &leaping{}
	b.fail("attempts", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(w, r)
		clock.leap.Store(int64(10 * time.Second)) // over the five to send, within the lease of a minute
	})
	a := b.approve(b.propose(setPrice, actor, to105, "8"))
	b.startWith(b.config(), execution.Options{Clock: clock})
	b.await(a.ID, "reported as not sent", func(a action.Action) bool {
		return len(a.Receipts) == 1 && a.Receipts[0].Code == action.NotSent
	})
	if n := b.executions("catalog", a.ExecutionKey); n != 0 {
		t.Errorf("sent too late, done %d times", n)
	}
}

func TestTwoExecutorsShareTheWork(t *testing.T) {
	b := newBench(t)
	var ids []string
	for order := 10074; order < 10086; order++ {
		a := b.propose(refund, "u-li-na", fmt.Sprintf(`{"order_id":"%d","amount":10,"reason":"arrived late"}`, order), "")
		ids = append(ids, b.approve(a).ID)
	}
	b.start(b.config())
	b.start(b.config())
	for _, id := range ids {
		b.await(id, "ended", func(a action.Action) bool { return a.State.In(action.Applied, action.Failed) })
		a := b.get(id)
		if n := b.executions("refunds", a.ExecutionKey); n > 1 || len(a.Attempts) > 1 || (n == 1) != (a.State == action.Applied) {
			t.Errorf("%s: %s, paid %d times in %d attempts", id, a.State, n, len(a.Attempts))
		}
	}
}

func TestStopFinishesWhatWasSent(t *testing.T) {
	b := newBench(t)
	b.arm(`{"fault":"act-then-delay","delay_ms":700}`)
	a := b.approve(b.propose(setPrice, actor, to105, "8"))
	stop := b.start(b.config())
	b.await(a.ID, "attempted", func(a action.Action) bool { return len(a.Attempts) == 1 })
	b.must(stop())
	if a = b.get(a.ID); len(a.Receipts) != 1 || a.Receipts[0].Outcome != action.Success {
		t.Errorf("stopped with %+v", a.Receipts)
	}
}

func TestStopGivesBackWhatWasNotSent(t *testing.T) {
	paced(t, func(t *trial) {
		b := newBench(t)
		b.arm(`{"system":"catalog","method":"GET","fault":"act-then-delay","delay_ms":700}`)
		a := b.approve(b.propose(setPrice, actor, to105, "8"))
		stop := b.start(b.config())
		b.awaitState(a.ID, action.Executing)
		b.must(stop())
		if a = b.get(a.ID); a.State != action.Confirmed || len(a.Attempts) != 0 {
			t.Errorf("stopped in %s with %d attempts", a.State, len(a.Attempts))
		}
	})
}

func TestOthersToolsAreLeftAlone(t *testing.T) {
	b := newBench(t)
	config := b.config()
	config.Systems = config.Systems[:1] // the catalogue
	other := b.approve(b.propose(refund, "u-li-na", `{"order_id":"10086","amount":42,"reason":"arrived broken"}`, ""))
	mine := b.approve(b.propose(setPrice, actor, to105, "8"))
	b.start(config)
	b.awaitState(mine.ID, action.Applied)
	if a := b.get(other.ID); a.State != action.Confirmed || a.Version != other.Version {
		t.Errorf("%s at version %d", a.State, a.Version)
	}
}

func TestRefusedKeyEndsTheExecutor(t *testing.T) {
	b := newBench(t)
	b.fail("work", func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.WriteHeader(http.StatusUnauthorized)
	})
	executor, err := execution.New(b.config(), execution.Options{})
	b.must(err)
	if err := executor.Run(t.Context()); !execution.HasCode(err, action.Unauthorized) {
		t.Error(err)
	}
}

func TestE1_RefusalsBeforeTheCall(t *testing.T) {
	b := newBench(t)
	var reached atomic.Int64
	shop := b.shop.Config.Handler
	b.shop.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached.Add(1); shop.ServeHTTP(w, r) })
	b.Tool("name: stock.get\nmode: read\ninput_schema: {type: object}\nhttp: {method: GET, path: /stock}\n")
	for _, c := range []struct {
		name, code string
		q          execution.Question
	}{
		{"no such tool", execution.UnknownTool, execution.Question{Tool: "catalog.get_prodct", Payload: []byte(`{}`)}},
		{"not for this entry", execution.UnknownTool, execution.Question{Tool: "catalog.get_operation", Entry: "chat", Payload: []byte(`{}`)}},
		{"argument missing", execution.InvalidArgument, execution.Question{Tool: "catalog.get_product", Payload: []byte(`{}`)}},
		{"argument of another type", execution.InvalidArgument, execution.Question{Tool: "catalog.get_product", Payload: []byte(`{"product_id":4411}`)}},
		{"no JSON", execution.InvalidArgument, execution.Question{Tool: "catalog.get_product", Payload: []byte(`{"product_id"`)}},
		{"no system", execution.ToolUnavailable, execution.Question{Tool: "stock.get", Payload: []byte(`{}`)}},
		{"writes", execution.ToolUnavailable, execution.Question{Tool: setPrice, Entry: "chat", Payload: []byte(to105)}},
	} {
		_, err := b.ask(c.q)
		var e *execution.ToolError
		if !errors.As(err, &e) || e.Code != c.code || e.Tool != c.q.Tool || (c.code == execution.InvalidArgument) != (len(e.Errors) > 0) {
			t.Errorf("%s: %#v", c.name, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the system was reached %d times", n)
	}
	b.arm(`{"system":"catalog","method":"GET","fault":"act-then-reset"}`)
	var e *execution.ToolError
	if _, err := b.ask(execution.Question{Tool: "catalog.get_product", Payload: []byte(`{"product_id":"SKU-4411"}`)}); !errors.As(err, &e) || e.Code != execution.ExecutionError {
		t.Errorf("a broken read: %v", err)
	}
}

func TestAskAnswersWhatTheContractAllows(t *testing.T) {
	b := newBench(t)
	got, err := b.ask(execution.Question{Tool: "catalog.may_set_price", ActorID: "u-wang-wei",
		Payload: []byte(`{"product_id":"SKU-4411","actor_id":"u-li-na"}`)})
	b.must(err)
	if !strings.Contains(string(got), `"allowed":false`) || strings.Contains(string(got), "product_id") {
		t.Errorf("answered %s for another actor than the session's", got)
	}
}
