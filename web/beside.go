package web

import (
	"strconv"
	"strings"
)

// fields are the rows of what was read beside the payload. An item of a list is
// one row, its fields in a line.
func (b Beside) fields() []Field {
	s := b.Read
	var out []Field
	for _, l := range leavesOf(s.Payload) {
		if b.Compared[l.pointer] {
			continue
		}
		if item, inside := itemOf(l.pointer); inside != "" {
			part := NamedValue{Name: s.partName(l.pointer, item), Value: s.value(l.pointer, l.value)}
			part.Value.words = true
			if last := len(out) - 1; last >= 0 && out[last].Path.s == pathOf(item) {
				out[last].Left.parts = append(out[last].Left.parts, part)
				continue
			}
			f := s.named(item, pathOf(item))
			f.Left, f.Group = Value{kind: valueRecord, parts: []NamedValue{part}}, Known
			out = append(out, f)
			continue
		}
		f := s.named(l.pointer, l.path)
		f.Left, f.Group = s.value(l.pointer, l.value), Known
		f.Left.words = !f.Raw
		b.promise(&f, l.pointer)
		if raw, read := b.Later[l.pointer]; read && f.Left.kind != valueHidden {
			f.Third = s.value(l.pointer, decodeAny(raw))
			f.Third.words = f.Left.words
		}
		out = append(out, f)
	}
	return out
}

// promise adds what stands in a field if the action succeeds.
func (b Beside) promise(f *Field, pointer string) {
	raw, promised := b.Promised[pointer]
	if !promised || f.Left.kind == valueHidden {
		return
	}
	f.Right = b.Read.value(pointer, decodeAny(raw))
	f.Right.words = f.Left.words
	if !b.Shown && !b.Asked {
		f.notes = append(f.notes, msg("field.promised"))
	}
	if f.Group = Same; !f.Left.equal(f.Right) {
		f.Group = Changed
	}
}

// itemOf splits a pointer after its first index: the item of a list, and what
// is inside it; "" when it is in none.
func itemOf(pointer string) (item, inside string) {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, token := range tokens[:len(tokens)-1] {
		if _, err := strconv.Atoi(token); err == nil && i > 0 {
			return "/" + strings.Join(tokens[:i+1], "/"), strings.Join(tokens[i+1:], "/")
		}
	}
	return pointer, ""
}

// partName names a field inside an item without naming the item again.
func (s FieldSource) partName(pointer, item string) Text {
	parts, _, _ := s.parts(pointer)
	before, _, _ := s.parts(item)
	return Outside(strings.Join(parts[len(before):], " › "))
}
