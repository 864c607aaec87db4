package execution

import (
	"crypto/ed25519"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"

	"github.com/go-jose/go-jose/v4"
)

var issued = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func approvedWork() (api.Work, string) {
	version, ref := "8", "cnf_1"
	return api.Work{Kind: "execute", ActionID: "act_1", Tool: "catalog.set_price", ToolVersion: 3, Actor: api.Actor{ID: "mia"},
		Target: &api.Target{Type: "product", ID: "SKU-4411"}, ObjectVersion: &version, ExecutionKey: "exk_1",
		ProposalHash: "sha256:p", ConfirmationRef: &ref}, ref
}

func claimsOf(w api.Work, ref string) map[string]any {
	return map[string]any{"jti": ref, "iat": issued.Unix(), "nbf": issued.Unix(), "exp": issued.Add(time.Minute).Unix(),
		"action_id": w.ActionID, "tool": w.Tool, "tool_version": w.ToolVersion, "actor": w.Actor.ID, "target_type": w.Target.Type,
		"target_id": w.Target.ID, "object_version": *w.ObjectVersion, "execution_key": w.ExecutionKey,
		"proposal_hash": w.ProposalHash, "payload_hash": action.PayloadHash([]byte(pricePayload))}
}

type signer struct {
	key  ed25519.PrivateKey
	kid  string
	kind string
}

func newSigner(t *testing.T, kid, kind string) signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, kid, kind}
}

func (s signer) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	j, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: s.key, KeyID: s.kid}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(s.kind)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := j.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// publishes serves the public keys of the signers.
func publishes(t *testing.T, signers ...signer) http.HandlerFunc {
	t.Helper()
	set := jose.JSONWebKeySet{}
	for _, s := range signers {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: s.key.Public(), KeyID: s.kid, Algorithm: "EdDSA", Use: "sig"})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return says(200, string(text))
}

func TestTokenIsCheckedBeforeAnythingRuns(t *testing.T) {
	w, ref := approvedWork()
	s := newSigner(t, "key_1", tokenType)
	ring := func(t *testing.T) *keyring {
		c := newConsole(t, publishes(t, s))
		return &keyring{client: c.client, clock: c.clock}
	}
	said, err := ring(t).open(t.Context(), s.sign(t, claimsOf(w, ref)))
	if err != nil {
		t.Fatal(err)
	}
	if err := said.bindsTo(w, ref, []byte(pricePayload), issued.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Run("TestReport01_other payload", func(t *testing.T) {
		if said.bindsTo(w, ref, []byte(strings.Replace(pricePayload, "105", "50", 1)), issued) == nil {
			t.Error("accepted")
		}
	})
	for name, when := range map[string]time.Time{"too early": issued.Add(-time.Second), "expired": issued.Add(time.Minute)} {
		if said.bindsTo(w, ref, []byte(pricePayload), when) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for claim := range claimsOf(w, ref) {
		if claim == "iat" || claim == "nbf" {
			continue
		}
		changed := maps.Clone(claimsOf(w, ref))
		switch changed[claim].(type) {
		case string:
			changed[claim] = "other"
		case int:
			changed[claim] = 4
		default:
			changed[claim] = issued.Unix() - 1
		}
		said, err := ring(t).open(t.Context(), s.sign(t, changed))
		if err != nil {
			t.Fatal(err)
		}
		if said.bindsTo(w, ref, []byte(pricePayload), issued) == nil {
			t.Errorf("another %s is accepted", claim)
		}
	}
}

func TestBadTokens(t *testing.T) {
	w, ref := approvedWork()
	claims := claimsOf(w, ref)
	s := newSigner(t, "key_1", tokenType)
	good := s.sign(t, claims)
	parts := strings.Split(good, ".")
	impostor := newSigner(t, "key_1", tokenType)
	plain := newSigner(t, "key_1", "JWT")
	plain.key = s.key
	stranger := newSigner(t, "key_2", tokenType)
	for name, token := range map[string]string{
		"empty":             "",
		"not signed":        "eyJhbGciOiJub25lIn0." + parts[1] + ".",
		"other algorithm":   "eyJhbGciOiJIUzI1NiIsImtpZCI6ImtleV8xIn0." + parts[1] + "." + parts[2],
		"other content":     parts[0] + "." + strings.Split(s.sign(t, map[string]any{}), ".")[1] + "." + parts[2],
		"another's key":     impostor.sign(t, claims),
		"unknown key":       stranger.sign(t, claims),
		"another kind":      plain.sign(t, claims),
		"signature cut off": good[:len(good)-4],
	} {
		c := newConsole(t, publishes(t, s))
		ring := &keyring{client: c.client, clock: c.clock}
		if said, err := ring.open(t.Context(), token); err == nil {
			t.Errorf("%s: accepted as %+v", name, said)
		}
	}
}

func TestKeysAreFetchedAgainAfterARotation(t *testing.T) {
	w, ref := approvedWork()
	first, second := newSigner(t, "key_1", tokenType), newSigner(t, "key_2", tokenType)
	c := newConsole(t, publishes(t, first), publishes(t, first, second))
	ring := &keyring{client: c.client, clock: c.clock}
	for range 3 {
		if _, err := ring.open(t.Context(), first.sign(t, claimsOf(w, ref))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ring.open(t.Context(), second.sign(t, claimsOf(w, ref))); err == nil || len(c.requests()) != 1 {
		t.Errorf("an unknown key is asked for at once: %v, %d requests", err, len(c.requests()))
	}
	if err := c.clock.Sleep(t.Context(), refetchKeys); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.open(t.Context(), second.sign(t, claimsOf(w, ref))); err != nil || len(c.requests()) != 2 {
		t.Errorf("%v after %d requests", err, len(c.requests()))
	}
}
