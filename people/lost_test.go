package people_test

import (
	"context"
	"testing"

	"countersign/action"
	"countersign/people"
	"countersign/store"
)

// forgetful is a database whose first answer to each write is lost after it
// committed.
type forgetful struct {
	*store.DB
	persons, clients bool // whether that has happened
}

func (f *forgetful) SavePerson(ctx context.Context, c people.PersonChange) (bool, error) {
	written, err := f.DB.SavePerson(ctx, c)
	if !f.persons && err == nil {
		f.persons = true
		return false, action.ErrLost
	}
	return written, err
}

func (f *forgetful) SaveClient(ctx context.Context, c people.ClientChange) (bool, error) {
	written, err := f.DB.SaveClient(ctx, c)
	if !f.clients && err == nil {
		f.clients = true
		return false, action.ErrLost
	}
	return written, err
}

// TestLostAnswers: a command whose answer was lost has one effect, and answers
// as if nothing had happened.
func TestLostAnswers(t *testing.T) {
	b := newBench(t)
	db := &forgetful{DB: b.db}
	b.Service = people.New(db)
	admin := b.person("root", "admin")
	if n := len(b.events(admin.Subject())); n != 1 || !db.persons {
		t.Errorf("%d events of the person, lost %v; want 1, true", n, db.persons)
	}
	db.persons = false
	p, err := b.SetGrants(b.ctx, b.cmd(), admin.ID, people.Grants{Roles: []string{"admin", "support"}})
	b.ok(err)
	if n := len(b.events(admin.Subject())); n != 2 || !p.Has("support") {
		t.Errorf("%d events, person %+v; want 2 and the new role", n, p)
	}

	c := b.client(admin, "proposer")
	db.clients = false
	key, text := b.key(c)
	got, gotKey, err := b.Authenticate(b.ctx, text)
	b.ok(err)
	if got.ID != c.ID || gotKey.ID != key.ID || len(b.events(c.Subject())) != 2 {
		t.Errorf("key %+v of %+v, %d events; want 2", gotKey, got, len(b.events(c.Subject())))
	}
}
