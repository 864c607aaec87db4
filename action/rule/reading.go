package rule

import (
	"context"
	"encoding/json"
	"math"
	"strconv"

	"countersign/action"
	"countersign/action/contract"

	"github.com/google/cel-go/common/types"
)

// Finding is one condition on one reading.
type Finding struct {
	contract.Condition
	Holds    action.Holds
	Why      string          // NotRead, Absent or Errored when it is unknown
	Observed json.RawMessage // the field's value; nil when there is none
	Expected json.RawMessage // what a plain "value == X" promises; nil when the condition says something else
	Forms    []Form          // what was made the same before they were found equal
}

// Preconditions tells whether what was read before the call allows it.
// Snapshots are keyed by the read tool; a tool that could not be read is
// missing.
func (r *Rules) Preconditions(ctx context.Context, f Facts, snapshots map[string]json.RawMessage) ([]Finding, error) {
	return findings(ctx, f, r.contract.Execution.Preconditions, r.preconditions, snapshots)
}

// Postconditions tells whether what was read after the call proves its effect.
func (r *Rules) Postconditions(ctx context.Context, f Facts, snapshots map[string]json.RawMessage) ([]Finding, error) {
	return findings(ctx, f, r.contract.Execution.Postconditions, r.postconditions, snapshots)
}

// StepPostconditions is Postconditions of one step.
func (r *Rules) StepPostconditions(ctx context.Context, step string, f Facts, snapshots map[string]json.RawMessage) ([]Finding, error) {
	one, err := r.contract.ForStep(step)
	if err != nil {
		return nil, err
	}
	return findings(ctx, f, one.Execution.Postconditions, r.steps[step], snapshots)
}

// All combines findings: one that does not hold decides, else one that is
// unknown does. No findings prove nothing.
func All(findings []Finding) action.Holds {
	all := action.HoldsTrue
	for _, f := range findings {
		switch f.Holds {
		case action.HoldsFalse:
			return action.HoldsFalse
		case action.HoldsUnknown:
			all = action.HoldsUnknown
		}
	}
	if len(findings) == 0 {
		return action.HoldsUnknown
	}
	return all
}

func findings(ctx context.Context, f Facts, conditions []contract.Condition, compiled []expr, snapshots map[string]json.RawMessage) ([]Finding, error) {
	vars, unknown, err := f.vars()
	if err != nil {
		return nil, err
	}
	var all []Finding
	for i, condition := range conditions {
		finding := Finding{Condition: condition, Why: NotRead}
		if object, err := decode(snapshots[condition.Read]); err == nil {
			finding.judge(ctx, compiled[i], object, vars, unknown)
		}
		all = append(all, finding)
	}
	return all, nil
}

// judge evaluates the condition on a snapshot. A field that is not there was
// not observed, which proves nothing either way, unless nothing was promised.
// What differs from what was promised only in how it is written holds.
func (f *Finding) judge(ctx context.Context, e expr, object any, vars map[string]any, unknown []string) {
	value, ok := lookup(object, f.Field)
	vars["object"], vars["value"] = object, value
	f.Expected = e.promise(ctx, vars, unknown)
	defer f.normalise()
	if !ok {
		f.Why = Absent
		return
	}
	if raw, err := json.Marshal(value); err == nil {
		f.Observed = raw
	}
	f.Holds, f.Why = e.holds(ctx, vars, unknown...)
}

// normalise looks whether a condition that does not hold fails only on how the
// value is written.
func (f *Finding) normalise() {
	if f.Expected == nil || f.Holds == action.HoldsTrue || f.Why != "" && f.Why != Absent {
		return
	}
	if same, forms := Same(f.Expected, f.Observed, f.Field); same {
		f.Holds, f.Why, f.Forms = action.HoldsTrue, "", forms
	}
}

// TerminalWhen tells whether a snapshot shows an object that changes no more.
func (r *Rules) TerminalWhen(ctx context.Context, f Facts, object json.RawMessage) action.Holds {
	if r.terminal == nil {
		return action.HoldsFalse
	}
	vars, unknown, err := f.vars()
	if err != nil {
		return action.HoldsUnknown
	}
	decoded, err := decode(object)
	if err != nil {
		return action.HoldsUnknown
	}
	vars["object"], vars["value"] = decoded, decoded
	holds, _ := r.terminal.holds(ctx, vars, unknown...)
	return holds
}

// Measure is one number or word worth seeing first.
type Measure struct {
	Name   contract.Text
	Unit   contract.Text
	Kind   contract.MeasureKind // "" when the contract neither says it nor computes a change
	OK     bool                 // it could be computed
	Why    string               // NotRead or Errored when it could not
	Number float64              // finite; valid when Text is ""
	Text   string               // of a measure that is not a number
}

// Measures computes the contract's measures.
func (r *Rules) Measures(ctx context.Context, f Facts) ([]Measure, error) {
	vars, unknown, err := f.vars()
	if err != nil {
		return nil, err
	}
	var all []Measure
	for i, m := range r.contract.Display.Measures {
		measure := Measure{Name: m.Name, Unit: m.Unit, Kind: m.Kind}
		if m.Kind == "" && r.measures[i].change {
			measure.Kind = contract.MeasureChange
		}
		value, why := r.measures[i].eval(ctx, vars, unknown...)
		measure.Why = why
		switch v := value.(type) {
		case types.Double:
			measure.Number = float64(v)
		case types.Int:
			measure.Number = float64(v)
		case types.Uint:
			measure.Number = float64(v)
		case types.String:
			measure.Text = string(v)
		case types.Bool:
			measure.Text = strconv.FormatBool(bool(v))
		default:
			if why == "" {
				measure.Why = Errored
			}
		}
		if math.IsNaN(measure.Number) || math.IsInf(measure.Number, 0) {
			measure.Number, measure.Why = 0, Errored
		}
		measure.OK = measure.Why == ""
		all = append(all, measure)
	}
	return all, nil
}
