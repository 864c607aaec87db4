package handlers

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/triage"
	"countersign/web"
)

// runOf is a run as the pages show it.
func (s *server) runOf(r *http.Request, c caller, run triage.Run) (web.Run, error) {
	tool, err := s.catalogue.Version(r.Context(), run.Tool, run.ToolVersion)
	if err != nil {
		return web.Run{}, err
	}
	out := web.Run{ID: run.ID, Title: web.Outside(titleOf(tool.Contract, string(langOf(r, c)))), Tool: web.Outside(run.Tool), From: run.From, To: run.To,
		State: web.RunState(run.State), Problem: web.Outside(run.Problem), AskedAt: run.AskedAt, Pages: int(run.Pages), Listed: int(run.Listed),
		Totals: totalsOf(run.Totals)}
	if !run.Sweep {
		out.By = web.Outside(run.By.Name)
	}
	if run.EndedAt != nil {
		out.EndedAt = *run.EndedAt
	}
	return out, nil
}

func totalsOf(t triage.Totals) web.RunTotals {
	out := web.RunTotals{Matched: int(t.Matched), Awaiting: int(t.Awaiting), Mismatch: int(t.Mismatch), OursOnly: int(t.OursOnly),
		TheirsOnly: int(t.TheirsOnly), Others: int(t.Others)}
	for _, form := range []rule.Form{rule.FormZone, rule.FormDecimals, rule.FormExponent, rule.FormAbsent} {
		if n := t.Forms[form]; n > 0 {
			out.Forms = append(out.Forms, web.FormCount{Form: string(form), N: int(n)})
		}
	}
	return out
}

// differenceOf is a difference as the page shows it.
func (s *server) differenceOf(r *http.Request, c caller, d triage.Difference) (web.Difference, error) {
	lang := string(langOf(r, c))
	tool, err := s.catalogue.Version(r.Context(), d.Tool, d.ToolVersion)
	if err != nil {
		return web.Difference{}, err
	}
	out := web.Difference{Key: web.Outside(d.Key), Class: web.RunClass(d.Class), Why: d.Why, Untold: web.Outside(d.Untold), ActionID: d.ActionID, Ours: web.State(d.Ours),
		CaseID: d.CaseID, CaseOpen: d.CaseOpen}
	if d.Theirs != nil {
		out.Theirs = web.Outside(d.Theirs.Outcome)
		if at, err := d.Theirs.Moment(); err == nil {
			out.At = at
		}
	}
	for _, f := range d.Fields {
		out.Fields = append(out.Fields, pairOf(tool.Contract, lang, f, d.Fields))
	}
	if e := d.Explained; e != nil {
		out.Explained = &web.Explained{By: web.Outside(e.By.Name), At: e.At, Note: web.Outside(e.Note)}
	}
	if d.ActionID == "" {
		return out, nil
	}
	snap, err := s.Reads.Snapshot(r.Context(), d.ActionID)
	if action.IsCode(err, action.StaleRevision) { // its own page says what is wrong with it
		return out, nil
	}
	if err != nil {
		return out, err
	}
	own, err := s.catalogue.Version(r.Context(), snap.Action.Tool, snap.Action.ToolVersion)
	if err != nil {
		return out, err
	}
	out.Effect = effectOf(own.Contract, lang, snap.Action.Payload)
	return out, nil
}

// pairOf is one field of both sides, unless the contract hides it. What is
// money in the payload is money there too, in the currency that they name.
func pairOf(k *contract.Contract, lang string, f triage.FieldCompared, all []triage.FieldCompared) web.FieldPair {
	pair := web.FieldPair{Same: f.Same}
	if !strings.HasPrefix(f.Field, "/") {
		pair.Other = f.Field
	} else {
		pair.Label, _ = labelOf(k, lang, f.Field)
	}
	ours, theirs := moneyCompared(k, f.Field, all)
	pair.Ours, pair.Theirs = shownValue(k, f.Field, f.Ours, ours), shownValue(k, f.Field, f.Theirs, theirs)
	for _, form := range f.Forms {
		pair.Forms = append(pair.Forms, string(form))
	}
	return pair
}

// moneyCompared is in which currency a field is on either side; no money where
// the contract does not say so. What is in cents there stands as it is.
func moneyCompared(k *contract.Contract, field string, all []triage.FieldCompared) (ours, theirs web.Money) {
	declared, is := k.Money(field)
	if !is {
		return ours, theirs
	}
	ours = web.Money{Currency: declared.Currency, MinorUnits: declared.MinorUnits}
	theirs = ours
	for _, other := range all {
		if other.Field == declared.Currency || other.Field == "currency" {
			for side, raw := range map[*string]json.RawMessage{&ours.Currency: other.Ours, &theirs.Currency: other.Theirs} {
				if code := ""; json.Unmarshal(raw, &code) == nil && code != "" {
					*side = code
				}
			}
		}
	}
	if strings.HasPrefix(declared.Currency, "/") && ours.Currency == declared.Currency {
		return web.Money{}, web.Money{} // nobody compared the currency
	}
	if by := k.Execution.Reconcile; by != nil && rule.InCents(by.Fields[field]) {
		theirs = web.Money{}
	}
	return ours, theirs
}

// runFile is all that a run found, as CSV.
func (s *server) runFile(w http.ResponseWriter, r *http.Request, c caller) error {
	run, _, err := s.runSeen(r, c)
	if err != nil {
		return err
	}
	fields, err := s.fieldsCompared(r, run)
	if err != nil {
		return err
	}
	head := []string{"key", "class", "why", "action_id", "case_id", "case_open", "here", "there", "there_at", "explained_by", "explained_utc", "explanation", "not_told"}
	for _, field := range fields {
		head = append(head, "here "+field, "there "+field, "differs "+field)
	}
	return sheet(w, "countersign-"+run.ID+".csv", head, func(yield func([]string, error) bool) {
		for _, class := range []triage.Class{"", triage.ClassAwaiting} {
			f := triage.DifferenceFilter{Viewer: c.viewer(), RunID: run.ID, Class: class, Limit: s.filePage}
			for line, err := range s.differenceLines(r.Context(), f, fields) {
				if !yield(line, err) {
					return
				}
			}
		}
	})
}

func (s *server) differenceLines(ctx context.Context, f triage.DifferenceFilter, fields []string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for {
			found, err := s.RunReads.Differences(ctx, f)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, d := range found {
				tool, err := s.catalogue.Version(ctx, d.Tool, d.ToolVersion)
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(differenceLine(tool.Contract, d, fields), nil) {
					return
				}
				f.After = d.Key
			}
			if len(found) < f.Limit {
				return
			}
		}
	}
}

// fieldsCompared are the fields that any version of a run's tool compares: each
// action is compared by its own.
func (s *server) fieldsCompared(r *http.Request, run triage.Run) ([]string, error) {
	latest, err := s.catalogue.Latest(r.Context(), run.Tool)
	if err != nil {
		return nil, err
	}
	fields := []string{"currency", "at"}
	for version := 1; version <= latest.Version; version++ {
		tool, err := s.catalogue.Version(r.Context(), run.Tool, version)
		if err != nil {
			return nil, err
		}
		if by := tool.Contract.Execution.Reconcile; by != nil {
			fields = slices.AppendSeq(fields, maps.Keys(by.Fields))
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields), nil
}

func differenceLine(k *contract.Contract, d triage.Difference, fields []string) []string {
	line := []string{d.Key, string(d.Class), d.Why, d.ActionID, d.CaseID, "", string(d.Ours), "", "", "", "", "", d.Untold}
	if d.CaseID != "" {
		line[5] = map[bool]string{true: "open", false: "settled"}[d.CaseOpen]
	}
	if d.Theirs != nil {
		line[7], line[8] = d.Theirs.Outcome, d.Theirs.At
	}
	if e := d.Explained; e != nil {
		line[9], line[10], line[11] = e.By.Name, e.At.UTC().Format(time.RFC3339), e.Note
	}
	for _, field := range fields {
		i := slices.IndexFunc(d.Fields, func(f triage.FieldCompared) bool { return f.Field == field })
		if i < 0 {
			line = append(line, "", "", "")
			continue
		}
		f := d.Fields[i]
		how := "differs"
		if f.Same {
			how = "same"
			for _, form := range f.Forms {
				how += ", " + string(form)
			}
		}
		line = append(line, cellOf(k, f.Field, f.Ours), cellOf(k, f.Field, f.Theirs), how)
	}
	return line
}

// cellOf is a value as a spreadsheet shows it: a text without quotes.
func cellOf(k *contract.Contract, pointer string, raw json.RawMessage) string {
	if strings.HasPrefix(pointer, "/") && k.Masked(pointer) {
		return contract.Hidden
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
