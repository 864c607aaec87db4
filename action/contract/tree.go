package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"countersign/action"
)

// Bounds of a contract's document.
const (
	maxDocument = 256 << 10 // bytes
	maxDepth    = 64        // nested objects and lists
)

type valueKind byte

const (
	nullKind valueKind = iota
	boolKind
	numberKind
	stringKind
	listKind
	objectKind
)

// node is a JSON value that keeps the order of keys and the text of numbers.
type node struct {
	kind    valueKind
	text    string // a string's value, a number's or boolean's literal
	items   []*node
	members []member
	index   map[string]*node // of members, when there are many
}

type member struct {
	key   string
	value *node
}

func stringNode(s string) *node { return &node{kind: stringKind, text: s} }

// get returns the member of an object, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	if n.index != nil {
		return n.index[key]
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// manyMembers is from how many members on an object is looked up by an index.
const manyMembers = 16

// indexed makes lookups in a large object take no longer than in a small one.
func (n *node) indexed() *node {
	if len(n.members) >= manyMembers {
		n.index = make(map[string]*node, len(n.members))
		for _, m := range n.members {
			n.index[m.key] = m.value
		}
	}
	return n
}

// set replaces the member of an object or adds it at the end.
func (n *node) set(key string, value *node) {
	for i := range n.members {
		if n.members[i].key == key {
			n.members[i].value = value
			return
		}
	}
	n.members = append(n.members, member{key, value})
	n.index = nil
}

// at follows a JSON Pointer and returns nil where it leads nowhere.
func (n *node) at(pointer string) *node {
	for _, token := range splitPointer(pointer) {
		if n == nil {
			return nil
		}
		if n.kind == listKind {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n.items) || strconv.Itoa(i) != token {
				return nil
			}
			n = n.items[i]
			continue
		}
		n = n.get(token)
	}
	return n
}

func (n *node) scalar() bool { return n != nil && n.kind != listKind && n.kind != objectKind }

// json returns the value as compact JSON.
func (n *node) json() []byte { return n.appendJSON(nil) }

func (n *node) appendJSON(out []byte) []byte {
	switch n.kind {
	case stringKind:
		return appendString(out, n.text)
	case listKind:
		out = append(out, '[')
		for i, item := range n.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.appendJSON(out)
		}
		return append(out, ']')
	case objectKind:
		out = append(out, '{')
		for i, m := range n.members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, m.key), ':')
			out = m.value.appendJSON(out)
		}
		return append(out, '}')
	}
	return append(out, n.text...)
}

// appendString writes a string the way RFC 8785 does.
func appendString(out []byte, s string) []byte {
	const short = "btnvfr" // escapes of U+0008 to U+000D; there is none for U+000B
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= 0x08 && c <= 0x0d && c != 0x0b:
			out = append(out, '\\', short[c-0x08])
		case c < 0x20:
			out = fmt.Appendf(out, "\\u%04x", c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// replacement finds U+FFFD that the sender wrote, as opposed to one that
// encoding/json put in place of a lone surrogate.
var replacement = regexp.MustCompile(`(?i)\x{FFFD}|\\ufffd`)

// parseJSON reads one JSON value: no duplicate keys, nothing after it, at
// most depth levels.
func parseJSON(raw []byte, depth int) (*node, error) {
	if !utf8.Valid(raw) {
		return nil, action.Refuse(action.Malformed, "The document is not UTF-8 text.")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	n, err := readValue(dec, "", depth)
	if err != nil {
		return nil, malformed(err, "JSON")
	}
	if bytes.ContainsRune(n.json(), utf8.RuneError) && !replacement.Match(raw) {
		return nil, action.Refuse(action.Malformed, "The document holds half of a surrogate pair, which is no character.")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, action.Refuse(action.Malformed, "More follows after the JSON value. Send exactly one document.")
	}
	return n, nil
}

func malformed(err error, format string) error {
	var r *action.Refusal
	if errors.As(err, &r) {
		return r
	}
	return action.Refuse(action.Malformed, fmt.Sprintf("The document is not %s: %v.", format, err)).From(err)
}

func readValue(dec *json.Decoder, pointer string, depth int) (*node, error) {
	if depth < 0 {
		return nil, tooDeep(pointer)
	}
	token, err := dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return readObject(dec, pointer, depth)
		}
		return readList(dec, pointer, depth)
	case string:
		return stringNode(v), nil
	case json.Number:
		return &node{kind: numberKind, text: v.String()}, nil
	case bool:
		return &node{kind: boolKind, text: strconv.FormatBool(v)}, nil
	}
	return &node{kind: nullKind, text: "null"}, nil
}

func readObject(dec *json.Decoder, pointer string, depth int) (*node, error) {
	n := &node{kind: objectKind}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		if seen[key] {
			return nil, duplicate(join(pointer, key))
		}
		seen[key] = true
		value, err := readValue(dec, join(pointer, key), depth-1)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member{key, value})
	}
	_, err := dec.Token()
	return n.indexed(), err
}

func readList(dec *json.Decoder, pointer string, depth int) (*node, error) {
	n := &node{kind: listKind}
	for dec.More() {
		item, err := readValue(dec, join(pointer, strconv.Itoa(len(n.items))), depth-1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := dec.Token()
	return n, err
}

func duplicate(pointer string) error {
	return action.Refuse(action.Malformed, "A key appears twice in one object. Keep one of them.").
		At(pointer, "appears twice")
}

func tooDeep(pointer string) error {
	return action.Refuse(action.Malformed, "The document is nested too deeply.").
		At(pointer, "is nested too deeply")
}
