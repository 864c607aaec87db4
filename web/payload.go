package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// PayloadLimit is the size in bytes over which a page first shows only the
// beginning of a content, and offers no approval until it shows all of it.
const PayloadLimit = 16 << 10

// payloadHead is how much of a larger content is shown first, in bytes.
const payloadHead = 4 << 10

// Payload is the canonical JSON of a proposal, shown once on its page.
type Payload struct {
	Canonical []byte   // nil when retention removed it
	Mask      []string // JSON Pointers, hidden with all below; "*" stands for any one key or index
	Full      string   // where it stands in full; "" when it does here
	Download  string   // where its exact bytes are; "" when nowhere
}

// cut reports whether only the beginning is shown.
func (p Payload) cut() bool { return p.Full != "" && len(p.Canonical) > PayloadLimit }

// shownBytes is how many bytes the page shows.
func (p Payload) shownBytes() int {
	if p.cut() {
		return payloadHead
	}
	return len(p.Canonical)
}

// canonicalJSON draws the bytes as they are, with line breaks and indents
// added between tokens and nowhere else.
func canonicalJSON(p Payload) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		s := jsonScan{src: p.Canonical, mask: p.Mask, limit: p.shownBytes(), hidden: T(ctx, "value.hidden")}
		for _, piece := range s.pieces() {
			if err := piece.write(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// jsonPiece is text of the document, layout of ours, or a hidden value.
type jsonPiece struct {
	text   string
	outer  bool // text of the document
	hidden bool
}

func (p jsonPiece) write(ctx context.Context, w io.Writer) error {
	if p.outer {
		return U(Outside(p.text)).Render(ctx, w)
	}
	if p.hidden {
		_, err := fmt.Fprintf(w, `<span class="hidden">%s</span>`, templ.EscapeString(p.text))
		return err
	}
	_, err := io.WriteString(w, templ.EscapeString(p.text))
	return err
}

// jsonScan walks over canonical JSON, which has no white space between tokens.
type jsonScan struct {
	src    []byte
	mask   []string
	limit  int
	hidden string
	at     int
	out    []jsonPiece
}

func (s *jsonScan) pieces() []jsonPiece {
	s.value("", 0)
	if s.at < s.limit { // not canonical after all: show the rest as it is
		s.out = append(s.out, jsonPiece{text: string(s.src[s.at:s.limit]), outer: true})
	}
	return s.out
}

func (s *jsonScan) over() bool { return s.at >= s.limit }

func (s *jsonScan) layout(text string) { s.out = append(s.out, jsonPiece{text: text}) }

func (s *jsonScan) newline(depth int) { s.layout("\n" + strings.Repeat("  ", depth)) }

func (s *jsonScan) value(pointer string, depth int) {
	if s.over() {
		return
	}
	if pointer != "" && masked(s.mask, pointer) {
		s.skip()
		s.out = append(s.out, jsonPiece{text: s.hidden, hidden: true})
		return
	}
	switch s.src[s.at] {
	case '{':
		s.members(pointer, depth, '}', true)
	case '[':
		s.members(pointer, depth, ']', false)
	default:
		s.scalar()
	}
}

// members writes an object or a list, one member a line.
func (s *jsonScan) members(pointer string, depth int, end byte, named bool) {
	s.layout(string(s.src[s.at]))
	s.at++
	for i := 0; !s.over() && s.src[s.at] != end; i++ {
		s.newline(depth + 1)
		name := fmt.Sprint(i)
		if named {
			raw := s.token()
			s.out = append(s.out, jsonPiece{text: string(raw), outer: true})
			name, _ = decodeAny(raw).(string)
			if !s.over() && s.src[s.at] == ':' {
				s.layout(": ")
				s.at++
			}
		}
		before := s.at
		s.value(pointer+"/"+escapePointer(name), depth+1)
		if !s.over() && s.src[s.at] == ',' {
			s.layout(",")
			s.at++
		}
		if s.at == before { // malformed: stop rather than turn in place
			return
		}
	}
	if s.over() {
		return
	}
	if s.src[s.at-1] != '{' && s.src[s.at-1] != '[' {
		s.newline(depth)
	}
	s.layout(string(end))
	s.at++
}

func (s *jsonScan) scalar() {
	if raw := s.token(); len(raw) > 0 {
		s.out = append(s.out, jsonPiece{text: string(raw), outer: true})
	}
}

// token takes a string, number or word, at most up to the limit.
func (s *jsonScan) token() []byte {
	start := s.at
	if s.src[s.at] == '"' {
		s.at++
		for s.at < len(s.src) && s.src[s.at] != '"' {
			if s.src[s.at] == '\\' {
				s.at++
			}
			s.at++
		}
		s.at++
	} else {
		for s.at < len(s.src) && !bytes.ContainsRune([]byte(`,:]}"[{`), rune(s.src[s.at])) {
			s.at++
		}
	}
	s.at = min(s.at, len(s.src))
	return s.src[start:max(start, min(s.at, s.runeLimit()))]
}

// runeLimit is the limit, moved back so that it parts no code point.
func (s *jsonScan) runeLimit() int {
	limit := s.limit
	for limit > 0 && limit < len(s.src) && s.src[limit]&0xC0 == 0x80 {
		limit--
	}
	return limit
}

// skip passes over one whole value.
func (s *jsonScan) skip() {
	depth := 0
	for s.at < len(s.src) {
		switch s.src[s.at] {
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':':
			s.at++
		default:
			before := s.at
			s.token()
			if s.at == before {
				return
			}
		}
		if depth <= 0 {
			return
		}
	}
}
