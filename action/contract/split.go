package contract

import (
	"encoding/json"
)

// wrapped is how many levels of a list's own stand around a definition at most.
const wrapped = 6

// Split takes apart what holds several tool definitions, or wraps one: a list,
// what an MCP server answers to tools/list, with the envelope of JSON-RPC or
// without, and what is given to models, where a definition stands under
// "function" and its schema under "parameters". What is none of these, or no
// JSON, stays whole: Parse tells what is wrong with it.
func Split(raw []byte) [][]byte {
	if !json.Valid(raw) {
		return [][]byte{raw}
	}
	doc, err := parseJSON(raw, maxDepth+wrapped)
	if err != nil {
		return [][]byte{raw}
	}
	found := definitionsIn(doc, wrapped)
	if len(found) == 1 && found[0] == doc {
		return [][]byte{raw}
	}
	all := make([][]byte, len(found))
	for i, one := range found {
		all[i] = one.json()
	}
	return all
}

func definitionsIn(doc *node, levels int) []*node {
	if levels == 0 {
		return []*node{doc}
	}
	if doc.kind == listKind {
		all := []*node{}
		for _, item := range doc.items {
			all = append(all, definitionsIn(item, levels-1)...)
		}
		return all
	}
	if doc.get("name") == nil {
		for _, key := range []string{"result", "tools", "functions", "functionDeclarations", "function_declarations", "function"} {
			if inside := doc.get(key); inside != nil && !inside.scalar() {
				return definitionsIn(inside, levels-1)
			}
		}
	}
	return []*node{ourWords(doc)}
}

// ourWords is a definition as models are given it in the words of a contract.
func ourWords(doc *node) *node {
	parameters := doc.get("parameters")
	if parameters == nil || parameters.kind != objectKind || doc.get("input_schema") != nil || doc.get("inputSchema") != nil || !isBare(doc) {
		return doc
	}
	said := &node{kind: objectKind}
	for _, m := range doc.members {
		switch {
		case m.key == "parameters":
			said.set("input_schema", m.value)
		case m.key == "type" && m.value.text == "function":
		default:
			said.set(m.key, m.value)
		}
	}
	return said
}
