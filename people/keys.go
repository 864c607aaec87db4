package people

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/action"
)

// Key is an API key as it is known after it was shown once.
type Key struct {
	ID        string // "key_…"
	ClientID  string
	Prefix    string // the part of its text that may be shown
	CreatedAt time.Time
	ExpiresAt *time.Time // nil: does not expire
	LastSeen  *time.Time // to the minute; nil: never used
	Revoked   *time.Time
}

// Live reports whether the key works at a moment.
func (k Key) Live(now time.Time) bool {
	return k.Revoked == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

// maxLiveKeys lets one key replace another without a gap.
const maxLiveKeys = 2

func (c Client) liveKeys(now time.Time) int {
	n := 0
	for _, k := range c.Keys {
		if k.Live(now) {
			n++
		}
	}
	return n
}

func (c Client) key(id string) (Key, bool) {
	i := slices.IndexFunc(c.Keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return c.Keys[i], true
}

const (
	keyMark     = "ck_"
	prefixBytes = 5  // 8 characters
	secretBytes = 25 // 40 characters, 200 random bits
	prefixChars = prefixBytes * 8 / 5
	secretChars = secretBytes * 8 / 5
)

// newKeyText returns a key's text, "ck_<prefix>_<secret>", and its prefix.
func newKeyText() (text, prefix string) {
	prefix = action.NewSecret(prefixBytes)
	return keyMark + prefix + "_" + action.NewSecret(secretBytes), prefix
}

// keyPrefix returns the prefix of what is spelled like a key's text.
func keyPrefix(text string) (prefix string, ok bool) {
	rest, ok := strings.CutPrefix(text, keyMark)
	if !ok || len(rest) != prefixChars+1+secretChars || rest[prefixChars] != '_' {
		return "", false
	}
	return rest[:prefixChars], true
}

// digest is what is stored of a secret that has too many random bits to be
// guessed: an API key, a session, a link.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// keyEvent is what events keep of a key.
type keyEvent struct {
	Key       string     `json:"key_id"`
	Prefix    string     `json:"prefix"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Replaces  string     `json:"replaces,omitempty"`
}

// CreateKey makes an API key and returns its text, which is not kept. life is 0
// for a key that does not expire. A client has at most two live keys: one more
// is refused as WrongState, "two-keys". A command that is repeated returns no
// text.
func (s *Service) CreateKey(ctx context.Context, cmd Command, ref string, life time.Duration) (Key, string, error) {
	return s.addKey(ctx, cmd, ref, KeyCreated, life, func(c *ClientChange, now time.Time) error {
		if c.Client.liveKeys(now) >= maxLiveKeys {
			return wrongState("two-keys", "This client has two live keys. Revoke one first.")
		}
		return nil
	})
}

// RotateKey makes a new key that replaces a live one, which works for grace
// longer; 0 revokes it at once. Refusals and results are those of CreateKey.
func (s *Service) RotateKey(ctx context.Context, cmd Command, ref, keyID string, life, grace time.Duration) (Key, string, error) {
	return s.addKey(ctx, cmd, ref, KeyRotated, life, func(c *ClientChange, now time.Time) error {
		old, ok := c.Client.key(keyID)
		if !ok || !old.Live(now) {
			return wrongState("key-dead", "This key does not work any more. Create a new one.")
		}
		if until := now.Add(grace); grace <= 0 {
			old.Revoked = &now
		} else if old.ExpiresAt == nil || until.Before(*old.ExpiresAt) {
			old.ExpiresAt = &until
		}
		if c.Client.liveKeys(now) >= maxLiveKeys && old.Live(now) {
			return wrongState("two-keys", "This client has two live keys. Revoke one first.")
		}
		c.changeKey(old)
		return nil
	})
}

func (s *Service) addKey(ctx context.Context, cmd Command, ref string, kind action.Kind, life time.Duration,
	decide func(c *ClientChange, now time.Time) error) (made Key, shown string, err error) {
	var c check
	if life < 0 {
		c.fail("/expires_in", "key-life", "must not be negative")
		return Key{}, "", c.err()
	}
	text, prefix := newKeyText()
	id := action.NewID("key")
	client, left, err := s.alterClient(ctx, cmd, ref, kind, func(c *ClientChange, now time.Time) (any, error) {
		if err := decide(c, now); err != nil {
			return nil, err
		}
		key := Key{ID: id, ClientID: c.Client.ID, Prefix: prefix, CreatedAt: now}
		if life > 0 {
			until := now.Add(life)
			key.ExpiresAt = &until
		}
		data := keyEvent{Key: id, Prefix: prefix, ExpiresAt: key.ExpiresAt}
		if c.OldKey != nil {
			data.Replaces = c.OldKey.ID
		}
		c.addKey(key, digest(text))
		return data, nil
	})
	if err != nil {
		return Key{}, "", err
	}
	var e keyEvent
	if err := json.Unmarshal(left.Data, &e); err != nil {
		return Key{}, "", fmt.Errorf("reading a %s event: %w", kind, err)
	}
	if made, _ = client.key(e.Key); made.ID == id {
		shown = text
	}
	return made, shown, nil
}

// RevokeKey refuses a key from the next request on. Revoking it again changes
// nothing.
func (s *Service) RevokeKey(ctx context.Context, cmd Command, ref, keyID string) (Client, error) {
	return s.changeClient(ctx, cmd, ref, KeyRevoked, func(c *ClientChange, now time.Time) (any, error) {
		key, ok := c.Client.key(keyID)
		if !ok {
			return nil, action.Refuse(action.NotFound, "This client has no such key.")
		}
		if key.Revoked != nil {
			return nil, wrongState("revoked", "This key is revoked already.")
		}
		key.Revoked = &now
		c.changeKey(key)
		return keyEvent{Key: key.ID, Prefix: key.Prefix}, nil
	})
}

func (c *ClientChange) addKey(k Key, hash []byte) {
	c.NewKey = &NewKey{Key: k, Hash: hash}
	c.Client.Keys = append([]Key{k}, c.Client.Keys...)
}

func (c *ClientChange) changeKey(k Key) {
	c.OldKey = &k
	c.Client.Keys = slices.Clone(c.Client.Keys)
	for i := range c.Client.Keys {
		if c.Client.Keys[i].ID == k.ID {
			c.Client.Keys[i] = k
		}
	}
}
