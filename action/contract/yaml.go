package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"countersign/action"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// maxWords bounds what the YAML parser is given: its time grows with the square
// of the keys of a mapping.
const maxWords = 20_000

// maxMembers bounds the members of a contract itself.
const maxMembers = 500

// parseDocument reads JSON, or YAML that means exactly one JSON value.
func parseDocument(raw []byte) (*node, error) {
	if len(raw) > maxDocument {
		return nil, action.Refuse(action.TooLarge, fmt.Sprintf("A contract has at most %d KiB.", maxDocument>>10))
	}
	text := strings.TrimLeft(strings.TrimPrefix(string(raw), "\ufeff"), " \t\r\n")
	if text == "" {
		return nil, action.Refuse(action.Malformed, "The document is empty. Send one contract as YAML or JSON.")
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		return parseJSON([]byte(text), maxDepth)
	}
	doc, err := parseYAML(raw)
	if err != nil && beginsAsJSON(text) {
		if told := badJSON(raw, text); told != nil {
			return nil, told
		}
	}
	return doc, err
}

// beginsAsJSON reports whether whoever wrote a text meant JSON: YAML needs no quotes
// there.
func beginsAsJSON(text string) bool {
	opened := strings.TrimLeft(text, "{[ \t\r\n")
	return opened != text && strings.HasPrefix(opened, `"`)
}

// badJSON says where a text stops being JSON; nil where it is.
func badJSON(raw []byte, text string) error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(text), new(json.RawMessage)); !errors.As(err, &syntax) {
		return nil
	}
	before := string(raw[:max(0, min(len(raw), len(raw)-len(text)+int(syntax.Offset)-1))])
	line, column := strings.Count(before, "\n")+1, utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])+1
	return action.Refuse(action.Malformed, fmt.Sprintf("The document is not JSON: line %d, column %d: %s.", line, column, syntax.Error())).From(syntax)
}

func parseYAML(raw []byte) (*node, error) {
	if !utf8.Valid(raw) {
		return nil, action.Refuse(action.Malformed, "The document is not UTF-8 text.")
	}
	if nesting(raw) > maxDepth {
		return nil, tooDeep("")
	}
	words := lexer.Tokenize(string(raw))
	if len(words) > maxWords {
		return nil, action.Refuse(action.TooLarge, fmt.Sprintf("A contract in YAML has at most %d words and marks. Send a larger one as JSON.", maxWords))
	}
	file, err := parser.Parse(words, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, badYAML(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, action.Refuse(action.Malformed, "The file holds several YAML documents. Send one contract at a time.")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, action.Refuse(action.Malformed, "The document is empty. Send one contract as YAML or JSON.")
	}
	return fromYAML(body, "", maxDepth)
}

func badYAML(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		return action.Refuse(action.Malformed, fmt.Sprintf("The document is not YAML: line %d: %s.",
			syntax.Token.Position.Line, syntax.Message)).From(err)
	}
	return action.Refuse(action.Malformed, "The document is not YAML.").From(err)
}

// nesting bounds how deep the text can nest, before a parser recurses into it.
func nesting(raw []byte) int {
	deepest, flow, line := 0, 0, 0
	start := true
	for _, c := range raw {
		switch {
		case c == '\n':
			line, start = 0, true
		case start && (c == '-' || c == '?'):
			line++
		case c != ' ' && c != '\t':
			start = false
		}
		switch c {
		case '[', '{':
			flow++
		case ']', '}':
			flow = max(0, flow-1)
		}
		deepest = max(deepest, flow, line)
	}
	return deepest
}

func fromYAML(n ast.Node, pointer string, depth int) (*node, error) {
	if depth < 0 {
		return nil, tooDeep(pointer)
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		return fromMapping(v.Values, pointer, depth)
	case *ast.MappingValueNode:
		return fromMapping([]*ast.MappingValueNode{v}, pointer, depth)
	case *ast.SequenceNode:
		list := &node{kind: listKind}
		for i, item := range v.Values {
			value, err := fromYAML(item, join(pointer, strconv.Itoa(i)), depth-1)
			if err != nil {
				return nil, err
			}
			list.items = append(list.items, value)
		}
		return list, nil
	case *ast.StringNode:
		return stringNode(v.Value), nil
	case *ast.LiteralNode:
		return stringNode(v.Value.Value), nil
	case *ast.BoolNode:
		return &node{kind: boolKind, text: strconv.FormatBool(v.Value)}, nil
	case *ast.NullNode:
		return &node{kind: nullKind, text: "null"}, nil
	case *ast.IntegerNode, *ast.FloatNode:
		return fromNumber(n.GetToken().Value, pointer)
	}
	return nil, action.Refuse(action.Malformed, "Anchors, aliases, tags, merge keys and special numbers are not used in contracts. Write the value out.").
		At(pointer, fmt.Sprintf("uses YAML's %s", strings.ToLower(n.Type().String())))
}

func fromMapping(values []*ast.MappingValueNode, pointer string, depth int) (*node, error) {
	object := &node{kind: objectKind}
	for _, v := range values {
		key, err := yamlKey(v.Key, pointer)
		if err != nil {
			return nil, err
		}
		if object.get(key) != nil {
			return nil, duplicate(join(pointer, key))
		}
		value, err := fromYAML(v.Value, join(pointer, key), depth-1)
		if err != nil {
			return nil, err
		}
		object.members = append(object.members, member{key, value})
	}
	return object, nil
}

func yamlKey(key ast.MapKeyNode, pointer string) (string, error) {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return key.GetToken().Value, nil
	}
	return "", action.Refuse(action.Malformed, "Keys are plain words. Anchors, aliases, merge keys and compound keys are not used in contracts.").
		At(pointer, "has a key that is no plain word")
}

// fromNumber takes a number only when JSON writes it the same way, because
// YAML also reads 0x1F, 1_000 and 010 as numbers.
func fromNumber(literal, pointer string) (*node, error) {
	var number json.Number
	if err := json.Unmarshal([]byte(literal), &number); err != nil {
		return nil, action.Refuse(action.Malformed, "A number is not written the way JSON writes it. Write it in decimal, or put it in quotes to make it text.").
			At(pointer, "is not a decimal number")
	}
	return &node{kind: numberKind, text: number.String()}, nil
}
