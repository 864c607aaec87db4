package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type segmentKind int

const (
	segText  segmentKind = iota // safe to write, escaped
	segAlike                    // safe to write, but only looks Latin
	segChip                     // a code point, written as its number
	segByte                     // a byte that is no UTF-8, written as its number
	segBreak                    // a line feed
	segTab                      // a tab
	segEdge                     // spaces at an end or several in a row
)

// segment is a piece of outside text that is shown in one way.
type segment struct {
	kind   segmentKind
	text   string // segText, segAlike, segEdge
	cp     rune   // segChip; segByte holds the byte
	class  class  // segChip
	benign bool   // a chip that is no reason to warn: emoji presentation
}

// label is what a chip says.
func (s segment) label() string {
	if s.kind == segByte {
		return fmt.Sprintf("0x%02X", s.cp)
	}
	return fmt.Sprintf("U+%04X", s.cp)
}

// maxMarks is how many combining marks one letter may carry before the next
// ones are shown as numbers: no living script needs more, and a pile of them
// paints over the lines above and below.
const maxMarks = 3

// segments cuts the text into pieces. Joining what the pieces stand for gives
// the text back, byte for byte.
func (t Text) segments() []segment {
	c := cutter{src: t.s}
	if t.name {
		c.alike = lookAlikes(t.s)
	}
	for i := 0; i < len(t.s); {
		r, n := utf8.DecodeRuneInString(t.s[i:])
		c.take(i, r, n)
		i += n
	}
	c.flush(len(t.s))
	return c.out
}

// cutter walks over a text; from is the start of the piece not yet written.
type cutter struct {
	src   string
	alike map[int]bool // byte offsets of look-alike letters
	out   []segment
	from  int
	prev  rune // the last visible code point, 0 after a chip or a break
	last  rune // the last code point of any kind
	marks int
}

func (c *cutter) flush(at int) {
	if at > c.from {
		c.out = append(c.out, segment{kind: segText, text: c.src[c.from:at]})
	}
	c.from = at
}

// put closes the piece before offset at and adds s, which n bytes stand for.
func (c *cutter) put(at, n int, s segment) {
	c.flush(at)
	c.out = append(c.out, s)
	c.from = at + n
	c.prev, c.marks = 0, 0
}

func (c *cutter) take(at int, r rune, n int) {
	defer func() { c.last = r }()
	switch {
	case r == utf8.RuneError && n == 1:
		c.put(at, n, segment{kind: segByte, cp: rune(c.src[at])})
	case r == '\n':
		c.put(at, n, segment{kind: segBreak})
	case r == '\t':
		c.put(at, n, segment{kind: segTab})
	case r == ' ':
		c.space(at)
	default:
		c.letter(at, r, n)
	}
}

// space keeps single spaces between words and marks those that a page would
// swallow or nobody would see.
func (c *cutter) space(at int) {
	edge := at == 0 || at == len(c.src)-1 || c.last == ' ' || c.last == '\n' || c.src[at+1] == '\n'
	if !edge {
		c.prev, c.marks = ' ', 0
		return
	}
	c.flush(at)
	if k := len(c.out) - 1; k >= 0 && c.out[k].kind == segEdge {
		c.out[k].text += " "
		c.from = at + 1
	} else {
		c.put(at, 1, segment{kind: segEdge, text: " "})
	}
	c.prev, c.marks = 0, 0
}

func (c *cutter) letter(at int, r rune, n int) {
	k := classify(r)
	if k == visible && unicode.Is(unicode.M, r) {
		c.marks++
		if c.prev == 0 || c.prev == ' ' || c.marks > maxMarks {
			k = stacked
		}
	} else if k == visible {
		c.marks = 0
	}
	switch {
	case k == stacked:
		marks, prev := c.marks, c.prev
		c.put(at, n, segment{kind: segChip, cp: r, class: k, benign: inEmoji(c.last, r)})
		c.marks, c.prev = marks, prev
	case k != visible:
		c.put(at, n, segment{kind: segChip, cp: r, class: k, benign: inEmoji(c.last, r)})
	case c.alike[at]:
		c.put(at, n, segment{kind: segAlike, text: c.src[at : at+n]})
		c.prev = r
	default:
		c.prev = r
	}
}

// inEmoji reports whether r is part of an ordinary emoji: a presentation
// selector, a joiner or a keycap right after a symbol or digit.
func inEmoji(before, r rune) bool {
	switch r {
	case 0xFE0E, 0xFE0F:
		return unicode.In(before, unicode.So, unicode.Sm, unicode.Po) || (before >= '0' && before <= '9')
	case 0x20E3:
		return before == 0xFE0F
	case 0x200D:
		return unicode.Is(unicode.So, before) || before == 0xFE0F || (before >= 0x1F3FB && before <= 0x1F3FF)
	}
	return false
}

// Cut returns the first max code points and how many are left out; whole is
// true when nothing is. It never parts a letter from its marks.
func (t Text) Cut(max int) (head Text, left int, whole bool) {
	seen := 0
	for i, r := range t.s {
		if seen >= max && !unicode.Is(unicode.M, r) {
			return Text{s: t.s[:i], name: t.name}, utf8.RuneCountInString(t.s[i:]), false
		}
		seen++
	}
	return t, 0, true
}

// unbroken reports whether the text is one run too long for a line, which may
// then break anywhere.
func (t Text) unbroken() bool { return len(t.s) > 32 && !strings.ContainsAny(t.s, " \n\t") }
