package triage_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/action"
	"countersign/triage"
)

// REPORTS 35: a bulk command is about the list that was shown. What came or
// moved meanwhile is left alone, and every item has its result.
func TestReport35_BulkIsOfAFrozenList(t *testing.T) {
	s := casesOf(t)
	var items []triage.Seen
	var actions []action.Action
	for range 4 {
		a, _ := s.unknown(askable)
		actions, items = append(actions, a), append(items, triage.See(a))
	}
	s.answer(actions[1], "UNHEARD")
	s.answer(actions[2], "SUCCEEDED")
	fresh, _ := s.unknown(askable)
	results, err := s.Cases.AskAll(background(), who(s.olga), append(items, items[0]))
	must(t, err)
	if len(results) != 4 || results[0].Err != nil || !action.IsCode(results[1].Err, action.StaleRevision) ||
		!action.IsCode(results[2].Err, action.WrongState) || results[3].Err != nil {
		t.Errorf("results %+v", results)
	}
	if got := s.Read(fresh.ID); got.Version != fresh.Version {
		t.Error("a case that came later was touched")
	}
	again, err := s.Cases.AskAll(background(), who(s.olga), items[:1])
	if err != nil || again[0].Err != nil || again[0].Action.Version != results[0].Action.Version {
		t.Errorf("the same list again: %+v, %v", again, err)
	}
	taken, err := s.Cases.TakeAll(background(), who(s.olga), []triage.Seen{triage.See(s.Read(actions[0].ID)), items[1]})
	if err != nil || taken[0].Err != nil || !action.IsCode(taken[1].Err, action.StaleRevision) {
		t.Errorf("taken %+v, %v", taken, err)
	}
	if _, err = s.Cases.AskAll(background(), who(s.olga), make([]triage.Seen, triage.MaxBulk+1)); !action.IsCode(err, action.TooLarge) {
		t.Errorf("a list without end: %v", err)
	}
}

func TestAProvidersFileIsMatchedByKey(t *testing.T) {
	s := casesOf(t)
	var items []triage.Seen
	keys := map[string]string{}
	actions := map[string]action.Action{}
	for _, name := range []string{"yes", "no", "odd", "twice", "absent", "stale", "other", "risky"} {
		tool := askable
		if name == "risky" {
			tool = risky
		}
		a, _ := s.unknown(tool)
		keys[name], actions[name], items = a.ExecutionKey, a, append(items, triage.See(a))
	}
	s.answer(actions["stale"], "UNHEARD")
	file := "\ufeffOutcome,key,reference,amount\r\nSUCCEEDED," + keys["yes"] + ",RF-1,105.00\r\nnot executed," + keys["no"] + ",,\r\n" +
		"not found," + keys["odd"] + ",,\r\nSUCCEEDED," + keys["twice"] + ",,\r\nFAILED," + keys["twice"] + ",,\r\nSUCCEEDED," + keys["stale"] + ",,\r\n" +
		"SUCCEEDED," + keys["other"] + ",,1.05\r\nSUCCEEDED,exk_stranger,,\r\n\"happened\"," + keys["risky"] + ",\"RF,2\",105\r\n"
	f, err := triage.ReadProviderFile([]byte(file))
	must(t, err)
	want := map[string]triage.Match{"yes": triage.MatchHappened, "no": triage.MatchDidNotHappen, "risky": triage.MatchHappened, "odd": triage.MatchUnclear,
		"twice": triage.MatchTwice, "absent": triage.MatchAbsent, "stale": triage.MatchStale, "other": triage.MatchDiffers}
	check := func(rows []triage.ImportRow) {
		t.Helper()
		got := map[string]triage.Match{}
		for i, r := range rows {
			if r.Action == nil {
				if r.Match != triage.MatchStranger || r.Lines[0].Key != "exk_stranger" {
					t.Errorf("row %d: %+v", i, r)
				}
				continue
			}
			for name, key := range keys {
				if r.Action.ExecutionKey == key {
					got[name] = r.Match
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(rows) != len(want)+1 {
			t.Errorf("%d rows: %v, want %v", len(rows), got, want)
		}
	}
	rows, err := s.Cases.Preview(background(), who(s.olga), f, items)
	must(t, err)
	check(rows)
	for name, a := range actions {
		if name != "stale" && s.Read(a.ID).Version != a.Version {
			t.Fatalf("the dry run changed %s", name)
		}
	}
	rows, err = s.Cases.Import(background(), who(s.olga), f, items, "from their support")
	must(t, err)
	check(rows)
	for name, want := range map[string]action.State{"yes": action.Applied, "absent": action.ResultUnknown, "odd": action.ResultUnknown, "other": action.ResultUnknown} {
		if got := s.Read(actions[name].ID); got.State != want {
			t.Errorf("%s is %s", name, got.State)
		}
	}
	v := s.Read(actions["yes"].ID).Case.Verdict
	if v.EvidenceKind != action.EvidenceFile || v.EvidenceRef != f.Hash || v.By.ID != s.olga.ID || v.Note != "Line 2: SUCCEEDED, reference RF-1\nfrom their support" {
		t.Errorf("verdict %+v", v)
	}
	if got := s.Read(actions["no"].ID); got.State != action.ResultUnknown || got.Case.Verdict.Verdict != action.DidNotHappen {
		t.Errorf("before the fence: %s", got.State)
	}
	if got := s.in(actions["risky"]); got != "second" {
		t.Errorf("a file settles alone where two people have to: %q", got)
	}
	for content, reason := range map[string]string{"": "file-empty", "a,b\n1,2\n": "file-columns", "key,outcome\n\"x\n": "file-line",
		"key,outcome\nx\n": "file-line", "key,outcome\n\xff,x\n": "file-encoding", strings.Repeat("x", triage.MaxImportBytes+1): "file-too-large"} {
		_, err := triage.ReadProviderFile([]byte(content))
		s.Refused(err, action.InvalidArgument, reason)
	}
}
