package handlers

import (
	"encoding/json"
	"net/http"

	"countersign/action"
	"countersign/execution/api"
	"countersign/triage"
)

// startAttempt gives leave to send one request.
func (s *server) startAttempt(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Attempt](w, r)
	if err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "The attempt is refused. The errors say where.")
	if wantText(refusal, "/step", body.Step, false); len(refusal.Errors) > 0 {
		return refusal
	}
	started, now, err := s.Triage.Start(r.Context(), *c.client, parameter(r, "id"),
		triage.Attempt{ID: body.AttemptID, ClaimID: body.ClaimID, Step: body.Step, Fingerprint: body.Fingerprint})
	if err != nil {
		return err
	}
	return respond(w, http.StatusCreated, api.AttemptStarted{Number: started.Number,
		SendWithinMillis: max(0, started.SendBy.Sub(now).Milliseconds()), SendBy: started.SendBy.UTC()})
}

// report takes a receipt.
func (s *server) report(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Receipt](w, r)
	if err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "The receipt is refused. The errors say where.")
	wantText(refusal, "/provider_ref", body.ProviderRef, false)
	wantText(refusal, "/object_version_after", body.ObjectVersionAfter, false)
	wantText(refusal, "/code", body.Code, false)
	wantStatus(refusal, body.HTTPStatus)
	wantMillis(refusal, body.TookMillis)
	if len(refusal.Errors) > 0 {
		return refusal
	}
	snap, err := s.Triage.Report(r.Context(), *c.client, parameter(r, "id"), triage.Receipt{ID: body.ReceiptID, AttemptID: body.AttemptID,
		ClaimID: body.ClaimID, Outcome: body.Outcome, Proves: body.Proves, Code: body.Code, HTTPStatus: body.HTTPStatus, ProviderRef: body.ProviderRef,
		ObjectVersionAfter: body.ObjectVersionAfter, TookMillis: body.TookMillis, Body: given(body.Body)})
	if err != nil {
		return err
	}
	s.meters.reported(snap.Action, body.ReceiptID)
	return s.respondAction(w, r, c, http.StatusCreated, snap)
}

// observation takes a reading.
func (s *server) observation(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Observation](w, r)
	if err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "The observation is refused. The errors say where.")
	if !toolName(body.Tool) {
		refusal.At("/tool", "is required: the name of the tool that was asked")
	}
	wantText(refusal, "/step", body.Step, false)
	wantText(refusal, "/fingerprint", body.Fingerprint, false)
	wantText(refusal, "/provider_ref", body.ProviderRef, false)
	wantText(refusal, "/code", body.Code, false)
	wantStatus(refusal, body.HTTPStatus)
	wantMillis(refusal, body.TookMillis)
	if body.ToolVersion < 0 {
		refusal.At("/tool_version", "must be a version of the tool's contract")
	}
	if len(refusal.Errors) > 0 {
		return refusal
	}
	snap, err := s.Triage.Observe(r.Context(), *c.client, parameter(r, "id"), triage.Observation{ID: body.ObservationID, Tool: body.Tool, Step: body.Step,
		Snapshot: given(body.Snapshot), Error: body.Error, ObservedAt: body.ObservedAt,
		Wire: action.Wire{ToolVersion: body.ToolVersion, Digest: body.Fingerprint, TookMillis: body.TookMillis, RequestID: body.ProviderRef,
			Status: body.HTTPStatus, Code: body.Code}})
	if err != nil {
		return err
	}
	return s.respondAction(w, r, c, http.StatusCreated, snap)
}

// maxTookMillis bounds how long a call may have taken: a day.
const maxTookMillis = 24 * 60 * 60 * 1000

func wantMillis(refusal *action.Refusal, took int64) {
	if took < 0 || took > maxTookMillis {
		refusal.At("/took_ms", "must be from 0 to 86400000")
	}
}

func wantStatus(refusal *action.Refusal, status int) {
	if status != 0 && (status < 100 || status > 599) {
		refusal.At("/http_status", "must be from 100 to 599")
	}
}

// given is a value that was sent; null is as if it was not.
func given(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
