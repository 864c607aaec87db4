package main

import (
	"context"

	"countersign/action"
	"countersign/people"
)

// member is somebody who works with the demo's console.
type member struct {
	username, name string
	roles          []string
}

// demoCast is who there is. The admin owns the programs, so none of the four
// who decide is kept from deciding on what they propose.
func demoCast() []member {
	return []member{
		{"max", "Max Vogel", []string{people.RoleAdmin}},
		{"mia", "Mia Koch", []string{people.RoleSupport}},
		{"jonas", "Jonas Lang", []string{people.RoleSupport}},
		{"olga", "Olga Novak", []string{people.RoleOps}},
		{"wei", "Zhang Wei", []string{people.RoleOps}},
		{"ada", "Ada Byrne", []string{people.RoleAuditor}},
	}
}

const demoOwner = "max"

// ensureCast makes accounts, programs and keys that are missing, and sees to it
// that demo.json tells how to get in.
func ensureCast(ctx context.Context, service *people.Service, db *database, f *demoFile, dir string) error {
	for _, m := range demoCast() {
		f.user(m)
	}
	// Before the accounts are made: whatever ends us meanwhile, passwords are known.
	if err := f.write(dir); err != nil {
		return err
	}
	for _, m := range demoCast() {
		if err := ensureMember(ctx, service, db, m, f.user(m).Password); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		name, role string
		entries    []string
		key        *string
	}{
		{"shop-assistant", people.RoleProposer, []string{"chat", "workflow"}, &f.Keys.Proposer},
		{"demo-executor", people.RoleExecutor, nil, &f.Keys.Executor},
		{"demo-reader", people.RoleReader, nil, &f.Keys.Reader},
		{"demo-admin", people.RoleAdmin, nil, &f.Keys.Admin},
	} {
		if err := ensureClient(ctx, service, db, p.name, people.ClientGrants{Roles: []string{p.role}, Entries: p.entries}, p.key); err != nil {
			return err
		}
	}
	return f.write(dir)
}

func ensureMember(ctx context.Context, service *people.Service, db *database, m member, password string) error {
	p, err := db.Person(ctx, m.username)
	if action.IsCode(err, action.NotFound) {
		_, err = service.CreatePerson(ctx, administer("demo"), people.NewPerson{Username: m.username, Name: m.name,
			Grants: people.Grants{Roles: m.roles}, Password: password})
		return err
	}
	if err != nil || p.Disabled != nil {
		return err
	}
	_, err = service.SignIn(ctx, m.username, password, "demo")
	if action.IsCode(err, action.Unauthorized) {
		_, err = service.SetPassword(ctx, administer("demo"), p.ID, password)
	}
	return err
}

func ensureClient(ctx context.Context, service *people.Service, db *database, name string, grants people.ClientGrants, key *string) error {
	client, err := db.Client(ctx, name)
	if action.IsCode(err, action.NotFound) {
		client, err = service.CreateClient(ctx, administer("demo"), people.NewClient{Name: name, Owner: demoOwner, ClientGrants: grants})
	}
	if err != nil {
		return err
	}
	if known, _, err := service.Authenticate(ctx, *key); err == nil && known.ID == client.ID {
		return nil
	} else if err != nil && !action.IsCode(err, action.Unauthorized) {
		return err
	}
	// A key was made and never written down: it is of no use to anybody.
	now, err := db.Now(ctx)
	if err != nil {
		return err
	}
	for _, k := range client.Keys {
		if k.Live(now) {
			if _, err := service.RevokeKey(ctx, administer("demo"), client.ID, k.ID); err != nil {
				return err
			}
		}
	}
	_, *key, err = service.CreateKey(ctx, administer("demo"), client.ID, 0)
	return err
}

// signInLinks makes a one-time link for the first member of each role.
func signInLinks(ctx context.Context, service *people.Service, db *database, console string) ([][]string, error) {
	var rows [][]string
	for _, role := range []string{people.RoleSupport, people.RoleOps, people.RoleAuditor, people.RoleAdmin} {
		for _, m := range demoCast() {
			if m.roles[0] != role {
				continue
			}
			p, err := db.Person(ctx, m.username)
			if err != nil {
				return nil, err
			}
			if p.Disabled != nil {
				continue
			}
			text, err := service.NewLink(ctx, administer("link"), p.ID, linkLife)
			if err != nil {
				return nil, err
			}
			rows = append(rows, []string{"  " + role, m.username, signInLink(console, text)})
			break
		}
	}
	return rows, nil
}
