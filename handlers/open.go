package handlers

import (
	"net/http"

	"countersign/action"
)

// healthy says that the process answers.
func (s *server) healthy(w http.ResponseWriter, _ *http.Request, _ caller) error {
	return respond(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether the console can serve: the database answers and has the
// right schema.
func (s *server) ready(w http.ResponseWriter, r *http.Request, _ caller) error {
	if err := s.Ready(r.Context()); err != nil {
		return action.Refuse(action.OutcomeUnknown, "The console is not ready to serve.").Because("not-ready").From(err)
	}
	return respond(w, http.StatusOK, map[string]string{"status": "ready"})
}

// publicKeys are what confirmation tokens are checked with. They may be kept
// for less time than it takes a new key to come into use.
func (s *server) publicKeys(w http.ResponseWriter, r *http.Request, _ caller) error {
	set, err := s.Approvals.Signer().JWKS(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=30")
	return respond(w, http.StatusOK, set)
}

// describe is the OpenAPI document.
func (s *server) describe(w http.ResponseWriter, _ *http.Request, _ caller) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, err := w.Write(s.openapi)
	return err
}
