package rule

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/action/contract"
)

// Form is a way in which two values that mean the same are written apart.
type Form string

// The forms.
const (
	FormZone     Form = "zone"     // the same moment in another time zone
	FormDecimals Form = "decimals" // the same number with other decimals, or as text
	FormExponent Form = "exponent" // an amount in the currency's smallest unit
	FormAbsent   Form = "absent"   // null, or not there at all
)

// Same compares a promised value with an observed one by what they mean, and
// says in which forms they differ. nil is a value that is not there. field is
// the JSON Pointer of the observed one: that it holds an amount, or one in
// cents, is only known from its name.
func Same(promised, observed json.RawMessage, field string) (same bool, forms []Form) {
	p, o := scalarOf(promised), scalarOf(observed)
	switch {
	case bytes.Equal(promised, observed):
		return true, nil
	case p.null || o.null:
		return p.null && o.null, []Form{FormAbsent}
	case p.text != "" && p.text == o.text && p.quoted == o.quoted:
		return true, nil
	}
	if a, ok := p.moment(); ok {
		b, ok := o.moment()
		return ok && a.Equal(b), []Form{FormZone}
	}
	name := field[strings.LastIndex(field, "/")+1:]
	if p.quoted && o.quoted && !contract.LooksMoney(name) {
		return false, nil // "1.10" and "1.1" may be two versions, "007" and "7" two ids
	}
	a, isNumber := p.number()
	b, isToo := o.number()
	switch {
	case !isNumber || !isToo:
		return false, nil
	case a.Cmp(b) == 0:
		return true, []Form{FormDecimals}
	case InCents(field) && b.IsInt() && a.Mul(a, big.NewRat(100, 1)).Cmp(b) == 0:
		return true, []Form{FormExponent}
	}
	return false, nil
}

// InCents reports whether the name of the field at a JSON Pointer says that its
// amount is in hundredths.
func InCents(field string) bool {
	name := field[strings.LastIndex(field, "/")+1:]
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' })
	return slices.Contains(words, "cents") || strings.HasSuffix(name, "Cents")
}

// scalar is a JSON value that can be compared by meaning.
type scalar struct {
	null   bool
	quoted bool
	text   string // "" for objects and lists
}

func scalarOf(raw json.RawMessage) scalar {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return scalar{null: true}
	}
	if raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return scalar{}
		}
		return scalar{quoted: true, text: text}
	}
	if raw[0] == '{' || raw[0] == '[' {
		return scalar{}
	}
	return scalar{text: string(raw)}
}

func (s scalar) moment() (time.Time, bool) {
	if !s.quoted {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, strings.Replace(s.text, " ", "T", 1))
	return t, err == nil
}

// plainNumber bounds what is computed exactly.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$`)

func (s scalar) number() (*big.Rat, bool) {
	if !plainNumber.MatchString(s.text) {
		return nil, false
	}
	return new(big.Rat).SetString(s.text)
}
