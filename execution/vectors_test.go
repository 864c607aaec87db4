package execution

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"

	"github.com/go-jose/go-jose/v4"
)

var update = flag.Bool("update", false, "write docs/token-vectors.json again")

const vectorsFile = "../docs/token-vectors.json"

// vectors is what docs/token-vectors.json holds: tokens for whoever checks
// confirmations in another language.
type vectors struct {
	About   string             `json:"about"`
	Now     time.Time          `json:"now"`
	Keys    jose.JSONWebKeySet `json:"jwks"`
	Work    api.Work           `json:"work"`
	Payload string             `json:"payload"`
	Tokens  []vector           `json:"tokens"`
}

type vector struct {
	Name  string `json:"name"`
	Valid bool   `json:"valid"`
	Token string `json:"token"`
}

// TestTokenVectors checks every token of the file: the good ones are taken, and
// each bad one is refused.
func TestTokenVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	raw, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Tokens) < 20 {
		t.Fatalf("only %d tokens", len(v.Tokens))
	}
	ring := &keyring{clock: systemClock{}, keys: v.Keys, fetched: time.Now().Add(time.Hour)} // knows these keys and asks for no others
	for _, token := range v.Tokens {
		said, err := ring.open(t.Context(), token.Token)
		if err == nil {
			err = said.bindsTo(v.Work, *v.Work.ConfirmationRef, []byte(v.Payload), v.Now)
		}
		if (err == nil) != token.Valid {
			t.Errorf("%s: valid %v, %v", token.Name, token.Valid, err)
		}
	}
}

// fixedSigner has a key that is made from its name.
func fixedSigner(kid, kind string) signer {
	seed := []byte(strings.Repeat(kid, 32))[:ed25519.SeedSize]
	return signer{ed25519.NewKeyFromSeed(seed), kid, kind}
}

func writeVectors(t *testing.T) {
	t.Helper()
	work, ref := approvedWork()
	work.Payload = json.RawMessage(pricePayload)
	good, older, stranger := fixedSigner("key-2", tokenType), fixedSigner("key-1", tokenType), fixedSigner("stranger", tokenType)
	v := vectors{About: "Confirmation tokens (EdDSA) for the work below, judged at now. A checker takes the valid ones and refuses every other.",
		Now: issued.Add(30 * time.Second), Work: work, Payload: pricePayload}
	for _, s := range []signer{older, good} {
		v.Keys.Keys = append(v.Keys.Keys, jose.JSONWebKey{Key: s.key.Public(), KeyID: s.kid, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	add := func(name string, valid bool, token string) { v.Tokens = append(v.Tokens, vector{name, valid, token}) }
	claims := func(change map[string]any) map[string]any {
		c := claimsOf(work, ref)
		for k, value := range change {
			c[k] = value
		}
		return c
	}
	token := good.sign(t, claims(nil))
	add("as issued", true, token)
	add("as issued before the key was rotated", true, older.sign(t, claims(nil)))
	add("with a claim that a checker does not know", true, good.sign(t, claims(map[string]any{"added_later": true})))
	changes := map[string]any{"jti": "cnf_2", "action_id": "act_2", "tool": "catalog.get_product", "tool_version": 4, "actor": "tom",
		"target_type": "order", "target_id": "SKU-4412", "object_version": "9", "execution_key": "exk_2", "proposal_hash": "sha256:q",
		"payload_hash": action.PayloadHash([]byte(`{}`)), "exp": issued.Add(30 * time.Second).Unix(), "nbf": issued.Add(time.Minute).Unix()}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		add("another "+name, false, good.sign(t, claims(map[string]any{name: changes[name]})))
	}
	add("a target where none was approved", false, good.sign(t, claims(map[string]any{"target_id": nil})))
	add("signed by a key that is not published", false, stranger.sign(t, claims(nil)))
	add("signed by another key under this kid", false, signer{stranger.key, good.kid, tokenType}.sign(t, claims(nil)))
	add("another typ", false, signer{good.key, good.kid, "JWT"}.sign(t, claims(nil)))
	parts := strings.Split(token, ".")
	other := strings.Split(good.sign(t, claims(map[string]any{"target_id": "SKU-9"})), ".")
	add("the signature of another token", false, parts[0]+"."+parts[1]+"."+other[2])
	add("the claims of another token", false, parts[0]+"."+other[1]+"."+parts[2])
	add("no signature", false, parts[0]+"."+parts[1]+".")
	add("alg none", false, base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"key-2","typ":"`+tokenType+`"}`))+"."+parts[1]+".")
	add("alg HS256 with the public key as secret", false,
		base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"key-2","typ":"`+tokenType+`"}`))+"."+parts[1]+"."+parts[2])
	add("a part is missing", false, parts[0]+"."+parts[1])
	add("nothing", false, "")
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorsFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
