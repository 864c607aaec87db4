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

// personRow is a person as read; sessions and keys join it.
type personRow struct {
	ID          string         `db:"id"`
	Version     int64          `db:"version"`
	Username    string         `db:"username"`
	Name        string         `db:"name"`
	Roles       pq.StringArray `db:"roles"`
	Tools       pq.StringArray `db:"tools"`
	Scopes      pq.StringArray `db:"scopes"`
	Actors      pq.StringArray `db:"actors"`
	Lang        string         `db:"lang"`
	Zone        string         `db:"zone"`
	HasPassword bool           `db:"has_password"`
	Epoch       int            `db:"epoch"`
	CreatedAt   time.Time      `db:"created_at"`
	DisabledAt  *time.Time     `db:"disabled_at"`
}

const personColumns = `p.id, p.version, p.username, p.name, p.roles, p.tools, p.scopes, p.actors, p.lang, p.zone,
    p.password_hash IS NOT NULL AS has_password, p.epoch, p.created_at, p.disabled_at`

func (r personRow) person() people.Person {
	return people.Person{ID: r.ID, Username: r.Username, Name: r.Name, Roles: r.Roles, Tools: r.Tools, Scopes: r.Scopes,
		Actors: r.Actors, Lang: r.Lang, Zone: r.Zone, HasPassword: r.HasPassword, Disabled: utc(r.DisabledAt),
		CreatedAt: r.CreatedAt.UTC(), Version: r.Version, Epoch: r.Epoch}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// Person finds a person by id or username. NotFound when there is none.
func (db *DB) Person(ctx context.Context, ref string) (people.Person, error) {
	var r personRow
	err := db.get(ctx, &r, `SELECT `+personColumns+` FROM persons p WHERE p.id = $1 OR p.username = $1`, ref)
	if errors.Is(err, sql.ErrNoRows) {
		return people.Person{}, action.Refuse(action.NotFound, "There is no such person.")
	}
	return r.person(), err
}

// Persons returns everybody, disabled or not, by username.
func (db *DB) Persons(ctx context.Context) ([]people.Person, error) {
	var rows []personRow
	if err := db.selectAll(ctx, &rows, `SELECT `+personColumns+` FROM persons p ORDER BY p.username`); err != nil {
		return nil, err
	}
	persons := make([]people.Person, len(rows))
	for i, r := range rows {
		persons[i] = r.person()
	}
	return persons, nil
}

const insertPersonSQL = `
WITH p AS (
    INSERT INTO persons (id, version, username, name, roles, tools, scopes, actors, lang, zone, password_hash, epoch, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT DO NOTHING
    RETURNING id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT $14, $2, $15, $16, $17, $18, $19, $20, $21, '', '', $13, $22 FROM p)
SELECT id FROM p`

const updatePersonSQL = `
WITH p AS (
    UPDATE persons SET version = $2, name = $3, roles = $4, tools = $5, scopes = $6, actors = $7, lang = $8, zone = $9,
        password_hash = coalesce($10, password_hash), epoch = $11, disabled_at = $12
    WHERE id = $1 AND version = $2 - 1
    RETURNING id),
r AS MATERIALIZED (
    SELECT recount_decided_by(p.id) AS id FROM p),
s AS (
    DELETE FROM sessions USING p WHERE sessions.person_id = p.id AND sessions.epoch < $11),
d AS (
    DELETE FROM sign_in_links USING p WHERE sign_in_links.person_id = p.id AND sign_in_links.epoch < $11),
l AS (
    INSERT INTO sign_in_links (id, hash, person_id, epoch, expires_at)
    SELECT $13, $14, p.id, $11, $15 FROM p WHERE $13::text IS NOT NULL),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT $16, $2, $17, $18, $19, $20, $21, $22, $23, '', '', $24, $25 FROM p)
SELECT id FROM r`

// SavePerson writes a person, the event that says why, a new link, the end of the
// sessions and links of earlier epochs, and which approvals are to be counted
// anew, in one statement. False means
// that the version moved, or that the username is taken.
func (db *DB) SavePerson(ctx context.Context, c people.PersonChange) (bool, error) {
	p, e := c.Person, c.Event
	cause := []any{e.Subject, e.Op, e.Kind, e.By.Kind, e.By.ID, e.By.Name, e.By.Role, e.By.Method}
	roles, tools, scopes, actors := pq.StringArray(p.Roles), pq.StringArray(p.Tools), pq.StringArray(p.Scopes), pq.StringArray(p.Actors)
	if p.Version == 1 {
		args := []any{p.ID, p.Version, p.Username, p.Name, roles, tools, scopes, actors, p.Lang, p.Zone,
			orNull(c.PasswordHash), p.Epoch, e.At}
		return db.saved(ctx, insertPersonSQL, append(append(args, cause...), string(e.Data))...)
	}
	var linkID *string
	var linkHash []byte
	var linkUntil *time.Time
	if c.Link != nil {
		linkID, linkHash, linkUntil = &c.Link.ID, c.Link.Hash, &c.Link.ExpiresAt
	}
	args := []any{p.ID, p.Version, p.Name, roles, tools, scopes, actors, p.Lang, p.Zone, orNull(c.PasswordHash), p.Epoch, p.Disabled,
		linkID, linkHash, linkUntil}
	saved, err := db.saved(ctx, updatePersonSQL, append(append(args, cause...), e.At, string(e.Data))...)
	if constraint(err) == "persons_last_admin" {
		return false, action.Refuse(action.WrongState, "This is the last admin. Make somebody else an admin first.").Because("last-admin").From(err)
	}
	return saved, err
}

// saved runs a guarded statement that returns the id of the row it wrote, if
// its guard held.
func (db *DB) saved(ctx context.Context, query string, args ...any) (bool, error) {
	var id string
	err := db.write(ctx, &id, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
