package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// checkCanonical compares with an RFC 8785 writer that shares no code with
// ours, and checks that the canonical form is its own canonical form.
func checkCanonical(t testing.TB, raw, canonical []byte) {
	t.Helper()
	if want := independentJCS(t, raw); !bytes.Equal(canonical, want) {
		t.Errorf("Canonical(%.300q)\n got %.300q\nwant %.300q", raw, canonical, want)
	}
	if again, err := Canonical(canonical); err != nil || !bytes.Equal(again, canonical) {
		t.Errorf("not idempotent: %.300q became %.300q (%v)", canonical, again, err)
	}
}

// decodeNumbers reads JSON as encoding/json does, keeping numbers as text.
func decodeNumbers(t testing.TB, raw []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("encoding/json refuses %.300q: %v", raw, err)
	}
	return value
}

func independentJCS(t testing.TB, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writeJCS(&out, decodeNumbers(t, raw))
	return out.Bytes()
}

func writeJCS(out *bytes.Buffer, value any) {
	switch v := value.(type) {
	case map[string]any:
		keys := slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		out.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJCS(out, key)
			out.WriteByte(':')
			writeJCS(out, v[key])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJCS(out, element)
		}
		out.WriteByte(']')
	case string:
		out.WriteString(independentString(v))
	case json.Number:
		double, _ := strconv.ParseFloat(string(v), 64)
		out.WriteString(independentNumber(double))
	default:
		fmt.Fprint(out, strings.ReplaceAll(fmt.Sprint(v), "<nil>", "null"))
	}
}

func independentString(text string) string {
	var pairs []string
	for c := range 0x20 {
		pairs = append(pairs, string(rune(c)), fmt.Sprintf(`\u%04x`, c))
	}
	for short, c := range map[string]int{`\b`: 8, `\t`: 9, `\n`: 10, `\f`: 12, `\r`: 13} {
		pairs[2*c+1] = short
	}
	pairs = append(pairs, `"`, `\"`, `\`, `\\`)
	return `"` + strings.NewReplacer(pairs...).Replace(text) + `"`
}

// independentNumber follows the steps of ECMAScript's Number::toString: k
// significant digits, the point after digit n.
func independentNumber(double float64) string {
	if double == 0 {
		return "0"
	}
	if double < 0 {
		return "-" + independentNumber(-double)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(double, 'e', -1, 64), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	e, _ := strconv.Atoi(exponent)
	k, n := len(digits), e+1
	switch {
	case k <= n && n <= 21:
		return digits + strings.Repeat("0", n-k)
	case 0 < n && n <= 21:
		return digits[:n] + "." + digits[n:]
	case -6 < n && n <= 0:
		return "0." + strings.Repeat("0", -n) + digits
	case k == 1:
		return fmt.Sprintf("%se%+d", digits, n-1)
	}
	return fmt.Sprintf("%s.%se%+d", digits[:1], digits[1:], n-1)
}

func TestIndependentWriter(t *testing.T) { // known answers of ECMAScript
	for text, want := range map[string]string{
		"1e21": "1e+21", "1e20": "100000000000000000000", "1e-6": "0.000001", "1e-7": "1e-7",
		"-1.5e-9": "-1.5e-9", "123.456": "123.456", "5e-324": "5e-324", "-0": "0",
		"1.7976931348623157e308": "1.7976931348623157e+308",
	} {
		double, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(double) {
			t.Fatal(text, err)
		}
		if got := independentNumber(double); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
