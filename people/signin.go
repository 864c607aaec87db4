package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"countersign/action"
)

// Credentials keeps what people and programs prove themselves with.
type Credentials interface {
	// Credential finds a person and the hash of their password, "" for none;
	// NotFound when nobody has the username.
	Credential(ctx context.Context, username string) (Person, string, error)
	// CountTry counts one more try under each key and returns how it stands
	// there now, in the order of the keys. A count ends a window after its first try.
	CountTry(ctx context.Context, keys [][]byte, window time.Duration) ([]Tries, error)
	// UncountTry takes the try back after it went well: the first key begins
	// anew, the others get one less.
	UncountTry(ctx context.Context, keys [][]byte) error
	// PeekLink finds the person of a one-time link, and until when it works. False as TakeLink.
	PeekLink(ctx context.Context, hash []byte) (Person, time.Time, bool, error)
	// TakeLink uses a one-time link up. False when it is used, over or unknown.
	TakeLink(ctx context.Context, hash []byte) (Person, bool, error)
	// Key finds a key by its prefix; NotFound when there is none.
	Key(ctx context.Context, prefix string) (StoredKey, error)
	// TouchKey writes down that a key was used now, if the last time is a
	// minute ago or longer.
	TouchKey(ctx context.Context, id string) error
}

// Tries is how often something was tried, and when the count begins anew.
type Tries struct {
	Count int
	Wait  time.Duration
}

// StoredKey is a key, whose it is, and the time of the database.
type StoredKey struct {
	Key
	Client Client // without Keys
	Hash   []byte
	Now    time.Time
}

// How often a password may be tried within tryWindow: for one username from one
// address, and from one address at all, where whole offices may sit.
const (
	tryWindow     = 15 * time.Minute
	triesPerName  = 10
	triesPerPlace = 100
)

// SignIn checks a username and password. address is the caller's, with or
// without a port. Wrong is refused as Unauthorized, "sign-in", whatever was
// wrong, after the same work. Too many tries are refused as RateLimited with
// the seconds to wait in "retry_after".
func (s *Service) SignIn(ctx context.Context, username, password, address string) (Person, error) {
	username = strings.ToLower(strings.TrimSpace(username))
	return s.prove(ctx, username, password, address,
		action.Refuse(action.Unauthorized, "The username or the password is wrong.").Because("sign-in"))
}

// Prove checks the password of somebody who is signed in, before a step-up.
// Wrong is refused as Forbidden, "password"; too many tries as in SignIn.
func (s *Service) Prove(ctx context.Context, p Person, password, address string) error {
	_, err := s.prove(ctx, p.Username, password, address, refuse("password", "The password is wrong."))
	return err
}

// ChangePassword replaces one's own password after proving the old one, and
// ends all one's sessions, this one too: sign in anew with the answer.
func (s *Service) ChangePassword(ctx context.Context, cmd Command, p Person, old, password, address string) (Person, error) {
	if cmd.By.Kind != action.ByPerson || cmd.By.ID != p.ID {
		return Person{}, refuse("self", "This changes your own password only.")
	}
	events, _, err := s.store.Events(ctx, p.Subject())
	if err != nil {
		return Person{}, err
	}
	// Sent again, the old password is the new one already.
	if _, again, err := repeated(events, cmd.Op, PasswordChanged); err != nil {
		return Person{}, err
	} else if again {
		old = password
	}
	if err := s.Prove(ctx, p, old, address); err != nil {
		return Person{}, err
	}
	return s.replacePassword(ctx, cmd, p.ID, password)
}

func (s *Service) prove(ctx context.Context, username, password, address string, wrong *action.Refusal) (Person, error) {
	place := network(address)
	keys := [][]byte{tryKey("name", username, place), tryKey("place", place)}
	tries, err := s.store.CountTry(ctx, keys, tryWindow)
	if err != nil {
		return Person{}, known(err)
	}
	for i, most := range []int{triesPerName, triesPerPlace} {
		if tries[i].Count > most {
			return Person{}, tooMany(tries[i].Wait)
		}
	}
	p, hash, err := s.store.Credential(ctx, username)
	if err != nil && !action.IsCode(err, action.NotFound) {
		return Person{}, err
	}
	ok, err := s.matchesHash(ctx, password, hash)
	if err != nil {
		return Person{}, err
	}
	if !ok || p.Disabled != nil {
		return Person{}, wrong
	}
	return p, known(s.store.UncountTry(ctx, keys))
}

func tooMany(wait time.Duration) error {
	seconds := max(1, int((wait+time.Second-1)/time.Second))
	return action.Refuse(action.RateLimited, "Too many tries. Wait "+strconv.Itoa(seconds)+" seconds.").
		Because("sign-in-tries").With("retry_after", strconv.Itoa(seconds))
}

// tryKey hashes what was typed: people type passwords into the wrong field.
func tryKey(parts ...string) []byte {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return sum[:]
}

// network is the part of an address that one party holds: all of an IPv4
// address, the first 64 bits of an IPv6 address.
func network(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}

// Authenticate returns the client that an API key belongs to. It is refused as
// Unauthorized with the reason key (unknown), key-revoked, key-expired or
// client-disabled; the last three only to who has the whole key.
func (s *Service) Authenticate(ctx context.Context, text string) (Client, Key, error) {
	prefix, ok := keyPrefix(text)
	if !ok {
		return Client{}, Key{}, unauthorized("key", "This is no API key. Send Authorization: Bearer ck_…")
	}
	stored, err := s.store.Key(ctx, prefix)
	if err != nil && !action.IsCode(err, action.NotFound) {
		return Client{}, Key{}, err
	}
	if subtle.ConstantTimeCompare(digest(text), stored.Hash) != 1 {
		return Client{}, Key{}, unauthorized("key", "This API key is not known here.")
	}
	switch k := stored.Key; {
	case k.Revoked != nil:
		return Client{}, Key{}, unauthorized("key-revoked", "This API key was revoked.")
	case !k.Live(stored.Now):
		return Client{}, Key{}, unauthorized("key-expired", "This API key has expired.")
	case stored.Client.Disabled != nil:
		return Client{}, Key{}, unauthorized("client-disabled", "This API client is disabled.")
	case k.LastSeen == nil || stored.Now.Sub(*k.LastSeen) >= time.Minute:
		if err := s.store.TouchKey(ctx, k.ID); err != nil {
			return Client{}, Key{}, known(err)
		}
	}
	return stored.Client, stored.Key, nil
}

func unauthorized(reason, detail string) error {
	return action.Refuse(action.Unauthorized, detail).Because(reason)
}

// known makes a lost answer something that a user can act on.
func known(err error) error {
	if errors.Is(err, action.ErrLost) {
		return outcomeUnknown(err)
	}
	return err
}

// newSecret returns 256 random bits as text for URLs and cookies.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}
