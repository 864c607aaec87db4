package triage

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"countersign/action"
)

// CallbackSecret is what a business system signs its callbacks about one tool
// with, as stored: sealed with the console's secret.
type CallbackSecret struct {
	ID        string     `db:"id"`
	Tool      string     `db:"tool"`
	Sealed    []byte     `db:"sealed"`
	CreatedAt time.Time  `db:"created_at"`
	EndsAt    *time.Time `db:"ends_at"` // from when on it is refused; nil: never
}

// Live reports whether signatures made with it are accepted.
func (s CallbackSecret) Live(now time.Time) bool { return s.EndsAt == nil || now.Before(*s.EndsAt) }

// sealer makes what seals callback secrets.
func sealer(secret []byte) (cipher.AEAD, error) {
	if len(secret) < sha256.Size {
		return nil, errors.New("the console's secret must have at least 32 bytes")
	}
	key := sha256.Sum256(append([]byte("countersign callback secrets v1\x00"), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// AddSecret makes callbacks about a tool acceptable that are signed with
// secret; "" makes one up. Earlier ones go on working. It returns the secret.
func (c *Callbacks) AddSecret(ctx context.Context, tool, secret string, by action.By) (string, error) {
	return c.addSecret(ctx, tool, secret, nil, by)
}

// RotateSecret is AddSecret, and refuses the earlier ones after a while.
func (c *Callbacks) RotateSecret(ctx context.Context, tool, secret string, grace time.Duration, by action.By) (string, error) {
	if grace < 0 {
		return "", action.Refuse(action.InvalidArgument, "The time for which earlier secrets still work cannot be negative.")
	}
	return c.addSecret(ctx, tool, secret, &grace, by)
}

func (c *Callbacks) addSecret(ctx context.Context, tool, secret string, grace *time.Duration, by action.By) (string, error) {
	known, err := c.catalogue.Latest(ctx, tool)
	if err != nil {
		return "", err
	}
	if known.Contract.Execution.Callback == nil {
		return "", action.Refuse(action.InvalidArgument, "The contract of "+tool+" has no callback part, so nobody could tell what a callback says.")
	}
	if secret == "" {
		secret = newWebhookSecret()
	}
	key, err := webhookKey(secret)
	if err != nil {
		return "", err
	}
	s := CallbackSecret{ID: action.NewID("whs"), Tool: tool}
	nonce := make([]byte, c.seal.NonceSize())
	rand.Read(nonce)
	s.Sealed = c.seal.Seal(nonce, nonce, key, []byte(s.ID+" "+tool))
	if err := c.store.AddCallbackSecret(ctx, s, grace, by); err != nil {
		return "", fmt.Errorf("storing a callback secret: %w", err)
	}
	return secret, nil
}

// keys opens the secrets of a tool that are good now, and tells the database's
// clock.
func (c *Callbacks) keys(ctx context.Context, tool string) ([][]byte, time.Time, error) {
	stored, now, err := c.store.CallbackSecrets(ctx, tool)
	if err != nil {
		return nil, now, err
	}
	var keys [][]byte
	for _, s := range stored {
		if !s.Live(now) {
			continue
		}
		n := c.seal.NonceSize()
		if len(s.Sealed) <= n {
			return nil, now, fmt.Errorf("callback secret %s is damaged", s.ID)
		}
		key, err := c.seal.Open(nil, s.Sealed[:n], s.Sealed[n:], []byte(s.ID+" "+tool))
		if err != nil {
			return nil, now, fmt.Errorf("callback secret %s cannot be opened with this secret", s.ID)
		}
		keys = append(keys, key)
	}
	return keys, now, nil
}
