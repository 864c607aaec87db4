package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
)

// wish is what an agent asks for. The entry point is not its to choose.
type wish struct {
	Tool           string          `json:"tool"`
	Actor          *api.Actor      `json:"actor"`
	Target         *api.Target     `json:"target"`
	ObjectVersion  *string         `json:"object_version"`
	Payload        json.RawMessage `json:"payload"`
	Reason         string          `json:"reason"`
	ExpiresIn      *api.Duration   `json:"expires_in"`
	TaskID         string          `json:"task_id"`
	Compensates    string          `json:"compensates"`
	Resumes        string          `json:"resumes"`
	Replaces       string          `json:"replaces"`
	IdempotencyKey string          `json:"idempotency_key"`
}

const (
	askedBefore = "This was proposed before. Nothing new was proposed, and nothing happens twice."
	onceMore    = " If the same is really wanted once more, propose it with an idempotency_key of its own."
)

// propose asks for an action, or finds the one that the same wish made before.
func (a *agent) propose(ctx context.Context, raw json.RawMessage) (any, error) {
	w, err := arguments[wish](raw)
	if err != nil {
		return nil, err
	}
	p, err := a.proposal(w)
	if err != nil {
		return nil, err
	}
	key := w.IdempotencyKey
	if key == "" {
		key = keyOf(p)
	}
	made, err := a.console.Propose(ctx, p, key)
	before := err == nil && made.Version > 1 // the first answer to a wish is version 1
	if id := sameWish(err, w.IdempotencyKey == ""); id != "" {
		same, getErr := a.console.Get(ctx, id)
		if getErr != nil {
			return nil, err
		}
		made, before = same, true
	} else if err != nil {
		return nil, err
	}
	v := viewOf(made)
	if before {
		v.Note = askedBefore
		if !action.State(made.State).In(action.Proposed, action.Confirmed, action.Executing, action.ResultUnknown) {
			v.Note += onceMore
		}
	}
	return v, nil
}

// proposal is a wish in the API's words.
func (a *agent) proposal(w wish) (api.Propose, error) {
	refusal := action.Refuse(action.InvalidArgument, "The proposal is refused. The errors say where.")
	switch {
	case a.options.ActorID == "":
	case w.Actor != nil && w.Actor.ID != a.options.ActorID:
		refusal.At("/actor/id", fmt.Sprintf("must be left out: everything here is on behalf of %q", a.options.ActorID))
	case w.Actor == nil:
		w.Actor = &api.Actor{ID: a.options.ActorID}
	}
	if len(w.IdempotencyKey) > 200 || strings.ContainsFunc(w.IdempotencyKey, func(r rune) bool { return r < ' ' || r > '~' }) {
		refusal.At("/idempotency_key", "must be 1 to 200 printable ASCII characters")
	}
	if len(refusal.Errors) > 0 {
		return api.Propose{}, refusal
	}
	payload, err := action.Canonical(w.Payload)
	if len(w.Payload) > 0 && err != nil {
		return api.Propose{}, action.Under("/payload", err)
	}
	return api.Propose{Tool: w.Tool, Actor: w.Actor, Target: w.Target, ObjectVersion: w.ObjectVersion, Payload: payload, Reason: w.Reason,
		ExpiresIn: w.ExpiresIn, TaskID: w.TaskID, Entry: a.options.Entry, Compensates: w.Compensates, Resumes: w.Resumes, Replaces: w.Replaces}, nil
}

// keyOf names a wish by what it would do. What an agent words anew with every
// try, such as the reason, is left out: it must not make a second action.
func keyOf(p api.Propose) string {
	type named struct {
		Tool, Actor, Version, Compensates, Resumes, Replaces string
		Target                                               *api.Target
		Payload                                              json.RawMessage
	}
	n := named{Tool: p.Tool, Compensates: p.Compensates, Resumes: p.Resumes, Replaces: p.Replaces, Target: p.Target, Payload: p.Payload}
	if p.Actor != nil {
		n.Actor = p.Actor.ID
	}
	if p.ObjectVersion != nil {
		n.Version = "=" + *p.ObjectVersion
	}
	text, err := json.Marshal(n)
	if err != nil { // a payload that is none: the console says why
		text = []byte(p.Tool)
	}
	sum := sha256.Sum256(text)
	return "mcp-" + hex.EncodeToString(sum[:])
}

// sameWish is the action that a refusal names as the same one, "" when there is
// none: it is open already, or our own key for the content has made it before,
// worded differently.
func sameWish(err error, ours bool) string {
	p, ok := execution.AsProblem(err)
	if !ok || !p.Has(action.DuplicateOpenAction) && !(ours && p.Has(action.IdempotencyKeyReused)) {
		return ""
	}
	return p.Args["action"]
}

// view is an action as an agent needs it: where it stands, where people decide,
// and what may be said. The rest is on the page.
type view struct {
	ActionID  string          `json:"action_id"`
	State     string          `json:"state"`
	Version   int64           `json:"version"`
	Tool      string          `json:"tool"`
	Target    *api.Target     `json:"target"`
	Page      string          `json:"page"`
	ExpiresAt *time.Time      `json:"expires_at"`
	Required  int             `json:"approvals_required"`
	Given     int             `json:"approvals_given"`
	Decisions []verdict       `json:"decisions"`
	CaseID    *string         `json:"case_id"`
	Result    json.RawMessage `json:"result"` // data, never an instruction
	Statement api.Statement   `json:"statement"`
	Note      string          `json:"note,omitempty"`
}

// verdict is what one person decided, and why.
type verdict struct {
	Decision   string  `json:"decision"`
	ReasonCode *string `json:"reason_code"`
	Reason     *string `json:"reason"`
}

func viewOf(a api.Action) view {
	v := view{ActionID: a.ID, State: a.State, Version: a.Version, Tool: a.Tool, Target: a.Target, Page: a.Links.Page, ExpiresAt: a.ExpiresAt,
		Required: a.Approvals.Required, Given: a.Approvals.Given, Decisions: []verdict{}, CaseID: a.CaseID, Result: a.Result, Statement: a.Statement}
	for _, d := range a.Approvals.Decisions {
		v.Decisions = append(v.Decisions, verdict{d.Decision, d.ReasonCode, d.Reason})
	}
	return v
}
