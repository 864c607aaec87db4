package handlers

import (
	"context"
	"slices"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// rowOf is one action in the approvals queue.
func rowOf(ctx context.Context, t *rule.Tool, a action.Action, st approvals.Standing, viewer people.Person, rejected bool, lang string) web.Row {
	r := web.Row{ID: a.ID, Effect: effectOf(t.Contract, lang, a.Payload), Measure: measureOf(ctx, lang, t, a), Actor: actorText(a.Actor),
		Client: web.Outside(a.Client.Name), Target: targetOf(a), Needs: st.Missing, PayloadHash: a.PayloadHash}
	if a.ExpiresAt != nil {
		r.ExpiresAt = *a.ExpiresAt
	}
	r.Decided = slices.ContainsFunc(a.Decisions, func(d action.Decision) bool { return d.Revision == a.Revision && d.By.ID == viewer.ID })
	v := actionView{a: a, now: a.UpdatedAt, tool: t, standing: st, viewer: viewer, lang: lang}
	hidden := 0
	if flags := web.Outside(string(a.Payload)).Flags(); flags.Any() { // a table of the fields would cost too much for a row
		hidden = 1
	}
	ws := v.warnings(web.ActionPage{Checks: v.checks()}, hidden, false)
	if rejected {
		ws = append(ws, web.Warning{Kind: web.WarnRejectedBefore})
	}
	if len(ws) > 0 {
		slices.SortStableFunc(ws, func(x, y web.Warning) int { return int(x.Kind) - int(y.Kind) })
		if ws[0].Kind != web.WarnNoCurrency { // the measure says it
			r.Warning = &ws[0].Kind
		}
	}
	return r
}

// historyRowOf is one action in the history.
func historyRowOf(ctx context.Context, t *rule.Tool, a action.Action, now time.Time, lang string) web.HistoryRow {
	v := actionView{a: a, now: now, tool: t, lang: lang}
	row := web.HistoryRow{ID: a.ID, At: a.CreatedAt, Effect: effectOf(t.Contract, lang, a.Payload), Measure: measureOf(ctx, lang, t, a),
		Status: v.status(), For: actorText(a.Actor), Tool: web.Outside(a.Tool)}
	for _, d := range v.who().Decisions {
		if !d.Void && !d.Lost {
			row.Decisions = append(row.Decisions, d)
		}
	}
	for _, n := range a.Needs {
		if n.Approvals > 0 {
			row.Rules = append(row.Rules, web.Rule{Role: n.Role, Count: n.Approvals, StepUp: n.StepUp})
		}
	}
	return row
}
