package approvals_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
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

// owner connects as who may change everything.
func owner(t *testing.T, s *stage.Stage) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", storetest.Owner(s.DSN))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// tamper changes one row as the owner of the database.
func tamper(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	r, err := db.Exec(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if n, _ := r.RowsAffected(); n != 1 {
		t.Fatalf("%s changed %d rows", query, n)
	}
}

// waits returns once somebody waits for a lock of the database.
func waits(t *testing.T, db *sql.DB) {
	t.Helper()
	for blocked := 0; blocked == 0; time.Sleep(5 * time.Millisecond) {
		if err := db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
}

// atOnce runs n calls that all wait for one start.
func atOnce(n int, call func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			call(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// tally counts answers.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[fmt.Sprintf(format, args...)]++
}

// background is for calls whose end no test wants to cause.
var background = context.Background
