package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"countersign/action"
	"countersign/action/rule"
)

// How runs go on.
const (
	openBatch    = 100 // of open runs that are read at a time
	compareBatch = 500
	joinBatchOf  = 2000
	giveUpAfter  = 30 * time.Minute // without a page
)

// Step moves every run on that does not wait for an executor, and gives those
// up that waited too long.
func (r *Reconciler) Step(ctx context.Context) error {
	var now time.Time
	return action.Each(ctx, func(after Run) (runs []Run, err error) {
		runs, now, err = r.runs.OpenRuns(ctx, after, openBatch)
		return runs, err
	}, func(run Run) error {
		err := r.stepRun(ctx, run, now)
		if err == nil || action.IsCode(err, action.WrongState) {
			return nil
		}
		failed := fmt.Errorf("reconciling %s, %s: %w", run.Tool, run.ID, err)
		if !run.State.Listing() && !now.Before(run.ProgressAt.Add(giveUpAfter)) {
			_, err := r.giveUp(ctx, run, "It could not be compared: "+action.AsRefusal(err).Detail)
			failed = errors.Join(failed, err)
		}
		return failed
	})
}

func (r *Reconciler) stepRun(ctx context.Context, run Run, now time.Time) (err error) {
	for ctx.Err() == nil {
		switch run.State {
		case RunJoining:
			if err := r.staging.JoinOurs(ctx, run, joinBatchOf); err != nil {
				return err
			}
			if run, _, err = r.runs.Run(ctx, run.ID); err != nil {
				return err
			}
		case RunComparing:
			if run, err = r.compare(ctx, run); err != nil {
				return err
			}
		case RunWaiting, RunListing:
			if now.Before(run.ProgressAt.Add(giveUpAfter)) {
				return nil
			}
			why := "No executor has taken it up."
			if run.Problem != "" {
				why = run.Problem
			} else if run.Pages > 0 {
				why = "The executor that listed it is gone, and no other has gone on."
			}
			_, err := r.giveUp(ctx, run, why)
			return err
		default:
			return nil
		}
	}
	return ctx.Err()
}

// compare compares the next operations of a run. What speaks against an action
// is told to it first: done again after a crash, that changes nothing.
func (r *Reconciler) compare(ctx context.Context, run Run) (Run, error) {
	tool, err := r.catalogue.Version(ctx, run.Tool, run.ToolVersion)
	if err != nil {
		return run, err
	}
	list := scales{run: run, list: tool.Contract}
	rows, err := r.staging.Joined(ctx, run, compareBatch)
	if err != nil {
		return run, err
	}
	run.Totals.Forms = maps.Clone(run.Totals.Forms)
	var found []Difference
	for _, j := range rows {
		run.Compared = j.Key
		s, err := r.ownScales(ctx, list, &j)
		if err != nil {
			return run, fmt.Errorf("weighing %s: %w", j.ActionID, err)
		}
		w := s.weigh(j)
		d := Difference{RunID: run.ID, Tool: run.Tool, ToolVersion: s.version, Key: j.Key, Scope: j.Scope, ActionID: j.ActionID, Ours: j.State, Theirs: j.Theirs}
		if w.says != "" {
			if err := r.tellOrNote(ctx, s, j, &w, &d); err != nil {
				return run, fmt.Errorf("telling %s: %w", j.ActionID, err)
			}
		}
		run.Totals.count(w)
		if w.class != ClassMatched && w.class != ClassOthers && w.class != "" {
			d.Class, d.Why, d.Fields, d.Digest = w.class, w.why, w.fields, w.digest(j)
			found = append(found, d)
		}
	}
	if len(rows) < compareBatch {
		run.State = RunDone
	}
	return r.save(ctx, run, found)
}

// ownScales are the scales for one operation: the contract version of its action
// says what was asked for, and the run's how the list was read.
func (r *Reconciler) ownScales(ctx context.Context, s scales, j *Joined) (scales, error) {
	own := &rule.Tool{ToolVersion: rule.ToolVersion{Version: s.run.ToolVersion}, Contract: s.list}
	if j.ActionID != "" && j.Tool == s.run.Tool && j.ToolVersion != s.run.ToolVersion {
		var err error
		if own, err = r.catalogue.Version(ctx, j.Tool, j.ToolVersion); err != nil {
			return s, err
		}
	}
	s.tool, s.version = own.Contract, own.Version
	read := s.list.Execution.Reconcile
	s.by = read.Comparing(own.Contract.Execution.Reconcile)
	if j.Theirs != nil && s.by != nil {
		theirs := read.Renamed(*j.Theirs, s.by)
		j.Theirs = &theirs
	}
	return s, nil
}

// digest names a difference by what it is about.
func (w weighed) digest(j Joined) string {
	about, _ := json.Marshal([]any{w.class, w.why, j.State, j.Theirs}) // texts and checked JSON: cannot fail
	return action.ContentHash(about)
}

func (r *Reconciler) giveUp(ctx context.Context, run Run, why string) (Run, error) {
	run.State, run.Problem = RunGivenUp, why
	return r.save(ctx, run, nil)
}

func (r *Reconciler) save(ctx context.Context, run Run, found []Difference) (Run, error) {
	saved, err := r.runs.SaveRun(ctx, run, found, StoredPage{})
	if err == nil && !saved {
		err = overtaken()
	}
	run.Version++
	return run, err
}
