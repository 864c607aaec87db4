package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func wantRefusal(t *testing.T, err error, code Code, reason string, pointers ...string) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) {
		t.Errorf("got %v, want a refusal %s", err, code)
		return
	}
	var got []string
	for _, e := range r.Errors {
		got = append(got, e.Pointer)
	}
	if r.Code != code || r.Reason != reason || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", pointers) {
		t.Errorf("got %s/%s at %q (%s), want %s/%s at %q", r.Code, r.Reason, got, r.Detail, code, reason, pointers)
	}
}

func nested(levels int) string { // levels of containers, the outermost an object
	return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

func TestCanonicalAccepts(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                              `{}`,
		" {\r\n\t\"b\" : 1 , \"a\":[ ]} ": `{"a":[],"b":1}`,
		`{"n":[1.0,1e2,100e-2,-0,-0.0,0e999999999,1E+2,0.10]}`: `{"n":[1,100,1,0,0,0,100,0.1]}`,
		`{"n":[9007199254740992,9007199254740994,1e21,1e-7]}`:  `{"n":[9007199254740992,9007199254740994,1e+21,1e-7]}`,
		`{"t":"\u0000\u001F\/\u00e9\ud83d\ude02\u007f"}`:       `{"t":"\u0000\u001f/é😂` + "\x7f" + `"}`,
		`{"\u00e9":1,"e\u0301":2}`:                             "{\"e\u0301\":2,\"é\":1}",
		`{"":{"":{"":null}}}`:                                  `{"":{"":{"":null}}}`,
		`{"a":1,"A":2}`:                                        `{"A":2,"a":1}`,
		"{\"\U0001F602\":1,\"\ufb33\":2}":                      "{\"\U0001F602\":1,\"\ufb33\":2}", // UTF-16 order, not byte order
		nested(MaxPayloadDepth):                                nested(MaxPayloadDepth),
		`{"n":0.` + strings.Repeat("0", 300) + `1e301}`:        `{"n":1}`,
		`{"n":1` + strings.Repeat("0", 300) + `e-300}`:         `{"n":1}`,
	} {
		got, err := Canonical([]byte(raw))
		if err != nil || string(got) != want {
			t.Errorf("Canonical(%.80q) = %.80q, %v; want %.80q", raw, got, err, want)
			continue
		}
		checkCanonical(t, []byte(raw), got)
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		code      Code
		reason    string
		pointers  []string
	}{
		{"nothing", ``, Malformed, "syntax", []string{""}},
		{"array", `[1]`, InvalidPayload, "not-object", []string{""}},
		{"null", `null`, InvalidPayload, "not-object", []string{""}},
		{"string", `"x"`, InvalidPayload, "not-object", []string{""}},
		{"byte order mark", "\ufeff{}", Malformed, "syntax", []string{""}},
		{"trailing data", `{} {}`, Malformed, "syntax", []string{""}},
		{"trailing comma", `{"a":[1,]}`, Malformed, "syntax", []string{"/a/1"}},
		{"comment", `{"a":1 /* one */}`, Malformed, "syntax", []string{""}},
		{"not a number", `{"a":{"b":NaN}}`, Malformed, "syntax", []string{"/a/b"}},
		{"leading zero", `{"a":01}`, Malformed, "syntax", []string{""}},
		{"raw newline", "{\"a\":\"x\ny\"}", Malformed, "syntax", []string{"/a"}},
		{"syntax outweighs the rest", `{"a":1,"a":2,}`, Malformed, "syntax", []string{""}},
		{"duplicate key", `{"a":1,"b":2,"a":1}`, InvalidPayload, "duplicate-key", []string{"/a"}},
		{"duplicate after unescaping", `{"x":[{},{"a/b~":1,"a\/b\u007e":1}]}`, InvalidPayload, "duplicate-key", []string{"/x/1/a~1b~0"}},
		{"bad UTF-8", "{\"a\":\"\xff\"}", InvalidPayload, "bad-utf8", []string{"/a"}},
		{"bad UTF-8 in a key", "{\"a\":{\"\xff\":1}}", InvalidPayload, "bad-utf8", []string{"/a/\ufffd"}},
		{"keys alike only when repaired", "{\"\xff\":1,\"\ufffd\":2}", InvalidPayload, "bad-utf8", []string{"/\ufffd"}},
		{"and the other way round", "{\"\ufffd\":1,\"\xff\":2}", InvalidPayload, "bad-utf8", []string{"/\ufffd"}},
		{"two low surrogates", `{"a":"\ude02\ude02"}`, InvalidPayload, "lone-surrogate", []string{"/a"}},
		{"high surrogate and a private character", `{"a":"\ud83d\ue000"}`, InvalidPayload, "lone-surrogate", []string{"/a"}},
		{"lone surrogate", `{"a":"\ud83dx"}`, InvalidPayload, "lone-surrogate", []string{"/a"}},
		{"surrogates the wrong way round", `{"a":"\ude02\ud83d"}`, InvalidPayload, "lone-surrogate", []string{"/a"}},
		{"lone surrogate in a key", `{"\ud83d":1}`, InvalidPayload, "lone-surrogate", []string{"/\ufffd"}},
		{"raw surrogate", "{\"a\":\"\xed\xa0\x80\"}", InvalidPayload, "bad-utf8", []string{"/a"}},
		{"too deep", nested(MaxPayloadDepth + 1), InvalidPayload, "too-deep", []string{"/a" + strings.Repeat("/0", MaxPayloadDepth-1)}},
		{"far too deep", `{"a":` + strings.Repeat("[", 100_000), InvalidPayload, "too-deep", []string{"/a" + strings.Repeat("/0", MaxPayloadDepth-1)}},
		{"all places at once", `{"n":9007199254740993,"s":["\udead",1],"n":1}`, InvalidPayload, "changed-number", []string{"/n", "/s/0", "/n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Canonical([]byte(c.raw))
			wantRefusal(t, err, c.code, c.reason, c.pointers...)
		})
	}
}

// TestReport06: integers beyond 2^53 must not pass through a double.
func TestReport06_ChangedNumbers(t *testing.T) {
	for _, number := range []string{
		"9007199254740993", "-9007199254740993", "12345678901234567890", "1e400", "-1e400", "1e-400", "1e999999999",
		"1e-999999999", "1e99999999999999999999", "0.1000000000000000055511151231257827", "333333333.33333329",
		"1152921504606846976", // 2^60: a double exactly, yet RFC 8785 writes 1152921504606847000
		"1.00000000000000000001", strings.Repeat("9", 200_000), "0." + strings.Repeat("0", 100_000) + "1e100001",
		"1" + strings.Repeat("0", 5000) + "e-5000", // one, yet read as zero by some
		"0." + strings.Repeat("0", 400) + "1e401",  // one, but too long to be worth reading
	} {
		_, err := Canonical([]byte(`{"a":[0,` + number + `]}`))
		wantRefusal(t, err, InvalidPayload, "changed-number", "/a/1")
		if r := AsRefusal(err); !strings.Contains(r.Detail, "as a string") || len(r.Detail) > 300 {
			t.Errorf("the way out is not named, or not briefly: %s", r.Detail)
		}
	}
}

func TestCanonicalSize(t *testing.T) {
	fill := func(n int) []byte { return []byte(`{"a":"` + strings.Repeat("x", n-8) + `"}`) }
	if _, err := Canonical(fill(MaxPayloadBytes)); err != nil {
		t.Errorf("the largest payload: %v", err)
	}
	_, err := Canonical(fill(MaxPayloadBytes + 1))
	wantRefusal(t, err, TooLarge, "", "")
	grows := `{"a":[1e20` + strings.Repeat(",1e20", 40_000) + `]}`
	_, err = Canonical([]byte(grows))
	wantRefusal(t, err, TooLarge, "", "")
}

func TestRefusalsStaySmall(t *testing.T) {
	long := strings.Repeat("k", 100_000)
	many := `{"a":[` + strings.Repeat(`1e400,`, 1000) + `1]}`
	for _, raw := range []string{`{"` + long + `":1e400}`, many, `{"a":` + strings.Repeat("9", 100_000) + `}`} {
		_, err := Canonical([]byte(raw))
		text, marshalErr := json.Marshal(AsRefusal(err).Errors)
		if !IsCode(err, InvalidPayload) || marshalErr != nil || len(text) > 8<<10 {
			t.Errorf("%.20s…: %d bytes of errors (%v)", raw, len(text), err)
		}
	}
	_, err := Canonical([]byte(`{"a":{"` + long + `":1e400}}`))
	wantRefusal(t, err, InvalidPayload, "changed-number", "/a")
}

func TestUnder(t *testing.T) {
	_, err := Canonical([]byte(`{"a":1e400}`))
	moved := Under("/payload", err)
	wantRefusal(t, moved, InvalidPayload, "changed-number", "/payload/a")
	wantRefusal(t, err, InvalidPayload, "changed-number", "/a")
	if plain := errors.New("x"); Under("/payload", plain) != plain || Under("/payload", nil) != nil {
		t.Error("other errors changed")
	}
}

// Numbers are judged against exact rational arithmetic.
func TestChangedNumberIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		double := math.Float64frombits(random.Uint64())
		if math.IsNaN(double) || math.IsInf(double, 0) {
			continue
		}
		shortest := strconv.FormatFloat(double, "eg"[random.IntN(2)], -1, 64)
		if detail := changedNumber(shortest); detail != "" {
			t.Errorf("%s: %s", shortest, detail)
		}
		text := strconv.FormatFloat(double, 'e', random.IntN(20), 64)
		rounded, _ := strconv.ParseFloat(text, 64)
		exact, ok := new(big.Rat).SetString(text)
		canonical, ok2 := new(big.Rat).SetString(independentNumber(rounded))
		same := !math.IsInf(rounded, 0) && ok && ok2 && exact.Cmp(canonical) == 0
		if got := changedNumber(text) == ""; got != same {
			t.Errorf("%s: kept is %v, want %v", text, got, same)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[1.0,-0,1e2,0e9,true,null,"\ud83d\ude02\u0000\/"],"\u00e9":{"":{}}}`, `{"a":1,"a":2}`,
		`{"a":9007199254740993}`, `{"a":"\ud800"}`, "{\"\xff\":1}", `[[[`, `{"a":1e-400,"b":12345678901234567890}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		canonical, err := Canonical(raw)
		if err != nil {
			if AsRefusal(err).Code == Internal {
				t.Fatalf("not a refusal: %v", err)
			}
			if IsCode(err, Malformed) && json.Valid(raw) {
				t.Fatalf("valid JSON called malformed: %v", err)
			}
			return
		}
		checkCanonical(t, raw, canonical)
		if before, after := decodeNumbers(t, raw), decodeNumbers(t, canonical); !sameJSON(before, after) {
			t.Fatalf("another value: %q became %q", raw, canonical)
		}
		var body struct {
			V json.RawMessage `json:"v"`
		}
		if err := DecodeStrict(wrapped(raw), &body); err != nil || !bytes.Equal(body.V, bytes.Trim(raw, " \t\r\n")) {
			t.Fatalf("as a member: %q (%v)", body.V, err)
		}
	})
}

// sameJSON compares values, numbers by their exact value.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, ok := b[key]; !ok || !sameJSON(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	}
	return a == b
}

func sameNumber(a, b string) bool {
	if !strings.ContainsAny(a, "123456789") || strings.Trim(strings.ToLower(a)[:strings.IndexAny(strings.ToLower(a)+"e", "e")], "-0.") == "" {
		return b == "0" // zero, whatever its exponent: too large a power for exact arithmetic
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}

func BenchmarkCanonical(b *testing.B) {
	for name, raw := range map[string]string{
		"1KB":   `{"id":"p-100","items":[` + strings.Repeat(`{"sku":"abc","n":12,"price":19.99},`, 25) + `{}]}`,
		"ones":  `{"a":[1` + strings.Repeat(",1", 130_000) + `]}`,
		"long":  `{"a":` + strings.Repeat("9", 260_000) + `}`,
		"wrong": `{"a":[` + strings.Repeat("1e400,", 40_000) + `1]}`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Canonical([]byte(raw))
			}
		})
	}
}
