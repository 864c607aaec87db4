package action

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// textFinding says what a scanned JSON string is made of.
type textFinding int

const (
	plainText     textFinding = iota // the bytes between the quotes are the text
	escapedText                      // valid, with escapes to decode
	badUTF8                          // bytes that are not UTF-8
	loneSurrogate                    // half of a surrogate pair, which is no character
)

func (f textFinding) defect() bool { return f > escapedText }

// text reads a string value and reports what is wrong with it.
func (s *jsonScan) text() bool {
	found, ok := s.quoted()
	if ok && found.defect() {
		s.reportText(found)
	}
	return ok
}

func (s *jsonScan) reportText(found textFinding) {
	if found == badUTF8 {
		s.report("bad-utf8", "the text is not valid UTF-8; encode it as UTF-8, or send the bytes as a base64 string")
		return
	}
	s.report("lone-surrogate", "the text holds half of a surrogate pair (\\ud800 to \\udfff), which is no character; send the whole character, or the bytes as a base64 string")
}

// quoted reads a string from its opening to its closing quote and returns the
// worst thing found in it.
func (s *jsonScan) quoted() (found textFinding, ok bool) {
	s.pos++
	for s.pos < len(s.raw) {
		switch c := s.raw[s.pos]; {
		case c == '"':
			s.pos++
			return found, true
		case c < ' ':
			return found, s.fail("a control character stands in a string; write it as an escape, such as \\n or \\u0001")
		case c == '\\':
			escape, ok := s.escape()
			if !ok {
				return found, false
			}
			found = max(found, escape)
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.raw[s.pos:])
			if r == utf8.RuneError && size == 1 {
				found = max(found, badUTF8)
			}
			s.pos += size
		}
	}
	return found, s.fail("a string is not closed")
}

// escape reads one escape sequence, or the two that make a surrogate pair.
func (s *jsonScan) escape() (found textFinding, ok bool) {
	if s.pos+1 < len(s.raw) && strings.IndexByte(`"\/bfnrt`, s.raw[s.pos+1]) >= 0 {
		s.pos += 2
		return escapedText, true
	}
	unit, ok := s.codeUnit()
	if !ok {
		return escapedText, s.fail(`a '\' starts no escape that JSON knows; write '\\' for the character itself`)
	}
	s.pos += 6
	switch {
	case unit < 0xd800 || unit > 0xdfff:
		return escapedText, true
	case unit > 0xdbff:
		return loneSurrogate, true
	}
	if low, ok := s.codeUnit(); ok && 0xdc00 <= low && low <= 0xdfff {
		s.pos += 6
		return escapedText, true
	}
	return loneSurrogate, true
}

// codeUnit returns the UTF-16 code unit of the \uXXXX at the current position.
func (s *jsonScan) codeUnit() (unit uint64, ok bool) {
	if len(s.raw)-s.pos < 6 || s.raw[s.pos] != '\\' || s.raw[s.pos+1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(s.raw[s.pos+2:s.pos+6]), 16, 16)
	return unit, err == nil
}
