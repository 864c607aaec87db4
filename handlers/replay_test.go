package handlers

import (
	"net/http"
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// An id that was used before is answered as then only for the same content from
// the same program. Anything else under it is refused, and nothing is recorded.
func TestAnIDUsedAgainWithOtherContent(t *testing.T) {
	e := newEnv(t)
	a, claim, attempt := e.attempted(stage.SetPrice)
	report := receipt(attempt, claim, action.Success)
	report.Proves, report.Code = "accepted", "OK"
	path := "/v1/actions/" + a.ID + "/receipts"
	before := into[api.Action](e.post(people.RoleExecutor, path, report).want(201))
	e.post(people.RoleExecutor, path, report).want(201)
	other := report
	other.Proves = "completed"
	e.post(people.RoleExecutor, path, other).refused(action.IdempotencyKeyInUse)
	other = report
	other.Code = "FINE"
	e.post(people.RoleExecutor, path, other).refused(action.IdempotencyKeyInUse)
	if now := e.Read(a.ID); now.Version != before.Version {
		t.Errorf("version %d, before %d", now.Version, before.Version)
	}

	ended := e.proposed(stage.SetPrice)
	cancel := func(reason string) answer {
		return e.post(people.RoleProposer, "/v1/actions/"+ended.ID+"/cancel", api.Cancel{Reason: reason}, "If-Match", `"1"`)
	}
	cancel("not wanted any more").want(200)
	cancel("not wanted any more").want(200)
	cancel("a mistake").refused(action.IdempotencyKeyInUse)

	given, taken := e.claimed(stage.SetPrice)
	release := func(key string) answer {
		return e.do(request{method: post, path: "/v1/actions/" + given.ID + "/release", key: key, body: api.Release{ClaimID: taken}})
	}
	release(e.keys[people.RoleExecutor]).want(200)
	release(e.keys[people.RoleExecutor]).want(200)
	release(e.key(e.Client("another", e.Admin, people.RoleExecutor), 0)).refused(action.IdempotencyKeyInUse)
}

// Who is limited to tools sees their contracts, and those that they read with.
func TestContractsWithinLimits(t *testing.T) {
	e := newEnv(t)
	lim := e.as(e.PersonWith("lim", people.Grants{Roles: []string{people.RoleSupport}, Tools: []string{stage.ReadBack}}))
	lim.open("/tools").want(http.StatusOK).says(stage.ReadBack, stage.ReadPrice).lacks(stage.SetPrice, stage.BigPrice)
	lim.open("/tools/" + stage.ReadBack).want(http.StatusOK)
	lim.open("/tools/" + stage.ReadPrice).want(http.StatusOK)
	lim.open("/tools/" + stage.SetPrice).want(http.StatusNotFound)
	lim.open("/history").want(http.StatusOK).lacks(stage.SetPrice)
	lim.open("/approvals").want(http.StatusOK).lacks(stage.SetPrice)
	e.as(e.Mia).open("/tools").want(http.StatusOK).says(stage.SetPrice)

	// What the history has no filter for is said, and shows nothing.
	a := e.proposed(stage.SetPrice)
	mia := e.as(e.Mia)
	for query, says := range map[string]string{"state=applied": "The history has no filter state, so nothing is shown.", "outcome=done": "The filter outcome has no such choice",
		"took=long": "The filter took has no such choice", "after=x&limit=3": "The history has no filter limit"} {
		mia.open("/history?" + query).want(http.StatusUnprocessableEntity).says(says).lacks(a.ID)
		mia.open("/history.csv?" + query).want(http.StatusUnprocessableEntity)
	}
}
