package sandbox_test

import (
	"net/http"
	"strings"
	"testing"
)

// as sends a request in the name of an actor, with the system's read or write token.
func (s shop) as(actor, method, path, body string, headers ...string) reply {
	s.Helper()
	system, _, _ := strings.Cut(path[1:], "/")
	return s.send(s.Context(), once, method, path, s.token(system, method != http.MethodGet), body, append([]string{"X-Actor", actor}, headers...)...)
}

func (s shop) say(actor, conversation, id, body string, headers ...string) reply {
	s.Helper()
	return s.as(actor, http.MethodPost, "/messages/conversations/"+conversation+"/messages/"+id, `{"body":"`+body+`"}`, headers...)
}

func TestC1_SixBytesOfBodyAnd4096OfRequest(t *testing.T) {
	s := open(t)
	rule := s.get("/messages/rules/lookup")
	rule.wantField(t, "document_id", "doc-s2")
	rule.wantField(t, "status", "current")
	rule.wantField(t, "body_limit_bytes", 6.0)
	rule.wantField(t, "request_limit_bytes", 4096.0)
	proposed := s.get("/messages/rules/lookup?question=what+does+r9+say%3F")
	proposed.wantField(t, "document_id", "doc-r9")
	proposed.wantField(t, "status", "proposed")
	proposed.wantField(t, "body_limit_bytes", 9.0)

	s.say("u-a", "c-a", "m-1", "公告").wantField(t, "status", "accepted_in_memory")
	for _, body := range []string{"公告9", "1234567", ""} {
		s.say("u-a", "c-a", "m-2", body).wantCode(t, http.StatusUnprocessableEntity, "body-length")
	}
	// A rule that is only proposed changes nothing, however often it is proposed.
	s.control(http.MethodPut, "/messages/rules/doc-r9", `{"rule":"Nine bytes from today.","body_limit_bytes":9}`)
	s.say("u-a", "c-a", "m-2", "公告9").wantCode(t, http.StatusUnprocessableEntity, "body-length")
	if r := s.send(t.Context(), once, http.MethodPut, "/messages/rules/doc-s2", s.Tokens().Control, `{"rule":"Nine.","body_limit_bytes":9}`); r.status != http.StatusBadRequest {
		t.Errorf("the rule in force was changed: %d", r.status)
	}
	fits := `{"body":"1"` + strings.Repeat(" ", 4096-len(`{"body":"1"}`)) + `}`
	s.as("u-a", http.MethodPost, "/messages/conversations/c-a/messages/m-3", fits+" ").wantCode(t, http.StatusRequestEntityTooLarge, "too-large")
	s.as("u-a", http.MethodPost, "/messages/conversations/c-a/messages/m-3", fits).want(t, http.StatusOK)
	for _, form := range []string{``, `{}`, `{"body":1}`, `{"body":"x","approval_id":"cnf_1"}`, "{\"body\":\"\xff\"}", `{"body":"\u0000"}`} {
		s.as("u-a", http.MethodPost, "/messages/conversations/c-a/messages/m-4", form).wantCode(t, http.StatusBadRequest, "malformed")
	}
	s.wantCounts("messages", "m-2", 4, 0)
}

func TestC5_AnIdIsUsedOnceAndWhoIsNoMemberSeesNothing(t *testing.T) {
	s := open(t)
	s.say("u-a", "c-a", "m-1", "公告").want(t, http.StatusOK)
	s.say("u-a", "c-a", "m-1", "公告").wantCode(t, http.StatusConflict, "duplicate-id")
	s.say("u-a", "c-a", "m-1", "公告", "Idempotency-Key", "k").wantCode(t, http.StatusConflict, "duplicate-id") // no key helps
	s.say("u-li-na", "c-a", "m-1", "Moved").wantCode(t, http.StatusConflict, "duplicate-id")
	s.wantCounts("messages", "m-1", 4, 1)

	const at = "/messages/conversations/c-a/messages/"
	s.as("u-a", http.MethodGet, at+"m-1?body=%E5%85%AC%E5%91%8A", "").wantField(t, "status", "IN_MEMORY")
	s.as("u-a", http.MethodGet, at+"m-1?body=other", "").wantField(t, "status", "TAKEN")
	s.as("u-li-na", http.MethodGet, at+"m-1", "").wantField(t, "author", "u-a")
	s.as("u-a", http.MethodGet, at+"m-9", "").wantField(t, "status", "NOT_IN_MEMORY")

	// A conversation that one does not belong to is like none, in every answer.
	for _, path := range []string{"/messages/conversations/c-a/messages/m-1", "/messages/conversations/c-none/messages/m-1"} {
		read, sent := s.as("u-b", http.MethodGet, path, ""), s.as("u-b", http.MethodPost, path, `{"body":"hello?"}`)
		read.wantCode(t, http.StatusNotFound, "conversation-not-found")
		if sent.status != read.status || string(sent.raw) != string(read.raw) {
			t.Errorf("%s tells more: %s and %s", path, read.raw, sent.raw)
		}
	}
	known, none := s.get("/messages/people/u-b/may_send?conversation_id=c-a"), s.get("/messages/people/u-b/may_send?conversation_id=c-none")
	if known.wantField(t, "allowed", false); strings.ReplaceAll(string(known.raw), `"c-a"`, "") != strings.ReplaceAll(string(none.raw), `"c-none"`, "") {
		t.Errorf("permission tells hidden conversations from none: %s, %s", known.raw, none.raw)
	}
	s.control(http.MethodPut, "/messages/conversations/c-a/members/u-b", `{"member":true}`)
	s.get("/messages/people/u-b/may_send?conversation_id=c-a").wantField(t, "allowed", true)
	s.say("u-b", "c-a", "m-5", "hello?").want(t, http.StatusOK)

	// 200 meant memory: a restart forgets, and what was taken once may be taken again.
	s.control(http.MethodDelete, "/messages/memory", "")
	s.as("u-a", http.MethodGet, at+"m-1", "").wantField(t, "found", false)
	s.say("u-a", "c-a", "m-1", "公告").want(t, http.StatusOK)
	s.wantCounts("messages", "m-1", 7, 2)

	if r := s.send(t.Context(), once, http.MethodPost, at+"m-6", s.token("messages", false), `{"body":"x"}`, "X-Actor", "u-a"); r.status != http.StatusForbidden {
		t.Errorf("sent with the token for reading: %d", r.status)
	}
	s.say("u-a", "c-a", "m-7", "x", "X-Sandbox-Fault", "lie").want(t, http.StatusOK)
	s.wantCounts("messages", "m-7", 1, 0)
}

func TestB1_ADeliveryIsOnlyItsCustomers(t *testing.T) {
	s := open(t)
	mine := s.as("c-2013", http.MethodGet, "/deliveries/orders/10083", "")
	mine.want(t, http.StatusOK)
	for field, value := range map[string]any{"status": "delivered", "observed_at": "2026-09-20T09:00:00Z", "receipt_available": true, "fact_id": "parcel-88122-6"} {
		mine.wantField(t, field, value)
	}
	waiting := s.as("c-2017", http.MethodGet, "/deliveries/orders/10087", "")
	waiting.wantField(t, "status", "not_shipped")
	waiting.wantField(t, "fact_id", "order-10087-1")
	other, none := s.as("c-2017", http.MethodGet, "/deliveries/orders/10083", ""), s.as("c-2017", http.MethodGet, "/deliveries/orders/1", "")
	other.wantCode(t, http.StatusNotFound, "delivery-not-found")
	if string(other.raw) != string(none.raw) {
		t.Errorf("somebody else's order is told from none: %s, %s", other.raw, none.raw)
	}
	s.get("/deliveries/orders/10083").wantCode(t, http.StatusBadRequest, "malformed")
	if r := s.send(t.Context(), once, http.MethodGet, "/deliveries/orders/10083", "", "", "X-Actor", "c-2013"); r.status != http.StatusUnauthorized {
		t.Errorf("read without a token: %d", r.status)
	}
}
