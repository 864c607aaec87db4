package migrations_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	"countersign/migrations"
	"countersign/store/embedded"
	"countersign/store/storetest"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"golang.org/x/sync/errgroup"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// empty makes databases that nothing was migrated into, owned by user.
func empty(t *testing.T, user string, names ...string) []string {
	t.Helper()
	owner := storetest.Owner(storetest.New(t))
	admin := open(t, owner)
	var dsns []string
	for _, name := range names {
		name += strings.ToLower(t.Name())
		statement := `CREATE DATABASE ` + pq.QuoteIdentifier(name) + ` TEMPLATE template0`
		if user != "" {
			statement += ` OWNER ` + user
		}
		exec(t, admin, statement)
		t.Cleanup(func() { exec(t, admin, `DROP DATABASE `+pq.QuoteIdentifier(name)+` WITH (FORCE)`) })
		u, err := url.Parse(owner)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/" + name
		if user != "" {
			u.User = url.User(user)
		}
		dsns = append(dsns, u.String())
	}
	return dsns
}

func TestUpCanBeRepeated(t *testing.T) {
	db := open(t, empty(t, "", "again_")[0])
	have, want, err := migrations.Version(t.Context(), db)
	if err != nil || have != 0 || want < 1 {
		t.Fatalf("an empty database: have %d, want %d, %v", have, want, err)
	}
	for range 2 {
		if err := migrations.Up(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	if have, want, err = migrations.Version(t.Context(), db); err != nil || have != want {
		t.Errorf("after migrating: have %d, want %d, %v", have, want, err)
	}
}

func TestApplicationMaySeeTheVersion(t *testing.T) {
	have, want, err := migrations.Version(t.Context(), open(t, storetest.New(t)))
	if err != nil || have != want {
		t.Errorf("have %d, want %d, %v", have, want, err)
	}
}

func TestTwoProcessesMigrateOneDatabase(t *testing.T) {
	dsn := empty(t, "", "one_")[0]
	upAtOnce(t, dsn, dsn, dsn)
}

// The role belongs to the cluster: in a new one, all of them want to make it.
func TestManyDatabasesOfANewClusterMigrateAtOnce(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "countersign-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cluster, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Settings: storetest.Settings()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Kill() })
	admin := open(t, cluster.DSN("postgres"))
	var dsns []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		exec(t, admin, `CREATE DATABASE `+name)
		dsns = append(dsns, cluster.DSN(name))
	}
	upAtOnce(t, dsns...)
}

func upAtOnce(t *testing.T, dsns ...string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	for _, dsn := range dsns {
		db := open(t, dsn)
		group.Go(func() error { return migrations.Up(ctx, db) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, dsn := range dsns {
		if have, want, err := migrations.Version(t.Context(), open(t, dsn)); err != nil || have != want {
			t.Errorf("have %d, want %d, %v", have, want, err)
		}
	}
}

// An owner that is no superuser and may not make roles.
func TestOwnerWithoutPowers(t *testing.T) {
	admin := open(t, storetest.Owner(storetest.New(t)))
	exec(t, admin, `CREATE ROLE plain_owner LOGIN`)
	t.Cleanup(func() { exec(t, admin, `DROP ROLE plain_owner`) })
	dsn := empty(t, "plain_owner", "plain_")[0]
	db := open(t, dsn)

	err := migrations.Up(context.Background(), db)
	if e := pq.As(err, pqerror.InsufficientPrivilege); e == nil || !strings.Contains(e.Hint, "GRANT countersign_app TO plain_owner") {
		t.Fatalf("without membership: %v", err)
	}
	exec(t, admin, `GRANT countersign_app TO plain_owner`)
	if err := migrations.Up(context.Background(), db); err != nil {
		t.Fatalf("with membership: %v", err)
	}
	app := open(t, dsn+"&options=-c%20role%3Dcountersign_app")
	if _, err := app.Exec(`SELECT app_now()`); err != nil {
		t.Error(err)
	}
}

func TestApplicationMayNotTruncate(t *testing.T) {
	dsn := storetest.New(t)
	exec(t, open(t, storetest.Owner(dsn)), `CREATE TABLE made_later (id bigint GENERATED ALWAYS AS IDENTITY, n int, s serial)`)
	app := open(t, dsn)
	exec(t, app,
		`INSERT INTO made_later (n) VALUES (1)`,
		`UPDATE made_later SET n = 2`,
		`SELECT n FROM made_later`,
		`DELETE FROM made_later`)
	for _, forbidden := range []string{
		`TRUNCATE made_later`,
		`DROP TABLE made_later`,
		`ALTER TABLE made_later DISABLE TRIGGER ALL`,
		`CREATE FUNCTION app_now(int) RETURNS int LANGUAGE sql RETURN 1`,
		`DELETE FROM goose_db_version`,
	} {
		if _, err := app.Exec(forbidden); pq.As(err, pqerror.InsufficientPrivilege) == nil {
			t.Errorf("%s: %v", forbidden, err)
		}
	}
}

func TestClockIgnoresSearchPath(t *testing.T) {
	dsn := storetest.New(t)
	exec(t, open(t, storetest.Owner(dsn)),
		`CREATE SCHEMA trap`,
		`GRANT USAGE ON SCHEMA trap TO countersign_app`,
		`CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN '2000-01-01'::timestamptz`)
	app := open(t, dsn)
	app.SetMaxOpenConns(1)
	exec(t, app, `SET search_path = trap, pg_catalog, public`)
	var right bool
	if err := app.QueryRow(`SELECT app_now() > '2020-01-01'::timestamptz`).Scan(&right); err != nil {
		t.Fatal(err)
	}
	if !right {
		t.Error("another schema's clock was used")
	}
}

func TestClockMovesWithinATransaction(t *testing.T) {
	tx, err := open(t, storetest.New(t)).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var moved bool
	if err := tx.QueryRow(`SELECT app_now() > now() FROM pg_sleep(0.001)`).Scan(&moved); err != nil {
		t.Fatal(err)
	}
	if !moved {
		t.Error("app_now() stands still")
	}
}
