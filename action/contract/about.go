package contract

import (
	"slices"
	"strings"
)

// AboutOther reports whether an answer of a read tool names another object, or
// another operation, than input, with which the tool is asked. A target that says
// where in the answer it stands has to stand there; whatever else names what is
// asked about (see naming) need not be in the answer, and is the same where it is.
func (c *Contract) AboutOther(input, answer []byte) bool {
	asked, err := parsePayload(input)
	if err != nil {
		return false
	}
	told, err := parseJSON(answer, maxDepth)
	if err != nil {
		return c.Target != nil && len(c.Target.Answer) > 0
	}
	for _, pointer := range c.naming() {
		want, known := idText(asked.at(pointer))
		if got, named := nameIn(told.at(pointer)); known && named && got != want && !c.otherForm(pointer, want, got) {
			return true
		}
	}
	if c.Target == nil {
		return false
	}
	for i, pointer := range c.Target.Answer {
		want, known := idText(asked.at(c.Target.ID[i]))
		if got, named := idText(told.at(pointer)); known && (!named || got != want) {
			return true
		}
	}
	return false
}

// nameIn is the name that an answer gives at a place, whether or not it could be that
// of anything. An object or a list there is the thing itself, and null names nothing.
func nameIn(n *node) (string, bool) {
	if n == nil || !n.scalar() || n.kind == nullKind {
		return "", false
	}
	return n.text, true
}

// otherForm reports whether two values at a place may be one in two forms: a date, an
// amount or a number may be, and the case of a word, but not what is an id.
func (c *Contract) otherForm(pointer, want, got string) bool {
	name := strings.ToLower(pointer[strings.LastIndexByte(pointer, '/')+1:])
	id := name == "id" || name == "key" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_key") ||
		c.Target != nil && slices.Contains(c.Target.ID, pointer)
	digit := func(s string) bool { return s != "" && strings.Contains("-.0123456789", s[:1]) }
	return !id && (strings.EqualFold(want, got) || digit(want) && digit(got))
}

// naming are the places in the input of a read tool that name what is asked about:
// its target, what else it requires and the key of an operation. Who asks is none.
func (c *Contract) naming() []string {
	var all []string
	if c.Target != nil && len(c.Target.Answer) == 0 {
		all = slices.Clone(c.Target.ID)
	}
	for _, f := range c.fields {
		place := join("", f.name)
		switch f.name {
		case "actor_id", "target_type":
			continue
		case "execution_key", "idempotency_key", "target_id":
		default:
			if !f.required || c.Target != nil && slices.Contains(c.Target.ID, place) {
				continue
			}
		}
		all = append(all, place)
	}
	return all
}
