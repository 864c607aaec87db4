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
