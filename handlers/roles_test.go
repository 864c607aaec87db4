package handlers

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// calls says for every API route how to make a request that succeeds when the
// key may make it. Each has an action of its own.
func calls() map[string]func(e *env) request {
	id := func(a api.Action, rest string) string { return "/v1/actions/" + a.ID + rest }
	ref := func(a api.Action, rest string) string { return "/v1/confirmations/" + a.Confirmation.Ref + rest }
	return map[string]func(e *env) request{
		"putTool": func(*env) request {
			return request{method: put, path: "/v1/tools/shop.more", body: stage.Contract("shop.more", "", "timeout: "+strconv.Itoa(1+time.Now().Nanosecond()%50)+"s")}
		},
		"listTools": func(*env) request { return request{method: get, path: "/v1/tools"} },
		"getTool":   func(*env) request { return request{method: get, path: "/v1/tools/" + stage.SetPrice} },
		"retireTool": func(*env) request {
			return request{method: post, path: "/v1/tools/" + stage.Small + "/retire", body: api.Retire{OpenActions: "keep"}}
		},
		"propose": func(*env) request {
			return request{method: post, path: "/v1/actions", body: proposal(stage.SetPrice, stage.Product(), 105), header: pairs([]string{"Idempotency-Key", action.NewID("key")})}
		},
		"listActions":  func(*env) request { return request{method: get, path: "/v1/actions"} },
		"getAction":    func(e *env) request { return request{method: get, path: id(e.proposed(stage.SetPrice), "")} },
		"getStatement": func(e *env) request { return request{method: get, path: id(e.proposed(stage.SetPrice), "/statement")} },
		"submit": func(e *env) request {
			body := with(proposal(stage.SetPrice, stage.Product(), 105), "draft", true)
			a := into[api.Action](e.post(people.RoleProposer, "/v1/actions", body, "Idempotency-Key", action.NewID("key")).want(201))
			return request{method: post, path: id(a, "/submit"), header: pairs([]string{"If-Match", quotedVersion(a.Version)})}
		},
		"revise": func(e *env) request {
			a := e.proposed(stage.SetPrice)
			return request{method: post, path: id(a, "/revisions"), body: api.Revise{Payload: a.Payload}, header: pairs([]string{"If-Match", quotedVersion(a.Version)})}
		},
		"cancel": func(e *env) request {
			a := e.proposed(stage.SetPrice)
			return request{method: post, path: id(a, "/cancel"), header: pairs([]string{"If-Match", quotedVersion(a.Version)})}
		},
		"work":            func(*env) request { return request{method: get, path: "/v1/work"} },
		"getConfirmation": func(e *env) request { return request{method: get, path: ref(e.confirmed(stage.SetPrice), "")} },
		"verify": func(e *env) request {
			a := e.confirmed(stage.SetPrice)
			return request{method: post, path: ref(a, "/verify"), body: api.Verify{ProposalHash: a.ProposalHash}}
		},
		"claim": func(e *env) request {
			a := e.confirmed(stage.SetPrice)
			return request{method: post, path: ref(a, "/claim"), body: bound(a, action.NewID("clm"))}
		},
		"exportCalls": func(e *env) request { e.unknown(stage.SetPrice); return request{method: get, path: "/v1/calls"} },
		"metrics":     func(*env) request { return request{method: get, path: "/metrics"} },
		"noteExecutor": func(*env) request {
			return request{method: post, path: "/v1/executors", body: api.Executor{Instance: action.NewID("ins"), Tools: []string{"shop.*"}, Systems: []api.SystemHealth{}}}
		},
		"renew": func(e *env) request {
			a, claim := e.claimed(stage.SetPrice)
			return request{method: post, path: id(a, "/lease"), body: api.Renew{ClaimID: claim}}
		},
		"release": func(e *env) request {
			a, claim := e.claimed(stage.SetPrice)
			return request{method: post, path: id(a, "/release"), body: api.Release{ClaimID: claim}}
		},
		"startAttempt": func(e *env) request {
			a, claim := e.claimed(stage.SetPrice)
			return request{method: post, path: id(a, "/attempts"), body: api.Attempt{AttemptID: action.NewID("att"), ClaimID: claim, Fingerprint: "sha256:ab"}}
		},
		"report": func(e *env) request {
			a, claim, attempt := e.attempted(stage.SetPrice)
			return request{method: post, path: id(a, "/receipts"), body: receipt(attempt, claim, action.Success)}
		},
		"listCases": func(e *env) request { e.unknown(stage.SetPrice); return request{method: get, path: "/v1/cases"} },
		"getCase": func(e *env) request {
			return request{method: get, path: "/v1/cases/" + *e.unknown(stage.SetPrice).CaseID}
		},
		"reportPage": func(e *env) request {
			return request{method: post, path: "/v1/reconciliations/" + e.run().ID + "/pages", body: api.ListedPage{PageID: action.NewID("pag")}}
		},
		"openTask": func(*env) request {
			return request{method: post, path: "/v1/tasks", body: budget(api.TaskLimits{Writes: new(1)}), header: pairs([]string{"Idempotency-Key", action.NewID("key")})}
		},
		"getTask": func(e *env) request {
			return request{method: get, path: "/v1/tasks/" + e.task(api.TaskLimits{Writes: new(1)}).ID}
		},
		"spend": func(e *env) request {
			return request{method: post, path: "/v1/tasks/" + e.task(api.TaskLimits{Writes: new(1)}).ID + "/spend", body: api.Spend{SpendID: "s", Decisions: 1}}
		},
		"observe": func(e *env) request {
			return request{method: post, path: id(e.confirmed(stage.SetPrice), "/observations"), body: api.Observation{ObservationID: action.NewID("obs"),
				Tool: stage.ReadPrice, Snapshot: []byte(`{"price":100}`), ObservedAt: time.Now()}}
		},
	}
}

// apiKeyRoutes are the routes that take API keys.
func apiKeyRoutes() []route {
	return slices.DeleteFunc(apiRoutes(), func(rt route) bool { return len(rt.who.keys) == 0 })
}

func TestEveryRoleOnEveryRoute(t *testing.T) {
	e := newEnv(t)
	makers := calls()
	for _, rt := range apiKeyRoutes() {
		maker, ok := makers[rt.name]
		if !ok {
			t.Errorf("%s: nobody says how to call it", rt.name)
			continue
		}
		for role, key := range e.keys {
			q := maker(e)
			q.key = key
			a := e.do(q)
			if slices.Contains(rt.who.keys, role) {
				if a.status != rt.call.status {
					t.Errorf("%s as %s: status %d, want %d: %s", rt.name, role, a.status, rt.call.status, a.body)
				}
				continue
			}
			if p := a.refused(action.Forbidden); p.Reason != "role" {
				t.Errorf("%s as %s: refused for %q", rt.name, role, p.Reason)
			}
		}
	}
}

func TestKeysThatDoNotWork(t *testing.T) {
	e := newEnv(t)
	revoked := e.ClientWith("revoked", e.Admin, people.ClientGrants{Roles: []string{people.RoleProposer, people.RoleExecutor, people.RoleReader, people.RoleAdmin}})
	revokedKey := e.key(revoked, 0)
	known, err := e.DB.Client(context.Background(), revoked.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.People.RevokeKey(context.Background(), stage.System("revoke"), revoked.ID, known.Keys[0].ID); err != nil {
		t.Fatal(err)
	}
	disabled := e.Client("disabled", e.Admin, people.RoleAdmin)
	disabledKey := e.key(disabled, 0)
	if _, err := e.People.DisableClient(context.Background(), stage.System("disable"), disabled.ID); err != nil {
		t.Fatal(err)
	}
	hour := e.key(e.Client("expired", e.Admin, people.RoleAdmin), time.Hour)
	later := e.later(time.Hour)
	good := e.keys[people.RoleAdmin]
	for name, c := range map[string]struct {
		header, reason string
		base           string
	}{
		"none":      {"", "key-missing", e.server.URL},
		"no scheme": {good, "key-missing", e.server.URL},
		"basic":     {"Basic " + good, "key-missing", e.server.URL},
		"no key":    {"Bearer nonsense", "key", e.server.URL},
		"unknown":   {"Bearer " + good[:len(good)-1] + map[bool]string{true: "1", false: "0"}[good[len(good)-1] == '0'], "key", e.server.URL},
		"revoked":   {"Bearer " + revokedKey, "key-revoked", e.server.URL},
		"disabled":  {"Bearer " + disabledKey, "client-disabled", e.server.URL},
		"expired":   {"Bearer " + hour, "key-expired", later.URL},
	} {
		for _, rt := range apiKeyRoutes() {
			q := request{method: rt.method, path: someAddress(rt), header: map[string]string{}}
			if c.header != "" {
				q.header["Authorization"] = c.header
			}
			a := send1(t, http.DefaultClient, c.base, q)
			if p := a.refused(action.Unauthorized); p.Reason != c.reason || a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with the key %s: %q, want %q", rt.name, name, p.Reason, c.reason)
			}
		}
	}
	e.get(people.RoleAdmin, "/v1/tools").want(200) // the others do not stand in the way of a good one
}

// someAddress is an address that the route matches.
func someAddress(rt route) string {
	address := rt.pattern
	for name, value := range map[string]string{"{id}": action.NewID("act"), "{ref}": action.NewRef(), "{case}": action.NewID("cas"), "{task}": action.NewID("tsk"), "{name}": stage.SetPrice} {
		address = replaced(address, name, value)
	}
	return address
}

// A key that is limited to another tool sees nothing of this one.
func TestLimitedKeys(t *testing.T) {
	e := newEnv(t)
	makers := calls()
	for _, rt := range apiKeyRoutes() {
		for _, role := range rt.who.keys {
			if role == people.RoleAdmin {
				continue // limits are for the other roles
			}
			q := makers[rt.name](e)
			q.key = e.limited(role, stage.BigPrice)
			a := e.do(q)
			switch rt.name {
			case "openTask":
				a.want(201) // what is proposed under it is limited
			case "listActions":
				if items := into[api.List[api.Action]](a.want(200)).Items; len(items) > 0 {
					t.Errorf("%s sees %d actions", role, len(items))
				}
			case "listCases":
				if items := into[api.List[api.Case]](a.want(200)).Items; len(items) > 0 {
					t.Errorf("%s sees %d cases", role, len(items))
				}
			case "exportCalls":
				if lines := strings.Count(string(a.want(200).body), "\n"); lines != 1 {
					t.Errorf("%s sees %d calls", role, lines-1)
				}
			case "metrics":
				a.refused(action.Forbidden)
			case "noteExecutor":
				a.want(200) // says nothing about any tool but its own
			case "work":
				if items := into[api.WorkList](a.want(200)).Items; len(items) > 0 {
					t.Errorf("%s is offered %d actions", role, len(items))
				}
			case "listTools":
				if items := into[api.List[api.Tool]](a.want(200)).Items; len(items) != 1 || items[0].Name != stage.BigPrice {
					t.Errorf("%s sees %d tools", role, len(items))
				}
			case "getTool":
				a.refused(action.UnknownTool)
			case "propose":
				if p := a.refused(action.Forbidden); p.Reason != "tool" {
					t.Errorf("refused for %q", p.Reason)
				}
			default:
				a.refused(action.NotFound)
			}
		}
	}
}

// What one may not see is answered like what is not there.
func TestUnseenIsLikeAbsent(t *testing.T) {
	e := newEnv(t)
	other := e.key(e.Client("other", e.Admin, people.RoleProposer), 0)
	unseen, absent, misspelt := e.proposed(stage.SetPrice).ID, action.NewID("act"), "act_%00'"
	tell := func(id string) api.Problem {
		p := e.do(request{method: get, path: "/v1/actions/" + id, key: other}).refused(action.NotFound)
		p.RequestID = ""
		return p
	}
	if a, b, c := tell(unseen), tell(absent), tell(misspelt); a.Detail != b.Detail || b.Detail != c.Detail {
		t.Errorf("told apart: %q, %q, %q", a.Detail, b.Detail, c.Detail)
	}
}

func TestManyBadKeysAreSlowedDown(t *testing.T) {
	e := newEnv(t)
	for i := range maxFailedKeys + 1 {
		a := e.do(request{method: get, path: "/v1/tools", key: "nonsense"})
		if a.status == http.StatusTooManyRequests {
			if p := a.refused(action.RateLimited); i < maxFailedKeys/2 || a.header.Get("Retry-After") == "" {
				t.Errorf("after %d tries: %+v", i, p)
			}
			e.get(people.RoleAdmin, "/v1/tools").want(200)
			return
		}
		a.refused(action.Unauthorized)
	}
	t.Error("nothing slows it down")
}
