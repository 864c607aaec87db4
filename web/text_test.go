package web

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// joined gives back what the pieces stand for.
func joined(t Text) string {
	var b strings.Builder
	for _, s := range t.segments() {
		switch s.kind {
		case segChip:
			b.WriteRune(s.cp)
		case segByte:
			b.WriteByte(byte(s.cp))
		case segBreak:
			b.WriteByte('\n')
		case segTab:
			b.WriteByte('\t')
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

func TestNoByteOfATextIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ a-zа-я\x{200b}\x{202e}\n\t\x{301}\x{fe0f}]*`),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		for _, text := range []Text{Outside(s), OutsideName(s)} {
			if got := joined(text); got != s {
				t.Fatalf("%q came back as %q", s, got)
			}
			if what, bad := hostileIn(text.Plain()); bad {
				t.Fatalf("Plain of %q holds %s", s, what)
			}
		}
	})
}

func TestACutTextSaysExactlyHowMuchIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		head, left, whole := Outside(s).Cut(rapid.IntRange(0, 40).Draw(t, "max"))
		if !strings.HasPrefix(s, head.s) || utf8.RuneCountInString(head.s)+left != utf8.RuneCountInString(s) || whole != (left == 0) {
			t.Fatalf("%q was cut to %q with %d left", s, head.s, left)
		}
	})
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		text string
		want Flags
	}{
		{"Order 10093, 42.00 EUR", Flags{}},
		{"公告：发送给王敏（全角标点）", Flags{}},
		{"a\u202eb\u202c", Flags{Hidden: 2, Bidi: true}},
		{"zero\u200bwidth", Flags{Hidden: 1}},
		{"\U000e0041\U000e0042", Flags{Hidden: 2}},
		{"\x1b[2J", Flags{Hidden: 1}},
		{"\xc3(", Flags{Hidden: 1}},
		{"42\u00a0EUR", Flags{Spaces: 1}},
		{"caf\u0065\u0301", Flags{NotNFC: true}},
		{"\u212b", Flags{NotNFC: true}},
		{"love \u2764\ufe0f and 1\ufe0f\u20e3", Flags{}},
		{"family \U0001f468\u200d\U0001f469", Flags{}},
		{"a\ufe0f", Flags{Hidden: 1}},
		{"שלום 12", Flags{RightToLeft: true}},
		{"line\nbreak\tand tab", Flags{}},
		{"mark \u0301 alone", Flags{Hidden: 1}},
	} {
		if got := Outside(c.text).Flags(); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.text, got, c.want)
		}
	}
}

func TestLookAlikeLetters(t *testing.T) {
	for _, c := range []struct {
		name, plain string
		odd         bool
	}{
		{"payroll-de", "", false},
		{"раyroll-de", "payroll-de", true},
		{"аррӏе", "appl" + "e", true},
		{"ΑΒΕ", "ABE", true},
		{"ｐａｙ", "pay", true},
		{"𝐩𝐚𝐲", "pay", true},
		{"Deniz Aydın", "", false},
		{"王敏 Wang", "", false},
		{"Москва", "", false},
		{"Αθήνα", "", false},
		{"Straße Ünal", "", false},
	} {
		plain, odd := Outside(c.name).LooksLike()
		if odd != c.odd || (odd && plain.s != c.plain) {
			t.Errorf("%q: %q %v, want %q %v", c.name, plain.s, odd, c.plain, c.odd)
		}
		if OutsideName(c.name).Flags().LookAlike != c.odd {
			t.Errorf("%q is flagged otherwise as a name", c.name)
		}
		if Outside(c.name).Flags().LookAlike {
			t.Errorf("%q is flagged without being a name", c.name)
		}
	}
}

func TestPlainWritesCodePoints(t *testing.T) {
	for text, want := range map[string]string{
		"a\u202eb":  "a[U+202E]b",
		"x\xffy":    "x[0xFF]y",
		"one\ntwo":  "one two",
		" two  gap": " two  gap",
	} {
		if got := Outside(text).Plain(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWhatADisplayedTextLooksLike(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"<b>&", `<bdi class="u">&lt;b&gt;&amp;</bdi>`},
		{"a\u202eb", `<bdi class="u">a<span class="cp" title="right-to-left override">U+202E</span>b</bdi>`},
		{"a\nb", `<bdi class="u">a<span class="ws" title="line break">↵</span>b</bdi>`},
		{" a", `<bdi class="u"><span class="ws" title="spaces that would not be seen">␣</span>a</bdi>`},
	} {
		if got := rendered(t, English, U(Outside(c.text))); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
	if got := rendered(t, English, Block(Outside("a\nb"))); !strings.Contains(got, "a\nb") {
		t.Errorf("a block loses its line break: %s", got)
	}
	if got := rendered(t, English, Short(Outside(strings.Repeat("x", 100)), 90)); !strings.Contains(got, "and 10 more characters") {
		t.Errorf("a cut text does not say how much is left: %s", got)
	}
	long := rendered(t, English, Legend(Outside(strings.Repeat("word ", 60))))
	if !strings.Contains(long, "300 characters, shown in full") {
		t.Errorf("a long text does not say that it is whole: %s", long)
	}
}
