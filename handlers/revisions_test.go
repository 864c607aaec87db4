package handlers

import (
	"fmt"
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

func TestDraftsRevisionsAndCancelling(t *testing.T) {
	e := newEnv(t)
	draft := into[api.Action](e.propose(with(proposal(stage.SetPrice, stage.Product(), 105), "draft", true)).want(201))
	if draft.State != "draft" || draft.ExpiresAt != nil {
		t.Fatalf("%+v", draft)
	}
	address := "/v1/actions/" + draft.ID
	price := func(p float64) api.Revise {
		return api.Revise{Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":%v}`, draft.Target.ID, p), Reason: "again"}
	}
	revised := into[api.Action](e.post(people.RoleProposer, address+"/revisions", price(106), "If-Match", `"1"`).want(201))
	if revised.State != "draft" || revised.Revision != 2 || revised.Version != 2 || revised.ProposalHash == draft.ProposalHash {
		t.Errorf("revised %+v", revised)
	}
	again := into[api.Action](e.post(people.RoleProposer, address+"/revisions", price(106), "If-Match", `"1"`).want(201))
	if again.Version != 2 {
		t.Errorf("repeated as version %d", again.Version)
	}
	e.post(people.RoleProposer, address+"/revisions", price(107), "If-Match", `"1"`).refused(action.StaleRevision)
	if p := e.post(people.RoleProposer, address+"/submit", nil, "If-Match", `"1"`).refused(action.StaleRevision); p.Args["version"] != "2" {
		t.Errorf("names %v", p.Args)
	}
	submitted := into[api.Action](e.post(people.RoleProposer, address+"/submit", "{}", "If-Match", "2").want(200))
	if submitted.State != "proposed" || submitted.Version != 3 || submitted.ExpiresAt == nil {
		t.Errorf("submitted %+v", submitted)
	}
	e.Approve(e.Read(draft.ID), e.Mia)
	e.post(people.RoleProposer, address+"/revisions", price(108), "If-Match", `"4"`).refused(action.WrongState)
	cancelled := into[api.Action](e.post(people.RoleProposer, address+"/cancel", api.Cancel{Reason: "no more"}, "If-Match", `"4"`).want(200))
	if cancelled.State != "cancelled" || cancelled.Version != 5 {
		t.Errorf("cancelled %+v", cancelled)
	}
	e.post(people.RoleProposer, address+"/cancel", nil, "If-Match", `"5"`).refused(action.WrongState)
}

// A new revision voids every decision on the one before.
func TestRevisionVoidsApprovals(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.BigPrice)
	half := e.Approve(e.Read(a.ID), e.Mia)
	before := into[api.Action](e.get(people.RoleReader, "/v1/actions/"+a.ID).want(200))
	if before.Approvals.Given != 1 || before.Approvals.Required != 2 || before.Approvals.Eligible != 1 || !before.Approvals.Decisions[0].Counts {
		t.Errorf("approvals %+v", before.Approvals)
	}
	after := into[api.Action](e.post(people.RoleProposer, "/v1/actions/"+a.ID+"/revisions", api.Revise{Payload: a.Payload}, "If-Match", quotedVersion(half.Version)).want(201))
	if after.Approvals.Given != 0 || after.Approvals.Eligible != 2 || len(after.Approvals.Decisions) != 1 || after.Approvals.Decisions[0].Counts {
		t.Errorf("approvals %+v", after.Approvals)
	}
}

func TestIfMatch(t *testing.T) {
	e := newEnv(t)
	address := "/v1/actions/" + e.proposed(stage.SetPrice).ID
	e.post(people.RoleProposer, address+"/cancel", nil).refused(action.PreconditionRequired)
	for _, wrong := range []string{`W/"1"`, `"one"`, `*`, `"1", "2"`, `"01"`, `+1`, `0`, `"-1"`, `"1`, `""`} {
		e.post(people.RoleProposer, address+"/cancel", nil, "If-Match", wrong).refused(action.Malformed)
	}
	e.post(people.RoleProposer, address+"/cancel", nil, "If-Match", `"2"`).refused(action.StaleRevision)
	for _, call := range []string{"submit", "revisions", "cancel"} {
		e.post(people.RoleProposer, address+"/"+call, `{"payload":{}}`).refused(action.PreconditionRequired)
	}
	e.post(people.RoleProposer, address+"/cancel", nil, "If-Match", `1`).want(200)
}
