package contract

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"countersign/action"

	"pgregory.net/rapid"
)

func TestValidateInputWords(t *testing.T) {
	tests := []struct{ schema, payload, want string }{
		{`{"required": ["b", "a"]}`, `{}`, "/a is required; /b is required"},
		{`{"properties": {"a": {"type": "number"}}}`, `{"a": "1"}`, "/a must be a number, is a string"},
		{`{"properties": {"a": {"type": ["integer", "null"]}}}`, `{"a": 1.5}`, "/a must be null or an integer, is a number"},
		{`{"properties": {"a": {"enum": ["x", 1, null]}}}`, `{"a": "y"}`, `/a must be one of "x", 1, null`},
		{`{"properties": {"a": {"const": true}}}`, `{"a": 1}`, `/a must be true`},
		{`{"additionalProperties": false}`, `{"a/b": 1}`, "/a~1b is not known here"},
		{`{"properties": {"a": {"minimum": 0.5}}}`, `{"a": 0}`, "/a must be at least 0.5"},
		{`{"properties": {"a": {"exclusiveMaximum": 9007199254740993}}}`, `{"a": 9007199254740993}`, "/a must be less than 9007199254740993"},
		{`{"properties": {"a": {"maximum": 9007199254740992}}}`, `{"a": 9007199254740993}`, "/a must be at most 9007199254740992"},
		{`{"properties": {"a": {"multipleOf": 0.01}}}`, `{"a": 0.015}`, "/a must be a multiple of 0.01"},
		{`{"properties": {"a": {"minLength": 2}}}`, `{"a": "公"}`, "/a must have at least 2 characters, has 1"},
		{`{"properties": {"a": {"maxItems": 1}}}`, `{"a": [1, 2]}`, "/a must have at most 1 items, has 2"},
		{`{"properties": {"a": {"uniqueItems": true}}}`, `{"a": [1, 1.0]}`, "/a items 0 and 1 are the same"},
		{`{"properties": {"a": {"pattern": "^x$"}}}`, `{"a": "y"}`, "/a must match the pattern ^x$"},
		{`{"properties": {"a": {"items": {"properties": {"b": {"type": "boolean"}}}}}}`, `{"a": [{"b": true}, {"b": 1}]}`, "/a/1/b must be a boolean, is a number"},
		{`{"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}`, `{"a": 1}`, "/a must be null or a string"},
		{`{"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["b"]}]}}}`, `{"a": {}}`, "/a/b is required"},
		{`{"properties": {"a": {"oneOf": [{"minimum": 1}, {"minimum": 2}]}}}`, `{"a": 3}`, "/a fits several of the allowed forms, but must fit exactly one"},
		{`{"properties": {"a": {"anyOf": [{"minimum": 1}, {"multipleOf": 2}]}}}`, `{"a": -1}`, "/a fits none of the allowed forms"},
		{`{"properties": {"a": {"not": {"const": 1}}}}`, `{"a": 1}`, "/a has a form that is not allowed"},
		{`{"properties": {"a": false}}`, `{"a": 1}`, "/a is not allowed"},
		{`{"dependentRequired": {"a": ["b"]}}`, `{"a": 1}`, `/b is required when "a" is given`},
		{`{"properties": {"a": {"contains": {"const": 1}}}}`, `{"a": []}`, "/a holds no item of the required form"},
		{`{"propertyNames": {"maxLength": 1}}`, `{"ab": 1}`, ` "ab" is not an allowed name of a field`},
		{`{"properties": {"a": {"format": "date"}}}`, `{"a": "no date"}`, ""},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"format": "date"}}}`, `{"a": "no date"}`, ""},
		{`{"$defs": {"n": {"type": "number"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}`, `{"a": "1"}`, "/a must be a number, is a string"},
		{`{}`, `{`, " is not JSON"},
	}
	for _, test := range tests {
		c := parse(t, `{"name": "a", "input_schema": `+test.schema+`}`)
		var words []string
		if err := c.ValidateInput([]byte(test.payload)); err != nil {
			refusal := action.AsRefusal(err)
			if refusal.Code != action.InvalidPayload {
				t.Errorf("%s: %v", test.schema, err)
			}
			for _, e := range refusal.Errors {
				words = append(words, e.Pointer+" "+e.Detail)
			}
		}
		if got := strings.Join(words, "; "); got != test.want {
			t.Errorf("%s on %s:\n got %q\nwant %q", test.schema, test.payload, got, test.want)
		}
	}
}

func TestManyProblemsAreBoundedAndStable(t *testing.T) {
	c := parse(t, `{"name": "a", "input_schema": {"additionalProperties": {"type": "string"}}}`)
	var fields []string
	for i := range 200 {
		fields = append(fields, fmt.Sprintf(`"f%03d": %d`, i, i))
	}
	payload := []byte("{" + strings.Join(fields, ",") + "}")
	first := action.AsRefusal(c.ValidateInput(payload)).Errors
	if len(first) != maxProblems || first[0].Pointer != "/f000" || first[maxProblems-1].Detail != "and 151 more problems" {
		t.Errorf("got %d: %+v", len(first), first)
	}
	for range 5 {
		if again := action.AsRefusal(c.ValidateInput(payload)).Errors; !reflect.DeepEqual(first, again) {
			t.Fatal("another order")
		}
	}
}

func TestJSONTextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		n, err := parseJSON(stringNode(s).json(), 1)
		if err != nil || n.text != s {
			t.Fatalf("%q became %+v, %v", s, n, err)
		}
	})
}
