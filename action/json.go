package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

const (
	// MaxPayloadBytes bounds a payload, as sent and in canonical form.
	MaxPayloadBytes = 256 << 10
	// MaxPayloadDepth bounds how deep objects and arrays nest in a payload; {} is depth 1.
	MaxPayloadDepth = 32

	maxProblems     = 20   // places named in one refusal
	maxPointerBytes = 1024 // longer pointers are cut to an enclosing place
)

// Canonical checks a payload and returns its RFC 8785 form, the bytes that are
// hashed, stored and shown. It refuses, and never repairs, what two readers
// could read differently. Every error that the input can cause is a *Refusal
// (malformed, invalid-payload or too-large) whose pointers start at the payload.
func Canonical(raw []byte) ([]byte, error) {
	if len(raw) > MaxPayloadBytes {
		return nil, tooLarge("The payload", MaxPayloadBytes)
	}
	s := &jsonScan{raw: raw, maxDepth: MaxPayloadDepth}
	if start := s.document(jsonGuide{exact: true}); s.broken == nil && raw[start] != '{' {
		s.report("not-object", "a payload is a JSON object; wrap the value, for example {\"value\": …}")
	}
	if err := s.verdict("The payload", InvalidPayload); err != nil {
		return nil, err
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return nil, fmt.Errorf("canonicalizing a checked payload: %w", err)
	}
	if len(canonical) > MaxPayloadBytes { // 1e20 is written out in full
		return nil, tooLarge("The payload in canonical form", MaxPayloadBytes)
	}
	return canonical, nil
}

// Under moves the pointers of the refusal in err below prefix, for a value
// that was checked on its own but arrived inside a larger body. Other errors
// come back as they are.
func Under(prefix string, err error) error {
	var r *Refusal
	if !errors.As(err, &r) {
		return err
	}
	moved := *r
	moved.Errors = slices.Clone(r.Errors)
	for i := range moved.Errors {
		moved.Errors[i].Pointer = prefix + moved.Errors[i].Pointer
	}
	return &moved
}

func tooLarge(subject string, limit int) *Refusal {
	detail := fmt.Sprintf("%s is larger than %d KiB; send a reference to large content instead of the content.", subject, limit>>10)
	return Refuse(TooLarge, detail).With("limit", strconv.Itoa(limit)).At("", detail)
}

// jsonScan reads one JSON text once, from left to right. Text that is no JSON
// ends the scan; JSON that is refused is noted and the scan goes on, so that
// one answer names every place.
type jsonScan struct {
	raw      []byte
	pos      int
	depth    int
	maxDepth int
	path     []jsonToken
	problems []jsonProblem
	broken   *jsonProblem // why the text is no JSON
}

// jsonToken is one step of a JSON Pointer: an array index, or a key when index is -1.
type jsonToken struct {
	key   string
	index int
}

type jsonProblem struct{ pointer, reason, detail string }

// document scans the whole text and returns where its value starts. The
// methods below return false when the scan cannot go on.
func (s *jsonScan) document(g jsonGuide) int {
	if bytes.HasPrefix(s.raw, []byte("\xef\xbb\xbf")) {
		s.fail("it starts with a byte order mark; send plain UTF-8 without one")
		return 0
	}
	s.space()
	start := s.pos
	if s.value(g) {
		s.space()
		if s.pos < len(s.raw) {
			s.fail("more text follows the end of the value; send one value only")
		}
	}
	return start
}

func (s *jsonScan) value(g jsonGuide) bool {
	if s.pos >= len(s.raw) {
		return s.fail("the text ends where a value should be")
	}
	start := s.pos
	ok := false
	switch c := s.raw[s.pos]; {
	case c == '{':
		ok = s.object(g)
	case c == '[':
		ok = s.array(g)
	case c == '"':
		ok = s.text()
	case c == '-' || isDigit(c):
		ok = s.number(g)
	default:
		ok = s.literal()
	}
	if !ok {
		return false
	}
	if detail := g.check(s.raw[start:s.pos]); detail != "" {
		s.report("wrong-type", detail)
	}
	return true
}

func (s *jsonScan) object(g jsonGuide) bool {
	if !s.enter() {
		return false
	}
	if s.space(); s.eat('}') {
		return s.leave()
	}
	seen := map[string]bool{}
	for {
		key, clean, ok := s.key()
		if !ok {
			return false
		}
		s.path = append(s.path, jsonToken{key, -1})
		if clean && seen[key] {
			s.report("duplicate-key", "this key appears more than once in its object; send it once")
		}
		seen[key] = seen[key] || clean
		child, unknown := g.member(key)
		if unknown != "" {
			s.report("unknown-member", unknown)
		}
		if !s.value(child) {
			return false
		}
		s.path = s.path[:len(s.path)-1]
		if s.space(); s.eat('}') {
			return s.leave()
		}
		if !s.eat(',') {
			return s.fail("a ',' or '}' is missing")
		}
		s.space()
	}
}

// key reads a key and its colon. It is clean when nothing had to be replaced
// to decode it; an unclean key has been reported.
func (s *jsonScan) key() (key string, clean, ok bool) {
	if s.pos >= len(s.raw) || s.raw[s.pos] != '"' {
		return "", false, s.fail("a key in double quotes is missing")
	}
	start := s.pos
	found, ok := s.quoted()
	if !ok {
		return "", false, false
	}
	if quoted := s.raw[start:s.pos]; found == plainText {
		key = string(quoted[1 : len(quoted)-1])
	} else if err := json.Unmarshal(quoted, &key); err != nil {
		return "", false, s.fail("a key cannot be read")
	}
	if s.space(); !s.eat(':') {
		return "", false, s.fail("a ':' is missing after a key")
	}
	s.space()
	if found.defect() {
		s.path = append(s.path, jsonToken{key, -1})
		s.reportText(found)
		s.path = s.path[:len(s.path)-1]
	}
	return key, !found.defect(), true
}

func (s *jsonScan) array(g jsonGuide) bool {
	if !s.enter() {
		return false
	}
	if s.space(); s.eat(']') {
		return s.leave()
	}
	element := g.element()
	for i := 0; ; i++ {
		s.path = append(s.path, jsonToken{index: i})
		if !s.value(element) {
			return false
		}
		s.path = s.path[:len(s.path)-1]
		if s.space(); s.eat(']') {
			return s.leave()
		}
		if !s.eat(',') {
			return s.fail("a ',' or ']' is missing")
		}
		s.space()
	}
}

func (s *jsonScan) enter() bool {
	s.pos++
	s.depth++
	if s.depth > s.maxDepth {
		s.report("too-deep", fmt.Sprintf("objects and arrays nest deeper than %d levels; flatten it, or send this part as a string", s.maxDepth))
		return false
	}
	return true
}

func (s *jsonScan) leave() bool {
	s.depth--
	return true
}

func (s *jsonScan) literal() bool {
	rest := s.raw[s.pos:]
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			s.pos += len(word)
			return true
		}
	}
	for _, word := range []string{"NaN", "Infinity"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			return s.fail("JSON has no " + word + "; send null or a string")
		}
	}
	return s.fail("a value is missing here, or is not written as JSON")
}

func (s *jsonScan) number(g jsonGuide) bool {
	start := s.pos
	s.eat('-')
	if !s.eat('0') && s.digits() == 0 {
		return s.fail("a digit is missing after '-'")
	}
	if s.eat('.') && s.digits() == 0 {
		return s.fail("a digit is missing after '.'")
	}
	if s.eat('e') || s.eat('E') {
		if !s.eat('+') {
			s.eat('-')
		}
		if s.digits() == 0 {
			return s.fail("a digit is missing in an exponent")
		}
	}
	if g.exact {
		if detail := changedNumber(string(s.raw[start:s.pos])); detail != "" {
			s.report("changed-number", detail)
		}
	}
	return true
}

func (s *jsonScan) digits() int {
	start := s.pos
	for s.pos < len(s.raw) && isDigit(s.raw[s.pos]) {
		s.pos++
	}
	return s.pos - start
}

func (s *jsonScan) space() {
	for s.pos < len(s.raw) && strings.IndexByte(" \t\n\r", s.raw[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *jsonScan) eat(c byte) bool {
	if s.pos < len(s.raw) && s.raw[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// fail ends the scan: the text is no JSON.
func (s *jsonScan) fail(detail string) bool {
	pointer, _ := s.pointer()
	s.broken = &jsonProblem{pointer, "syntax", fmt.Sprintf("%s (byte offset %d)", detail, s.pos)}
	return false
}

// report notes JSON that is refused at the current place.
func (s *jsonScan) report(reason, detail string) {
	if len(s.problems) == maxProblems {
		return
	}
	pointer, whole := s.pointer()
	if !whole {
		detail += "; the place is inside this one, its own pointer is too long to show"
	}
	s.problems = append(s.problems, jsonProblem{pointer, reason, detail})
}

// pointer returns the JSON Pointer of the current place, or of the nearest
// enclosing one whose pointer is short enough to answer with.
func (s *jsonScan) pointer() (pointer string, whole bool) {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, token := range s.path {
		step := strconv.Itoa(token.index)
		if token.index < 0 {
			step = escape.Replace(strings.ToValidUTF8(token.key, string(utf8.RuneError)))
		}
		if len(pointer)+1+len(step) > maxPointerBytes {
			return pointer, false
		}
		pointer += "/" + step
	}
	return pointer, true
}

// verdict turns what the scan found into one refusal, or nil.
func (s *jsonScan) verdict(subject string, code Code) error {
	if b := s.broken; b != nil {
		return Refuse(Malformed, subject+" is not JSON: "+b.detail+".").Because(b.reason).At(b.pointer, b.detail)
	}
	if len(s.problems) == 0 {
		return nil
	}
	first := s.problems[0]
	r := Refuse(code, fmt.Sprintf("%s was refused: %s. The errors say where.", subject, first.detail)).Because(first.reason)
	for _, p := range s.problems {
		r.At(p.pointer, p.detail)
	}
	return r
}
