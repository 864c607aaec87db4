package web

import (
	"context"
	"math/big"
	"strconv"
	"strings"

	"golang.org/x/text/currency"
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
	if missing := m.decimals() - len(fraction); missing > 0 {
		fraction += strings.Repeat("0", missing)
	}
	if fraction == "" {
		return group(whole)
	}
	return group(whole + "." + fraction)
}

// unstated says of an amount that its currency is not stated; a long one, which
// stands as it was written, it also says with thousands apart.
func (m Money) unstated() Msg {
	if _, ok := decimal(m.Amount); ok && !strings.ContainsAny(m.Amount, "eE+ ") {
		if apart := group(m.Amount); strings.Contains(apart, ",") {
			return msg("field.no_currency_apart", "amount", apart)
		}
	}
	return msg("field.no_currency")
}

// decimals is how many the currency is written with: those of ISO 4217, or
// more where a contract says so.
func (m Money) decimals() int {
	decimals, _ := isoDecimals(m.Currency)
	return max(decimals, m.MinorUnits)
}

// isoDecimals is how many decimals a currency of ISO 4217 has.
func isoDecimals(code string) (decimals int, known bool) {
	unit, err := currency.ParseISO(code)
	if err != nil || code == "XXX" {
		return 0, false
	}
	decimals, _ = currency.Standard.Rounding(unit)
	return decimals, true
}

// String is the amount and its currency as they stand everywhere.
func (m Money) String() string { return strings.TrimSpace(m.text() + " " + m.Currency) }

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
		if strings.Trim(share, "+−0.") == "" { // too small to be told in percent
			share = ""
		}
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
	Name  Text   // what it is; empty when nobody says
	Value string // as computed or canonicalized: "42.00", "+5.0"
	Unit  Text   // "EUR", "%", "bytes"; empty with Money means not stated
	Money bool

	change bool // says itself what it is, where there is little room
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

// named is the number with its name before it.
func (m Measure) named() Msg {
	if m.Name.Empty() {
		return m.words()
	}
	return msg("effect.named", "name", soft{m.Name}, "measure", m.words())
}

// Computed is a number that a contract computes.
type Computed struct {
	Name   string
	Value  float64
	Unit   string // a code of ISO 4217 makes it an amount of money
	Change bool   // how far from what stands now: only these have a plus
}

// MeasureOf makes a measure of a number, such as "+5.0" "%".
func MeasureOf(c Computed) *Measure {
	m := &Measure{Name: Outside(c.Name), Unit: Outside(c.Unit), change: c.Change}
	text := decimalText(c.Value, c.Unit == "%")
	if _, isMoney := isoDecimals(c.Unit); isMoney {
		text, m.Money = Money{Amount: text, Currency: c.Unit}.text(), true
	} else {
		text = group(text)
	}
	if c.Change && c.Value > 0 && strings.Trim(text, "0.,") != "" {
		text = "+" + text
	}
	m.Value = text
	return m
}

// decimalText writes a computed number with up to six decimals, a percentage
// with one unless it would then look like none at all.
func decimalText(value float64, percent bool) string {
	if percent {
		for decimals := 1; decimals <= 4; decimals++ {
			if text := strconv.FormatFloat(value, 'f', decimals, 64); strings.Trim(text, "-0.") != "" {
				return text
			}
		}
		return "0.0"
	}
	text := strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(value, 'f', 6, 64), "0"), ".")
	if strings.Trim(text, "-0.") == "" {
		return "0"
	}
	return text
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
