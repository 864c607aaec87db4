package handlers

import (
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

// Programs read cases, page by page, and see what people do about them.
func TestCasesForPrograms(t *testing.T) {
	e := newEnv(t)
	olga := e.Person("olga", people.RoleOps)
	first, second := e.unknown(stage.SetPrice), e.unknown(stage.SetPrice)
	page := into[api.List[api.Case]](e.get(people.RoleReader, "/v1/cases?limit=1").want(200))
	if len(page.Items) != 1 || page.NextCursor == nil || page.Items[0].ActionID != first.ID {
		t.Fatalf("%+v", page)
	}
	rest := into[api.List[api.Case]](e.get(people.RoleReader, "/v1/cases?limit=1&cursor="+*page.NextCursor).want(200))
	if len(rest.Items) != 1 || rest.NextCursor != nil || rest.Items[0].ActionID != second.ID {
		t.Fatalf("%+v", rest)
	}
	c := page.Items[0]
	a := e.Read(first.ID)
	if c.ID != *first.CaseID || c.Kind != action.CaseUnknown || c.Why != action.WhyUnknownReceipt || !c.Open || !c.Asking.NeedsPerson || c.Holder != nil ||
		c.KeyExpiresAt == nil || c.FencedAt == nil || c.SnapshotHash != a.SnapshotHash() || c.Version != a.Version || c.Links.Page != e.server.URL+"/triage/"+c.ID {
		t.Errorf("%+v", c)
	}
	snap, err := e.Cases.Take(t.Context(), triage.Who{ID: olga.ID}, triage.See(a))
	if err != nil {
		t.Fatal(err)
	}
	get := func() api.Case { return into[api.Case](e.get(people.RoleProposer, "/v1/cases/"+c.ID).want(200)) }
	if h := get().Holder; h == nil || h.Person != olga.ID || h.Name != olga.Name {
		t.Errorf("holder %+v", h)
	}
	if _, err = e.Cases.Settle(t.Context(), triage.Who{ID: olga.ID}, triage.See(snap.Action), triage.Finding{Verdict: action.Happened,
		EvidenceKind: action.EvidenceStatement, EvidenceRef: "PayHub", Note: "it is done"}); err != nil {
		t.Fatal(err)
	}
	if c := get(); c.Open || c.ClosedAt == nil || c.Verdict == nil || *c.Verdict.Note != "it is done" || c.Verdict.Person != olga.ID || c.Holder != nil {
		t.Errorf("settled: %+v", c)
	}
	settled := into[api.List[api.Case]](e.get(people.RoleReader, "/v1/cases?tab=settled&tool="+stage.SetPrice).want(200))
	if len(settled.Items) != 1 || settled.Items[0].ID != c.ID {
		t.Errorf("%+v", settled)
	}
	for _, address := range []string{"/v1/cases?tab=mine", "/v1/cases?cursor=x", "/v1/cases?limit=0", "/v1/cases?other=1"} {
		e.get(people.RoleReader, address).refused(action.InvalidArgument)
	}
	for _, address := range []string{"/v1/cases/" + action.NewID("cas"), "/v1/cases/x", "/v1/cases/" + first.ID} {
		e.get(people.RoleReader, address).refused(action.NotFound)
	}
}
