package triage_test

import (
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/store/stage"
	"countersign/triage"
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

// What is read beside the object may be gone, or of any version: only the object
// itself ends the action, as the contract judges that it was read with.
func TestOnlyTheObjectItselfIsGoneOrHasMovedOn(t *testing.T) {
	s := set(t)
	read := func(name, target, refusals string) {
		s.Tool("name: " + name + "\nmode: read\ninput_schema: { type: object, properties: { product_id: { type: string }, new_price: { type: number } } }\n" +
			"target: { " + target + ", block: none }\nhttp: { method: GET, path: \"/x\" }\nexecution: { definite_failures: " + refusals + " }\n")
	}
	read("shop.stock", "type: product, id: /product_id", "[400]")
	read("shop.stock", "type: product, id: /product_id", "[404]")
	read("shop.coupon", "type: coupon, id: /product_id", "[404]")
	read("shop.tier", "type: product, id: /new_price", "[404]")
	var reads []string
	for _, tool := range []string{"stock", "coupon", "tier"} {
		reads = append(reads, "{ read: shop."+tool+", field: /open, expect: \"value == true\" }")
	}
	s.Tool(stage.Contract("shop.checked", "", "preconditions: [ "+strings.Join(reads, ", ")+" ]"))
	gone := func(version int) triage.Observation {
		return triage.Observation{Error: "status 404", ObservedAt: time.Now(), Wire: action.Wire{Status: 404, ToolVersion: version}}
	}
	moved := triage.Observation{Snapshot: []byte(`{"open":true,"version":"v2"}`), ObservedAt: time.Now()}
	same := triage.Observation{Snapshot: []byte(`{"open":true,"version":"v1"}`), ObservedAt: time.Now()}
	for _, c := range []struct {
		tool string
		o    triage.Observation
		want action.State
	}{
		{"shop.coupon", gone(1), action.Executing}, {"shop.coupon", moved, action.Executing},
		{"shop.tier", gone(0), action.Executing}, {"shop.tier", moved, action.Executing},
		{"shop.stock", gone(1), action.Executing}, {"shop.stock", gone(7), action.Executing}, {"shop.stock", same, action.Executing},
		{"shop.stock", gone(2), action.Conflict}, {"shop.stock", gone(0), action.Conflict}, {"shop.stock", moved, action.Conflict},
	} {
		p, version := stage.Proposal("shop.checked", stage.Product(), 7), "v1"
		p.ObjectVersion = &version
		a, _ := s.Claim(s.Approve(s.Propose(p), s.Mia))
		c.o.ID, c.o.Tool = action.NewID("obs"), c.tool
		snap, err := s.Triage.Observe(background(), s.Executor, a.ID, c.o)
		if must(t, err); snap.Action.State != c.want || snap.Action.Gone() != (c.want == action.Conflict && c.o.Error != "") {
			t.Errorf("%s, %+v: it is %s", c.tool, c.o, snap.Action.State)
		}
	}
}

// What was read since the claim counts by when it arrived: whoever reads may have a
// clock that is behind.
func TestPreconditionsHoldWhateverTheClockOfWhoReads(t *testing.T) {
	s := set(t)
	s.Tool("name: shop.stock\nmode: read\ninput_schema: { type: object, properties: { product_id: { type: string } } }\n" +
		"target: { type: product, id: /product_id, block: none }\nhttp: { method: GET, path: \"/x\" }\n")
	s.Tool(stage.Contract("shop.checked", "", `preconditions: [ { read: shop.read_price, field: /price, expect: "value == 1" }, { read: shop.stock, field: /open, expect: "value == true" } ]`))
	a, _ := s.Claim(s.Confirmed("shop.checked", stage.Product()))
	behind := time.Now().Add(-time.Minute)
	for tool, shows := range map[string]string{stage.ReadPrice: `{"price":1}`, "shop.stock": `{"open":true}`} {
		snap, err := s.Triage.Observe(background(), s.Executor, a.ID,
			triage.Observation{ID: action.NewID("obs"), Tool: tool, Snapshot: []byte(shows), ObservedAt: behind})
		must(t, err)
		a = snap.Action
	}
	if o := a.Observations[len(a.Observations)-1]; o.Holds != action.HoldsTrue {
		t.Errorf("both hold, and together they are %q", o.Holds)
	}
}
