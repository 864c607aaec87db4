package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/a-h/templ"
)

type valueKind int

const (
	valueNotRead valueKind = iota // nobody read it
	valueAbsent                   // looked, not there
	valueHidden                   // there, masked by the contract
	valueText
	valueNumber // as canonicalized
	valueBool
	valueNull
	valueMoney
	valueList
	valueEmpty // {} or []
	valueRecord
	valueSome // anything that is there
)

// Value is one cell of a field table. The zero Value is "not read".
type Value struct {
	kind  valueKind
	text  Text // text, number, true or false, {} or []
	money Money
	list  []Value
	parts []NamedValue // of a record
	words bool         // truth values as words, for tools that label their fields
}

// NamedValue is one field of an item that is shown in a line.
type NamedValue struct {
	Name  Text
	Value Value
}

// AbsentValue is a field that was looked for and is not there.
func AbsentValue() Value { return Value{kind: valueAbsent} }

// HiddenValue is a field that is there and hidden by the contract.
func HiddenValue() Value { return Value{kind: valueHidden} }

// SomeValue stands for anything at all that is there.
func SomeValue() Value { return Value{kind: valueSome} }

// InWords is the value with truth values and null as words, where its field has a
// name that somebody gave it.
func (v Value) InWords(named bool) Value {
	v.words = named
	return v
}

// TextValue is a string from outside.
func TextValue(t Text) Value { return Value{kind: valueText, text: t} }

// NumberValue is a number as canonicalized, never regrouped.
func NumberValue(canonical string) Value { return Value{kind: valueNumber, text: Outside(canonical)} }

// MoneyValue is an amount with its currency.
func MoneyValue(m Money) Value { return Value{kind: valueMoney, money: m, text: Outside(m.Amount)} }

// AmountValue is a JSON value that is an amount of money where it is a decimal;
// with a zero Money it is any value.
func AmountValue(raw []byte, m Money) Value {
	v := JSONValue(raw)
	if _, plain := decimal(v.text.s); m != (Money{}) && plain && (v.kind == valueNumber || v.kind == valueText) {
		m.Amount = v.text.s
		return MoneyValue(m)
	}
	return v
}

// JSONValue reads any JSON value; what is not JSON is shown as text.
func JSONValue(raw []byte) Value {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return TextValue(Outside(string(raw)))
	}
	return valueOf(v, false)
}

func valueOf(v any, name bool) Value {
	switch v := v.(type) {
	case nil:
		return Value{kind: valueNull}
	case bool:
		return Value{kind: valueBool, text: Outside(fmt.Sprint(v))}
	case json.Number:
		return NumberValue(v.String())
	case string:
		return TextValue(Text{s: v, name: name})
	case []any:
		if len(v) == 0 {
			return Value{kind: valueEmpty, text: Outside("[]")}
		}
		out := Value{kind: valueList}
		for _, e := range v {
			out.list = append(out.list, valueOf(e, name))
		}
		return out
	case map[string]any:
		if len(v) == 0 {
			return Value{kind: valueEmpty, text: Outside("{}")}
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return Value{kind: valueAbsent}
	}
	return TextValue(Outside(string(raw)))
}

// equal compares two values as people would: by what they say.
func (v Value) equal(o Value) bool {
	if len(v.list) != len(o.list) {
		return false
	}
	for i := range v.list {
		if !v.list[i].equal(o.list[i]) {
			return false
		}
	}
	if v.numeric() && o.numeric() {
		a, okA := decimal(v.text.s)
		b, okB := decimal(o.text.s)
		if okA && okB {
			return a.Cmp(b) == 0
		}
	}
	return v.kind == o.kind && v.text.s == o.text.s
}

func (v Value) numeric() bool {
	return v.kind == valueNumber || v.kind == valueMoney
}

// flags collects what its texts hide.
func (v Value) flags() Flags {
	f := v.text.Flags()
	for _, e := range v.list {
		g := e.flags()
		f.Hidden += g.Hidden
		f.Bidi = f.Bidi || g.Bidi
		f.NotNFC = f.NotNFC || g.NotNFC
		f.LookAlike = f.LookAlike || g.LookAlike
	}
	return f
}

// inline draws the value inside a line.
func (v Value) inline() templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if v.kind == valueText || v.kind == valueNumber || v.kind == valueEmpty {
			return U(v.text).Render(ctx, w)
		}
		_, err := io.WriteString(w, templ.EscapeString(v.plain(ctx)))
		return err
	})
}

// plain is the value as text without elements.
func (v Value) plain(ctx context.Context) string {
	switch v.kind {
	case valueAbsent:
		return T(ctx, "value.absent")
	case valueHidden:
		return T(ctx, "value.hidden")
	case valueSome:
		return T(ctx, "value.some")
	case valueNull:
		if v.words {
			return T(ctx, "value.none")
		}
		return "null"
	case valueBool:
		if v.words {
			return T(ctx, "value."+v.text.s)
		}
		return v.text.s
	case valueMoney:
		return Outside(v.money.String()).Plain()
	case valueList:
		parts := make([]string, len(v.list))
		for i, e := range v.list {
			parts[i] = e.plain(ctx)
		}
		return strings.Join(parts, ", ")
	case valueNotRead:
		return "–"
	default:
		return v.text.Plain()
	}
}

// moment is the time that a text is, written as RFC 3339 says.
func (v Value) moment() (time.Time, bool) {
	if v.kind != valueText || len(v.text.s) < len("2006-01-02T15:04:05Z") {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, v.text.s)
	return at, err == nil
}

// momentWords is a time in UTC and the viewer's zone, with its date.
func momentWords(ctx context.Context, at time.Time) string {
	return Stamp(ctx, at)
}

// ambiguous says that a text could be read as another kind of value, as a key
// of the words, or "".
func (v Value) ambiguous() string {
	if v.kind != valueText {
		return ""
	}
	switch v.text.s {
	case "":
		return "value.empty_text"
	case "true", "false", "null", "{}", "[]", "–":
		return "value.is_text"
	}
	return ""
}
