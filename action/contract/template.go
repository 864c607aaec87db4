package contract

import (
	"errors"
	"strings"
)

// part is a piece of a template: words, or the place of a value.
type part struct {
	text    string
	pointer string // "" for words
}

var errTemplate = errors.New("has a placeholder that is not {{field}} or {{/json/pointer}}")

// splitTemplate takes "{{field}} to {{/a/b}}" apart.
func splitTemplate(template string) ([]part, error) {
	return splitBetween(template, "{{", "}}", errTemplate)
}

func splitBetween(template, open, end string, bad error) ([]part, error) {
	var parts []part
	for template != "" {
		before, rest, found := strings.Cut(template, open)
		if strings.Contains(before, end) {
			return nil, bad
		}
		if before != "" {
			parts = append(parts, part{text: before})
		}
		if !found {
			return parts, nil
		}
		name, after, closed := strings.Cut(rest, end)
		name = strings.TrimSpace(name)
		if !closed || name == "" || strings.ContainsAny(name, "{}") {
			return nil, bad
		}
		parts = append(parts, part{pointer: place(name)})
		template = after
	}
	return parts, nil
}
