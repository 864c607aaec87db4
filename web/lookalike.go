package web

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// cousins pairs letters of other scripts with the Latin letter they pass for.
const cousins = "аaеeоoрpсcуyхxіiјjѕsԁdԛqԝwһhҽeӏl" +
	"АAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSԌGҮYԚQԜWӀI" +
	"αaεeιiκkνvοoρpτtυuχxγyηnωwϲcϳj" +
	"ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹCϿC" +
	"օoսuոnհhցgյjզqԱUՕOՍU" +
	"ᎪAᏴBᏟCᎠDᎬEᎻHᎫJᏦKᏞLᎷMᏢPᎡRᏚSᎢTᏙVᎳWᏃZ"

// latinCousin returns the Latin letter or digit that r can pass for, or 0.
func latinCousin(r rune) rune {
	if r < 0x80 {
		return 0
	}
	if i := strings.IndexRune(cousins, r); i >= 0 {
		l, _ := utf8.DecodeRuneInString(cousins[i+utf8.RuneLen(r):])
		if l < 0x80 {
			return l
		}
		return 0
	}
	if !compatibility(r) {
		return 0
	}
	plain := norm.NFKC.String(string(r))
	if p, n := utf8.DecodeRuneInString(plain); n == len(plain) && p < 0x80 && (unicode.IsLetter(p) || unicode.IsDigit(p)) {
		return p
	}
	return 0
}

// compatibility covers the blocks of styled Latin letters: fullwidth,
// mathematical, letter-like, circled, Roman numerals, small capitals' the like.
func compatibility(r rune) bool {
	return (r >= 0xFF01 && r <= 0xFF5E) || (r >= 0x1D400 && r <= 0x1D7FF) ||
		(r >= 0x2100 && r <= 0x218F) || (r >= 0x2460 && r <= 0x24FF) || (r >= 0x1D2C && r <= 0x1D6A)
}

// lookAlikes returns the byte offsets of letters in a name that only look
// like Latin ones: styled letters anywhere, and in a word of several scripts,
// or of one script that could be read as Latin throughout, the strangers.
func lookAlikes(s string) map[int]bool {
	odd := map[int]bool{}
	start := -1
	for i, r := range s + " " {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			strangers(s[start:i], start, odd)
		}
		start = -1
	}
	return odd
}

func strangers(word string, at int, odd map[int]bool) {
	var latin, other, passing int
	for _, r := range word {
		switch {
		case unicode.Is(unicode.Latin, r) && !compatibility(r):
			latin++
		case alphabetic(r):
			other++
			if latinCousin(r) != 0 {
				passing++
			}
		}
	}
	mixed := latin > 0 && other > 0
	posing := latin == 0 && other > 1 && passing == other
	minority := mixed && passing < other && latin < other
	for i, r := range word {
		styled := compatibility(r) && latinCousin(r) != 0
		foreign := alphabetic(r) && (posing || (mixed && !minority))
		native := minority && unicode.Is(unicode.Latin, r)
		if styled || foreign || native {
			odd[at+i] = true
		}
	}
}

// alphabetic reports whether r belongs to a script whose letters pass for Latin.
func alphabetic(r rune) bool {
	return r >= 0x370 && unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee)
}

// LooksLike returns the Latin text that a name with look-alike letters passes
// for, and whether it has any.
func (t Text) LooksLike() (Text, bool) {
	odd := lookAlikes(t.s)
	if len(odd) == 0 {
		return Text{}, false
	}
	plain := strings.Map(func(r rune) rune {
		if l := latinCousin(r); l != 0 {
			return l
		}
		return r
	}, t.s)
	return Text{s: plain}, plain != t.s
}

// scriptOf names the script of a letter for the words that explain it.
func scriptOf(r rune) string {
	switch {
	case unicode.Is(unicode.Cyrillic, r):
		return "cyrillic"
	case unicode.Is(unicode.Greek, r):
		return "greek"
	case unicode.Is(unicode.Armenian, r):
		return "armenian"
	case unicode.Is(unicode.Cherokee, r):
		return "cherokee"
	case r >= 0xFF01 && r <= 0xFF5E:
		return "fullwidth"
	case compatibility(r):
		return "styled"
	}
	return "latin"
}
