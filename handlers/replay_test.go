package handlers

import (
	"database/sql"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
)

// repeatable is a command of a program that is told from others by an id.
type repeatable struct {
	status  int
	path    string
	body    any
	header  map[string]string
	changed map[string]any // the same id with other content, by what is other
	code    action.Code    // with which those are refused
	others  []action.Code  // with which the same is refused to another program
}

// repeatables makes each command afresh, by the name of its route.
func repeatables(e *env) map[string]func() repeatable {
	ifMatch := func(a api.Action) map[string]string { return map[string]string{"If-Match": quotedVersion(a.Version)} }
	key := func() map[string]string { return map[string]string{"Idempotency-Key": action.NewID("key")} }
	foreign := []action.Code{action.Forbidden, action.NotFound}
	used := []action.Code{action.IdempotencyKeyInUse}
	reports := func(path string, status int, body any, changed map[string]any) repeatable {
		return repeatable{status: status, path: path, body: body, changed: changed, code: action.IdempotencyKeyInUse, others: used}
	}
	return map[string]func() repeatable{
		"propose": func() repeatable {
			body := proposal(stage.SetPrice, stage.Product(), 105)
			return repeatable{201, "/v1/actions", body, key(), map[string]any{"reason": with(body, "reason", "another"), "actor": with(body, "actor", map[string]any{"id": "u-18"}),
				"draft": with(body, "draft", true)}, action.IdempotencyKeyReused, []action.Code{action.DuplicateOpenAction}}
		},
		"submit": func() repeatable {
			a := into[api.Action](e.propose(with(proposal(stage.SetPrice, stage.Product(), 105), "draft", true)).want(201))
			return repeatable{200, "/v1/actions/" + a.ID + "/submit", nil, ifMatch(a), nil, "", foreign}
		},
		"revise": func() repeatable {
			a := e.proposed(stage.SetPrice)
			body := api.Revise{Payload: a.Payload, Reason: "better"}
			reason, version := body, body
			reason.Reason, version.ObjectVersion = "worse", new("v9")
			return repeatable{201, "/v1/actions/" + a.ID + "/revisions", body, ifMatch(a), map[string]any{"reason": reason, "version": version}, action.StaleRevision, foreign}
		},
		"cancel": func() repeatable {
			a := e.proposed(stage.SetPrice)
			return repeatable{200, "/v1/actions/" + a.ID + "/cancel", api.Cancel{Reason: "not wanted"}, ifMatch(a), map[string]any{"reason": api.Cancel{Reason: "a mistake"}},
				action.IdempotencyKeyInUse, foreign}
		},
		"claim": func() repeatable {
			a := e.confirmed(stage.SetPrice)
			body := bound(a, action.NewID("clm"))
			hash := body
			hash.ProposalHash = "sha256:" + strings.Repeat("0", 64)
			return repeatable{200, "/v1/confirmations/" + a.Confirmation.Ref + "/claim", body, nil, map[string]any{"hash": hash}, action.StaleRevision, []action.Code{action.AlreadyClaimed}}
		},
		"renew": func() repeatable {
			a, claim := e.claimed(stage.SetPrice)
			return reports("/v1/actions/"+a.ID+"/lease", 200, api.Renew{ClaimID: claim, LeaseID: "lea-1"}, map[string]any{"claim": api.Renew{ClaimID: "clm-2", LeaseID: "lea-1"}})
		},
		"release": func() repeatable {
			a, claim := e.claimed(stage.SetPrice)
			return reports("/v1/actions/"+a.ID+"/release", 200, api.Release{ClaimID: claim}, map[string]any{"code": api.Release{ClaimID: claim, Code: "FORBIDDEN"}})
		},
		"startAttempt": func() repeatable {
			a, claim := e.claimed(stage.SetPrice)
			body := api.Attempt{AttemptID: action.NewID("att"), ClaimID: claim, Fingerprint: "sha256:ab"}
			bytes, under := body, body
			bytes.Fingerprint, under.ClaimID = "sha256:cd", "clm-2"
			return reports("/v1/actions/"+a.ID+"/attempts", 201, body, map[string]any{"bytes": bytes, "claim": under})
		},
		"report": func() repeatable {
			a, claim, attempt := e.attempted(stage.SetPrice)
			body := receipt(attempt, claim, action.Success)
			body.Proves, body.Code = "accepted", "OK"
			other := map[string]any{}
			for what, change := range map[string]func(*api.Receipt){
				"proves": func(r *api.Receipt) { r.Proves = "completed" }, "code": func(r *api.Receipt) { r.Code = "FINE" }, "outcome": func(r *api.Receipt) { r.Outcome = "UNKNOWN" },
				"status": func(r *api.Receipt) { r.HTTPStatus = 201 }, "reference": func(r *api.Receipt) { r.ProviderRef = "op-2" },
				"version": func(r *api.Receipt) { r.ObjectVersionAfter = "9" }, "body": func(r *api.Receipt) { r.Body = []byte(`{"status":"late"}`) },
			} {
				changed := body
				change(&changed)
				other[what] = changed
			}
			return reports("/v1/actions/"+a.ID+"/receipts", 201, body, other)
		},
		"observe": func() repeatable {
			a := e.unknown("shop.asked")
			body := api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice, Snapshot: []byte(`{"status":"NOT_EXECUTED"}`), ObservedAt: time.Now().UTC()}
			says := body
			says.Snapshot = []byte(`{"status":"SUCCEEDED"}`)
			return reports("/v1/actions/"+a.ID+"/observations", 201, body, map[string]any{"snapshot": says})
		},
		"observe, a reading": func() repeatable {
			a := e.proposed(stage.SetPrice)
			body := api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice, Snapshot: []byte(`{"price":100}`), ObservedAt: time.Now().UTC()}
			says, then, failed := body, body, body
			says.Snapshot, then.ObservedAt, failed.Snapshot, failed.Error = []byte(`{"price":101}`), body.ObservedAt.Add(-time.Second), nil, "away"
			return reports("/v1/actions/"+a.ID+"/observations", 201, body, map[string]any{"snapshot": says, "time": then, "error": failed})
		},
		"reportPage": func() repeatable {
			path := "/v1/reconciliations/" + e.run().ID + "/pages"
			return reports(path, 201, api.ListedPage{PageID: "p1", Next: new("two")}, map[string]any{"next": api.ListedPage{PageID: "p1", Next: new("three")}, "error": api.ListedPage{PageID: "p1", Error: "away"}})
		},
		"openTask": func() repeatable {
			body := api.OpenTask{Title: "Answer a chat", Limits: api.TaskLimits{Writes: new(1)}}
			title, limit := body, body
			title.Title, limit.Limits = "Another", api.TaskLimits{Writes: new(2)}
			return repeatable{201, "/v1/tasks", body, key(), map[string]any{"title": title, "limit": limit}, action.IdempotencyKeyReused, nil}
		},
		"spend": func() repeatable {
			path := "/v1/tasks/" + e.task(api.TaskLimits{Decisions: new(5)}).ID + "/spend"
			return repeatable{201, path, api.Spend{SpendID: "s1", Decisions: 1}, nil, map[string]any{"rounds": api.Spend{SpendID: "s1", Decisions: 2}}, action.IdempotencyKeyInUse, foreign}
		},
	}
}

// An id that was used before is answered as then only for the same content from
// the same program. Anything else under it is refused, and nothing is recorded:
// of every command there is.
func TestAnIDUsedAgainWithOtherContent(t *testing.T) {
	e := newEnv(t)
	e.Tool(stage.Contract("shop.asked", "", "status_query: { tool: shop.read_price }"))
	another := e.key(e.Client("another", e.Admin, people.RoleProposer, people.RoleExecutor), 0)
	owner, err := sql.Open("postgres", storetest.Owner(e.DSN))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	recorded := func() (n int) {
		if err := owner.QueryRow("SELECT count(*) FROM events").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	role := map[string]string{}
	for _, r := range slices.Concat(apiRoutes(), callbackRoutes()) {
		if r.method != get {
			role[r.name] = people.RoleExecutor
		}
	}
	for _, name := range []string{"propose", "submit", "revise", "cancel", "openTask", "spend"} {
		role[name] = people.RoleProposer
	}
	// These have no id: each says how it shall be, or only looks. And callbacks
	// come from business systems, each with its own secret.
	for _, name := range []string{"putTool", "retireTool", "noteExecutor", "verify", "takeCallback"} {
		delete(role, name)
	}
	tried := map[string]bool{}
	for what, make := range repeatables(e) {
		name, _, _ := strings.Cut(what, ",")
		tried[name] = true
		c := make()
		send := func(key string, body any) answer {
			return e.do(request{method: post, path: c.path, key: key, body: body, header: c.header})
		}
		own := e.keys[role[name]]
		send(own, c.body).want(c.status)
		before := recorded()
		send(own, c.body).want(c.status)
		for other, body := range c.changed {
			if got := send(own, body); got.status != kindOf(c.code).status || into[api.Problem](got).Code != string(c.code) {
				t.Errorf("%s with another %s: %d %s", what, other, got.status, got.body)
			}
		}
		if c.others != nil {
			if got := send(another, c.body); got.status < 400 || !slices.Contains(c.others, action.Code(into[api.Problem](got).Code)) {
				t.Errorf("%s from another program: %d %s", what, got.status, got.body)
			}
		}
		if after := recorded(); after != before {
			t.Errorf("%s: %d events more", what, after-before)
		}
	}
	for name := range role {
		if !tried[name] {
			t.Errorf("nobody repeats %s", name)
		}
	}
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
