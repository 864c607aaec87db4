package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
	"countersign/triage"
	"countersign/web"
)

// triageRoutes are the pages of unknown results. Everybody reads what they may
// see; who may settle is decided on each case.
func triageRoutes() []route {
	ops := signedIn(people.RoleOps)
	return []route{
		{get, "/triage", "triage", signedIn(), (*server).showTriage, 0, nil},
		{get, "/triage/stream", "triageStream", signedIn(), (*server).streamTriage, forever, nil},
		{post, "/triage/bulk", "triageBulk", ops, (*server).bulkTriage, maxWait, nil},
		{get, "/triage/keys", "triageKeys", signedIn(), (*server).exportKeys, maxWait, nil},
		{get, "/triage/import", "triageImportForm", ops, (*server).showImport, 0, nil},
		{post, "/triage/import", "triageImport", ops, (*server).importFile, maxWait, nil},
		{get, "/triage/callbacks", "triageCallbacks", signedIn(people.RoleOps, people.RoleAuditor, people.RoleAdmin), (*server).showCallbacks, 0, nil},
		{get, "/triage/{case}", "case", signedIn(), (*server).showCase, 0, nil},
		{post, "/triage/{case}/take", "caseTake", ops, (*server).takeCase, 0, nil},
		{post, "/triage/{case}/hand-over", "caseHandOver", ops, (*server).handOverCase, 0, nil},
		{post, "/triage/{case}/ask", "caseAsk", ops, (*server).askAgain, 0, nil},
		{post, "/triage/{case}/retry", "caseSendAgain", ops, (*server).sendAgain, 0, nil},
		{post, "/triage/{case}/settlements", "caseSettle", ops, (*server).settleCase, 0, nil},
	}
}

// firstAmount is the sum of money that an action is about, if it is about one.
func firstAmount(c *contract.Contract, payload []byte) []contract.Amount {
	amounts := c.Amounts(payload)
	return amounts[:min(1, len(amounts))]
}

// triagePage is how many cases a page shows, so that an outage is one page.
const triagePage = 200

// The tabs of the page and of the lists.
var triageTabs = map[web.TriageTab]triage.CaseTab{web.TriagePerson: triage.TabPerson, web.TriageAsking: triage.TabAsking,
	web.TriageSecond: triage.TabSecond, web.TriageSettled: triage.TabSettled}

func triageAsked(r *http.Request, c caller) (web.TriageTab, triage.CaseFilter) {
	q := r.URL.Query()
	tab := web.TriageTab(q.Get("tab"))
	if _, known := triageTabs[tab]; !known {
		tab = web.TriagePerson
	}
	return tab, triage.CaseFilter{Viewer: c.viewer(), Tab: triageTabs[tab], Tool: clean(q.Get("tool")), Ref: strings.TrimSpace(clean(q.Get("q"))),
		After: caseCursor(q.Get("after")), Limit: triagePage + 1}
}

// aged limits cases to an age as of a moment, where the address names one.
func aged(r *http.Request, f *triage.CaseFilter, now time.Time) web.AgeBucket {
	age := web.AgeBucket(r.URL.Query().Get("age"))
	if !slices.Contains(web.AgeBuckets(), age) || f.Tab == triage.TabSettled {
		return ""
	}
	from, to := age.Span()
	f.To = new(now.Add(-from))
	if to > 0 {
		f.From = new(now.Add(-to))
	}
	return age
}

// showTriage is the queue of unknown results.
func (s *server) showTriage(w http.ResponseWriter, r *http.Request, c caller) error {
	tab, f := triageAsked(r, c)
	at, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	age := aged(r, &f, at)
	actions, now, err := s.CaseReads.Cases(r.Context(), f)
	if err != nil {
		return err
	}
	p := web.TriagePage{Tab: tab, Counts: map[web.TriageTab]web.Count{}, ReadAt: now, FirstPage: f.After == nil, Settles: c.session.Person.Has(people.RoleOps),
		Filter: web.TriageFilter{Tool: f.Tool, Query: web.Outside(f.Ref), Age: age}}
	if len(actions) > triagePage {
		actions = actions[:triagePage]
		p.NextURL = pageAfter(r.URL, caseCursorText(triage.CursorAt(actions[triagePage-1], f.Tab)))
	}
	if tab != web.TriageSettled && age == "" {
		p.StreamURL = streamOf(r.URL, now)
	}
	if p.Groups, err = s.caseGroups(r, c, actions, tab, now); err != nil {
		return err
	}
	if c.session.Person.Has(people.RoleOps) || c.session.Person.Has(people.RoleAuditor) || c.session.Person.Has(people.RoleAdmin) {
		parked, _, err := s.CaseReads.ParkedCallbacks(r.Context(), c.viewer(), 1)
		if err != nil {
			return err
		}
		p.Callbacks = len(parked) > 0
	}
	if p.Paused, err = s.pausedFor(r.Context(), c.viewer()); err != nil {
		return err
	}
	for name, t := range triageTabs {
		if name == web.TriageSettled {
			continue // nobody waits for what is over
		}
		n, err := s.CaseReads.CaseCount(r.Context(), triage.CaseFilter{Viewer: f.Viewer, Tab: t, Tool: f.Tool, Ref: f.Ref, From: f.From, To: f.To}, countMost)
		if err != nil {
			return err
		}
		p.Counts[name] = count(n)
	}
	if p.Filter.Tools, err = s.CaseReads.CaseTools(r.Context(), f.Viewer, 200); err != nil {
		return err
	}
	if f.Tool != "" && !slices.Contains(p.Filter.Tools, f.Tool) {
		p.Filter.Tools = append(p.Filter.Tools, f.Tool)
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.TriageView(s.frame(r, c, web.Triage), p))
}

// streamOf is the stream of a page of unknown results that was read at a moment.
func streamOf(page *url.URL, now time.Time) string {
	q := url.Values{"since": {now.UTC().Format(time.RFC3339Nano)}}
	for _, name := range []string{"tab", "tool", "q"} {
		if v := page.Query().Get(name); v != "" {
			q.Set(name, v)
		}
	}
	return "/triage/stream?" + q.Encode()
}

// streamTriage says how many cases came into the tab after the page was read.
func (s *server) streamTriage(w http.ResponseWriter, r *http.Request, c caller) error {
	_, f := triageAsked(r, c)
	f.After = nil
	since, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("since"))
	if err != nil || f.Tab == triage.TabSettled {
		return action.Refuse(action.InvalidArgument, "Open the page again.").At("/since", "must be when the page was read")
	}
	return s.stream(w, r, c, func(ctx context.Context) (string, error) {
		n, err := s.CaseReads.CaseNews(ctx, f, since, countMost)
		return fmt.Sprintf("event: new\ndata: %d\n\n", n), err
	})
}

// caseGroups lays cases out by their cause; settled ones one by one.
func (s *server) caseGroups(r *http.Request, c caller, actions []action.Action, tab web.TriageTab, now time.Time) ([]web.CaseGroup, error) {
	var groups []triage.CaseGroup
	if tab == web.TriageSettled {
		for _, a := range actions {
			groups = append(groups, triage.CaseGroup{Tool: a.Tool, Why: a.Case.Why, From: a.Case.OpenedAt, Cases: []action.Action{a}})
		}
	} else {
		groups = triage.Groups(actions)
	}
	lang := string(langOf(r, c))
	var out []web.CaseGroup
	for _, g := range groups {
		shown := web.CaseGroup{System: systemOf(g.Tool), Why: g.Why, Op: action.NewSecret(10)}
		var sums []contract.Amount
		for _, a := range g.Cases {
			if a.Unreadable != nil {
				_, status, _ := s.effectAndStatus(r.Context(), a, now, lang)
				shown.Rows = append(shown.Rows, web.CaseRow{Item: web.CaseItem{ID: a.Case.ID}, Effect: unreadEffect(a), Why: a.Case.Why, Key: keyLifeOf(a), Status: status, At: a.Case.ClosedAt})
				shown.From, shown.To = a.Case.OpenedAt, a.Case.OpenedAt
				continue
			}
			tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
			if err != nil {
				return nil, err
			}
			shown.Title = web.Outside(titleOf(tool.Contract, lang))
			shown.Rows = append(shown.Rows, s.caseRow(r, c, tool, a, now, lang))
			if amount, moves := tool.Contract.Moved(a.Payload); moves {
				sums = append(sums, amount)
			}
			if opened := a.Case.OpenedAt; shown.From.IsZero() || opened.Before(shown.From) {
				shown.From = opened
			}
			if a.Case.OpenedAt.After(shown.To) {
				shown.To = a.Case.OpenedAt
			}
		}
		for _, m := range triage.Total(sums) {
			shown.Money = append(shown.Money, web.Money{Amount: m.Amount, Currency: m.Currency})
		}
		out = append(out, shown)
	}
	return out, nil
}

// frozen reads the list that a bulk form was made for.
func frozen(values []string) ([]triage.Seen, error) {
	var items []triage.Seen
	for _, text := range values {
		item, ok := web.ParseCaseItem(text)
		if !ok || !action.ValidID("cas", item.ID) {
			return nil, action.Refuse(action.InvalidArgument, "The list of cases cannot be read. Open the page again.").At("/item", "must be as the page made it")
		}
		items = append(items, triage.Seen{CaseID: item.ID, Version: item.Version, SnapshotHash: item.SnapshotHash})
	}
	return items, nil
}

// bulkTriage asks about, or takes, exactly the cases that a page showed.
func (s *server) bulkTriage(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	items, err := frozen(fields["item"])
	if err != nil {
		return err
	}
	do := map[string]func() ([]triage.Result, error){
		"ask":  func() ([]triage.Result, error) { return s.Cases.AskAll(r.Context(), whoIs(c), items) },
		"take": func() ([]triage.Result, error) { return s.Cases.TakeAll(r.Context(), whoIs(c), items) },
	}[fields.Get("do")]
	if do == nil {
		return action.Refuse(action.InvalidArgument, "The form is incomplete. Open the page again.").At("/do", "must be ask or take")
	}
	results, err := do()
	if err != nil {
		return err
	}
	p := web.BulkPage{Do: fields.Get("do"), Back: "/triage"}
	for _, result := range results {
		shown := web.BulkResult{CaseID: result.Seen.CaseID}
		if result.Err != nil {
			shown.Refused = refusalOf(result.Err)
		}
		if shown.Effect, err = s.caseEffect(r, c, result.Seen.CaseID); err != nil {
			return err
		}
		p.Results = append(p.Results, shown)
	}
	return s.show(speaking(r, c, time.Now()), w, http.StatusOK, web.BulkView(s.formFrame(r, c, web.Triage, "/triage"), p))
}

func whoIs(c caller) triage.Who { return triage.Who{ID: c.session.Person.ID, Method: c.session.Method} }

// caseEffect is what a case is about; empty when it may not be seen.
func (s *server) caseEffect(r *http.Request, c caller, id string) (web.Effect, error) {
	a, err := s.Cases.Listed(r.Context(), c.viewer(), id)
	if action.IsCode(err, action.NotFound) {
		return web.Effect{}, nil
	}
	if err != nil {
		return web.Effect{}, err
	}
	if a.Unreadable != nil {
		return unreadEffect(a), nil
	}
	tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
	if err != nil {
		return web.Effect{}, err
	}
	return effectOf(tool.Contract, string(langOf(r, c)), a.Payload), nil
}

// exportKeys is a file for the provider: which keys nobody knows the outcome of.
func (s *server) exportKeys(w http.ResponseWriter, r *http.Request, c caller) error {
	items, err := frozen(r.URL.Query()["item"])
	if err != nil {
		return err
	}
	if len(items) > triage.MaxBulk {
		return action.Refuse(action.TooLarge, "Export fewer cases at a time.")
	}
	var lines [][]string
	for _, item := range items {
		a, err := s.Cases.Listed(r.Context(), c.viewer(), item.CaseID)
		if err != nil {
			return err
		}
		own, err := s.keyLines(r, a)
		if err != nil {
			return err
		}
		lines = append(lines, own...)
	}
	head := []string{"key", "outcome", "reference", "amount", "currency", "tool", "target_type", "target_id", "first_sent_utc", "last_sent_utc"}
	return sheet(w, "countersign-keys.csv", head, func(yield func([]string, error) bool) {
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	})
}

// keyLines are a line for each key under which something may have been sent. Of an
// action that cannot be read it is the key of the whole, and nothing that was sent.
func (s *server) keyLines(r *http.Request, a action.Action) (lines [][]string, err error) {
	if a.Unreadable != nil {
		line := []string{a.ExecutionKey, "", "", "", "", a.Tool, "", "", "", ""}
		if a.Target != nil {
			line[6], line[7] = a.Target.Type, a.Target.ID
		}
		return [][]string{line}, nil
	}
	tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
	if err != nil {
		return nil, err
	}
	for _, sent := range a.Sent() {
		line := []string{sent.Key, "", "", "", "", a.Tool, "", "", "", ""}
		for _, amount := range firstAmount(tool.Contract, a.Payload) {
			line[3], line[4] = amount.Text, amount.Currency
		}
		if a.Target != nil {
			line[6], line[7] = a.Target.Type, a.Target.ID
		}
		if !sent.First.IsZero() {
			line[8], line[9] = sent.First.UTC().Format(time.RFC3339), sent.Last.UTC().Format(time.RFC3339)
		}
		lines = append(lines, line)
	}
	return lines, nil
}
