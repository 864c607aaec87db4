package rule

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"countersign/action"
	"countersign/action/contract"
)

// What is only written apart is the same, and it is said how; what is close is
// not the same.
func TestSame(t *testing.T) {
	for _, c := range []struct {
		promised, observed, field string
		same                      bool
		form                      Form
	}{
		{`105`, `105`, "/price", true, ""},
		{`105`, `105.00`, "/price", true, FormDecimals},
		{`105`, `"105.00"`, "/price", true, FormDecimals},
		{`"105.0"`, `"105.00"`, "/price", true, FormDecimals},
		{`1.05e2`, `105`, "/price", true, FormDecimals},
		{`105`, `105.01`, "/price", false, ""},
		{`105`, `10500`, "/price", false, ""},
		{`105`, `10500`, "/price_cents", true, FormExponent},
		{`42.1`, `4210`, "/amountCents", true, FormExponent},
		{`42.1`, `42100`, "/amount_cents", false, ""},
		{`"2026-03-01T12:00:00Z"`, `"2026-03-01T13:00:00+01:00"`, "/at", true, FormZone},
		{`"2026-03-01T12:00:00Z"`, `"2026-03-01 20:00:00+08:00"`, "/at", true, FormZone},
		{`"2026-03-01T12:00:00Z"`, `"2026-03-01T12:00:00+01:00"`, "/at", false, ""},
		{`null`, ``, "/coupon", true, FormAbsent},
		{``, `null`, "/coupon", true, FormAbsent},
		{`null`, `0`, "/coupon", false, ""},
		{`"007"`, `"7"`, "/id", false, ""},
		{`7`, `"007"`, "/id", false, ""},
		{`"1.10"`, `"1.1"`, "/release", false, ""},
		{`"on"`, `"ON"`, "/status", false, ""},
		{`true`, `"true"`, "/on", false, ""},
		{`9007199254740993`, `9007199254740992`, "/n", false, ""},
		{`1e99999999`, `1e99999998`, "/n", false, ""},
		{`[1]`, `[1.0]`, "/n", false, ""},
	} {
		same, forms := Same(json.RawMessage(c.promised), json.RawMessage(c.observed), c.field)
		if same != c.same || same && c.form != "" && !slices.Equal(forms, []Form{c.form}) || same && c.form == "" && len(forms) > 0 {
			t.Errorf("%s and %s at %s: %v %v", c.promised, c.observed, c.field, same, forms)
		}
	}
}

func TestFindingsSayWhatWasPromised(t *testing.T) {
	c, err := contract.Parse([]byte(`
name: shop.set_price
mode: write
input_schema: { type: object, properties: { new_price: { type: number }, coupon: { type: "null" } } }
execution:
  second_person_when: "payload.new_price > 100.0"
  postconditions:
    - { read: shop.get, field: /price, expect: "value == payload.new_price" }
    - { read: shop.get, field: /old, expect: "before.price == value" }
    - { read: shop.get, field: /stock, expect: "value >= 0.0" }
    - { read: shop.get, field: /coupon, expect: "value == null" }
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	facts := Facts{Payload: []byte(`{"new_price":105}`), Before: []byte(`{"price":100}`)}
	got, err := r.Postconditions(context.Background(), facts, map[string]json.RawMessage{"shop.get": []byte(`{"price":"105.00","old":99,"stock":-1}`)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		expected string
		holds    action.Holds
		form     []Form
	}{
		{"105", action.HoldsTrue, []Form{FormDecimals}}, {"100", action.HoldsFalse, nil},
		{"", action.HoldsFalse, nil}, {"null", action.HoldsTrue, []Form{FormAbsent}},
	} {
		if f := got[i]; string(f.Expected) != want.expected || f.Holds != want.holds || !slices.Equal(f.Forms, want.form) {
			t.Errorf("%s: expected %s, holds %q, forms %v", f.Field, f.Expected, f.Holds, f.Forms)
		}
	}
	for payload, want := range map[string]bool{`{"new_price":105}`: true, `{"new_price":100}`: false, `{}`: true} {
		if two, err := r.SecondPerson(context.Background(), []byte(payload)); two != want || err != nil {
			t.Errorf("%s: %v %v", payload, two, err)
		}
	}
}
