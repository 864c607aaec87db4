package storetest

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"
)

// Multiply makes n copies of an action that waits for somebody, with events and
// bodies, each with an id, a key and an expiry of its own. It needs the database
// as its owner: see Owner.
func Multiply(t testing.TB, ownerDSN, id string, n int) {
	t.Helper()
	db, err := sqlx.Open("postgres", ownerDSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const copies = `generate_series(1, $2) i`
	const newID = `left($1::text, 14) || lpad(i::text, 16, '0')` // made in the same millisecond
	for _, statement := range []string{
		`INSERT INTO actions (id, state, version, revision, create_op, tool, tool_version, client_id, scope, task_id, actor_id, target_type,
		    target_id, object_version, payload_hash, proposal_hash, content_version, created_at, updated_at, expires_at, due_at, work, work_at,
		    roles, deciders, confirmation_ref, claimed_by, open_attempt, block, case_id, case_since, case_moved_at, case_why,
		    case_pending, needs_person, key_until, links, refs)
		 SELECT ` + newID + `, state, version, revision, create_op || ':' || i, tool, tool_version, client_id, scope, task_id, actor_id, target_type,
		    target_id || '-' || i, object_version, payload_hash || i, proposal_hash || i, content_version, created_at, updated_at,
		    expires_at + interval '1 hour' + i * interval '1 second', expires_at + interval '1 hour' + i * interval '1 second', work, work_at,
		    roles, deciders, confirmation_ref || i, claimed_by, open_attempt, block, case_id || i, case_since, case_moved_at,
		    case_why, case_pending, needs_person, key_until, links, ARRAY[payload_hash || i]
		 FROM actions, ` + copies + ` WHERE id = $1`,
		`INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
		 SELECT ` + newID + `, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data
		 FROM events, ` + copies + ` WHERE subject = $1`,
		`INSERT INTO bodies (subject, version, salt, content) SELECT ` + newID + `, version, salt, content FROM bodies, ` + copies + ` WHERE subject = $1`,
	} {
		if _, err := db.ExecContext(context.Background(), statement, id, n); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"actions", "events", "bodies"} {
		if _, err := db.Exec("ANALYZE " + table); err != nil {
			t.Fatal(err)
		}
	}
}
