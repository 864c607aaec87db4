package handlers

import (
	"encoding/json"
	"strings"

	"countersign/action"
	"countersign/triage"
	"countersign/web"
)

// storyOf is an action's timeline: every event with the facts that its
// sentence needs. The n-th event of a kind is the n-th record of the action.
func storyOf(a action.Action, events []action.Event) []web.Told {
	var told []web.Told
	var decisions, attempts, receipts, readings, answers int
	revision := 1
	for _, e := range events {
		t := web.Told{At: e.At, Kind: string(e.Kind), By: web.Outside(e.By.Name), System: systemOf(a.Tool), Revision: revision}
		if e.To != e.From {
			t.To = web.State(e.To)
		}
		switch e.Kind {
		case action.KindDrafted, action.KindProposed:
			t.For = actorText(a.Actor)
			t.Reason = reasonIn(e)
		case action.KindSubmitted:
			t.For = actorText(a.Actor)
		case action.KindRevised:
			revision++
			t.Revision, t.Reason = revision, reasonIn(e)
		case action.KindDecided:
			tellDecision(&t, a.Decisions[decisions])
			decisions++
		case action.KindAttempted:
			sent := a.Attempts[attempts]
			t.Number, t.Step, t.Key = sent.Number, web.Outside(sent.Step), action.StepKey(a.ExecutionKey, sent.Step)
			attempts++
		case action.KindReceipt:
			tellReceipt(&t, a.Receipts[receipts])
			receipts++
		case action.KindObservation:
			tellReading(&t, a.Observations[readings])
			if attempts == 0 { // read before anything was sent: nothing to be proven yet
				t.Holds = "unknown"
			}
			readings++
		case action.KindReleased:
			t.Error = whyIn(e)
		case action.KindGivenUp, action.KindConcluded:
			t.Code = a.FailureCode
		case action.KindOverdue:
			if a.Case != nil {
				t.Why = a.Case.Why
			}
		case action.KindEvidence:
			if strings.HasPrefix(a.Asks[answers].Found.ID, triage.FromList) {
				t.Kind = "evidence_listed"
			}
			t.Other = a.Asks[answers].Found.Other
			t.Outcome, t.Ref = outcomeFound(a.Asks[answers].Found.Outcome), web.Outside(a.Asks[answers].Found.ProviderRef)
			answers++
		case action.KindVerdict, action.KindRefused, action.KindCancelled:
			tellVerdict(&t, e)
		}
		told = append(told, t)
	}
	return told
}

func reasonIn(e action.Event) web.Text {
	var body struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return web.Text{}
	}
	return web.Outside(body.Reason)
}

// whyIn is why an executor gave a claim back.
func whyIn(e action.Event) web.Text {
	var body struct {
		Why string `json:"why"`
	}
	if len(e.Body) == 0 || json.Unmarshal(e.Body, &body) != nil {
		return web.Text{}
	}
	return web.Outside(body.Why)
}

// outcomeFound is an answer by key in the words of receipts.
func outcomeFound(found string) string {
	switch found {
	case action.FoundSucceeded:
		return string(action.Success)
	case action.FoundFailed, action.FoundNotExecuted:
		return string(action.Failure)
	case action.FoundDiffers:
		return found
	}
	return string(action.Unknown)
}

// tellVerdict says what a person found, what another one says to it, or why it was cancelled.
func tellVerdict(t *web.Told, e action.Event) {
	var data struct {
		Verdict  action.Verdict `json:"verdict"`
		Confirms bool           `json:"confirms"`
	}
	var body struct {
		Note string `json:"note"`
	}
	if json.Unmarshal(e.Data, &data) != nil || len(e.Body) > 0 && json.Unmarshal(e.Body, &body) != nil {
		return
	}
	if t.Verdict, t.Note = data.Verdict.Verdict, web.Outside(body.Note); data.Confirms {
		t.Kind = "verdict_confirmed"
	}
}

func tellDecision(t *web.Told, d action.Decision) {
	t.Approve, t.Role, t.Method, t.ReasonCode = d.Approve, d.By.Role, d.By.Method, d.ReasonCode
	t.Revision, t.Note = d.Revision, web.Outside(d.Note)
}

func tellReceipt(t *web.Told, r action.Receipt) {
	t.Outcome, t.Proves, t.HTTPStatus, t.Code = string(r.Outcome), string(r.Proves), r.HTTPStatus, r.Code
	t.Ref, t.Version = web.Outside(r.ProviderRef), web.Outside(r.ObjectVersionAfter)
}

func tellReading(t *web.Told, o action.Observation) {
	t.Tool, t.Version, t.Error = web.Outside(o.Tool), web.Outside(o.Version), web.Outside(o.Error)
	t.Holds, t.Other = holdsWord(o.Holds), o.Other
}

func holdsWord(h action.Holds) string {
	switch h {
	case action.HoldsTrue:
		return "yes"
	case action.HoldsFalse:
		return "no"
	}
	return "unknown"
}
