package action

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

const (
	// crockford is Douglas Crockford's base 32 alphabet: no I, L, O or U.
	crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

	idChars   = 26 // 48 bits of milliseconds and 80 random bits
	refChars  = 32 // 160 random bits
	refPrefix = "cnf"
)

// NewID returns prefix, "_" and 26 characters in the layout of a ULID: ids
// made in a later millisecond sort later. It can be guessed in part, so it
// grants nothing.
func NewID(prefix string) string {
	var b [18]byte // two bytes too many: the last millisecond bytes come from a uint64
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli()))
	rand.Read(b[8:])
	return spelled(prefix, b)
}

// IDAt returns the first id that NewID can make at a moment: ids made later sort
// after it, by the clock of the process that makes them.
func IDAt(prefix string, at time.Time) string {
	var b [18]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(0, at.UnixMilli())))
	return spelled(prefix, b)
}

func spelled(prefix string, b [18]byte) string {
	high, low := binary.BigEndian.Uint64(b[2:10]), binary.BigEndian.Uint64(b[10:])
	var text [idChars]byte
	for i := idChars - 1; i >= 0; i-- {
		text[i] = crockford[low&31]
		low = low>>5 | high<<59
		high >>= 5
	}
	return prefix + "_" + string(text[:])
}

// NewRef returns a confirmation reference: "cnf_" and 32 characters, 160 random bits.
func NewRef() string { return refPrefix + "_" + NewSecret(refChars*5/8) }

// NewSecret returns n random bytes as base 32 text.
func NewSecret(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base32.NewEncoding(crockford).WithPadding(base32.NoPadding).EncodeToString(b)
}

// ValidID reports whether s is spelled as NewID(prefix), or NewRef when the
// prefix is "cnf", spells it. It says nothing about whether the thing exists.
func ValidID(prefix, s string) bool {
	text, ok := strings.CutPrefix(s, prefix+"_")
	if !ok || strings.Trim(text, crockford) != "" {
		return false
	}
	if prefix == refPrefix {
		return len(text) == refChars
	}
	return len(text) == idChars && text[0] <= '7'
}
