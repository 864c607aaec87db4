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
// contract's post-conditions, and those since a step was sent against the step's.
func Compare(ctx context.Context, tool *rule.Tool, a action.Action) ([]Compared, error) {
	all, err := compareSince(ctx, tool, a, "", tool.Rules.Postconditions)
	for _, s := range a.Steps {
		if err != nil {
			break
		}
		var one []Compared
		one, err = compareSince(ctx, tool, a, s.Name, func(ctx context.Context, f rule.Facts, snapshots map[string]json.RawMessage) ([]rule.Finding, error) {
			return tool.Rules.StepPostconditions(ctx, s.Name, f, snapshots)
		})
		for _, c := range one {
			switch i := slices.IndexFunc(all, func(o Compared) bool { return o.Condition == c.Condition }); {
			case i < 0:
				all = append(all, c)
			case all[i].At.IsZero():
				all[i] = c
			}
		}
	}
	return all, err
}

// judgement holds snapshots, by the tool that read them, against conditions.
type judgement func(context.Context, rule.Facts, map[string]json.RawMessage) ([]rule.Finding, error)

// compareSince compares what was read since the last attempt of a step, or since
// the last of all.
func compareSince(ctx context.Context, tool *rule.Tool, a action.Action, step string, judge judgement) ([]Compared, error) {
	var sent time.Time
	for _, t := range a.Attempts {
		if step == "" || t.Step == step {
			sent = t.At
		}
	}
	if sent.IsZero() {
		return nil, nil
	}
	facts := rule.Facts{Payload: a.Payload, Actor: a.Actor, Target: a.Target}
	if before, ok := a.Before(); ok {
		facts.Before = before.Snapshot
	}
	after, before := map[string]action.Observation{}, map[string]action.Observation{}
	for _, o := range a.Observations {
		switch {
		case o.Failed:
		case o.At.Before(a.Attempts[0].At):
			if !o.Seen().Before(before[o.Tool].Seen()) {
				before[o.Tool] = o
			}
		case o.Seen().After(sent):
			after[o.Tool] = o
		}
	}
	snapshots := map[string]json.RawMessage{}
	for name, o := range after {
		snapshots[name] = o.Snapshot
	}
	findings, err := judge(ctx, facts, snapshots)
	if err != nil {
		return nil, err
	}
	var all []Compared
	for _, f := range findings {
		c := Compared{Finding: f, Source: f.Read, Snapshot: after[f.Read].Snapshot, At: after[f.Read].ObservedAt, ObjectAt: after[f.Read].Version}
		c.Before, _ = rule.Field(before[f.Read].Snapshot, f.Field)
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
	Other    bool // it is about another object or operation: it proves nothing
}

// Readings lists everything that was read, in order.
func Readings(a action.Action) []Reading {
	var all []Reading
	for _, o := range a.Observations {
		all = append(all, Reading{ID: o.ID, Tool: o.Tool, At: o.ObservedAt, Version: o.Version, Snapshot: o.Snapshot, Error: o.Error, Other: o.Other})
	}
	for _, q := range a.Asks {
		all = append(all, Reading{ID: q.Found.ID, Tool: q.Found.Source, At: q.At, Found: q.Found.Outcome, Snapshot: q.Snapshot, Other: q.Found.Other})
	}
	slices.SortStableFunc(all, func(x, y Reading) int { return x.At.Compare(y.At) })
	return all
}
