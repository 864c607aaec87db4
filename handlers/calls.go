package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/web"
)

// callsPage is how many actions are read at a time for a file of calls, and
// callsMost how many one file has.
const (
	callsPage = 100
	callsMost = 20_000
)

// exportCalls is the record of every call of the actions that a key may see, a
// line each.
func (s *server) exportCalls(w http.ResponseWriter, r *http.Request, c caller) error {
	most, err := number(r, "limit", 1, callsMost, callsMost)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	f := approvals.Filter{Viewer: c.viewer(), Ref: refOf(q.Get("ref")), Tool: q.Get("tool"), TaskID: q.Get("task")}
	refusal := action.Refuse(action.InvalidArgument, "The query of the address is refused.")
	for name, at := range map[string]**time.Time{"from": &f.From, "to": &f.To} {
		if text := q.Get(name); text != "" {
			moment, err := time.Parse(time.RFC3339, text)
			if err != nil {
				refusal.At("?"+name, "must be a time such as 2026-11-30T14:00:00Z")
			}
			*at = &moment
		}
	}
	if f.Before = q.Get("cursor"); f.Before != "" && !action.ValidID("act", f.Before) {
		refusal.At("?cursor", "must be the next_cursor of an earlier file")
	}
	if len(refusal.Errors) > 0 {
		return refusal
	}
	return s.writeCalls(w, r, f, int(most))
}

// callsFile is the same for people, narrowed as their history is.
func (s *server) callsFile(w http.ResponseWriter, r *http.Request, c caller) error {
	f, _, err := s.historyAsked(r, c)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="countersign-calls.jsonl"`)
	return s.writeCalls(w, r, f, callsMost)
}

// writeCalls writes the calls of the actions that a filter lets through, newest
// action first, and a last line that says where to go on: a file without it was
// cut off. It keeps one page of actions at a time.
func (s *server) writeCalls(w http.ResponseWriter, r *http.Request, f approvals.Filter, most int) error {
	w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
	out := bufio.NewWriter(w)
	end := api.CallsEnd{End: true}
	for read := 0; ; {
		f.Limit = min(callsPage, most-read)
		actions, now, err := s.Reads.Actions(r.Context(), f)
		if err != nil {
			return err
		}
		for _, a := range actions {
			if err := s.writeCallsOf(r.Context(), out, a, now); err != nil {
				return err
			}
		}
		read += len(actions)
		if len(actions) < f.Limit {
			break
		}
		if f.Before = actions[len(actions)-1].ID; read >= most {
			end.NextCursor = &f.Before
			break
		}
	}
	if err := json.NewEncoder(out).Encode(end); err != nil {
		return err
	}
	return out.Flush()
}

func (s *server) writeCallsOf(ctx context.Context, out io.Writer, a action.Action, now time.Time) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	if a.Unreadable != nil {
		return lines.Encode(api.CallsUnreadable{ActionID: a.ID, State: string(a.StateAt(now)), Unreadable: cannotRead})
	}
	calls := a.Calls()
	if len(calls) == 0 {
		return nil
	}
	tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if err := lines.Encode(callOf(tool, a, c, now)); err != nil {
			return err
		}
	}
	return nil
}

// callOf is one line of the record. Contents are there by their digests only,
// but for the parameters of an attempt, without what the contract hides.
func callOf(tool *rule.Tool, a action.Action, c action.Call, now time.Time) api.Call {
	line := api.Call{CallID: c.ID, Kind: c.Kind, ActionID: a.ID, TaskID: orNull(a.TaskID), RequestID: a.RequestID, TraceID: orNull(traceID(a.Trace)), Tool: c.Tool, Step: orNull(c.Step),
		ParametersDigest: a.PayloadHash, Fingerprint: orNull(c.Digest), ActorID: a.Actor.ID, Proposer: a.Client.ID, Executor: orNull(c.By.ID), At: c.At.UTC(),
		Result: c.Result, Code: orNull(c.Code), ProviderRef: orNull(c.RequestID), Final: api.CallFinal{State: string(a.StateAt(now)), Target: apiTarget(a.Target),
			HandlerExecutions: a.Executions(), ObjectVersion: orNull(a.Produced()), CaseID: orNull(a.CaseID())}}
	if c.ToolVersion > 0 {
		line.ToolVersion = new(c.ToolVersion)
	}
	if c.TookMillis > 0 {
		line.TookMillis = new(c.TookMillis)
	}
	if c.Status > 0 {
		line.HTTPStatus = new(c.Status)
	}
	if c.Kind == action.CallAttempt {
		line.Number = new(c.Number)
		if len(a.Payload) > 0 {
			line.Parameters = tool.Contract.MaskJSON(a.Payload)
		}
	}
	if a.Case != nil && a.Case.Verdict != nil {
		line.Final.SettledBy = orNull(a.Case.Verdict.By.Name)
	}
	return line
}

// shownCalls are an action's calls as its page shows them.
func shownCalls(a action.Action) []web.Call {
	var shown []web.Call
	for _, c := range a.Calls() {
		shown = append(shown, web.Call{Kind: c.Kind, Number: c.Number, Step: web.Outside(c.Step), Tool: web.Outside(c.Tool), Version: c.ToolVersion, Digest: c.Digest,
			By: web.Outside(c.By.Name), At: c.At, Took: time.Duration(c.TookMillis) * time.Millisecond, Result: c.Result, Status: c.Status,
			Ref: web.Outside(c.RequestID)})
	}
	return shown
}

func callParams() []param {
	return slices.Concat([]param{
		{name: "ref", about: "Any id or hash: of a request, an action, a case, an attempt, a key, a receipt of the business system."},
		{name: "tool", about: "Name of a tool."}, {name: "task", about: "Id of a task."},
		{name: "from", about: "Proposed at or after, RFC 3339."}, {name: "to", about: "Proposed before."},
		{name: "limit", about: "The calls of how many actions at most, 1 to 20000; 20000 when left out. It counts actions, not calls: one has a line for each of its calls, or none."}, {name: "cursor", about: "next_cursor of the file before."}})
}
