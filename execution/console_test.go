package execution_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/triage"
)

// routes serves the part of the API that executors use, over the domain as it
// is. It only translates.
func (b *bench) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"GET /v1/work":                       b.work,
		"GET /v1/tools/{name}":               b.tool,
		"GET /.well-known/jwks.json":         func(r *http.Request) (any, error) { return b.approvals.Signer().JWKS(r.Context()) },
		"POST /v1/confirmations/{id}/claim":  b.claim,
		"POST /v1/actions/{id}/lease":        b.renew,
		"POST /v1/actions/{id}/release":      b.release,
		"POST /v1/actions/{id}/attempts":     b.attempt,
		"POST /v1/actions/{id}/receipts":     b.receipt,
		"POST /v1/actions/{id}/observations": b.observation,
	} {
		mux.HandleFunc(pattern, b.faulty(func(w http.ResponseWriter, r *http.Request) {
			answer, err := handle(r)
			status := http.StatusOK
			if err != nil {
				answer, status = refusal(err)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			encoder := json.NewEncoder(w)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(answer); err != nil {
				b.t.Log(err)
			}
		}))
	}
	return mux
}

func refusal(err error) (api.Problem, int) {
	r := action.AsRefusal(err)
	status := http.StatusConflict
	switch r.Code {
	case action.NotFound, action.UnknownTool:
		status = http.StatusNotFound
	case action.InvalidArgument, action.InvalidPayload, action.Malformed:
		status = http.StatusUnprocessableEntity
	case action.Internal, action.OutcomeUnknown:
		status = http.StatusServiceUnavailable
	}
	return api.Problem{Code: string(r.Code), Detail: r.Error(), Status: status}, status
}

func read(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return action.DecodeStrict(body, into)
}

func (b *bench) work(r *http.Request) (any, error) {
	wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
	if err != nil {
		return nil, err
	}
	f := approvals.WorkFilter{Viewer: people.ClientViewer(b.executor), Tools: r.URL.Query()["tool"], Limit: 50}
	for deadline := time.Now().Add(wait); ; {
		actions, now, err := b.db.Work(r.Context(), f)
		if err != nil || len(actions) > 0 || time.Now().After(deadline) {
			list := api.WorkList{Now: now}
			for _, a := range actions {
				list.Items = append(list.Items, workOf(a))
			}
			return list, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func workOf(a action.Action) api.Work {
	w := api.Work{Kind: string(a.Work()), ActionID: a.ID, Tool: a.Tool, ToolVersion: a.ToolVersion, Version: a.Version,
		Actor: api.Actor{ID: a.Actor.ID}, ObjectVersion: a.ObjectVersion, Payload: a.Payload, ExecutionKey: a.ExecutionKey, ProposalHash: a.ProposalHash}
	if a.Target != nil {
		w.Target = &api.Target{Type: a.Target.Type, ID: a.Target.ID}
	}
	if a.Confirmation != nil {
		w.ConfirmationRef = &a.Confirmation.Ref
	}
	return w
}

func (b *bench) tool(r *http.Request) (any, error) {
	version, _ := strconv.Atoi(r.URL.Query().Get("version"))
	find := func() (rule.ToolVersion, bool, error) { return b.db.ActiveTool(r.Context(), r.PathValue("name")) }
	if version > 0 {
		find = func() (rule.ToolVersion, bool, error) { return b.db.Tool(r.Context(), r.PathValue("name"), version) }
	}
	v, ok, err := find()
	if err == nil && !ok {
		err = action.Refuse(action.UnknownTool, "no such tool")
	}
	return api.Tool{Name: v.Name, Version: v.Version, Active: v.Active, Contract: v.Source}, err
}

func (b *bench) claim(r *http.Request) (any, error) {
	var body api.Claim
	if err := read(r, &body); err != nil {
		return nil, err
	}
	c, err := b.approvals.Claim(r.Context(), b.executor, r.PathValue("id"), body.ClaimID,
		approvals.Bound{ProposalHash: body.ProposalHash, ObjectVersion: body.ObjectVersion})
	if err != nil {
		return nil, err
	}
	a := c.Action
	return api.Claimed{ActionID: a.ID, Contract: c.Tool.Source, Payload: a.Payload, ExecutionKey: a.ExecutionKey,
		Lease: leaseOf(a, c.Now), Token: c.Token, Now: c.Now}, nil
}

func leaseOf(a action.Action, now time.Time) api.Lease {
	return api.Lease{TTLMillis: a.Claim.LeaseUntil.Sub(now).Milliseconds(), ExpiresAt: a.Claim.LeaseUntil}
}

func (b *bench) renew(r *http.Request) (any, error) {
	var body api.Renew
	if err := read(r, &body); err != nil {
		return nil, err
	}
	snap, err := b.triage.Renew(r.Context(), b.executor, r.PathValue("id"), body.ClaimID, body.LeaseID)
	if err != nil {
		return nil, err
	}
	return leaseOf(snap.Action, snap.Now), nil
}

func (b *bench) release(r *http.Request) (any, error) {
	var body api.Release
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return actionOf(b.triage.Release(r.Context(), b.executor, r.PathValue("id"), body.ClaimID, body.Code))
}

func (b *bench) attempt(r *http.Request) (any, error) {
	var body api.Attempt
	if err := read(r, &body); err != nil {
		return nil, err
	}
	t, now, err := b.triage.Start(r.Context(), b.executor, r.PathValue("id"),
		triage.Attempt{ID: body.AttemptID, ClaimID: body.ClaimID, Step: body.Step, Fingerprint: body.Fingerprint})
	return api.AttemptStarted{Number: t.Number, SendWithinMillis: t.SendBy.Sub(now).Milliseconds(), SendBy: t.SendBy}, err
}

func (b *bench) receipt(r *http.Request) (any, error) {
	var body api.Receipt
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return actionOf(b.triage.Report(r.Context(), b.executor, r.PathValue("id"), triage.Receipt{ID: body.ReceiptID,
		AttemptID: body.AttemptID, ClaimID: body.ClaimID, Outcome: body.Outcome, Proves: body.Proves, Code: body.Code,
		HTTPStatus: body.HTTPStatus, ProviderRef: body.ProviderRef, ObjectVersionAfter: body.ObjectVersionAfter, Body: body.Body}))
}

func (b *bench) observation(r *http.Request) (any, error) {
	var body api.Observation
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return actionOf(b.triage.Observe(r.Context(), b.executor, r.PathValue("id"), triage.Observation{ID: body.ObservationID,
		Tool: body.Tool, Snapshot: body.Snapshot, Error: body.Error, ObservedAt: body.ObservedAt}))
}

func actionOf(snap action.Snapshot, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	a := api.Action{ID: snap.Action.ID, State: string(snap.Action.State), Version: snap.Action.Version}
	for _, o := range snap.Action.Observations {
		state := api.ObservationState{ObservationID: o.ID, Tool: o.Tool}
		if o.Holds != action.HoldsUnknown {
			holds := o.Holds == action.HoldsTrue
			state.Holds = &holds
		}
		a.Observations = append(a.Observations, state)
	}
	return a, nil
}
