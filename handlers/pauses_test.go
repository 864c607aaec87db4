package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

var operator = action.By{Kind: action.BySystem, ID: "command-line", Name: "Ana Ruiz"}

// pause pauses something until the returned function is called.
func (e *env) pause(kind, value string) (end func()) {
	e.T.Helper()
	if _, err := approvals.StartPause(context.Background(), e.DB, action.NewID("pau"), kind, value, "refunds are wrong since noon", operator); err != nil {
		e.T.Fatal(err)
	}
	return func() {
		e.T.Helper()
		if err := approvals.EndPause(context.Background(), e.DB, kind, value, operator); err != nil {
			e.T.Fatal(err)
		}
	}
}

// A pause stops proposing, claiming and attempting; what is decided, reported
// and given back goes on.
func TestPauses(t *testing.T) {
	e := newEnv(t)
	for kind, value := range map[string]string{approvals.PauseTool: stage.SetPrice, approvals.PauseClient: e.Agent.ID, approvals.PauseScope: "shop", "executor": e.Executor.ID} {
		proposed, waiting := e.proposed(stage.SetPrice), e.confirmed(stage.SetPrice)
		draft := into[api.Action](e.propose(with(proposal(stage.SetPrice, stage.Product(), 1), "draft", true)).want(201))
		claimed, claim := e.claimed(stage.SetPrice)
		sent, sentClaim, attempt := e.attempted(stage.SetPrice)
		stops := "client"
		if kind != "executor" {
			stops = kind
		}
		end := e.pause(stops, value)
		stopped := func(what string, a answer) {
			t.Helper()
			p := a.refused(action.Paused)
			if p.Reason != stops || p.Args["by"] != "Ana Ruiz" || p.Args["why"] != "refunds are wrong since noon" || p.Args["value"] != value ||
				!strings.Contains(p.Detail, p.Args["since"]) || a.header.Get("Retry-After") == "" {
				t.Errorf("%s, %s: %+v", kind, what, p)
			}
			now, err := e.DB.Now(context.Background())
			if since, wrong := time.Parse(time.RFC3339, p.Args["since"]); wrong != nil || err != nil || now.Sub(since).Abs() > time.Hour {
				t.Errorf("%s, %s: since %q", kind, what, p.Args["since"])
			}
		}
		if kind != "executor" {
			stopped("propose", e.propose(proposal(stage.SetPrice, stage.Product(), 1)))
			stopped("submit", e.post(people.RoleProposer, "/v1/actions/"+draft.ID+"/submit", nil, "If-Match", quotedVersion(draft.Version)))
			stopped("revise", e.post(people.RoleProposer, "/v1/actions/"+proposed.ID+"/revisions", api.Revise{Payload: proposed.Payload}, "If-Match", quotedVersion(proposed.Version)))
		}
		stopped("claim", e.post(people.RoleExecutor, "/v1/confirmations/"+waiting.Confirmation.Ref+"/claim", bound(waiting, "c")))
		stopped("attempt", e.post(people.RoleExecutor, "/v1/actions/"+claimed.ID+"/attempts", api.Attempt{AttemptID: "a", ClaimID: claim, Fingerprint: "f"}))

		e.Approve(e.Read(proposed.ID), e.Mia)
		e.post(people.RoleExecutor, "/v1/actions/"+sent.ID+"/receipts", receipt(attempt, sentClaim, action.Success)).want(201)
		e.post(people.RoleExecutor, "/v1/actions/"+claimed.ID+"/release", api.Release{ClaimID: claim}).want(200)
		e.post(people.RoleProposer, "/v1/actions/"+draft.ID+"/cancel", nil, "If-Match", quotedVersion(draft.Version)).want(200)

		_, err := approvals.StartPause(context.Background(), e.DB, action.NewID("pau"), stops, value, "again", operator)
		e.Refused(err, action.WrongState)
		end()
		e.Refused(approvals.EndPause(context.Background(), e.DB, stops, value, operator), action.NotFound)
		e.post(people.RoleExecutor, "/v1/confirmations/"+waiting.Confirmation.Ref+"/claim", bound(waiting, "c")).want(200)
	}
	e.pause(approvals.PauseScope, "another scope")
	e.confirmed(stage.SetPrice) // has nothing to do with it
	if all, err := e.DB.Pauses(context.Background(), 10); err != nil || len(all) != 5 || all[0].EndedAt != nil || all[1].EndedAt == nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// Once a pause is there, nothing gets through any more, however many try.
func TestPauseHasNoGap(t *testing.T) {
	e := newEnv(t)
	var mu sync.Mutex
	var group sync.WaitGroup
	refused := 0
	for range 4 {
		group.Go(func() {
			for {
				a := e.propose(proposal(stage.SetPrice, stage.Product(), 1))
				if a.status == http.StatusServiceUnavailable {
					mu.Lock()
					refused++
					mu.Unlock()
					return
				}
				a.want(201)
			}
		})
	}
	waitUntil(t, func() bool {
		n, err := e.DB.OpenProposals(context.Background(), e.Agent.ID)
		return err == nil && n > 20
	})
	e.pause(approvals.PauseTool, stage.SetPrice)
	atOnce, err := e.DB.OpenProposals(context.Background(), e.Agent.ID)
	group.Wait()
	after, again := e.DB.OpenProposals(context.Background(), e.Agent.ID)
	if err != nil || again != nil || after != atOnce || refused != 4 {
		t.Errorf("%d open when it was paused, %d later; %d refused", atOnce, after, refused)
	}

	n, err := approvals.CancelOpenOf(context.Background(), e.DB, action.NewSecret(8), e.Agent.ID, "stopped", operator)
	left, again := e.DB.OpenProposals(context.Background(), e.Agent.ID)
	if err != nil || again != nil || n != after || left != 0 {
		t.Errorf("%d of %d cancelled, %d left, %v", n, after, left, err)
	}
}

// The stop switch on pages: an administrator pauses and lets go on, everybody
// sees what is paused, by whom, since when and why.
func TestPausingOnPages(t *testing.T) {
	e := newEnv(t)
	admin, mia := e.as(e.Admin), e.as(e.Mia)
	a := e.proposed(stage.SetPrice)
	pages := []string{"/approvals", "/triage", "/actions/" + a.ID, "/pauses"}
	mia.open("/pauses").want(200).says("Nothing is paused", "ask somebody with the role admin").lacks("/pauses/new")
	mia.open("/tools/" + stage.SetPrice).want(200).lacks("/pauses/new")
	admin.open("/tools/" + stage.SetPrice).want(200).holds("/pauses/new?kind=tool&amp;value=" + stage.SetPrice)
	mia.open("/pauses/new").want(http.StatusForbidden)
	mia.send("/pauses", pauseForm("tool", stage.SetPrice, "x")).want(http.StatusForbidden)
	admin.open("/pauses/new?kind=tool&value="+stage.SetPrice).want(200).holds(`value="`+stage.SetPrice+`"`, `value="tool" selected`)
	admin.send("/pauses", pauseForm("tool", stage.SetPrice, " ")).wrong(http.StatusUnprocessableEntity, "reason").holds(`value="` + stage.SetPrice + `"`)
	admin.send("/pauses", pauseForm("tool", "no.tool", "x")).wrong(http.StatusUnprocessableEntity, "value")
	admin.send("/pauses", pauseForm("client", "nobody", "x")).wrong(http.StatusUnprocessableEntity, "value")
	admin.send("/pauses", pauseForm("all", "x", "x")).wrong(http.StatusUnprocessableEntity, "kind")
	form := pauseForm("tool", stage.SetPrice, "prices <b>jump</b>")
	admin.send("/pauses", form).leads("/pauses?done=paused")
	admin.send("/pauses", form).leads("/pauses?done=paused")
	admin.send("/pauses", pauseForm("tool", stage.SetPrice, "again")).want(http.StatusConflict).says("It is paused already")
	admin.send("/pauses", pauseForm("client", "agent", "it loops")).leads("/pauses?done=paused")
	for _, page := range pages {
		mia.open(page).want(200).says("tool "+stage.SetPrice, "prices <b>jump</b>", "program agent", "it loops").holds("&lt;b&gt;jump")
	}
	mia.open("/actions/" + e.proposedBefore(stage.BigPrice)).want(200).lacks("prices")
	e.propose(proposal(stage.SetPrice, stage.Product(), 1)).refused(action.Paused)
	mia.open("/history").want(200).lacks("jump")

	elsewhere := e.as(e.PersonWith("eve", people.Grants{Roles: []string{people.RoleOps}, Tools: []string{stage.BigPrice}}))
	elsewhere.open("/triage").want(200).lacks("prices", "program agent")

	running, err := e.DB.Pauses(t.Context(), 9)
	if err != nil || len(running) != 2 {
		t.Fatal(running, err)
	}
	for _, p := range running {
		mia.open("/pauses/" + p.ID + "/end").want(http.StatusForbidden)
		mia.send("/pauses/"+p.ID+"/end", nil).want(http.StatusForbidden)
		admin.open("/pauses/"+p.ID+"/end").want(200).says("go on?", p.Reason)
		admin.send("/pauses/"+p.ID+"/end", nil).leads("/pauses?done=goes_on")
		admin.send("/pauses/"+p.ID+"/end", nil).leads("/pauses?done=goes_on")
	}
	admin.send("/pauses/"+action.NewID("pau")+"/end", nil).want(http.StatusNotFound)
	mia.open("/pauses").want(200).says("Nothing is paused", "Paused before", "it loops")
	e.propose(proposal(stage.SetPrice, stage.Product(), 1)).want(201)
}

func pauseForm(kind, value, reason string) url.Values {
	return formOf("op", action.NewID("pau"), "kind", kind, "value", value, "reason", reason)
}

// proposedBefore is an action that was there before anything was paused, as the
// agent is when it is paused now.
func (e *env) proposedBefore(tool string) string {
	e.T.Helper()
	other := e.Client("other-agent", e.Admin, people.RoleProposer)
	p := stage.Proposal(tool, stage.Product(), 7)
	snap, _, err := e.Approvals.Propose(context.Background(), other, p)
	if err != nil {
		e.T.Fatal(err)
	}
	return snap.Action.ID
}

// Everything of a program that has not run is cancelled once somebody has seen
// what that is; what is running goes on.
func TestCancellingAllThatIsOpenOnPages(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	path := "/clients/" + e.Agent.ID + "/cancel-open"
	admin.open(path).want(200).says("Nothing of it is open")
	proposed, confirmed, sent := e.proposed(stage.SetPrice), e.confirmed(stage.SetPrice), e.unknown(stage.SetPrice)
	e.as(e.Mia).send(path, formOf("reason", "x")).want(http.StatusForbidden)
	admin.open("/clients/"+e.Agent.ID).want(200).holds(`href="`+path+`"`, "/pauses/new?kind=client")
	admin.open(path).want(200).says("2 actions are open", "pause it first")
	admin.send(path, formOf("reason", "")).wrong(http.StatusUnprocessableEntity, "reason")
	admin.send(path, formOf("reason", "the agent went astray")).leads("/clients/" + e.Agent.ID + "?done=open_cancelled")
	for _, a := range []api.Action{proposed, confirmed} {
		if got := e.Read(a.ID); got.State != action.Cancelled {
			t.Errorf("%s is %s", a.ID, got.State)
		}
		admin.open("/actions/"+a.ID).want(200).says("Admin cancelled it", "the agent went astray")
	}
	if got := e.Read(sent.ID); got.State != action.ResultUnknown {
		t.Errorf("what was sent is %s", got.State)
	}
	admin.open("/clients/" + e.Agent.ID + "?done=open_cancelled").says("All that was open of it is cancelled")
}
