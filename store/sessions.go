package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"countersign/action"
	"countersign/people"
)

type sessionRow struct {
	personRow
	SessionID string     `db:"session_id"`
	Method    string     `db:"method"`
	StartedAt time.Time  `db:"started_at"`
	SeenAt    time.Time  `db:"seen_at"`
	EndsAt    time.Time  `db:"ends_at"`
	StepUpAt  *time.Time `db:"step_up_at"`
	SteppedUp bool       `db:"stepped_up"`
	Agent     string     `db:"agent"`
	Address   string     `db:"address"`
	Kept      string     `db:"kept"`
}

func (r sessionRow) session() people.Session {
	return people.Session{ID: r.SessionID, Person: r.person(), Method: r.Method, StartedAt: r.StartedAt.UTC(), SeenAt: r.SeenAt.UTC(),
		EndsAt: r.EndsAt.UTC(), StepUpAt: utc(r.StepUpAt), SteppedUp: r.SteppedUp, Agent: r.Agent, Address: r.Address, Values: r.Kept}
}

// liveSessions selects sessions with their person, as both are now. $1 is the
// idle timeout and $2 the life of a step-up, in seconds.
const liveSessions = `
SELECT ` + personColumns + `, s.id AS session_id, s.method, s.started_at, s.seen_at, s.ends_at, s.step_up_at,
    coalesce(s.step_up_at > app_now() - make_interval(secs => $2), false) AS stepped_up, s.agent, s.address, s.kept
FROM sessions s JOIN persons p ON p.id = s.person_id AND p.epoch = s.epoch AND p.disabled_at IS NULL
WHERE s.ends_at > app_now() AND s.seen_at > app_now() - make_interval(secs => $1)`

const sessionSQL = `
WITH live AS MATERIALIZED (` + liveSessions + ` AND s.hash = $3),
seen AS (
    UPDATE sessions SET seen_at = app_now() FROM live
    WHERE sessions.id = live.session_id AND live.seen_at <= app_now() - interval '1 minute')
SELECT id, version, username, name, roles, tools, scopes, actors, lang, zone, has_password, epoch, created_at, disabled_at,
    session_id, method, started_at, seen_at, ends_at, step_up_at, stepped_up, agent, address, kept
FROM live`

// Session finds a live session and its person by the hash of the session's
// secret, and notes that it was seen. NotFound when there is none.
func (db *DB) Session(ctx context.Context, hash []byte) (people.Session, error) {
	var r sessionRow
	err := db.get(ctx, &r, sessionSQL, people.IdleTimeout.Seconds(), people.StepUpLifetime.Seconds(), hash)
	if errors.Is(err, sql.ErrNoRows) {
		return people.Session{}, action.Refuse(action.NotFound, "There is no such session.")
	}
	return r.session(), err
}

// PersonSessions returns a person's live sessions, the latest seen first.
func (db *DB) PersonSessions(ctx context.Context, person string) ([]people.Session, error) {
	var rows []sessionRow
	err := db.selectAll(ctx, &rows, liveSessions+` AND s.person_id = $3 ORDER BY s.seen_at DESC, s.id DESC`,
		people.IdleTimeout.Seconds(), people.StepUpLifetime.Seconds(), person)
	if err != nil {
		return nil, err
	}
	sessions := make([]people.Session, len(rows))
	for i, r := range rows {
		sessions[i] = r.session()
	}
	return sessions, nil
}

// SignedIn returns when each person who has a live session was last seen, by id.
func (db *DB) SignedIn(ctx context.Context) (map[string]time.Time, error) {
	var rows []struct {
		Person string    `db:"id"`
		SeenAt time.Time `db:"seen_at"`
	}
	err := db.selectAll(ctx, &rows, `
SELECT p.id, max(s.seen_at) AS seen_at
FROM sessions s JOIN persons p ON p.id = s.person_id AND p.epoch = s.epoch AND p.disabled_at IS NULL
WHERE s.ends_at > app_now() AND s.seen_at > app_now() - make_interval(secs => $1) GROUP BY p.id`, people.IdleTimeout.Seconds())
	seen := make(map[string]time.Time, len(rows))
	for _, r := range rows {
		seen[r.Person] = r.SeenAt.UTC()
	}
	return seen, err
}

// StartSession writes a session in place of the one that the browser had. False
// when the person was disabled or their epoch moved on. Writing it again
// changes nothing.
func (db *DB) StartSession(ctx context.Context, s people.NewSession) (bool, error) {
	return db.saved(ctx, `
WITH gone AS (
    DELETE FROM sessions WHERE hash = $10)
INSERT INTO sessions (id, hash, person_id, epoch, method, started_at, seen_at, ends_at, agent, address, kept)
SELECT $1, $2, p.id, p.epoch, $5, t.now, t.now, t.now + make_interval(secs => $6), $7, $8, $9
FROM persons p, (SELECT app_now() AS now) t
WHERE p.id = $3 AND p.epoch = $4 AND p.disabled_at IS NULL
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash
RETURNING id`,
		s.ID, s.Hash, s.Person.ID, s.Person.Epoch, s.Method, people.AbsoluteTimeout.Seconds(), s.Agent, s.Address, s.Values, s.Replaces)
}

// ChangeSession gives a live session another hash and other values, and notes a
// step-up. False when it is over. Writing it again changes nothing more.
func (db *DB) ChangeSession(ctx context.Context, c people.SessionChange) (bool, error) {
	return db.saved(ctx, `
UPDATE sessions SET hash = $2, kept = $3, step_up_at = CASE WHEN $4 THEN app_now() ELSE step_up_at END
WHERE hash IN ($1, $2) AND ends_at > app_now()
RETURNING id`, c.Hash, c.NewHash, c.Values, c.StepUp)
}

// EndSession ends one of a person's sessions. False when they have none such.
func (db *DB) EndSession(ctx context.Context, person, id string) (bool, error) {
	return db.saved(ctx, `DELETE FROM sessions WHERE person_id = $1 AND id = $2 RETURNING id`, person, id)
}
