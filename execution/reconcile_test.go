package execution_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/sandbox"
	"countersign/people"
	"countersign/store"
	"countersign/store/storetest"
	"countersign/triage"
)

// reconciled asks for a run over everything until now and waits for its end.
func (b *bench) reconciled(tool string) triage.Run {
	b.T.Helper()
	now, err := b.DB.Now(b.T.Context())
	b.must(err)
	run, err := b.Reconciler.Ask(b.T.Context(), triage.Who{ID: b.Ops().ID}, triage.Asked{Op: action.NewSecret(8), Tool: tool, From: now.Add(-time.Hour), To: now.Add(time.Hour)})
	b.must(err)
	return b.over(run)
}

// over waits until a run is over.
func (b *bench) over(run triage.Run) triage.Run {
	b.T.Helper()
	b.eventually("the run's end", func() bool {
		b.must(b.Reconciler.Step(b.T.Context()))
		var err error
		run, _, err = b.DB.Run(b.T.Context(), run.ID)
		b.must(err)
		return !run.State.Open()
	})
	return run
}

func (b *bench) found(run triage.Run, class triage.Class) []triage.Difference {
	b.T.Helper()
	found, err := b.DB.Differences(b.T.Context(), triage.DifferenceFilter{Viewer: people.Viewer{All: true}, RunID: run.ID, Class: class, Limit: 100})
	b.must(err)
	return found
}

// A8: what diverged without anybody being told is found and becomes a case;
// what is only written apart is not.
func TestA8_ARecordThatDivergedSilentlyIsFoundAndBecomesACase(t *testing.T) {
	paced(t, func(t *trial) {
		b := newBench(t)
		quick := "desk.refund"
		b.hurried(quick, "settle: 2m", "settle: 1s")
		config := b.serving(quick)
		config.Systems[0].Tools = append(config.Systems[0].Tools, "refunds.list_operations")
		b.start(config)
		b.full("A8", 8)
		kinds := []sandbox.Divergence{sandbox.DivergeAmount, sandbox.DivergeStatus, sandbox.DivergeMissing, sandbox.DivergeExtra,
			sandbox.FormTimeZone, sandbox.FormDecimals, sandbox.FormAmountText, ""}
		actions := map[sandbox.Divergence]action.Action{}
		for i, kind := range kinds {
			actions[kind] = b.approved(quick, fmt.Sprintf("A8-%06d", i+1))
		}
		for kind, a := range actions {
			actions[kind] = b.awaitState(a.ID, action.Applied)
			if kind != "" {
				b.must(b.refunds.Diverge(t.Context(), kind, a.ExecutionKey))
			}
		}
		sent := b.get(actions[sandbox.DivergeMissing].ID).Attempts[0].At
		b.eventually("the time from which on it is missing", func() bool {
			now, err := b.DB.Now(t.Context())
			b.must(err)
			return now.After(sent.Add(time.Second))
		})
		run := b.reconciled(quick)
		want := triage.Totals{Matched: 5, Mismatch: 2, OursOnly: 1, TheirsOnly: 1}
		if got := run.Totals; run.State != triage.RunDone || got.Matched != want.Matched || got.Mismatch != want.Mismatch || got.OursOnly != want.OursOnly ||
			got.TheirsOnly != want.TheirsOnly || got.Awaiting+got.Others != 0 || got.Forms["zone"] != 1 || got.Forms["decimals"] != 2 {
			t.Fatalf("%s after %d pages: %+v", run.State, run.Pages, got)
		}
		for kind, why := range map[sandbox.Divergence]string{sandbox.DivergeAmount: triage.DiffersFields, sandbox.DivergeStatus: triage.DiffersOutcome, sandbox.DivergeMissing: triage.DiffersMissing} {
			a := b.get(actions[kind].ID)
			if a.State != action.ResultUnknown || a.Case == nil || a.Case.Kind != action.CaseContradiction || a.Case.Believed != action.Applied {
				t.Errorf("%s: %s, case %+v", kind, a.State, a.Case)
				continue
			}
			var d triage.Difference
			for _, f := range b.found(run, "") {
				if f.ActionID == a.ID {
					d = f
				}
			}
			if d.Why != why || d.CaseID != a.Case.ID || !d.CaseOpen {
				t.Errorf("%s: found %+v", kind, d)
			}
		}
		extra := b.found(run, triage.ClassTheirsOnly)
		if len(extra) != 1 || extra[0].Key != actions[sandbox.DivergeExtra].ExecutionKey+"-extra" || extra[0].ActionID != "" || extra[0].CaseID != "" {
			t.Errorf("theirs only: %+v", extra)
		}
		for _, kind := range []sandbox.Divergence{sandbox.DivergeExtra, sandbox.FormTimeZone, sandbox.FormDecimals, sandbox.FormAmountText, ""} {
			if a := b.get(actions[kind].ID); a.State != action.Applied || len(a.Asks) != 0 {
				t.Errorf("%q: %s, %d answers", kind, a.State, len(a.Asks))
			}
		}
		_, err := b.DB.FoldCheck(t.Context(), "", func(d store.Difference) { t.Errorf("events and rows differ: %+v", d) })
		b.must(err)
		// The same again says nothing new.
		before := b.get(actions[sandbox.DivergeAmount].ID).Version
		if again := b.reconciled(quick); again.Totals.Exceptions() < 2 || b.get(actions[sandbox.DivergeAmount].ID).Version != before {
			t.Errorf("again: %+v", again.Totals)
		}
	})
}

// A8: a sweep that nobody asked for is listed by whichever executor is there, and
// each operation counts once however many are at it.
func TestA8_ASweepFindsIt(t *testing.T) {
	paced(t, func(t *trial) {
		b := newBench(t)
		quick := "desk.refund"
		b.hurried(quick, "settle: 2m", "page: 2\n    settle: 1s", "every: 5m", "every: 1m")
		config := b.serving(quick)
		config.Systems[0].Tools = append(config.Systems[0].Tools, "refunds.list_operations")
		b.full("SW", 7)
		stop := b.start(config)
		var all []action.Action
		for i := range 7 {
			all = append(all, b.approved(quick, fmt.Sprintf("SW-%06d", i+1)))
		}
		for i, a := range all {
			all[i] = b.awaitState(a.ID, action.Applied)
		}
		b.must(stop())
		b.must(b.refunds.Diverge(t.Context(), sandbox.DivergeStatus, all[3].ExecutionKey))
		soon := b.Later(2*time.Second, storetest.Skewed)
		b.must(soon.Reconciler.Sweep(t.Context()))
		sweep, _, _, err := b.DB.Sweeps(t.Context(), quick)
		b.must(err)
		b.fail("pages", once(2, answerLost))
		b.start(config)
		b.start(config)
		sweep = b.over(sweep)
		if sweep.State != triage.RunDone || sweep.By.ID != "sweep" || sweep.Listed != 7 || sweep.Pages != 4 || sweep.Totals.Matched != 6 || sweep.Totals.Mismatch != 1 {
			t.Errorf("the sweep: %s, %d operations in %d pages, %+v, %s", sweep.State, sweep.Listed, sweep.Pages, sweep.Totals, sweep.Problem)
		}
		if a := b.get(all[3].ID); a.State != action.ResultUnknown || a.Case == nil || a.Case.Kind != action.CaseContradiction {
			t.Errorf("what diverged is %s", a.State)
		}
	})
}
