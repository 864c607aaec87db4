package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"countersign/action"
)

// doubling is a contract whose schema has n parts, each of which names the next
// one twice.
func doubling(t *testing.T, n int, twice string) []byte {
	t.Helper()
	defs := map[string]json.RawMessage{fmt.Sprintf("d%d", n): json.RawMessage(`{"type":"object"}`)}
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		defs[fmt.Sprintf("d%d", i)] = json.RawMessage(strings.ReplaceAll(twice, "NEXT", next))
	}
	raw, err := json.Marshal(map[string]any{"name": "shop.doubling", "description": "Doubles.",
		"input_schema": map[string]any{"type": "object", "$defs": defs, "$ref": "#/$defs/d0"}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A small schema that would take for ever is refused when it is put; one that
// leads back to itself, and every real one (see corpus), is not.
func TestASchemaThatDoublesIsRefused(t *testing.T) {
	for _, twice := range []string{
		`{"allOf":[NEXT,NEXT]}`, `{"anyOf":[NEXT,NEXT]}`, `{"oneOf":[NEXT,{"not":NEXT}]}`, `{"if":NEXT,"then":NEXT}`,
		`{"properties":{"a":NEXT},"patternProperties":{"^a":NEXT}}`, `{"properties":{"a":NEXT},"additionalProperties":NEXT}`,
		`{"prefixItems":[NEXT],"contains":NEXT}`, `{"dependentSchemas":{"a":NEXT,"b":NEXT}}`,
	} {
		for n, refused := range map[int]bool{8: false, 30: true, 200: true} {
			c, err := Parse(doubling(t, n, twice))
			if !refused {
				if err == nil {
					err = c.ValidateInput([]byte(`{"a":{}}`))
				}
				if action.IsCode(err, action.InvalidArgument) {
					t.Errorf("%d of %s: %v", n, twice, err)
				}
				continue
			}
			r := action.AsRefusal(err)
			if err == nil || len(r.Errors) != 1 || r.Errors[0].Pointer != "/input_schema" || !strings.Contains(r.Errors[0].Detail, "ways lead") {
				t.Errorf("%d of %s: %+v", n, twice, r)
			}
		}
	}
	if _, err := Parse(doubling(t, 3, `{"properties":{"up":{"$ref":"#"},"down":NEXT}}`)); err != nil {
		t.Errorf("one that leads back: %v", err)
	}
}

// So is one that leads back to itself twice for the same value: 30 levels are a
// thousand million judgements.
func TestASchemaThatRepeatsItselfIsRefused(t *testing.T) {
	const back = `{"$ref":"#/$defs/d"}`
	source := func(d string) []byte {
		return []byte(`{"name":"shop.repeats","description":"Repeats.","input_schema":{"type":"object","properties":{"root":` + back + `},"$defs":{"d":` +
			strings.ReplaceAll(d, "BACK", back) + `}}}`)
	}
	deep := []byte(`{"root":` + strings.Repeat(`{"a":`, 29) + `{}` + strings.Repeat("}", 29) + `}`)
	for _, d := range []string{
		`{"properties":{"a":{"allOf":[BACK,BACK]}}}`, `{"properties":{"a":{"anyOf":[BACK,{"not":BACK}]}}}`,
		`{"allOf":[{"properties":{"a":BACK}},{"properties":{"a":BACK}}]}`, `{"oneOf":[{"properties":{"a":BACK,"b":true}},{"properties":{"a":BACK}}]}`,
		`{"properties":{"a":BACK},"patternProperties":{"^a":BACK}}`, `{"patternProperties":{"^a":BACK,"a$":BACK}}`, `{"if":{"properties":{"a":BACK}},"then":{"additionalProperties":BACK}}`,
		`{"items":BACK,"contains":BACK}`, `{"prefixItems":[BACK],"contains":BACK}`, `{"allOf":[{"items":BACK},{"prefixItems":[true,BACK]}]}`,
		`{"properties":{"a":{"properties":{"a":{"dependentSchemas":{"a":BACK,"b":BACK}}}}}}`,
	} {
		_, err := Parse(source(d))
		r := action.AsRefusal(err)
		if err == nil || len(r.Errors) != 1 || !strings.HasPrefix(r.Errors[0].Pointer, "/input_schema/") || !strings.Contains(r.Errors[0].Detail, "leads back to itself") {
			t.Errorf("%s: %v, %+v", d, err, r)
		}
	}
	for _, d := range []string{
		`{"properties":{"a":BACK,"b":BACK},"additionalProperties":BACK}`, `{"properties":{"a":BACK},"patternProperties":{"^b":BACK}}`,
		`{"oneOf":[{"properties":{"a":BACK}},{"properties":{"b":{"items":BACK}}},{"type":"string"}]}`, `{"prefixItems":[BACK,BACK],"items":BACK}`,
		`{"properties":{"a":{"allOf":[BACK,{"required":["a"]}]}}}`, `{"items":BACK,"minItems":1,"propertyNames":{"pattern":"^a"}}`,
	} {
		c, err := Parse(source(d))
		if err != nil {
			t.Errorf("%s: %+v", d, action.AsRefusal(err).Errors)
			continue
		}
		if err := c.ValidateInput(deep); err != nil && !action.IsCode(err, action.InvalidPayload) {
			t.Errorf("%s: %v", d, err)
		}
	}
}
