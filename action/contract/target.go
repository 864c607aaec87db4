package contract

import (
	"net/url"
	"strconv"
	"strings"

	"countersign/action"
)

// maxTargetID bounds a target's id in bytes: what a database can index.
const maxTargetID = 2048

// TargetOf returns what the contract says a canonical payload is about. It is
// not ok when the contract leaves the target to the request. A payload that
// does not name its target is refused: nothing could be blocked for it.
func (c *Contract) TargetOf(payload []byte) (typ, id string, ok bool, err error) {
	if c.Target == nil {
		return "", "", false, nil
	}
	doc, err := parsePayload(payload)
	if err != nil {
		return "", "", false, err
	}
	var parts []string
	refusal := action.Refuse(action.InvalidPayload, "The payload does not name its target.")
	for _, pointer := range c.Target.ID {
		text, ok := idText(doc.at(pointer))
		if !ok || len(text) > maxTargetID {
			refusal.At(pointer, "names the target: it must be a text without NUL or a whole number")
			continue
		}
		parts = append(parts, text)
	}
	if len(refusal.Errors) > 0 {
		return "", "", false, refusal
	}
	if len(parts) == 1 {
		return c.Target.Type, parts[0], true, nil
	}
	for i := range parts {
		parts[i] = url.PathEscape(parts[i]) // so that two ids never read alike
	}
	if id = strings.Join(parts, "/"); len(id) > maxTargetID {
		return "", "", false, refusal.At(c.Target.ID[0], "names the target together with others: all of them are too long")
	}
	return c.Target.Type, id, true, nil
}

// ScopeOf returns the scope of a canonical payload: the contract's literal or
// the payload's value, "" when the contract has none.
func (c *Contract) ScopeOf(payload []byte) (string, error) {
	if c.Target == nil || !isPointer(c.Target.Scope) {
		if c.Target == nil {
			return "", nil
		}
		return c.Target.Scope, nil
	}
	doc, err := parsePayload(payload)
	if err != nil {
		return "", err
	}
	text, ok := idText(doc.at(c.Target.Scope))
	if !ok || len(text) > maxTargetID {
		return "", action.Refuse(action.InvalidPayload, "The payload does not name its scope.").
			At(c.Target.Scope, "names the scope: it must be a text without NUL or a whole number")
	}
	return text, nil
}

// idText is a value that can name something. NUL cannot: no database keeps it
// in a text.
func idText(n *node) (string, bool) {
	switch {
	case n == nil:
		return "", false
	case n.kind == stringKind:
		return n.text, n.text != "" && !strings.Contains(n.text, "\x00")
	case n.kind == numberKind:
		_, err := strconv.ParseInt(n.text, 10, 64)
		return n.text, err == nil
	}
	return "", false
}
