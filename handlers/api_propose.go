package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
)

// maxReason bounds what a program says for its proposal, in bytes.
const maxReason = 4000

// propose starts an action.
func (s *server) propose(w http.ResponseWriter, r *http.Request, c caller) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	body, err := decode[api.Propose](w, r)
	if err != nil {
		return err
	}
	if err := checkProposal(body); err != nil {
		return err
	}
	links := action.Links{Compensates: body.Compensates, Resumes: body.Resumes, Replaces: body.Replaces}
	if err := s.checkLinks(r.Context(), c, links); err != nil {
		return err
	}
	p := approvals.Proposal{Key: key, Tool: body.Tool, Actor: action.Actor{ID: body.Actor.ID, Name: deref(body.Actor.Name)},
		ObjectVersion: body.ObjectVersion, Payload: body.Payload, Reason: body.Reason, ExpiresIn: lifeOf(body.ExpiresIn), TaskID: body.TaskID,
		Entry: body.Entry, Draft: body.Draft, Links: links, RequestID: requestID(r), Trace: traceparent(r.Context())}
	if body.Target != nil {
		p.Target = &action.Target{Type: body.Target.Type, ID: body.Target.ID}
	}
	snap, replayed, err := s.Approvals.Propose(r.Context(), *c.client, p)
	if err != nil {
		s.noteRefused(r.Context(), c, p, err)
		return err
	}
	w.Header().Set("Location", "/v1/actions/"+snap.Action.ID)
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return s.respondAction(w, r, c, http.StatusCreated, snap)
}

// noteRefused puts a call around the catalogue into its client's record, where
// people see it. A record that cannot be written does not change the answer.
func (s *server) noteRefused(ctx context.Context, c caller, p approvals.Proposal, err error) {
	reason := action.AsRefusal(err).Reason
	if !slices.Contains([]string{"entry", "tool", "scope"}, reason) {
		return
	}
	if err := s.People.NoteRefused(context.WithoutCancel(ctx), *c.client, people.Refused{Tool: p.Tool, Entry: p.Entry, Reason: reason}); err != nil {
		s.Log.Warn("a refused call is not in the record", "client", c.client.ID, "tool", p.Tool, "error", err)
	}
}

// entryPoints are where a proposal can come from.
func entryPoints() []string { return []string{"chat", "background", "workflow"} }

// checkProposal names every place that is wrong by itself. What depends on the
// contract is the domain's to judge.
func checkProposal(p api.Propose) error {
	refusal := action.Refuse(action.InvalidArgument, "The proposal is refused. The errors say where.")
	if !toolName(p.Tool) {
		refusal.At("/tool", "is required: the name of a tool")
	}
	if p.Actor == nil {
		refusal.At("/actor", `is required: on whose behalf, {"id": …}`)
	} else {
		wantText(refusal, "/actor/id", p.Actor.ID, true)
		wantText(refusal, "/actor/name", deref(p.Actor.Name), false)
	}
	if p.Target != nil {
		wantText(refusal, "/target/type", p.Target.Type, true)
		if p.Target.ID == "" || !storable(p.Target.ID, maxTargetID) {
			refusal.At("/target/id", "is required: 1 to 2048 bytes of text without NUL")
		}
	}
	checkContent(refusal, p.Payload, p.ObjectVersion, p.Reason)
	if p.TaskID != "" && !action.ValidID("tsk", p.TaskID) {
		refusal.At("/task_id", "must be the id of a task that this program has opened, or be left out")
	}
	if p.Entry != "" && !slices.Contains(entryPoints(), p.Entry) {
		refusal.At("/entry", "must be chat, background or workflow")
	}
	given := 0
	for pointer, id := range map[string]string{"/compensates": p.Compensates, "/resumes": p.Resumes, "/replaces": p.Replaces} {
		if id == "" {
			continue
		}
		if given++; !action.ValidID("act", id) {
			refusal.At(pointer, "must be the id of an action")
		}
	}
	if given > 1 {
		refusal.At("", "name at most one of compensates, resumes and replaces")
	}
	return orNil(refusal)
}

// checkContent looks at what a revision replaces.
func checkContent(refusal *action.Refusal, payload json.RawMessage, version *string, reason string) {
	if len(payload) == 0 || string(payload) == "null" {
		refusal.At("/payload", "is required: a JSON object")
		if len(refusal.Errors) == 1 {
			refusal.Code = action.InvalidPayload
		}
	}
	if version != nil {
		wantText(refusal, "/object_version", *version, true)
	}
	if len(reason) > maxReason {
		refusal.At("/reason", "must have at most "+strconv.Itoa(maxReason)+" bytes")
	}
}

// wantText notes a text that cannot be stored and compared.
func wantText(refusal *action.Refusal, pointer, text string, required bool) {
	switch {
	case required && text == "":
		refusal.At(pointer, "is required and must not be empty")
	case !plainText(text, maxText):
		refusal.At(pointer, "must be at most 256 bytes of text without control characters")
	}
}

// checkLinks refuses to lean on an action that the caller may not see: linked
// actions pass a block.
func (s *server) checkLinks(ctx context.Context, c caller, links action.Links) error {
	for pointer, id := range map[string]string{"/compensates": links.Compensates, "/resumes": links.Resumes, "/replaces": links.Replaces} {
		if id == "" {
			continue
		}
		_, err := s.see(ctx, c, id)
		if action.IsCode(err, action.NotFound) {
			return action.Refuse(action.InvalidArgument, "The proposal is refused. The errors say where.").At(pointer, "is no action that you may see")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// see reads an action that the caller may see.
func (s *server) see(ctx context.Context, c caller, id string) (action.Snapshot, error) {
	snap, err := s.Reads.Snapshot(ctx, id)
	if err != nil {
		return snap, err
	}
	if !c.viewer().Sees(approvals.SubjectOf(snap.Action, "")) {
		return action.Snapshot{}, noAction()
	}
	return snap, nil
}

func lifeOf(d *api.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	life := time.Duration(*d)
	return &life
}
