package rule

import (
	"context"
	"slices"

	"countersign/action"
	"countersign/action/contract"
)

// DefaultRole approves where no rule says who does.
const DefaultRole = "support"

// Demand is what an action needs before it may run, and why.
type Demand struct {
	Needs   []action.Need // nil: nobody has to approve
	Rules   []Applied     // every rule of the contract, in its order
	Default bool          // no rule applies, so one approval by support is asked for
}

// Applied is one rule on one action. It says enough to tell an approver why
// they are asked.
type Applied struct {
	Rule    contract.Rule
	Applies bool
	Why     string // NotRead or Errored when it applies because it could not be decided
}

// Needs tells who must approve. Per role the highest count wins, roles
// combine, and any step-up counts for all. A rule that cannot be decided
// applies, except one that asks for nobody: that would be the lax way. When
// every rule that applies asks for nobody, nobody has to approve; when none
// applies, one approval by support is needed. A tool that reads needs none.
func (r *Rules) Needs(ctx context.Context, f Facts) (Demand, error) {
	if r.contract.Mode == contract.Read {
		return Demand{}, nil
	}
	if len(r.contract.Approval.Rules) == 0 {
		return Demand{Default: true, Needs: []action.Need{{Role: DefaultRole, Approvals: 1}}}, nil
	}
	vars, unknown, err := f.vars()
	if err != nil {
		return Demand{}, err
	}
	var d Demand
	applies, stepUp := false, false
	for i, rule := range r.contract.Approval.Rules {
		holds, why := r.approval[i].holds(ctx, vars, unknown...)
		a := Applied{Rule: rule, Applies: holds == action.HoldsTrue, Why: why}
		if why != "" {
			a.Applies = rule.Approvals > 0
		}
		d.Rules = append(d.Rules, a)
		if a.Applies {
			applies = true
			stepUp = stepUp || rule.StepUp
			d.raise(rule)
		}
	}
	if !applies {
		d.Default = true
		d.Needs = []action.Need{{Role: DefaultRole, Approvals: 1}}
	}
	for i := range d.Needs {
		d.Needs[i].StepUp = stepUp
	}
	return d, nil
}

func (d *Demand) raise(rule contract.Rule) {
	if rule.Approvals == 0 {
		return
	}
	i := slices.IndexFunc(d.Needs, func(n action.Need) bool { return n.Role == rule.Role })
	if i < 0 {
		d.Needs = append(d.Needs, action.Need{Role: rule.Role, Approvals: rule.Approvals})
		return
	}
	d.Needs[i].Approvals = max(d.Needs[i].Approvals, rule.Approvals)
}

// SecondPerson tells whether two people have to settle an unknown outcome. What
// cannot be decided is decided the strict way.
func (r *Rules) SecondPerson(ctx context.Context, payload []byte) (bool, error) {
	if r.second == nil {
		return false, nil
	}
	vars, _, err := Facts{Payload: payload}.vars()
	if err != nil {
		return false, err
	}
	holds, _ := r.second.holds(ctx, vars)
	return holds != action.HoldsFalse, nil
}

// Validate checks what the schema cannot say of a payload. An expression that
// cannot be evaluated counts as not held. The refusal (invalid-payload) names
// the field that each broken expression is first about.
func (r *Rules) Validate(ctx context.Context, payload []byte) error {
	if len(r.validate) == 0 {
		return nil
	}
	vars, _, err := Facts{Payload: payload}.vars()
	if err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidPayload, "The payload breaks a rule of the tool.")
	for _, e := range r.validate {
		switch holds, _ := e.holds(ctx, vars); holds {
		case action.HoldsFalse:
			refusal.At(e.place, "does not fit the rule: "+e.text)
		case action.HoldsUnknown:
			refusal.At(e.place, "cannot be checked by the rule: "+e.text)
		}
	}
	if len(refusal.Errors) > 0 {
		return refusal
	}
	return nil
}
