package contract

import (
	"net/url"
	"strings"
)

// Segment is a piece of a sentence about a payload. Words come from the
// contract; values come from outside and are shown as such.
type Segment struct {
	Text     string // words, or a scalar's text, or compact JSON; "" when hidden or missing
	Value    bool   // the text comes from the payload
	Pointer  string // of the value
	Hidden   bool   // the contract hides the value
	Missing  bool   // the payload has no such value
	Currency string // of an amount, when it is stated
}

// Heading is the tool's title in a language, or its name.
func (c *Contract) Heading(lang string) string {
	if title := c.Title.In(lang); title != "" {
		return title
	}
	return c.Name
}

// Summary is the effect of a payload as the contract words it; nil when the
// contract has no words for it (see Headline).
func (c *Contract) Summary(lang string, payload []byte) []Segment {
	parts, err := splitTemplate(c.Display.Summary.In(lang))
	if err != nil || len(parts) == 0 {
		return nil
	}
	doc, err := parsePayload(payload)
	if err != nil {
		return nil
	}
	var segments []Segment
	for _, p := range parts {
		if p.pointer == "" {
			segments = append(segments, Segment{Text: p.text})
			continue
		}
		segments = append(segments, c.segment(doc, p.pointer))
	}
	return segments
}

// headlineFields is how many values stand for an effect without words.
const headlineFields = 3

// Headline is the effect of a payload under a contract without words: the
// first three required scalars in the order of the schema, or the first three
// scalars when nothing is required. What looks like a secret is left out.
func (c *Contract) Headline(payload []byte) []Segment {
	doc, err := parsePayload(payload)
	if err != nil {
		return nil
	}
	if segments := c.headline(doc, c.requiredFields()); len(segments) > 0 {
		return segments
	}
	names := c.Fields()
	if len(names) == 0 {
		for _, m := range doc.members {
			names = append(names, m.key)
		}
	}
	return c.headline(doc, names)
}

func (c *Contract) headline(doc *node, names []string) []Segment {
	var segments []Segment
	for _, name := range names {
		value := doc.get(name)
		if !value.scalar() || value.kind == nullKind || LooksSecret(name) {
			continue
		}
		segments = append(segments, c.segment(doc, join("", name)))
		if len(segments) == headlineFields {
			break
		}
	}
	return segments
}

// Fields lists the payload's top-level fields in the order of the schema.
func (c *Contract) Fields() []string {
	var names []string
	for _, f := range c.fields {
		names = append(names, f.name)
	}
	return names
}

func (c *Contract) requiredFields() []string {
	var names []string
	for _, f := range c.fields {
		if f.required {
			names = append(names, f.name)
		}
	}
	return names
}

func (c *Contract) segment(doc *node, pointer string) Segment {
	s := Segment{Value: true, Pointer: pointer}
	value := doc.at(pointer)
	switch {
	case value == nil:
		s.Missing = true
	case c.Masked(pointer):
		s.Hidden = true
	case value.scalar():
		s.Text = value.text
	default:
		s.Text = string(c.mask(value, splitPointer(pointer), nil).json())
	}
	if amount, ok := c.amountAt(doc, pointer); ok && s.Text != "" {
		s.Text, s.Currency = amount.Text, amount.Currency
	}
	return s
}

// Label is the name of a place in a language: the contract's label, else the
// schema's title, else "".
func (c *Contract) Label(lang, pointer string) string {
	if label, ok := byPlace(c.Display.Labels, pointer); ok {
		return label.In(lang)
	}
	return c.schemaText(splitPointer(pointer), "title")
}

// Hint is what the schema says of a place, or "".
func (c *Contract) Hint(pointer string) string {
	return c.schemaText(splitPointer(pointer), "description")
}

// schemaText follows properties and items to a place and reads a keyword.
func (c *Contract) schemaText(at []string, keyword string) string {
	n := c.schema
	for _, token := range at {
		if next := n.get("properties").get(token); next != nil {
			n = next
			continue
		}
		n = n.get("items")
	}
	if text := n.get(keyword); text != nil && text.kind == stringKind {
		return text.text
	}
	return ""
}

// Links are the addresses that the contract gives for a payload. One that
// needs a hidden, missing or compound value is left out.
func (c *Contract) Links(payload []byte) []string {
	doc, err := parsePayload(payload)
	if err != nil {
		return nil
	}
	var links []string
	for _, template := range c.Display.Links {
		if link, ok := c.link(doc, template); ok {
			links = append(links, link)
		}
	}
	return links
}

func (c *Contract) link(doc *node, template string) (string, bool) {
	parts, err := splitTemplate(template)
	if err != nil {
		return "", false
	}
	var link strings.Builder
	for _, p := range parts {
		if p.pointer == "" {
			link.WriteString(p.text)
			continue
		}
		text, ok := wireText(doc.at(p.pointer))
		if !ok || text == "" || text == "." || text == ".." || c.Masked(p.pointer) {
			return "", false
		}
		if strings.Contains(link.String(), "?") {
			link.WriteString(url.QueryEscape(text))
		} else {
			link.WriteString(url.PathEscape(text))
		}
	}
	return link.String(), true
}
