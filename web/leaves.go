package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// leaf is one value of a JSON document that a table gives a row.
type leaf struct {
	pointer string // RFC 6901
	path    string // the same for people: customer.phone, items[2].sku
	value   any
}

// leavesOf lists the leaves of a JSON object in the order of its bytes. Lists
// of plain values are one leaf.
func leavesOf(raw []byte) []leaf {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out []leaf
	if err := walk(dec, "", "", &out); err != nil {
		return []leaf{{value: string(raw)}}
	}
	return out
}

// Leaves returns every leaf of a JSON object under its pointer, the form in
// which FieldSource.Now takes the other side of a comparison.
func Leaves(object []byte) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, l := range leavesOf(object) {
		if raw, err := json.Marshal(l.value); err == nil {
			out[l.pointer] = raw
		}
	}
	return out
}

func walk(dec *json.Decoder, pointer, path string, out *[]leaf) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return walkObject(dec, pointer, path, out)
	case json.Delim('['):
		return walkArray(dec, pointer, path, out)
	}
	*out = append(*out, leaf{pointer, path, token})
	return nil
}

func walkObject(dec *json.Decoder, pointer, path string, out *[]leaf) error {
	empty := true
	for dec.More() {
		empty = false
		token, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		below := name
		if name == "" {
			below = `""`
		}
		if path != "" {
			below = path + "." + below
		}
		if err := walk(dec, pointer+"/"+escapePointer(name), below, out); err != nil {
			return err
		}
	}
	if empty && path != "" {
		*out = append(*out, leaf{pointer, path, map[string]any{}})
	}
	_, err := dec.Token()
	return err
}

func walkArray(dec *json.Decoder, pointer, path string, out *[]leaf) error {
	var inner []leaf
	flat := true
	list := []any{}
	for i := 0; dec.More(); i++ {
		at := pointer + "/" + strconv.Itoa(i)
		before := len(inner)
		if err := walk(dec, at, fmt.Sprintf("%s[%d]", path, i), &inner); err != nil {
			return err
		}
		plain := len(inner) == before+1 && inner[before].pointer == at
		if plain {
			_, isList := inner[before].value.([]any)
			_, isObject := inner[before].value.(map[string]any)
			plain = !isList && !isObject
		}
		flat = flat && plain
		if flat {
			list = append(list, inner[before].value)
		}
	}
	if flat {
		inner = []leaf{{pointer, path, list}}
	}
	*out = append(*out, inner...)
	_, err := dec.Token()
	return err
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// pathOf turns a pointer into the form for people.
func pathOf(pointer string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if _, err := strconv.Atoi(part); err == nil && b.Len() > 0 {
			b.WriteString("[" + part + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
