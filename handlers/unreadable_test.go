package handlers

import (
	"context"
	"database/sql"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
	"countersign/web"
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

	for _, path := range []string{"/approvals", "/approvals?tab=all"} {
		mia.open(path).want(200).holds(`href="/actions/`+waiting.ID+`"`, `href="/actions/`+lost.ID+`"`).says(lost.ID + ": " + cannotRead)
	}
	olga.open("/history").want(200).holds(waiting.ID, approved.ID, unknown.ID).says(lost.ID+": "+cannotRead, lostApproved.ID+": "+cannotRead, lostCase.ID+": "+cannotRead)
	olga.open("/overview").want(200).says(lost.ID + ": " + cannotRead)
	shown := 0
	for _, tab := range []string{"", "?tab=asking"} {
		if page := olga.open("/triage" + tab).want(200); strings.Contains(string(page.body), *lostCase.CaseID) {
			page.holds(`href="/triage/` + *unknown.CaseID + `"`).says(lostCase.ID + ": " + cannotRead)
			shown++
		}
	}
	if shown != 1 {
		t.Errorf("the case stands in %d tabs", shown)
	}
	olga.open("/tasks/"+k.ID).want(200).says(lost.ID+": "+cannotRead, "Waiting for approval")
	next := mia.send("/actions/"+waiting.ID+"/decisions", formOf("decision", "approve", "proposal_hash", waiting.ProposalHash, "revision", "1", "op", newOp()))
	if strings.Contains(next.header.Get("Location"), lost.ID) {
		t.Errorf("led on to what cannot be read: %s", next.header.Get("Location"))
	}

	actions := into[api.List[api.Action]](e.get(people.RoleReader, "/v1/actions").want(200))
	all, unread := idsOf(actions, func(a api.Action) (string, *string) { return a.ID, a.Unreadable })
	if len(all) != 6 || len(unread) != 3 || unread[2] != lost.ID+": "+cannotRead {
		t.Errorf("actions %q, of which unreadable %q", all, unread)
	}
	if a := actions.Items[4]; a.ID != lost.ID || a.State != "proposed" || a.Statement.Level != "unknown" || a.Target == nil || a.ExpiresAt == nil {
		t.Errorf("what the row says: %+v", a)
	}
	cases := into[api.List[api.Case]](e.get(people.RoleReader, "/v1/cases").want(200))
	if all, unread := idsOf(cases, func(c api.Case) (string, *string) { return c.ActionID, c.Unreadable }); len(all) != 2 || len(unread) != 1 ||
		unread[0] != lostCase.ID+": "+cannotRead {
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
	line := `{"action_id":"` + lostCase.ID + `","state":"result_unknown","unreadable":"` + cannotRead + `"}`
	for _, file := range []answer{e.get(people.RoleReader, "/v1/calls"), olga.open("/history.jsonl")} {
		file.want(200).holds(unknown.ID, line, `"end":true`)
	}
	olga.open("/history.csv").want(200).holds(waiting.ID, lost.ID+",", cannotRead)
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
	e.as(e.Mia).open("/tasks").want(200).holds("/tasks/"+whole.ID).says(lost.ID+": "+cannotRead, whole.Title)
}

// What belongs to an action that cannot be read is decided on, claimed and known
// of as anything else; what only its history could tell is left to people.
func TestWhatIsLinkedToWhatCannotBeReadGoesOn(t *testing.T) {
	e := newEnv(t)
	mia, past := e.as(e.Mia), e.past()
	original := e.cancelled()
	p := stage.Proposal(stage.SetPrice, original.Target.ID, 106)
	p.Links.Replaces = original.ID
	linking := e.Propose(p)
	e.damage(newerEvent, original.ID)
	mia.open("/actions/"+linking.ID).want(200).says(original.ID+": "+cannotRead, "Cancelled").holds(`href="/actions/` + original.ID + `"`)
	e.get(people.RoleReader, "/v1/actions/"+linking.ID).want(200).holds(original.ID)
	mia.send("/actions/"+linking.ID+"/decisions", formOf("decision", "approve", "proposal_hash", linking.ProposalHash, "revision", "1", "op", newOp())).want(303)
	if a := e.Read(linking.ID); a.State != action.Confirmed {
		t.Errorf("approved, it is %s", a.State)
	}

	for name, late := range map[string]func(a action.Action) answer{
		"receipt": func(a action.Action) answer {
			return e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(a.Attempts[0].ID, a.Attempts[0].ClaimID, action.Success))
		},
		"answer by key": func(a action.Action) answer {
			return e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: "shop.operation",
				Snapshot: []byte(`{"status":"SUCCEEDED"}`), ObservedAt: time.Now()})
		},
	} {
		a := e.ran(e.server.URL, e.confirmed(unreadAsked(e)), action.Unknown, 0)
		c := e.approved(into[api.Action](e.proposeAt(past, linked(a, "compensates", 100, "")).want(201)))
		if c = e.ran(past, c, action.Success, 200); c.State != string(action.Applied) {
			t.Fatalf("%s: the compensation is %s", name, c.State)
		}
		e.damage(damagedBody, c.ID)
		late(e.Read(a.ID)).want(201)
		got := e.Read(a.ID)
		if got.State != action.ResultUnknown || got.Case.Kind != action.CaseContradiction || got.Case.Other != c.ID {
			t.Errorf("%s: %s, %+v", name, got.State, got.Case)
		}
		mia.open("/triage/" + got.CaseID()).want(200).says(c.ID + ": " + cannotRead)

		b := e.ran(e.server.URL, e.confirmed(stage.SetPrice), action.Unknown, 0)
		e.damage(damagedBody, into[api.Action](e.proposeAt(past, linked(b, "replaces", 100, "")).want(201)).ID)
		e.post(people.RoleExecutor, "/v1/actions/"+b.ID+"/receipts", receipt(e.Read(b.ID).Attempts[0].ID, e.Read(b.ID).Attempts[0].ClaimID, action.Success)).want(201)
		if e.Read(b.ID).State != action.Applied {
			t.Errorf("beside what never ran, it is %s", e.Read(b.ID).State)
		}
	}
}

// unreadAsked is a tool whose operations can be asked about.
func unreadAsked(e *env) string {
	const name = "shop.asked"
	e.Tool(stage.Contract(name, "", "status_query: { tool: shop.operation, max_polls: 6 }"))
	return name
}

// Of a list of cases, what is done to those that can be read is done, and the
// others are named.
func TestCasesGoOnBesideWhatCannotBeRead(t *testing.T) {
	e := newEnv(t)
	olga, _ := ops(e)
	lost, fine := e.unknown(stage.SetPrice), e.unknown(stage.SetPrice)
	b := e.as(olga)
	list := items(b.open("/triage"))
	e.damage(damagedBody, lost.ID)
	told := lost.ID + ": " + cannotRead
	b.send("/triage/bulk", url.Values{"do": {"take"}, "item": list}).want(200).says("1 of 2", told)
	if h := e.Read(fine.ID).Case.Holder; h == nil || h.ID != olga.ID {
		t.Errorf("holder %+v", h)
	}
	list = slices.DeleteFunc(list, func(item string) bool { return !strings.HasPrefix(item, *lost.CaseID+":") })
	seen := triage.See(e.Read(fine.ID))
	list = append(list, web.CaseItem{ID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash}.String())
	b.open("/triage/keys?"+url.Values{"item": list}.Encode()).want(200).holds("\n"+lost.ExecutionKey+",,,,,"+stage.SetPrice+",product,"+lost.Target.ID+",,", "\n"+fine.ExecutionKey+",")
	file := "key,outcome\n" + lost.ExecutionKey + ",SUCCEEDED\n" + fine.ExecutionKey + ",SUCCEEDED\n"
	preview := b.upload("/triage/import", url.Values{"item": list}, file).want(200).says(told, "What is stored is not what was recorded").lacks("no case of the list")
	content := regexp.MustCompile(`name="content" value="([^"]+)"`).FindSubmatch(preview.body)
	if content == nil {
		t.Fatal("the preview does not bring the file back")
	}
	b.upload("/triage/import", url.Values{"item": list, "step": {"confirm"}, "content": {string(content[1])}, "file_name": {"f.csv"}, "note": {"daily"}}, "").want(200).says(told)
	if got := e.Read(fine.ID); got.State != action.Applied {
		t.Errorf("the case beside it is %s", got.State)
	}
}

// Everything open is cancelled but for what cannot be read, which is named: of a
// program, of a task and of a tool.
func TestCancellingStopsAtNothing(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	three := func(tool, task string) (ids []string) {
		for range 3 {
			p := stage.Proposal(tool, stage.Product(), 105)
			p.TaskID = task
			ids = append(ids, e.Propose(p).ID)
		}
		e.damage(newerEvent, ids[0])
		return ids
	}
	gone := func(what string, ids []string, err error) {
		t.Helper()
		r := e.Refused(err, action.StaleRevision, "left")
		if r.Args["action"] != ids[0] || r.Args["cancelled"] != "2" || r.Args["left"] != "1" {
			t.Errorf("%s: %v", what, r.Args)
		}
		for _, id := range ids[1:] {
			if a := e.Read(id); a.State != action.Cancelled {
				t.Errorf("%s: behind what cannot be read, one is %s", what, a.State)
			}
		}
	}
	k := e.Task(approvals.Limits{Writes: new(9)})
	ids := three(stage.SetPrice, k.ID)
	command := approvals.TaskCommand{Op: action.NewID("req"), PersonID: e.Mia.ID, By: e.Mia.As(people.RoleSupport, people.ByPassword), Reason: "enough"}
	ended, err := e.Approvals.EndTask(t.Context(), command, k.ID)
	if gone("task", ids, err); ended.State != approvals.TaskEnded {
		t.Errorf("the task is %s", ended.State)
	}
	ids = three(stage.Small, "")
	gone("tool", ids, e.Approvals.Retire(t.Context(), stage.Small, approvals.CancelOpen, e.Admin.As(people.RoleAdmin, people.ByPassword)))
	other := e.Client("another", e.Admin, people.RoleProposer)
	e.Agent = other
	ids = three(stage.SetPrice, "")
	path := "/clients/" + other.ID + "/cancel-open"
	admin.open(path).want(200).says(ids[0] + ": " + cannotRead)
	admin.send(path, formOf("op", newOp(), "reason", "it runs away")).want(409).says("Cancelled: 2.", ids[0]+": "+cannotRead)
	_, err = approvals.CancelOpenOf(t.Context(), e.DB, "again", other.ID, "stop", action.By{Kind: action.BySystem})
	if r := e.Refused(err, action.StaleRevision, "left"); r.Args["cancelled"] != "0" || e.Read(ids[2]).State != action.Cancelled {
		t.Errorf("%v", r.Args)
	}
}
