package handlers

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/web"
)

// represent makes of actions what the API says of them to one caller at a moment.
func (s *server) represent(ctx context.Context, c caller, now time.Time, actions ...action.Action) ([]api.Action, error) {
	standings, err := s.Approvals.Standings(ctx, actions, nil)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, a := range actions {
		if a.CreatedAt.Before(now) { // nothing can name what is made just now
			ids = append(ids, a.ID)
		}
	}
	var linked []action.Action
	if len(ids) > 0 {
		if linked, err = s.Reads.Linked(ctx, ids...); err != nil {
			return nil, err
		}
	}
	outputs := outputs{s: s, known: map[string]*contract.Contract{}}
	shown := make([]api.Action, len(actions))
	for i, a := range actions {
		if a.Unreadable != nil {
			shown[i] = s.unreadableAction(a, now)
			continue
		}
		tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
		if err != nil {
			return nil, err
		}
		out := actionOf(a, now)
		out.Payload = payloadFor(c, a, tool.Contract)
		out.Approvals = approvalsOf(a, standings[i])
		out.Receipts = receiptsOf(a, tool.Contract)
		if out.Observations, err = outputs.observations(ctx, a); err != nil {
			return nil, err
		}
		out.Result = resultOf(out)
		out.Statement = statementOf(a, tool.Contract, now, web.English)
		out.Links = linksOf(c, a, linked, now)
		out.Links.Page = s.PublicURL + "/actions/" + a.ID
		if a.TaskID != "" {
			out.Links.Task = new(s.taskPage(a.TaskID))
		}
		if a.Confirmation != nil {
			token, err := s.Approvals.Signer().Token(ctx, a)
			if err != nil {
				return nil, err
			}
			out.Confirmation = &api.Confirmation{Ref: a.Confirmation.Ref, ExpiresAt: a.Confirmation.ExpiresAt.UTC(), Token: token}
		}
		shown[i] = out
	}
	return shown, nil
}

// actionOf fills in what depends on nothing but the action and the time.
func actionOf(a action.Action, now time.Time) api.Action {
	out := api.Action{ID: a.ID, State: string(a.StateAt(now)), Version: a.Version, Revision: a.Revision, Tool: a.Tool, ToolVersion: a.ToolVersion,
		Actor: actorOf(a.Actor), ObjectVersion: a.ObjectVersion, PayloadHash: a.PayloadHash, ProposalHash: a.ProposalHash,
		ExecutionKey: a.ExecutionKey, CreatedAt: a.CreatedAt.UTC(), Reason: orNull(a.Reason), HandlerExecutions: a.Executions(),
		RequestID: a.RequestID, TaskID: orNull(a.TaskID), CaseID: orNull(a.CaseID()), Attempts: []api.AttemptState{}, Steps: []api.StepState{}, Target: apiTarget(a.Target)}
	for _, step := range a.Steps {
		out.Steps = append(out.Steps, api.StepState{Name: step.Name, ExecutionKey: action.StepKey(a.ExecutionKey, step.Name),
			State: string(a.StepState(step)), Proven: orNull(string(step.Proven)), Executions: a.StepExecutions(step.Name)})
	}
	if next, ok := a.NextStep(); ok {
		out.NextStep = stepOf(a, next.Name)
	}
	if a.ExpiresAt != nil {
		out.ExpiresAt = new(a.ExpiresAt.UTC())
	}
	for _, t := range a.Attempts {
		out.Attempts = append(out.Attempts, api.AttemptState{AttemptID: t.ID, Number: t.Number, Step: orNull(t.Step), At: t.At.UTC(),
			SendBy: t.SendBy.UTC(), Outcome: orNull(string(t.Outcome))})
	}
	return out
}

// linksOf is what the caller may know of the actions that belong to one.
func linksOf(c caller, a action.Action, linked []action.Action, now time.Time) api.Links {
	l := api.Links{Compensates: orNull(a.Links.Compensates), Resumes: orNull(a.Links.Resumes), Replaces: orNull(a.Links.Replaces),
		LinkedBy: []api.LinkedAction{}}
	for _, f := range linked {
		if f.Unreadable != nil && slices.Contains(f.Unreadable.Links, a.ID) && c.viewer().Sees(approvals.SubjectOf(f, "")) {
			l.LinkedBy = append(l.LinkedBy, api.LinkedAction{ActionID: f.ID, Link: "unreadable", State: string(f.StateAt(now))})
			continue
		}
		if id, how := f.Links.To(); id == a.ID && c.viewer().Sees(approvals.SubjectOf(f, "")) {
			l.LinkedBy = append(l.LinkedBy, api.LinkedAction{ActionID: f.ID, Link: how, State: string(f.StateAt(now))})
		}
	}
	return l
}

func actorOf(a action.Actor) api.Actor { return api.Actor{ID: a.ID, Name: orNull(a.Name)} }

func apiTarget(t *action.Target) *api.Target {
	if t == nil {
		return nil
	}
	return &api.Target{Type: t.Type, ID: t.ID}
}

// payloadFor is the payload as the caller may read it; null once retention has
// removed it.
func payloadFor(c caller, a action.Action, k *contract.Contract) json.RawMessage {
	switch {
	case len(a.Payload) == 0:
		return nil
	case c.readsAll(a):
		return a.Payload
	}
	return k.MaskJSON(a.Payload)
}

func approvalsOf(a action.Action, st approvals.Standing) api.Approvals {
	out := api.Approvals{Required: st.Required, Given: st.Given, Eligible: len(st.Eligible), Decisions: []api.Decision{}}
	for _, d := range a.Decisions {
		decision := "reject"
		if d.Approve {
			decision = "approve"
		}
		out.Decisions = append(out.Decisions, api.Decision{Person: d.By.ID, Name: d.By.Name, Decision: decision, Revision: d.Revision,
			Role: d.By.Role, Method: d.By.Method, ReasonCode: orNull(d.ReasonCode), Reason: orNull(d.Note), At: d.At.UTC(),
			Counts: d.Approve && d.Revision == a.Revision && st.Counting[d.By.ID]})
	}
	return out
}

func receiptsOf(a action.Action, k *contract.Contract) []api.ReceiptState {
	out := []api.ReceiptState{}
	for _, r := range a.Receipts {
		state := api.ReceiptState{ReceiptID: r.ID, AttemptID: r.AttemptID, Claimed: string(r.Claimed), Outcome: string(r.Outcome),
			Proves: orNull(string(r.Proves)), Code: orNull(r.Code), ProviderRef: orNull(r.ProviderRef),
			ObjectVersionAfter: orNull(r.ObjectVersionAfter), Body: k.FilterOutput(r.Body), At: r.At.UTC()}
		if r.HTTPStatus != 0 {
			state.HTTPStatus = new(r.HTTPStatus)
		}
		out = append(out, state)
	}
	return out
}

// outputs filters what read tools returned by their own contracts.
type outputs struct {
	s     *server
	known map[string]*contract.Contract // nil for a tool that is not here
}

func (o outputs) observations(ctx context.Context, a action.Action) ([]api.ObservationState, error) {
	out := []api.ObservationState{}
	for _, seen := range a.Observations {
		state := api.ObservationState{ObservationID: seen.ID, Tool: seen.Tool, Step: orNull(seen.Step), Error: orNull(seen.Error), Code: orNull(seen.Wire.Code), AboutOther: seen.Other, ObservedAt: seen.ObservedAt.UTC()}
		if seen.Wire.Status > 0 {
			state.HTTPStatus = new(seen.Wire.Status)
		}
		if seen.Holds != action.HoldsUnknown {
			state.Holds = new(seen.Holds == action.HoldsTrue)
		}
		k, err := o.contract(ctx, seen.Tool)
		if err != nil {
			return nil, err
		}
		if k != nil && len(seen.Snapshot) > 0 {
			state.Snapshot = k.FilterOutput(seen.Snapshot)
		}
		out = append(out, state)
	}
	return out, nil
}

func (o outputs) contract(ctx context.Context, tool string) (*contract.Contract, error) {
	if k, ok := o.known[tool]; ok {
		return k, nil
	}
	found, err := o.s.catalogue.Latest(ctx, tool)
	if action.IsCode(err, action.UnknownTool) {
		o.known[tool] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o.known[tool] = found.Contract
	return found.Contract, nil
}

// resultOf is what the action brought about, as far as it may be seen: the
// answer of the latest success, else the latest reading after something was sent.
func resultOf(a api.Action) json.RawMessage {
	for i := len(a.Receipts) - 1; i >= 0; i-- {
		if r := a.Receipts[i]; r.Outcome == string(action.Success) && r.Body != nil {
			return r.Body
		}
	}
	if len(a.Attempts) == 0 {
		return nil
	}
	for i := len(a.Observations) - 1; i >= 0; i-- {
		if o := a.Observations[i]; o.Snapshot != nil && !o.AboutOther && o.ObservedAt.After(a.Attempts[0].At) {
			return o.Snapshot
		}
	}
	return nil
}

// statementOf is what may and may not be said to a customer. The contract is
// needed of actions that can be read.
func statementOf(a action.Action, k *contract.Contract, now time.Time, lang web.Lang) api.Statement {
	level, waiting := a.Statement(now)
	said := web.Statement{Level: string(level), Waiting: waiting, Later: a.Unreadable == nil && tellsMore(a.StateAt(now), k), AsOf: now}
	return api.Statement{Level: said.Level, MaySay: said.MaySay(lang), MustNotSay: append([]string{}, said.MustNotSay(lang)...), AsOf: now.UTC()}
}

// tellsMore reports whether the contract names a mechanism that will tell more
// than is known in this state.
func tellsMore(state action.State, k *contract.Contract) bool {
	asks := k.Execution.StatusQuery != nil || k.Execution.Callback != nil
	switch state {
	case action.Executing, action.ResultUnknown:
		return asks
	case action.Accepted:
		return k.Execution.Proves == action.ProvesCompleted && (asks || len(k.Execution.Postconditions) > 0)
	}
	return false
}

// orNull is a text that is left out as null when it is empty.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
