package execution_test

import (
	"net/http"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// bound is a client of the console for a program within limits.
func (b *bench) bound(name string, g people.ClientGrants) *execution.Client {
	b.T.Helper()
	g.Roles = []string{people.RoleProposer}
	program := b.ClientWith(name, b.Admin, g)
	_, key, err := b.People.CreateKey(b.T.Context(), stage.System(action.NewID("req")), program.ID, 0)
	b.must(err)
	client, err := execution.NewClient(b.console.URL, execution.NewSecret(key), execution.Options{})
	b.must(err)
	return client
}

// Whether it can be done and whether it is wanted this time are two questions.
// An approval, however many gave it, answers the second alone.
func TestA9_WhoLostThePermissionDoesNotAct(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	read := func(id string) { // so that the page can show that the actor might, then
		b.await(id, "read", func(a action.Action) bool { return len(a.Observations) >= 2 })
	}
	stop := b.start(b.config())
	a := b.propose(setPrice, actor, to105, "8")
	read(a.ID)
	b.must(stop())
	b.approve(a)
	b.shopDo(http.MethodPut, "/catalog/people/"+actor, b.tokens.Control, `{"may_set_price":false}`)
	b.start(b.config())
	a = b.awaitState(a.ID, action.Failed)
	if a.FailureCode != execution.Forbidden || len(a.Attempts) != 0 || b.executions("catalog", a.ExecutionKey) != 0 {
		t.Errorf("failed with %q: %s", a.FailureCode, story(a))
	}
	s.says(a.ID, "not_submitted")
	for _, c := range b.calls("system=catalog") {
		if c.Method != http.MethodGet {
			t.Errorf("%s %s was sent", c.Method, c.Path)
		}
	}
}

// What is not listed, not in form or out of scope does not become an action, so
// that there is nothing to approve and nothing to run.
func TestA9_ListParametersAndScope(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	listed := b.bound("listed", people.ClientGrants{Tools: []string{setPrice}})
	crm := b.bound("crm", people.ClientGrants{Scopes: []string{"crm"}})
	free := b.bound("free", people.ClientGrants{})
	for name, c := range map[string]struct {
		client        *execution.Client
		tool, payload string
		version       string
		code          action.Code
	}{
		"not in the list":          {listed, refund, `{"order_id":"10086","amount":1,"reason":"x"}`, "", action.Forbidden},
		"no such tool":             {free, "catalog.delete_product", `{"product_id":"SKU-4411"}`, "", action.UnknownTool},
		"another scope":            {crm, setPrice, to105, "8", action.Forbidden},
		"missing":                  {free, setPrice, `{"product_id":"SKU-4411"}`, "8", action.InvalidPayload},
		"another type":             {free, setPrice, `{"product_id":"SKU-4411","new_price":"105"}`, "8", action.InvalidPayload},
		"out of range":             {free, setPrice, `{"product_id":"SKU-4411","new_price":-1}`, "8", action.InvalidPayload},
		"not in the form":          {free, setPrice, `{"product_id":"SKU-4411","new_price":105,"approved":true}`, "8", action.InvalidPayload},
		"no version looked at":     {free, setPrice, to105, "", action.InvalidArgument},
		"about another than named": {free, "notes.save_minutes", `{"customer_id":"c-2016","conversation_id":"talk-501","minutes":"x"}`, "", action.InvalidArgument},
	} {
		p := api.Propose{Tool: c.tool, Entry: "chat", Actor: &api.Actor{ID: actor}, Payload: []byte(c.payload)}
		if c.version != "" {
			p.ObjectVersion = &c.version
		}
		if name == "about another than named" {
			p.Target = &api.Target{Type: "customer", ID: "c-2017"}
		}
		if _, err := c.client.Propose(t.Context(), p, ""); !execution.HasCode(err, c.code) {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
	all, _, err := b.DB.Actions(t.Context(), approvals.Filter{Viewer: people.Viewer{All: true}, Limit: 10})
	b.must(err)
	if calls := b.calls(""); len(all) != 0 || len(calls) != 0 {
		t.Errorf("%d actions, %d calls of the shop", len(all), len(calls))
	}
	// Whoever is limited to another scope decides nothing here.
	elsewhere := b.PersonWith("eve", people.Grants{Roles: []string{people.RoleSupport}, Scopes: []string{"crm"}})
	a := b.propose(setPrice, actor, to105, "8")
	_, err = b.Approvals.Decide(t.Context(), elsewhere.ID, a.ID, approvals.Ballot{Approve: true, Revision: a.Revision, ProposalHash: a.ProposalHash, Method: people.ByPassword})
	if err == nil || b.get(a.ID).State != action.Proposed {
		t.Errorf("decided from elsewhere: %v", err)
	}
}
