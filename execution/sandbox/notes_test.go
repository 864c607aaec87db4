package sandbox_test

import (
	"net/http"
	"testing"

	"countersign/execution/sandbox"
)

const minutes501 = `{"customer_id":"c-2016","conversation_id":"talk-501","minutes":"# Call with Zhou Ling\n\n- wants the kettle delivered on *Friday*\n"}`

// What was talked about with one customer is put on nobody else's file, by
// nobody but who looks after them, and once.
func TestB3_MinutesGoToTheFileOfTheirCustomer(t *testing.T) {
	s := open(t)
	const file = "/notes/customers/c-2016/notes"
	s.post("/notes/customers/c-2017/notes", "k1", `{"customer_id":"c-2017","conversation_id":"talk-501","minutes":"x"}`).
		wantCode(t, http.StatusUnprocessableEntity, "wrong-customer")
	s.post(file, "k2", minutes501, "X-Actor", "u-tom-becker").wantCode(t, http.StatusUnprocessableEntity, "not-their-customer")
	s.post(file, "k3", minutes501, "X-Sandbox-Fault", "error-before; status=423").wantCode(t, http.StatusLocked, "fault")
	s.get("/notes/customers/c-2017/notes?execution_key=k1").wantField(t, "notes", 0.0)
	s.get(file+"?execution_key=k3").wantField(t, "found", false)

	saved := s.post(file, "k3", minutes501, "X-Actor", "u-mia-chen") // the same text under the same key
	saved.want(t, http.StatusOK)
	s.post(file, "k3", minutes501, "X-Actor", "u-mia-chen").want(t, http.StatusOK)
	s.post(file, "k3", `{"customer_id":"c-2016","conversation_id":"talk-501","minutes":"another"}`, "X-Actor", "u-mia-chen").
		wantCode(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	s.wantCounts(sandbox.Notes, "k3", 4, 1)
	read := s.get(file + "?execution_key=k3")
	read.wantField(t, "minutes", fields([]byte(minutes501))["minutes"])
	read.wantField(t, "note_id", saved.body["note_id"])

	s.control(http.MethodPut, "/notes/customers/c-2016", `{"keeper_id":"u-tom-becker"}`)
	s.get("/notes/people/u-mia-chen/may_save_minutes?customer_id=c-2016").wantField(t, "allowed", false)
	s.get("/notes/people/u-tom-becker/may_save_minutes?customer_id=c-2016").wantField(t, "allowed", true)
	for _, body := range []string{`{}`, `{"customer_id":"c-2016","conversation_id":"talk-501","minutes":""}`,
		`{"customer_id":"c-2018","conversation_id":"talk-503","minutes":"x"}`} {
		s.post(file, "k4", body).wantCode(t, http.StatusBadRequest, "malformed")
	}
	s.post("/notes/customers/c-0/notes", "k5", `{"customer_id":"c-0","conversation_id":"talk-501","minutes":"x"}`).
		wantCode(t, http.StatusNotFound, "customer-not-found")
}
