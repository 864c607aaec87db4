package contract

import (
	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/action"
)

// tooLong refuses a schema at pointer that a small value could take for ever to be
// judged by.
func tooLong(schema *jsonschema.Schema, pointer string) []action.FieldError {
	if problems := tooManyWays(schema, pointer); problems != nil {
		return problems
	}
	return tooOften(schema, pointer)
}

// tooOften refuses a schema at pointer that leads back to itself so that a value
// inside a value is judged more often at every level: a few levels, which any
// payload may have, would take for ever. tooManyWays has been asked before.
func tooOften(schema *jsonschema.Schema, pointer string) []action.FieldError {
	if schema == nil {
		return nil
	}
	w := weigher{at: map[*jsonschema.Schema]*judgedAt{}}
	w.add(schema)
	for range maxDepth {
		w.deeper()
		if w.at[schema].often > maxWays {
			return one(pointer+fragment(w.place(schema)), "leads back to itself more than once for the same value, so that what is inside is judged more often at every level. Name each field of what repeats in one place, not in several branches")
		}
	}
	return nil
}

// judgedAt is a schema that a value of its own is judged by, together with all
// that it asks of the same value.
type judgedAt struct {
	inside []ways // of each kind of place inside the value, the schemas that are asked of it
	often  int    // how often a value so many levels deeper is judged, at most maxWays and one
	next   int
}

// ways is how often each of some schemas is asked of one value.
type ways map[*jsonschema.Schema]int

// more adds a schema that is asked n times; anything else is none.
func (w ways) more(s any, n int) {
	if s, ok := s.(*jsonschema.Schema); ok && s != nil {
		w[s] = min(w[s]+n, maxWays+1)
	}
}

// weigher counts how often values are judged, level by level.
type weigher struct {
	at map[*jsonschema.Schema]*judgedAt
}

// add looks at a schema and at all that can be asked inside its values.
func (w *weigher) add(s *jsonschema.Schema) {
	if w.at[s] != nil {
		return
	}
	same := ways{}
	alongside(s, 1, same, map[*jsonschema.Schema]bool{})
	j := &judgedAt{inside: append(fieldsOf(same), itemsOf(same)...)}
	for _, n := range same {
		j.often = min(j.often+n, maxWays+1)
	}
	w.at[s] = j
	for _, place := range j.inside {
		for child := range place {
			w.add(child)
		}
	}
}

// deeper goes one level down everywhere.
func (w *weigher) deeper() {
	for _, j := range w.at {
		j.next = 0
		for _, place := range j.inside {
			j.next = max(j.next, w.judged(place))
		}
	}
	for _, j := range w.at {
		j.often = j.next
	}
}

func (w *weigher) judged(place ways) int {
	all := 0
	for child, n := range place {
		all = min(all+n*w.at[child].often, maxWays+1)
	}
	return all
}

// place is where, from a schema on, the values inside are first judged more than once.
func (w *weigher) place(s *jsonschema.Schema) string {
	for range maxDepth {
		var worst ways
		for _, place := range w.at[s].inside {
			if worst == nil || w.judged(place) > w.judged(worst) {
				worst = place
			}
		}
		if len(worst) != 1 {
			break
		}
		for child, n := range worst {
			if n > 1 {
				return s.Location
			}
			s = child
		}
	}
	return s.Location
}

// alongside counts in how many ways a schema, and whatever it asks of the same
// value, is asked. A way back to what is being asked ends there.
func alongside(s *jsonschema.Schema, n int, same ways, open map[*jsonschema.Schema]bool) {
	if open[s] {
		return
	}
	open[s] = true
	defer delete(open, s)
	same.more(s, n)
	for _, part := range beside(s) {
		alongside(part, n, same, open)
	}
}

// fieldsOf are the kinds of fields that an object can have, each with the schemas
// that are asked of it: every named one, one of another name, with and without a
// pattern that it fits, and the names themselves.
func fieldsOf(same ways) []ways {
	named := map[string]ways{}
	fits, other, names := ways{}, ways{}, ways{}
	for s, n := range same {
		for name := range s.Properties {
			named[name] = ways{}
		}
		for _, part := range s.PatternProperties {
			fits.more(part, n)
		}
		other.more(s.AdditionalProperties, n)
		for _, w := range []ways{fits, other} {
			w.more(s.UnevaluatedProperties, n)
		}
		names.more(s.PropertyNames, n)
	}
	all := []ways{fits, other, names}
	for name, w := range named {
		for s, n := range same {
			fieldOf(s, name, n, w)
		}
		all = append(all, w)
	}
	return all
}

// fieldOf adds what a schema, asked n times, asks of a field.
func fieldOf(s *jsonschema.Schema, name string, n int, w ways) {
	part, known := s.Properties[name]
	w.more(part, n)
	for pattern, part := range s.PatternProperties {
		if pattern.MatchString(name) {
			known = true
			w.more(part, n)
		}
	}
	if !known {
		w.more(s.AdditionalProperties, n)
		w.more(s.UnevaluatedProperties, n)
	}
}

// itemsOf are the kinds of items that a list can have: the first ones, as far as
// any schema tells them apart, and any later one.
func itemsOf(same ways) []ways {
	first := func(s *jsonschema.Schema) []*jsonschema.Schema {
		if list, ok := s.Items.([]*jsonschema.Schema); ok {
			return list
		}
		return s.PrefixItems
	}
	most := 0
	for s := range same {
		most = max(most, len(first(s)))
	}
	all := make([]ways, most+1)
	for i := range all {
		all[i] = ways{}
		for s, n := range same {
			all[i].more(s.Contains, n)
			if list := first(s); i < len(list) {
				all[i].more(list[i], n)
				continue
			}
			for _, rest := range []any{s.Items2020, s.Items, s.AdditionalItems, s.UnevaluatedItems} {
				all[i].more(rest, n)
			}
		}
	}
	return all
}
