package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// independentJCS is RFC 8785 written anew, over encoding/json: it shares no
// code with what the product hashes.
func independentJCS(t testing.TB, raw []byte) []byte {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("encoding/json refuses %.300q: %v", raw, err)
	}
	var out bytes.Buffer
	writeJCS(&out, value)
	return out.Bytes()
}

func writeJCS(out *bytes.Buffer, value any) {
	switch v := value.(type) {
	case nil:
		out.WriteString("null")
	case bool:
		out.WriteString(strconv.FormatBool(v))
	case json.Number:
		double, _ := strconv.ParseFloat(string(v), 64)
		out.WriteString(ecmaNumber(double))
	case string:
		writeJCSText(out, v)
	case []any:
		for i, element := range v {
			out.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
			writeJCS(out, element)
		}
		out.WriteString(map[bool]string{true: "[]", false: "]"}[len(v) == 0])
	case map[string]any:
		names := slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		out.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJCSText(out, name)
			out.WriteByte(':')
			writeJCS(out, v[name])
		}
		out.WriteByte('}')
	}
}

func writeJCSText(out *bytes.Buffer, text string) {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}
	out.WriteByte('"')
	for _, c := range text {
		switch escape, ok := short[c]; {
		case ok:
			out.WriteString(escape)
		case c < ' ':
			fmt.Fprintf(out, `\u%04x`, c)
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte('"')
}

// ecmaNumber is ECMAScript's Number::toString: plain digits from 1e-6 up to
// 1e21, an exponent beyond.
func ecmaNumber(double float64) string {
	if double == 0 {
		return "0"
	}
	if size := max(double, -double); size >= 1e-6 && size < 1e21 {
		return strconv.FormatFloat(double, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(double, 'e', -1, 64), "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}
