package handlers

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/triage"
	"countersign/web"
)

// RunReads is what the pages about reconciliation read.
type RunReads interface {
	// Runs lists runs, newest first, and reads the clock.
	Runs(ctx context.Context, f triage.RunFilter) ([]triage.Run, time.Time, error)
	// Differences lists what a run found, by key.
	Differences(ctx context.Context, f triage.DifferenceFilter) ([]triage.Difference, error)
}

// How many rows the pages and a round of the file have.
const (
	runsPage        = 50
	differencesPage = 50
	runHours        = 24 // of the window that the form begins with
)

// reconcileRoutes are for those who settle, and for those who look after them.
func reconcileRoutes() []route {
	look, ops := signedIn(people.RoleOps, people.RoleAuditor, people.RoleAdmin), signedIn(people.RoleOps)
	return []route{
		{get, "/reconciliation", "reconciliation", look, (*server).showRuns, 0, nil},
		{post, "/reconciliation", "startRun", ops, (*server).startRun, 0, nil},
		{get, "/reconciliation/{run}", "run", look, (*server).showRun, 0, nil},
		{get, "/reconciliation/{run}/differences.csv", "runFile", look, (*server).runFile, maxWait, nil},
		{post, "/reconciliation/{run}/explanations", "explain", ops, (*server).explain, 0, nil},
	}
}

// showRuns lists what was compared.
func (s *server) showRuns(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.runsPage(w, r, c, http.StatusOK, s.frame(r, c, web.Reconcile), web.RunForm{})
}

func (s *server) runsPage(w http.ResponseWriter, r *http.Request, c caller, status int, frame web.Frame, asked web.RunForm) error {
	f := triage.RunFilter{Viewer: c.viewer(), Limit: runsPage + 1}
	if before := r.URL.Query().Get("after"); action.ValidID("rec", before) {
		f.Before = before
	}
	runs, now, err := s.RunReads.Runs(r.Context(), f)
	if err != nil {
		return err
	}
	p := web.ReconcilePage{}
	if len(runs) > runsPage {
		runs = runs[:runsPage]
		p.NextURL = pageAfter(&url.URL{Path: "/reconciliation", RawQuery: r.URL.RawQuery}, runs[runsPage-1].ID)
	}
	for _, run := range runs {
		shown, err := s.runOf(r, c, run)
		if err != nil {
			return err
		}
		p.Runs = append(p.Runs, shown)
	}
	if c.session.Person.Has(people.RoleOps) {
		if err := s.fillRunForm(r, c, now, &asked); err != nil {
			return err
		}
		p.Start = &asked
	}
	return s.show(speaking(r, c, now), w, status, web.ReconcileView(frame, p))
}

// fillRunForm offers the tools that may be compared, and the last day.
func (s *server) fillRunForm(r *http.Request, c caller, now time.Time, f *web.RunForm) error {
	f.Op = newOp()
	if f.From == "" && f.To == "" {
		local := now.In(zoneOf(c))
		f.From, f.To = web.Own(local.Add(-runHours*time.Hour).Format(formTime)), web.Own(local.Add(time.Minute).Format(formTime))
	}
	for after := ""; ; {
		tools, err := s.Reads.Tools(r.Context(), after, maxListed)
		if err != nil {
			return err
		}
		for _, v := range tools {
			after = v.Name
			tool, err := s.catalogue.Of(v)
			if err != nil {
				return err
			}
			if tool.Contract.Execution.Reconcile != nil && people.May(c.session.Person, people.ToSettle, people.Subject{Tool: v.Name}) == nil {
				f.Tools = append(f.Tools, v.Name)
			}
		}
		if len(tools) < maxListed {
			return nil
		}
	}
}

// formTime is how a browser sends a day and a time.
const formTime = "2006-01-02T15:04"

func zoneOf(c caller) *time.Location {
	if zone, err := time.LoadLocation(c.session.Person.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// startRun asks for a comparison.
func (s *server) startRun(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	q, err := askedRun(fields, zoneOf(c))
	if err == nil {
		var run triage.Run
		if run, err = s.Reconcile.Ask(r.Context(), whoIs(c), q); err == nil {
			http.Redirect(w, r, "/reconciliation/"+run.ID, http.StatusSeeOther)
			return nil
		}
	}
	if !action.IsCode(err, action.InvalidArgument) {
		return err
	}
	again := web.RunForm{Tool: clean(fields.Get("tool")), From: web.Own(clean(fields.Get("from"))), To: web.Own(clean(fields.Get("to"))), Refused: refusalOf(err)}
	return s.runsPage(w, r, c, refusedStatus(w, r, err), s.formFrame(r, c, web.Reconcile, "/reconciliation"), again)
}

func askedRun(fields url.Values, zone *time.Location) (triage.Asked, error) {
	q := triage.Asked{Op: clean(fields.Get("op")), Tool: fields.Get("tool")}
	refusal := action.Refuse(action.InvalidArgument, "This window cannot be compared.")
	if q.Op == "" || len(q.Op) > maxText {
		refusal.Because("op").At("/op", "must be as the page made it")
	}
	if !toolName(q.Tool) {
		refusal.At("/tool", "must be the name of a tool")
	}
	for name, into := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		at, err := time.ParseInLocation(formTime, fields.Get(name), zone)
		if err != nil {
			refusal.Because("window-time").At("/"+name, "must be a day and a time such as 2026-11-30T14:00")
		}
		*into = at
	}
	return q, orNil(refusal)
}

// runSeen is a run that the caller may see.
func (s *server) runSeen(r *http.Request, c caller) (triage.Run, time.Time, error) {
	runs, now, err := s.RunReads.Runs(r.Context(), triage.RunFilter{Viewer: c.viewer(), ID: parameter(r, "run"), Limit: 1})
	if err == nil && len(runs) == 0 {
		err = triage.NoRun()
	}
	if err != nil {
		return triage.Run{}, now, err
	}
	return runs[0], now, nil
}

// showRun shows what a run found.
func (s *server) showRun(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.runPage(w, r, c, http.StatusOK, s.frame(r, c, web.Reconcile), r.URL.Query(), nil, nil)
}

// runPage shows a run; refused is why an explanation was not recorded, and typed
// the form it was in.
func (s *server) runPage(w http.ResponseWriter, r *http.Request, c caller, status int, frame web.Frame, q url.Values, refused *web.Refusal, typed url.Values) error {
	run, now, err := s.runSeen(r, c)
	if err != nil {
		return err
	}
	p := web.RunPage{Class: classAsked(q), CSVURL: "/reconciliation/" + run.ID + "/differences.csv", Explains: c.session.Person.Has(people.RoleOps),
		Op: newOp(), Refused: refused}
	if p.Run, err = s.runOf(r, c, run); err != nil {
		return err
	}
	found, err := s.RunReads.Differences(r.Context(), triage.DifferenceFilter{Viewer: c.viewer(), RunID: run.ID, Class: triage.Class(p.Class),
		After: clean(q.Get("after")), Limit: differencesPage + 1})
	if err != nil {
		return err
	}
	if len(found) > differencesPage {
		found = found[:differencesPage]
		p.NextURL = pageAfter(&url.URL{Path: "/reconciliation/" + run.ID, RawQuery: url.Values{"class": {string(p.Class)}}.Encode()}, found[differencesPage-1].Key)
	}
	for _, d := range found {
		row, err := s.differenceOf(r, c, d)
		if err != nil {
			return err
		}
		if typed.Get("key") == d.Key {
			row.Note = web.Own(clean(typed.Get("note")))
		}
		p.Rows = append(p.Rows, row)
	}
	return s.show(speaking(r, c, now), w, status, web.RunView(frame, p))
}

// classAsked is the class that an address or a form names.
func classAsked(q url.Values) web.RunClass {
	switch class := web.RunClass(q.Get("class")); class {
	case web.ClassMismatch, web.ClassOursOnly, web.ClassTheirsOnly, web.ClassAwaiting:
		return class
	}
	return web.ClassDiffer
}

// explain records what a person found out about a difference.
func (s *server) explain(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	run, _, err := s.runSeen(r, c)
	if err != nil {
		return err
	}
	found, err := s.RunReads.Differences(r.Context(), triage.DifferenceFilter{Viewer: c.viewer(), RunID: run.ID, Key: clean(fields.Get("key")), Limit: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 || fields.Get("key") == "" {
		return triage.NoRun()
	}
	note, err := noteOf(fields)
	if err == nil {
		err = s.Reconcile.Explain(r.Context(), whoIs(c), found[0], note)
	}
	back := "/reconciliation/" + run.ID
	if err == nil {
		if class := classAsked(fields); class != web.ClassDiffer {
			back += "?class=" + string(class)
		}
		http.Redirect(w, r, back, http.StatusSeeOther)
		return nil
	}
	if !action.IsCode(err, action.InvalidArgument) && !action.IsCode(err, action.WrongState) && !action.IsCode(err, action.AlreadyDecided) {
		return err
	}
	return s.runPage(w, r, c, refusedStatus(w, r, err), s.formFrame(r, c, web.Reconcile, back), fields, refusalOf(err), fields)
}
