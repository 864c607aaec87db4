package rule

import (
	"strconv"

	"countersign/action"
	"countersign/action/contract"

	"github.com/google/cel-go/cel"
)

// Rules are the compiled expressions of one contract version. They are safe
// for concurrent use.
type Rules struct {
	contract       *contract.Contract
	validate       []expr
	approval       []expr
	preconditions  []expr
	postconditions []expr
	steps          map[string][]expr // post-conditions by step
	measures       []expr
	terminal       *expr
	second         *expr
}

// Compile checks and compiles every expression of a contract. A refusal
// (invalid-argument) names each one that is wrong, with the position in it.
func Compile(c *contract.Contract) (*Rules, error) {
	env, err := environments()
	if err != nil {
		return nil, err
	}
	b := &batch{refusal: action.Refuse(action.InvalidArgument,
		"The contract has expressions that cannot be used. Correct the places named and put it again.")}
	r := &Rules{contract: c}
	for i, text := range c.Validate {
		r.validate = append(r.validate, b.compile(env.payload, "/validate/"+strconv.Itoa(i), text, cel.BoolType))
	}
	for i, rule := range c.Approval.Rules {
		r.approval = append(r.approval, b.compile(env.ask, "/approval/rules/"+strconv.Itoa(i)+"/when", rule.When, cel.BoolType))
	}
	for i, m := range c.Display.Measures {
		r.measures = append(r.measures, b.compile(env.ask, "/display/measures/"+strconv.Itoa(i)+"/value", m.Value,
			cel.DoubleType, cel.IntType, cel.UintType, cel.StringType))
	}
	r.preconditions = b.conditions(env.reading, "/execution/preconditions/", c.Execution.Preconditions)
	r.postconditions = b.conditions(env.reading, "/execution/postconditions/", c.Execution.Postconditions)
	r.steps = map[string][]expr{}
	for i, s := range c.Execution.Steps {
		r.steps[s.Name] = b.conditions(env.reading, "/execution/steps/"+strconv.Itoa(i)+"/postconditions/", s.Postconditions)
	}
	if text := c.Execution.TerminalWhen; text != "" {
		e := b.compile(env.reading, "/execution/terminal_when", text, cel.BoolType)
		r.terminal = &e
	}
	if text := c.Execution.SecondPersonWhen; text != "" {
		e := b.compile(env.payload, "/execution/second_person_when", text, cel.BoolType)
		r.second = &e
	}
	if b.err != nil {
		return nil, b.err
	}
	if len(b.refusal.Errors) > 0 {
		return nil, b.refusal
	}
	return r, nil
}

// batch compiles expressions and collects what is wrong with them.
type batch struct {
	refusal *action.Refusal
	err     error
}

func (b *batch) compile(env *cel.Env, pointer, text string, want ...*cel.Type) expr {
	e, problem, err := compile(env, text, want...)
	if err != nil {
		b.err = err
	}
	if problem != "" {
		b.refusal.At(pointer, problem)
	}
	return e
}

func (b *batch) conditions(env *cel.Env, base string, conditions []contract.Condition) []expr {
	var compiled []expr
	for i, condition := range conditions {
		e := b.compile(env, base+strconv.Itoa(i)+"/expect", condition.Expect, cel.BoolType)
		if e.program != nil {
			e.promised = promised(env, condition.Expect)
		}
		compiled = append(compiled, e)
	}
	return compiled
}
