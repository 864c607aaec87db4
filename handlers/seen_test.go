package handlers

import (
	"net/http"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// What was observed before a request was recorded neither closes it nor lets the
// same be proposed again, whenever it arrives and under whatever id.
func TestAnObservationOfBeforeTheAttemptClosesNothing(t *testing.T) {
	e := newEnv(t)
	e.Tool(replaced(stage.Contract("shop.asked", "", "status_query: { tool: shop.read_price }"), "retry: same_key", "retry: never"))
	a, claim := e.claimed("shop.asked")
	before := api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice, Snapshot: []byte(`{"status":"NOT_EXECUTED"}`), ObservedAt: time.Now().Add(-30 * time.Second)}
	path := "/v1/actions/" + a.ID + "/observations"
	e.post(people.RoleExecutor, path, before).want(201)
	attempt := action.NewID("att")
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: attempt, ClaimID: claim, Fingerprint: "sha256:ab"}).want(201)
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Unknown)).want(201)

	late := e.later(2 * time.Minute)
	observe := func(o api.Observation) answer {
		return send1(t, http.DefaultClient, late.URL, request{method: post, path: path, key: e.keys[people.RoleExecutor], body: o})
	}
	version := e.Read(a.ID).Version
	if again := into[api.Action](observe(before).want(201)); again.State != "result_unknown" || again.Version != version {
		t.Errorf("the same again: %s, version %d after %d", again.State, again.Version, version)
	}
	other := before
	other.Snapshot = []byte(`{"status":"SUCCEEDED"}`)
	observe(other).refused(action.IdempotencyKeyInUse)
	old := before
	old.ObservationID = action.NewID("obs")
	if now := into[api.Action](observe(old).want(201)); now.State != "result_unknown" {
		t.Fatalf("an answer of before it was sent makes it %s", now.State)
	}
	same := map[string]any{"tool": a.Tool, "actor": map[string]string{"id": a.Actor.ID}, "payload": a.Payload}
	e.propose(same).refused(action.DuplicateOpenAction)
	ahead := old
	ahead.ObservationID, ahead.ObservedAt = action.NewID("obs"), time.Now().Add(1000*time.Hour)
	if now := into[api.Action](observe(ahead).want(201)); now.State != "failed" {
		t.Errorf("an answer of after the fence makes it %s", now.State)
	}
	e.as(e.Mia).open("/actions/" + a.ID).says("says it was never executed").lacks("refused by")
}
