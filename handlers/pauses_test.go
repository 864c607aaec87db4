package handlers

import (
	"context"
	"net/http"
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
	if _, err := approvals.StartPause(context.Background(), e.DB, kind, value, "refunds are wrong since noon", operator); err != nil {
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
			if since, err := time.Parse(time.RFC3339, p.Args["since"]); err != nil || time.Since(since).Abs() > time.Hour {
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

		_, err := approvals.StartPause(context.Background(), e.DB, stops, value, "again", operator)
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

	n, err := approvals.CancelOpenOf(context.Background(), e.DB, e.Agent.ID, "stopped", operator)
	left, again := e.DB.OpenProposals(context.Background(), e.Agent.ID)
	if err != nil || again != nil || n != after || left != 0 {
		t.Errorf("%d of %d cancelled, %d left, %v", n, after, left, err)
	}
}
