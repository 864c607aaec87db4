package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign/action"
	"countersign/execution/api"

	"github.com/go-jose/go-jose/v4"
)

const (
	tokenType   = "countersign-confirmation+jwt"
	refetchKeys = 10 * time.Second // at most so often for a key that is not known
)

// keyring holds the console's public keys.
type keyring struct {
	client *Client
	clock  Clock

	mu      sync.Mutex
	keys    jose.JSONWebKeySet
	fetched time.Time
}

// find returns the key of an id, fetching the set when the id is new.
func (k *keyring) find(ctx context.Context, id string) (jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found := k.keys.Key(id); len(found) == 1 {
		return found[0], nil
	}
	if now := k.clock.Now(); k.fetched.IsZero() || now.Sub(k.fetched) >= refetchKeys {
		raw, err := k.client.Keys(ctx)
		if err != nil {
			return jose.JSONWebKey{}, fmt.Errorf("fetching the console's keys: %w", err)
		}
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(raw, &set); err != nil {
			return jose.JSONWebKey{}, fmt.Errorf("reading the console's keys: %w", err)
		}
		k.keys, k.fetched = set, now
	}
	if found := k.keys.Key(id); len(found) == 1 {
		return found[0], nil
	}
	return jose.JSONWebKey{}, errors.New("the token is signed with a key that the console does not publish")
}

// confirmed is what a confirmation token says.
type confirmed struct {
	Ref           string  `json:"jti"`
	Expires       int64   `json:"exp"` // seconds
	NotBefore     int64   `json:"nbf"`
	ActionID      string  `json:"action_id"`
	Tool          string  `json:"tool"`
	ToolVersion   int     `json:"tool_version"`
	Actor         string  `json:"actor"`
	TargetType    *string `json:"target_type"`
	TargetID      *string `json:"target_id"`
	ObjectVersion *string `json:"object_version"`
	PayloadHash   string  `json:"payload_hash"`
	ProposalHash  string  `json:"proposal_hash"`
	ExecutionKey  string  `json:"execution_key"`
}

// open checks a token's signature and returns what it says.
func (k *keyring) open(ctx context.Context, token string) (confirmed, error) {
	var c confirmed
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return c, fmt.Errorf("reading the token: %w", err)
	}
	header := jws.Signatures[0].Protected
	if kind, _ := header.ExtraHeaders[jose.HeaderType].(string); kind != tokenType {
		return c, errors.New("the token is not a confirmation")
	}
	key, err := k.find(ctx, header.KeyID)
	if err != nil {
		return c, err
	}
	claims, err := jws.Verify(key.Key)
	if err != nil {
		return c, fmt.Errorf("verifying the token: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(claims))
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("reading the token: %w", err)
	}
	return c, nil
}

// bindsTo tells what of the work or the payload is not what was approved; now
// is the console's clock. nil when everything is.
func (c confirmed) bindsTo(w api.Work, ref string, payload []byte, now time.Time) error {
	kind, id := (*string)(nil), (*string)(nil)
	if w.Target != nil {
		kind, id = &w.Target.Type, &w.Target.ID
	}
	for _, part := range []struct {
		name string
		same bool
	}{
		{"confirmation_ref", c.Ref == ref},
		{"action_id", c.ActionID == w.ActionID},
		{"tool", c.Tool == w.Tool && c.ToolVersion == w.ToolVersion},
		{"actor", c.Actor == w.Actor.ID},
		{"target", same(c.TargetType, kind) && same(c.TargetID, id)},
		{"object_version", same(c.ObjectVersion, w.ObjectVersion)},
		{"execution_key", c.ExecutionKey == w.ExecutionKey},
		{"proposal_hash", c.ProposalHash == w.ProposalHash},
		{"payload_hash", c.PayloadHash == action.PayloadHash(payload)},
	} {
		if !part.same {
			return fmt.Errorf("%s is not what was approved", part.name)
		}
	}
	// The one retry of what was claimed in time may come later.
	over := now.Unix() >= c.Expires && action.Work(w.Kind) != action.WorkRetry
	if over || now.Unix() < c.NotBefore {
		return errors.New("the confirmation is not valid at this time")
	}
	return nil
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
