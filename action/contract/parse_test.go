package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"countersign/action"
)

// full is the example of the documentation.
func full(t *testing.T) *Contract {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "set_price.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func parse(t *testing.T, text string) *Contract {
	t.Helper()
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v %+v", err, action.AsRefusal(err).Errors)
	}
	return c
}

// with parses a contract that has an input without a schema and the given
// further JSON members.
func with(t *testing.T, members string) *Contract {
	t.Helper()
	return parse(t, `{"name": "a.b", "input_schema": {"type": "object"}, `+members+`}`)
}

func TestFullContract(t *testing.T) {
	c := full(t)
	if c.Bare() || c.Mode != Write || c.ObjectVersion != VersionRequired || c.Execution.Retry != RetrySameKey ||
		c.Execution.Proves != action.ProvesCompleted || c.Execution.Lease.Duration != time.Minute ||
		c.Title.In("zh-CN") != "修改商品价格" || c.Title.In("fr") != "Change a product's price" ||
		c.Approval.Rules[1].Approvals != 2 || !c.Approval.Rules[1].StepUp || !c.HTTP.Body.All ||
		c.Display.Money["/new_price"].Currency != "EUR" || c.Execution.StatusQuery.MaxPolls != 6 {
		t.Errorf("got %+v", c)
	}
	if !c.Loads("chat") || c.Loads("background") || c.Loads("") || !(&Contract{}).Loads("") {
		t.Error("wrong entries")
	}
	if got := c.Fields(); !reflect.DeepEqual(got, []string{"product_id", "new_price", "name", "customer"}) {
		t.Errorf("fields in the wrong order: %v", got)
	}
}

func TestBareDefaults(t *testing.T) {
	c := parse(t, `{"name": "pay", "inputSchema": {"type": "object"}, "x": 1, "annotations": {"title": "Pay", "destructiveHint": true}}`)
	want := map[string]string{
		"/mode": "write", "/entries": "every entry point", "/object_version": "optional", "/target": "named by each request",
		"/approval/ttl": "15m", "/approval/confirmation_ttl": "5m", "/approval/rules": "one approval by support",
		"/execution/proves": "accepted", "/execution/retry": "never", "/execution/definite_failures": "[]",
		"/execution/conflicts": "[412]", "/execution/timeout": "10s", "/execution/lease": "1m", "/execution/fence_after": "24h",
		"/execution/verify/tries": "3", "/execution/verify/window": "20s", "/execution/deadline": "2m",
	}
	got := map[string]string{}
	for _, a := range c.Assumed() {
		got[a.Pointer] = a.Value
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("assumed %v, want %v", got, want)
	}
	if !c.Bare() || c.Heading("en") != "Pay" || string(c.Annotations["x"]) != "1" || string(c.Annotations["destructiveHint"]) != "true" {
		t.Errorf("got %+v", c)
	}
}

func TestBareMode(t *testing.T) {
	tests := map[string]Mode{
		`"read_only": true`:                                                      Read,
		`"read_only": false`:                                                     Write,
		`"annotations": {"readOnlyHint": true}`:                                  Read,
		`"annotations": {"readOnlyHint": true}, "read_only": true`:               Read,
		`"description": "nothing said"`:                                          Write,
		`"execution": {"taskSupport": "optional"}, "annotations": {"a": [1, 2]}`: Write,
	}
	for members, want := range tests {
		if got := with(t, members); got.Mode != want || !got.Bare() {
			t.Errorf("%s: mode %s, bare %v", members, got.Mode, got.Bare())
		}
	}
}

func numbered(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"m%d": 1`, i))
	}
	return strings.Join(all, ", ")
}

func TestParseRefuses(t *testing.T) {
	in := func(members string) string {
		return `{"name": "a.b", "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}}, ` + members + `}`
	}
	tests := []struct {
		name, text string
		code       action.Code
		pointers   string // space-separated
	}{
		{"empty", " \n", action.Malformed, ""},
		{"no object", "- a", action.Malformed, ""},
		{"broken JSON", "\ufeff\n{\"name\": \"a\",\n \"input_schema\": {]}", action.Malformed, ""},
		{"not UTF-8", "name: \xff", action.Malformed, ""},
		{"too large", strings.Repeat(" ", maxDocument+1), action.TooLarge, ""},
		{"half a surrogate", in(`"description": "\ud800"`), action.Malformed, ""},
		{"duplicate key in JSON", in(`"mode": "read", "mode": "write"`), action.Malformed, "/mode"},
		{"duplicate key in YAML", "name: a\ninput_schema: {type: object, type: object}", action.Malformed, "/input_schema/type"},
		{"several documents", "name: a\n---\nname: b", action.Malformed, ""},
		{"anchor", "name: &a b\ninput_schema: {}", action.Malformed, "/name"},
		{"alias bomb", "a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]", action.Malformed, "/a"},
		{"merge key", "name: a\ninput_schema: {<<: {a: 1}}", action.Malformed, "/input_schema"},
		{"tag", "name: !!binary aGk=", action.Malformed, "/name"},
		{"octal", "name: a\nlimit: 0o17", action.Malformed, "/limit"},
		{"hexadecimal", "name: a\nlimit: 0x1F", action.Malformed, "/limit"},
		{"infinity", "name: a\nlimit: .inf", action.Malformed, "/limit"},
		{"depth", in(`"a": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100)), action.Malformed, "/a" + strings.Repeat("/0", maxDepth)},
		{"flow depth", strings.Repeat("[", 100_000), action.Malformed, ""},
		{"dash depth", strings.Repeat("- ", 100_000), action.Malformed, ""},
		{"more keys than YAML is read with", "a:\n" + strings.Repeat("  b: 1\n", 7000), action.TooLarge, ""},
		{"more members than a contract has", "{" + numbered(501) + "}", action.TooLarge, ""},
		{"roles in which nobody decides", in(`"mode": "write", "approval": {"rules": [{"when": "true", "role": "admin", "approvals": 1}, {"when": "true", "role": "auditor", "approvals": 1},
			{"when": "true", "role": "` + strings.Repeat("a", 33) + `", "approvals": 1}, {"when": "true", "role": "Support", "approvals": 1}, {"when": "true", "role": "finance-2", "approvals": 1}]}`), action.InvalidArgument,
			"/approval/rules/0/role /approval/rules/1/role /approval/rules/2/role /approval/rules/3/role"},
		{"more after JSON", in(`"mode": "read"`) + "{}", action.Malformed, ""},
		{"nothing needed is there", `{"mode": "read"}`, action.InvalidArgument, "/input_schema /name"},
		{"name with a slash", `{"name": "a/b", "input_schema": {}}`, action.InvalidArgument, "/name"},
		{"name of dots", `{"name": "..", "input_schema": {}}`, action.InvalidArgument, "/name"},
		{"long name", `{"name": "` + strings.Repeat("a", 129) + `", "input_schema": {}}`, action.InvalidArgument, "/name"},
		{"unknown keys in a full contract", in(`"mode": "write", "colour": 1, "approval": {"tll": "1s"}, "execution": {"verify": {"x": 1}}`), action.InvalidArgument, "/approval/tll /colour /execution/verify/x"},
		{"every duration", in(`"approval": {"ttl": "-1m", "confirmation_ttl": "1.5s"}, "execution": {"timeout": "soon", "lease": "2161h", "fence_after": "9000h", "verify": {"window": "48h"}, "deadline": "0s", "key_lifetime": "1"}`), action.InvalidArgument,
			"/approval/confirmation_ttl /approval/ttl /execution/deadline /execution/fence_after /execution/key_lifetime /execution/lease /execution/timeout /execution/verify/window"},
		{"places that nobody is shown", `{"name": "a", "input_schema": {"type": "object", "properties": {"id": {}}}, "mode": "read", "display": {"labels": {"/id": "I", "/seen": "S", "/not": "N"},
			"money": {"/sum": {"currency": "EUR", "minor_units": 2}}, "allow_output": ["/seen"]}}`, action.InvalidArgument, "/display/labels/~1not /display/money/~1sum"},
		{"pointers", in(`"target": {"type": "t", "id": "id"}, "display": {"mask": ["x"], "labels": {"y": "Y"}, "allow_output": ["/~2"]}`), action.InvalidArgument, "/display/allow_output/0 /display/labels/y /display/mask/0 /target/id"},
		{"fields that the input does not have", in(`"target": {"type": "t", "id": "/idd", "scope": "/shop"}, "http": {"method": "POST", "path": "/x/{idd}", "body": ["idd"]}, "display": {"summary": {"en": "{{idd}}"}, "links": ["https://x.example/{{idd}}"], "mask": ["/iid"], "money": {"/idd": {"currency": "EUR"}}}`), action.InvalidArgument,
			"/display/links/0 /display/mask/0 /display/money/~1idd /display/summary/en /http/body /http/path /target/id /target/scope"},
		{"a mask on what identifies the target", in(`"target": {"type": "t", "id": "/id", "scope": "shop"}, "display": {"mask": ["/id"]}`), action.InvalidArgument, "/display/mask/0"},
		{"a mask on what a measure shows", in(`"display": {"mask": ["/id"], "measures": [{"name": "m", "value": "size(payload.id)"}]}`), action.InvalidArgument, "/display/mask/0"},
		{"same-key retry without a key lifetime", in(`"execution": {"retry": "same_key"}`), action.InvalidArgument, "/execution/key_lifetime"},
		{"lease shorter than the timeout", in(`"execution": {"timeout": "20s", "lease": "20s"}`), action.InvalidArgument, "/execution/lease"},
		{"statuses that are never definite", in(`"execution": {"definite_failures": [404, 408, 429, 500, 302], "conflicts": [404, 425]}`), action.InvalidArgument, "/execution/definite_failures/3 /execution/definite_failures/4"},
		{"statuses that never prove", in(`"execution": {"definite_failures": [404, 408, 429], "conflicts": [404, 425]}`), action.InvalidArgument, "/execution/conflicts/0 /execution/conflicts/1 /execution/definite_failures/1 /execution/definite_failures/2"},
		{"rules on a reading tool", in(`"mode": "read", "approval": {"rules": [{"when": "true", "role": "support", "approvals": 1}]}`), action.InvalidArgument, "/approval/rules"},
		{"step-up by nobody", in(`"approval": {"rules": [{"when": "true", "role": "support", "approvals": 0, "step_up": true}]}`), action.InvalidArgument, "/approval/rules/0/step_up"},
		{"bare words that contradict", in(`"read_only": true, "annotations": {"readOnlyHint": false}`), action.InvalidArgument, "/read_only"},
		{"bare word of a wrong type", in(`"read_only": "yes"`), action.InvalidArgument, "/read_only"},
		{"two spellings", in(`"inputSchema": {}`), action.InvalidArgument, "/inputSchema"},
		{"payloads are objects", `{"name": "a", "input_schema": {"type": "array"}}`, action.InvalidArgument, "/input_schema/type"},
		{"schema keyword", `{"name": "a", "input_schema": {"properties": {"x": {"type": "text"}}}}`, action.InvalidArgument, "/input_schema/properties/x/type"},
		{"pattern", `{"name": "a", "input_schema": {"properties": {"x": {"pattern": "(?=a)b"}}}}`, action.InvalidArgument, "/input_schema/properties/x/pattern"},
		{"remote reference", `{"name": "a", "input_schema": {"$ref": "https://example.com/schema"}}`, action.InvalidArgument, "/input_schema"},
		{"file reference", `{"name": "a", "input_schema": {"$ref": "file:///etc/passwd"}}`, action.InvalidArgument, "/input_schema"},
		{"reference to nothing", `{"name": "a", "input_schema": {"$ref": "#/$defs/x"}}`, action.InvalidArgument, "/input_schema"},
		{"output schema", in(`"output_schema": {"type": 1}`), action.InvalidArgument, "/output_schema/type"},
		{"template", in(`"display": {"summary": "{{id} now"}`), action.InvalidArgument, "/display/summary"},
		{"link with a placeholder for a host", in(`"display": {"links": ["https://{{id}}/x"]}`), action.InvalidArgument, "/display/links/0"},
		{"link that runs", in(`"display": {"links": ["javascript:alert(1)"]}`), action.InvalidArgument, "/display/links/0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.text))
			var refusal *action.Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("got %v", err)
			}
			var pointers []string
			for _, e := range refusal.Errors {
				pointers = append(pointers, e.Pointer)
			}
			if got := strings.Join(pointers, " "); refusal.Code != test.code || got != test.pointers {
				t.Errorf("got %s at %q: %+v", refusal.Code, got, refusal)
			}
		})
	}
}

func TestRefusalsUsePlainWords(t *testing.T) {
	_, err := Parse([]byte(`{"name": "a b", "input_schema": {}, "mode": "both", "target": {"type": "t", "id": "x"}, "approval": {"ttl": "soon"}}`))
	want := []action.FieldError{
		{Pointer: "/mode", Detail: `must be one of "read", "write"`},
		{Pointer: "/name", Detail: `must be a tool name: at most 128 letters, digits, "_", "." and "-", not starting with "." or "-"`},
		{Pointer: "/target/id", Detail: "must be a JSON Pointer such as /product_id"},
	}
	if got := action.AsRefusal(err).Errors; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestYAMLAndJSONMeanTheSame(t *testing.T) {
	c := full(t)
	again := parse(t, string(c.Source()))
	if c.Digest() != again.Digest() {
		t.Error("the JSON of a YAML contract is another contract")
	}
}

// A contract is handed to executors with its defaults: they must read the same.
func TestEffectiveReadsBack(t *testing.T) {
	all := []*Contract{full(t), with(t, `"execution": {"key_lifetime": "1h", "callback": {"key": "/k"}, "status_query": {"tool": "x"}, "steps": [{"name": "s", "http": {"method": "POST", "path": "/p"}, "status_query": {"tool": "y"}}]}`), with(t, twoSteps)}
	if _, err := os.Stat(filepath.Join("..", "..", "..", "shared", "data")); err == nil {
		for _, c := range corpus(t) {
			all = append(all, c)
		}
	}
	for _, c := range all {
		raw, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		again := parse(t, string(raw))
		if again.Bare() {
			t.Errorf("%s: reads back as bare", c.Name)
		}
		back, err := again.Effective()
		if err != nil || string(back) != string(raw) {
			t.Errorf("%s: %s\nbecame %s", c.Name, raw, back)
		}
		if changes, err := Diff(c, again); err != nil || len(changes) > 0 {
			t.Errorf("%s: %+v, %v", c.Name, changes, err)
		}
	}
}

func TestDigestIgnoresOrderAndSpace(t *testing.T) {
	a := parse(t, `{"name": "a", "input_schema": {"type": "object", "title": "é"}}`)
	b := parse(t, "input_schema:\n  title: \"\\u00e9\"\n  type: object\nname: a\n")
	c := parse(t, `{"name": "a", "input_schema": {"type": "object"}}`)
	if a.Digest() != b.Digest() || a.Digest() == c.Digest() {
		t.Errorf("%s %s %s", a.Canonical(), b.Canonical(), c.Canonical())
	}
}

func TestDiff(t *testing.T) {
	before := with(t, `"entries": ["chat"], "description": "x"`)
	after := with(t, `"entries": ["chat", "workflow"], "approval": {"ttl": "1h"}, "execution": {"definite_failures": [404]}`)
	got, err := Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	want := []Change{
		{"/entries/1", nil, raw(`"workflow"`)},
		{"/approval/ttl", raw(`"15m"`), raw(`"1h"`)},
		{"/execution/definite_failures/0", nil, raw(`404`)},
		{"/description", raw(`"x"`), nil},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", got)
	}
}

// What is stored is as fine as a microsecond, and so is what a contract says.
func TestDurationsAreWholeMicroseconds(t *testing.T) {
	for _, s := range spans() {
		unit := time.Microsecond
		if s.whole {
			unit = time.Second
		}
		for _, d := range []time.Duration{s.min + unit, s.min + 500*time.Nanosecond, s.min + time.Nanosecond} {
			if refused := s.wrong(d.String()) != ""; refused != (d%unit != 0) {
				t.Errorf("%s of %s: refused %v", s.pointer, d, refused)
			}
		}
	}
}

// What was meant as JSON is refused as JSON, with the place; flow YAML as YAML.
func TestBrokenTextIsCalledWhatItWasMeantToBe(t *testing.T) {
	for text, want := range map[string]string{
		"\ufeff\n{\"näme\": \"a\",\n \"x\": {]}": "The document is not JSON: line 3, column 8: ",
		"[{\"name\": \"a\" \"b\"}]":              "The document is not JSON: line 1, column 15: ",
		"{\"name\": \"a\"":                       "The document is not JSON: line 1, column 12: ",
		"{name: a, x: {]}":                       "The document is not YAML: line 1",
	} {
		if _, err := Parse([]byte(text)); !strings.HasPrefix(action.AsRefusal(err).Detail, want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
