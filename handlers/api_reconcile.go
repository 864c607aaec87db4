package handlers

import (
	"net/http"
	"slices"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
	"countersign/people"
	"countersign/triage"
)

// listWork is the reconciliations that wait for an executor like this one.
func (s *server) listWork(r *http.Request, client people.Client, patterns []string) ([]api.Work, error) {
	runs, err := s.Reconcile.Offered(r.Context(), func(run triage.Run) bool {
		wanted := len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
			prefix, open := strings.CutSuffix(p, "*")
			return p == run.Tool || open && strings.HasPrefix(run.Tool, prefix)
		})
		return wanted && triage.MayList(client, run) == nil
	})
	if err != nil {
		return nil, err
	}
	var list []api.Work
	for _, run := range runs {
		tool, err := s.catalogue.Version(r.Context(), run.Tool, run.ToolVersion)
		if err != nil {
			return nil, err
		}
		from, to, err := s.Reconcile.ListedWindow(r.Context(), run)
		if err != nil {
			return nil, err
		}
		list = append(list, api.Work{Kind: string(action.WorkList), Tool: run.Tool, ToolVersion: run.ToolVersion, Version: run.Version, Payload: []byte("{}"),
			Read: orNull(tool.Contract.Execution.Reconcile.List), List: &api.ListWork{RunID: run.ID, From: from, To: to, Cursor: orNull(run.Cursor)}})
	}
	return list, nil
}

// maxPageError bounds what an executor says of a page that it could not read.
const maxPageError = 1000

// listedPage takes a page of operations.
func (s *server) listedPage(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.ListedPage](w, r)
	if err != nil {
		return err
	}
	p := triage.Listed{PageID: body.PageID, Cursor: deref(body.Cursor), Next: deref(body.Next), Error: body.Error}
	refusal := action.Refuse(action.InvalidArgument, "The page is refused. The errors say where.")
	if !plainText(body.Error, maxPageError) {
		refusal.At("/error", "must be at most 1000 bytes of text without control characters")
	}
	for _, text := range []string{p.Cursor, p.Next} {
		if !storable(text, maxTargetID) {
			refusal.At("/next", "must be at most 2048 bytes of text without NUL")
		}
	}
	for _, o := range body.Items {
		if !storable(o.Key, maxTargetID) || !storable(o.Outcome, maxText) || !storable(o.Currency, maxText) {
			refusal.At("/items", "must be text without NUL")
			break
		}
		p.Items = append(p.Items, contract.Listed{Key: o.Key, At: o.At, Outcome: o.Outcome, Fields: o.Fields, Currency: o.Currency})
	}
	if err := orNil(refusal); err != nil {
		return err
	}
	run, err := s.Reconcile.TakePage(r.Context(), *c.client, parameter(r, "run"), p)
	if err != nil {
		return err
	}
	return respond(w, http.StatusCreated, api.Reconciliation{ID: run.ID, Tool: run.Tool, State: string(run.State), From: run.From, To: run.To,
		Cursor: orNull(run.Cursor), Pages: run.Pages, Listed: run.Listed})
}
