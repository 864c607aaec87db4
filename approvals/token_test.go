package approvals_test

import (
	"context"
	"encoding/json"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"

	"github.com/go-jose/go-jose/v4"
)

// Processes that start at once agree on the first signing key: a confirmation
// has one token, wherever it is asked for.
func TestProcessesThatStartAtOnceShareOneKey(t *testing.T) {
	dsn := storetest.New(t)
	const n = 12
	signers, errs := make([]*approvals.Signer, n), make([]error, n)
	dbs := make([]*store.DB, n)
	for i := range n {
		db, err := store.Open(background(), dsn, store.Options{MaxConns: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		dbs[i] = db
	}
	atOnce(n, func(i int) {
		signers[i], errs[i] = approvals.NewSigner(context.Background(), dbs[i], make([]byte, 32), "https://console.example", "executors")
	})
	s := stage.New(t, storetest.New(t))
	a := s.Confirmed(stage.SetPrice, stage.Product())
	tokens := map[string]bool{}
	for i, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
		token, err := signers[i].Token(background(), a)
		if err != nil {
			t.Fatal(err)
		}
		tokens[token] = true
	}
	keys, err := dbs[0].SigningKeys(background())
	if len(tokens) != 1 || len(keys) != 1 || err != nil {
		t.Errorf("%d tokens, %d keys, %v", len(tokens), len(keys), err)
	}
}

func TestTokensOutliveARotation(t *testing.T) {
	s := set(t)
	a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
	signer := s.Approvals.Signer()
	before, err := signer.Token(background(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := signer.Rotate(background()); err != nil {
		t.Fatal(err)
	}
	other := s.Open(s.DSN, store.Options{MaxConns: 1}) // knows both keys
	set, err := other.Approvals.Signer().JWKS(background())
	if err != nil || len(set.Keys) != 2 {
		t.Fatalf("%d keys, %v", len(set.Keys), err)
	}
	for _, k := range set.Keys {
		if !k.IsPublic() || !k.Valid() || k.KeyID == "" {
			t.Errorf("the key %s is not a public key with a name", k.KeyID)
		}
	}
	again, err := other.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, claim, stage.Bound(a))
	if err != nil || again.Token != before {
		t.Errorf("after the rotation the same confirmation has another token: %v", err)
	}
	parsed, err := jose.ParseSignedCompact(before, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	if h := parsed.Signatures[0].Header; h.ExtraHeaders[jose.HeaderType] != approvals.TokenType || len(set.Key(h.KeyID)) != 1 {
		t.Errorf("its header is %+v", h)
	} else if _, err := parsed.Verify(set.Key(h.KeyID)[0]); err != nil {
		t.Errorf("it does not verify: %v", err)
	}
}

// approvers are whom an action's token names, with the role of each.
func approvers(t *testing.T, s *stage.Stage, a action.Action) []string {
	t.Helper()
	token, err := s.Approvals.Signer().Token(background(), a)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Approvals []struct{ Person, Role string }
	}
	if err := json.Unmarshal(parsed.UnsafePayloadWithoutVerification(), &claims); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, p := range claims.Approvals {
		named = append(named, p.Person+" "+p.Role)
	}
	return named
}

func TestAnotherSecretOpensNoKeys(t *testing.T) {
	s := set(t)
	if _, err := approvals.NewSigner(background(), s.DB, make([]byte, 32), "https://console.example", "executors"); err == nil {
		t.Error("another secret opens the signing keys")
	}
	if _, err := approvals.NewSigner(background(), s.DB, make([]byte, 31), "https://console.example", "executors"); err == nil {
		t.Error("a short secret is taken")
	}
}
