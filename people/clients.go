package people

import (
	"context"
	"time"

	"countersign/action"
)

// NewClient is what a new client begins with.
type NewClient struct {
	Name  string
	Owner string // id or username of the person who answers for it, for life
	ClientGrants
}

// CreateClient makes a client without a key. InvalidArgument names every field
// that cannot be taken; the reason "client-taken" is among them.
func (s *Service) CreateClient(ctx context.Context, cmd Command, n NewClient) (Client, error) {
	var c check
	made := Client{ID: action.NewID("cli"), Name: c.name(n.Name), Version: 1}
	if action.ValidID("cli", made.Name) {
		c.fail("/name", "name", "this is spelled like an id: choose another")
	}
	c.clientGrants(n.ClientGrants)
	made.setGrants(n.ClientGrants)
	owner, err := s.store.Person(ctx, n.Owner)
	switch {
	case action.IsCode(err, action.NotFound) || err == nil && owner.Disabled != nil:
		c.fail("/owner", "owner", "name an enabled person who answers for this program")
	case err != nil:
		return Client{}, err
	}
	made.Owner = owner.ID
	if err := s.admit(ctx, cmd, &c); err != nil {
		return Client{}, err
	}
	err = untilWritten(func() (bool, error) { return s.insertClient(ctx, cmd, &made) })
	return made, err
}

func (s *Service) insertClient(ctx context.Context, cmd Command, made *Client) (bool, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return false, err
	}
	made.CreatedAt = now
	change := ClientChange{Client: *made}
	data := struct {
		Name  string `json:"name"`
		Owner string `json:"owner"`
		ClientGrants
	}{made.Name, made.Owner, made.Grants()}
	if change.Event, err = newEvent(made.Subject(), 1, cmd, ClientCreated, now, data); err != nil {
		return false, err
	}
	written, err := s.store.SaveClient(ctx, change)
	if written || err != nil {
		return written, err
	}
	there, err := s.store.Client(ctx, made.Name)
	if err != nil {
		return false, err
	}
	events, _, err := s.store.Events(ctx, there.Subject())
	if err != nil {
		return false, err
	}
	if _, again, err := repeated(events, cmd.Op, ClientCreated); again || err != nil {
		*made = there
		return again, err
	}
	var c check
	c.fail("/name", "client-taken", "another client has this name already")
	return false, c.err()
}

// alterClient decides a change on the latest state of a client and writes it.
// It returns the client as written, and the event that the command left.
func (s *Service) alterClient(ctx context.Context, cmd Command, ref string, kind action.Kind,
	decide func(c *ClientChange, now time.Time) (data any, err error)) (left Client, e action.Event, err error) {
	if err := s.admit(ctx, cmd, &check{}); err != nil {
		return Client{}, e, err
	}
	err = untilWritten(func() (bool, error) {
		if left, err = s.store.Client(ctx, ref); err != nil {
			return false, err
		}
		events, now, err := s.store.Events(ctx, left.Subject())
		if err != nil {
			return false, err
		}
		var again bool
		if e, again, err = repeated(events, cmd.Op, kind); again || err != nil {
			return again, err
		}
		change := ClientChange{Client: left}
		change.Client.Version++
		data, err := decide(&change, now)
		if err != nil {
			return false, err
		}
		if change.Event, err = newEvent(left.Subject(), change.Client.Version, cmd, kind, now, data); err != nil {
			return false, err
		}
		written, err := s.store.SaveClient(ctx, change)
		left, e = change.Client, change.Event
		return written, err
	})
	if err != nil {
		return Client{}, e, err
	}
	return left, e, nil
}

// changeClient is alterClient for those who do not need the event.
func (s *Service) changeClient(ctx context.Context, cmd Command, ref string, kind action.Kind,
	decide func(c *ClientChange, now time.Time) (data any, err error)) (Client, error) {
	left, _, err := s.alterClient(ctx, cmd, ref, kind, decide)
	return left, err
}

// SetClientGrants replaces a client's roles and limits.
func (s *Service) SetClientGrants(ctx context.Context, cmd Command, ref string, g ClientGrants) (Client, error) {
	var c check
	if c.clientGrants(g); c.refusal != nil {
		return Client{}, c.err()
	}
	return s.changeClient(ctx, cmd, ref, ClientChanged, func(c *ClientChange, _ time.Time) (any, error) {
		before := c.Client.Grants()
		c.Client.setGrants(g)
		return struct {
			ClientGrants
			Before ClientGrants `json:"before"`
		}{c.Client.Grants(), before}, nil
	})
}

// DisableClient refuses all keys of a client from the next request on.
func (s *Service) DisableClient(ctx context.Context, cmd Command, ref string) (Client, error) {
	return s.changeClient(ctx, cmd, ref, ClientDisabled, func(c *ClientChange, now time.Time) (any, error) {
		if c.Client.Disabled != nil {
			return nil, wrongState("disabled", "This client is disabled already.")
		}
		c.Client.Disabled = &now
		return struct{}{}, nil
	})
}

// EnableClient takes the keys of a disabled client again.
func (s *Service) EnableClient(ctx context.Context, cmd Command, ref string) (Client, error) {
	return s.changeClient(ctx, cmd, ref, ClientEnabled, func(c *ClientChange, _ time.Time) (any, error) {
		if c.Client.Disabled == nil {
			return nil, wrongState("enabled", "This client is enabled already.")
		}
		c.Client.Disabled = nil
		return struct{}{}, nil
	})
}
