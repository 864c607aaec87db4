package triage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/action"
	"countersign/action/rule"
)

// shortestSweep is how far a sweep is shortened when lists are too long.
const shortestSweep = time.Minute

// Sweep asks for the runs that contracts want done by themselves and that are
// due. A window that was given up is in the next ones.
func (r *Reconciler) Sweep(ctx context.Context) error {
	var failed []error
	for after := ""; ; {
		tools, err := r.staging.Tools(ctx, after, 200)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		for _, v := range tools {
			after = v.Name
			if !v.Active {
				continue
			}
			if err := r.sweepTool(ctx, v); err != nil {
				failed = append(failed, fmt.Errorf("starting to reconcile %s: %w", v.Name, err))
			}
		}
		if len(tools) < 200 {
			return errors.Join(failed...)
		}
	}
}

func (r *Reconciler) sweepTool(ctx context.Context, v rule.ToolVersion) error {
	tool, err := r.catalogue.Of(v)
	if err != nil {
		return err
	}
	by := tool.Contract.Execution.Reconcile
	if by == nil || by.Every.Duration <= 0 {
		return nil
	}
	latest, done, first, err := r.staging.Sweeps(ctx, v.Name)
	if err != nil {
		return err
	}
	to := v.Now.UTC().Add(-by.Settle.Duration).Truncate(time.Second)
	if latest.ID != "" && (latest.State.Open() || !latest.oversized() && to.Sub(latest.To) < by.Every.Duration) {
		return nil
	}
	from, to := sweepWindow(latest, done, first, to, min(by.Window.Duration, maxWindow))
	_, err = r.runs.AddRun(ctx, Run{ID: action.NewID("rec"), Op: "sweep:" + v.Name + ":" + latest.ID, Tool: v.Name, ToolVersion: v.Version,
		From: from, To: to, Sweep: true, By: action.By{Kind: action.BySystem, ID: "sweep", Name: "Scheduled"}})
	return err
}

// sweepWindow is what the sweep after latest looks at. It begins where nothing
// was compared yet, or earlier, to look back; after one that was too long it
// looks back at nothing and is half as long.
func sweepWindow(latest, done, first Run, to time.Time, back time.Duration) (time.Time, time.Time) {
	since := to.Add(-back)
	switch {
	case done.ID != "":
		since = done.To
	case first.ID != "":
		since = first.From
	}
	from, longest := earlier(since, to.Add(-back)), maxWindow
	if latest.oversized() {
		from, longest = earlier(since, to.Add(-shortestSweep)), max(latest.To.Sub(latest.From)/2, shortestSweep).Truncate(time.Second)
	}
	return from, earlier(to, from.Add(longest))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
