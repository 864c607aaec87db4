package store_test

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"countersign/store/stage"
	"countersign/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }

// set makes a console on a database of its own.
func set(t *testing.T) *stage.Stage {
	t.Helper()
	return stage.New(t, storetest.New(t))
}

// connect opens a plain pool.
func connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// owner connects as who may change everything.
func owner(t *testing.T, s *stage.Stage) *sql.DB { return connect(t, storetest.Owner(s.DSN)) }

// one reads one value.
func one[T any](t *testing.T, db interface {
	QueryRow(string, ...any) *sql.Row
}, query string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience bounds every wait for something that has to happen.
const patience = 3 * time.Minute

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(end) {
			t.Fatalf("%s did not come about", what)
		}
		<-tick.C
	}
}

// background is for calls whose end no test wants to cause.
var background = context.Background
