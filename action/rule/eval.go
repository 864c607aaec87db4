package rule

import (
	"context"
	"fmt"
	"time"

	"countersign/action"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// maxTime bounds one evaluation, on top of its cost.
const maxTime = time.Second

// Facts is what is known of an action.
type Facts struct {
	Payload []byte // canonical
	Before  []byte // snapshot that an executor took; nil when nothing was observed
	Actor   action.Actor
	Target  *action.Target
}

// vars decodes the facts. The names in unknown have no value yet.
func (f Facts) vars() (vars map[string]any, unknown []string, err error) {
	payload, err := decode(f.Payload)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the payload: %w", err)
	}
	vars = map[string]any{
		"payload": payload,
		"actor":   map[string]any{"id": f.Actor.ID, "name": f.Actor.Name},
		"target":  nil,
	}
	if f.Target != nil {
		vars["target"] = map[string]any{"type": f.Target.Type, "id": f.Target.ID}
	}
	before, err := decode(f.Before)
	if f.Before == nil || err != nil {
		return vars, []string{"before"}, nil
	}
	vars["before"] = before
	return vars, nil, nil
}

// Why an expression has no answer.
const (
	NotRead = "not-read" // it needs a reading that there is not
	Absent  = "absent"   // the reading has no such field
	Errored = "error"    // it cannot be evaluated on these values
)

// eval evaluates an expression. why tells why there is no value.
func (e expr) eval(ctx context.Context, vars map[string]any, unknown ...string) (value ref.Val, why string) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	var patterns []*cel.AttributePatternType
	for _, name := range unknown {
		patterns = append(patterns, cel.AttributePattern(name))
	}
	activation, err := cel.PartialVars(vars, patterns...)
	if err != nil {
		return nil, Errored
	}
	out, _, err := e.program.ContextEval(ctx, activation)
	switch {
	case err != nil || out == nil || types.IsError(out):
		return nil, Errored
	case types.IsUnknown(out):
		return nil, NotRead
	}
	return out, ""
}

// holds evaluates a predicate.
func (e expr) holds(ctx context.Context, vars map[string]any, unknown ...string) (holds action.Holds, why string) {
	out, why := e.eval(ctx, vars, unknown...)
	if why != "" {
		return action.HoldsUnknown, why
	}
	switch out {
	case types.True:
		return action.HoldsTrue, ""
	case types.False:
		return action.HoldsFalse, ""
	}
	return action.HoldsUnknown, Errored
}
