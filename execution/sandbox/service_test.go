package sandbox_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"countersign/execution/sandbox"
)

// A request is received, queued and done; a signed callback tells each, and a
// refusal and an empty word are told apart by reading.
func TestA13_ServiceRequestsAreDoneLater(t *testing.T) {
	s := open(t)
	box := s.receive(welcome)
	s.control(http.MethodPut, "/service/callback", `{"url":"`+box.url+`"}`)
	const path, body = "/service/customers/c-2016/requests", `{"customer_id":"c-2016","topic":"delivery","wish":"leave it with the neighbour"}`
	for outcome, want := range map[string]struct{ told, status string }{
		"queued=true":     {"[QUEUED SUCCEEDED]", "done"},
		"outcome=refused": {"[FAILED]", "refused"},
		"outcome=in_word": {"[SUCCEEDED]", "received"},
	} {
		before := len(box.all())
		taken := s.post(path, outcome, body, header, "accept; delay_ms=1; "+outcome)
		taken.want(t, http.StatusAccepted)
		taken.wantField(t, "status", "ACCEPTED")
		told := func() (all []string) {
			for _, l := range box.all()[before:] {
				all = append(all, l.status)
			}
			return all
		}
		eventually(t, outcome, func() bool { return fmt.Sprint(told()) == want.told })
		s.get(path+"?execution_key="+url.QueryEscape(outcome)).wantField(t, "request_status", want.status)
		for _, l := range box.all()[before:] {
			if l.signature != signature(t, s.Tokens().ServiceSecret, l) {
				t.Errorf("%s: signed %q", outcome, l.signature)
			}
			key, read := contracts(t)["service.submit_request"].ReadCallback([]byte(l.raw))
			if key != outcome || read.Outcome == "" {
				t.Errorf("reads as %q, %+v", key, read)
			}
		}
	}
	s.post(path, "queued=true", body).want(t, http.StatusOK) // as it ended
	s.wantCounts(sandbox.Service, "queued%3Dtrue", 2, 1)
	s.post(path, "k", `{"customer_id":"c-2016","topic":"poetry","wish":"x"}`).wantCode(t, http.StatusBadRequest, "malformed")
}
