package contract

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	neturl "net/url"
	"strings"

	"countersign/action"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed contract.schema.json
var contractSchema []byte

// documentURL is the base of references inside one document. It names no
// place that anything could be loaded from.
const documentURL = "contract:///schema"

// closed is a loader that loads nothing: a schema stands on its own.
type closed struct{}

func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside the document", strings.TrimPrefix(url, documentURL))
}

// compileSchema compiles a JSON Schema; its dialect is 2020-12 unless it says
// otherwise, and formats are not asserted.
func compileSchema(raw []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(closed{})
	for _, name := range []string{
		"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname", "email", "date",
		"time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
	} { // older dialects assert them
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := compiler.AddResource(documentURL, doc); err != nil {
		return nil, fmt.Errorf("adding a schema: %w", err)
	}
	schema, err := compiler.Compile(documentURL)
	if err != nil {
		return nil, fmt.Errorf("compiling a schema: %w", err)
	}
	return schema, nil
}

// schemaProblems tells in words why a schema at pointer does not compile.
func schemaProblems(err error, pointer string) []action.FieldError {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var cause *jsonschema.ValidationError
		if errors.As(invalid.Err, &cause) {
			return describe(cause, pointer)
		}
	}
	var pattern *jsonschema.InvalidRegexError
	if errors.As(err, &pattern) {
		return []action.FieldError{{Pointer: pointer + fragment(pattern.URL), Detail: fmt.Sprintf(
			"the pattern %q is not supported: %v. Patterns have no look-ahead, look-behind or back-references", pattern.Regex, pattern.Err)}}
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return []action.FieldError{{Pointer: pointer, Detail: fmt.Sprintf(
			"%v. References stay within the schema (\"#/$defs/…\")", load.Err)}}
	}
	return []action.FieldError{{Pointer: pointer, Detail: fmt.Sprintf("is not a usable JSON Schema: %v", err)}}
}

// fragment returns the JSON Pointer of a place in the document.
func fragment(url string) string {
	_, escaped, _ := strings.Cut(url, "#")
	plain, err := neturl.PathUnescape(escaped)
	if err != nil {
		return escaped
	}
	return plain
}

// ValidateInput checks a payload against the input schema. Its refusal names
// every wrong place, in a stable order, up to a bound.
func (c *Contract) ValidateInput(payload []byte) error {
	return validate(c.input, payload, "The payload does not fit the tool's input.")
}

// ValidateOutput checks an answer against the output schema, if there is one.
func (c *Contract) ValidateOutput(body []byte) error {
	if c.output == nil {
		return nil
	}
	return validate(c.output, body, "The answer does not fit what the tool promises.")
}

func validate(schema *jsonschema.Schema, raw []byte, detail string) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return action.Refuse(action.InvalidPayload, "The text is not JSON.").At("", "is not JSON").From(err)
	}
	err = schema.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("validating: %w", err)
	}
	refusal := action.Refuse(action.InvalidPayload, detail)
	refusal.Errors = describe(invalid, "")
	return refusal
}
