package contract

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Amount is a sum of money in a payload.
type Amount struct {
	Pointer  string
	Text     string // the number, with the currency's decimals when they are known; never rounded
	Currency string // ISO 4217; "" when nothing states it
}

// Money returns what the contract says of the money at a place.
func (c *Contract) Money(pointer string) (Money, bool) { return byPlace(c.Display.Money, pointer) }

// Amounts lists the sums of money in a payload: those that the contract
// declares, and numbers whose names say so. Hidden values are left out.
func (c *Contract) Amounts(payload []byte) []Amount {
	doc, err := parsePayload(payload)
	if err != nil {
		return nil
	}
	var amounts []Amount
	c.collectAmounts(doc, doc, nil, &amounts)
	slices.SortStableFunc(amounts, func(a, b Amount) int { return c.declared(b) - c.declared(a) })
	return amounts
}

// Moved returns the sum of money that changes hands when an action with this
// payload happens: the first amount of it, where the contract or the amount's name
// says that it moves. A price that is set, a balance or a limit is no such sum, and
// false is the answer wherever nothing tells.
func (c *Contract) Moved(payload []byte) (Amount, bool) {
	amounts := c.Amounts(payload)
	if len(amounts) == 0 {
		return Amount{}, false
	}
	if money, ok := c.Money(amounts[0].Pointer); ok && money.Moves != nil {
		return amounts[0], *money.Moves
	}
	at := splitPointer(amounts[0].Pointer)
	return amounts[0], slices.ContainsFunc(nameWords(at[len(at)-1]), func(word string) bool {
		return slices.Contains([]string{"amount", "fee", "refund", "payment", "deposit"}, word)
	})
}

func (c *Contract) declared(a Amount) int {
	if _, ok := c.Money(a.Pointer); ok {
		return 1
	}
	return 0
}

func (c *Contract) collectAmounts(doc, n *node, at []string, amounts *[]Amount) {
	if c.Masked(joinTokens(at)) {
		return
	}
	if n.scalar() {
		if a, ok := c.amountAt(doc, joinTokens(at)); ok {
			*amounts = append(*amounts, a)
		}
		return
	}
	for i, item := range n.items {
		c.collectAmounts(doc, item, below(at, strconv.Itoa(i)), amounts)
	}
	for _, m := range n.members {
		c.collectAmounts(doc, m.value, below(at, m.key), amounts)
	}
}

// amountAt reads the value at a place as money, if it is.
func (c *Contract) amountAt(doc *node, pointer string) (Amount, bool) {
	at := splitPointer(pointer)
	value := doc.at(pointer)
	if len(at) == 0 || value == nil {
		return Amount{}, false
	}
	if money, ok := c.Money(pointer); ok {
		currency := money.Currency
		if isPointer(currency) {
			currency = currencyCode(doc.at(currency))
		}
		return Amount{pointer, withDecimals(value.text, money.MinorUnits), currency}, value.scalar()
	}
	name := at[len(at)-1]
	if value.kind != numberKind || !LooksMoney(name) {
		return Amount{}, false
	}
	beside := doc.at(joinTokens(at[:len(at)-1]))
	for _, key := range []string{name + "_currency", "currency", "currency_code"} {
		if code := currencyCode(beside.get(key)); code != "" {
			return Amount{pointer, value.text, code}, true
		}
	}
	return Amount{Pointer: pointer, Text: value.text}, true
}

func currencyCode(n *node) string {
	if n == nil || n.kind != stringKind || len(n.text) != 3 || strings.ToUpper(n.text) != n.text {
		return ""
	}
	if strings.ContainsFunc(n.text, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return ""
	}
	return n.text
}

// withDecimals adds zeros to a plain decimal; anything else stays as it is.
func withDecimals(literal string, decimals int) string {
	digits := strings.TrimPrefix(literal, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	plain := whole != "" && !strings.ContainsFunc(whole+fraction, func(r rune) bool { return r < '0' || r > '9' })
	if !plain || len(fraction) >= decimals {
		return literal
	}
	if !strings.Contains(literal, ".") {
		literal += "."
	}
	return literal + strings.Repeat("0", decimals-len(fraction))
}

// LooksMoney reports whether a number of this name is likely a sum of money.
func LooksMoney(name string) bool {
	words := nameWords(name)
	has := func(list ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	return has("amount", "price", "cost", "fee", "fare", "salary", "balance", "budget", "refund", "payment", "deposit") &&
		!has("percent", "percentage", "pct", "rate", "ratio", "count", "number", "quantity", "id", "type", "level", "index")
}

// LooksSecret reports whether a value of this name is likely a credential.
func LooksSecret(name string) bool {
	words := nameWords(name)
	joined := strings.Join(words, "_")
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"password", "passwd", "passphrase", "secret", "token", "apikey", "credential", "credentials", "cvv", "cvc", "otp", "pin"}, w)
	}) || strings.Contains(joined, "api_key") || strings.Contains(joined, "private_key") || strings.Contains(joined, "access_key")
}

// nameWords splits snake_case, kebab-case and camelCase into lower-case words.
func nameWords(name string) []string {
	var words []string
	start := true
	upper := false
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			start = true
			continue
		}
		if start || unicode.IsUpper(r) && !upper {
			words = append(words, "")
		}
		start, upper = false, unicode.IsUpper(r)
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	return words
}
