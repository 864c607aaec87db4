package handlers

import (
	"context"
	"net/http"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
)

// workListed is how much work one answer offers.
const workListed = 50

// workPages bounds how much is looked at for one answer, in pages.
const workPages = 20

// work tells an executor what it should do now.
func (s *server) work(w http.ResponseWriter, r *http.Request, c caller) error {
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	// An executor works within its limits, whatever else it may see.
	f := approvals.WorkFilter{Viewer: people.Viewer{Limited: true, Tools: c.client.Tools, Scopes: c.client.Scopes}, Executor: c.client.ID, Limit: workListed}
	for _, tool := range r.URL.Query()["tool"] {
		prefix, _ := strings.CutSuffix(tool, "*")
		if tool != "*" && !toolName(prefix) {
			return wrongQuery("tool", "must be the name of a tool, or a prefix that ends in *")
		}
		f.Tools = append(f.Tools, tool)
	}
	var actions []action.Action
	var lists []api.Work
	var now time.Time
	err = s.await(r.Context(), c, wait, func() (bool, error) {
		if actions, now, err = s.offered(r.Context(), f); err != nil {
			return false, err
		}
		lists, err = s.listWork(r, *c.client, f.Tools)
		return len(actions) > 0 || len(lists) > 0, err
	})
	if err != nil {
		return err
	}
	list := api.WorkList{Items: []api.Work{}, Now: now.UTC()}
	for _, a := range actions {
		list.Items = append(list.Items, workOf(a))
	}
	list.Items = append(list.Items, lists...)
	return respond(w, http.StatusOK, list)
}

// offered is the work of one answer. What may not follow the action that it is
// linked to leaves its place to the next.
func (s *server) offered(ctx context.Context, f approvals.WorkFilter) (offered []action.Action, now time.Time, err error) {
	for range workPages {
		page, at, err := s.Reads.Work(ctx, f)
		if err != nil {
			return nil, at, err
		}
		now = at
		for _, a := range page {
			may, err := s.Approvals.MayFollow(ctx, a)
			if err != nil {
				return nil, at, err
			}
			if may && len(offered) < f.Limit {
				offered = append(offered, a)
			}
		}
		if len(page) < f.Limit || len(offered) == f.Limit {
			break
		}
		f.After = page[len(page)-1].ID
	}
	return offered, now, nil
}

func workOf(a action.Action) api.Work {
	item := api.Work{Kind: string(a.Work()), ActionID: a.ID, Tool: a.Tool, ToolVersion: a.ToolVersion, Version: a.Version, Actor: actorOf(a.Actor),
		Target: apiTarget(a.Target), ObjectVersion: a.ObjectVersion, Payload: a.Payload, ExecutionKey: a.ExecutionKey, ProposalHash: a.ProposalHash, Traceparent: orNull(a.Trace)}
	if a.Confirmation != nil {
		item.ConfirmationRef = &a.Confirmation.Ref
	}
	switch a.Work() {
	case action.WorkObserve:
		item.Read = orNull(a.Terms.Before)
	case action.WorkAsk:
		step, _ := a.AskedStep()
		item.Read, item.Step = orNull(a.Query(step.Name)), stepOf(a, step.Name)
	case action.WorkVerify:
		if step, ok := a.UnreadStep(); ok {
			item.Step = stepOf(a, step.Name)
		}
	case action.WorkExecute, action.WorkRetry:
		item.Step = stepOf(a, a.CurrentStep())
	}
	return item
}

// stepOf is a step as executors are told of it; nil without a name.
func stepOf(a action.Action, name string) *api.Step {
	if name == "" {
		return nil
	}
	return &api.Step{Name: name, ExecutionKey: action.StepKey(a.ExecutionKey, name), ObjectVersion: a.StepVersion(name)}
}

// renew extends a live claim.
func (s *server) renew(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Renew](w, r)
	if err != nil {
		return err
	}
	snap, err := s.Triage.Renew(r.Context(), *c.client, parameter(r, "id"), body.ClaimID, body.LeaseID)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, leaseOf(snap))
}

// leaseOf is how long the claim of an action stays live from now on.
func leaseOf(snap action.Snapshot) api.Lease {
	until := snap.Action.Claim.LeaseUntil
	return api.Lease{TTLMillis: max(0, until.Sub(snap.Now).Milliseconds()), ExpiresAt: until.UTC()}
}

// release gives a claim back.
func (s *server) release(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Release](w, r)
	if err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "The release is refused. The errors say where.")
	if wantText(refusal, "/reason", body.Reason, false); len(refusal.Errors) > 0 {
		return refusal
	}
	snap, err := s.Triage.Release(r.Context(), *c.client, parameter(r, "id"), body.ClaimID, body.Code, body.Reason)
	if err != nil {
		return err
	}
	return s.respondAction(w, r, c, http.StatusOK, snap)
}
