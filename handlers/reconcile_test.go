package handlers

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

// listable is a tool whose operations the business system lists.
const listable = "shop.listable"

// lists makes the tool, and the one that lists.
func (e *env) lists() {
	e.T.Helper()
	e.Tool("name: shop.list\nmode: read\ninput_schema: { type: object, properties: { from: { type: string }, to: { type: string }, cursor: { type: string } } }\nhttp: { method: GET, path: /operations }\n")
	e.Tool(stage.Contract(listable, "", `reconcile: { list: shop.list, key: /key, at: /at, outcome: { succeeded: [SUCCEEDED], queued: [QUEUED], failed: [FAILED] }, fields: { /new_price: /price }, settle: 1m }`))
}

// run asks for a reconciliation that nothing works on.
func (e *env) run() triage.Run {
	e.T.Helper()
	e.lists()
	run, err := e.Reconciler.Ask(e.T.Context(), triage.Who{ID: e.Ops().ID}, triage.Asked{Op: action.NewSecret(8), Tool: listable,
		From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)})
	if err != nil {
		e.T.Fatal(err)
	}
	return run
}

func listedOp(key string) api.ListedOperation {
	return api.ListedOperation{Key: key, At: "2026-11-30T10:00:00Z", Outcome: "SUCCEEDED"}
}

func TestPagesOfAList(t *testing.T) {
	e := newEnv(t)
	run := e.run()
	path := "/v1/reconciliations/" + run.ID + "/pages"
	next := "two"
	first := api.ListedPage{PageID: "page-1", Next: &next, Items: []api.ListedOperation{listedOp("exk_1"), listedOp("exk_1")}}
	work := into[api.WorkList](e.get(people.RoleExecutor, "/v1/work?tool=shop.*").want(200))
	i := len(work.Items) - 1
	if i < 0 || work.Items[i].Kind != "list" || work.Items[i].List == nil || work.Items[i].List.RunID != run.ID || *work.Items[i].Read != "shop.list" ||
		!work.Items[i].List.From.Equal(run.From.Add(-time.Minute)) || !work.Items[i].List.To.Equal(run.To.Add(time.Minute)) || work.Items[i].List.Cursor != nil {
		t.Fatalf("offered %+v", work)
	}
	after := into[api.Reconciliation](e.post(people.RoleExecutor, path, first).want(201))
	if after.State != "listing" || after.Listed != 2 || after.Cursor == nil || *after.Cursor != next {
		t.Errorf("after the first page: %+v", after)
	}
	if work := into[api.WorkList](e.get(people.RoleExecutor, "/v1/work").want(200)); len(work.Items) != 0 {
		t.Errorf("offered to another while one is at it: %+v", work)
	}
	// The same page again is the same; with other content it is not; and a second
	// executor that has read the same place comes too late.
	if again := into[api.Reconciliation](e.post(people.RoleExecutor, path, first).want(201)); again != after && (again.Pages != 1 || again.Listed != 2) {
		t.Errorf("again: %+v", again)
	}
	other := first
	other.Items = nil
	e.post(people.RoleExecutor, path, other).refused(action.IdempotencyKeyInUse)
	other.PageID = "page-1b"
	e.post(people.RoleExecutor, path, other).refused(action.WrongState)
	for name, wrong := range map[string]api.ListedPage{
		"no id":               {Cursor: &next},
		"an error and a page": {PageID: "p", Cursor: &next, Error: "away", Items: []api.ListedOperation{listedOp("exk_2")}},
		"no time":             {PageID: "p", Cursor: &next, Items: []api.ListedOperation{{Key: "exk_2", Outcome: "SUCCEEDED"}}},
		"no key":              {PageID: "p", Cursor: &next, Items: []api.ListedOperation{listedOp("")}},
		"another field":       {PageID: "p", Cursor: &next, Items: []api.ListedOperation{{Key: "exk_2", At: "2026-11-30T10:00:00Z", Fields: map[string]json.RawMessage{"/memo": json.RawMessage(`1`)}}}},
		"a NUL":               {PageID: "p", Cursor: &next, Items: []api.ListedOperation{listedOp("exk_\x00")}},
		"a long error":        {PageID: "p", Cursor: &next, Error: strings.Repeat("x", 1001)},
	} {
		if p := e.post(people.RoleExecutor, path, wrong).refused(action.InvalidArgument); len(p.Errors) == 0 {
			t.Errorf("%s: no place is named", name)
		}
	}
	failed := into[api.Reconciliation](e.post(people.RoleExecutor, path, api.ListedPage{PageID: "page-2", Cursor: &next, Error: "the system is away"}).want(201))
	if failed.State != "listing" || *failed.Cursor != next {
		t.Errorf("after a page that failed: %+v", failed)
	}
	done := into[api.Reconciliation](e.post(people.RoleExecutor, path, api.ListedPage{PageID: "page-3", Cursor: &next}).want(201))
	if done.State != "joining" || done.Cursor != nil || done.Pages != 2 {
		t.Errorf("after the last page: %+v", done)
	}
	e.post(people.RoleExecutor, path, api.ListedPage{PageID: "page-4", Cursor: &next}).refused(action.WrongState)
	e.post(people.RoleExecutor, "/v1/reconciliations/"+action.NewID("rec")+"/pages", first).refused(action.NotFound)
	e.post(people.RoleExecutor, "/v1/reconciliations/rec_1/pages", first).refused(action.NotFound)
}

func TestListsAreOfWholeTools(t *testing.T) {
	e := newEnv(t)
	run := e.run()
	for name, g := range map[string]people.ClientGrants{
		"other-tool": {Roles: []string{people.RoleExecutor}, Tools: []string{stage.SetPrice}},
		"one-scope":  {Roles: []string{people.RoleExecutor}, Scopes: []string{"shop"}},
	} {
		key := e.key(e.ClientWith(name, e.Admin, g), 0)
		if work := into[api.WorkList](e.do(request{method: get, path: "/v1/work", key: key}).want(200)); len(work.Items) != 0 {
			t.Errorf("%s is offered %+v", name, work.Items)
		}
		e.do(request{method: post, path: "/v1/reconciliations/" + run.ID + "/pages", key: key, body: api.ListedPage{PageID: "p"}}).refused(action.NotFound)
	}
}
