package people_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/action"
	"countersign/people"

	"github.com/lib/pq"
)

func TestCreatePerson(t *testing.T) {
	b := newBench(t)
	cmd := b.cmd()
	n := people.NewPerson{Username: " Mia ", Name: "Mia Chen",
		Grants: people.Grants{Roles: []string{"support", "finance", "support"}, Tools: []string{"b", "a"}, Actors: []string{"u-1"}},
		Lang:   "zh", Zone: "Asia/Shanghai", Password: goodPassword}
	made, err := b.CreatePerson(b.ctx, cmd, n)
	b.ok(err)
	read, err := b.db.Person(b.ctx, "mia")
	b.ok(err)
	if read.ID != made.ID || read.Name != "Mia Chen" || !slices.Equal(read.Roles, []string{"finance", "support"}) ||
		!slices.Equal(read.Tools, []string{"a", "b"}) || read.Zone != "Asia/Shanghai" || !read.HasPassword || read.Version != 1 {
		t.Errorf("read %+v", read)
	}
	events := b.events(made.Subject())
	if len(events) != 1 || events[0].Kind != people.PersonCreated || events[0].By != cmd.By || !events[0].At.Equal(read.CreatedAt) {
		t.Errorf("events %+v", events)
	}

	again, err := b.CreatePerson(b.ctx, cmd, n)
	b.ok(err)
	if again.ID != made.ID {
		t.Errorf("repeated: made %s beside %s", again.ID, made.ID)
	}
	_, err = b.CreatePerson(b.ctx, b.cmd(), n)
	b.refused(err, action.InvalidArgument, "username-taken")
	if n := len(b.events(made.Subject())); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestCreatePersonRefusals(t *testing.T) {
	b := newBench(t)
	good := people.NewPerson{Username: "mia", Name: "Mia", Grants: people.Grants{Roles: []string{"support"}}, Password: goodPassword}
	tests := []struct {
		name    string
		change  func(*people.NewPerson)
		pointer string
		reason  string
	}{
		{"username of other characters", func(n *people.NewPerson) { n.Username = "mia chen" }, "/username", "username"},
		{"username like an id", func(n *people.NewPerson) { n.Username = "per_01ARZ3NDEKTSV4RRFFQ69G5FAV/" }, "/username", "username"},
		{"no name", func(n *people.NewPerson) { n.Name = " " }, "/name", "name"},
		{"invisible name", func(n *people.NewPerson) { n.Name = "Mia\u200b" }, "/name", "name"},
		{"reversed name", func(n *people.NewPerson) { n.Name = "Mia\u202e" }, "/name", "name"},
		{"blank name", func(n *people.NewPerson) { n.Name = "\u3164" }, "/name", "name"},
		{"role of other characters", func(n *people.NewPerson) { n.Roles = []string{"Support"} }, "/roles", "role-name"},
		{"auditor who decides", func(n *people.NewPerson) { n.Roles = []string{"auditor", "support"} }, "/roles", "auditor-decides-nothing"},
		{"empty tool", func(n *people.NewPerson) { n.Tools = []string{""} }, "/tools", "list-item"},
		{"unknown language", func(n *people.NewPerson) { n.Lang = "fr" }, "/lang", "choice"},
		{"unknown zone", func(n *people.NewPerson) { n.Zone = "Mars/Base" }, "/zone", "zone"},
		{"the server's zone", func(n *people.NewPerson) { n.Zone = "Local" }, "/zone", "zone"},
		{"short password", func(n *people.NewPerson) { n.Password = "elevenchars" }, "/password", "password-short"},
		{"long password", func(n *people.NewPerson) { n.Password = strings.Repeat("ab", 101) }, "/password", "password-long"},
		{"password of one character", func(n *people.NewPerson) { n.Password = "aaaaaaaaaaaaa" }, "/password", "password-weak"},
		{"password is the username", func(n *people.NewPerson) { n.Username, n.Password = "mia.chen.2024", "Mia.Chen.2024" }, "/password", "password-username"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := good
			tt.change(&n)
			_, err := b.CreatePerson(b.ctx, b.cmd(), n)
			b.refused(err, action.InvalidArgument, tt.reason)
			if r := action.AsRefusal(err); len(r.Errors) != 1 || r.Errors[0].Pointer != tt.pointer {
				t.Errorf("errors %+v, want one at %s", r.Errors, tt.pointer)
			}
		})
	}
	all, err := b.db.Persons(b.ctx)
	b.ok(err)
	if len(all) != 0 {
		t.Errorf("%d persons were made", len(all))
	}
}

func TestOnlyAdminsAdminister(t *testing.T) {
	b := newBench(t)
	admin, support := b.person("root", "admin"), b.person("mia", "support")
	client := b.client(admin, "admin")

	_, err := b.DisablePerson(b.ctx, b.by(support), admin.ID)
	b.refused(err, action.Forbidden, "role")
	byClient := b.cmd()
	byClient.By = client.By()
	_, err = b.DisablePerson(b.ctx, byClient, support.ID)
	b.refused(err, action.Forbidden, "role")
	_, err = b.CreateClient(b.ctx, b.by(support), people.NewClient{Name: "x", Owner: support.ID,
		ClientGrants: people.ClientGrants{Roles: []string{"proposer"}}})
	b.refused(err, action.Forbidden, "role")
	_, _, err = b.CreateKey(b.ctx, b.by(support), client.ID, 0)
	b.refused(err, action.Forbidden, "role")
	_, err = b.NewLink(b.ctx, b.by(support), admin.ID, 1)
	b.refused(err, action.Forbidden, "role")
	_, err = b.SetPassword(b.ctx, b.by(support), admin.ID, goodPassword+"!")
	b.refused(err, action.Forbidden, "role")
	_, err = b.SetGrants(b.ctx, b.by(admin), admin.ID, people.Grants{Roles: []string{"admin", "support"}})
	b.refused(err, action.Forbidden, "self")
	noOp := b.by(admin)
	noOp.Op = ""
	_, err = b.DisablePerson(b.ctx, noOp, support.ID)
	b.refused(err, action.InvalidArgument, "op")

	// An admin who has lost the role gives no command with an old page.
	second := b.person("second", "admin")
	_, err = b.SetGrants(b.ctx, b.by(second), admin.ID, people.Grants{Roles: []string{"support"}})
	b.ok(err)
	_, err = b.DisablePerson(b.ctx, b.by(admin), support.ID)
	b.refused(err, action.Forbidden, "role")
}

func TestSetGrants(t *testing.T) {
	b := newBench(t)
	admin, mia := b.person("root", "admin"), b.person("mia", "support")
	cmd := b.by(admin)
	for range 2 {
		p, err := b.SetGrants(b.ctx, cmd, "mia", people.Grants{Roles: []string{"ops"}, Scopes: []string{"shop-1"}})
		b.ok(err)
		if p.Version != 2 || !slices.Equal(p.Roles, []string{"ops"}) {
			t.Errorf("person %+v", p)
		}
	}
	events := b.events(mia.Subject())
	if len(events) != 2 || events[1].Kind != people.GrantsChanged || events[1].By != cmd.By {
		t.Fatalf("events %+v", events)
	}
	want := `{"roles":["ops"],"tools":[],"scopes":["shop-1"],"actors":[],"before":{"roles":["support"],"tools":[],"scopes":[],"actors":[]}}`
	if string(events[1].Data) != want {
		t.Errorf("event %s\nwant  %s", events[1].Data, want)
	}
	_, err := b.DisablePerson(b.ctx, cmd, mia.ID)
	b.refused(err, action.IdempotencyKeyReused, "")
	_, err = b.SetGrants(b.ctx, b.cmd(), "nobody", people.Grants{})
	b.refused(err, action.NotFound, "")
}

func TestSetProfile(t *testing.T) {
	b := newBench(t)
	mia, leo := b.person("mia", "support"), b.person("leo", "support")
	p, err := b.SetProfile(b.ctx, b.by(mia), mia.ID, people.Profile{Name: mia.Name, Lang: "zh", Zone: "Asia/Shanghai"})
	b.ok(err)
	if p.Lang != "zh" || p.Zone != "Asia/Shanghai" {
		t.Errorf("person %+v", p)
	}
	_, err = b.SetProfile(b.ctx, b.by(mia), mia.ID, people.Profile{Name: "Somebody else"})
	b.refused(err, action.Forbidden, "role")
	_, err = b.SetProfile(b.ctx, b.by(mia), leo.ID, people.Profile{Name: leo.Name, Lang: "zh"})
	b.refused(err, action.Forbidden, "role")
	_, err = b.SetProfile(b.ctx, b.cmd(), mia.ID, people.Profile{Name: "Mia Wang"})
	b.ok(err)
}

func TestLastAdminStays(t *testing.T) {
	b := newBench(t)
	admin := b.person("root", "admin")
	_, err := b.DisablePerson(b.ctx, b.by(admin), admin.ID)
	b.refused(err, action.WrongState, "last-admin")
	_, err = b.SetGrants(b.ctx, b.cmd(), admin.ID, people.Grants{Roles: []string{"support"}})
	b.refused(err, action.WrongState, "last-admin")
	if n := len(b.events(admin.Subject())); n != 1 {
		t.Errorf("%d events after refusals, want 1", n)
	}
	second := b.person("second", "admin")
	_, err = b.DisablePerson(b.ctx, b.by(second), admin.ID)
	b.ok(err)
	_, err = b.DisablePerson(b.ctx, b.cmd(), second.ID)
	b.refused(err, action.WrongState, "last-admin")
	_, err = b.EnablePerson(b.ctx, b.by(second), admin.ID)
	b.ok(err)
}

// TestAdminsDisableEachOther: many admins disable each other at once. One is left.
func TestAdminsDisableEachOther(t *testing.T) {
	b := newBench(t)
	for range 5 {
		admins := []people.Person{b.person("a"+strings.ToLower(action.NewSecret(5)), "admin"), b.person("b"+strings.ToLower(action.NewSecret(5)), "admin"),
			b.person("c"+strings.ToLower(action.NewSecret(5)), "admin")}
		all, err := b.db.Persons(b.ctx)
		b.ok(err)
		for _, p := range all {
			if p.Disabled == nil && !slices.ContainsFunc(admins, func(a people.Person) bool { return a.ID == p.ID }) {
				_, err := b.DisablePerson(b.ctx, b.cmd(), p.ID)
				b.ok(err)
			}
		}
		var all2 sync.WaitGroup
		for i := range admins {
			all2.Go(func() {
				_, err := b.DisablePerson(b.ctx, b.cmd(), admins[i].ID)
				if err != nil && action.AsRefusal(err).Reason != "last-admin" {
					t.Errorf("unexpected: %v", err)
				}
			})
		}
		all2.Wait()
		all, err = b.db.Persons(b.ctx)
		b.ok(err)
		left := 0
		for _, p := range all {
			if p.Disabled == nil {
				left++
			}
		}
		if left != 1 {
			t.Fatalf("%d admins are left, want 1", left)
		}
	}
}

// TestChangesAtOnce: changes of one person that race are all kept, one after another.
func TestChangesAtOnce(t *testing.T) {
	b := newBench(t)
	b.person("root", "admin")
	mia := b.person("mia", "support")
	var all sync.WaitGroup
	same := b.cmd()
	for range 8 {
		all.Go(func() {
			if _, err := b.SetGrants(b.ctx, b.cmd(), mia.ID, people.Grants{Roles: []string{"ops"}}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := b.SetGrants(b.ctx, same, mia.ID, people.Grants{Roles: []string{"finance"}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(b.events(mia.Subject())); n != 1+8+1 {
		t.Errorf("%d events, want 10", n)
	}
}

func TestPersonsAreNotDeleted(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	for _, table := range []string{"persons", "clients", "client_keys"} {
		_, err := b.db.Pool().ExecContext(b.ctx, "DELETE FROM "+table)
		if e := pq.As(err, "42501"); e == nil {
			t.Errorf("deleting from %s: %v, want insufficient privilege", table, err)
		}
	}
}
