package web

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text is a string that came from outside: a payload, a name, a reason. It
// cannot be printed; [U], [Block], [Short] and [Text.Plain] show it so that
// nothing in it is hidden and nothing in it acts. Two Texts are equal when
// their bytes and their kind are.
type Text struct {
	s    string
	name bool // look-alike letters matter here
}

// Outside marks s as outside text. Bytes are kept as they are.
func Outside(s string) Text { return Text{s: s} }

// OutsideName marks s as an id, a name or a target: besides hidden characters,
// letters that only look like Latin ones are flagged.
func OutsideName(s string) Text { return Text{s: s, name: true} }

// Empty reports whether there is nothing to show.
func (t Text) Empty() bool { return t.s == "" }

// Len returns the number of code points, each invalid byte counted as one.
func (t Text) Len() int { return utf8.RuneCountInString(t.s) }

// Bytes returns the number of bytes.
func (t Text) Bytes() int { return len(t.s) }

// Flags says what in a text another screen would hide or bend.
type Flags struct {
	Hidden      int  // bidi, invisible, control, tag, private-use and unassigned code points, invalid bytes
	Bidi        bool // at least one of them turns the reading direction
	Spaces      int  // spaces other than U+0020; shown, but common in honest text
	NotNFC      bool // another spelling of the same text exists and looks the same
	RightToLeft bool // holds right-to-left letters, so numbers may stand in another order
	LookAlike   bool // letters that only look Latin; names only
}

// Any reports whether the text deserves the warning "Hidden characters".
func (f Flags) Any() bool { return f.Hidden > 0 || f.NotNFC || f.LookAlike }

// Flags inspects the text once over.
func (t Text) Flags() Flags {
	f := Flags{NotNFC: !norm.NFC.IsNormalString(strings.ToValidUTF8(t.s, "?"))}
	for _, s := range t.segments() {
		switch s.kind {
		case segChip:
			switch {
			case s.benign:
			case s.class == spaceLike:
				f.Spaces++
			default:
				f.Hidden++
				f.Bidi = f.Bidi || s.class == bidi
			}
		case segByte:
			f.Hidden++
		case segAlike:
			f.LookAlike = true
		case segText:
			f.RightToLeft = f.RightToLeft || holdsRightToLeft(s.text)
		}
	}
	return f
}

// Plain is the text for places that cannot hold elements: titles, attributes,
// file names. Code points that could hide or act stand in brackets, [U+202E];
// a line break is a space.
func (t Text) Plain() string {
	var b strings.Builder
	for _, s := range t.segments() {
		switch s.kind {
		case segText, segAlike, segEdge:
			b.WriteString(s.text)
		case segBreak, segTab:
			b.WriteByte(' ')
		default:
			b.WriteString("[" + s.label() + "]")
		}
	}
	return b.String()
}

// class sorts the code points that are never written raw into a page.
type class int

const (
	visible    class = iota
	control          // C0, C1, DEL
	bidi             // turns the reading direction
	invisible        // takes no room, or looks like nothing
	tag              // the tag block, which can carry a hidden message
	variation        // variation selectors, likewise
	private          // private use: every font may show something else
	unassigned       // no meaning, or a later one
	spaceLike        // a space that is not U+0020
	stacked          // a combining mark without a base, or one too many
)

// blanks are symbols by category that draw nothing.
var blanks = [...]rune{0x2800, 0xFFFC, 0x1D159, 0x13441, 0x13442}

// classify says why r must not be written raw; '\n' and '\t' are the caller's.
func classify(r rune) class {
	switch {
	case r < 0x20 || (r >= 0x7F && r <= 0x9F):
		return control
	case r < 0x7F:
		return visible
	case unicode.Is(unicode.Bidi_Control, r):
		return bidi
	case r >= 0xE0000 && r <= 0xE007F:
		return tag
	case unicode.Is(unicode.Variation_Selector, r):
		return variation
	case unicode.Is(unicode.Co, r):
		return private
	case unicode.Is(unicode.Noncharacter_Code_Point, r):
		return unassigned
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point):
		return invisible
	case unicode.Is(unicode.Zs, r):
		return spaceLike
	case !unicode.IsGraphic(r):
		return unassigned
	}
	for _, b := range blanks {
		if r == b {
			return invisible
		}
	}
	return visible
}

func holdsRightToLeft(s string) bool {
	for _, r := range s {
		if r >= 0x590 && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam) {
			return true
		}
	}
	return false
}
