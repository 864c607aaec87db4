package sandbox

import (
	"encoding/json"
	"testing"
)

func TestCents(t *testing.T) {
	for text, want := range map[string]string{
		"105.00": "105", "105": "105", "99.9": "99.9", "99.90": "99.9", "0.05": "0.05", "0.5": "0.5", "9999999.99": "9999999.99",
	} {
		amount, err := parseCents(json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := json.Marshal(amount); string(got) != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0.001", "1e2", "10000000", "9007199254740993", "105.000000000000000000000000000001", "1/2", `"105"`, "null"} {
		if amount, err := parseCents(json.RawMessage(text)); err == nil {
			t.Errorf("%q was read as %d", text, amount)
		}
	}
	for amount, want := range map[cents]string{0: "0", -150: "-1.5", -5: "-0.05"} {
		if got, _ := json.Marshal(amount); string(got) != want {
			t.Errorf("%d is written %s, want %s", int64(amount), got, want)
		}
	}
}
