package action

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// MaxBodyBytes bounds a request body unless MaxBytes says otherwise.
	MaxBodyBytes = 1 << 20

	maxBodyDepth = 2 * MaxPayloadDepth // a payload's own depth is judged by Canonical
)

// DecodeOption changes a limit of DecodeStrict.
type DecodeOption func(*decodeLimits)

type decodeLimits struct{ bytes int }

// MaxBytes sets the largest body that is read, in bytes.
func MaxBytes(n int) DecodeOption { return func(l *decodeLimits) { l.bytes = n } }

// DecodeStrict reads a request body, a JSON object, into the struct that into
// points to. It refuses duplicate keys at any depth, keys the struct does not
// name letter for letter, values of another type, bad UTF-8, lone surrogates,
// depth and size, and names all such places at once. A member that is null or
// absent stays as it was; whether it is needed is the caller's matter. A
// json.RawMessage gets the member's bytes as sent ("null" when null), with
// numbers unjudged: Canonical is for that.
//
// Refusals are malformed, too-large, invalid-payload when every wrong place
// lies under /payload, and invalid-argument otherwise.
func DecodeStrict(raw []byte, into any, options ...DecodeOption) error {
	limits := decodeLimits{bytes: MaxBodyBytes}
	for _, option := range options {
		option(&limits)
	}
	target := reflect.TypeOf(into)
	if target == nil || target.Kind() != reflect.Pointer || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decoding a body into %T: want a pointer to a struct", into)
	}
	if len(raw) > limits.bytes {
		return tooLarge("The body", limits.bytes)
	}
	s := &jsonScan{raw: raw, maxDepth: maxBodyDepth}
	s.document(jsonGuide{typ: target.Elem(), notNull: true})
	if err := s.verdict("The body", bodyCode(s.problems)); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decoding a checked body: %w", err)
	}
	return nil
}

func bodyCode(problems []jsonProblem) Code {
	elsewhere := func(p jsonProblem) bool {
		return p.pointer != "/payload" && !strings.HasPrefix(p.pointer, "/payload/")
	}
	if slices.ContainsFunc(problems, elsewhere) {
		return InvalidArgument
	}
	return InvalidPayload
}

// jsonGuide says what is expected at one place of a JSON text. Without a type
// anything is, at every depth below too.
type jsonGuide struct {
	typ     reflect.Type // never a pointer
	exact   bool         // numbers must keep their value as IEEE 754 doubles
	notNull bool
}

func guideFor(t reflect.Type) jsonGuide {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return jsonGuide{}
	case t.Kind() == reflect.Interface:
		return jsonGuide{exact: true}
	case t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32:
		return jsonGuide{typ: t, exact: true}
	}
	return jsonGuide{typ: t}
}

// member returns what is expected of the member with this key, and why the
// key itself is refused.
func (g jsonGuide) member(key string) (child jsonGuide, unknown string) {
	switch {
	case g.typ == nil:
		return g, ""
	case decodesItself(g.typ):
		return jsonGuide{}, ""
	case g.typ.Kind() == reflect.Map:
		return guideFor(g.typ.Elem()), ""
	case g.typ.Kind() != reflect.Struct:
		return jsonGuide{}, "" // check reports the object
	}
	members := membersOf(g.typ)
	for _, m := range members {
		if m.name == key {
			return guideFor(m.typ), ""
		}
	}
	return jsonGuide{}, unknownMember(key, members)
}

// element returns what is expected of an array's elements.
func (g jsonGuide) element() jsonGuide {
	if g.typ == nil {
		return g
	}
	if decodesItself(g.typ) || g.typ.Kind() != reflect.Slice && g.typ.Kind() != reflect.Array {
		return jsonGuide{}
	}
	child := guideFor(g.typ.Elem())
	child.notNull = g.typ.Elem().Kind() != reflect.Pointer
	return child
}

// check says what is wrong with the type of a value that is valid JSON; ""
// when it is as expected.
func (g jsonGuide) check(value []byte) string {
	if g.typ == nil {
		return ""
	}
	if string(value) == "null" && !g.notNull {
		return ""
	}
	expected, fits := "a value of another form", false
	decodes := func() bool { return json.Unmarshal(value, reflect.New(g.typ).Interface()) == nil }
	switch kind := g.typ.Kind(); {
	case g.typ == reflect.TypeFor[time.Time]():
		expected, fits = `a time such as "2026-01-31T09:30:00Z"`, decodes()
	case decodesItself(g.typ):
		fits = decodes()
	case kind == reflect.Struct || kind == reflect.Map:
		expected, fits = "an object", value[0] == '{'
	case kind == reflect.Slice || kind == reflect.Array:
		expected, fits = "an array", value[0] == '['
	case kind == reflect.String:
		expected, fits = "a string", value[0] == '"'
	case kind == reflect.Bool:
		expected, fits = "true or false", value[0] == 't' || value[0] == 'f'
	case kind == reflect.Float64 || kind == reflect.Float32:
		expected, fits = "a number", decodes()
	default:
		expected, fits = "a whole number in range, without fraction or exponent", decodes()
	}
	if fits && string(value) != "null" {
		return ""
	}
	return "send " + expected + " here"
}

// decodesItself reports whether encoding/json leaves the type's form to the type.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		t == reflect.TypeFor[[]byte]()
}

type jsonMember struct {
	name string
	typ  reflect.Type
}

// membersKnown keeps what membersOf found: types do not change.
var membersKnown sync.Map // reflect.Type → []jsonMember

// membersOf lists the members that encoding/json binds to a struct.
func membersOf(t reflect.Type) []jsonMember {
	if known, ok := membersKnown.Load(t); ok {
		return known.([]jsonMember)
	}
	var members []jsonMember
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
			continue
		case name == "" && field.Anonymous:
			continue // its own fields are listed in its place
		case name == "":
			name = field.Name
		}
		members = append(members, jsonMember{name, field.Type})
	}
	membersKnown.Store(t, members)
	return members
}

func unknownMember(key string, members []jsonMember) string {
	names := make([]string, len(members))
	closest, best := "", len(key)
	for i, m := range members {
		names[i] = fmt.Sprintf("%q", m.name)
		distance := editDistance(strings.ToLower(key), strings.ToLower(m.name))
		if distance <= len(m.name)/3 && distance < best {
			closest, best = names[i], distance
		}
	}
	if closest != "" {
		return "no member has this name; did you mean " + closest + "?"
	}
	return "no member has this name; known here are " + strings.Join(names, ", ")
}

// editDistance counts the bytes to insert, delete or replace to turn a into b.
// Names too different in length to be a slip of the pen are not compared.
func editDistance(a, b string) int {
	if len(a) > 2*len(b) {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
