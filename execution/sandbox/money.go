package sandbox

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// cents is an amount in hundredths of a currency unit. In JSON it is a number
// in its shortest form: 10500 is 105, 9990 is 99.9.
type cents int64

// maxCents is the largest amount a request may name: 9,999,999.99.
const maxCents cents = 999_999_999

var errAmount = errors.New("an amount is a JSON number above 0 and up to 9999999.99, with at most two decimals and no exponent")

// MarshalJSON writes the shortest decimal number.
func (c cents) MarshalJSON() ([]byte, error) {
	whole, rest := int64(c)/100, int64(c)%100
	sign := ""
	if c < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	text := sign + strconv.FormatInt(whole, 10)
	if rest != 0 {
		text += strings.TrimRight("."+strconv.FormatInt(100+rest, 10)[1:], "0")
	}
	return []byte(text), nil
}

// parseCents reads an amount without rounding.
func parseCents(n json.RawMessage) (cents, error) {
	if len(n) == 0 || len(n) > 32 || strings.ContainsAny(string(n), "eE/") {
		return 0, errAmount
	}
	value, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return 0, errAmount
	}
	value.Mul(value, big.NewRat(100, 1))
	if !value.IsInt() || value.Sign() <= 0 || value.Cmp(big.NewRat(int64(maxCents), 1)) > 0 {
		return 0, errAmount
	}
	return cents(value.Num().Int64()), nil
}
