package handlers

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
	"countersign/web"
)

// inSteps changes a price and then announces it.
const inSteps = "shop.price_and_notice"

func stepsContract() string {
	whole := stage.Contract(inSteps, "", `status_query: { tool: shop.operation, max_polls: 3 }
  steps:
    - { name: price, http: { method: POST, path: "/products/{product_id}/price" } }
    - { name: notify, http: { method: POST, path: "/products/{product_id}/notices" }, status_query: { tool: shop.notices } }`)
	return strings.Replace(whole, "http: { method: POST, path: \"/products/{product_id}/price\", body: payload }\n", "", 1)
}

// The console names the step that is next; it takes no other, and answers about
// a step come under its own key.
func TestB8_TheConsoleNamesTheStep(t *testing.T) {
	e := newEnv(t)
	e.Tool(stepsContract())
	a, claim := e.confirmed(inSteps), action.NewID("clm")
	work := func() api.Work {
		t.Helper()
		for _, w := range into[api.WorkList](e.get(people.RoleExecutor, "/v1/work?tool="+inSteps).want(200)).Items {
			if w.ActionID == a.ID {
				return w
			}
		}
		return api.Work{}
	}
	key := func(step string) string { return a.ExecutionKey + ":" + step }
	if w := work(); w.Kind != "execute" || w.ExecutionKey != a.ExecutionKey || w.Step == nil || w.Step.Name != "price" || w.Step.ExecutionKey != key("price") {
		t.Errorf("%+v", w)
	}
	taken := into[api.Claimed](e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200))
	if taken.Step == nil || taken.Step.Name != "price" || taken.Step.ExecutionKey != key("price") || taken.ExecutionKey != a.ExecutionKey {
		t.Errorf("%+v", taken.Step)
	}
	attempt := func(id, step string) answer {
		return e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: id, ClaimID: claim, Step: step, Fingerprint: "sha256:ab"})
	}
	if p := attempt("t0", "notify").refused(action.WrongState); p.Reason != "step" || p.Args["step"] != "price" {
		t.Errorf("%+v", p)
	}
	at(t, attempt("t0", "").refused(action.InvalidArgument), "/step")
	attempt("t1", "price").want(201)
	r := receipt("t1", claim, action.Success)
	r.ObjectVersionAfter = "8"
	a = into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", r).want(201))
	if n := a.NextStep; a.State != "executing" || n == nil || n.Name != "notify" || n.ExecutionKey != key("notify") || n.ObjectVersion == nil || *n.ObjectVersion != "8" {
		t.Fatalf("%s, next %+v", a.State, n)
	}
	attempt("t2", "notify").want(201)
	a = into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt("t2", claim, action.Unknown)).want(201))
	if s := a.Steps; len(s) != 2 || s[0].State != "done" || s[1].State != "unknown" || s[1].ExecutionKey != key("notify") || *a.Attempts[1].Step != "notify" || a.Attempts[1].Number != 1 || a.NextStep != nil {
		t.Errorf("%+v", s)
	}
	if w := work(); w.Kind != "ask" || *w.Read != "shop.notices" || w.Step == nil || w.Step.ExecutionKey != key("notify") {
		t.Errorf("%+v", w)
	}
	found := api.Observation{ObservationID: "o1", Tool: "shop.operation", Snapshot: []byte(`{"status":"NOT_EXECUTED"}`), ObservedAt: time.Now()}
	at(t, e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", found).refused(action.InvalidArgument), "/step")
	found.Tool, found.Step = "shop.notices", "notify"
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", found).want(201)
	if w := work(); w.Kind != "retry" || w.Step == nil || w.Step.Name != "notify" {
		t.Errorf("%+v", w)
	}
	e.stepsOnPages(a.ID)
}

// stepsOnPages holds the pages of an action of which one step is done and the
// other is refused, and what they propose.
func (e *env) stepsOnPages(id string) {
	e.T.Helper()
	e.evidenceOf(id, "notify", action.FoundFailed)
	b := e.as(e.Person("olga", people.RoleOps))
	words := []string{"Done in part: a step is missing", "Steps", "price", "Done", "sent once", "notify", "Not done: refused", "Part of your request was done."}
	b.open("/actions/" + id).want(200).says(words...)
	a := e.Read(id)
	b.open("/triage/" + a.CaseID()).want(200).says(append(words, "some steps were done, and one was not", "Propose what is missing", `"resumes":"`+id+`"`)...)
	rest := into[api.Action](e.propose(map[string]any{"tool": inSteps, "actor": map[string]string{"id": a.Actor.ID}, "payload": a.Payload, "resumes": id}).want(201))
	if len(rest.Steps) != 1 || rest.Steps[0].Name != "notify" {
		e.T.Errorf("the rest is %+v", rest.Steps)
	}
	b.open("/actions/"+rest.ID).says("Done before, not sent again: price,", "This sends only: notify.", "by an earlier action")
	p := e.propose(map[string]any{"tool": inSteps, "actor": map[string]string{"id": a.Actor.ID}, "payload": a.Payload}).refused(action.DuplicateOpenAction)
	if p.Args["action"] != id && p.Args["action"] != rest.ID {
		e.T.Error(fmt.Sprint(p.Args))
	}
	closed := "/triage/" + a.CaseID()
	b.open(closed).says("no, nothing is on its way").lacks("not asked yet")
	e.Approve(e.Read(rest.ID), e.Mia)
	rest = into[api.Action](e.get(people.RoleExecutor, "/v1/actions/"+rest.ID).want(200))
	claim, attempt := action.NewID("clm"), action.NewID("att")
	e.post(people.RoleExecutor, "/v1/confirmations/"+rest.Confirmation.Ref+"/claim", bound(rest, claim)).want(200)
	e.post(people.RoleExecutor, "/v1/actions/"+rest.ID+"/attempts", api.Attempt{AttemptID: attempt, ClaimID: claim, Step: "notify", Fingerprint: "sha256:ab"}).want(201)
	e.post(people.RoleExecutor, "/v1/actions/"+rest.ID+"/receipts", receipt(attempt, claim, action.Success)).want(201)
	if err := e.Triage.Conclude(e.T.Context()); err != nil {
		e.T.Fatal(err)
	}
	b.open(closed).says("a linked action has taken effect").lacks("found out by asking", "not asked yet")
	if page := b.open(closed); !strings.Contains(string(page.body), `<a href="/actions/`+rest.ID+`"`) {
		e.T.Error("the case does not lead to what closed it")
	}
}

// evidenceOf is what the business system says of a step.
func (e *env) evidenceOf(id, step, outcome string) {
	e.T.Helper()
	_, err := action.Change(e.T.Context(), e.DB, id, func(action.Snapshot) (action.Command, error) {
		return action.AddEvidence{By: e.Executor.By(), CaseID: action.NewID("cas"), Found: action.Found{ID: action.NewID("evi"), Source: "shop.notices", Step: step, Outcome: outcome}}, nil
	})
	if err != nil {
		e.T.Fatal(err)
	}
}

// stepsUnknown claims an action in steps and reports what became of its steps, whose
// last outcome is unknown.
func (e *env) stepsUnknown(outcomes ...action.Outcome) api.Action {
	e.T.Helper()
	a, claim := e.confirmed(inSteps), action.NewID("clm")
	e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
	for i, outcome := range outcomes {
		id := fmt.Sprintf("%s-%d", claim, i)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: id, ClaimID: claim, Step: []string{"price", "notify"}[i], Fingerprint: "sha256:ab"}).want(201)
		a = into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(id, claim, outcome)).want(201))
	}
	if a.State != string(action.ResultUnknown) {
		e.T.Fatalf("it is %s", a.State)
	}
	return a
}

// The keys under which steps were sent are exported, each on a line of its own;
// a provider's file is matched by them, and says of the whole what they amount to.
func TestB8_AProvidersFileIsMatchedByTheKeysOfSteps(t *testing.T) {
	e := newEnv(t)
	e.Tool(stepsContract())
	olga, _ := ops(e)
	b := e.as(olga)
	const ok, unknown = action.Success, action.Unknown
	done, refused, begun, no := e.stepsUnknown(ok, unknown), e.stepsUnknown(ok, unknown), e.stepsUnknown(unknown), e.stepsUnknown(unknown)
	against, absent, bare := e.stepsUnknown(ok, unknown), e.stepsUnknown(ok, unknown), e.stepsUnknown(unknown)
	all := []api.Action{done, refused, begun, no, against, absent, bare}
	var list []string
	for _, a := range all {
		seen := triage.See(e.Read(a.ID))
		list = append(list, web.CaseItem{ID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash}.String())
	}
	keys := string(b.open("/triage/keys?" + url.Values{"item": list}.Encode()).want(200).body)
	for _, a := range []api.Action{done, begun} {
		if strings.Contains(keys, "\n"+a.ExecutionKey+",") || !strings.Contains(keys, "\n"+a.ExecutionKey+":price,") || strings.Contains(keys, a.ExecutionKey+":notify,") != (a.ID == done.ID) {
			t.Errorf("%s of\n%s", a.ExecutionKey, keys)
		}
	}
	file := "key,outcome,reference\n" + done.ExecutionKey + ":notify,SUCCEEDED,N-1\n" + refused.ExecutionKey + ":price,SUCCEEDED,P-2\n" + refused.ExecutionKey + ":notify,REFUSED,N-2\n" +
		begun.ExecutionKey + ":price,SUCCEEDED,P-3\n" + no.ExecutionKey + ":price,REFUSED,P-4\n" +
		against.ExecutionKey + ":price,REFUSED,P-5\n" + against.ExecutionKey + ":notify,SUCCEEDED,N-5\n" + bare.ExecutionKey + ",SUCCEEDED,X-6\n"
	preview := b.upload("/triage/import", url.Values{"item": list}, file).want(200).
		says("4 of 7 cases would be settled", "notify SUCCEEDED line 2", "price SUCCEEDED line 3", "notify REFUSED line 4",
			"The business system has proven that it happened", "Not in the file, which proves nothing", "No case of the list has this key")
	for _, a := range all {
		if got := e.Read(a.ID); got.Version != a.Version {
			t.Fatalf("the dry run changed %s", got.State)
		}
	}
	content := regexp.MustCompile(`name="content" value="([^"]+)"`).FindSubmatch(preview.body)
	b.upload("/triage/import", url.Values{"item": list, "step": {"confirm"}, "content": {string(content[1])}, "file_name": {"f.csv"}}, "").want(200)
	for i, want := range []string{action.Happened, action.Partly, action.Partly, action.DidNotHappen, "", "", ""} {
		a, verdict, note := e.Read(all[i].ID), "", ""
		if v := a.Case.Verdict; v != nil {
			verdict, note = v.Verdict, v.Note
		}
		if verdict != want || (a.State == action.Applied) != (i == 0) {
			t.Errorf("%d: %s, found %q: %s", i, a.State, verdict, note)
		}
		if i == 1 && note != "Line 3, price: SUCCEEDED, reference P-2\nLine 4, notify: REFUSED, reference N-2" {
			t.Errorf("note %q", note)
		}
	}
}
