package store_test

import (
	"database/sql"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"

	"github.com/lib/pq"
)

// reads counts what the server touched of the table of actions.
type reads struct {
	scans  int // of the whole table
	rows   int // looked at, one way or the other
	queued int // entries of the queue's index
}

func readSoFar(t *testing.T, db *sql.DB) (r reads) {
	t.Helper()
	must(t, db.QueryRow(`SELECT seq_scan, seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'actions'`).Scan(&r.scans, &r.rows))
	must(t, db.QueryRow(`SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'actions_queue'`).Scan(&r.queued))
	return r
}

// touchedSoFar is how often whole tables were scanned, and how many of their rows
// were looked at.
func touchedSoFar(t *testing.T, db *sql.DB, tables []string) (r reads) {
	t.Helper()
	must(t, db.QueryRow(`SELECT sum(seq_scan), sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE relname = ANY ($1)`,
		pq.StringArray(tables)).Scan(&r.scans, &r.rows))
	return r
}

// counted opens a console whose reads are counted, the database as its owner, and
// what counts what a read touches, of the actions or of other tables, once it is
// planned for good.
func counted(t *testing.T, s *stage.Stage, tables ...string) (narrow *stage.Console, db *sql.DB, cost func(read func()) reads) {
	t.Helper()
	soFar := readSoFar
	if len(tables) > 0 {
		soFar = func(t *testing.T, db *sql.DB) reads { return touchedSoFar(t, db, tables) }
	}
	narrow = s.Open(s.DSN, store.Options{MaxConns: 1}) // whose counts can be flushed
	db = owner(t, s)
	db.SetMaxOpenConns(1)
	flush := func() { // what was read so far counts from now on
		for _, reader := range []*sql.DB{narrow.DB.Pool(), db} {
			_, err := reader.Exec(`SELECT pg_stat_force_next_flush()`)
			must(t, err)
		}
	}
	return narrow, db, func(read func()) reads {
		t.Helper()
		for range 8 { // past the point where a prepared statement gets its one plan
			read()
		}
		flush()
		before := soFar(t, db)
		read()
		flush()
		after := soFar(t, db)
		return reads{after.scans - before.scans, after.rows - before.rows, after.queued - before.queued}
	}
}

// A page of the queue costs what it shows, not what waits: the server counts
// what it reads, for the statement as it is, planned as it is planned.
func TestAQueuePageReadsWhatItShows(t *testing.T) {
	t.Parallel()
	s := set(t)
	const waiting, page = 100_000, 50
	storetest.Multiply(t, storetest.Owner(s.DSN), s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105)).ID, waiting)
	narrow, db, cost := counted(t, s)
	middle := approvals.QueueCursor{}
	must(t, db.QueryRow(`SELECT expires_at, id FROM actions WHERE state = 'proposed' ORDER BY expires_at, id OFFSET $1 LIMIT 1`, waiting/2).
		Scan(&middle.ExpiresAt, &middle.ID))
	for _, tab := range []approvals.Tab{approvals.NeedsMe, approvals.Everybody} {
		for name, after := range map[string]approvals.QueueCursor{"first": {}, "deep": middle} {
			f := approvals.QueueFilter{Person: s.Mia, Roles: s.Mia.Roles, Tab: tab, After: after, Limit: page}
			got := cost(func() {
				if found, _, err := narrow.DB.Queue(background(), f); err != nil || len(found) != page {
					t.Fatalf("%d found, %v", len(found), err)
				}
			})
			if got.scans != 0 || got.queued < page || got.queued > 2*page || got.rows > 2*page {
				t.Errorf("the %s page of %q reads %+v", name, tab, got)
			}
		}
	}
	f := approvals.QueueFilter{Person: s.Mia, Roles: s.Mia.Roles, Tab: approvals.NeedsMe}
	got := cost(func() {
		if n, err := narrow.DB.QueueCount(background(), f, "", 200); err != nil || n != 200 {
			t.Fatalf("counted %d, %v", n, err)
		}
	})
	if got.rows > 1000 || got.queued > 1000 {
		t.Errorf("a count up to 200 reads %+v", got)
	}
	for name, read := range map[string]func() ([]action.Action, error){
		"newest": func() ([]action.Action, error) {
			found, _, err := narrow.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, Limit: page})
			return found, err
		},
		"by id": func() ([]action.Action, error) {
			found, _, err := narrow.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, Ref: middle.ID, Limit: page})
			return found, err
		},
		"by actor": func() ([]action.Action, error) {
			found, _, err := narrow.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, ActorID: "nobody", Limit: page})
			return found, err
		},
		"by target": func() ([]action.Action, error) {
			found, _, err := narrow.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, Target: &action.Target{Type: "product", ID: "none"}, Limit: page})
			return found, err
		},
		"by target's id": func() ([]action.Action, error) {
			found, _, err := narrow.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, Target: &action.Target{ID: "none"}, Limit: page})
			return found, err
		},
		"by hash": func() ([]action.Action, error) {
			found, _, err := narrow.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, Ref: "sha256:none", Limit: page})
			return found, err
		},
		"work": func() ([]action.Action, error) {
			found, _, err := narrow.DB.Work(background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Limit: page})
			return found, err
		},
		"due": func() ([]action.Action, error) {
			_, err := narrow.DB.Due(background(), action.Due{}, page)
			return nil, err
		},
		"the past of one": func() ([]action.Action, error) {
			a := s.Read(middle.ID)
			_, err := narrow.DB.Past(background(), a, a.CreatedAt)
			return nil, err
		},
	} {
		got := cost(func() {
			if _, err := read(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		})
		if got.scans != 0 || got.rows > 2*page {
			t.Errorf("%s reads %+v", name, got)
		}
	}
}

// A page of work costs what it offers, with a few looks at what could be in the
// way of each; what is in the way of all of it is looked at once.
func TestAPageOfWorkReadsWhatItOffers(t *testing.T) {
	t.Parallel()
	s := set(t)
	const waiting, page = 4000, 50
	storetest.Multiply(t, storetest.Owner(s.DSN), s.Confirmed(stage.SetPrice, stage.Product()).ID, waiting)
	narrow, _, cost := counted(t, s)
	work := func(want int) func() {
		return func() {
			t.Helper()
			found, _, err := narrow.DB.Work(background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Executor: s.Executor.ID, Limit: page})
			if err != nil || len(found) != want {
				t.Fatalf("%d offered, %v", len(found), err)
			}
		}
	}
	if got := cost(work(page)); got.scans != 0 || got.rows > 4*page {
		t.Errorf("a page reads %+v", got)
	}
	_, err := approvals.StartPause(background(), s.DB, action.NewID("pau"), approvals.PauseTool, stage.SetPrice, "it is wrong", action.By{Kind: action.BySystem})
	must(t, err)
	if got := cost(work(0)); got.scans != 0 || got.rows > waiting+2*page {
		t.Errorf("an empty page reads %+v", got)
	}
}
