package web

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// Msg is prose to be said in the viewer's language: a key of the locale files
// and what the sentence refers to. Only this package makes them.
type Msg struct {
	key  string
	args []arg
}

type arg struct {
	name  string
	value any
}

// bold wraps an argument that a sentence stresses.
type bold struct{ value any }

// code wraps an argument that is a technical name.
type code struct{ value any }

// soft wraps an argument that only labels another.
type soft struct{ value any }

// cutTo is outside text of which a line shows the beginning.
type cutTo struct {
	text Text
	most int
}

// shown is how an argument of type time.Time is written.
type shown struct {
	at  time.Time
	how func(context.Context, time.Time) string
}

// msg makes a message; pairs are names and values in turn. A value is a Text,
// a Msg, a number, a time or duration, a string of our own, or one of these in
// bold or code.
func msg(key string, pairs ...any) Msg {
	m := Msg{key: key}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		m.args = append(m.args, arg{name, pairs[i+1]})
	}
	return m
}

// Empty reports whether there is nothing to say.
func (m Msg) Empty() bool { return m.key == "" }

// Plain says the message as text without elements.
func (m Msg) Plain(ctx context.Context) string {
	if m.Empty() {
		return ""
	}
	data := map[string]any{}
	for _, a := range m.args {
		data[a.name] = plainArg(ctx, a.value)
	}
	return speakerOf(ctx).say(m.key, data)
}

func plainArg(ctx context.Context, v any) any {
	switch v := v.(type) {
	case bold:
		return plainArg(ctx, v.value)
	case code:
		return plainArg(ctx, v.value)
	case soft:
		return plainArg(ctx, v.value)
	case cutTo:
		return v.text.Plain()
	case Text:
		return v.Plain()
	case Msg:
		return v.Plain(ctx)
	case Value:
		return v.plain(ctx)
	case shown:
		return v.how(ctx, v.at)
	case time.Time:
		return Clock(ctx, v)
	case time.Duration:
		return Span(ctx, v)
	case string:
		return Outside(v).Plain()
	default:
		return v
	}
}

// T says a message as text: for attributes and for places without outside text.
func T(ctx context.Context, key string, pairs ...any) string {
	return msg(key, pairs...).Plain(ctx)
}

// hole marks, in a sentence that is being written, where an argument goes. The
// marks are control characters that no locale file holds.
func hole(i int) string { return "\x01" + strconv.Itoa(i) + "\x02" }

// Say writes a message with outside text display-safe inside it.
func Say(m Msg) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if m.Empty() {
			return nil
		}
		data := map[string]any{}
		for i, a := range m.args {
			if a.name == "n" {
				data[a.name] = a.value
				continue
			}
			data[a.name] = hole(i)
		}
		return writeHoles(ctx, w, speakerOf(ctx).say(m.key, data), m.args)
	})
}

func writeHoles(ctx context.Context, w io.Writer, sentence string, args []arg) error {
	for sentence != "" {
		before, rest, found := strings.Cut(sentence, "\x01")
		if _, err := io.WriteString(w, templ.EscapeString(before)); err != nil {
			return err
		}
		if !found {
			return nil
		}
		number, after, _ := strings.Cut(rest, "\x02")
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(args) {
			return fmt.Errorf("words with a broken hole %q", number)
		}
		if err := argument(args[i].value).Render(ctx, w); err != nil {
			return err
		}
		sentence = after
	}
	return nil
}

// argument draws one thing a sentence refers to.
func argument(v any) templ.Component {
	switch v := v.(type) {
	case bold:
		return wrapped(`b`, "", argument(v.value))
	case code:
		return wrapped(`code`, "", argument(v.value))
	case soft:
		return wrapped(`span`, ` class="soft"`, argument(v.value))
	case cutTo:
		return Short(v.text, v.most)
	case Text:
		return U(v)
	case Msg:
		return Say(v)
	case Value:
		return v.inline()
	default:
		return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
			_, err := io.WriteString(w, templ.EscapeString(fmt.Sprint(plainArg(ctx, v))))
			return err
		})
	}
}

func wrapped(element, attributes string, inner templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if _, err := io.WriteString(w, "<"+element+attributes+">"); err != nil {
			return err
		}
		if err := inner.Render(ctx, w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</"+element+">")
		return err
	})
}
