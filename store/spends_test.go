package store

import (
	"testing"

	"countersign/action"
	"countersign/approvals"
)

// A budget is asked for what is new, and never for what finds out what became of
// what was sent, nor for what a person wants.
func TestWhatABudgetIsAskedFor(t *testing.T) {
	sent := []action.Attempt{{ID: "a", ClaimID: "c1"}}
	again := append(sent, action.Attempt{ID: "b", ClaimID: "c2"})
	wanted := &action.Case{ID: "cas", Open: true, SendAgain: true}
	for name, c := range map[string]struct {
		kind action.Kind
		next action.Action
		want approvals.TaskLook
	}{
		"a draft":              {action.KindDrafted, action.Action{}, approvals.LookOpen},
		"a write":              {action.KindProposed, action.Action{Terms: action.Terms{Write: true}}, approvals.LookWrite},
		"a read":               {action.KindSubmitted, action.Action{}, approvals.LookRead},
		"other content":        {action.KindRevised, action.Action{}, approvals.LookOpen},
		"a claim":              {action.KindClaimed, action.Action{}, approvals.LookRun},
		"the first attempt":    {action.KindAttempted, action.Action{Attempts: sent}, approvals.LookRun},
		"one that was granted": {action.KindAttempted, action.Action{Attempts: again}, approvals.LookNothing},
		"a retry":              {action.KindRetried, action.Action{Terms: action.Terms{Write: true}, Attempts: sent}, approvals.LookRetry},
		"one a person wants":   {action.KindRetried, action.Action{Terms: action.Terms{Write: true}, Attempts: sent, Case: wanted}, approvals.LookNothing},
		"a decision":           {action.KindDecided, action.Action{}, approvals.LookNothing},
		"a receipt":            {action.KindReceipt, action.Action{Attempts: sent}, approvals.LookNothing},
		"a reading":            {action.KindObservation, action.Action{Attempts: sent}, approvals.LookNothing},
		"an answer by key":     {action.KindEvidence, action.Action{Attempts: sent}, approvals.LookNothing},
		"giving back":          {action.KindReleased, action.Action{}, approvals.LookNothing},
		"cancelling":           {action.KindCancelled, action.Action{}, approvals.LookNothing},
	} {
		c.next.TaskID = "tsk"
		if got := spends(action.Transition{Event: action.Event{Kind: c.kind}, Next: c.next}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		c.next.TaskID = ""
		if got := spends(action.Transition{Event: action.Event{Kind: c.kind}, Next: c.next}); got != approvals.LookNothing {
			t.Errorf("%s without a task: %q", name, got)
		}
	}
}
