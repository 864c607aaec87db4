package handlers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/triage"
)

// CaseReads is what handlers read of cases past the domain.
type CaseReads interface {
	// Cases lists cases, as the actions that they belong to, by how long the key
	// is known; settled ones the latest first.
	Cases(ctx context.Context, f triage.CaseFilter) ([]action.Action, time.Time, error)
	// CaseCount counts what a filter lets through, up to most.
	CaseCount(ctx context.Context, f triage.CaseFilter, most int) (int, error)
	// CaseNews counts the open cases that a filter lets through and that came into
	// its tab after a moment, up to most.
	CaseNews(ctx context.Context, f triage.CaseFilter, since time.Time, most int) (int, error)
	// CaseTools returns the names of the tools that have open cases which a viewer
	// may see, up to most.
	CaseTools(ctx context.Context, viewer people.Viewer, most int) ([]string, error)
	// ParkedCallbacks lists callbacks that could not be joined with anything, the
	// latest first, and the clock.
	ParkedCallbacks(ctx context.Context, viewer people.Viewer, limit int) ([]triage.ParkedCallback, time.Time, error)
}

// caseRoutes show programs what is not known. Only people settle.
func caseRoutes() []route {
	return []route{
		{get, "/v1/cases", "listCases", everyKey(), (*server).listCases, 0, &call{status: 200, answer: api.List[api.Case]{}, query: caseParams(),
			about: "Unknown and contradictory outcomes that the key may see, those whose key is forgotten first in front. Programs read them; people settle.", refuses: refuses(action.InvalidArgument)}},
		{get, "/v1/cases/{case}", "getCase", everyKey(), (*server).getCase, 0, &call{status: 200, answer: api.Case{},
			about: "A case, open or closed."}},
	}
}

func caseParams() []param {
	return append([]param{
		{name: "tab", about: "open (when left out), person, asking, second or settled."},
		{name: "tool", about: "Name of a tool."},
	}, pageParams()...)
}

// listCases shows what a filter lets through.
func (s *server) listCases(w http.ResponseWriter, r *http.Request, c caller) error {
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	f := triage.CaseFilter{Viewer: c.viewer(), Tab: triage.CaseTab(q.Get("tab")), Tool: q.Get("tool"), Limit: int(limit) + 1}
	if f.Tab == "" {
		f.Tab = triage.TabOpen
	}
	if !slices.Contains([]triage.CaseTab{triage.TabOpen, triage.TabPerson, triage.TabAsking, triage.TabSecond, triage.TabSettled}, f.Tab) {
		return wrongQuery("tab", "must be open, person, asking, second or settled")
	}
	if text := q.Get("cursor"); text != "" {
		if f.After = caseCursor(text); f.After == nil {
			return wrongQuery("cursor", "must be the next_cursor of the page before")
		}
	}
	actions, now, err := s.CaseReads.Cases(r.Context(), f)
	if err != nil {
		return err
	}
	list := api.List[api.Case]{Items: []api.Case{}}
	if len(actions) == f.Limit {
		actions = actions[:f.Limit-1]
		list.NextCursor = new(caseCursorText(triage.CursorAt(actions[len(actions)-1], f.Tab)))
	}
	for _, a := range actions {
		found := s.caseOf(a, *a.Case, now)
		found.Unreadable = orNull(toldUnreadable(a))
		list.Items = append(list.Items, found)
	}
	return respond(w, http.StatusOK, list)
}

// getCase shows one case.
func (s *server) getCase(w http.ResponseWriter, r *http.Request, c caller) error {
	id := parameter(r, "case")
	snap, err := s.Cases.Find(r.Context(), c.viewer(), id)
	if err != nil {
		return err
	}
	found, ok := snap.Action.CaseNamed(id)
	if !ok {
		return action.Refuse(action.NotFound, "There is no such case, or you may not see it.").Because("case")
	}
	return respond(w, http.StatusOK, s.caseOf(snap.Action, found, snap.Now))
}

// caseCursor reads what caseCursorText wrote; nil for anything else.
func caseCursor(text string) *triage.CaseCursor {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var c triage.CaseCursor
	if err != nil || json.Unmarshal(raw, &c) != nil || !action.ValidID("act", c.ID) || c.At.IsZero() {
		return nil
	}
	return &c
}

func caseCursorText(c triage.CaseCursor) string {
	raw, _ := json.Marshal(c) // times and a text: cannot fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

// caseOf is what the API says of a case.
func (s *server) caseOf(a action.Action, c action.Case, now time.Time) api.Case {
	out := api.Case{ID: c.ID, ActionID: a.ID, Tool: a.Tool, Target: apiTarget(a.Target), Kind: c.Kind, Why: c.Why, Open: c.Open, OpenedAt: c.OpenedAt.UTC(),
		Believed: orNull(string(c.Believed)), ExecutionKey: a.ExecutionKey, Pending: verdictOf(c.Pending), Verdict: verdictOf(c.Verdict),
		Earlier: []api.Verdict{}, SnapshotHash: a.SnapshotHash(), Version: a.Version, Links: api.CaseLinks{Page: s.PublicURL + "/triage/" + c.ID}}
	if !c.ClosedAt.IsZero() {
		out.ClosedAt = new(c.ClosedAt.UTC())
	}
	if until, ok := a.KeyUntil(); ok {
		out.KeyExpiresAt = new(until.UTC())
	}
	if a.Executions() > 0 {
		out.FencedAt = new(a.FencedAt().UTC())
	}
	if h, held := a.HeldBy(now); held && c.Open {
		out.Holder = &api.Holder{Person: h.ID, Name: h.Name, Until: h.Until.UTC()}
	}
	for _, v := range c.Earlier {
		out.Earlier = append(out.Earlier, *verdictOf(&v))
	}
	out.Asking = askingOf(a, c)
	return out
}

func askingOf(a action.Action, c action.Case) api.Asking {
	out := api.Asking{}
	out.Asked, out.Most = a.AskedSince()
	if n := len(a.Asks); n > 0 {
		last := a.Asks[n-1]
		out.LastAt, out.LastAnswer = new(last.At.UTC()), orNull(last.Found.Outcome)
	}
	if !c.Open {
		return out
	}
	out.NeedsPerson = a.Exhausted()
	if work, at := a.NextWork(); work != action.WorkNone {
		out.Next, out.NextAt = orNull(string(work)), new(at.UTC())
	}
	return out
}

func verdictOf(v *action.Verdict) *api.Verdict {
	if v == nil {
		return nil
	}
	out := &api.Verdict{Verdict: v.Verdict, EvidenceKind: v.EvidenceKind, EvidenceRef: orNull(v.EvidenceRef), SnapshotHash: v.SnapshotHash,
		Person: v.By.ID, Name: v.By.Name, At: v.At.UTC(), Note: orNull(v.Note)}
	if s := v.Second; s != nil {
		out.Second = &api.Second{Agree: s.Agree, Person: s.By.ID, Name: s.By.Name, At: s.At.UTC(), Note: orNull(s.Note)}
	}
	return out
}
