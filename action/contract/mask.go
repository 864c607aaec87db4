package contract

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
)

// Hidden stands where the contract hides a value.
const Hidden = "present, hidden by contract"

// Masked reports whether the contract hides the value at a place of the
// payload, itself or as part of something hidden.
func (c *Contract) Masked(pointer string) bool {
	return covered(c.Display.Mask, splitPointer(pointer))
}

// MaskJSON returns the payload with every hidden value replaced by Hidden. Of
// text that is not JSON it returns Hidden alone.
func (c *Contract) MaskJSON(payload []byte) []byte {
	doc, err := parseJSON(bytes.TrimSpace(payload), maxDepth)
	if err != nil {
		return stringNode(Hidden).json()
	}
	return c.mask(doc, nil, nil).json()
}

// MaskedPlaces lists the places of the payload that hold a hidden value.
func (c *Contract) MaskedPlaces(payload []byte) []string {
	doc, err := parseJSON(bytes.TrimSpace(payload), maxDepth)
	if err != nil {
		return nil
	}
	var places []string
	c.mask(doc, nil, &places)
	return places
}

func (c *Contract) mask(n *node, at []string, places *[]string) *node {
	if covered(c.Display.Mask, at) {
		if places != nil {
			*places = append(*places, joinTokens(at))
		}
		return stringNode(Hidden)
	}
	out := &node{kind: n.kind, text: n.text}
	for i, item := range n.items {
		out.items = append(out.items, c.mask(item, below(at, strconv.Itoa(i)), places))
	}
	for _, m := range n.members {
		out.members = append(out.members, member{m.key, c.mask(m.value, below(at, m.key), places)})
	}
	return out
}

// FilterOutput returns what the contract allows to be seen of a tool's output.
// It is nil when that is nothing.
func (c *Contract) FilterOutput(body []byte) []byte {
	doc, err := parseJSON(bytes.TrimSpace(body), maxDepth)
	if err != nil {
		return nil
	}
	kept := c.filter(doc, nil)
	if kept == nil {
		return nil
	}
	return kept.json()
}

func (c *Contract) filter(n *node, at []string) *node {
	if covered(c.Display.AllowOutput, at) {
		return n
	}
	out := &node{kind: n.kind, text: n.text}
	for i, item := range n.items {
		if kept := c.filter(item, below(at, strconv.Itoa(i))); kept != nil {
			out.items = append(out.items, kept)
		}
	}
	for _, m := range n.members {
		if kept := c.filter(m.value, below(at, m.key)); kept != nil {
			out.members = append(out.members, member{m.key, kept})
		}
	}
	if len(out.items) == 0 && len(out.members) == 0 {
		return nil
	}
	return out
}

func below(at []string, token string) []string { return append(at[:len(at):len(at)], token) }

// covered reports whether one of the pointers, where "*" is any one key or
// index, leads to the place or to something that holds it.
func covered(pointers []string, at []string) bool {
	return slices.ContainsFunc(pointers, func(pointer string) bool {
		pattern := splitPointer(pointer)
		if len(pattern) > len(at) {
			return false
		}
		for i, token := range pattern {
			if token != "*" && token != at[i] {
				return false
			}
		}
		return true
	})
}

// byPlace finds what is said of a place: by its own pointer, else by the first
// pattern with "*" that fits.
func byPlace[T any](said map[string]T, pointer string) (T, bool) {
	if v, ok := said[pointer]; ok {
		return v, true
	}
	at := splitPointer(pointer)
	for _, pattern := range slices.Sorted(maps.Keys(said)) {
		if len(splitPointer(pattern)) == len(at) && covered([]string{pattern}, at) {
			return said[pattern], true
		}
	}
	var none T
	return none, false
}
