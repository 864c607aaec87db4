package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"countersign/action"
	"countersign/store"
	"countersign/store/stage"

	"github.com/lib/pq"
)

// half fails the test when a command that was refused left something behind.
func half(t *testing.T, s *stage.Stage, c command, id string) {
	t.Helper()
	if id != "" {
		if n := s.Count(id, c.kind); n != 0 {
			t.Errorf("a refused %s left its event", c.name)
		}
	}
	if result, found := checked(t, s.DB, ""); len(found) > 0 {
		t.Errorf("%+v, differences: %q", result, found)
	}
}

func TestAReadOnlyDatabaseRefusesClearly(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	name := pq.QuoteIdentifier(one[string](t, db, `SELECT current_database()`))
	for _, c := range commands() {
		t.Run(c.name, func(t *testing.T) {
			s.T = t
			id, run := c.ready(s)
			_, err := db.Exec(`ALTER DATABASE ` + name + ` SET default_transaction_read_only = on`)
			must(t, err)
			closed := s.Open(s.DSN, store.Options{MaxConns: 2})
			_, err = db.Exec(`ALTER DATABASE ` + name + ` RESET default_transaction_read_only`)
			must(t, err)
			s.Refused(closed.DB.Ready(background()), action.OutcomeUnknown, "database-read-only")
			must(t, s.DB.Ready(background()))
			_, err = run(closed)
			s.Refused(err, action.OutcomeUnknown, "database-read-only")
			if id != "" {
				if _, err := closed.DB.Snapshot(background(), id); err != nil {
					t.Errorf("it cannot be read either: %v", err)
				}
			}
			half(t, s, c, id)
			first, err := run(s.Console)
			must(t, err)
			theSame(t, s, c, id, first, run)
		})
	}
}

func TestASlowDatabaseRefusesInTime(t *testing.T) {
	s := set(t)
	brief := s.Open(s.DSN, store.Options{MaxConns: 2, StatementTimeout: 200 * time.Millisecond})
	db := owner(t, s)
	for _, c := range commands() {
		t.Run(c.name, func(t *testing.T) {
			s.T = t
			id, run := c.ready(s)
			tx, err := db.Begin()
			must(t, err)
			defer tx.Rollback()
			if _, err = tx.Exec(`LOCK TABLE events IN EXCLUSIVE MODE`); err != nil { // reads go on
				t.Fatal(err)
			}
			_, err = run(brief)
			s.Refused(err, action.OutcomeUnknown, "database", "") // it was told in time, or nothing was
			until(t, "the end of its wait", func() bool { return waiting(t, db) == 0 })
			must(t, tx.Rollback())
			half(t, s, c, id)
			first, err := run(s.Console)
			must(t, err)
			theSame(t, s, c, id, first, run)
		})
	}
}

// All connections are taken: whoever asks is told in time, and nothing happens.
func TestAnExhaustedPoolRefusesInTime(t *testing.T) {
	s := set(t)
	narrow := s.Open(s.DSN, store.Options{MaxConns: 1, StatementTimeout: 150 * time.Millisecond})
	for _, c := range commands() {
		t.Run(c.name, func(t *testing.T) {
			s.T = t
			id, run := c.ready(s)
			taken, err := narrow.DB.Pool().Conn(background())
			must(t, err)
			_, err = run(narrow)
			s.Refused(err, action.OutcomeUnknown, "database")
			must(t, taken.Close())
			half(t, s, c, id)
			first, err := run(s.Console)
			must(t, err)
			theSame(t, s, c, id, first, run)
		})
	}
}

// Who goes away in the middle of a write does not cut it in half.
func TestACallerThatGoesAwayLeavesAWholeWrite(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	if _, err := tx.Exec(`SELECT FROM actions WHERE id = $1 FOR UPDATE`, a.ID); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(background())
	done := make(chan error, 1)
	go func() {
		_, err := s.Approvals.Decide(ctx, s.Mia.ID, a.ID, stage.Ballot(a))
		done <- err
	}()
	until(t, "the write", func() bool { return waiting(t, db) == 1 })
	leave()
	must(t, tx.Commit())
	if err := <-done; err != nil {
		t.Errorf("the write ended with %v", err)
	}
	if got := s.Read(a.ID); got.State != action.Confirmed || s.Count(a.ID, action.KindDecided) != 1 {
		t.Errorf("%s, %v", got.State, s.Kinds(a.ID))
	}
}

// A disk that is full: a small one, really full.
func TestAFullDiskRefusesClearly(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	fill, free := smallDisk(t, db, s.DSN)
	var made []string
	var proposal = stage.Proposal(stage.SetPrice, stage.Product(), 105)
	fill()
	var err error
	for range 200 { // the last page has room for a few
		proposal = stage.Proposal(stage.SetPrice, stage.Product(), 105)
		var snap action.Snapshot
		if snap, _, err = s.Approvals.Propose(background(), s.Agent, proposal); err != nil {
			break
		}
		made = append(made, snap.Action.ID)
	}
	s.Refused(err, action.OutcomeUnknown, "database-full")
	if id, err := s.DB.Find(background(), "propose:"+s.Agent.ID+":"+proposal.Key); id != "" || err != nil {
		t.Errorf("the refused proposal left %q, %v", id, err)
	}
	if result, found := checked(t, s.DB, ""); len(found) > 0 || result.Actions != len(made) {
		t.Errorf("%d were made, %+v, %q", len(made), result, found)
	}
	free()
	if _, _, err := s.Approvals.Propose(background(), s.Agent, proposal); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// smallDisk puts the events on a disk of their own, and returns what fills and
// empties it.
func smallDisk(t *testing.T, db *sql.DB, dsn string) (fill, free func()) {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	dir, err := os.MkdirTemp("/tmp", "small-disk-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root, with the right to mount, can make a small disk")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("taking the small disk away: %v", err)
		}
	})
	info, err := os.Stat(filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port")))
	must(t, err)
	server := info.Sys().(*syscall.Stat_t)
	must(t, os.Chown(dir, int(server.Uid), int(server.Gid)))
	name := pq.QuoteIdentifier(filepath.Base(dir))
	run := func(query string) {
		t.Helper()
		if _, err := db.Exec(query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	run(fmt.Sprintf(`CREATE TABLESPACE %s LOCATION %s`, name, pq.QuoteLiteral(dir)))
	t.Cleanup(func() { run(`DROP TABLESPACE ` + name) })
	run(`ALTER TABLE events SET TABLESPACE ` + name)
	t.Cleanup(func() { run(`ALTER TABLE events SET TABLESPACE pg_default`) })
	filler := filepath.Join(dir, "filler")
	fill = func() {
		if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the small disk is not full: %v", err)
		}
	}
	return fill, func() { must(t, os.Remove(filler)) }
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	s := set(t)
	for name, dsn := range map[string]string{
		"no URL":     "host=/tmp dbname=x",
		"no sslmode": "postgres://user@localhost/countersign",
		"no server":  "postgres://user@localhost:1/countersign?sslmode=disable",
	} {
		ctx, cancel := context.WithTimeout(background(), patience)
		db, err := store.Open(ctx, dsn, store.Options{})
		cancel()
		if err == nil {
			t.Errorf("%s: opened", name)
			db.Close()
		}
	}
	if one[string](t, s.DB.Pool(), `SELECT current_user`) != "countersign_app" {
		t.Error("the store does not work as the application's role")
	}
	if one[string](t, s.DB.Pool(), `SHOW statement_timeout`) != "10s" {
		t.Error("statements have no end")
	}
}
