package people

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/action"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/unicode/norm"
)

const (
	minPassword = 12  // characters
	maxPassword = 200 // bytes
)

// password checks a new password. The text never gets into the refusal.
func (c *check) password(pointer, password, username string) {
	switch {
	case !utf8.ValidString(password) || len(password) > maxPassword:
		c.fail(pointer, "password-long", fmt.Sprintf("use at most %d bytes", maxPassword))
	case utf8.RuneCountInString(password) < minPassword:
		c.fail(pointer, "password-short", fmt.Sprintf("use at least %d characters", minPassword))
	case username != "" && strings.EqualFold(strings.TrimSpace(password), username):
		c.fail(pointer, "password-username", "choose something other than the username")
	case len(strings.Trim(password, password[:1])) == 0:
		c.fail(pointer, "password-weak", "use more than one character")
	}
}

const (
	hashMemory   = 46 * 1024 // KiB of one hash
	hashesAtOnce = 8
	// nobodysHash has the cost of any other and no password: what is compared
	// when there is nothing to compare with, so that time tells nothing.
	nobodysHash = "$argon2id$v=19$m=47104,t=1,p=1$bm9ib2R5cy1zYWx0LTAwMQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

func hashCost() *argon2id.Params {
	return &argon2id.Params{Memory: hashMemory, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
}

// keepPassword puts the hash of a password, if there is one, into a change.
func (s *Service) keepPassword(ctx context.Context, c *PersonChange, password string) error {
	if password == "" {
		return nil
	}
	done, err := s.hashSlot(ctx)
	if err != nil {
		return err
	}
	defer done()
	if c.PasswordHash, err = argon2id.CreateHash(norm.NFC.String(password), hashCost()); err != nil {
		return fmt.Errorf("hashing a password: %w", err)
	}
	return nil
}

// matchesHash compares a password with a stored hash, or with nobody's.
func (s *Service) matchesHash(ctx context.Context, password, hash string) (bool, error) {
	if hash == "" {
		hash = nobodysHash
	}
	if len(password) > maxPassword {
		password = "" // no password is empty
	}
	done, err := s.hashSlot(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	ok, err := argon2id.ComparePasswordAndHash(norm.NFC.String(password), hash)
	if err != nil {
		return false, fmt.Errorf("comparing a password: %w", err)
	}
	return ok && password != "", nil
}

// hashSlot waits until one more hash may be made.
func (s *Service) hashSlot(ctx context.Context) (done func(), err error) {
	select {
	case s.hashing <- struct{}{}:
		return func() { <-s.hashing }, nil
	case <-ctx.Done():
		return nil, action.Refuse(action.OutcomeUnknown, "Too many people are signing in right now. Try again.").Because("busy").From(ctx.Err())
	}
}
