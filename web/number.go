package web

import (
	"context"
	"math/big"
	"strconv"
	"strings"
)

// Number writes a count of ours with thousands apart. Numbers from outside are
// never regrouped: they stand as canonicalized.
func Number(_ context.Context, n int) string {
	return group(strconv.Itoa(n))
}

// group puts a comma between thousands of a plain decimal.
func group(s string) string {
	sign, digits := "", s
	if strings.HasPrefix(s, "-") {
		sign, digits = "−", s[1:]
	}
	whole, fraction, dotted := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dotted {
		whole += "." + fraction
	}
	return sign + whole
}

// Money is an amount as it was written, a decimal, in a currency. An empty
// currency means that nobody stated one.
type Money struct {
	Amount     string // "105", "105.00", "-3.5"
	Currency   string // "EUR"; "" is not stated
	MinorUnits int    // decimals the currency is written with
}

// decimal returns the exact value of a plain decimal.
func decimal(s string) (*big.Rat, bool) {
	if s == "" || strings.ContainsAny(s, "/_xXpPnNiI") {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp > 30 || exp < -30 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

// text writes the amount with thousands apart and at least the currency's
// decimals; digits beyond them are kept. What is no decimal stays as written.
func (m Money) text() string {
	if m.Currency == "" {
		return m.Amount
	}
	if _, ok := decimal(m.Amount); !ok || strings.ContainsAny(m.Amount, "eE+ ") {
		return m.Amount
	}
	whole, fraction, _ := strings.Cut(m.Amount, ".")
	if missing := m.MinorUnits - len(fraction); missing > 0 {
		fraction += strings.Repeat("0", missing)
	}
	if fraction == "" {
		return group(whole)
	}
	return group(whole + "." + fraction)
}

// difference says how far two amounts are apart: "+5.00" and "+5.0 %"; the
// share is empty when there is none.
func difference(before, after string, decimals int) (by, share string, ok bool) {
	a, okA := decimal(before)
	b, okB := decimal(after)
	if !okA || !okB || a.Cmp(b) == 0 {
		return "", "", false
	}
	diff := new(big.Rat).Sub(b, a)
	by = signed(diff, max(decimals, fractionDigits(before), fractionDigits(after)))
	if a.Sign() != 0 {
		part := new(big.Rat).Quo(diff, new(big.Rat).Abs(a))
		share = signed(part.Mul(part, big.NewRat(100, 1)), 1)
	}
	return by, share, true
}

func fractionDigits(s string) int {
	_, f, _ := strings.Cut(s, ".")
	return min(len(f), 12)
}

func signed(r *big.Rat, decimals int) string {
	s := group(r.FloatString(decimals))
	if r.Sign() > 0 {
		return "+" + s
	}
	return s
}

// Measure is the one number of an action that a row shows at its right: an
// amount, a change, a size.
type Measure struct {
	Value string // as computed or canonicalized: "42.00", "+5.0"
	Unit  Text   // "EUR", "%", "bytes"; empty with Money means not stated
	Money bool
}

// words is the number with its unit, or the remark that it has none.
func (m Measure) words() Msg {
	switch {
	case !m.Unit.Empty():
		return msg("effect.measure", "value", bold{m.Value}, "unit", m.Unit)
	case m.Money:
		return msg("effect.no_currency", "value", bold{m.Value})
	}
	return msg("list.single", "a", bold{m.Value})
}

// MeasureOf makes a measure that a contract computes, such as "+5.0" "%".
func MeasureOf(value float64, unit string) *Measure {
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if unit == "%" {
		text = strconv.FormatFloat(value, 'f', 1, 64)
		if value > 0 {
			text = "+" + text
		}
	}
	sign := ""
	if strings.HasPrefix(text, "+") {
		sign, text = "+", text[1:]
	}
	return &Measure{Value: sign + group(text), Unit: Outside(unit)}
}

// MeasureMoney makes a measure of an amount.
func MeasureMoney(m Money) *Measure {
	return &Measure{Value: m.text(), Unit: Outside(m.Currency), Money: true}
}

// Fingerprint is the first 8 hex digits of a hash, enough for two people on
// the phone to tell which proposal they mean.
func Fingerprint(hash string) string {
	digits := hexOf(hash)
	return digits[:min(8, len(digits))]
}

// LongFingerprint is the first and last 8 hex digits of a hash.
func LongFingerprint(hash string) string {
	digits := hexOf(hash)
	if len(digits) <= 16 {
		return digits
	}
	return digits[:8] + "…" + digits[len(digits)-8:]
}

func hexOf(hash string) string {
	_, digits, found := strings.Cut(hash, ":")
	if !found {
		return hash
	}
	return digits
}
