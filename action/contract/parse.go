package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"countersign/action"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// shape is the compiled schema of contracts themselves.
var shape = sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSchema(contractSchema) })

// Parse reads one contract from YAML or JSON: a full contract, or a bare or
// MCP tool definition. It fills in every default. What is wrong comes back as
// one refusal that names every wrong place.
func Parse(raw []byte) (*Contract, error) {
	doc, err := parseDocument(raw)
	if err != nil {
		return nil, err
	}
	if doc.kind != objectKind {
		return nil, action.Refuse(action.Malformed, "A contract is an object with a name and an input_schema.")
	}
	if len(doc.members) > maxMembers {
		return nil, action.Refuse(action.TooLarge, fmt.Sprintf("A contract has at most %d members.", maxMembers))
	}
	c := &Contract{source: doc.json()}
	full, problems := complete(doc)
	c.bare = full != doc
	schema, err := shape()
	if err != nil {
		return nil, err
	}
	problems = append(problems, shapeProblems(schema, full)...)
	if len(problems) > 0 { // later checks need the shape
		return nil, refuse(problems)
	}
	problems = append(problems, durationProblems(full)...)
	if len(problems) > 0 {
		return nil, refuse(problems)
	}
	c.assumed = fillDefaults(full)
	if err := json.Unmarshal(full.json(), c); err != nil {
		return nil, fmt.Errorf("reading a contract: %w", err)
	}
	c.schema = full.get("input_schema")
	c.fields, c.composed = inputFields(c.schema)
	problems = append(c.compile(full), c.check(full)...)
	if len(problems) > 0 {
		return nil, refuse(problems)
	}
	return c, nil
}

func refuse(problems []action.FieldError) error {
	r := action.Refuse(action.InvalidArgument, "The contract has mistakes. Correct the places named and put it again.")
	r.Errors = settle(problems)
	return r
}

func shapeProblems(schema *jsonschema.Schema, full *node) []action.FieldError {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(full.json()))
	if err != nil {
		return one("", "cannot be read as JSON")
	}
	err = schema.Validate(value)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return leaves(invalid, "")
	}
	return nil
}

// compile compiles the contract's two schemas.
func (c *Contract) compile(full *node) []action.FieldError {
	var problems []action.FieldError
	var err error
	if t := full.at("/input_schema/type"); t != nil && t.text != "object" {
		problems = append(problems, one("/input_schema/type", "must be \"object\": payloads are JSON objects")...)
	}
	if c.input, err = compileSchema(c.InputSchema); err != nil {
		problems = append(problems, schemaProblems(err, "/input_schema")...)
	}
	problems = append(problems, tooLong(c.input, "/input_schema")...)
	if len(c.OutputSchema) == 0 {
		return problems
	}
	if c.output, err = compileSchema(c.OutputSchema); err != nil {
		problems = append(problems, schemaProblems(err, "/output_schema")...)
	}
	problems = append(problems, tooLong(c.output, "/output_schema")...)
	return problems
}

// field is a top-level property of the input, in the order it was written.
type field struct {
	name     string
	required bool
}

// inputFields lists the top-level properties, and tells whether there may be
// more of them elsewhere in the schema.
func inputFields(schema *node) (fields []field, composed bool) {
	var required []string
	if list := schema.get("required"); list != nil {
		for _, item := range list.items {
			required = append(required, item.text)
		}
	}
	if properties := schema.get("properties"); properties != nil {
		for _, m := range properties.members {
			fields = append(fields, field{m.key, slices.Contains(required, m.key)})
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "if", "patternProperties", "dependentSchemas"} {
		composed = composed || schema.get(key) != nil
	}
	return fields, composed
}
