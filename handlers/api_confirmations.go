package handlers

import (
	"errors"
	"net/http"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
)

// getConfirmation shows what a confirmation stands for.
func (s *server) getConfirmation(w http.ResponseWriter, r *http.Request, c caller) error {
	snap, err := s.Approvals.Confirmation(r.Context(), *c.client, parameter(r, "ref"))
	if err != nil {
		return err
	}
	a := snap.Action
	token, err := s.Approvals.Signer().Token(r.Context(), a)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, api.ConfirmationState{Ref: a.Confirmation.Ref, ActionID: a.ID, State: string(a.StateAt(snap.Now)),
		Revision: a.Confirmation.Revision, Tool: a.Tool, ToolVersion: a.ToolVersion, ObjectVersion: a.ObjectVersion, PayloadHash: a.PayloadHash,
		ProposalHash: a.ProposalHash, ExecutionKey: a.ExecutionKey, ExpiresAt: a.Confirmation.ExpiresAt.UTC(), Token: token, Now: snap.Now.UTC()})
}

// verify checks a confirmation. That it does not stand is an answer, not a
// problem.
func (s *server) verify(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Verify](w, r)
	if err != nil {
		return err
	}
	if err := checkBound(body.ProposalHash, body.ObjectVersion); err != nil {
		return err
	}
	err = s.Approvals.Verify(r.Context(), *c.client, parameter(r, "ref"), approvals.Bound{ProposalHash: body.ProposalHash, ObjectVersion: body.ObjectVersion})
	var refusal *action.Refusal
	if errors.As(err, &refusal) {
		switch refusal.Code {
		case action.StaleRevision, action.VersionConflict, action.WrongState, action.ExpiredCode:
			return respond(w, http.StatusOK, api.Verified{Reason: new(string(refusal.Code))})
		}
	}
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, api.Verified{Valid: true})
}

// claim takes a confirmation for one executor process.
func (s *server) claim(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Claim](w, r)
	if err != nil {
		return err
	}
	if err := checkBound(body.ProposalHash, body.ObjectVersion); err != nil {
		return err
	}
	claimed, err := s.Approvals.Claim(r.Context(), *c.client, parameter(r, "ref"), body.ClaimID,
		approvals.Bound{ProposalHash: body.ProposalHash, ObjectVersion: body.ObjectVersion})
	if err != nil {
		return err
	}
	effective, err := claimed.Tool.Contract.Effective()
	if err != nil {
		return err
	}
	a := claimed.Action
	answer := api.Claimed{ActionID: a.ID, Contract: effective, Payload: a.Payload, ExecutionKey: a.ExecutionKey,
		Lease: leaseOf(action.Snapshot{Action: a, Now: claimed.Now}), Token: claimed.Token, Now: claimed.Now.UTC()}
	if next, ok := a.NextStep(); ok {
		answer.Step = stepOf(a, next.Name)
	}
	if until, ok := a.KeyUntil(); ok {
		answer.KeyExpiresAt = new(until.UTC())
	}
	return respond(w, http.StatusOK, answer)
}

func checkBound(hash string, version *string) error {
	refusal := action.Refuse(action.InvalidArgument, "The request is refused. The errors say where.")
	wantText(refusal, "/proposal_hash", hash, true)
	if version != nil {
		wantText(refusal, "/object_version", *version, false)
	}
	return orNil(refusal)
}
