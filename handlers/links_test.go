package handlers

import (
	"encoding/json"
	"html"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// past is a console that lives after the fence of everything sent now.
func (e *env) past() string { return e.later(2 * time.Minute).URL }

// linked is a proposal about the object of another action, linked to it.
func linked(a api.Action, how string, price float64, version string) map[string]any {
	body := with(proposal(stage.SetPrice, a.Target.ID, price), how, a.ID)
	if version != "" {
		body["object_version"] = version
	}
	return body
}

// proposeAt sends a proposal to a console.
func (e *env) proposeAt(base string, body map[string]any) answer {
	e.T.Helper()
	return send1(e.T, e.server.Client(), base, request{method: post, path: "/v1/actions", key: e.keys[people.RoleProposer], body: body,
		header: pairs([]string{"Idempotency-Key", action.NewID("key")})})
}

// applied returns an action that left its object at a version.
func (e *env) applied(version string) api.Action {
	e.T.Helper()
	a, claim, attempt := e.attempted(stage.SetPrice)
	r := receipt(attempt, claim, action.Success)
	r.ObjectVersionAfter = version
	return into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", r).want(201))
}

// ran carries out an approved action with one attempt that ended so.
func (e *env) ran(base string, a api.Action, outcome action.Outcome, status int) api.Action {
	e.T.Helper()
	claim, attempt := action.NewID("clm"), action.NewID("att")
	do := func(path string, body any, want int) answer {
		e.T.Helper()
		return send1(e.T, e.server.Client(), base, request{method: post, path: path, key: e.keys[people.RoleExecutor], body: body}).want(want)
	}
	do("/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim), 200)
	do("/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: attempt, ClaimID: claim, Fingerprint: "sha256:cd"}, 201)
	r := receipt(attempt, claim, outcome)
	r.HTTPStatus = status
	return into[api.Action](do("/v1/actions/"+a.ID+"/receipts", r, 201))
}

// approved has a proposed action approved and reads it again.
func (e *env) approved(a api.Action) api.Action {
	e.T.Helper()
	e.Approve(e.Read(a.ID), e.Mia)
	return into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200))
}

// A compensation undoes what the original left behind, and nothing that others
// did since: 100→105→110 is not restored to 100.
func TestB7_CompensationIsBoundToWhatTheOriginalLeftBehind(t *testing.T) {
	e := newEnv(t)
	a := e.applied("8")
	for _, version := range []string{"", "7", "9"} {
		p := e.propose(linked(a, "compensates", 100, version)).refused(action.VersionConflict)
		if p.Reason != "compensation" || p.Args["object_version"] != "8" || p.Args["action"] != a.ID {
			t.Errorf("version %q: %+v", version, p)
		}
		at(t, p, "/object_version")
	}
	c := into[api.Action](e.propose(linked(a, "compensates", 100, "8")).want(201))
	address := "/v1/actions/" + c.ID + "/revisions"
	e.post(people.RoleProposer, address, api.Revise{Payload: c.Payload, ObjectVersion: new("9")}, "If-Match", quotedVersion(c.Version)).refused(action.VersionConflict)
	if c.Links.Compensates == nil || *c.Links.Compensates != a.ID || c.Links.Resumes != nil || len(c.Links.LinkedBy) != 0 {
		t.Errorf("%+v", c.Links)
	}
	ended := e.ran(e.server.URL, e.approved(c), action.Failure, 412)
	if ended.State != string(action.Conflict) || ended.CaseID != nil {
		t.Errorf("the object had moved on: %s", ended.State)
	}
	a = into[api.Action](e.get(people.RoleReader, "/v1/actions/"+a.ID).want(200))
	if len(a.Links.LinkedBy) != 1 || a.Links.LinkedBy[0] != (api.LinkedAction{ActionID: c.ID, Link: "compensates", State: "conflict"}) {
		t.Errorf("%+v", a.Links)
	}
}

func TestLinkedActionsWaitForTheOriginal(t *testing.T) {
	e := newEnv(t)
	refuse := func(name string, a api.Action, how, reason string) {
		t.Helper()
		if p := e.propose(linked(a, how, 1, "")).refused(action.WrongState); p.Reason != reason || p.Args["action"] != a.ID {
			t.Errorf("%s: %+v", name, p)
		}
	}
	open, _ := e.claimed(stage.SetPrice)
	refuse("proposed", e.proposed(stage.SetPrice), "replaces", "link-open")
	refuse("confirmed", e.confirmed(stage.SetPrice), "compensates", "link-open")
	refuse("executing", open, "resumes", "link-running")
	refuse("failed", e.ran(e.server.URL, e.confirmed(stage.SetPrice), action.Failure, 422), "compensates", "link-nothing")
	done := e.applied("8")
	refuse("applied", done, "replaces", "link-done")
	at(t, e.propose(with(proposal(stage.SetPrice, stage.Product(), 1), "resumes", done.ID)).refused(action.InvalidArgument), "/resumes")
	refuse("applied", done, "resumes", "link-complete")

	// What may still take effect is fenced first; the refusal says when it is.
	unknown := e.ran(e.server.URL, e.confirmed(stage.SetPrice), action.Unknown, 0)
	p := e.propose(linked(unknown, "compensates", 1, "")).refused(action.WrongState)
	until, err := time.Parse(time.RFC3339, p.Args["until"])
	if fence := e.Read(unknown.ID).FencedAt(); p.Reason != "link-fence" || err != nil || until.Sub(fence).Abs() > time.Second {
		t.Errorf("%+v, fenced at %v", p, fence)
	}
	past := e.past()
	c := into[api.Action](e.proposeAt(past, linked(unknown, "compensates", 1, "")).want(201))

	// A claim looks again: by this clock it is not fenced yet.
	c = e.approved(c)
	e.post(people.RoleExecutor, "/v1/confirmations/"+c.Confirmation.Ref+"/claim", bound(c, "early")).refused(action.WrongState)

	// While one of them runs, the other does not.
	claim := request{method: post, path: "/v1/confirmations/" + c.Confirmation.Ref + "/claim", key: e.keys[people.RoleExecutor], body: bound(c, "now")}
	send1(t, e.server.Client(), past, claim).want(200)
	e.evidence(unknown.ID, action.FoundNotExecuted)
	again := e.post(people.RoleExecutor, "/v1/confirmations/"+unknown.Confirmation.Ref+"/claim", bound(unknown, "retry")).refused(action.WrongState)
	if again.Reason != "retry-linked" || again.Args["action"] != c.ID {
		t.Errorf("%+v", again)
	}
}

// A dirty compensation opens a case after its one try, and is not sent again.
func TestReport33_DirtyCompensationIsTriedOnce(t *testing.T) {
	e := newEnv(t)
	compensation := func() api.Action {
		t.Helper()
		return e.approved(into[api.Action](e.propose(linked(e.applied("8"), "compensates", 100, "8")).want(201)))
	}
	refused := e.ran(e.server.URL, compensation(), action.Failure, 422)
	if a := e.Read(refused.ID); a.State != action.ResultUnknown || a.Case.Why != action.WhyCompensation || a.Work() != action.WorkNone || !a.Exhausted() {
		t.Errorf("refused: %s, %+v, work %q", a.State, a.Case, a.Work())
	}
	lost := e.ran(e.server.URL, compensation(), action.Unknown, 0)
	e.evidence(lost.ID, action.FoundNotExecuted)
	a := e.Read(lost.ID)
	if a.State != action.ResultUnknown || a.CaseID() == "" || a.Work() == action.WorkRetry {
		t.Errorf("lost: %s, work %q", a.State, a.Work())
	}
	e.post(people.RoleExecutor, "/v1/confirmations/"+lost.Confirmation.Ref+"/claim", bound(lost, "retry")).refused(action.WrongState)
	e.evidence(lost.ID, action.FoundFailed)
	if a := e.Read(lost.ID); a.State != action.ResultUnknown || a.Case.Why != action.WhyCompensation || len(a.Attempts) != 1 {
		t.Errorf("found refused: %s, %+v", a.State, a.Case)
	}
}

// An original that turns out to have happened after it was undone is a
// contradiction that names both.
func TestA7_LateOriginalAfterItsCompensation(t *testing.T) {
	e := newEnv(t)
	past := e.past()
	for name, late := range map[string]func(a action.Action){
		"receipt": func(a action.Action) {
			r := receipt(a.Attempts[0].ID, a.Attempts[0].ClaimID, action.Success)
			e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", r).want(201)
		},
		"evidence": func(a action.Action) { e.evidence(a.ID, action.FoundSucceeded) },
	} {
		original := e.ran(e.server.URL, e.confirmed(stage.SetPrice), action.Unknown, 0)
		c := e.approved(into[api.Action](e.proposeAt(past, linked(original, "compensates", 100, "")).want(201)))
		if c = e.ran(past, c, action.Success, 200); c.State != string(action.Applied) {
			t.Fatalf("%s: the compensation is %s", name, c.State)
		}
		late(e.Read(original.ID))
		a := e.Read(original.ID)
		if a.State != action.ResultUnknown || a.Case.Kind != action.CaseContradiction || a.Case.Why != action.WhyCompensated || a.Case.Other != c.ID {
			t.Errorf("%s: %s, %+v", name, a.State, a.Case)
		}
		e.as(e.Mia).open("/triage/"+a.CaseID()).want(200).says("Another action has undone it meanwhile", "Undone by").holds(`href="/actions/` + c.ID + `"`)
	}
}

// evidence is what the business system says of an operation, by its key.
func (e *env) evidence(id, outcome string) {
	e.T.Helper()
	_, err := action.Change(e.T.Context(), e.DB, id, func(snap action.Snapshot) (action.Command, error) {
		undone := ""
		if linked, err := e.DB.Linked(e.T.Context(), id); err == nil && len(linked) > 0 {
			undone = linked[0].ID
		}
		return action.AddEvidence{By: e.Executor.By(), CaseID: action.NewID("cas"), UndoneBy: undone,
			Found: action.Found{ID: action.NewID("evi"), Source: "shop.ask", Outcome: outcome, Proves: action.ProvesCompleted}}, nil
	})
	if err != nil {
		e.T.Fatal(err)
	}
}

// What belongs to an action is named on its page and on that of its case, from
// both sides.
func TestLinksAreShownFromBothSides(t *testing.T) {
	e := newEnv(t)
	olga, _ := ops(e)
	first := e.applied("8")
	undo := into[api.Action](e.propose(linked(first, action.LinkCompensates, 1, "8")).want(201))
	b := e.as(olga)
	b.open("/actions/" + undo.ID).want(200).says("Undoes").holds(`href="/actions/` + first.ID + `"`)
	b.open("/actions/" + first.ID).want(200).says("Undone by").holds(`href="/actions/` + undo.ID + `"`)
	// Whoever decides on another one is told what became of the first.
	again := into[api.Action](e.propose(linked(first, action.LinkCompensates, 2, "8")).want(201))
	b.open("/actions/" + again.ID).want(200).says("Also to be undone by").holds(`href="/actions/` + undo.ID + `"`)
	e.ran(e.server.URL, e.approved(undo), action.Success, 200)
	b.open("/actions/" + again.ID).want(200).says("Already undone by").holds(`href="/actions/` + undo.ID + `"`)
	if p := e.propose(linked(first, action.LinkCompensates, 3, "8")).refused(action.WrongState); p.Reason != "link-beside" || p.Args["action"] != undo.ID {
		t.Errorf("%+v", p)
	}
	lost := e.unknown(stage.SetPrice)
	instead := into[api.Action](e.proposeAt(e.past(), linked(lost, action.LinkReplaces, 2, "")).want(201))
	b.open("/triage/"+*lost.CaseID).want(200).says("Replaced by", "linked to this one waits to be approved or carried out").holds(`href="/actions/` + instead.ID + `"`)
	b.open("/actions/"+instead.ID).want(200).says("Replaces", "nobody has that one sent again").holds(`href="/actions/` + lost.ID + `"`)
	b.open("/actions/" + lost.ID).want(200).says("Replaced by")
}

// What a case's page shows to propose a reversal with is complete, and works as it
// stands: with the version that was read, from an entry that loads the tool.
func TestTheReversalThatAPageShowsWorksAsShown(t *testing.T) {
	e := newEnv(t)
	one := `{ when: "true", role: support, approvals: 1 }`
	read := func(text string) string {
		return strings.NewReplacer("approval: {", "approval: { before: "+stage.ReadPrice+",", "mode: write\n", "mode: write\nentries: [chat]\n").Replace(text)
	}
	e.Tool(read(stage.Contract("shop.sell", one, "compensation: shop.buy_back")))
	e.Tool(strings.Replace(read(stage.Contract("shop.buy_back", one, "")), "object_version: optional", "object_version: required", 1))
	olga, _ := ops(e)
	b := e.as(olga)
	for version, shown := range map[string]bool{"": false, "8": true} {
		a := into[api.Action](e.propose(with(proposal("shop.sell", stage.Product(), 105), "entry", "chat")).want(201))
		if version != "" {
			e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice,
				Snapshot: []byte(`{"price":100,"version":` + version + `}`), ObservedAt: time.Now()}).want(201)
		}
		lost := e.ran(e.server.URL, e.approved(a), action.Unknown, 0)
		page := b.open("/triage/" + *lost.CaseID).want(200)
		if !shown {
			page.says("needs the version of the object, and nobody read it").lacks("-d @-")
			continue
		}
		_, rest, _ := strings.Cut(html.UnescapeString(string(page.body)), "<<'EOF'\n")
		text, _, found := strings.Cut(rest, "\nEOF")
		var body map[string]any
		if err := json.Unmarshal([]byte(text), &body); !found || err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		c := into[api.Action](e.proposeAt(e.past(), body).want(201))
		if c.Tool != "shop.buy_back" || *c.ObjectVersion != version || *c.Links.Compensates != a.ID {
			t.Errorf("%+v", c)
		}
	}
}
