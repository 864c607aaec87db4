package handlers

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
)

// damage changes what is stored, as nobody but the database's owner can.
func (e *env) damage(query, subject string) {
	e.T.Helper()
	owner, err := sql.Open("postgres", storetest.Owner(e.DSN))
	if err != nil {
		e.T.Fatal(err)
	}
	defer owner.Close()
	if r, err := owner.ExecContext(context.Background(), query, subject); err != nil {
		e.T.Fatal(err)
	} else if n, _ := r.RowsAffected(); n != 1 {
		e.T.Fatalf("%s changed %d rows", query, n)
	}
}

// The two ways in which a history cannot be read: something happened that only a
// newer console knows of, and what is stored is damaged.
const (
	newerEvent  = `UPDATE events SET kind = 'of-tomorrow' WHERE subject = $1 AND version = 1`
	damagedBody = `UPDATE bodies SET content = '{' WHERE subject = $1 AND version = 1`
)

// idsOf are the ids of a list, and of those in it that cannot be read.
func idsOf[T any](list api.List[T], of func(T) (string, *string)) (all, unread []string) {
	for _, item := range list.Items {
		id, told := of(item)
		if all = append(all, id); told != nil {
			unread = append(unread, id+": "+*told)
		}
	}
	return all, unread
}

// One action that cannot be read stands in every list as what its row says, and
// hides no other.
func TestWhatCannotBeReadStandsInEveryList(t *testing.T) {
	e := newEnv(t)
	mia, olga := e.as(e.Mia), e.as(e.Person("olga", people.RoleOps))
	k := e.Task(approvals.Limits{Writes: new(9)})
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.TaskID = k.ID
	waiting, lost := e.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105)), e.Propose(p)
	approved, lostApproved := e.Confirmed(stage.SetPrice, stage.Product()), e.Confirmed(stage.SetPrice, stage.Product())
	unknown, lostCase := e.unknown(stage.SetPrice), e.unknown(stage.SetPrice)
	e.damage(newerEvent, lost.ID)
	e.damage(newerEvent, lostApproved.ID)
	e.damage(damagedBody, lostCase.ID)
	says := "its history cannot be read: run console fold --check"

	for _, path := range []string{"/approvals", "/approvals?tab=all"} {
		mia.open(path).want(200).holds(`href="/actions/`+waiting.ID+`"`, `href="/actions/`+lost.ID+`"`).says(lost.ID + ": " + says)
	}
	olga.open("/history").want(200).holds(waiting.ID, approved.ID, unknown.ID).says(lost.ID+": "+says, lostApproved.ID+": "+says, lostCase.ID+": "+says)
	olga.open("/overview").want(200).says(lost.ID + ": " + says)
	shown := 0
	for _, tab := range []string{"", "?tab=asking"} {
		if page := olga.open("/triage" + tab).want(200); strings.Contains(string(page.body), *lostCase.CaseID) {
			page.holds(`href="/triage/` + *unknown.CaseID + `"`).says(lostCase.ID + ": " + says)
			shown++
		}
	}
	if shown != 1 {
		t.Errorf("the case stands in %d tabs", shown)
	}
	olga.open("/tasks/"+k.ID).want(200).says(lost.ID+": "+says, "Waiting for approval")
	next := mia.send("/actions/"+waiting.ID+"/decisions", formOf("decision", "approve", "proposal_hash", waiting.ProposalHash, "revision", "1", "op", newOp()))
	if strings.Contains(next.header.Get("Location"), lost.ID) {
		t.Errorf("led on to what cannot be read: %s", next.header.Get("Location"))
	}

	actions := into[api.List[api.Action]](e.get(people.RoleReader, "/v1/actions").want(200))
	all, unread := idsOf(actions, func(a api.Action) (string, *string) { return a.ID, a.Unreadable })
	if len(all) != 6 || len(unread) != 3 || unread[2] != lost.ID+": "+says {
		t.Errorf("actions %q, of which unreadable %q", all, unread)
	}
	if a := actions.Items[4]; a.ID != lost.ID || a.State != "proposed" || a.Statement.Level != "unknown" || a.Target == nil || a.ExpiresAt == nil {
		t.Errorf("what the row says: %+v", a)
	}
	cases := into[api.List[api.Case]](e.get(people.RoleReader, "/v1/cases").want(200))
	if all, unread := idsOf(cases, func(c api.Case) (string, *string) { return c.ActionID, c.Unreadable }); len(all) != 2 || len(unread) != 1 ||
		unread[0] != lostCase.ID+": "+says {
		t.Errorf("cases %q, of which unreadable %q", all, unread)
	}
	second := into[api.List[api.Case]](e.get(people.RoleReader, "/v1/cases?limit=1").want(200))
	if rest := into[api.List[api.Case]](e.get(people.RoleReader, "/v1/cases?limit=1&cursor="+*second.NextCursor).want(200)); len(rest.Items) != 1 || rest.Items[0].ID == second.Items[0].ID {
		t.Errorf("after %+v came %+v", second, rest)
	}
	for _, item := range into[api.WorkList](e.get(people.RoleExecutor, "/v1/work").want(200)).Items {
		if item.ActionID == lostApproved.ID || item.ActionID == lostCase.ID {
			t.Errorf("work on what cannot be read: %+v", item)
		}
	}
	line := `{"action_id":"` + lostCase.ID + `","state":"result_unknown","unreadable":"` + says + `"}`
	for _, file := range []answer{e.get(people.RoleReader, "/v1/calls"), olga.open("/history.jsonl")} {
		file.want(200).holds(unknown.ID, line, `"end":true`)
	}
	olga.open("/history.csv").want(200).holds(waiting.ID, lost.ID+",", says)
	into[api.Task](e.get(people.RoleProposer, "/v1/tasks/"+k.ID).want(200))
	e.get(people.RoleReader, "/v1/actions/"+lost.ID).refused(action.StaleRevision)
	olga.open("/actions/" + lost.ID).want(409)
}

// instead proposes an action to replace another one, and has it approved.
func (e *env) instead(of action.Action) action.Action {
	e.T.Helper()
	p := stage.Proposal(of.Tool, of.Target.ID, 106)
	p.Links.Replaces = of.ID
	return e.Approve(e.Propose(p), e.Mia)
}

// cancelled is an action that will not run.
func (e *env) cancelled() action.Action {
	e.T.Helper()
	a := e.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	snap, err := e.Approvals.Cancel(context.Background(), e.Agent, a.ID, a.Version, "not wanted")
	if err != nil {
		e.T.Fatal(err)
	}
	return snap.Action
}

// What cannot be read, alone, a page of it or beside what is linked to it, and
// what is linked to it, holds up no other work.
func TestWorkGoesOnBehindWhatCannotBeRead(t *testing.T) {
	e := newEnv(t)
	lost := e.Confirmed(stage.SetPrice, stage.Product())
	original := e.cancelled()
	linked := e.instead(original)
	var page []action.Action
	for range 3 {
		page = append(page, e.Confirmed(stage.SetPrice, stage.Product()))
	}
	behind := e.Confirmed(stage.SetPrice, stage.Product())
	for _, a := range append(page, lost, original) {
		e.damage(newerEvent, a.ID)
	}
	for _, limit := range []int{1, 2, 3, 9} {
		f := approvals.WorkFilter{Viewer: people.Viewer{All: true}, Executor: e.Executor.ID, Limit: limit}
		found, _, err := e.DB.Work(context.Background(), f)
		if err != nil || len(found) != min(limit, 2) || found[0].ID != linked.ID || limit > 1 && found[1].ID != behind.ID {
			t.Errorf("of %d: found %d: %v", limit, len(found), err)
		}
		offered, _, err := e.inner.offered(context.Background(), f)
		if err != nil || len(offered) != 1 || offered[0].ID != behind.ID {
			t.Errorf("of %d: offered %d: %v", limit, len(offered), err)
		}
	}
	if items := into[api.WorkList](e.get(people.RoleExecutor, "/v1/work").want(200)).Items; len(items) != 1 || items[0].ActionID != behind.ID {
		t.Errorf("offered %+v", items)
	}
}

// What happened to a task later does not keep it out of the list, and what it was
// opened with, damaged, keeps no other out.
func TestATaskThatCannotBeReadStandsInTheList(t *testing.T) {
	e := newEnv(t)
	whole, lost := e.Task(approvals.Limits{Writes: new(9)}), e.Task(approvals.Limits{Writes: new(9)})
	e.damage(damagedBody, lost.ID)
	e.as(e.Mia).open("/tasks").want(200).holds("/tasks/"+whole.ID).says(lost.ID+": its history cannot be read: run console fold --check", whole.Title)
}
