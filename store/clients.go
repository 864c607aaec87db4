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

type clientRow struct {
	ID         string         `db:"id"`
	Version    int64          `db:"version"`
	Name       string         `db:"name"`
	Owner      string         `db:"owner"`
	Roles      pq.StringArray `db:"roles"`
	Tools      pq.StringArray `db:"tools"`
	Scopes     pq.StringArray `db:"scopes"`
	Entries    pq.StringArray `db:"entries"`
	CreatedAt  time.Time      `db:"created_at"`
	DisabledAt *time.Time     `db:"disabled_at"`
}

const clientColumns = `c.id, c.version, c.name, c.owner, c.roles, c.tools, c.scopes, c.entries, c.created_at, c.disabled_at`

func (r clientRow) client() people.Client {
	return people.Client{ID: r.ID, Name: r.Name, Owner: r.Owner, Roles: r.Roles, Tools: r.Tools, Scopes: r.Scopes,
		Entries: r.Entries, Disabled: utc(r.DisabledAt), CreatedAt: r.CreatedAt.UTC(), Version: r.Version}
}

// keyRow is a key as read. The alias of id and created_at lets it stand beside
// a client in one row.
type keyRow struct {
	ID        string     `db:"key_id"`
	ClientID  string     `db:"client_id"`
	Prefix    string     `db:"prefix"`
	CreatedAt time.Time  `db:"key_created_at"`
	ExpiresAt *time.Time `db:"expires_at"`
	LastSeen  *time.Time `db:"last_seen_at"`
	RevokedAt *time.Time `db:"revoked_at"`
}

const keyColumns = `k.id AS key_id, k.client_id, k.prefix, k.created_at AS key_created_at, k.expires_at, k.last_seen_at, k.revoked_at`

func (r keyRow) key() people.Key {
	return people.Key{ID: r.ID, ClientID: r.ClientID, Prefix: r.Prefix, CreatedAt: r.CreatedAt.UTC(),
		ExpiresAt: utc(r.ExpiresAt), LastSeen: utc(r.LastSeen), Revoked: utc(r.RevokedAt)}
}

// Client finds a client with its keys by id or name. NotFound when there is none.
func (db *DB) Client(ctx context.Context, ref string) (people.Client, error) {
	clients, err := db.clients(ctx, `SELECT `+clientColumns+` FROM clients c WHERE c.id = $1 OR c.name = $1`, ref)
	if err == nil && len(clients) == 0 {
		err = action.Refuse(action.NotFound, "There is no such client.")
	}
	if err != nil {
		return people.Client{}, err
	}
	return clients[0], nil
}

// Clients returns all clients with their keys, disabled or not, by name.
func (db *DB) Clients(ctx context.Context) ([]people.Client, error) {
	return db.clients(ctx, `SELECT `+clientColumns+` FROM clients c ORDER BY c.name`)
}

func (db *DB) clients(ctx context.Context, query string, args ...any) ([]people.Client, error) {
	var rows []clientRow
	if err := db.selectAll(ctx, &rows, query, args...); err != nil {
		return nil, err
	}
	clients := make([]people.Client, len(rows))
	place := map[string]int{}
	for i, r := range rows {
		clients[i], place[r.ID] = r.client(), i
	}
	ids := make(pq.StringArray, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	var keys []keyRow
	err := db.selectAll(ctx, &keys, `SELECT `+keyColumns+` FROM client_keys k WHERE k.client_id = ANY ($1) ORDER BY k.id DESC`, ids)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		c := &clients[place[k.ClientID]]
		c.Keys = append(c.Keys, k.key())
	}
	return clients, nil
}

const insertClientSQL = `
WITH c AS (
    INSERT INTO clients (id, version, name, owner, roles, tools, scopes, entries, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT DO NOTHING
    RETURNING id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT $10, $2, $11, $12, $13, $14, $15, $16, $17, '', '', $9, $18 FROM c)
SELECT id FROM c`

const updateClientSQL = `
WITH c AS (
    UPDATE clients SET version = $2, roles = $3, tools = $4, scopes = $5, entries = $6, disabled_at = $7
    WHERE id = $1 AND version = $2 - 1
    RETURNING id),
o AS (
    UPDATE client_keys SET expires_at = $9, revoked_at = $10 FROM c WHERE client_keys.client_id = c.id AND client_keys.id = $8),
n AS (
    INSERT INTO client_keys (id, client_id, prefix, hash, created_at, expires_at)
    SELECT $11, c.id, $12, $13, $14, $15 FROM c WHERE $11::text IS NOT NULL),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT $16, $2, $17, $18, $19, $20, $21, $22, $23, '', '', $14, $24 FROM c)
SELECT id FROM c`

// SaveClient writes a client, the event that says why, a new key and what
// changes of an old one, in one statement. False means that the version moved,
// or that the name is taken.
func (db *DB) SaveClient(ctx context.Context, c people.ClientChange) (bool, error) {
	l, e := c.Client, c.Event
	cause := []any{e.Subject, e.Op, e.Kind, e.By.Kind, e.By.ID, e.By.Name, e.By.Role, e.By.Method, string(e.Data)}
	roles, tools, scopes, entries := pq.StringArray(l.Roles), pq.StringArray(l.Tools), pq.StringArray(l.Scopes), pq.StringArray(l.Entries)
	if l.Version == 1 {
		args := []any{l.ID, l.Version, l.Name, l.Owner, roles, tools, scopes, entries, e.At}
		return db.saved(ctx, insertClientSQL, append(args, cause...)...)
	}
	var oldID, newID *string
	var prefix string
	var hash []byte
	var oldUntil, oldRevoked, newUntil *time.Time
	if k := c.OldKey; k != nil {
		oldID, oldUntil, oldRevoked = &k.ID, k.ExpiresAt, k.Revoked
	}
	if k := c.NewKey; k != nil {
		newID, prefix, hash, newUntil = &k.ID, k.Prefix, k.Hash, k.ExpiresAt
	}
	args := []any{l.ID, l.Version, roles, tools, scopes, entries, l.Disabled,
		oldID, oldUntil, oldRevoked, newID, prefix, hash, e.At, newUntil}
	return db.saved(ctx, updateClientSQL, append(args, cause...)...)
}

const keySQL = `
SELECT ` + clientColumns + `, ` + keyColumns + `, k.hash, app_now() AS now
FROM client_keys k JOIN clients c ON c.id = k.client_id WHERE k.prefix = $1`

// Key finds a key and its client by the key's prefix. NotFound when there is none.
func (db *DB) Key(ctx context.Context, prefix string) (people.StoredKey, error) {
	var r struct {
		clientRow
		keyRow
		Hash []byte    `db:"hash"`
		Now  time.Time `db:"now"`
	}
	err := db.get(ctx, &r, keySQL, prefix)
	if errors.Is(err, sql.ErrNoRows) {
		return people.StoredKey{}, action.Refuse(action.NotFound, "There is no such key.")
	}
	return people.StoredKey{Key: r.key(), Client: r.client(), Hash: r.Hash, Now: r.Now.UTC()}, err
}

// TouchKey writes down that a key was used, at most once a minute.
func (db *DB) TouchKey(ctx context.Context, id string) error {
	_, err := db.saved(ctx, `
UPDATE client_keys SET last_seen_at = app_now()
WHERE id = $1 AND (last_seen_at IS NULL OR last_seen_at <= app_now() - interval '1 minute')
RETURNING id`, id)
	return err
}
