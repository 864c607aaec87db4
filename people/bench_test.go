package people_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/store"
	"countersign/store/storetest"
)

const goodPassword = "correct horse battery"

// bench is a service on a database of its own.
type bench struct {
	*people.Service
	t     *testing.T
	ctx   context.Context
	db    *store.DB
	dsn   string
	count *atomic.Int64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return open(t, storetest.New(t))
}

func open(t *testing.T, dsn string) *bench {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, store.Options{MaxConns: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &bench{Service: people.New(db), t: t, ctx: t.Context(), db: db, dsn: dsn, count: &atomic.Int64{}}
}

// later is the same database, d from now.
func (b *bench) later(d time.Duration) *bench {
	b.t.Helper()
	return open(b.t, storetest.Skewed(b.dsn, d))
}

// cmd is a new command, given at the command line.
func (b *bench) cmd() people.Command {
	return people.Command{Op: "op-" + strconv.FormatInt(b.count.Add(1), 10) + action.NewSecret(5),
		By: action.By{Kind: action.BySystem, Name: "command line"}}
}

// by is a new command, given by a person.
func (b *bench) by(p people.Person) people.Command {
	c := b.cmd()
	c.By = p.As(people.RoleAdmin, people.ByPassword)
	return c
}

func (b *bench) person(username string, roles ...string) people.Person {
	b.t.Helper()
	p, err := b.CreatePerson(b.ctx, b.cmd(), people.NewPerson{Username: username, Name: "Name of " + username,
		Grants: people.Grants{Roles: roles}, Password: goodPassword})
	if err != nil {
		b.t.Fatalf("making %s: %v", username, err)
	}
	return p
}

func (b *bench) client(owner people.Person, roles ...string) people.Client {
	b.t.Helper()
	c, err := b.CreateClient(b.ctx, b.cmd(), people.NewClient{Name: "client " + action.NewSecret(5), Owner: owner.ID,
		ClientGrants: people.ClientGrants{Roles: roles}})
	if err != nil {
		b.t.Fatalf("making a client: %v", err)
	}
	return c
}

func (b *bench) key(c people.Client) (people.Key, string) {
	b.t.Helper()
	key, text, err := b.CreateKey(b.ctx, b.cmd(), c.ID, 0)
	if err != nil {
		b.t.Fatalf("making a key: %v", err)
	}
	return key, text
}

// events returns the kinds of a subject's events.
func (b *bench) events(subject string) []action.Event {
	b.t.Helper()
	events, _, err := b.db.Events(b.ctx, subject)
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

func (b *bench) refused(err error, code action.Code, reason string) {
	b.t.Helper()
	var r *action.Refusal
	if !errors.As(err, &r) || r.Code != code || r.Reason != reason {
		b.t.Errorf("got %v, want a refusal %s %q", err, code, reason)
	}
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}
