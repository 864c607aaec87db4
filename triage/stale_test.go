package triage_test

import (
	"testing"

	"countersign/action"
	"countersign/store/stage"
)

// Two refunds are proposed at once, and each asks for one person as long as
// nothing was refunded. When the first has run, the second needs two: what one
// person decided on is not there any more, so it does not run.
func TestAReadingThatAsksForMorePeopleStopsTheRun(t *testing.T) {
	s := set(t)
	s.Tool(`name: shop.refund
mode: write
input_schema:
  type: object
  required: [product_id]
  properties: { product_id: { type: string }, new_price: { type: number } }
target: { type: product, id: /product_id }
approval:
  before: shop.read_price
  rules:
    - { when: "true", role: support, approvals: 1 }
    - { when: "before.refunded > 0.0", role: support, approvals: 2 }
execution: { proves: completed }
`)
	read := func(a action.Action, refunded string) action.Action {
		snap, err := s.Triage.Observe(background(), s.Executor, a.ID, reading(stage.ReadPrice, `{"refunded":`+refunded+`}`))
		must(t, err)
		return snap.Action
	}
	a := read(s.Propose(stage.Proposal("shop.refund", stage.Product(), 18)), "0")
	a = s.Approve(a, s.Mia)
	if a.State != action.Confirmed {
		t.Fatalf("one approval was enough, and it is %s", a.State)
	}
	a, _ = s.Claim(a)
	if a = read(a, "0.0"); a.State != action.Executing {
		t.Fatalf("nothing changed, and it is %s", a.State)
	}
	if a = read(a, "19"); a.State != action.Conflict {
		t.Errorf("it needs two by now, and it is %s", a.State)
	}
}
