package triage

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"countersign/action"
	"countersign/action/rule"
)

// Compared is one promised field: what it was, should be and is.
type Compared struct {
	rule.Finding
	Before   json.RawMessage // in the latest reading before anything was sent; nil when nobody read it
	Source   string          // tool that read it
	At       time.Time       // of the latest reading; zero when there is none
	Snapshot json.RawMessage // that reading
	ObjectAt string          // version that the reading shows, or ""
}

// Compare holds the latest readings since something was sent against the
// contract's post-conditions.
func Compare(ctx context.Context, tool *rule.Tool, a action.Action) ([]Compared, error) {
	if len(a.Attempts) == 0 || len(tool.Contract.Execution.Postconditions) == 0 {
		return nil, nil
	}
	facts := rule.Facts{Payload: a.Payload, Actor: a.Actor, Target: a.Target}
	if before, ok := a.Before(); ok {
		facts.Before = before.Snapshot
	}
	after, before := map[string]action.Observation{}, map[string]json.RawMessage{}
	for _, o := range a.Observations {
		switch {
		case o.Failed:
		case o.At.Before(a.Attempts[0].At):
			before[o.Tool] = o.Snapshot
		case o.At.After(a.Attempts[len(a.Attempts)-1].At):
			after[o.Tool] = o
		}
	}
	snapshots := map[string]json.RawMessage{}
	for name, o := range after {
		snapshots[name] = o.Snapshot
	}
	findings, err := tool.Rules.Postconditions(ctx, facts, snapshots)
	if err != nil {
		return nil, err
	}
	var all []Compared
	for _, f := range findings {
		c := Compared{Finding: f, Source: f.Read, Snapshot: after[f.Read].Snapshot, At: after[f.Read].ObservedAt, ObjectAt: after[f.Read].Version}
		c.Before, _ = rule.Field(before[f.Read], f.Field)
		all = append(all, c)
	}
	return all, nil
}

// Reading is one thing that was read about an action: a reading of the object
// or an answer about the operation by key.
type Reading struct {
	ID       string
	Tool     string
	At       time.Time
	Version  string // of the object, or ""
	Found    string // of an answer by key, such as SUCCEEDED; "" of a reading
	Snapshot json.RawMessage
	Error    string
}

// Readings lists everything that was read, in order.
func Readings(a action.Action) []Reading {
	var all []Reading
	for _, o := range a.Observations {
		all = append(all, Reading{ID: o.ID, Tool: o.Tool, At: o.ObservedAt, Version: o.Version, Snapshot: o.Snapshot, Error: o.Error})
	}
	for _, q := range a.Asks {
		all = append(all, Reading{ID: q.Found.ID, Tool: q.Found.Source, At: q.At, Found: q.Found.Outcome, Snapshot: q.Snapshot})
	}
	slices.SortStableFunc(all, func(x, y Reading) int { return x.At.Compare(y.At) })
	return all
}
