// Package rule evaluates the expressions of contracts: which approvals an
// action needs, whether its payload holds what a schema cannot say, whether a
// reading proves its effect, and the measures worth seeing. Expressions are
// CEL, compiled and bounded when a contract is saved. What cannot be decided
// is never decided in the lax direction.
package rule

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Bounds of one expression, in CEL's cost units.
const (
	maxEstimate = 10_000_000_000 // worst case, judged when it is saved
	maxCost     = 2_000_000      // of one evaluation
	maxSize     = 65_536         // items or characters that one value is expected to have at most
)

// envs are the variables that the three places for expressions offer.
type envs struct {
	payload *cel.Env // payload: what a payload must hold
	ask     *cel.Env // payload, before, actor, target: rules and measures
	reading *cel.Env // payload, before, object, value: conditions on a reading
}

var environments = sync.OnceValues(func() (envs, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	var e envs
	var err error
	if e.payload, err = cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.Variable("payload", object)); err != nil {
		return e, fmt.Errorf("making the payload environment: %w", err)
	}
	if e.ask, err = e.payload.Extend(cel.Variable("before", cel.DynType),
		cel.Variable("actor", object), cel.Variable("target", cel.DynType)); err != nil {
		return e, fmt.Errorf("making the rule environment: %w", err)
	}
	if e.reading, err = e.payload.Extend(cel.Variable("before", cel.DynType),
		cel.Variable("object", cel.DynType), cel.Variable("value", cel.DynType)); err != nil {
		return e, fmt.Errorf("making the reading environment: %w", err)
	}
	return e, nil
})

// expr is one compiled expression.
type expr struct {
	text    string
	program cel.Program
	place   string // JSON Pointer of the payload field it is first about, "" when none

	promised *expr // of "value == X": X; nil when it says something else
	change   bool  // it takes what stands now from what is asked for
}

// compile checks one expression; problem is a sentence for its author, "" when
// the expression is sound.
func compile(env *cel.Env, text string, want ...*cel.Type) (e expr, problem string, err error) {
	checked, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return expr{}, issueWords(issues), nil
	}
	if !oneOf(checked.OutputType(), append(want, cel.DynType)) {
		return expr{}, fmt.Sprintf("gives %s, but %s is needed", checked.OutputType(), want[0]), nil
	}
	tree := checked.NativeRep()
	if problem := mixedArithmetic(tree); problem != "" {
		return expr{}, problem, nil
	}
	estimate, err := env.EstimateCost(checked, sizes{})
	if err != nil {
		return expr{}, "", fmt.Errorf("estimating an expression: %w", err)
	}
	if estimate.Max > maxEstimate {
		return expr{}, "may take too long: a loop within a loop over what the payload holds is not allowed", nil
	}
	program, err := env.Program(checked, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100),
		cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return expr{}, fmt.Sprintf("cannot be evaluated: %v", err), nil
	}
	return expr{text: text, program: program, place: firstPlace(tree.Expr()), change: takesBefore(tree.Expr())}, "", nil
}

const doublesHint = "Numbers from JSON are doubles: write 2.0 instead of 2, or double(…) around a whole number"

func issueWords(issues *cel.Issues) string {
	first := issues.Errors()[0]
	words := fmt.Sprintf("line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1, first.Message)
	if strings.Contains(first.Message, "(double, int)") || strings.Contains(first.Message, "(int, double)") {
		words += ". " + doublesHint
	}
	return words
}

func oneOf(t *cel.Type, allowed []*cel.Type) bool {
	for _, a := range allowed {
		if t.IsExactType(a) {
			return true
		}
	}
	return false
}

// mixedArithmetic finds arithmetic between a whole-number literal and a value
// from JSON, whose numbers are doubles: it would fail every time.
func mixedArithmetic(tree *ast.AST) string {
	problem := ""
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if problem != "" || e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		call := e.AsCall()
		a, b := tree.GetType(call.Args()[0].ID()).Kind(), tree.GetType(call.Args()[1].ID()).Kind()
		mixed := a == types.IntKind && b == types.DynKind || a == types.DynKind && b == types.IntKind
		if !mixed {
			return
		}
		at := tree.SourceInfo().GetStartLocation(e.ID())
		where := fmt.Sprintf("line %d, column %d: ", at.Line(), at.Column()+1)
		switch call.FunctionName() {
		case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
			problem = where + doublesHint
		case operators.Modulo:
			problem = where + "Numbers from JSON are doubles: write int(…) around the number before %"
		}
	}))
	return problem
}

// sizes is what one value from JSON is expected to hold at most.
type sizes struct{}

func (sizes) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Min: 0, Max: maxSize}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// takesBefore reports whether an expression subtracts a value that was read
// from one of the payload.
func takesBefore(root ast.Expr) bool {
	found := false
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Subtract && len(e.AsCall().Args()) == 2 {
			asked, stands := e.AsCall().Args()[0], e.AsCall().Args()[1]
			found = found || names(asked, "payload") && !names(asked, "before") && names(stands, "before")
		}
	}))
	return found
}

// names reports whether a variable stands in an expression.
func names(root ast.Expr, variable string) bool {
	found := false
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() == variable
	}))
	return found
}

// firstPlace is the JSON Pointer of the first payload field that an expression
// reads.
func firstPlace(root ast.Expr) string {
	found := ""
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if found == "" {
			found, _ = place(e)
		}
	}))
	return found
}
