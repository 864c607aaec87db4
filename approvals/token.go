package approvals

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign/action"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TokenType is the typ header of a confirmation token.
const TokenType = "countersign-confirmation+jwt"

// SigningKey is an Ed25519 key as stored: the private half sealed with the
// console's secret.
type SigningKey struct {
	ID         string    `db:"kid"`
	Public     []byte    `db:"public_key"`
	Sealed     []byte    `db:"sealed"`
	ActiveFrom time.Time `db:"active_from"`
}

// KeyStore keeps signing keys.
type KeyStore interface {
	// SigningKeys returns all keys, oldest first.
	SigningKeys(ctx context.Context) ([]SigningKey, error)
	// AddSigningKey stores a key that becomes active after a delay, by the
	// database clock. Without a delay it is stored only if there is none yet.
	AddSigningKey(ctx context.Context, k SigningKey, delay time.Duration) error
}

// Signer signs confirmations. The token can be checked offline against the
// JWKS; it grants nothing, the claim does.
type Signer struct {
	store    KeyStore
	seal     cipher.AEAD
	issuer   string
	audience string

	mu     sync.RWMutex
	keys   []openKey
	loaded time.Time
}

type openKey struct {
	id         string
	private    ed25519.PrivateKey
	activeFrom time.Time
}

// reload is how old the known keys may be; rotationDelay is longer, so that
// every process knows a new key before it signs with it.
const (
	reload        = 15 * time.Second
	rotationDelay = time.Minute
)

// NewSigner opens the signing keys with the console's secret, and makes the
// first key where there is none. issuer is the console's public URL.
func NewSigner(ctx context.Context, store KeyStore, secret []byte, issuer, audience string) (*Signer, error) {
	if len(secret) < 32 {
		return nil, errors.New("the console's secret must have at least 32 bytes")
	}
	key := sha256.Sum256(append([]byte("countersign signing keys v1\x00"), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	s := &Signer{store: store, seal: seal, issuer: issuer, audience: audience}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	if len(s.keys) == 0 {
		if err := s.add(ctx, 0); err != nil {
			return nil, err
		}
		return s, s.load(ctx)
	}
	return s, nil
}

// Rotate adds a key that takes over within a minute. Tokens of earlier keys
// stay checkable.
func (s *Signer) Rotate(ctx context.Context) error { return s.add(ctx, rotationDelay) }

func (s *Signer) add(ctx context.Context, delay time.Duration) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making a signing key: %w", err)
	}
	id := action.NewID("key")
	nonce := make([]byte, s.seal.NonceSize())
	rand.Read(nonce)
	sealed := s.seal.Seal(nonce, nonce, private.Seed(), []byte(id))
	if err := s.store.AddSigningKey(ctx, SigningKey{ID: id, Public: public, Sealed: sealed}, delay); err != nil {
		return fmt.Errorf("storing a signing key: %w", err)
	}
	return nil
}

func (s *Signer) load(ctx context.Context) error {
	stored, err := s.store.SigningKeys(ctx)
	if err != nil {
		return fmt.Errorf("reading signing keys: %w", err)
	}
	keys := make([]openKey, 0, len(stored))
	for _, k := range stored {
		n := s.seal.NonceSize()
		if len(k.Sealed) <= n {
			return fmt.Errorf("signing key %s is damaged", k.ID)
		}
		seed, err := s.seal.Open(nil, k.Sealed[:n], k.Sealed[n:], []byte(k.ID))
		if err != nil {
			return fmt.Errorf("signing key %s cannot be opened with this secret", k.ID)
		}
		keys = append(keys, openKey{id: k.ID, private: ed25519.NewKeyFromSeed(seed), activeFrom: k.ActiveFrom})
	}
	s.mu.Lock()
	s.keys, s.loaded = keys, time.Now()
	s.mu.Unlock()
	return nil
}

func (s *Signer) current(ctx context.Context) ([]openKey, error) {
	s.mu.RLock()
	keys, fresh := s.keys, time.Since(s.loaded) < reload
	s.mu.RUnlock()
	if fresh {
		return keys, nil
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keys, nil
}

// bound is what a token says beside the registered claims: the fields that
// were approved, and by whom.
type bound struct {
	ActionID      string          `json:"action_id"`
	Revision      int             `json:"revision"`
	Tool          string          `json:"tool"`
	ToolVersion   int             `json:"tool_version"`
	Actor         string          `json:"actor"`
	TargetType    *string         `json:"target_type"`
	TargetID      *string         `json:"target_id"`
	ObjectVersion *string         `json:"object_version"`
	PayloadHash   string          `json:"payload_hash"`
	ProposalHash  string          `json:"proposal_hash"`
	ExecutionKey  string          `json:"execution_key"`
	Approvals     []boundApproval `json:"approvals"`
}

type boundApproval struct {
	Person string `json:"person"`
	Role   string `json:"role"`
	At     string `json:"at"`
}

// Token returns the compact JWS of an action's confirmation. The same
// confirmation always has the same token.
func (s *Signer) Token(ctx context.Context, a action.Action) (string, error) {
	keys, err := s.current(ctx)
	if err != nil {
		return "", err
	}
	key := keys[0]
	for _, k := range keys {
		if !k.activeFrom.After(a.Confirmation.At) {
			key = k
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key.private, KeyID: key.id}},
		(&jose.SignerOptions{}).WithType(TokenType))
	if err != nil {
		return "", fmt.Errorf("preparing to sign: %w", err)
	}
	at := jwt.NewNumericDate(a.Confirmation.At)
	claims := jwt.Claims{Issuer: s.issuer, Audience: jwt.Audience{s.audience}, ID: a.Confirmation.Ref,
		IssuedAt: at, NotBefore: at, Expiry: jwt.NewNumericDate(a.Confirmation.ExpiresAt)}
	token, err := jwt.Signed(signer).Claims(claims).Claims(boundOf(a)).Serialize()
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return token, nil
}

func boundOf(a action.Action) bound {
	b := a.Binding()
	out := bound{ActionID: a.ID, Revision: a.Confirmation.Revision, Tool: a.Tool, ToolVersion: a.ToolVersion, Actor: a.Actor.ID,
		TargetType: b.TargetType, TargetID: b.TargetID, ObjectVersion: a.ObjectVersion, PayloadHash: a.PayloadHash,
		ProposalHash: a.ProposalHash, ExecutionKey: a.ExecutionKey, Approvals: []boundApproval{}}
	for _, d := range a.Counted() {
		out.Approvals = append(out.Approvals, boundApproval{Person: d.By.ID, Role: d.By.Role, At: d.At.UTC().Format(time.RFC3339)})
	}
	return out
}

// JWKS returns the public keys that tokens are checked against (RFC 7517).
func (s *Signer) JWKS(ctx context.Context) (jose.JSONWebKeySet, error) {
	keys, err := s.current(ctx)
	if err != nil {
		return jose.JSONWebKeySet{}, err
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	return set, nil
}
