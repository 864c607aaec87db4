package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// answer is what a system says, as a value: faults decide whether it is sent.
type answer struct {
	status   int
	etag     string // bare, without quotes; empty: none
	replayed bool
	hollow   bool   // it says that something was done, and nothing of it is kept
	body     []byte // JSON
}

// say makes a 200 answer. A version of 0 sends no ETag.
func say(body any, version int64) (answer, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("writing an answer: %w", err)
	}
	a := answer{status: http.StatusOK, body: data}
	if version > 0 {
		a.etag = strconv.FormatInt(version, 10)
	}
	return a, nil
}

// problem is the body of every answer that is not a success.
type problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// refuse makes an answer that says no. Marshalling two strings cannot fail.
func refuse(status int, code, detail string) answer {
	data, _ := json.Marshal(problem{code, detail})
	return answer{status: status, body: data}
}

// orRefuse is the refusal, or no answer at all.
func orRefuse(refusal *answer) answer {
	if refusal == nil {
		return answer{}
	}
	return *refusal
}

// moved refuses a write that looked at another version than the present one,
// which the ETag tells.
func moved(what string, version int64) answer {
	a := refuse(http.StatusPreconditionFailed, "version-moved", fmt.Sprintf("The %s is at version %d now.", what, version))
	a.etag = strconv.FormatInt(version, 10)
	return a
}

// write sends the answer.
func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if a.etag != "" {
		h.Set("ETag", strconv.Quote(a.etag))
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	if a.status >= 300 && a.status < 400 {
		h.Set("Location", "/elsewhere")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may be gone; the log already says what was answered
}
