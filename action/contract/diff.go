package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Canonical returns the document as it was put, with its keys sorted. Two
// documents with the same canonical bytes are the same contract.
func (c *Contract) Canonical() []byte {
	doc, err := parseJSON(c.source, maxDepth)
	if err != nil { // the source was written by this package
		return c.source
	}
	return doc.sorted().json()
}

// Digest is the SHA-256 of Canonical, as "sha256:" and hex.
func (c *Contract) Digest() string {
	sum := sha256.Sum256(c.Canonical())
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (n *node) sorted() *node {
	out := &node{kind: n.kind, text: n.text}
	for _, item := range n.items {
		out.items = append(out.items, item.sorted())
	}
	for _, m := range n.members {
		out.members = append(out.members, member{m.key, m.value.sorted()})
	}
	slices.SortFunc(out.members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	return out
}

// Effective returns the contract with its defaults as JSON, which Parse reads
// as a full contract.
func (c *Contract) Effective() ([]byte, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing a contract: %w", err)
	}
	return raw, nil
}

// Change is one field that differs between two versions.
type Change struct {
	Pointer string
	Before  json.RawMessage // nil when the field is new
	After   json.RawMessage // nil when the field is gone
}

// Diff lists what differs in effect between two versions, defaults included,
// in the order of the new one.
func Diff(before, after *Contract) ([]Change, error) {
	var docs [2]*node
	for i, c := range []*Contract{before, after} {
		raw, err := c.Effective()
		if err != nil {
			return nil, err
		}
		if docs[i], err = parseJSON(raw, maxDepth+1); err != nil {
			return nil, err
		}
	}
	return diff(nil, "", docs[0], docs[1]), nil
}

func diff(changes []Change, at string, before, after *node) []Change {
	switch {
	case before != nil && after != nil && before.kind == objectKind && after.kind == objectKind:
		for _, m := range after.members {
			changes = diff(changes, join(at, m.key), before.get(m.key), m.value)
		}
		for _, m := range before.members {
			if after.get(m.key) == nil {
				changes = diff(changes, join(at, m.key), m.value, nil)
			}
		}
		return changes
	case before != nil && after != nil && before.kind == listKind && after.kind == listKind:
		for i := range max(len(before.items), len(after.items)) {
			changes = diff(changes, join(at, strconv.Itoa(i)), before.item(i), after.item(i))
		}
		return changes
	}
	old, now := before.raw(), after.raw()
	if bytes.Equal(old, now) {
		return changes
	}
	return append(changes, Change{Pointer: at, Before: old, After: now})
}

func (n *node) item(i int) *node {
	if i < len(n.items) {
		return n.items[i]
	}
	return nil
}

func (n *node) raw() json.RawMessage {
	if n == nil {
		return nil
	}
	return n.json()
}
