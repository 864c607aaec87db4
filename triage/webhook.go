package triage

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"countersign/action"
)

// Webhook is a signed message in the form of Standard Webhooks, as it came.
type Webhook struct {
	ID        string // header webhook-id
	Timestamp string // header webhook-timestamp: whole seconds since 1970
	Signature string // header webhook-signature: "v1,…" and more, separated by spaces
	Body      []byte
}

// webhookTolerance is how far the sender's clock may be from the database's,
// and so how long a message can be sent again by somebody who overheard it.
const webhookTolerance = 5 * time.Minute

// Bounds of a webhook.
const (
	maxWebhookID    = 128 // bytes
	maxSignatures   = 20  // looked at
	minSecretBytes  = 24
	maxSecretBytes  = 64
	newSecretBytes  = 32
	webhookSecret   = "whsec_"
	signatureScheme = "v1"
)

// signed reports whether one of the keys signed the message, lately.
func (w Webhook) signed(keys [][]byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(w.Timestamp, 10, 64)
	if err != nil || !plainID(w.ID) {
		return false
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > webhookTolerance || off < -webhookTolerance {
		return false
	}
	good := false
	for _, sent := range w.signatures() {
		for _, key := range keys {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(w.ID + "." + w.Timestamp + "."))
			mac.Write(w.Body)
			good = hmac.Equal(sent, mac.Sum(nil)) || good
		}
	}
	return good
}

// signatures are those of the scheme that we know.
func (w Webhook) signatures() [][]byte {
	var all [][]byte
	for _, one := range strings.Fields(w.Signature) {
		scheme, text, _ := strings.Cut(one, ",")
		mac, err := base64.StdEncoding.DecodeString(text)
		if scheme == signatureScheme && err == nil && len(all) < maxSignatures {
			all = append(all, mac)
		}
	}
	return all
}

// plainID reports whether a message id can be one: a full stop would make what
// is signed ambiguous.
func plainID(id string) bool {
	return id != "" && len(id) <= maxWebhookID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '.' })
}

// newWebhookSecret makes a signing secret in its text form.
func newWebhookSecret() string {
	key := make([]byte, newSecretBytes)
	rand.Read(key) // never fails: crypto/rand ends the program instead
	return webhookSecret + base64.StdEncoding.EncodeToString(key)
}

// webhookKey reads the text form of a signing secret: whsec_ and base64.
func webhookKey(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, webhookSecret)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, action.Refuse(action.InvalidArgument, "A signing secret is whsec_ and base64 of 24 to 64 bytes.")
	}
	return key, nil
}
