package contract

import (
	"slices"
	"testing"

	"countersign/action"
)

const twoSteps = `"execution": {"proves": "completed", "key_lifetime": "1h", "definite_failures": [404], "status_query": {"tool": "a.get", "max_polls": 4},
	"postconditions": [{"read": "a.all", "field": "/ok", "expect": "value == true"}], "compensation": "a.undo", "steps": [
	{"name": "one", "http": {"method": "POST", "path": "/one"}, "conflicts": [409], "definite_failures": [410],
	 "postconditions": [{"read": "a.one", "field": "/ok", "expect": "value == true"}], "compensation": "a.undo_one"},
	{"name": "two", "http": {"method": "POST", "path": "/two"}, "status_query": {"tool": "a.get_two", "outcome": {"field": "/state", "succeeded": ["OK"]}}}]}`

// Seen by itself, a step is a contract: what it leaves open is as in the whole.
func TestForStep(t *testing.T) {
	c := with(t, twoSteps)
	one, err := c.ForStep("one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.ForStep("two")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]bool{
		"path":             one.HTTP.Path == "/one" && two.HTTP.Path == "/two" && two.HTTP.Idempotency == "header",
		"reads":            slices.Equal(one.PostconditionReads(), []string{"a.one"}) && two.PostconditionReads() == nil,
		"compensation":     one.Execution.Compensation == "a.undo_one" && two.Execution.Compensation == "",
		"query":            one.Execution.StatusQuery.Tool == "a.get" && two.Execution.StatusQuery.Tool == "a.get_two" && two.Execution.StatusQuery.MaxPolls == 4,
		"own failures":     one.Classify(Answer{Status: 410, Attempt: 1}).Result == action.Failure && one.Classify(Answer{Status: 404, Attempt: 1}).Result == action.Unknown,
		"own conflicts":    one.Classify(Answer{Status: 409, Attempt: 1}).Conflict && !one.Classify(Answer{Status: 412, Attempt: 1}).Conflict,
		"failures of all":  two.Classify(Answer{Status: 404, Attempt: 1}).Result == action.Failure && two.Classify(Answer{Status: 412, Attempt: 1}).Conflict,
		"answers":          two.ReadStatus([]byte(`{"state": "OK"}`)).Outcome == action.Success && one.ReadStatus([]byte(`{"state": "OK"}`)).Outcome == action.Unknown,
		"the whole stands": c.HTTP == nil && len(c.Execution.Steps) == 2 && len(c.Execution.Postconditions) == 1 && c.Execution.StatusQuery.Tool == "a.get",
	} {
		if !got {
			t.Errorf("%s: one %+v, two %+v", name, one.Execution, two.Execution)
		}
	}
	for _, name := range []string{"", "three"} {
		if _, err := c.ForStep(name); action.AsRefusal(err).Code != action.InvalidArgument {
			t.Errorf("step %q: %v", name, err)
		}
	}
	if same, err := full(t).ForStep(""); err != nil || same.HTTP == nil {
		t.Errorf("a contract without steps: %v", err)
	}
	var tools []string
	for _, r := range c.References() {
		tools = append(tools, r.Tool)
	}
	for _, want := range []string{"a.one", "a.get_two", "a.undo_one"} {
		if !slices.Contains(tools, want) {
			t.Errorf("refers to %v, not to %s", tools, want)
		}
	}
}

func TestStepsThatDoNotFit(t *testing.T) {
	step := func(name, more string) string {
		return `{"name": "` + name + `", "http": {"method": "POST", "path": "/p"}` + more + `}`
	}
	for name, c := range map[string]struct{ members, places string }{
		"a request beside them":           {`"http": {"method": "POST", "path": "/p"}, "execution": {"key_lifetime": "1h", "steps": [` + step("a", "") + `]}`, "/http"},
		"in a tool that reads":            {`"mode": "read", "execution": {"key_lifetime": "1h", "steps": [` + step("a", "") + `]}`, "/execution/steps"},
		"a key of unknown life":           {`"execution": {"steps": [` + step("a", "") + `]}`, "/execution/key_lifetime"},
		"twice the same":                  {`"execution": {"key_lifetime": "1h", "steps": [` + step("a", "") + "," + step("a", "") + `]}`, "/execution/steps/1/name"},
		"a key in its name":               {`"execution": {"key_lifetime": "1h", "steps": [` + step("a:b", "") + `]}`, "/execution/steps/0/name"},
		"the whole proves more":           {`"execution": {"key_lifetime": "1h", "proves": "completed", "steps": [` + step("a", `, "proves": "queued"`) + `]}`, "/execution/proves"},
		"asked about, nobody knows when":  {`"execution": {"key_lifetime": "1h", "steps": [` + step("a", `, "status_query": {"tool": "x"}`) + `]}`, "/execution/steps/0/status_query"},
		"what is of the whole":            {`"execution": {"key_lifetime": "1h", "steps": [` + step("a", `, "postconditions": [{"read": "x", "field": "/y", "expect": "true"}]`) + `]}`, "/execution/steps/0/postconditions"},
		"how often, where the whole says": {`"execution": {"key_lifetime": "1h", "status_query": {"tool": "x"}, "steps": [` + step("a", `, "status_query": {"tool": "x", "max_polls": 2}`) + `]}`, "/execution/steps/0/status_query/max_polls"},
	} {
		_, err := Parse([]byte(`{"name": "a.b", "input_schema": {"type": "object"}, ` + c.members + `}`))
		r := action.AsRefusal(err)
		if err == nil || len(r.Errors) != 1 || r.Errors[0].Pointer != c.places {
			t.Errorf("%s: %v %+v", name, err, r.Errors)
		}
	}
}
