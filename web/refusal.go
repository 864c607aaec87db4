package web

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Refusal is why something was not done, in codes; its words are in the locale
// files under refusal.<code>.<reason> and refusal.<code>.
type Refusal struct {
	Code   string
	Reason string
	Detail Text            // one English sentence, shown where there are no finer words
	Args   map[string]Text // what the words refer to
	Fields []RefusedField
}

// RefusedField is one wrong place of a form or a request.
type RefusedField struct {
	Name   string // name of the input; a JSON Pointer's slash is taken off
	Detail Text   // one English sentence
}

// NewRefusal makes a refusal from its parts.
func NewRefusal(code, reason, detail string, args map[string]string) *Refusal {
	r := &Refusal{Code: code, Reason: reason, Detail: Outside(detail), Args: map[string]Text{}}
	for k, v := range args {
		r.Args[k] = Outside(v)
	}
	return r
}

// At adds a wrong place.
func (r *Refusal) At(pointer, detail string) *Refusal {
	r.Fields = append(r.Fields, RefusedField{strings.TrimPrefix(pointer, "/"), Outside(detail)})
	return r
}

// Words is the refusal as a sentence or two: what was refused and what to do.
func (r *Refusal) Words() Msg {
	key := firstKnown("refusal."+r.Code+".plain", "refusal.internal.plain")
	if r.exact() {
		key = "refusal." + r.Code + "." + r.Reason
	}
	var pairs []any
	for _, k := range slices.Sorted(maps.Keys(r.Args)) {
		var value any = r.Args[k]
		if at, err := time.Parse(time.RFC3339, r.Args[k].s); err == nil {
			value = shown{at, BothZones}
		}
		pairs = append(pairs, k, value)
	}
	return msg(key, pairs...)
}

// exact reports whether there are words for this very reason, so that the
// English detail would only repeat them. Of several wrong places the reason is
// that of the first alone.
func (r *Refusal) exact() bool {
	return r.Reason != "" && len(r.Fields) < 2 && known("refusal."+r.Code+"."+r.Reason)
}

// detailed reports whether the English detail is shown. Somebody who reads another
// language gets it only where it says what no words of theirs say.
func (r *Refusal) detailed(l Lang) bool {
	if r.exact() || r.Detail.Empty() {
		return false
	}
	return l == English || !slices.ContainsFunc(r.Fields, func(f RefusedField) bool { _, said := f.words(); return said })
}

// field returns what is wrong with an input, if anything is.
func (r *Refusal) field(name string) (RefusedField, bool) {
	if r == nil {
		return RefusedField{}, false
	}
	for _, f := range r.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return RefusedField{}, false
}

// words is what is wrong with the place, in the viewer's language where there
// are words for it.
func (f RefusedField) words() (Msg, bool) {
	key := "wrong." + f.Name
	return msg(key), known(key)
}

// input is the one input of a form that the words are about, to jump to; "" when
// they are about more, or about something else.
func (r *Refusal) input() string {
	if len(r.Fields) != 1 || !r.exact() {
		return ""
	}
	name := r.Fields[0].Name
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return name
}
