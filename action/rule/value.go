package rule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// decode reads JSON for CEL: every number is a double. A whole number that no
// double holds exactly stays text, so that it never equals a neighbour.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	return doubles(value), nil
}

func doubles(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = doubles(member)
		}
	case []any:
		for i, item := range v {
			v[i] = doubles(item)
		}
	case json.Number:
		f, err := v.Float64()
		if err != nil || !exact(v.String(), f) {
			return v.String()
		}
		return f
	}
	return value
}

// exact reports whether a whole number survives as a double. Fractions are
// approximate by nature.
func exact(literal string, f float64) bool {
	if strings.ContainsAny(literal, ".eE") {
		return true
	}
	whole, ok := new(big.Int).SetString(literal, 10)
	if !ok {
		return false
	}
	back, accuracy := new(big.Float).SetFloat64(f).Int(nil)
	return accuracy == big.Exact && back.Cmp(whole) == 0
}
