package contract

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/action"
)

// maxWays bounds how many ways lead through a schema, from its root to any of its
// parts. A value is judged once for every way that leads to its place: a schema of
// a few lines, each of which names the next one twice, would take for ever. Real
// ones have hundreds.
const maxWays = 10_000

// tooManyWays refuses a schema at pointer that maxWays are not enough for.
func tooManyWays(schema *jsonschema.Schema, pointer string) []action.FieldError {
	if schema == nil || (&paths{known: map[*jsonschema.Schema]int{}}).through(schema) <= maxWays {
		return nil
	}
	return one(pointer, fmt.Sprintf("more than %d ways lead through this schema: it names the same parts over and over. Name each part once where it is needed", maxWays))
}

// paths counts the ways through a schema.
type paths struct {
	known map[*jsonschema.Schema]int // 1 for one that is being counted: a way back counts once
}

// through is the number of ways from a schema to itself and all of its parts, at
// most one more than maxWays.
func (p *paths) through(s *jsonschema.Schema) int {
	if n, ok := p.known[s]; ok {
		return n
	}
	p.known[s] = 1
	n := 1
	for _, part := range parts(s) {
		if n += p.through(part); n > maxWays {
			n = maxWays + 1
			break
		}
	}
	p.known[s] = n
	return n
}

// parts are the schemas that a schema asks, of the same value or of what is in it.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	all := append(beside(s), s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema)
	all = append(all, s.PrefixItems...)
	for _, part := range s.Properties {
		all = append(all, part)
	}
	for _, part := range s.PatternProperties {
		all = append(all, part)
	}
	return schemas(all, s.AdditionalProperties, s.Items, s.AdditionalItems)
}

// beside are the schemas that a schema asks of the same value.
func beside(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		all = append(all, list...)
	}
	for _, part := range s.DependentSchemas {
		all = append(all, part)
	}
	var loose []any
	for _, part := range s.Dependencies {
		loose = append(loose, part)
	}
	return schemas(all, loose...)
}

// schemas are those of all and loose that are some.
func schemas(all []*jsonschema.Schema, loose ...any) []*jsonschema.Schema {
	for _, part := range loose {
		switch part := part.(type) {
		case *jsonschema.Schema:
			all = append(all, part)
		case []*jsonschema.Schema:
			all = append(all, part...)
		}
	}
	some := all[:0]
	for _, part := range all {
		if part != nil {
			some = append(some, part)
		}
	}
	return some
}
