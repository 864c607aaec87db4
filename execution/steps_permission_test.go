package execution_test

import (
	"net/http"
	"testing"

	"countersign/action"
	"countersign/store/stage"
)

// Who lost the permission after the first step does not take the second: what is
// missing is left to people.
func TestA9_WhoLostThePermissionTakesNoFurtherStep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a, claim := b.Claim(b.change(inSteps, stepwise{product: "SKU-4411", price: 105, version: "8"}))
	first := stage.Attempt(claim)
	first.Step = "price"
	_, _, err := b.Triage.Start(t.Context(), b.Executor, a.ID, first)
	b.must(err)
	done := stage.Receipt(first.ID, claim, action.Success)
	done.Body = []byte(`{"status":"SUCCEEDED","operation_id":"op-1","product_id":"SKU-4411","new_price":105,"currency":"EUR","version":9}`)
	b.Report(a, done)
	b.shopDo(http.MethodPut, "/catalog/products/SKU-4411", b.tokens.Control, `{"price":105}`)
	_, err = b.Triage.Release(t.Context(), b.Executor, a.ID, claim, "", "")
	b.must(err)
	b.shopDo(http.MethodPut, "/catalog/people/"+actor, b.tokens.Control, `{"may_set_price":false}`)
	b.start(b.config())
	a = b.await(a.ID, "left to people", func(a action.Action) bool { return a.Resumed > 0 && a.Exhausted() })
	if len(a.Attempts) != 1 || b.written(action.StepKey(a.ExecutionKey, "notify")) != 0 || stepsOf(a) != "price done, notify not_done" {
		t.Errorf("%s: %s", stepsOf(a), story(a))
	}
}
