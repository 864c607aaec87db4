package rule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"countersign/action"
	"countersign/action/contract"
)

const schema = `"input_schema": {"type": "object"}`

// rules compiles a contract with the given further members.
func rules(t *testing.T, members string) *Rules {
	t.Helper()
	r, err := compileText(members)
	if err != nil {
		t.Fatalf("%v %+v", err, action.AsRefusal(err).Errors)
	}
	return r
}

func compileText(members string) (*Rules, error) {
	c, err := contract.Parse([]byte(`{"name": "shop.set_price", ` + schema + `, ` + members + `}`))
	if err != nil {
		return nil, err
	}
	return Compile(c)
}

func approval(list ...string) string {
	return `"approval": {"rules": [` + strings.Join(list, ",") + `]}`
}

func when(expression, role string, approvals int, stepUp bool) string {
	text, _ := json.Marshal(expression)
	return fmt.Sprintf(`{"when": %s, "role": %q, "approvals": %d, "step_up": %v}`, text, role, approvals, stepUp)
}

func TestNeeds(t *testing.T) {
	base := when("true", "support", 1, false)
	big := when("payload.new_price > before.price * 1.5", "support", 2, true)
	small := when("payload.new_price < 10.0", "support", 0, false)
	tests := []struct {
		name            string
		rules           string
		payload, before string
		want            []action.Need
		byDefault       bool
	}{
		{"highest count of a role wins", approval(base, big), `{"new_price": 200}`, `{"price": 100}`, []action.Need{{Role: "support", Approvals: 2, StepUp: true}}, false},
		{"rule that does not hold", approval(base, big), `{"new_price": 105}`, `{"price": 100}`, []action.Need{{Role: "support", Approvals: 1}}, false},
		{"nothing observed applies", approval(base, big), `{"new_price": 105}`, ``, []action.Need{{Role: "support", Approvals: 2, StepUp: true}}, false},
		{"error applies", approval(base, big), `{"new_price": "105"}`, `{"price": 100}`, []action.Need{{Role: "support", Approvals: 2, StepUp: true}}, false},
		{"unreadable snapshot counts as not observed", approval(big), `{"new_price": 105}`, `{`, []action.Need{{Role: "support", Approvals: 2, StepUp: true}}, false},
		{"false whatever was observed", approval(base, when("payload.kind == 'x' && before.price > 1.0", "ops", 1, false)), `{"kind": "y"}`, ``, []action.Need{{Role: "support", Approvals: 1}}, false},
		{"roles combine and step-up counts for all", approval(base, when("payload.new_price > 1", "ops", 1, true)), `{"new_price": 2}`, ``, []action.Need{{Role: "support", Approvals: 1, StepUp: true}, {Role: "ops", Approvals: 1, StepUp: true}}, false},
		{"none applies", approval(when("payload.new_price > 10", "ops", 3, false)), `{"new_price": 2}`, ``, []action.Need{{Role: "support", Approvals: 1}}, true},
		{"no rules", `"mode": "write"`, `{}`, ``, []action.Need{{Role: "support", Approvals: 1}}, true},
		{"nobody has to approve", approval(small), `{"new_price": 2}`, ``, nil, false},
		{"nobody and somebody is somebody", approval(small, base), `{"new_price": 2}`, ``, []action.Need{{Role: "support", Approvals: 1}}, false},
		{"a rule for nobody that errors does not apply", approval(small), `{}`, ``, []action.Need{{Role: "support", Approvals: 1}}, true},
		{"a rule for nobody that was not observed does not apply", approval(when("before.price < 1.0", "support", 0, false)), `{}`, ``, []action.Need{{Role: "support", Approvals: 1}}, true},
		{"reading needs nobody", `"mode": "read"`, `{}`, ``, nil, false},
		{"actor and target", approval(when("actor.id == 'u1' && target.type == 'product'", "ops", 1, false)), `{}`, ``, []action.Need{{Role: "ops", Approvals: 1}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			facts := Facts{Payload: []byte(test.payload), Actor: action.Actor{ID: "u1"}, Target: &action.Target{Type: "product", ID: "p"}}
			if test.before != "" {
				facts.Before = []byte(test.before)
			}
			got, err := rules(t, test.rules).Needs(context.Background(), facts)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Needs, test.want) || got.Default != test.byDefault {
				t.Errorf("got %+v (default %v), want %+v (default %v)", got.Needs, got.Default, test.want, test.byDefault)
			}
		})
	}
}

func TestNeedsSayWhy(t *testing.T) {
	r := rules(t, approval(when("payload.n > 1", "support", 1, false), when("payload.n > before.n", "ops", 1, false), when("payload.m > 1", "ops", 2, false)))
	got, err := r.Needs(context.Background(), Facts{Payload: []byte(`{"n": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		applies bool
		why     string
	}{{false, ""}, {true, NotRead}, {true, Errored}}
	for i, w := range want {
		if got.Rules[i].Applies != w.applies || got.Rules[i].Why != w.why {
			t.Errorf("rule %d: got %+v, want %+v", i, got.Rules[i], w)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct{ name, members, pointer, detail string }{
		{"syntax", approval(when("payload.n >", "ops", 1, false)), "/approval/rules/0/when", "line 1, column 12: Syntax error"},
		{"no such variable", approval(when("true", "ops", 1, false), when("price > 1", "ops", 1, false)), "/approval/rules/1/when", "undeclared reference to 'price'"},
		{"no predicate", approval(when("1 + 1", "ops", 1, false)), "/approval/rules/0/when", "gives int, but bool is needed"},
		{"validate sees the payload only", `"mode": "write", "validate": ["before.price > 1"]`, "/validate/0", "undeclared reference to 'before'"},
		{"whole number in arithmetic", approval(when("payload.n * 2 > 3", "ops", 1, false)), "/approval/rules/0/when", "write 2.0 instead of 2"},
		{"whole number beside a double", approval(when("payload.n * 2.0 == 6", "ops", 1, false)), "/approval/rules/0/when", "write 2.0 instead of 2"},
		{"modulo of a double", approval(when("payload.n % 2 == 0", "ops", 1, false)), "/approval/rules/0/when", "int(…)"},
		{"loop within a loop", approval(when("payload.a.all(x, payload.b.all(y, x == y))", "ops", 1, false)), "/approval/rules/0/when", "may take too long"},
		{"post-condition", `"execution": {"postconditions": [{"read": "shop.get", "field": "/price", "expect": "value = 1"}]}`, "/execution/postconditions/0/expect", "Syntax error"},
		{"precondition", `"execution": {"preconditions": [{"read": "shop.get", "field": "/price", "expect": "actor.id == value"}]}`, "/execution/preconditions/0/expect", "undeclared reference to 'actor'"},
		{"terminal", `"execution": {"terminal_when": "object.status"}`, "", ""},
		{"measure", `"mode": "write", "display": {"measures": [{"name": "m", "value": "[1]"}]}`, "/display/measures/0/value", "gives list(int)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := compileText(test.members)
			if test.pointer == "" {
				if err != nil {
					t.Errorf("refused: %+v", err)
				}
				return
			}
			var refusal *action.Refusal
			if !errors.As(err, &refusal) || refusal.Code != action.InvalidArgument || len(refusal.Errors) != 1 {
				t.Fatalf("got %+v", err)
			}
			if e := refusal.Errors[0]; e.Pointer != test.pointer || !strings.Contains(e.Detail, test.detail) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestCompileNamesEveryMistake(t *testing.T) {
	_, err := compileText(`"validate": ["1 +"], "execution": {"terminal_when": "nope"}, ` + approval(when("payload.n >", "ops", 1, false)))
	if got := len(action.AsRefusal(err).Errors); got != 3 {
		t.Errorf("got %d places, want 3: %v", got, err)
	}
}

func TestArithmeticOfDoubles(t *testing.T) {
	r := rules(t, `"mode": "write", "validate": [
		"payload.n > 2", "payload.n == 3", "2 < payload.n", "payload.n in [3, 4]",
		"payload.n * 2.0 == 6.0", "size(payload.list) * 2 == 4", "payload.list[payload.zero] == 'a'", "int(payload.n) % 2 == 1",
		"size(bytes(payload.name)) <= 6"]`)
	err := r.Validate(context.Background(), []byte(`{"list":["a","b"],"n":3,"name":"公告","zero":0}`))
	if err != nil {
		t.Errorf("%+v", err)
	}
}

// A body of two Chinese characters has 6 bytes; a digit more breaks the limit.
func TestC3_ValidateCountsBytes(t *testing.T) {
	r := rules(t, `"mode": "write", "validate": ["size(bytes(payload.body)) <= 6", "payload.total >= 1.0"]`)
	if err := r.Validate(context.Background(), []byte(`{"body":"公告","total":1}`)); err != nil {
		t.Error(err)
	}
	err := r.Validate(context.Background(), []byte(`{"body":"公告9"}`))
	refusal := action.AsRefusal(err)
	want := []action.FieldError{
		{Pointer: "/body", Detail: "does not fit the rule: size(bytes(payload.body)) <= 6"},
		{Pointer: "/total", Detail: "cannot be checked by the rule: payload.total >= 1.0"},
	}
	if refusal.Code != action.InvalidPayload || !reflect.DeepEqual(refusal.Errors, want) {
		t.Errorf("got %+v", refusal)
	}
}

func TestPostconditions(t *testing.T) {
	r := rules(t, `"execution": {"terminal_when": "object.status == 'discontinued'", "postconditions": [
		{"read": "shop.get", "field": "/price", "expect": "value == payload.new_price"},
		{"read": "shop.get", "field": "/history/0/by", "expect": "value != ''"}]}`)
	facts := Facts{Payload: []byte(`{"new_price": 105}`)}
	tests := []struct {
		name, snapshot string
		holds          [2]action.Holds
		why            [2]string
		all            action.Holds
	}{
		{"holds", `{"price": 105.0, "history": [{"by": "x"}]}`, [2]action.Holds{action.HoldsTrue, action.HoldsTrue}, [2]string{}, action.HoldsTrue},
		{"mismatch", `{"price": 100, "history": [{"by": "x"}]}`, [2]action.Holds{action.HoldsFalse, action.HoldsTrue}, [2]string{}, action.HoldsFalse},
		{"not read", ``, [2]action.Holds{}, [2]string{NotRead, NotRead}, action.HoldsUnknown},
		{"not JSON", `<html>`, [2]action.Holds{}, [2]string{NotRead, NotRead}, action.HoldsUnknown},
		{"absent field", `{"price": 105}`, [2]action.Holds{action.HoldsTrue, ""}, [2]string{"", Absent}, action.HoldsUnknown},
		{"mismatch outweighs unknown", `{"price": 100}`, [2]action.Holds{action.HoldsFalse, ""}, [2]string{"", Absent}, action.HoldsFalse},
		{"text is no number", `{"price": "105 EUR", "history": [{"by": "x"}]}`, [2]action.Holds{action.HoldsFalse, action.HoldsTrue}, [2]string{}, action.HoldsFalse},
		{"a number as text", `{"price": "105.00", "history": [{"by": "x"}]}`, [2]action.Holds{action.HoldsTrue, action.HoldsTrue}, [2]string{}, action.HoldsTrue},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			snapshots := map[string]json.RawMessage{}
			if test.snapshot != "" {
				snapshots["shop.get"] = json.RawMessage(test.snapshot)
			}
			got, err := r.Postconditions(context.Background(), facts, snapshots)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if got[i].Holds != test.holds[i] || got[i].Why != test.why[i] {
					t.Errorf("condition %d: got %+v", i, got[i])
				}
			}
			if all := All(got); all != test.all {
				t.Errorf("all: got %q, want %q", all, test.all)
			}
		})
	}
	if got := r.TerminalWhen(context.Background(), facts, json.RawMessage(`{"status": "discontinued"}`)); got != action.HoldsTrue {
		t.Errorf("terminal: %q", got)
	}
	if got := r.TerminalWhen(context.Background(), facts, json.RawMessage(`{}`)); got != action.HoldsUnknown {
		t.Errorf("terminal without status: %q", got)
	}
}

// A post-condition on an id beyond 2^53 must not hold for its neighbour.
func TestReport06_BigIntegersDoNotBlur(t *testing.T) {
	r := rules(t, `"execution": {"postconditions": [{"read": "shop.get", "field": "/id", "expect": "value == payload.id"}]}`)
	got, err := r.Postconditions(context.Background(), Facts{Payload: []byte(`{"id": 9007199254740992}`)},
		map[string]json.RawMessage{"shop.get": json.RawMessage(`{"id": 9007199254740993}`)})
	if err != nil || got[0].Holds != action.HoldsFalse {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What one reading shows is no promise for another.
func TestEachConditionIsJudgedByItsOwnReading(t *testing.T) {
	r := rules(t, `"execution": {"postconditions": [{"read": "shop.get", "field": "/price", "expect": "value == payload.p"},
		{"read": "shop.sum", "field": "/total", "expect": "value == object.sum"}, {"read": "shop.none", "field": "/gone", "expect": "value == object.sum"}]}`)
	got, err := r.Postconditions(context.Background(), Facts{Payload: []byte(`{"p": 1}`)}, map[string]json.RawMessage{
		"shop.get": json.RawMessage(`{"price": 1, "sum": 7}`), "shop.sum": json.RawMessage(`{"total": 7, "sum": 100}`), "shop.none": json.RawMessage(`{"sum": 8}`)})
	if err != nil || got[0].Holds != action.HoldsTrue || got[1].Holds != action.HoldsFalse || string(got[1].Expected) != "100" ||
		got[2].Why != Absent || string(got[2].Expected) != "8" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPreconditionReadsItsTool(t *testing.T) {
	r := rules(t, `"execution": {"preconditions": [{"read": "shop.may", "field": "", "expect": "object.allowed && value.allowed"}]}`)
	got, err := r.Preconditions(context.Background(), Facts{Payload: []byte(`{}`)},
		map[string]json.RawMessage{"shop.may": json.RawMessage(`{"allowed": true}`)})
	if err != nil || got[0].Holds != action.HoldsTrue || string(got[0].Observed) != `{"allowed":true}` {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMeasures(t *testing.T) {
	r := rules(t, `"mode": "write", "display": {"measures": [
		{"name": "change", "value": "(payload.new_price - before.price) / before.price * 100.0", "unit": "%"},
		{"name": "items", "value": "size(payload.list)"},
		{"name": "kind", "value": "payload.kind"}]}`)
	payload := []byte(`{"kind":"x","list":[1,2],"new_price":105}`)
	got, err := r.Measures(context.Background(), Facts{Payload: payload, Before: []byte(`{"price": 100}`)})
	want := []Measure{{Name: contract.Text{"": "change"}, Kind: contract.MeasureChange, Unit: contract.Text{"": "%"}, OK: true, Number: 5}, {Name: contract.Text{"": "items"}, OK: true, Number: 2}, {Name: contract.Text{"": "kind"}, OK: true, Text: "x"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for before, why := range map[string]string{``: NotRead, `{"price": 0}`: Errored, `{"price": "x"}`: Errored} {
		facts := Facts{Payload: payload}
		if before != "" {
			facts.Before = []byte(before)
		}
		got, err := r.Measures(context.Background(), facts)
		if err != nil || got[0].OK || got[0].Why != why {
			t.Errorf("before %s: got %+v, %v", before, got[0], err)
		}
	}
}

func TestEvaluationIsBounded(t *testing.T) {
	r := rules(t, approval(when("payload.list.all(x, payload.text.matches('(a|b)*c') || x > -1.0)", "ops", 2, false)))
	list := strings.Repeat("1,", 20_000) + "1"
	text := strings.Repeat("ab", 40_000)
	got, err := r.Needs(context.Background(), Facts{Payload: []byte(`{"list":[` + list + `],"text":"` + text + `"}`)})
	if err != nil || got.Rules[0].Why != Errored || !got.Rules[0].Applies {
		t.Errorf("got %+v, %v", got, err)
	}
}
