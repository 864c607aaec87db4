package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Text is one sentence in several languages, by BCP 47 tag. A sentence whose
// language is not said has the tag "".
type Text map[string]string

// In returns the sentence in lang, or else in its base language, in English,
// in the unnamed language, or in any other; "" when there is none.
func (t Text) In(lang string) string {
	base, _, _ := strings.Cut(lang, "-")
	for _, tag := range []string{lang, base, "en", ""} {
		if s, ok := t[tag]; ok {
			return s
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(t)) {
		return t[tag]
	}
	return ""
}

// UnmarshalJSON reads a string or an object of strings.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*t = Text{"": s}
		return nil
	}
	m := map[string]string{}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	*t = m
	return nil
}

// MarshalJSON writes a string when the language is not said.
func (t Text) MarshalJSON() ([]byte, error) {
	if s, ok := t[""]; ok && len(t) == 1 {
		return json.Marshal(s)
	}
	return json.Marshal(map[string]string(t))
}

// Duration is a time.Duration written like "15m" or "24h".
type Duration struct{ time.Duration }

// String writes the duration without zero parts: "15m", not "15m0s".
func (d Duration) String() string {
	s := d.Duration.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string such as "90s".
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	d.Duration = parsed
	return nil
}

// Pointers is one JSON Pointer or several.
type Pointers []string

// UnmarshalJSON reads a string or a list of strings.
func (p *Pointers) UnmarshalJSON(raw []byte) error {
	list, err := oneOrMany(raw)
	*p = list
	return err
}

// MarshalJSON writes one pointer as a string.
func (p Pointers) MarshalJSON() ([]byte, error) {
	if len(p) == 1 {
		return json.Marshal(p[0])
	}
	return json.Marshal([]string(p))
}

// Body says what of the payload is the request's body.
type Body struct {
	All     bool     // the canonical payload, byte for byte
	Pointer string   // the value there
	Fields  []string // an object of these top-level fields
}

// None reports whether the request has no body.
func (b Body) None() bool { return !b.All && b.Pointer == "" && len(b.Fields) == 0 }

// UnmarshalJSON reads "payload", "none", a JSON Pointer or a list of fields.
func (b *Body) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, &b.Fields)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	b.All = s == "payload"
	if strings.HasPrefix(s, "/") {
		b.Pointer = s
	}
	return nil
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (b Body) MarshalJSON() ([]byte, error) {
	switch {
	case b.All:
		return json.Marshal("payload")
	case b.Pointer != "":
		return json.Marshal(b.Pointer)
	case len(b.Fields) > 0:
		return json.Marshal(b.Fields)
	}
	return json.Marshal("none")
}

func oneOrMany(raw []byte) ([]string, error) {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return []string{s}, err
	}
	var list []string
	err := json.Unmarshal(raw, &list)
	return list, err
}
