package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/action"
)

// The kinds of administrative events about persons and clients.
const (
	PersonCreated   action.Kind = "person_created"
	GrantsChanged   action.Kind = "roles_changed"
	ProfileChanged  action.Kind = "profile_changed"
	PasswordChanged action.Kind = "password_changed"
	LinkCreated     action.Kind = "link_created"
	PersonDisabled  action.Kind = "person_disabled"
	PersonEnabled   action.Kind = "person_enabled"
	ClientCreated   action.Kind = "client_created"
	ClientChanged   action.Kind = "client_changed"
	ClientDisabled  action.Kind = "client_disabled"
	ClientEnabled   action.Kind = "client_enabled"
	KeyCreated      action.Kind = "key_created"
	KeyRotated      action.Kind = "key_rotated"
	KeyRevoked      action.Kind = "key_revoked"
	ToolRefused     action.Kind = "tool_refused" // a call around the catalogue; see NoteRefused
)

// Accounts keeps persons and clients. Saving writes row and event in one
// statement, guarded by Version.
type Accounts interface {
	// Person finds a person by id or username; NotFound when there is none.
	Person(ctx context.Context, ref string) (Person, error)
	// SavePerson writes a change. False means that the version moved, or for a
	// new person that the username is taken. A Refusal says that this would
	// leave no admin. action.ErrLost means nobody knows.
	SavePerson(ctx context.Context, c PersonChange) (bool, error)
	// Client finds a client with its keys by id or name; NotFound when there is none.
	Client(ctx context.Context, ref string) (Client, error)
	// SaveClient is as SavePerson, for clients.
	SaveClient(ctx context.Context, c ClientChange) (bool, error)
	// Events returns everything that happened to a subject, in order.
	Events(ctx context.Context, subject string) ([]action.Event, time.Time, error)
	// Now returns the database's clock.
	Now(ctx context.Context) (time.Time, error)
}

// PersonChange is a person as they shall be, and why. Version is one more than
// that of the person it was decided on; 1 means a new person.
type PersonChange struct {
	Person       Person
	Event        action.Event
	PasswordHash string // "" leaves the password alone
	Link         *Link  // a new one-time link
}

// Link is a one-time link to sign in with, as stored. It also ends when the
// person's epoch moves on.
type Link struct {
	ID        string // "lnk_…"
	Hash      []byte
	ExpiresAt time.Time
}

// ClientChange is a client as it shall be, and why. Version is one more than
// that of the client it was decided on; 1 means a new client.
type ClientChange struct {
	Client Client
	Event  action.Event
	NewKey *NewKey
	OldKey *Key // a key whose ExpiresAt and Revoked change
}

// NewKey is an API key as stored.
type NewKey struct {
	Key
	Hash []byte
}

// Store is what Service needs of a database.
type Store interface {
	Accounts
	Credentials
}

// Service administers persons and clients, and checks credentials.
type Service struct {
	store   Store
	hashing chan struct{} // bounds the memory that passwords take
}

// New makes a service.
func New(store Store) *Service {
	return &Service{store: store, hashing: make(chan struct{}, hashesAtOnce)}
}

// Command is what every administrative change needs: Op is the caller's name
// of it (a form's hidden field), By is who gives it. Giving a command with the
// same Op again changes nothing and answers the same.
//
// By is an enabled admin, or the system itself: the command line. Everything
// else is refused as Forbidden with the reason "role".
type Command struct {
	Op string
	By action.By
}

func (s *Service) admit(ctx context.Context, cmd Command, c *check) error {
	c.command(cmd)
	if cmd.By.Kind == action.BySystem {
		return c.err()
	}
	if cmd.By.Kind != action.ByPerson {
		return refuse("role", "Only people administer accounts.")
	}
	p, err := s.store.Person(ctx, cmd.By.ID)
	if err != nil {
		return err
	}
	if err := May(p, ToAdminister, Subject{}); err != nil {
		return err
	}
	return c.err()
}

// maxTries bounds how often a command is decided anew. Every lost race means
// that somebody else's command went through.
const maxTries = 100

// untilWritten repeats a command until it was written or refused. After a lost
// answer it goes on: the op shows what became of it.
func untilWritten(try func() (written bool, err error)) error {
	lost := false
	for range maxTries {
		written, err := try()
		switch {
		case errors.Is(err, action.ErrLost):
			lost = true
		case err != nil && lost:
			return outcomeUnknown(err)
		case err != nil || written:
			return err
		}
	}
	if lost {
		return outcomeUnknown(action.ErrLost)
	}
	return fmt.Errorf("lost %d races in a row", maxTries)
}

func outcomeUnknown(err error) error {
	return action.Refuse(action.OutcomeUnknown,
		"We cannot tell whether this was recorded. Send the form again: it takes effect once.").From(err)
}

// repeated finds the event that a command with this op left. The same op on
// another kind of command is refused.
func repeated(events []action.Event, op string, kind action.Kind) (action.Event, bool, error) {
	for _, e := range events {
		if e.Op != op {
			continue
		}
		if e.Kind != kind {
			return e, false, action.Refuse(action.IdempotencyKeyReused, "This form was sent before, for something else. Open the page again.")
		}
		return e, true, nil
	}
	return action.Event{}, false, nil
}

func newEvent(subject string, version int64, cmd Command, kind action.Kind, at time.Time, data any) (action.Event, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return action.Event{}, fmt.Errorf("encoding a %s event: %w", kind, err)
	}
	return action.Event{Subject: subject, Version: version, Op: cmd.Op, Kind: kind, By: cmd.By, At: at, Data: text}, nil
}
