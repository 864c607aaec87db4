package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/triage"
	"countersign/web"
)

// caseRow is one case in the queue.
func (s *server) caseRow(r *http.Request, c caller, tool *rule.Tool, a action.Action, now time.Time, lang string) web.CaseRow {
	seen := triage.See(a)
	row := web.CaseRow{Item: web.CaseItem{ID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash},
		Effect: effectOf(tool.Contract, lang, a.Payload), Measure: stakeOf(r.Context(), lang, tool, a), Key: keyLifeOf(a), Why: a.Case.Why,
		Asked: askedOf(a), Needs: a.Exhausted(), Status: actionView{a: a, now: now, tool: tool, lang: lang}.status()}
	if h, held := a.HeldBy(now); held {
		row.Holder, row.Mine = web.Outside(h.Name), h.ID == c.session.Person.ID
	}
	if v := a.Case.Pending; v != nil {
		row.Second, row.Verdict = web.Outside(v.By.Name), v.Verdict
	}
	if !a.Case.Open {
		row.At, row.Asked.Over = a.Case.ClosedAt, true
		row.Found, _ = foundBy(a, *a.Case)
		if a.Case.Verdict != nil {
			row.By = web.Outside(a.Case.Verdict.By.Name)
		}
	}
	return row
}

func keyLifeOf(a action.Action) web.KeyLife {
	k := web.KeyLife{Key: action.StepKey(a.ExecutionKey, a.CurrentStep()), Used: a.Retried(), System: systemOf(a.Tool)}
	if until, ok := a.KeyUntil(); ok {
		k.Until = until
	}
	return k
}

// askedOf is how often the business system was asked by key, and what it said.
func askedOf(a action.Action) web.Asked {
	out := web.Asked{Possible: a.Terms.StatusQuery != ""}
	out.Round, out.Budget = a.AskedSince()
	for _, q := range a.Asks {
		if q.Found.Source == a.Query(q.Found.Step) {
			out.Times, out.Last, out.Found = out.Times+1, q.At, foundOf(q)
		}
	}
	if work, at := a.NextWork(); work == action.WorkAsk {
		out.Next = at
	}
	return out
}

// foundBy says how a closed case was found out without a verdict that closed it,
// and the linked action that did; "" when people's verdict closed it.
func foundBy(a action.Action, c action.Case) (how, linked string) {
	kind, linked := a.Closing(c)
	switch kind {
	case action.KindConcluded:
		return web.FoundLinked, linked
	case action.KindReceipt:
		return web.FoundAnswered, ""
	case action.KindObservation:
		return web.FoundRead, ""
	case action.KindEvidence:
		for _, q := range a.Asks {
			if q.At.Equal(c.ClosedAt) && q.Found.Source != a.Query(q.Found.Step) {
				return web.FoundTold, ""
			}
		}
		return web.FoundAsked, ""
	}
	return "", ""
}

// foundOf is what one answer by key said.
func foundOf(q action.Ask) web.Found {
	switch q.Found.Outcome {
	case action.FoundSucceeded:
		return web.FoundHappened
	case action.FoundFailed:
		return web.FoundFailed
	case action.FoundNotExecuted:
		return web.FoundNotExecuted
	case action.FoundDiffers:
		return web.FoundDiffers
	}
	if q.Found.Untimely != "" {
		return web.FoundUntimely
	}
	var answer struct {
		Status string `json:"status"`
	}
	switch {
	case len(q.Snapshot) == 0 || string(q.Snapshot) == "null":
		return web.FoundNoAnswer
	case json.Unmarshal(q.Snapshot, &answer) == nil && strings.EqualFold(answer.Status, "NOT_FOUND"):
		return web.FoundNotFound
	}
	return web.FoundUnclear
}

// settledBy is a status that a verdict led to, with the people who gave it.
func settledBy(s web.Status, v action.Verdict) web.Status {
	s.How, s.Person = web.HowSettled, web.Outside(v.By.Name)
	if v.Second != nil {
		s.Second = web.Outside(v.Second.By.Name)
	}
	return s
}

// settlementOf is a verdict as pages show it.
func settlementOf(v action.Verdict) web.Settlement {
	s := web.Settlement{Verdict: v.Verdict, By: web.Outside(v.By.Name), Role: v.By.Role, At: v.At, Kind: v.EvidenceKind, Ref: web.Outside(v.EvidenceRef),
		Note: web.Outside(v.Note)}
	if v.Second != nil {
		s.Second = web.Seconder{By: web.Outside(v.Second.By.Name), Role: v.Second.By.Role, At: v.Second.At, Note: web.Outside(v.Second.Note), Refused: !v.Second.Agree}
	}
	return s
}
