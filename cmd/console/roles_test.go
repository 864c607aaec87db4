package main

import (
	"database/sql"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/store/storetest"
)

// The roles that docs/running.md tells an administrator to make: an owner who
// migrates and is no superuser, and a console that has no more rights than the
// application.
func TestRolesOfTheDatabase(t *testing.T) {
	admin := storetest.Owner(storetest.New(t))
	db, err := sql.Open("postgres", admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	owner, console, database := name+"_owner", name+"_console", name+"_roles"
	for _, statement := range []string{
		`CREATE ROLE ` + owner + ` LOGIN`,
		`CREATE ROLE ` + console + ` LOGIN`,
		`GRANT countersign_app TO ` + owner + `, ` + console,
		`CREATE DATABASE ` + database + ` OWNER ` + owner + ` TEMPLATE template0`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	t.Cleanup(func() {
		for _, statement := range []string{`DROP DATABASE ` + database + ` WITH (FORCE)`, `DROP ROLE ` + owner, `DROP ROLE ` + console} {
			if _, err := db.Exec(statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	as := func(role string) environment {
		to := *u
		to.Path, to.User = "/"+database, url.User(role)
		return environment{"DATABASE_URL": to.String(), "COUNTERSIGN_SECRET": goodSecret()}
	}

	if errs := fails(t, as(console), "", "migrate"); !strings.Contains(errs, "permission denied") {
		t.Errorf("the console's role may migrate: %s", errs)
	}
	works(t, as(owner), "", "migrate")
	works(t, as(console), "", "user", "add", "you", "--role", "admin")
	url, _, stop := served(t, as(console))
	if status, text := get(t, url+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz answers %d %s", status, text)
	}
	if code := stop(); code != exitOK {
		t.Errorf("ended with %d", code)
	}
	app, err := sql.Open("postgres", as(console)["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	for _, statement := range []string{`UPDATE events SET op = 'x'`, `DELETE FROM events`, `TRUNCATE events`} {
		if _, err := app.Exec(statement); err == nil {
			t.Errorf("the console's role may %s", statement)
		}
	}
}
