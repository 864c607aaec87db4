package sandbox

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// What makes a callback false.
const (
	forgedWrong    = "wrong"    // signed with a secret that nobody agreed on
	forgedStale    = "stale"    // signed as it should be, an hour ago
	forgedUnsigned = "unsigned" // without a signature
)

// secretPrefix marks the text form of a signing secret, as Standard Webhooks
// writes it: whsec_ and base64 of 24 to 64 bytes.
const secretPrefix = "whsec_"

func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

func secretKey(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("sandbox signing secrets are whsec_ and base64 of 24 to 64 bytes")
	}
	return key, nil
}

// sign makes one signature of a message, as Standard Webhooks says: v1, and
// the HMAC-SHA256 of id, time and body.
func sign(key []byte, id string, at time.Time, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signatures are those of a callback, separated by spaces.
func (t Tokens) signatures(l letter, at time.Time) string {
	now, next := t.RefundsSecret, t.RefundsNextSecret
	if l.system == Service {
		now, next = t.ServiceSecret, t.ServiceNextSecret
	}
	secrets := []string{now}
	switch {
	case l.forged == forgedWrong:
		secrets = []string{newSecret()}
	case Signing(l.signing) == SignBoth:
		secrets = []string{next, now}
	case Signing(l.signing) == SignNext:
		secrets = []string{next}
	}
	var signatures []string
	for _, secret := range secrets {
		if key, err := secretKey(secret); err == nil { // checked when the sandbox was opened
			signatures = append(signatures, sign(key, l.messageID, at, l.body))
		}
	}
	return strings.Join(signatures, " ")
}
