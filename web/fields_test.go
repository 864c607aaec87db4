package web

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func labelsOf(t FieldTable) string {
	var out []string
	for _, f := range t.Fields {
		out = append(out, fmt.Sprintf("%s=%d", f.Label.s, f.Group))
	}
	return strings.Join(out, " ")
}

func TestChangedFieldsComeFirstAndNoneIsLeftOut(t *testing.T) {
	table := NewFields(FieldSource{
		Payload: []byte(`{"a":1,"b":{"c":"x","d":[1,2]},"e":[{"f":true}],"g":{},"h":[]}`),
		Now:     map[string]json.RawMessage{"/a": []byte(`1.0`), "/b/c": []byte(`"y"`), "/b/d": []byte(`[1,2]`)},
	})
	if got, want := labelsOf(table), "B › c=0 A=1 B › d=1 E 1 › f=2 G=2 H=2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMasksHideValuesEverywhere(t *testing.T) {
	payload := []byte(`{"customer":{"phone":"+49170","name":"Li"},"items":[{"card":"4111"},{"card":"5500"}],"tags":["secret","x"]}`)
	mask := []string{"/customer/phone", "/items/*/card", "/tags/0"}
	table := NewFields(FieldSource{Payload: payload, Mask: mask, Now: Leaves(payload)})
	page := rendered(t, English, Fields(table)) + rendered(t, English, Content(Payload{Canonical: payload, Mask: mask}))
	for _, secret := range []string{"+49170", "4111", "5500", "secret"} {
		if strings.Contains(page, secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	for _, seen := range []string{"Li", "customer.phone", "present, hidden by contract"} {
		if !strings.Contains(page, seen) {
			t.Errorf("%q is not shown", seen)
		}
	}
}

func TestClaimsAreComparedWithWhatWasRead(t *testing.T) {
	for claim, want := range map[string]Claim{`"100.00"`: ClaimAgrees, `"90.00"`: ClaimDiffers, ``: ClaimUnchecked} {
		table := NewFields(FieldSource{Payload: []byte(`{"old_price":"100.00"}`), Claims: map[string]json.RawMessage{"/old_price": json.RawMessage(claim)}})
		if got := table.Fields[0].Claim; got != want {
			t.Errorf("read %q: claim %d, want %d", claim, got, want)
		}
		page := rendered(t, English, Fields(table))
		if !strings.Contains(page, "as the program claims") {
			t.Error("a claim is not called one")
		}
	}
}

func TestNumbersStandAsCanonicalized(t *testing.T) {
	table := NewFields(FieldSource{Payload: []byte(`{"big":9007199254740991,"small":1e-7,"e":1e+21,"id":4800,"text":"0042"}`)})
	page := rendered(t, English, Fields(table))
	for _, n := range []string{"9007199254740991", "1e-7", "1e+21", ">4800<", "0042"} {
		if !strings.Contains(page, n) {
			t.Errorf("%s is not shown as it is", n)
		}
	}
}

func TestMoney(t *testing.T) {
	for _, c := range []struct{ amount, currency, want string }{
		{"105", "EUR", "105.00"}, {"25000", "EUR", "25,000.00"}, {"-3.5", "EUR", "−3.50"}, {"105.005", "EUR", "105.005"},
		{"4800", "", "4800"}, {"1e3", "EUR", "1e3"}, {"about 5", "EUR", "about 5"},
	} {
		if got := (Money{c.amount, c.currency, 2}).text(); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.amount, c.currency, got, c.want)
		}
	}
	for _, c := range []struct{ m, want string }{{(Money{Amount: "99999", Currency: "EUR"}).String(), "99,999.00 EUR"},
		{(Money{Amount: "1200", Currency: "JPY"}).String(), "1,200 JPY"}, {(Money{Amount: "-42", Currency: "EUR", MinorUnits: 3}).String(), "−42.000 EUR"},
		{(Money{Amount: "42", Currency: "XQX", MinorUnits: 1}).String(), "42.0 XQX"}} {
		if c.m != c.want {
			t.Errorf("%s, want %s", c.m, c.want)
		}
	}
	by, share, ok := difference("100.00", "105.00", 2)
	if by != "+5.00" || share != "+5.0" || !ok {
		t.Errorf("100 to 105 is %s, %s %%", by, share)
	}
	if by, share, _ := difference("0", "5", 0); by != "+5" || share != "" {
		t.Errorf("0 to 5 is %s, %q %%", by, share)
	}
	if by, _, _ := difference("0.1", "0.3", 0); by != "+0.2" {
		t.Errorf("0.1 to 0.3 is %s", by)
	}
	if by, share, _ := difference("100000", "100000.01", 2); by != "+0.01" || share != "" {
		t.Errorf("a cent on 100,000 is %s, %q %%", by, share)
	}
	table := NewFields(FieldSource{Payload: []byte(`{"amount":4800}`), Money: map[string]Money{"/amount": {}}})
	if page := rendered(t, English, Fields(table)); !strings.Contains(page, "currency not stated") {
		t.Error("a missing currency is not said")
	}
	for amount, said := range map[string]string{"1250000.5": "that is 1,250,000.5, currency not stated", "999": "a number, currency not stated", "1e21": "a number, currency not stated"} {
		table = NewFields(FieldSource{Payload: []byte(`{"amount":` + amount + `}`), Money: map[string]Money{"/amount": {}}})
		if page := rendered(t, English, Fields(table)); !strings.Contains(page, said) || !strings.Contains(page, ">"+amount+"<") {
			t.Errorf("%s does not stand as it was written, with %q: %s", amount, said, page)
		}
	}
	seen := FieldSource{Kind: TableStale, Payload: []byte(`{"amount":1050}`), Now: map[string]json.RawMessage{"/amount": json.RawMessage("105")}}
	if page := rendered(t, English, Fields(NewFields(seen))); !strings.Contains(page, "+945, +900.0 % from what you saw") {
		t.Errorf("a share of what was seen is not told as one: %s", page)
	}
}

// The pretty form adds white space between tokens and nothing else.
func TestCanonicalJSONKeepsEveryByte(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, canonical string) {
		s := jsonScan{src: []byte(canonical), limit: len(canonical)}
		var back, outer strings.Builder
		for _, p := range s.pieces() {
			text := p.text
			if p.outer {
				outer.WriteString(text)
			} else {
				text = strings.NewReplacer("\n", "", " ", "").Replace(text)
			}
			back.WriteString(text)
		}
		if back.String() != canonical {
			t.Fatalf("%s became %s", canonical, back.String())
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "data", "json_edge", "jcs", "output", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		check(t, strings.TrimSpace(string(raw)))
	}
	for _, c := range []string{`{}`, `[]`, `[[],{}]`, `{"a b":"c, d: {e}"}`, `{"a":"\"\\"}`, `"x"`, `{`, `{"a"`, `[1,`, `]`, `{"a":1}}`, `tru`} {
		check(t, c)
	}
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{rapid.String().Draw(t, "name"): rapid.SliceOf(rapid.String()).Draw(t, "list"), "n": rapid.Float64().Draw(t, "n")}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Skip("not JSON")
		}
		check(t, string(raw))
	})
}

func TestALongContentSaysHowMuchIsShown(t *testing.T) {
	raw, err := json.Marshal(map[string]string{"content": strings.Repeat("内网 allow\n", 3000)})
	if err != nil {
		t.Fatal(err)
	}
	p := Payload{Canonical: raw, Full: "/actions/a?view=full"}
	page := rendered(t, English, Content(p))
	if !strings.Contains(page, "4,096 of "+group(fmt.Sprint(len(raw)))+" bytes are shown") || !strings.Contains(page, `href="/actions/a?view=full"`) {
		t.Error("the cut is not said")
	}
	if what, bad := hostileIn(page); bad {
		t.Errorf("the cut parts a code point: %s", what)
	}
	p.Full = ""
	if whole := rendered(t, English, Content(p)); strings.Contains(whole, "bytes are shown") || strings.Count(whole, "内网") != 3000 {
		t.Error("the whole content is not whole")
	}
	if removed := rendered(t, English, Content(Payload{})); !strings.Contains(removed, "Removed after its retention time") {
		t.Error("a removed content is not called removed")
	}
}

func TestFieldsAreCalledByTheirWordsAndNeverAlike(t *testing.T) {
	label := map[string]Text{"/items": Outside("Articles"), "/items/0": Outside("Article"), "/items/1": Outside("Article"), "/customer/phone": Outside("Phone"),
		"/billing/phone": Outside("Phone"), "/new_price": Outside("New price")}
	for payload, want := range map[string]string{
		`{"new_price":1,"items":[{"sku":"a"},{"sku":"b"}]}`:                     "New price=2 Article 1 › sku=2 Article 2 › sku=2",
		`{"customer":{"phone":"1"},"n":1}`:                                      "Phone=2 N=2",
		`{"customer":{"phone":"1"},"billing":{"phone":"2"}}`:                    "customer.phone=2 billing.phone=2",
		`{"toAccount":"1","customerID":"2","max-size":3,"Überweisung_an":"4"}`:  "To account=2 Customer ID=2 Max size=2 Überweisung_an=2",
		`{"to_account":"1","toAccount":"2"}`:                                    "to_account=2 toAccount=2",
		`{"lines":[{"unit_price":1}],"lines 1":{"unit price":2},"":3,"__":"x"}`: `lines[0].unit_price=2 lines 1.unit price=2 ""=2 __=2`,
	} {
		if got := labelsOf(NewFields(FieldSource{Payload: []byte(payload), Label: label})); got != want {
			t.Errorf("%s: %s, want %s", payload, got, want)
		}
	}
}

func TestWhatWasReadStandsBesideThePayload(t *testing.T) {
	eur := Money{Currency: "EUR", MinorUnits: 2}
	table := NewFields(FieldSource{Payload: []byte(`{"order_id":"7"}`), Now: map[string]json.RawMessage{"/order_id": []byte(`"7"`)},
		Beside: &Beside{Compared: map[string]bool{"/order_id": true}, Promised: map[string]json.RawMessage{"/status": []byte(`"cancelled"`), "/open": []byte(`true`)},
			Read: FieldSource{Payload: []byte(`{"order_id":"7","status":"paid","open":true,"total":787,"pin":"1234","lines":[{"ref":"a","amount":-3,"memo":null},{"ref":"b","amount":42}]}`),
				Money: map[string]Money{"/total": eur, "/lines/0/amount": eur, "/lines/1/amount": eur}, Mask: []string{"/pin"}}}})
	if got, want := labelsOf(table), "Status=0 Order id=1 Open=1 Total=3 Pin=3 Lines 1=3 Lines 2=3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	page := rendered(t, English, Fields(table))
	for _, seen := range []string{"cancelled", "if it succeeds", "787.00 EUR", "−3.00 EUR", "42.00 EUR", "none", "4 more fields were read"} {
		if !strings.Contains(page, seen) {
			t.Errorf("%q is not shown", seen)
		}
	}
	if strings.Contains(page, "1234") {
		t.Error("a hidden value is shown")
	}
	long := NewFields(FieldSource{Payload: []byte(`{}`), Beside: &Beside{Read: FieldSource{Payload: []byte(`{"l":[` + strings.Repeat(`{"a":1},`, 99) + `{"a":1}]}`)}}})
	if len(long.Fields) != mostBeside || long.Unsaid != 100-mostBeside {
		t.Errorf("%d rows, %d are said to be elsewhere", len(long.Fields), long.Unsaid)
	}
}

func TestOnlyChangesHaveAPlus(t *testing.T) {
	for _, c := range []struct {
		Computed
		want string
	}{
		{Computed{"share of what was paid", 100, "%", false}, "share of what was paid 100.0 %"}, {Computed{"", 5, "%", true}, "+5.0 %"},
		{Computed{"", -50.3, "%", true}, "−50.3 %"}, {Computed{"", 0, "%", true}, "0.0 %"}, {Computed{"", -0.0001, "%", true}, "−0.0001 %"},
		{Computed{"", 1e-9, "%", true}, "0.0 %"}, {Computed{"", 0.04, "%", true}, "+0.04 %"}, {Computed{"order total", 787, "EUR", false}, "order total 787.00 EUR"},
		{Computed{"", 0.1 + 0.2, "EUR", false}, "0.30 EUR"}, {Computed{"", 12, "EUR", true}, "+12.00 EUR"}, {Computed{"size", 1234, "bytes", false}, "size 1,234 bytes"},
	} {
		if got := MeasureOf(c.Computed).named().Plain(t.Context()); got != c.want {
			t.Errorf("%+v: %s, want %s", c.Computed, got, c.want)
		}
	}
}
