package triage

import (
	"context"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
)

// CallbackStore keeps what callbacks need beside the actions.
type CallbackStore interface {
	// CallbackSecrets returns the secrets of a tool, and the database's clock.
	CallbackSecrets(ctx context.Context, tool string) ([]CallbackSecret, time.Time, error)
	// AddCallbackSecret stores a secret, and ends the tool's others after grace
	// unless that is nil.
	AddCallbackSecret(ctx context.Context, s CallbackSecret, grace *time.Duration, by action.By) error
	// ByKey returns the actions of a tool that know an execution key.
	ByKey(ctx context.Context, tool, key string) ([]string, error)
	// Park keeps a callback for a while. False means that another one has its id.
	Park(ctx context.Context, p ParkedCallback) (bool, error)
	// Joinable returns parked callbacks whose action may have been attempted,
	// oldest first, after one.
	Joinable(ctx context.Context, after ParkedCallback, limit int) ([]ParkedCallback, error)
	// Unpark forgets a parked callback.
	Unpark(ctx context.Context, tool, webhookID string) error
}

// ParkedCallback is a callback that came before the attempt that it is about.
type ParkedCallback struct {
	Tool       string    `db:"tool"`
	WebhookID  string    `db:"webhook_id"`
	Key        string    `db:"key"` // execution key, without a step
	Body       []byte    `db:"body"`
	ReceivedAt time.Time `db:"received_at"`
	ExpiresAt  time.Time `db:"expires_at"`
}

// Callbacks takes what business systems tell by themselves of operations that
// they were asked for.
type Callbacks struct {
	ledger    Ledger
	store     CallbackStore
	catalogue *rule.Catalogue
	seal      cipher.AEAD
}

// NewCallbacks makes it. secret is the console's: it seals the secrets that
// callbacks are signed with.
func NewCallbacks(l Ledger, s CallbackStore, c *rule.Catalogue, secret []byte) (*Callbacks, error) {
	seal, err := sealer(secret)
	if err != nil {
		return nil, err
	}
	return &Callbacks{ledger: l, store: s, catalogue: c, seal: seal}, nil
}

// Take takes a callback about an operation of a tool. It is joined to its
// action by the execution key that it names, and counts once however often it
// comes; when nothing was attempted under that key so far, it is parked.
// Unauthorized when it is not signed as it must be, IdempotencyKeyInUse when
// its id was another message's.
func (c *Callbacks) Take(ctx context.Context, tool string, w Webhook) (joined bool, err error) {
	keys, now, err := c.keys(ctx, tool)
	if err != nil {
		return false, err
	}
	if !w.signed(keys, now) {
		return false, action.Refuse(action.Unauthorized, "The callback is not signed with a secret that is good for this tool, or not within five minutes of now.").Because("signature")
	}
	if !json.Valid(w.Body) {
		return false, action.Refuse(action.Malformed, "The callback's body is not JSON.")
	}
	key, err := c.keyIn(ctx, tool, w.Body)
	if err != nil {
		return false, err
	}
	p := ParkedCallback{Tool: tool, WebhookID: w.ID, Key: key, Body: w.Body}
	if joined, err = c.join(ctx, p); joined || err != nil {
		return joined, err
	}
	kept, err := c.store.Park(ctx, p)
	if err == nil && !kept {
		err = action.Refuse(action.IdempotencyKeyInUse, "This webhook-id was another message's.")
	}
	return false, err
}

// keyIn finds the execution key in a callback. Operations go on under the
// contract that they were started with, so any version may be the one to read it.
func (c *Callbacks) keyIn(ctx context.Context, tool string, body []byte) (string, error) {
	t, err := c.catalogue.Latest(ctx, tool)
	if err != nil {
		return "", err
	}
	for version := t.Version; version > 0; version-- {
		if t, err = c.catalogue.Version(ctx, tool, version); err != nil {
			return "", err
		}
		said, _ := t.Contract.ReadCallback(body)
		if key, _, _ := strings.Cut(said, ":"); action.ValidID("exk", key) {
			return key, nil
		}
	}
	return "", action.Refuse(action.InvalidArgument, "The callback names no execution key where the contract of this tool has it.")
}

// Reasons not to join a callback with an action.
var (
	errNotIts = errors.New("the callback is about another action")
	errEarly  = errors.New("nothing was attempted yet")
)

// join adds a callback to the action whose key it names, as evidence. False
// when there is none, or when nothing was attempted yet and still may be.
func (c *Callbacks) join(ctx context.Context, p ParkedCallback) (bool, error) {
	ids, err := c.store.ByKey(ctx, p.Tool, p.Key)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		_, err := action.Change(ctx, c.ledger, id, func(snap action.Snapshot) (action.Command, error) {
			return c.evidence(ctx, snap.Action, p)
		})
		if errors.Is(err, errNotIts) || errors.Is(err, errEarly) {
			continue
		}
		return err == nil, err
	}
	return false, nil
}

// CallbackSource is the source of evidence that came as a callback.
const CallbackSource = "callback"

// fromWebhook begins the ids of evidence that came as a callback.
const fromWebhook = "webhook:"

func (c *Callbacks) evidence(ctx context.Context, a action.Action, p ParkedCallback) (action.Command, error) {
	switch {
	case a.ExecutionKey != p.Key || a.Tool != p.Tool:
		return nil, errNotIts
	case len(a.Attempts) == 0 && a.State.In(action.Draft, action.Proposed, action.Confirmed, action.Executing):
		return nil, errEarly
	}
	tool, err := c.catalogue.Version(ctx, a.Tool, a.ToolVersion)
	if err != nil {
		return nil, err
	}
	said, _ := tool.Contract.ReadCallback(p.Body)
	_, step, _ := strings.Cut(said, ":")
	if len(tool.Contract.Execution.Steps) == 0 {
		step = ""
	}
	k, err := tool.Contract.ForStep(step)
	if err != nil {
		return nil, errNotIts // of a step that it does not have
	}
	_, reading := k.ReadCallback(p.Body)
	f := action.Found{ID: fromWebhook + p.WebhookID, Source: CallbackSource, Step: step}
	f.Outcome, f.Proves = outcomeOf(reading)
	if f.Outcome == action.FoundNotExecuted {
		f.ObservedAt = p.ReceivedAt // it says nothing of what was sent while it was parked
	}
	undone, err := undoneBy(ctx, c.ledger, a)
	if err != nil {
		return nil, err
	}
	return action.AddEvidence{UndoneBy: undone, By: action.By{Kind: action.BySystem, ID: "callback:" + p.Tool, Name: "Callback about " + p.Tool},
		CaseID: action.NewID("cas"), Snapshot: p.Body, Found: f}, nil
}

// outcomeOf is what a reading of an operation says of it.
func outcomeOf(r contract.Reading) (outcome string, proves action.Proof) {
	switch {
	case r.Outcome == action.Success:
		return action.FoundSucceeded, r.Proves
	case r.NotExecuted:
		return action.FoundNotExecuted, action.ProvesNothing
	case r.Outcome == action.Failure:
		return action.FoundFailed, action.ProvesNothing
	}
	return action.FoundUnknown, action.ProvesNothing
}

// joinBatch is how many parked callbacks are read at a time.
const joinBatch = 200

// JoinParked joins parked callbacks whose attempt has appeared since. Those of
// an action that ended without one contradict it, and open a case. One that
// cannot be joined keeps no other waiting.
func (c *Callbacks) JoinParked(ctx context.Context) error {
	return action.Each(ctx, func(after ParkedCallback) ([]ParkedCallback, error) { return c.store.Joinable(ctx, after, joinBatch) }, func(p ParkedCallback) error {
		joined, err := c.join(ctx, p)
		if err == nil && joined {
			err = c.store.Unpark(ctx, p.Tool, p.WebhookID)
		}
		if err != nil {
			return fmt.Errorf("joining callback %s: %w", p.WebhookID, err)
		}
		return nil
	})
}
