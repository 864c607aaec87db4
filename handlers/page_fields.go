package handlers

import (
	"encoding/json"
	"regexp"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/web"
)

// fieldsOf lays out an action's payload against what was read before people
// decide, or read back after it ran. Of what was read, seen is what may be seen.
func fieldsOf(c *contract.Contract, lang string, a action.Action, seen json.RawMessage) web.FieldTable {
	s := fieldSource(c, lang, a.Payload)
	s.Left = web.Source{NotRead: true}
	if before, ok := a.Before(); ok {
		s.Left = web.Source{Name: systemOf(before.Tool), At: before.ObservedAt}
		s.Now, s.Claims = comparable(c, a.Payload, seen)
	} else {
		_, s.Claims = comparable(c, a.Payload, nil)
	}
	if a.State.In(action.Applied, action.Accepted) {
		s.Kind = web.TableDone
		if back, ok := readBack(a); ok {
			s.Right = web.Source{Name: systemOf(back.Tool), At: back.ObservedAt, ReadBack: true}
		}
	}
	return web.NewFields(s)
}

// fieldSource is what every table of a payload has: labels, money, masks,
// names and the schema's order.
func fieldSource(c *contract.Contract, lang string, payload []byte) web.FieldSource {
	s := web.FieldSource{Kind: web.TableDecide, Payload: payload, Label: map[string]web.Text{},
		Mask: c.Display.Mask}
	for _, name := range c.Fields() {
		s.Order = append(s.Order, "/"+escapePointer(name))
	}
	for pointer := range web.Leaves(payload) {
		if label := c.Label(lang, pointer); label != "" {
			s.Label[pointer] = web.Outside(label)
		}
		if namesSomething(pointer) {
			s.Names = append(s.Names, pointer)
		}
	}
	s.Money = moneyIn(c, payload)
	return s
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

// comparable finds, for the fields of a payload, what the snapshot says of
// them now, and which fields are the program's claim of what stands now. A
// post-condition says which field of the object a payload field becomes;
// otherwise equal names are compared, and new_x and old_x with x.
func comparable(c *contract.Contract, payload, snapshot []byte) (now, claims map[string]json.RawMessage) {
	now, claims = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	seen := map[string]json.RawMessage{}
	if len(snapshot) > 0 {
		seen = web.Leaves(snapshot)
	}
	become := map[string]string{}
	for _, p := range c.Execution.Postconditions {
		if m := expectsField.FindStringSubmatch(p.Expect); m != nil && p.Read == c.Approval.Before {
			become["/"+m[1]] = p.Field
		}
	}
	for pointer := range web.Leaves(payload) {
		name := strings.TrimPrefix(pointer, "/")
		if old, ok := claimOf(name); ok {
			claims[pointer] = seen["/"+old]
			continue
		}
		for _, candidate := range []string{become[pointer], pointer, "/" + strings.TrimPrefix(name, "new_")} {
			if value, ok := seen[candidate]; ok && candidate != "" {
				now[pointer] = value
				break
			}
		}
	}
	return now, claims
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
