package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/web"
)

// toolRowOf is a contract in the list of tools.
func toolRowOf(t *rule.Tool, lang string) web.ToolRow {
	c := t.Contract
	row := web.ToolRow{Name: t.Name, Title: web.Outside(titleOf(c, lang)), Version: t.Version, Read: c.Mode == contract.Read,
		Retired: !t.Active, Bare: c.Bare(), Changed: t.CreatedAt.UTC()}
	for _, r := range c.Approval.Rules {
		row.Rules = append(row.Rules, web.Rule{Role: r.Role, Count: r.Approvals, StepUp: r.StepUp, When: web.Outside(r.When)})
	}
	if len(row.Rules) == 0 && !row.Read {
		row.Rules = []web.Rule{{Role: rule.DefaultRole, Count: 1, Assumed: true}}
	}
	for _, e := range c.Entries {
		row.Entries = append(row.Entries, web.Outside(e))
	}
	return row
}

// toolPageOf is one version of a contract, with its differences to an earlier
// one when before is given.
func toolPageOf(t *rule.Tool, before *rule.Tool, lang, curl string) web.ToolPage {
	c := t.Contract
	e := c.Execution
	p := web.ToolPage{Tool: toolRowOf(t, lang), Description: web.Outside(c.Description.In(lang)), Before: web.Outside(c.Approval.Before),
		TTL: c.Approval.TTL.Duration, ConfirmTTL: c.Approval.ConfirmationTTL.Duration, Schema: schemaFields(c), Proves: string(e.Proves),
		Retry: e.Retry == contract.RetrySameKey, KeyLifetime: e.KeyLifetime.Duration, Timeout: e.Timeout.Duration,
		FenceAfter: e.FenceAfter.Duration, Permission: web.Outside(e.Permission), Definition: web.Payload{Canonical: t.Source}, Curl: web.Outside(curl)}
	if c.Target != nil {
		p.Target = web.Outside(c.Target.Type)
	}
	for _, a := range c.Assumed() {
		p.Assumed = append(p.Assumed, web.Assumption{Pointer: web.Outside(a.Pointer), Value: web.Outside(a.Value)})
	}
	for _, k := range e.Postconditions {
		p.Checks = append(p.Checks, web.Outside(conditionText(k)))
	}
	for _, m := range c.Display.Mask {
		p.Mask = append(p.Mask, web.Outside(m))
	}
	if before != nil {
		table := web.NewFields(web.FieldSource{Kind: web.TableVersions, Payload: t.Source, Now: web.Leaves(before.Source),
			Left: web.Source{Revision: before.Version}, Right: web.Source{Revision: t.Version}})
		p.Diff, p.Against = &table, before.Version
	}
	return p
}

// property is what a schema says of one field.
type property struct {
	Type        any               `json:"type"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	MinLength   *int              `json:"minLength"`
	MaxLength   *int              `json:"maxLength"`
	Minimum     *json.Number      `json:"minimum"`
	Maximum     *json.Number      `json:"maximum"`
	Pattern     string            `json:"pattern"`
}

// schemaFields lists the top-level fields of a contract's input, in the order
// of its schema.
func schemaFields(c *contract.Contract) []web.SchemaField {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(c.InputSchema, &schema) != nil {
		return nil
	}
	required := map[string]bool{}
	for _, name := range schema.Required {
		required[name] = true
	}
	var fields []web.SchemaField
	for _, name := range c.Fields() {
		var p property
		decoder := json.NewDecoder(bytes.NewReader(schema.Properties[name]))
		decoder.UseNumber()
		if decoder.Decode(&p) != nil {
			p = property{}
		}
		fields = append(fields, web.SchemaField{Path: web.Outside(name), Type: web.Outside(typeText(p.Type)), Required: required[name],
			Description: web.Outside(p.Description), Limits: web.Outside(p.limits())})
	}
	return fields
}

func typeText(t any) string {
	switch t := t.(type) {
	case string:
		return t
	case []any:
		names := make([]string, len(t))
		for i, n := range t {
			names[i] = fmt.Sprint(n)
		}
		return strings.Join(names, " | ")
	}
	return ""
}

// limits are the schema's own words for what a value may be.
func (p property) limits() string {
	var parts []string
	if len(p.Enum) > 0 {
		values := make([]string, len(p.Enum))
		for i, v := range p.Enum {
			values[i] = string(v)
		}
		parts = append(parts, strings.Join(values, " | "))
	}
	for _, l := range []struct {
		name  string
		value any
		set   bool
	}{
		{"minLength", deref(p.MinLength), p.MinLength != nil}, {"maxLength", deref(p.MaxLength), p.MaxLength != nil},
		{"minimum", deref(p.Minimum), p.Minimum != nil}, {"maximum", deref(p.Maximum), p.Maximum != nil}, {"pattern", p.Pattern, p.Pattern != ""},
	} {
		if l.set {
			parts = append(parts, fmt.Sprintf("%s %v", l.name, l.value))
		}
	}
	return strings.Join(parts, ", ")
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
