package handlers

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/web"
)

// fields lays out an action's payload against what was read before people
// decide, or read back after it ran. What will be is said only while it can still
// run, and what was done only once it is; otherwise it is what was asked for.
func (v actionView) fields(ctx context.Context) web.FieldTable {
	c, a := v.tool.Contract, v.a
	s := fieldSource(c, v.lang, a.Payload)
	s.Left = web.Source{NotRead: true}
	if before, ok := a.Before(); ok {
		s.Left = web.Source{Name: systemOf(before.Tool), At: before.ObservedAt}
		var compared map[string]bool
		s.Now, s.Claims, compared = comparable(c, before.Tool, a.Payload, v.before)
		s.Beside = v.beside(ctx, before.Tool, compared)
	} else {
		_, s.Claims, _ = comparable(c, a.Terms.Before, a.Payload, nil)
		if a.Terms.Before != "" {
			s.Left.Missed = missedOf(a.InVain(a.Terms.Before))
			s.Left.NotYet = v.state() == action.Proposed
		}
	}
	switch {
	case v.runs():
	case v.state() == action.Applied:
		s.Kind = web.TableDone
		if back, ok := readBack(a); ok {
			s.Right = web.Source{Name: systemOf(back.Tool), At: back.ObservedAt, ReadBack: true}
		}
	default:
		if s.Beside != nil && !v.later.source.At.IsZero() {
			s.Beside.Later = v.later.beside
		}
		s.Kind, s.Claims, s.Later, s.Third = web.TableAsked, nil, v.later.fields, v.later.source
	}
	return web.NewFields(s)
}

// runs reports whether it can still run as it stands: nothing was sent.
func (v actionView) runs() bool {
	return v.state().In(action.Draft, action.Proposed, action.Confirmed) || v.state() == action.Executing && len(v.a.Attempts) == 0
}

// beside is what was read with a tool before people decide and stands in no
// field of the payload, with what a success promises of it.
func (v actionView) beside(ctx context.Context, tool string, compared map[string]bool) *web.Beside {
	b := &web.Beside{Compared: compared, Promised: map[string]json.RawMessage{}}
	b.Read = web.FieldSource{Payload: v.before, Label: map[string]web.Text{}, Mask: v.tool.Contract.Display.Mask,
		Money: moneyRead(v.tool.Contract, v.a.Payload, tool, v.readBy, v.before)}
	if v.readBy != nil {
		describe(&b.Read, v.readBy, v.lang, v.before)
	}
	b.Asked = !v.runs() && v.state() != action.Applied
	if _, b.Shown = readBack(v.a); v.state() == action.Applied && !b.Shown {
		return b
	}
	read, same := map[string]json.RawMessage{tool: v.before}, map[string]*contract.Contract{}
	for _, p := range v.tool.Contract.Execution.Postconditions {
		k, err := v.outputs.contract(ctx, p.Read)
		if err != nil {
			return b
		}
		read[p.Read], same[p.Read] = v.before, k
	}
	findings, err := v.tool.Rules.Postconditions(ctx, factsOf(v.a), read)
	if err != nil {
		return b
	}
	for _, f := range findings {
		if f.Expected != nil && (f.Read == tool || contract.SamePlace(v.readBy, same[f.Read], f.Field)) {
			b.Promised[f.Field] = f.Expected
		}
	}
	return b
}

// fieldSource is what every table of a payload has: labels, money, masks,
// names and the schema's order.
func fieldSource(c *contract.Contract, lang string, payload []byte) web.FieldSource {
	s := web.FieldSource{Kind: web.TableDecide, Payload: payload, Label: map[string]web.Text{},
		Mask: c.Display.Mask}
	for _, name := range c.Fields() {
		s.Order = append(s.Order, "/"+escapePointer(name))
	}
	labels(s.Label, c, lang, payload)
	for pointer := range web.Leaves(payload) {
		if namesSomething(pointer) {
			s.Names = append(s.Names, pointer)
		}
	}
	s.Money = moneyIn(c, payload)
	return s
}

// labels adds what a contract calls the places of a document, those on the way
// to a value too.
func labels(called map[string]web.Text, c *contract.Contract, lang string, doc []byte) {
	for pointer := range web.Leaves(doc) {
		for at := 1; at <= len(pointer); at++ {
			if at < len(pointer) && pointer[at] != '/' {
				continue
			}
			if label := c.Label(lang, pointer[:at]); label != "" {
				called[pointer[:at]] = web.Outside(label)
			}
		}
	}
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// readBack is the latest reading that confirmed the post-conditions.
func readBack(a action.Action) (action.Observation, bool) {
	for i := len(a.Observations) - 1; i >= 0; i-- {
		if a.Observations[i].Holds == action.HoldsTrue && len(a.Attempts) > 0 && !a.Observations[i].At.Before(a.Attempts[0].At) {
			return a.Observations[i], true
		}
	}
	return action.Observation{}, false
}

// expectsField finds the payload field that a post-condition compares with.
var expectsField = regexp.MustCompile(`^\s*value\s*==\s*payload\.([A-Za-z_][A-Za-z0-9_]*)\s*$`)

// comparable finds, for the fields of a payload, what a snapshot that a tool read
// says of them now, which fields are the program's claim of what stands now, and
// which places of the snapshot were compared. A
// post-condition says which field of the object a payload field becomes;
// otherwise equal names are compared, and new_x and old_x with x.
func comparable(c *contract.Contract, tool string, payload, snapshot []byte) (now, claims map[string]json.RawMessage, compared map[string]bool) {
	now, claims, compared = map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]bool{}
	seen := map[string]json.RawMessage{}
	if len(snapshot) > 0 {
		seen = web.Leaves(snapshot)
	}
	become := map[string]string{}
	for _, p := range promised(c) {
		if m := expectsField.FindStringSubmatch(p.Expect); m != nil && p.Read == tool {
			become["/"+m[1]] = p.Field
		}
	}
	for pointer := range web.Leaves(payload) {
		name := strings.TrimPrefix(pointer, "/")
		if old, ok := claimOf(name); ok {
			claims[pointer], compared["/"+old] = seen["/"+old], true
			continue
		}
		for _, candidate := range []string{become[pointer], pointer, "/" + strings.TrimPrefix(name, "new_")} {
			if value, ok := seen[candidate]; ok && candidate != "" {
				now[pointer], compared[candidate] = value, true
				break
			}
		}
	}
	return now, claims, compared
}

// promised are the post-conditions of a contract and of its steps.
func promised(c *contract.Contract) []contract.Condition {
	all := slices.Clone(c.Execution.Postconditions)
	for _, s := range c.Execution.Steps {
		all = append(all, s.Postconditions...)
	}
	return all
}

// claimOf returns the field that old_x or current_x claims the value of.
func claimOf(name string) (string, bool) {
	for _, prefix := range []string{"old_", "current_", "previous_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return rest, true
		}
	}
	return "", false
}
