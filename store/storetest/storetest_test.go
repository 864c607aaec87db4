//go:build unix

package storetest_test

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"countersign/store/storetest"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
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

func one[T any](t *testing.T, db *sql.DB, query string) T {
	t.Helper()
	var v T
	if err := db.QueryRow(query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func TestEveryTestHasItsOwnDatabase(t *testing.T) {
	first, second := storetest.New(t), storetest.New(t)
	owner := open(t, storetest.Owner(first))
	if _, err := owner.Exec(`CREATE TABLE things (n int)`); err != nil {
		t.Fatal(err)
	}
	app := open(t, first)
	if _, err := app.Exec(`INSERT INTO things VALUES (1)`); err != nil {
		t.Errorf("the application cannot write what a migration made: %v", err)
	}
	if one[bool](t, open(t, second), `SELECT to_regclass('things') IS NOT NULL`) {
		t.Error("a table of one database is seen in another")
	}
}

func TestDatabasesAreDroppedWithTheirTest(t *testing.T) {
	var gone string
	keep := open(t, storetest.New(t))
	t.Run("child", func(t *testing.T) {
		gone = one[string](t, open(t, storetest.New(t)), `SELECT current_database()`)
	})
	var there bool
	if err := keep.QueryRow(`SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, gone).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if there {
		t.Errorf("%s is still there", gone)
	}
}

func TestRoles(t *testing.T) {
	dsn := storetest.New(t)
	if got := one[string](t, open(t, dsn), `SELECT current_user`); got != "countersign_app" {
		t.Errorf("New connects as %s", got)
	}
	owner := open(t, storetest.Owner(dsn))
	if got := one[string](t, owner, `SELECT current_user`); got == "countersign_app" {
		t.Error("Owner connects as the application")
	}
	_, err := open(t, dsn).Exec(`CREATE TABLE mine (n int)`)
	if pq.As(err, pqerror.InsufficientPrivilege) == nil {
		t.Errorf("the application may make tables: %v", err)
	}
}

func TestSkewMovesTheClock(t *testing.T) {
	const ahead = `SELECT extract(epoch FROM app_now() - clock_timestamp())::float8`
	dsn := storetest.New(t)
	for _, c := range []struct {
		dsn string
		min float64
	}{
		{dsn, -1},
		{storetest.Skewed(dsn, time.Hour), 3599},
		{storetest.Skewed(storetest.Owner(dsn), -24*time.Hour), -86401},
	} {
		if got := one[float64](t, open(t, c.dsn), ahead); got < c.min || got > c.min+60 {
			t.Errorf("%s is %v s ahead, want about %v", c.dsn, got, c.min+1)
		}
	}
	if got := one[string](t, open(t, storetest.Skewed(dsn, time.Hour)), `SELECT current_user`); got != "countersign_app" {
		t.Errorf("the skewed connection is %s", got)
	}
}
