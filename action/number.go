package action

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

const (
	// maxNumberChars bounds a number as text. Every double fits, even when it
	// is written out without an exponent.
	maxNumberChars = 400

	shownDigits = 40 // how much of a number is repeated in an answer
)

// changedNumber says how RFC 8785, which reads every number as an IEEE 754
// double, would change the value of a JSON number; "" when it keeps it. The
// exponent, however large, costs nothing.
func changedNumber(text string) string {
	shown := text
	if len(text) > shownDigits {
		shown = text[:shownDigits] + "…"
	}
	if len(text) > maxNumberChars {
		return fmt.Sprintf("the number %s has more than %d characters; send it as a string", shown, maxNumberChars)
	}
	double, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Sprintf("the number %s is out of range for many readers; send it as a string", shown)
	}
	canonical, err := jcs.NumberToJSON(double)
	if err != nil {
		return fmt.Sprintf("the number %s cannot be written canonically; send it as a string", shown)
	}
	if decimalOf(text) != decimalOf(canonical) {
		return fmt.Sprintf("the number %s would become %s for many readers; send it as a string", shown, canonical)
	}
	return ""
}

// decimal is an exact decimal value, digits × 10^exponent, with no zero at
// either end of digits. Zero is the zero value. Equal values are equal structs.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// decimalOf reads a number that matches the JSON grammar.
func decimalOf(text string) decimal {
	text, negative := strings.CutPrefix(text, "-")
	var exponent int64
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		// Out of range is cut to ±2^31, which no fraction is long enough to
		// bring back into the range of a double.
		exponent, _ = strconv.ParseInt(text[i+1:], 10, 32)
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return decimal{}
	}
	exponent += int64(len(digits)-len(significant)) - int64(len(fraction))
	return decimal{negative, significant, exponent}
}
