package contract

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"countersign/action"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxProblems bounds how many wrong places one refusal names.
const maxProblems = 50

// describe turns a validation error into one sentence per wrong place, below
// base, sorted, without repeats and bounded. Values are never quoted: a
// payload may hold what its reader may not see.
func describe(err *jsonschema.ValidationError, base string) []action.FieldError {
	return settle(leaves(err, base))
}

// settle sorts problems, drops repeats and bounds their number.
func settle(problems []action.FieldError) []action.FieldError {
	slices.SortFunc(problems, func(a, b action.FieldError) int {
		if c := strings.Compare(a.Pointer, b.Pointer); c != 0 {
			return c
		}
		return strings.Compare(a.Detail, b.Detail)
	})
	problems = slices.Compact(problems)
	if len(problems) > maxProblems {
		more := len(problems) - maxProblems + 1
		problems = append(problems[:maxProblems-1:maxProblems-1],
			action.FieldError{Pointer: "", Detail: fmt.Sprintf("and %d more problems", more)})
	}
	return problems
}

func leaves(err *jsonschema.ValidationError, base string) []action.FieldError {
	here := base + joinTokens(err.InstanceLocation)
	switch k := err.ErrorKind.(type) {
	case *kind.AnyOf:
		return alternatives(err, base, here)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return one(here, "fits several of the allowed forms, but must fit exactly one")
		}
		return alternatives(err, base, here)
	case *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.Not:
		return one(here, sentence(k, err.SchemaURL))
	case *kind.PropertyNames:
		// The library reports a place here that it goes on to reuse.
		return one(base, fmt.Sprintf("%q is not an allowed name of a field", k.Property))
	}
	if len(err.Causes) > 0 {
		var all []action.FieldError
		for _, cause := range err.Causes {
			all = append(all, leaves(cause, base)...)
		}
		return all
	}
	return leaf(err, here)
}

func leaf(err *jsonschema.ValidationError, here string) []action.FieldError {
	var names []string
	detail := ""
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		names, detail = k.Missing, "is required"
	case *kind.AdditionalProperties:
		names, detail = k.Properties, "is not known here"
	case *kind.DependentRequired:
		names, detail = k.Missing, fmt.Sprintf("is required when %q is given", k.Prop)
	case *kind.Dependency:
		names, detail = k.Missing, fmt.Sprintf("is required when %q is given", k.Prop)
	default:
		return one(here, sentence(err.ErrorKind, err.SchemaURL))
	}
	var all []action.FieldError
	for _, name := range names {
		all = append(all, action.FieldError{Pointer: join(here, name), Detail: detail})
	}
	return all
}

func one(pointer, detail string) []action.FieldError {
	return []action.FieldError{{Pointer: pointer, Detail: detail}}
}

// alternatives explains why no alternative fits: by the problems of the only
// one that has the right type, else by the types that are allowed.
func alternatives(err *jsonschema.ValidationError, base, here string) []action.FieldError {
	var types []string
	var fitting []*jsonschema.ValidationError
	for _, branch := range err.Causes {
		if wrong := typeMismatch(branch, len(err.InstanceLocation)); wrong != nil {
			types = append(types, wrong.Want...)
			continue
		}
		fitting = append(fitting, branch)
	}
	if len(fitting) == 1 {
		return leaves(fitting[0], base)
	}
	if len(fitting) == 0 && len(types) > 0 {
		slices.Sort(types)
		return one(here, "must be "+typeList(slices.Compact(types)))
	}
	return one(here, "fits none of the allowed forms")
}

// typeMismatch returns the type error of the value at depth itself, if the
// branch has one.
func typeMismatch(err *jsonschema.ValidationError, depth int) *kind.Type {
	if k, ok := err.ErrorKind.(*kind.Type); ok && len(err.InstanceLocation) == depth {
		return k
	}
	for _, cause := range err.Causes {
		if k := typeMismatch(cause, depth); k != nil {
			return k
		}
	}
	return nil
}

func sentence(k jsonschema.ErrorKind, schemaURL string) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, is %s", typeList(k.Want), article(k.Got))
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + values([]any{k.Want})
	case *kind.Pattern:
		return patternWords(schemaURL, k.Want)
	case *kind.Format:
		return "is not a valid " + k.Want
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.Not:
		return "has a form that is not allowed"
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are the same", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "holds no item of the required form"
	case *kind.MinContains:
		return fmt.Sprintf("must hold at least %d items of the required form", k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("must hold at most %d items of the required form", k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	}
	return bound(k)
}

func bound(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, has %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, has %d", k.Want, k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d fields, has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d fields, has %d", k.Want, k.Got)
	}
	return "does not fit the schema"
}

// patternWords explains the patterns of the contract's own schema; other
// patterns are shown as they are.
func patternWords(schemaURL, pattern string) string {
	_, name, own := strings.Cut(schemaURL, "#/$defs/")
	words := map[string]string{
		"tool":        "must be a tool name: at most 128 letters, digits, \"_\", \".\" and \"-\", not starting with \".\" or \"-\"",
		"word":        "must be a word of at most 64 letters, digits, \"_\", \".\" and \"-\", starting with a letter",
		"pointer":     "must be a JSON Pointer such as /product_id",
		"currency":    "must be a three-letter currency code or a JSON Pointer to one",
		"link":        "must be an http or https address whose host holds no placeholder",
		"body":        "must be \"payload\", \"none\", a JSON Pointer or a list of fields",
		"idempotency": "must be \"header\", \"none\" or a JSON Pointer to a field of the body, such as /request_id",
	}
	if text := words[name]; own && text != "" {
		return text
	}
	return "must match the pattern " + pattern
}

func values(list []any) string {
	var words []string
	for _, v := range list {
		text, err := json.Marshal(v)
		if err != nil || len(text) > 100 {
			return "the values that the schema lists"
		}
		words = append(words, string(text))
	}
	if len(words) > 20 {
		words = append(words[:20:20], fmt.Sprintf("… (%d in all)", len(list)))
	}
	return strings.Join(words, ", ")
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	n, exact := r.FloatPrec()
	if !exact {
		n = 20
	}
	return r.FloatString(n)
}

func typeList(types []string) string {
	var words []string
	for _, t := range types {
		words = append(words, article(t))
	}
	return strings.Join(words, " or ")
}

func article(t string) string {
	switch t {
	case "null":
		return "null"
	case "object", "array", "integer":
		return "an " + t
	}
	return "a " + t
}
