package execution_test

import (
	"encoding/json"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/sandbox"
)

// linked proposes and approves an action that belongs to another one.
func (b *bench) linked(l action.Links, tool, payload, version string) action.Action {
	b.T.Helper()
	p := approvals.Proposal{Key: action.NewSecret(8), Tool: tool, Actor: action.Actor{ID: actor}, Payload: json.RawMessage(payload), Entry: "chat", Links: l}
	if version != "" {
		p.ObjectVersion = &version
	}
	snap, _, err := b.Approvals.Propose(b.T.Context(), b.Agent, p)
	b.must(err)
	return b.approve(snap.Action)
}

// A price of 105 that somebody else has made 110 is not restored to 100.
func TestB7_WhatOthersDidIsNotUndone(t *testing.T) {
	b := newBench(t)
	b.start(b.config())
	before, _ := b.product("SKU-4411")
	a := b.awaitState(b.approve(b.propose(setPrice, actor, to105, "8")).ID, action.Applied)
	b.shopDo("PUT", "/catalog/products/SKU-4411", b.tokens.Control, `{"price":110}`)
	back := `{"product_id":"SKU-4411","new_price":` + strconv.FormatFloat(before, 'f', -1, 64) + `}`
	c := b.linked(action.Links{Compensates: a.ID}, setPrice, back, a.Produced())
	b.awaitState(c.ID, action.Conflict)
	if price, _ := b.product("SKU-4411"); price != 110 || a.Produced() == "" || b.executions("catalog", c.ExecutionKey) != 0 {
		t.Errorf("the price is %v", price)
	}
}

// Price changed, notice refused: only the notice is sent again.
func TestB8_OnlyWhatIsMissingIsResumed(t *testing.T) {
	b := newBench(t)
	b.start(b.config())
	a := b.awaitState(b.approve(b.propose(setPrice, actor, to105, "8")).ID, action.Applied)
	b.arm(`{"system":"catalog","method":"POST","path":"/catalog/products/SKU-4411/notices","fault":"error-before","status":422,"count":1}`)
	rest := action.Links{Resumes: a.ID}
	first := b.linked(rest, "catalog.notify_price", to105, "")
	b.awaitState(first.ID, action.Failed)
	second := b.linked(rest, "catalog.notify_price", to105, "")
	b.awaitState(second.ID, action.Applied)
	for id, want := range map[string]int{a.ExecutionKey: 1, first.ExecutionKey: 0, second.ExecutionKey: 1} {
		if n := b.executions("catalog", id); n != want {
			t.Errorf("%s: done %d times, want %d", id, n, want)
		}
	}
}

// "ok" from a compensation does not count until it is read back; one that did
// not hold what it said opens a case after its one try.
func TestD4_CompensationIsReadBack(t *testing.T) {
	b := newBench(t)
	for _, tool := range []string{"orders.cancel_order", "orders.restore_coupon"} { // one read is enough here
		raw, err := fs.ReadFile(sandbox.Contracts(), tool+".yaml")
		b.must(err)
		quick := strings.Replace(string(raw), "verify: { tries: 3, window: 20s }", "verify: { tries: 1, window: 1s }", 1)
		b.Tool(strings.Replace(quick, "fence_after: 60s", "fence_after: 1s", 1))
	}
	b.start(b.config())
	undo := func(order, coupon string) action.Action {
		t.Helper()
		half := b.approve(b.propose("orders.cancel_order", actor, `{"order_id":"`+order+`","reason":"ordered twice"}`, ""))
		half = b.awaitState(half.ID, action.ResultUnknown) // it said ok, and went half way
		b.await(half.ID, "fenced", func(a action.Action) bool {
			now, err := b.DB.Now(t.Context())
			return err == nil && now.After(a.FencedAt())
		})
		return b.linked(action.Links{Compensates: half.ID}, "orders.restore_coupon", `{"order_id":"`+order+`","coupon_code":"`+coupon+`"}`, half.Produced())
	}
	good, bad := undo("10088", "AUTUMN-K88"), undo("10089", "MOON-24-X89")
	b.awaitState(good.ID, action.Applied)
	dirty := b.awaitState(bad.ID, action.ResultUnknown)
	if dirty.Case.Why != action.WhyMismatch || len(dirty.Attempts) != 1 {
		t.Errorf("%+v, %d attempts", dirty.Case, len(dirty.Attempts))
	}
}
