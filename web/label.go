package web

import (
	"strconv"
	"strings"
	"unicode"
)

// FieldName is a field's own name as people read it, for one that nobody gave
// a label: "New price" for /new_price, "Items 1 › Sku" for /items/0/sku.
func FieldName(pointer string) Text {
	return FieldSource{}.named(pointer, pathOf(pointer)).Label
}

// named begins a field with its label: the one that it was given, else its
// names from the outside in. In lists the label always says which item.
func (s FieldSource) named(pointer, path string) Field {
	f := Field{Path: Outside(path)}
	own, given := s.Label[pointer]
	parts, listed, said := s.parts(pointer)
	if given && !listed {
		f.Label = own
		return f
	}
	f.Label, f.Raw = Outside(strings.Join(parts, " › ")), !said
	return f
}

// parts are the names on the way to a place. An item of a list is its list's
// label, or its own, with its number from 1; said reports whether one of them
// is a label.
func (s FieldSource) parts(pointer string) (parts []string, listed, said bool) {
	at := ""
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		at += "/" + token
		label := s.Label[at].s
		said = said || label != ""
		index, err := strconv.Atoi(token)
		switch {
		case err == nil && len(parts) > 0:
			listed = true
			if label != "" {
				parts[len(parts)-1] = label
			}
			parts[len(parts)-1] += " " + strconv.Itoa(index+1)
		case label != "":
			parts = append(parts, label)
		case token == "":
			parts = append(parts, `""`)
		default:
			parts = append(parts, apart(strings.NewReplacer("~1", "/", "~0", "~").Replace(token), len(parts) == 0))
		}
	}
	return parts, listed, said
}

// apart writes a name such as new_price or newPrice as words. What is not made
// of plain letters, digits and joints stays as it is.
func apart(name string, first bool) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) ||
		strings.Trim(name, "_-") == "" {
		return name
	}
	var b strings.Builder
	runes := []rune(strings.Trim(name, "_-"))
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && unicode.IsLower(runes[i-1])
		lone := i+1 >= len(runes) || !unicode.IsUpper(runes[i+1])
		switch {
		case r == '_' || r == '-':
			b.WriteByte(' ')
			continue
		case begins:
			b.WriteByte(' ')
		}
		if begins && lone && i+1 < len(runes) {
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	words := b.String()
	if first {
		words = strings.ToUpper(words[:1]) + words[1:]
	}
	return words
}

// tellApart gives fields that would be called the same their whole names, and
// where that is not enough the payload's own.
func tellApart(fields []Field) {
	called := map[string]int{}
	for _, f := range fields {
		called[strings.ToLower(f.Label.s)]++
	}
	for i, f := range fields {
		if called[strings.ToLower(f.Label.s)] > 1 {
			fields[i].Label, fields[i].Raw = f.Path, true
		}
	}
}
