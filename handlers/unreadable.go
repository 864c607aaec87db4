package handlers

import (
	"context"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/web"
)

// cannotRead is what programs and files are told of an action whose events cannot
// be folded. Lists show it as its row has it, beside all others.
const cannotRead = "its history cannot be read: run console fold --check"

// toldUnreadable is cannotRead for such an action, "" for any other.
func toldUnreadable(a action.Action) string {
	if a.Unreadable == nil {
		return ""
	}
	return cannotRead
}

// unreadEffect stands where another action's effect does.
func unreadEffect(a action.Action) web.Effect { return web.Effect{Unread: web.Outside(a.ID)} }

// effectAndStatus is an action as a line of a list names it.
func (s *server) effectAndStatus(ctx context.Context, a action.Action, now time.Time, lang string) (web.Effect, web.Status, error) {
	if a.Unreadable != nil {
		return unreadEffect(a), web.Status{State: web.State(a.StateAt(now)), System: systemOf(a.Tool)}, nil
	}
	tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
	if err != nil {
		return web.Effect{}, web.Status{}, err
	}
	return effectOf(tool.Contract, lang, a.Payload), actionView{a: a, now: now, tool: tool, lang: lang}.status(), nil
}

// unreadableAction is what the API says of such an action: what stands in its row.
func (s *server) unreadableAction(a action.Action, now time.Time) api.Action {
	out := actionOf(a, now)
	out.Approvals.Decisions, out.Receipts, out.Observations = []api.Decision{}, []api.ReceiptState{}, []api.ObservationState{}
	out.Links = api.Links{Page: s.PublicURL + "/actions/" + a.ID, LinkedBy: []api.LinkedAction{}}
	if a.TaskID != "" {
		out.Links.Task = new(s.taskPage(a.TaskID))
	}
	out.Statement, out.Unreadable = statementOf(a, nil, now, web.English), orNull(cannotRead)
	return out
}
