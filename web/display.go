package web

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// U shows outside text inside a line: isolated, with code points written as
// numbers where they would hide, a line break as a mark.
func U(t Text) templ.Component { return displayed(t, inline) }

// Block shows outside text as a paragraph that keeps its line breaks.
func Block(t Text) templ.Component { return displayed(t, block) }

// Short shows the first max code points inside a line and says how many more
// there are. Use it only where the whole text is one click away.
func Short(t Text, max int) templ.Component {
	head, left, whole := t.Cut(max)
	if whole {
		return U(t)
	}
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if err := U(head).Render(ctx, w); err != nil {
			return err
		}
		rest := templ.EscapeString(T(ctx, "text.more", "n", left, "count", Number(ctx, left)))
		_, err := io.WriteString(w, ` <span class="cut">`+rest+`</span>`)
		return err
	})
}

// layout says how much of a text's own layout is kept.
type layout int

const (
	inline  layout = iota // one line: breaks and double spaces are marked
	block                 // lines are kept
	listing               // lines and indents are kept, for code
)

func displayed(t Text, as layout) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if t.Empty() {
			return nil
		}
		var b strings.Builder
		class := "u"
		if t.unbroken() {
			class += " tok"
		}
		if as != inline {
			class += " block"
		}
		b.WriteString(`<bdi class="` + class + `">`)
		for _, s := range t.segments() {
			writeSegment(ctx, &b, s, as)
		}
		b.WriteString("</bdi>")
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func writeSegment(ctx context.Context, b *strings.Builder, s segment, as layout) {
	switch s.kind {
	case segText:
		b.WriteString(templ.EscapeString(s.text))
	case segAlike:
		fmt.Fprintf(b, `<span class="alike" title="%s">%s</span>`, templ.EscapeString(alikeTitle(ctx, s.text)), templ.EscapeString(s.text))
	case segBreak:
		if as != inline {
			b.WriteString("\n")
			return
		}
		writeMark(b, T(ctx, "text.line_break"), "↵")
	case segTab:
		writeMark(b, T(ctx, "text.tab"), "⇥")
	case segEdge:
		if as == listing {
			b.WriteString(s.text)
			return
		}
		writeMark(b, T(ctx, "text.spaces"), strings.Repeat("␣", len(s.text)))
	default:
		fmt.Fprintf(b, `<span class="cp" title="%s">%s</span>`, templ.EscapeString(s.name(ctx)), s.label())
	}
}

func writeMark(b *strings.Builder, title, sign string) {
	fmt.Fprintf(b, `<span class="ws" title="%s">%s</span>`, templ.EscapeString(title), sign)
}

// name says in words what a chip stands for.
func (s segment) name(ctx context.Context) string {
	if s.kind == segByte {
		return T(ctx, "text.kind.byte")
	}
	key := fmt.Sprintf("text.cp.%04X", s.cp)
	if known(key) {
		return T(ctx, key)
	}
	return T(ctx, "text.kind."+s.class.word())
}

func (c class) word() string {
	switch c {
	case control:
		return "control"
	case bidi:
		return "bidi"
	case tag:
		return "tag"
	case variation:
		return "variation"
	case private:
		return "private"
	case unassigned:
		return "unassigned"
	case spaceLike:
		return "space"
	case stacked:
		return "stacked"
	default:
		return "invisible"
	}
}

func alikeTitle(ctx context.Context, letter string) string {
	r := []rune(letter)[0]
	return T(ctx, "text.alike_letter", "point", fmt.Sprintf("U+%04X", r), "script", T(ctx, "text.script."+scriptOf(r)))
}

// Legend says under a value what its marks mean and how long it is: which code
// points, how often, another spelling, look-alike letters. Nothing to say
// draws nothing.
func Legend(t Text) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		notes := legend(ctx, t)
		if len(notes) == 0 {
			return nil
		}
		_, err := io.WriteString(w, `<span class="legend">`+strings.Join(notes, "<br>")+`</span>`)
		return err
	})
}

// longText is the length in code points from which a value says that it is
// shown in full.
const longText = 240

// mostNamed is how many different code points a legend names.
const mostNamed = 6

func legend(ctx context.Context, t Text) []string {
	var notes []string
	add := func(s string) { notes = append(notes, templ.EscapeString(s)) }
	if n := t.Len(); n > longText {
		add(T(ctx, "text.full", "n", n, "count", Number(ctx, n)))
	}
	if points := namedPoints(ctx, t); points != "" {
		notes = append(notes, points)
	}
	f := t.Flags()
	if f.Bidi {
		add(T(ctx, "text.legend_bidi"))
	}
	if f.NotNFC {
		add(T(ctx, "text.legend_nfc"))
	}
	if f.RightToLeft {
		add(T(ctx, "text.legend_rtl"))
	}
	if plain, odd := t.LooksLike(); odd && t.name {
		add(T(ctx, "text.legend_alike", "plain", plain))
	}
	return notes
}

// namedPoints lists the different code points of a text with their names.
func namedPoints(ctx context.Context, t Text) string {
	type point struct {
		segment
		times int
	}
	var seen []point
	for _, s := range t.segments() {
		if s.kind != segChip && s.kind != segByte {
			continue
		}
		at := -1
		for i := range seen {
			if seen[i].label() == s.label() {
				at = i
			}
		}
		if at < 0 {
			seen = append(seen, point{s, 1})
		} else {
			seen[at].times++
		}
	}
	out := ""
	join := func(s string) {
		if out != "" {
			s = T(ctx, "list.comma", "a", out, "b", s)
		}
		out = s
	}
	for i, p := range seen {
		if i == mostNamed {
			join(templ.EscapeString(T(ctx, "text.more_points", "n", len(seen)-i)))
			break
		}
		said := p.name(ctx)
		if p.times > 1 {
			said = T(ctx, "text.times", "n", p.times, "name", said)
		}
		join(`<span class="cp">` + p.label() + `</span> ` + templ.EscapeString(said))
	}
	return out
}
