package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/triage"

	"github.com/lib/pq"
)

// CallbackSecrets returns the secrets that callbacks about a tool are signed
// with, oldest first, and the database clock.
func (db *DB) CallbackSecrets(ctx context.Context, tool string) ([]triage.CallbackSecret, time.Time, error) {
	secrets, err := db.callbackSecrets(ctx, "WHERE tool = $1", tool)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := db.Now(ctx)
	return secrets, now, err
}

// AllCallbackSecrets returns the secrets of all tools, by tool and age.
func (db *DB) AllCallbackSecrets(ctx context.Context) ([]triage.CallbackSecret, error) {
	return db.callbackSecrets(ctx, "")
}

func (db *DB) callbackSecrets(ctx context.Context, where string, args ...any) ([]triage.CallbackSecret, error) {
	var secrets []triage.CallbackSecret
	err := db.selectAll(ctx, &secrets, `SELECT id, tool, sealed, created_at, ends_at FROM callback_secrets `+where+` ORDER BY tool, created_at, id`, args...)
	return secrets, err
}

const addCallbackSecretSQL = `
WITH n AS (SELECT app_now() AS at),
s AS (
    INSERT INTO callback_secrets (id, tool, sealed, created_at) SELECT $1, $2, $3, n.at FROM n
    ON CONFLICT (id) DO NOTHING RETURNING id),
o AS (
    UPDATE callback_secrets c SET ends_at = n.at + $4 * interval '1 millisecond' FROM n, s
    WHERE c.tool = $2 AND c.id <> $1 AND $4::bigint IS NOT NULL AND (c.ends_at IS NULL OR c.ends_at > n.at + $4 * interval '1 millisecond')),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT 'callbacks:' || $2, (SELECT coalesce(max(version), 0) + 1 FROM events WHERE subject = 'callbacks:' || $2),
        'secret:' || s.id, 'callback_secret_added', $5, $6, $7, $8, $9, '', '', n.at, $10 FROM s, n)
SELECT coalesce((SELECT id FROM s), (SELECT id FROM callback_secrets WHERE id = $1)) AS id, '' AS held`

// AddCallbackSecret stores a secret, once however often it is given. With a grace
// the tool's other secrets end that much later.
func (db *DB) AddCallbackSecret(ctx context.Context, s triage.CallbackSecret, grace *time.Duration, by action.By) error {
	var ends *int64
	said := map[string]any{"secret": s.ID}
	if grace != nil {
		ends = new(grace.Milliseconds())
		said["others_end_after_ms"] = *ends
	}
	data, err := json.Marshal(said)
	if err != nil {
		return fmt.Errorf("encoding the event: %w", err)
	}
	made, err := db.changed(ctx, addCallbackSecretSQL, s.ID, s.Tool, s.Sealed, ends, by.Kind, by.ID, by.Name, by.Role, by.Method, string(data))
	if err == nil && !made {
		err = action.Refuse(action.VersionConflict, "Somebody else changed the secrets of this tool just now. Try again.")
	}
	return err
}

// ByKey returns the actions of a tool that know an execution key, oldest first:
// the one whose key it is comes before all that only mention it.
func (db *DB) ByKey(ctx context.Context, tool, key string) ([]string, error) {
	var ids []string
	err := db.selectAll(ctx, &ids, `
SELECT a.id FROM actions a WHERE a.id = ANY (ARRAY (SELECT r.id FROM actions r WHERE r.refs @> ARRAY[$2])) AND a.tool = $1
ORDER BY a.id LIMIT 50`, tool, key)
	return ids, err
}

// How long a parked callback waits for its attempt, and can be seen after that.
const (
	parkedDays  = 7
	visibleDays = 30
)

// Park keeps a callback for seven days. The same again changes nothing; false
// means that another message has its id.
func (db *DB) Park(ctx context.Context, p triage.ParkedCallback) (bool, error) {
	var w written
	err := db.write(ctx, &w, `
WITH n AS (SELECT app_now() AS at),
p AS (
    INSERT INTO parked_callbacks (tool, webhook_id, key, body, received_at, expires_at)
    SELECT $1, $2, $3, $4, n.at, n.at + $5 * interval '1 day' FROM n
    ON CONFLICT (tool, webhook_id) DO UPDATE SET received_at = parked_callbacks.received_at
        WHERE parked_callbacks.body = excluded.body
    RETURNING webhook_id)
SELECT (SELECT webhook_id FROM p) AS id, '' AS held`, p.Tool, p.WebhookID, p.Key, p.Body, parkedDays)
	return w.ID != nil, err
}

// Joinable returns callbacks that are parked, oldest first, whose action is
// past the point where it can still be attempted for the first time, or is
// being executed, after one.
func (db *DB) Joinable(ctx context.Context, after triage.ParkedCallback, limit int) ([]triage.ParkedCallback, error) {
	var parked []triage.ParkedCallback
	err := db.selectAll(ctx, &parked, `
SELECT p.tool, p.webhook_id, p.key, p.body, p.received_at, p.expires_at
FROM parked_callbacks p
WHERE p.expires_at > (SELECT app_now()) AND EXISTS (
    SELECT FROM actions a WHERE a.refs @> ARRAY[p.key] AND a.tool = p.tool AND a.state NOT IN ('draft', 'proposed', 'confirmed'))
    AND (p.received_at, p.tool, p.webhook_id) > ($2, $3, $4)
ORDER BY p.received_at, p.tool, p.webhook_id LIMIT $1`, limit, after.ReceivedAt, after.Tool, after.WebhookID)
	return parked, err
}

// ParkedCallbacks returns what is parked, newest first, those that waited in
// vain included, and the database clock. A callback is in no scope, so nobody
// who is limited to some sees it.
func (db *DB) ParkedCallbacks(ctx context.Context, viewer people.Viewer, limit int) ([]triage.ParkedCallback, time.Time, error) {
	var parked []triage.ParkedCallback
	err := db.selectAll(ctx, &parked, `
SELECT tool, webhook_id, key, body, received_at, expires_at FROM parked_callbacks
WHERE $2 OR $3 AND (cardinality($4::text[]) = 0 OR tool = ANY ($4)) ORDER BY received_at DESC, webhook_id LIMIT $1`,
		limit, viewer.All, viewer.Limited && len(viewer.Scopes) == 0, append(pq.StringArray{}, viewer.Tools...))
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := db.Now(ctx)
	return parked, now, err
}

// Unpark forgets a parked callback.
func (db *DB) Unpark(ctx context.Context, tool, webhookID string) error {
	var gone int
	return db.write(ctx, &gone, `
WITH p AS (DELETE FROM parked_callbacks WHERE tool = $1 AND webhook_id = $2 RETURNING 1) SELECT count(*) FROM p`, tool, webhookID)
}

// TidyCallbacks removes parked callbacks that waited in vain a month ago.
func (db *DB) TidyCallbacks(ctx context.Context) error {
	var gone int
	return db.write(ctx, &gone, `
WITH p AS (DELETE FROM parked_callbacks WHERE expires_at < app_now() - $1 * interval '1 day' RETURNING 1) SELECT count(*) FROM p`, visibleDays)
}
