package rule

import (
	"context"
	"encoding/json"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// promised compiles X of a condition "value == X" or "X == value". It is nil
// for anything else: then nobody can say what the value should be.
func promised(env *cel.Env, text string) *expr {
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil
	}
	tree := parsed.NativeRep()
	root := tree.Expr()
	if root.Kind() != ast.CallKind || root.AsCall().FunctionName() != operators.Equals {
		return nil
	}
	left, right := root.AsCall().Args()[0], root.AsCall().Args()[1]
	switch {
	case isValue(left) && !isValue(right):
	case isValue(right) && !isValue(left):
		right = left
	default:
		return nil
	}
	side, err := cel.ExprToString(right, tree.SourceInfo())
	if err != nil {
		return nil
	}
	e, problem, err := compile(env, side, cel.StringType, cel.DoubleType, cel.IntType, cel.UintType, cel.BoolType, cel.NullType)
	if err != nil || problem != "" {
		return nil
	}
	return &e
}

func isValue(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "value" }

// promise is the value that a condition promises, as JSON, or nil.
func (e expr) promise(ctx context.Context, vars map[string]any, unknown []string) json.RawMessage {
	if e.promised == nil {
		return nil
	}
	value, why := e.promised.eval(ctx, vars, unknown...)
	if why != "" {
		return nil
	}
	if value == types.NullValue {
		return json.RawMessage("null")
	}
	raw, err := json.Marshal(value.Value())
	if err != nil {
		return nil
	}
	return raw
}
