package contract

import (
	"slices"

	"countersign/action"
)

// known are the keys that a bare definition shares with a full contract.
var known = []string{
	"name", "title", "description", "entries", "input_schema", "output_schema",
	"validate", "object_version", "http", "display",
}

// complete returns doc itself when it is a full contract, or a full contract
// made from a bare definition.
func complete(doc *node) (*node, []action.FieldError) {
	if !isBare(doc) {
		return doc, nil
	}
	full := &node{kind: objectKind}
	extra := &node{kind: objectKind}
	if annotations := doc.get("annotations"); annotations != nil && annotations.kind == objectKind {
		extra.members = slices.Clone(annotations.members)
	}
	mode, problems := bareMode(doc)
	for _, m := range doc.members {
		switch key := bareKey(m.key); {
		case slices.Contains(known, key):
			if full.get(key) != nil {
				problems = append(problems, one(join("", m.key), "says the same as "+key+", which is also given")...)
				continue
			}
			full.set(key, m.value)
		case m.key == "read_only", m.key == "annotations" && m.value.kind == objectKind:
		default:
			extra.set(m.key, m.value)
		}
	}
	if mode != "" {
		full.set("mode", stringNode(string(mode)))
	}
	if title := extra.get("title"); title != nil && title.kind == stringKind && full.get("title") == nil {
		full.set("title", title)
	}
	if len(extra.members) > 0 {
		full.set("annotations", extra)
	}
	return full, problems
}

// isBare reports whether the document says nothing of mode, target, approval
// and execution. MCP has an "execution" of its own, which is not ours.
func isBare(doc *node) bool {
	if e := doc.get("execution"); e != nil {
		foreign := len(e.members) == 1 && e.members[0].key == "taskSupport"
		if !foreign {
			return false
		}
	}
	return doc.get("mode") == nil && doc.get("target") == nil && doc.get("approval") == nil
}

// bareKey translates MCP's spelling.
func bareKey(key string) string {
	switch key {
	case "inputSchema":
		return "input_schema"
	case "outputSchema":
		return "output_schema"
	}
	return key
}

// bareMode is what the definition says of reading, "" when it says nothing.
func bareMode(doc *node) (Mode, []action.FieldError) {
	var problems []action.FieldError
	said := map[string]bool{}
	for _, pointer := range []string{"/read_only", "/annotations/readOnlyHint"} {
		hint := doc.at(pointer)
		if hint == nil {
			continue
		}
		if hint.kind != boolKind {
			problems = append(problems, one(pointer, "must be true or false")...)
		}
		said[hint.text] = true
	}
	if said["true"] && said["false"] {
		problems = append(problems, one("/read_only", "contradicts annotations.readOnlyHint")...)
	}
	switch {
	case said["false"]:
		return Write, problems
	case said["true"]:
		return Read, problems
	}
	return "", problems
}
