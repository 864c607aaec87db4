package contract

import (
	"fmt"
	"slices"
	"testing"

	"countersign/action"
)

func TestClassify(t *testing.T) {
	c := with(t, `"output_schema": {"type": "object", "required": ["id"]},
		"execution": {"proves": "completed", "definite_failures": [400, 404, 422], "conflicts": [412]}`)
	good := `{"id": 1}`
	tests := []struct {
		name   string
		answer Answer
		want   Outcome
	}{
		{"as promised", Answer{Status: 200, Body: []byte(good)}, Outcome{Result: action.Success, Proves: action.ProvesCompleted}},
		{"created", Answer{Status: 201, Body: []byte(good), ContentType: "application/json; charset=utf-8"}, Outcome{Result: action.Success, Proves: action.ProvesCompleted}},
		{"202 proves acceptance only", Answer{Status: 202, Body: []byte(good)}, Outcome{Result: action.Success, Proves: action.ProvesAccepted}},
		{"not what was promised", Answer{Status: 200, Body: []byte(`{}`)}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"promised and empty", Answer{Status: 204}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"a page of a proxy", Answer{Status: 200, Body: []byte("<html>"), ContentType: "text/html"}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"JSON under another type", Answer{Status: 200, Body: []byte(good), ContentType: "text/html"}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"broke off", Answer{Status: 200, Body: []byte(`{"id`), Err: ErrBody}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"refusal that broke off", Answer{Status: 404, Err: ErrBody}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"timeout", Answer{Err: ErrTimeout}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"reset", Answer{Err: ErrReset}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"no answer and no reason", Answer{}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"not sent", Answer{Err: ErrNotSent}, Outcome{Result: action.Failure, Code: CodeNotSent}},
		{"definite", Answer{Status: 422, Body: []byte("<html>")}, Outcome{Result: action.Failure}},
		{"definite on a retry", Answer{Status: 422, Attempt: 2}, Outcome{Result: action.Failure}},
		{"conflict", Answer{Status: 412, Attempt: 1}, Outcome{Result: action.Failure, Conflict: true}},
		{"conflict after an earlier attempt may be our own change", Answer{Status: 412, Attempt: 2}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := c.Classify(test.answer)
			if got.Reason == "" {
				t.Error("no reason given")
			}
			if got.Reason = ""; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// Every status that the contract does not list is unknown, except 200 to 205.
func TestReport28_OnlyListedStatusesAreDefinite(t *testing.T) {
	bare := with(t, `"read_only": false`)
	listed := with(t, `"execution": {"proves": "completed", "definite_failures": [400, 401, 403, 404, 409, 422], "conflicts": []}`)
	for status := 100; status < 600; status++ {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			want, wantListed := action.Unknown, action.Unknown
			if status >= 200 && status <= 205 {
				want, wantListed = action.Success, action.Success
			}
			if status == 412 {
				want = action.Failure
			}
			if slices.Contains([]int{400, 401, 403, 404, 409, 422}, status) {
				wantListed = action.Failure
			}
			if got := bare.Classify(Answer{Status: status, Attempt: 1}); got.Result != want || got.Conflict != (status == 412) {
				t.Errorf("bare: got %+v", got)
			}
			if got := listed.Classify(Answer{Status: status, Attempt: 1}); got.Result != wantListed {
				t.Errorf("listed: got %+v", got)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	c := with(t, `"output_schema": {"required": ["id"]}, "execution": {"proves": "queued", "definite_failures": [422]}`)
	tests := []struct {
		name    string
		receipt Claimed
		want    Outcome
	}{
		{"at most what the contract proves", Claimed{Result: action.Success, Proves: action.ProvesCompleted, Status: 200}, Outcome{Result: action.Success, Proves: action.ProvesQueued}},
		{"at most what it claims", Claimed{Result: action.Success, Proves: action.ProvesAccepted, Status: 200}, Outcome{Result: action.Success, Proves: action.ProvesAccepted}},
		{"a claim without strength is the weakest", Claimed{Result: action.Success}, Outcome{Result: action.Success, Proves: action.ProvesAccepted}},
		{"202 caps", Claimed{Result: action.Success, Proves: action.ProvesQueued, Status: 202}, Outcome{Result: action.Success, Proves: action.ProvesAccepted}},
		{"success on an error", Claimed{Result: action.Success, Status: 409}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"success with a body that is not the promise", Claimed{Result: action.Success, Status: 200, Body: []byte(`{}`)}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"definite failure", Claimed{Result: action.Failure, Status: 422}, Outcome{Result: action.Failure}},
		{"failure that is not listed", Claimed{Result: action.Failure, Status: 500}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"failure without a status", Claimed{Result: action.Failure}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"not sent", Claimed{Result: action.Failure, Code: CodeNotSent}, Outcome{Result: action.Failure, Code: CodeNotSent}},
		{"not sent and yet answered", Claimed{Result: action.Failure, Code: CodeNotSent, Status: 500}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"conflict", Claimed{Result: action.Failure, Status: 412, Attempt: 1}, Outcome{Result: action.Failure, Conflict: true}},
		{"conflict on a retry", Claimed{Result: action.Failure, Status: 412, Attempt: 2}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"unknown", Claimed{Result: action.Unknown, Status: 422}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
		{"nonsense", Claimed{Result: "DONE", Status: 200}, Outcome{Result: action.Unknown, Code: CodeExecutionError}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := c.Judge(test.receipt)
			if got.Reason = ""; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// What the library classifies, the console judges alike when it is reported.
func TestJudgeAgreesWithClassify(t *testing.T) {
	c := with(t, `"execution": {"proves": "queued", "definite_failures": [400, 422]}`)
	for status := 100; status < 600; status++ {
		for attempt := 1; attempt <= 2; attempt++ {
			first := c.Classify(Answer{Status: status, Attempt: attempt})
			again := c.Judge(Claimed{Result: first.Result, Proves: first.Proves, Status: status, Code: first.Code, Attempt: attempt})
			if first.Result != again.Result || first.Proves != again.Proves || first.Conflict != again.Conflict {
				t.Errorf("status %d, attempt %d: %+v became %+v", status, attempt, first, again)
			}
		}
	}
}
