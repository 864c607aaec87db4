package action

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// seedPath returns a path below the shared test data and skips the test when
// the data is not on this machine.
func seedPath(t testing.TB, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
	data := filepath.Join(dir, "..", "shared", "data")
	if _, err := os.Stat(data); err != nil {
		t.Skipf("the shared test data is not here: %v", err)
	}
	return filepath.Join(append([]string{data}, parts...)...)
}

func seedFile(t testing.TB, parts ...string) []byte {
	t.Helper()
	raw, err := os.ReadFile(seedPath(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func seedFiles(t testing.TB, atLeast int, parts ...string) []string {
	t.Helper()
	files, err := filepath.Glob(seedPath(t, parts...))
	if err != nil || len(files) < atLeast {
		t.Fatalf("%d files in %v (%v), want at least %d", len(files), parts, err, atLeast)
	}
	return files
}

// wrapped makes a payload of any JSON value.
func wrapped(value []byte) []byte {
	return slices.Concat([]byte(`{"v":`), value, []byte(`}`))
}

func TestJCSVectors(t *testing.T) {
	for _, file := range seedFiles(t, 6, "json_edge", "jcs", "input", "*.json") {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			input := seedFile(t, "json_edge", "jcs", "input", name+".json")
			want := seedFile(t, "json_edge", "jcs", "output", name+".json")
			fromHex, err := hex.DecodeString(strings.Join(strings.Fields(string(seedFile(t, "json_edge", "jcs", "outhex", name+".txt"))), ""))
			if err != nil || !bytes.Equal(fromHex, want) {
				t.Fatalf("output and outhex differ (%v)", err)
			}
			if name == "values" { // the one vector whose canonical form changes a value
				_, err := Canonical(wrapped(input))
				wantRefusal(t, err, InvalidPayload, "changed-number", "/v/numbers/0")
				input = bytes.Replace(input, []byte("333333333.33333329"), []byte("333333333.3333333"), 1)
			}
			for _, text := range [][]byte{input, want} {
				got, err := Canonical(wrapped(text))
				if err != nil || !bytes.Equal(got, wrapped(want)) {
					t.Errorf("Canonical(%s)\n got %s (%v)\nwant %s", text, got, err, wrapped(want))
				}
			}
			if want[0] == '{' {
				if got, err := Canonical(input); err != nil || !bytes.Equal(got, want) {
					t.Errorf("unwrapped: got %s (%v)", got, err)
				}
			}
		})
	}
}

func TestJCSNumbers(t *testing.T) {
	var vectors []struct {
		Hex      string  `json:"ieee754_hex"`
		Expected *string `json:"expected"`
	}
	if err := json.Unmarshal(seedFile(t, "json_edge", "jcs", "numbers.json"), &vectors); err != nil || len(vectors) == 0 {
		t.Fatalf("%d vectors (%v)", len(vectors), err)
	}
	for _, v := range vectors {
		bits, err := strconv.ParseUint(v.Hex, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		double := math.Float64frombits(bits)
		if v.Expected == nil { // NaN and the infinities have no spelling
			for _, text := range []string{strconv.FormatFloat(double, 'g', -1, 64), "NaN", "Infinity", "-Infinity"} {
				_, err := Canonical(wrapped([]byte(text)))
				wantRefusal(t, err, Malformed, "syntax", "/v")
			}
			continue
		}
		for _, text := range []string{*v.Expected, strconv.FormatFloat(double, 'e', -1, 64), strconv.FormatFloat(double, 'f', -1, 64)} {
			got, err := Canonical(wrapped([]byte(text)))
			if err != nil || string(got) != `{"v":`+*v.Expected+`}` {
				t.Errorf("%s: got %s (%v), want %s", text, got, err, *v.Expected)
			}
		}
		if got := independentNumber(double); got != *v.Expected {
			t.Errorf("the test's own writer: %s, want %s", got, *v.Expected)
		}
	}
}

// What a valid text (y_) is refused for beyond the grammar. Texts that are no
// object are covered by wrapping them.
var refusedValid = map[string]string{
	"y_object_duplicated_key.json":           "duplicate-key",
	"y_object_duplicated_key_and_value.json": "duplicate-key",
}

// Where the suite leaves the answer open (i_): the reason of the refusal, ""
// for accepted.
var decidedOpen = map[string]string{
	"i_number_double_huge_neg_exp.json":                   "changed-number",
	"i_number_huge_exp.json":                              "changed-number",
	"i_number_neg_int_huge_exp.json":                      "changed-number",
	"i_number_pos_double_huge_exp.json":                   "changed-number",
	"i_number_real_neg_overflow.json":                     "changed-number",
	"i_number_real_pos_overflow.json":                     "changed-number",
	"i_number_real_underflow.json":                        "changed-number",
	"i_number_too_big_neg_int.json":                       "changed-number",
	"i_number_too_big_pos_int.json":                       "", // 10^20 is a double exactly
	"i_number_very_big_negative_int.json":                 "changed-number",
	"i_object_key_lone_2nd_surrogate.json":                "lone-surrogate",
	"i_string_1st_surrogate_but_2nd_missing.json":         "lone-surrogate",
	"i_string_1st_valid_surrogate_2nd_invalid.json":       "lone-surrogate",
	"i_string_incomplete_surrogate_and_escape_valid.json": "lone-surrogate",
	"i_string_incomplete_surrogate_pair.json":             "lone-surrogate",
	"i_string_incomplete_surrogates_escape_valid.json":    "lone-surrogate",
	"i_string_invalid_lonely_surrogate.json":              "lone-surrogate",
	"i_string_invalid_surrogate.json":                     "lone-surrogate",
	"i_string_inverted_surrogates_U+1D11E.json":           "lone-surrogate",
	"i_string_lone_second_surrogate.json":                 "lone-surrogate",
	"i_string_UTF-8_invalid_sequence.json":                "bad-utf8",
	"i_string_UTF8_surrogate_U+D800.json":                 "bad-utf8",
	"i_string_invalid_utf-8.json":                         "bad-utf8",
	"i_string_iso_latin_1.json":                           "bad-utf8",
	"i_string_lone_utf8_continuation_byte.json":           "bad-utf8",
	"i_string_not_in_unicode_range.json":                  "bad-utf8",
	"i_string_overlong_sequence_2_bytes.json":             "bad-utf8",
	"i_string_overlong_sequence_6_bytes.json":             "bad-utf8",
	"i_string_overlong_sequence_6_bytes_null.json":        "bad-utf8",
	"i_string_truncated-utf-8.json":                       "bad-utf8",
	"i_string_UTF-16LE_with_BOM.json":                     "syntax",
	"i_string_utf16BE_no_BOM.json":                        "syntax",
	"i_string_utf16LE_no_BOM.json":                        "syntax",
	"i_structure_500_nested_arrays.json":                  "too-deep",
	"i_structure_UTF-8_BOM_empty_object.json":             "syntax",
}

// Texts that the suite files as "how a parser transforms it". We transform
// nothing: accepted as it is, or refused.
var decidedTransform = map[string]string{
	"number_-9223372036854775808.json":         "changed-number",
	"number_-9223372036854775809.json":         "changed-number",
	"number_1.0.json":                          "",
	"number_1.000000000000000005.json":         "changed-number",
	"number_1000000000000000.json":             "",
	"number_10000000000000000999.json":         "changed-number",
	"number_1e-999.json":                       "changed-number",
	"number_1e6.json":                          "",
	"number_9223372036854775807.json":          "changed-number",
	"number_9223372036854775808.json":          "changed-number",
	"object_key_nfc_nfd.json":                  "", // two keys: nothing is normalized
	"object_key_nfd_nfc.json":                  "",
	"object_same_key_different_values.json":    "duplicate-key",
	"object_same_key_same_value.json":          "duplicate-key",
	"object_same_key_unclear_values.json":      "duplicate-key",
	"string_1_escaped_invalid_codepoint.json":  "lone-surrogate",
	"string_1_invalid_codepoint.json":          "bad-utf8",
	"string_2_escaped_invalid_codepoints.json": "lone-surrogate",
	"string_2_invalid_codepoints.json":         "bad-utf8",
	"string_3_escaped_invalid_codepoints.json": "lone-surrogate",
	"string_3_invalid_codepoints.json":         "bad-utf8",
	"string_with_escaped_NULL.json":            "",
}

func TestJSONTestSuite(t *testing.T) {
	files := slices.Concat(
		seedFiles(t, 300, "json_edge", "jsontestsuite", "test_parsing", "*.json"),
		seedFiles(t, 20, "json_edge", "jsontestsuite", "test_transform", "*.json"))
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, decided := "", true
			switch name[:2] {
			case "y_":
				want = refusedValid[name]
			case "n_":
				want = "syntax or bad-utf8"
			case "i_":
				want, decided = decidedOpen[name]
			default:
				want, decided = decidedTransform[name]
			}
			if !decided {
				t.Fatal("no decision is written down for this text")
			}
			checkSuiteText(t, raw, want)
		})
	}
}

// checkSuiteText checks a text as a payload, inside a payload, and as the
// payload of a body.
func checkSuiteText(t *testing.T, raw []byte, want string) {
	canonical, err := Canonical(wrapped(raw))
	checkReason(t, "wrapped", err, want)
	if err == nil {
		checkCanonical(t, wrapped(raw), canonical)
	}

	_, err = Canonical(raw)
	switch object := bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")); {
	case object || want == "syntax or bad-utf8" || want == "syntax" || want == "too-deep":
		checkReason(t, "bare", err, want)
	case !IsCode(err, InvalidPayload):
		t.Errorf("bare: got %v, want a refusal: not an object", err)
	case want == "":
		checkReason(t, "bare", err, "not-object")
	}

	var body struct {
		V json.RawMessage `json:"v"`
	}
	err = DecodeStrict(wrapped(raw), &body)
	if want == "changed-number" { // judged by Canonical, which the caller runs on the member
		want = ""
	}
	checkReason(t, "body", err, want)
	if err == nil && !bytes.Equal(bytes.Trim(raw, " \t\r\n"), body.V) {
		t.Errorf("body: %s arrived as %s", raw, body.V)
	}
}

func checkReason(t *testing.T, how string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: refused: %v", how, err)
		}
		return
	}
	var reason string
	if err != nil {
		reason = AsRefusal(err).Reason
	}
	if !slices.Contains(strings.Split(want, " or "), reason) {
		t.Errorf("%s: got reason %q (%v), want %s", how, reason, err, want)
	}
}

func TestRealPayloads(t *testing.T) {
	lines := bufio.NewScanner(bytes.NewReader(seedFile(t, "dev", "proposals.jsonl")))
	lines.Buffer(nil, 16<<20)
	count := 0
	for ; lines.Scan(); count++ {
		var line struct {
			Payload json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		canonical, err := Canonical(line.Payload)
		if err != nil {
			t.Errorf("line %d: %v: %s", count+1, err, line.Payload)
			continue
		}
		checkCanonical(t, line.Payload, canonical)
		if got, want := PayloadHash(canonical), PayloadHash(independentJCS(t, line.Payload)); got != want {
			t.Errorf("line %d: hash %s, independent %s", count+1, got, want)
		}
	}
	if lines.Err() != nil || count < 2000 {
		t.Errorf("%d lines (%v)", count, lines.Err())
	}
}

// Odd text is kept byte for byte; showing it is another matter.
func TestOddTextIsKept(t *testing.T) {
	for i, line := range bytes.Split(bytes.TrimSpace(seedFile(t, "dev", "adversarial.jsonl")), []byte("\n")) {
		var odd struct{ Text string }
		if err := json.Unmarshal(line, &odd); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(map[string]string{"text": odd.Text})
		if err != nil {
			t.Fatal(err)
		}
		canonical, err := Canonical(raw)
		if err != nil {
			t.Errorf("line %d: %v", i+1, err)
			continue
		}
		checkCanonical(t, raw, canonical)
	}
}
