package people

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
)

// maxLinkLife bounds how long a sign-in link may lie about.
const maxLinkLife = 7 * 24 * time.Hour

// NewLink makes a one-time link for a person and returns its secret, which is
// not kept: 256 random bits. life is at most 7 days. A command that is repeated
// returns no secret.
func (s *Service) NewLink(ctx context.Context, cmd Command, ref string, life time.Duration) (secret string, err error) {
	var c check
	if life <= 0 || life > maxLinkLife {
		c.fail("/expires_in", "link-life", "use up to 7 days")
	}
	if err := s.admit(ctx, cmd, &c); err != nil {
		return "", err
	}
	fresh, id := newSecret(), action.NewID("lnk")
	_, left, err := s.alterPerson(ctx, cmd, ref, LinkCreated, func(c *PersonChange, now time.Time) (any, error) {
		if c.Person.Disabled != nil {
			return nil, wrongState("disabled", "This account is disabled. Enable it first.")
		}
		c.Link = &Link{ID: id, Hash: digest(fresh), ExpiresAt: now.Add(life)}
		return linkEvent{Link: id, ExpiresAt: c.Link.ExpiresAt}, nil
	})
	if err != nil {
		return "", err
	}
	var e linkEvent
	if err := json.Unmarshal(left.Data, &e); err != nil {
		return "", fmt.Errorf("reading a %s event: %w", LinkCreated, err)
	}
	if e.Link != id {
		return "", nil
	}
	return fresh, nil
}

type linkEvent struct {
	Link      string    `json:"link_id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// PeekLink returns whom a one-time link would sign in, and until when, without
// using it up. Unauthorized, "link", as UseLink.
func (s *Service) PeekLink(ctx context.Context, secret string) (Person, time.Time, error) {
	p, until, found, err := s.store.PeekLink(ctx, digest(secret))
	if err != nil {
		return Person{}, time.Time{}, known(err)
	}
	if !found {
		return Person{}, time.Time{}, linkOver()
	}
	return p, until, nil
}

// UseLink takes a one-time link and returns its person. It works once: the
// second time, after its time, for a disabled person or after their sessions
// were ended it is refused as Unauthorized, "link". Call it from a POST only:
// mail scanners open links.
func (s *Service) UseLink(ctx context.Context, secret string) (Person, error) {
	p, taken, err := s.store.TakeLink(ctx, digest(secret))
	if err != nil {
		return Person{}, known(err)
	}
	if !taken {
		return Person{}, linkOver()
	}
	return p, nil
}

func linkOver() error {
	return action.Refuse(action.Unauthorized, "This link was used before or is too old. Ask for a new one.").Because("link")
}
