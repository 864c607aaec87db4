package handlers

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"countersign/action/contract"
)

// trial is a proposal of a tool, ready to paste into a shell: what its schema
// requires, filled in with values that fit.
func (s *server) trial(c *contract.Contract) string {
	var body bytes.Buffer
	body.WriteString("{\n  \"tool\": " + quotedJSON(c.Name) + ",\n  \"actor\": {\"id\": \"user-1\"},\n")
	if c.ObjectVersion == contract.VersionRequired {
		body.WriteString("  \"object_version\": \"1\",\n")
	}
	if len(c.Entries) > 0 {
		body.WriteString("  \"entry\": " + quotedJSON(c.Entries[0]) + ",\n")
	}
	body.WriteString("  \"payload\": " + string(trialPayload(c)) + ",\n  \"reason\": \"a first try\"\n}")
	key := "" // one tool's try is not another's
	if toolName(c.Name) {
		key = c.Name + "-"
	}
	return "curl -X POST " + s.PublicURL + "/v1/actions \\\n" +
		"  -H \"Authorization: Bearer $KEY\" \\\n" +
		"  -H \"Idempotency-Key: try-" + key + "$(date +%s)\" \\\n" +
		"  -H \"Content-Type: application/json\" \\\n" +
		"  -d '" + strings.ReplaceAll(body.String(), "'", `'\''`) + "'"
}

func quotedJSON(text string) string {
	raw, err := encodeJSON(text)
	if err != nil {
		return `""`
	}
	return strings.TrimSpace(string(raw))
}

// trialPayload is a payload that a contract takes, as far as its schema says
// what fits: expressions and patterns it does not solve.
func trialPayload(c *contract.Contract) json.RawMessage {
	t := &trialValues{root: c.InputSchema, left: maxTrialValues}
	var also []string
	if c.Target != nil {
		also = append(also, c.Target.Scope)
		also = append(also, c.Target.ID...)
	}
	for i, pointer := range also {
		name, ok := strings.CutPrefix(pointer, "/")
		if name, _, _ = strings.Cut(name, "/"); !ok {
			name = ""
		}
		also[i] = name
	}
	return t.object(t.read(c.InputSchema), c.Fields(), also, 0)
}

// Bounds of a trial, whatever a schema asks for and however it refers to itself.
const (
	maxTrialDepth  = 8
	maxTrialValues = 500
	maxTrialItems  = 50
	maxTrialText   = 200
)

// trialSchema is what a schema says of the values that fit.
type trialSchema struct {
	Ref              string                     `json:"$ref"`
	Type             any                        `json:"type"`
	Const            json.RawMessage            `json:"const"`
	Enum             []json.RawMessage          `json:"enum"`
	Examples         []json.RawMessage          `json:"examples"`
	Default          json.RawMessage            `json:"default"`
	Properties       map[string]json.RawMessage `json:"properties"`
	Required         []string                   `json:"required"`
	Items            json.RawMessage            `json:"items"`
	MinItems         int                        `json:"minItems"`
	MinLength        int                        `json:"minLength"`
	MaxLength        *int                       `json:"maxLength"`
	Minimum          *json.Number               `json:"minimum"`
	Maximum          *json.Number               `json:"maximum"`
	ExclusiveMinimum *json.Number               `json:"exclusiveMinimum"`
	MultipleOf       *json.Number               `json:"multipleOf"`
	Format           string                     `json:"format"`
	AnyOf            []json.RawMessage          `json:"anyOf"`
	OneOf            []json.RawMessage          `json:"oneOf"`
}

// trialValues makes values that fit the parts of one schema.
type trialValues struct {
	root json.RawMessage
	left int // how many more values it may hold
}

func (t *trialValues) read(raw json.RawMessage) trialSchema {
	var schema trialSchema
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&schema) != nil {
		return trialSchema{}
	}
	return schema
}

func (t *trialValues) value(raw json.RawMessage, name string, depth int) json.RawMessage {
	s := t.read(raw)
	t.left--
	switch {
	case depth > maxTrialDepth || t.left < 0:
		return json.RawMessage("null")
	case s.Ref != "":
		return t.value(t.referred(s.Ref), name, depth+1)
	case len(s.Const) > 0:
		return s.Const
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.Default) > 0 && string(s.Default) != "null":
		return s.Default
	case s.Type == nil && len(s.AnyOf) > 0:
		return t.value(s.AnyOf[0], name, depth+1)
	case s.Type == nil && len(s.OneOf) > 0:
		return t.value(s.OneOf[0], name, depth+1)
	}
	switch t.typeOf(s) {
	case "object":
		return t.object(s, slices.Sorted(maps.Keys(s.Properties)), nil, depth)
	case "array":
		list := make([]string, min(s.MinItems, maxTrialItems))
		for i := range list {
			list[i] = string(t.value(s.Items, name, depth+1))
		}
		return json.RawMessage("[" + strings.Join(list, ", ") + "]")
	case "integer", "number":
		return json.RawMessage(s.number())
	case "boolean":
		return json.RawMessage("false")
	case "null":
		return json.RawMessage("null")
	}
	return json.RawMessage(quotedJSON(s.text(name)))
}

// typeOf is the first type that a schema allows; without one, what its other
// words are about.
func (t *trialValues) typeOf(s trialSchema) string {
	switch typ := s.Type.(type) {
	case string:
		return typ
	case []any:
		if len(typ) > 0 {
			first, _ := typ[0].(string)
			return first
		}
	}
	switch {
	case len(s.Properties) > 0:
		return "object"
	case s.Minimum != nil || s.Maximum != nil || s.MultipleOf != nil:
		return "number"
	}
	return "string"
}

// object holds what a schema requires, and the fields named besides.
func (t *trialValues) object(s trialSchema, order, also []string, depth int) json.RawMessage {
	for _, name := range slices.Concat(s.Required, also) {
		if name != "" && !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	var members []string
	for _, name := range order {
		if slices.Contains(s.Required, name) || slices.Contains(also, name) {
			members = append(members, quotedJSON(name)+": "+string(t.value(s.Properties[name], name, depth+1)))
		}
	}
	return json.RawMessage("{" + strings.Join(members, ", ") + "}")
}

// referred is the part of the schema that a local reference names.
func (t *trialValues) referred(ref string) json.RawMessage {
	part := t.root
	for token := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		var members map[string]json.RawMessage
		if json.Unmarshal(part, &members) != nil {
			return nil
		}
		part = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return part
}

// number is the least that fits, and at least 1 if that does.
func (s trialSchema) number() string {
	n := big.NewRat(1, 1)
	if least, ok := ratOf(s.ExclusiveMinimum); ok {
		n = least.Add(least, big.NewRat(1, 1))
	}
	if least, ok := ratOf(s.Minimum); ok && least.Cmp(n) > 0 {
		n = least
	}
	if step, ok := ratOf(s.MultipleOf); ok && step.Sign() > 0 {
		times := new(big.Rat).Quo(n, step)
		if !times.IsInt() {
			whole := new(big.Int).Add(new(big.Int).Quo(times.Num(), times.Denom()), big.NewInt(1))
			times.SetInt(whole)
		}
		n = times.Mul(times, step)
	}
	if most, ok := ratOf(s.Maximum); ok && most.Cmp(n) < 0 {
		n = most
	}
	if n.IsInt() {
		return n.Num().String()
	}
	return strings.TrimRight(n.FloatString(6), "0")
}

func ratOf(n *json.Number) (*big.Rat, bool) {
	if n == nil || len(*n) > 40 || strings.ContainsAny(string(*n), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(string(*n))
}

// text is a text of the right length: the field's name, so that one sees where
// it went.
func (s trialSchema) text(name string) string {
	switch s.Format {
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "date":
		return "2026-01-31"
	case "email":
		return "name@example.com"
	case "uri", "url":
		return "https://example.com/"
	case "uuid":
		return "00000000-0000-4000-8000-000000000000"
	}
	text := []rune(strings.ToValidUTF8(name, ""))
	if len(text) == 0 {
		text = []rune("text")
	}
	for least := min(s.MinLength, maxTrialText); len(text) < least; {
		text = append(text, '-', '1')
	}
	if s.MaxLength != nil && *s.MaxLength >= s.MinLength && len(text) > *s.MaxLength {
		text = text[:*s.MaxLength]
	}
	return string(text)
}
