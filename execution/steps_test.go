package execution_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"countersign/action"
	"countersign/store"
	"countersign/triage"
)

const (
	inSteps = "catalog.set_price_and_notify"
	stepped = "catalog.hurried_steps"
)

// stepwise is a product whose price is changed and announced.
type stepwise struct {
	name, product string
	price         float64 // the new one
	version       string  // before
	fault         string  // of the first request for a notice
	notices       int     // requests for one, in the end

	action action.Action
}

// change proposes and approves the change of a product's price.
func (b *bench) change(tool string, s stepwise) action.Action {
	b.T.Helper()
	if s.fault != "" {
		b.arm(fmt.Sprintf(`{"system":"catalog","method":"POST","path":"/catalog/products/%s/notices",%s}`, s.product, s.fault))
	}
	return b.approve(b.propose(tool, actor, fmt.Sprintf(`{"product_id":%q,"new_price":%v}`, s.product, s.price), s.version))
}

// written counts the requests to write that the catalogue received under a key.
func (b *bench) written(key string) (n int) {
	b.T.Helper()
	for _, c := range b.calls("system=catalog&key=" + key) {
		if c.Method == http.MethodPost {
			n++
		}
	}
	return n
}

// changedOnce looks that the price was written once and announced once, under their own
// keys, in as many requests as given.
func (b *bench) changedOnce(s stepwise, a action.Action, prices, notices int) {
	b.T.Helper()
	price, notify := action.StepKey(a.ExecutionKey, "price"), action.StepKey(a.ExecutionKey, "notify")
	if n, m := b.written(price), b.written(notify); n != prices || m != notices || b.written(a.ExecutionKey) != 0 {
		b.T.Errorf("%s: the price was sent %d times and the notice %d times: %s", s.name, n, m, story(a))
	}
	if n, m := b.executions("catalog", price), b.executions("catalog", notify); n != 1 || m != 1 {
		b.T.Errorf("%s: the price was changed %d times, the notice sent %d times: %s", s.name, n, m, story(a))
	}
	if got := stepsOf(a); got != "price done, notify done" || a.CaseID() != "" {
		b.T.Errorf("%s: %s: %s", s.name, got, story(a))
	}
	if now, _ := b.product(s.product); now != s.price {
		b.T.Errorf("%s: the price is %v", s.name, now)
	}
}

// stepsOf are the states of an action's steps, in their order.
func stepsOf(a action.Action) string {
	var states []string
	for _, s := range a.Steps {
		states = append(states, s.Name+" "+string(a.StepState(s)))
	}
	return strings.Join(states, ", ")
}

// Price changed, and what became of the notice is not known: it is asked about
// under its own key, and only the notice is sent again, if at all.
func TestB8_OnlyTheMissingStepIsSentAgain(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b := newBench(t)
		b.sweeping()
		b.hurriedOf(inSteps, stepped, "failed: [FAILED] } }", "failed: [FAILED], not_executed: [NOT_FOUND] } }")
		all := []stepwise{
			{name: "no fault", product: "SKU-4411", price: 105, version: "8", notices: 1},
			{name: "the request is lost", product: "SKU-4412", price: 155, version: "5", fault: `"fault":"lost-request"`, notices: 2},
			{name: "the answer is lost", product: "SKU-4420", price: 655, version: "9", fault: `"fault":"act-then-reset"`, notices: 1},
			{name: "out of order", product: "SKU-4431", price: 133, version: "4", fault: `"fault":"error-before","status":503`, notices: 2},
			{name: "too many requests", product: "SKU-4432", price: 80, version: "6", fault: `"fault":"error-before","status":429`, notices: 2},
		}
		for i, s := range all {
			all[i].action = b.change(stepped, s)
		}
		b.arm(`{"system":"catalog","method":"POST","object":"SKU-4440","fault":"lie"}`)
		lie := b.change(stepped, stepwise{product: "SKU-4440", price: 42, version: "7"})
		b.start(b.config())
		for _, s := range all {
			b.changedOnce(s, b.ends(s.action.ID, action.Applied), 1, s.notices)
		}
		// Nobody is told of a price that is not there.
		lie = b.ends(lie.ID, action.ResultUnknown)
		if n := b.written(action.StepKey(lie.ExecutionKey, "notify")); n != 0 || lie.Case.Why != action.WhyMismatch || stepsOf(lie) != "price unknown, notify not_done" {
			t.Errorf("%d notices, %+v, %s: %s", n, lie.Case, stepsOf(lie), story(lie))
		}
	})
}

// An executor that is killed between any two steps, and started again, finds out
// first, and then takes only the step that is missing.
func TestKilledBetweenStepsOnlyTheMissingOneIsTaken(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b := newBench(t)
		b.killedBetweenSteps(b.process)
	})
}

func (b *bench) killedBetweenSteps(start func(tool string) *process) {
	b.T.Helper()
	b.sweeping()
	changes := []stepwise{
		{product: "SKU-4411", price: 105, version: "8", notices: 1},
		{product: "SKU-4412", price: 155, version: "5", notices: 1},
		{product: "SKU-4420", price: 655, version: "9", notices: 1},
		{product: "SKU-4431", price: 133, version: "4", notices: 1},
		{product: "SKU-4432", price: 80, version: "6", notices: 1},
	}
	all := []*crash{
		{name: "after the price was sent, before its receipt", call: "receipts", nth: 1, attempts: 2},
		{name: "after the price's receipt", call: "receipts", nth: 1, recorded: true, attempts: 2},
		{name: "before the notice's attempt is recorded", call: "attempts", nth: 2, attempts: 2},
		{name: "after the notice's attempt, before sending", call: "attempts", nth: 2, recorded: true, attempts: 3},
		{name: "after the notice was sent, before its receipt", call: "receipts", nth: 2, attempts: 2},
	}
	for i, c := range all {
		tool := fmt.Sprintf("catalog.crash_%d", i)
		b.hurriedOf(inSteps, tool, "failed: [FAILED] } }", "failed: [FAILED], not_executed: [NOT_FOUND] } }")
		changes[i].name = c.name
		c.action = b.change(tool, changes[i])
	}
	b.killed(all, start)
	for i, c := range all {
		a := b.ends(c.action.ID, action.Applied)
		b.changedOnce(changes[i], a, 1, changes[i].notices)
		if len(a.Attempts) != c.attempts {
			b.T.Errorf("%s: %d attempts: %s", c.name, len(a.Attempts), story(a))
		}
	}
}

// Price changed, the notice definitely refused: it was done in part. An action
// that resumes it takes only the step that is missing, and closes it.
func TestB8_ARefusedStepIsResumedByALinkedAction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := stepwise{product: "SKU-4411", price: 105, version: "8", fault: `"fault":"error-before","status":422`}
	a := b.change(inSteps, s)
	b.start(b.config())
	a = b.ends(a.ID, action.ResultUnknown)
	level, _ := a.Statement(a.UpdatedAt)
	if got := stepsOf(a); got != "price done, notify not_done" || a.Case.Why != action.WhyStep || level != action.LevelPartial || !a.Exhausted() || !a.Partly() {
		t.Fatalf("%s, %+v, says %s: %s", got, a.Case, level, story(a))
	}
	tool, err := b.Catalogue.Version(t.Context(), a.Tool, a.ToolVersion)
	b.must(err)
	compared, err := triage.Compare(t.Context(), tool, a)
	b.must(err)
	if len(compared) == 0 || compared[0].At.IsZero() || compared[0].Holds != action.HoldsTrue {
		t.Errorf("what was read back of the step is compared as %+v", compared)
	}
	if at, late := a.LateUntil(); late {
		t.Errorf("a late answer is awaited until %s, although every request was answered", at)
	}
	rest := b.ends(b.linked(action.Links{Resumes: a.ID}, inSteps, to105, "9").ID, action.Applied)
	if got := stepsOf(rest); got != "notify done" || b.written(action.StepKey(rest.ExecutionKey, "price")) != 0 {
		t.Errorf("the rest is %s: %s", got, story(rest))
	}
	b.must(b.Triage.Conclude(t.Context()))
	a = b.get(a.ID)
	if a.State != action.Applied || a.CaseID() != "" || a.Concluded != rest.ID {
		t.Errorf("concluded by %q: %s", a.Concluded, story(a))
	}
	for key, want := range map[string]int{action.StepKey(a.ExecutionKey, "price"): 1, action.StepKey(a.ExecutionKey, "notify"): 0, action.StepKey(rest.ExecutionKey, "notify"): 1} {
		if n := b.executions("catalog", key); n != want {
			t.Errorf("%s: done %d times, want %d", key, n, want)
		}
	}
	result, err := b.DB.FoldCheck(t.Context(), "", func(d store.Difference) { t.Errorf("%+v", d) })
	if b.must(err); result.Differences != 0 || result.Actions < 2 {
		t.Errorf("%+v", result)
	}
}
