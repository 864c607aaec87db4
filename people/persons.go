package people

import (
	"context"
	"time"

	"countersign/action"
)

// NewPerson is what a new account begins with.
type NewPerson struct {
	Username string
	Name     string
	Grants
	Lang     string // "" for English
	Zone     string // "" for UTC
	Password string // "" for none: a one-time link is the first way in
}

// profile is the part of a person that events show beside the grants.
type profile struct {
	Username string `json:"username,omitempty"`
	Name     string `json:"name"`
	Lang     string `json:"lang"`
	Zone     string `json:"zone"`
}

type created struct {
	profile
	Grants
	Password bool `json:"password"`
}

// CreatePerson makes an account. InvalidArgument names every field that cannot
// be taken; the reason "username-taken" is among them.
func (s *Service) CreatePerson(ctx context.Context, cmd Command, n NewPerson) (Person, error) {
	var c check
	p := Person{ID: action.NewID("per"), Username: c.username(n.Username), Name: c.name(n.Name), Version: 1, HasPassword: n.Password != ""}
	p.Lang, p.Zone = c.place(n.Lang, n.Zone)
	c.grants(n.Grants)
	p.setGrants(n.Grants)
	if n.Password != "" {
		c.password("/password", n.Password, p.Username)
	}
	if err := s.admit(ctx, cmd, &c); err != nil {
		return Person{}, err
	}
	change := PersonChange{Person: p}
	if err := s.keepPassword(ctx, &change, n.Password); err != nil {
		return Person{}, err
	}
	err := untilWritten(func() (bool, error) { return s.insertPerson(ctx, cmd, &change) })
	return change.Person, err
}

func (s *Service) insertPerson(ctx context.Context, cmd Command, change *PersonChange) (bool, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return false, err
	}
	p := &change.Person
	p.CreatedAt = now
	data := created{profile{p.Username, p.Name, p.Lang, p.Zone}, p.Grants(), p.HasPassword}
	if change.Event, err = newEvent(p.Subject(), 1, cmd, PersonCreated, now, data); err != nil {
		return false, err
	}
	written, err := s.store.SavePerson(ctx, *change)
	if written || err != nil {
		return written, err
	}
	there, err := s.store.Person(ctx, p.Username)
	if err != nil {
		return false, err
	}
	events, _, err := s.store.Events(ctx, there.Subject())
	if err != nil {
		return false, err
	}
	if _, again, err := repeated(events, cmd.Op, PersonCreated); again || err != nil {
		*p = there
		return again, err
	}
	var c check
	c.fail("/username", "username-taken", "somebody has this username already")
	return false, c.err()
}

// alterPerson decides a change on the latest state of a person and writes it.
// decide alters the change's person and returns the event's data. It returns
// the person as they are now, and the event that the command left.
func (s *Service) alterPerson(ctx context.Context, cmd Command, ref string, kind action.Kind,
	decide func(c *PersonChange, now time.Time) (data any, err error)) (p Person, e action.Event, err error) {
	err = untilWritten(func() (bool, error) {
		if p, err = s.store.Person(ctx, ref); err != nil {
			return false, err
		}
		events, now, err := s.store.Events(ctx, p.Subject())
		if err != nil {
			return false, err
		}
		var again bool
		if e, again, err = repeated(events, cmd.Op, kind); again || err != nil {
			return again, err
		}
		change := PersonChange{Person: p}
		change.Person.Version++
		data, err := decide(&change, now)
		if err != nil {
			return false, err
		}
		if change.Event, err = newEvent(p.Subject(), change.Person.Version, cmd, kind, now, data); err != nil {
			return false, err
		}
		written, err := s.store.SavePerson(ctx, change)
		p, e = change.Person, change.Event
		return written, err
	})
	if err != nil {
		return Person{}, e, err
	}
	return p, e, nil
}

// changePerson is alterPerson for those who do not need the event.
func (s *Service) changePerson(ctx context.Context, cmd Command, ref string, kind action.Kind,
	decide func(c *PersonChange, now time.Time) (data any, err error)) (Person, error) {
	p, _, err := s.alterPerson(ctx, cmd, ref, kind, decide)
	return p, err
}

// SetGrants replaces a person's roles, limits and actors. Nobody widens their
// own authority: on oneself it is refused with the reason "self". The last
// enabled admin stays one: refused as WrongState, "last-admin".
func (s *Service) SetGrants(ctx context.Context, cmd Command, ref string, g Grants) (Person, error) {
	var c check
	c.grants(g)
	if err := s.admit(ctx, cmd, &c); err != nil {
		return Person{}, err
	}
	return s.changePerson(ctx, cmd, ref, GrantsChanged, func(c *PersonChange, _ time.Time) (any, error) {
		if c.Person.ID == cmd.By.ID {
			return nil, refuse("self", "Another admin has to change what you may do.")
		}
		before := c.Person.Grants()
		c.Person.setGrants(g)
		return struct {
			Grants
			Before Grants `json:"before"`
		}{c.Person.Grants(), before}, nil
	})
}

// Profile is how a person is shown and what they see.
type Profile struct {
	Name string
	Lang string // "" for English
	Zone string // "" for UTC
}

// SetProfile changes a name, language and time zone. People change their own
// language and zone; a name is changed by an admin.
func (s *Service) SetProfile(ctx context.Context, cmd Command, ref string, n Profile) (Person, error) {
	var c check
	next := profile{Name: c.name(n.Name)}
	next.Lang, next.Zone = c.place(n.Lang, n.Zone)
	p, err := s.store.Person(ctx, ref)
	if err != nil {
		return Person{}, err
	}
	if own := cmd.By.Kind == action.ByPerson && cmd.By.ID == p.ID && p.Name == next.Name && p.Disabled == nil; own {
		c.command(cmd)
		err = c.err()
	} else {
		err = s.admit(ctx, cmd, &c)
	}
	if err != nil {
		return Person{}, err
	}
	return s.changePerson(ctx, cmd, p.ID, ProfileChanged, func(c *PersonChange, _ time.Time) (any, error) {
		c.Person.Name, c.Person.Lang, c.Person.Zone = next.Name, next.Lang, next.Zone
		return next, nil
	})
}

// DisablePerson ends a person's sessions and links and lets them in no more.
// What they approved counts no longer where it is still being decided. Their
// clients go on: programs do not stop because somebody leaves. The last enabled
// admin cannot be disabled: WrongState, "last-admin".
func (s *Service) DisablePerson(ctx context.Context, cmd Command, ref string) (Person, error) {
	if err := s.admit(ctx, cmd, &check{}); err != nil {
		return Person{}, err
	}
	return s.changePerson(ctx, cmd, ref, PersonDisabled, func(c *PersonChange, now time.Time) (any, error) {
		if c.Person.Disabled != nil {
			return nil, wrongState("disabled", "This account is disabled already.")
		}
		c.Person.Disabled = &now
		c.Person.endSessions()
		return struct{}{}, nil
	})
}

// EnablePerson lets a disabled person in again.
func (s *Service) EnablePerson(ctx context.Context, cmd Command, ref string) (Person, error) {
	if err := s.admit(ctx, cmd, &check{}); err != nil {
		return Person{}, err
	}
	return s.changePerson(ctx, cmd, ref, PersonEnabled, func(c *PersonChange, _ time.Time) (any, error) {
		if c.Person.Disabled == nil {
			return nil, wrongState("enabled", "This account is enabled already.")
		}
		c.Person.Disabled = nil
		return struct{}{}, nil
	})
}

// SetPassword replaces a person's password and ends their sessions and links.
func (s *Service) SetPassword(ctx context.Context, cmd Command, ref, password string) (Person, error) {
	if err := s.admit(ctx, cmd, &check{}); err != nil {
		return Person{}, err
	}
	return s.replacePassword(ctx, cmd, ref, password)
}

func (s *Service) replacePassword(ctx context.Context, cmd Command, ref, password string) (Person, error) {
	p, err := s.store.Person(ctx, ref)
	if err != nil {
		return Person{}, err
	}
	var c check
	c.command(cmd)
	c.password("/password", password, p.Username)
	if err := c.err(); err != nil {
		return Person{}, err
	}
	var hashed PersonChange
	if err := s.keepPassword(ctx, &hashed, password); err != nil {
		return Person{}, err
	}
	return s.changePerson(ctx, cmd, p.ID, PasswordChanged, func(c *PersonChange, _ time.Time) (any, error) {
		c.PasswordHash = hashed.PasswordHash
		c.Person.HasPassword = true
		c.Person.endSessions()
		return struct{}{}, nil
	})
}

func wrongState(reason, detail string) error {
	return action.Refuse(action.WrongState, detail).Because(reason)
}
