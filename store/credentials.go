package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"countersign/action"
	"countersign/people"

	"github.com/lib/pq"
)

// Credential finds a person by username, with the hash of their password, ""
// for none. NotFound when nobody has the username.
func (db *DB) Credential(ctx context.Context, username string) (people.Person, string, error) {
	var r struct {
		personRow
		Hash string `db:"hash"`
	}
	err := db.get(ctx, &r, `
SELECT `+personColumns+`, coalesce(p.password_hash, '') AS hash FROM persons p WHERE p.username = $1`, username)
	if errors.Is(err, sql.ErrNoRows) {
		return people.Person{}, "", action.Refuse(action.NotFound, "There is no such person.")
	}
	return r.person(), r.Hash, err
}

// countTrySQL takes the rows in the order of their keys, so that two who count
// the same keys at once never wait for each other crosswise.
const countTrySQL = `
WITH t AS (SELECT app_now() AS now),
n AS (
    INSERT INTO sign_in_tries AS s (key, tries, until)
    SELECT k.key, 1, t.now + make_interval(secs => $2) FROM unnest($1::bytea[]) AS k (key), t ORDER BY k.key
    ON CONFLICT (key) DO UPDATE SET
        tries = CASE WHEN s.until <= app_now() THEN 1 ELSE s.tries + 1 END,
        until = CASE WHEN s.until <= app_now() THEN excluded.until ELSE s.until END
    RETURNING s.key, s.tries, s.until)
SELECT array_agg(n.tries ORDER BY k.place) AS tries,
       array_agg(extract(epoch FROM n.until - t.now)::float8 ORDER BY k.place) AS wait
FROM unnest($1::bytea[]) WITH ORDINALITY AS k (key, place) JOIN n ON n.key = k.key, t`

// CountTry counts one more try under each of the keys, which differ.
func (db *DB) CountTry(ctx context.Context, keys [][]byte, window time.Duration) ([]people.Tries, error) {
	var r struct {
		Tries pq.Int64Array   `db:"tries"`
		Wait  pq.Float64Array `db:"wait"`
	}
	if err := db.write(ctx, &r, countTrySQL, pq.ByteaArray(keys), window.Seconds()); err != nil {
		return nil, err
	}
	tries := make([]people.Tries, len(r.Tries))
	for i := range tries {
		tries[i] = people.Tries{Count: int(r.Tries[i]), Wait: time.Duration(r.Wait[i] * float64(time.Second))}
	}
	return tries, nil
}

// UncountTry sets the first key to nothing and lessens the others by one. It
// takes the rows in the order in which CountTry does.
func (db *DB) UncountTry(ctx context.Context, keys [][]byte) error {
	var done int
	return db.write(ctx, &done, `
WITH k AS MATERIALIZED (
    SELECT key FROM sign_in_tries WHERE key = ANY ($1) ORDER BY key FOR UPDATE),
u AS (
    UPDATE sign_in_tries s SET tries = CASE WHEN s.key = $2 THEN 0 ELSE greatest(s.tries - 1, 0) END
    FROM k WHERE s.key = k.key RETURNING 1)
SELECT count(*) FROM u`, pq.ByteaArray(keys), keys[0])
}

// PeekLink returns the person of a one-time link and until when it works,
// without using it up. False as TakeLink.
func (db *DB) PeekLink(ctx context.Context, hash []byte) (people.Person, time.Time, bool, error) {
	var r struct {
		personRow
		Until time.Time `db:"until"`
	}
	err := db.get(ctx, &r, `
SELECT l.expires_at AS until, `+personColumns+`
FROM sign_in_links l JOIN persons p ON p.id = l.person_id AND p.epoch = l.epoch AND p.disabled_at IS NULL
WHERE l.hash = $1 AND l.used_at IS NULL AND l.expires_at > app_now()`, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return people.Person{}, time.Time{}, false, nil
	}
	return r.person(), r.Until.UTC(), err == nil, err
}

// TakeLink uses a one-time link up and returns its person. False when the link
// is used, over or unknown, or its person disabled.
func (db *DB) TakeLink(ctx context.Context, hash []byte) (people.Person, bool, error) {
	var r personRow
	err := db.write(ctx, &r, `
UPDATE sign_in_links l SET used_at = app_now()
FROM persons p
WHERE l.hash = $1 AND l.used_at IS NULL AND l.expires_at > app_now()
  AND p.id = l.person_id AND p.epoch = l.epoch AND p.disabled_at IS NULL
RETURNING `+personColumns, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return people.Person{}, false, nil
	}
	return r.person(), err == nil, err
}

// TidyCredentials removes sessions, links and counts that are over. Nothing
// depends on it; run it every hour or so.
func (db *DB) TidyCredentials(ctx context.Context) error {
	var gone int
	return db.write(ctx, &gone, `
WITH s AS (
    DELETE FROM sessions WHERE ends_at < app_now() RETURNING 1),
l AS (
    DELETE FROM sign_in_links WHERE expires_at < app_now() RETURNING 1),
t AS (
    DELETE FROM sign_in_tries WHERE key IN (
        SELECT key FROM sign_in_tries WHERE until < app_now() FOR UPDATE SKIP LOCKED) RETURNING 1)
SELECT count(*) FROM (SELECT FROM s UNION ALL SELECT FROM l UNION ALL SELECT FROM t) AS gone`)
}
