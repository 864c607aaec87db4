package action

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PayloadHash returns "sha256:" and the hex SHA-256 of canonical bytes, as
// Canonical returns them.
func PayloadHash(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ContentHash returns "sha256:" and the hex SHA-256 of bytes as they are kept,
// or "" when there are none.
func ContentHash(content []byte) string {
	if len(content) == 0 {
		return ""
	}
	return PayloadHash(content)
}

// Binding is everything a decision binds. Any change to it makes another
// proposal. Numbers stay below 2^53, where RFC 8785 keeps them.
type Binding struct {
	ActionID      string
	Revision      int
	Tool          string
	ToolVersion   int
	Actor         string  // the actor's id
	TargetType    *string // nil, like TargetID, without a target
	TargetID      *string
	ObjectVersion *string
	PayloadHash   string // as PayloadHash returns it
	ExecutionKey  string
	ExpiresAt     *time.Time // cut to whole seconds; nil in a draft
}

// Hash returns the proposal hash: "sha256:" and the hex SHA-256 of Canonical.
func (b Binding) Hash() string { return PayloadHash(b.Canonical()) }

// Canonical returns the RFC 8785 text that the proposal hash is made of. Its
// members are few and known, so it is written in canonical order at once;
// unlike an encoder this replaces nothing, so no two bindings share a text.
func (b Binding) Canonical() []byte {
	var expires *string
	if b.ExpiresAt != nil {
		text := b.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z")
		expires = &text
	}
	out := appendText([]byte(`{"action_id":`), b.ActionID)
	out = appendText(append(out, `,"actor":`...), b.Actor)
	out = appendText(append(out, `,"execution_key":`...), b.ExecutionKey)
	out = appendTextOrNull(append(out, `,"expires_at":`...), expires)
	out = appendTextOrNull(append(out, `,"object_version":`...), b.ObjectVersion)
	out = appendText(append(out, `,"payload_hash":`...), b.PayloadHash)
	out = strconv.AppendInt(append(out, `,"revision":`...), int64(b.Revision), 10)
	out = appendTextOrNull(append(out, `,"target_id":`...), b.TargetID)
	out = appendTextOrNull(append(out, `,"target_type":`...), b.TargetType)
	out = appendText(append(out, `,"tool":`...), b.Tool)
	out = strconv.AppendInt(append(out, `,"tool_version":`...), int64(b.ToolVersion), 10)
	return append(out, `,"v":1}`...)
}

func appendTextOrNull(out []byte, text *string) []byte {
	if text == nil {
		return append(out, "null"...)
	}
	return appendText(out, *text)
}

// appendText appends text as RFC 8785 §3.2.2.2 writes a string.
func appendText(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		c := text[i]
		if short := strings.IndexByte("\"\\\b\f\n\r\t", c); short >= 0 {
			out = append(out, '\\', `"\bfnrt`[short])
		} else if c < ' ' {
			out = fmt.Appendf(out, `\u%04x`, c)
		} else {
			out = append(out, c)
		}
	}
	return append(out, '"')
}
