package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/approvals"
)

// pausedBy turns what the database says of a pause into a refusal.
func pausedBy(text string) error {
	var p struct {
		ID, Kind, Value, Reason, By string
		Since                       time.Time
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("reading a pause: %w", err)
	}
	since := p.Since.UTC().Format(time.RFC3339)
	return action.Refuse(action.Paused, fmt.Sprintf("The %s %s was paused by %s at %s: %s", p.Kind, p.Value, p.By, since, p.Reason)).Because(p.Kind).
		With("pause", p.ID).With("kind", p.Kind).With("value", p.Value).With("by", p.By).With("since", since).With("why", p.Reason)
}

// AddPause starts a pause. Whatever was let through before it is written when
// this returns. False when the same is paused already.
func (db *DB) AddPause(ctx context.Context, p approvals.Pause, by action.By) (bool, error) {
	data, err := json.Marshal(map[string]string{"kind": p.Kind, "value": p.Value})
	if err != nil {
		return false, fmt.Errorf("encoding the event: %w", err)
	}
	body, err := json.Marshal(map[string]string{"reason": p.Reason})
	if err != nil {
		return false, fmt.Errorf("encoding the event: %w", err)
	}
	return db.changed(ctx, `
WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock(4801, 2)),
n AS MATERIALIZED (SELECT app_now() AS at FROM l),
p AS (
    INSERT INTO pauses (id, kind, value, reason, by_name, started_at) SELECT $1, $2, $3, $4, $7, n.at FROM n
    ON CONFLICT DO NOTHING RETURNING id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT 'pause:' || p.id, 1, 'pause', 'paused', $5, $6, $7, $8, $9, '', '', n.at, $10 FROM p, n),
b AS (
    INSERT INTO bodies (subject, version, salt, content) SELECT 'pause:' || p.id, 1, $11, $12 FROM p)
SELECT (SELECT id FROM p) AS id, '' AS held`,
		p.ID, p.Kind, p.Value, p.Reason, by.Kind, by.ID, by.Name, by.Role, by.Method, string(data), salt(), body)
}

// EndPause ends a pause. False when there is none.
func (db *DB) EndPause(ctx context.Context, kind, value string, by action.By) (bool, error) {
	return db.changed(ctx, `
WITH p AS (
    UPDATE pauses SET ended_at = app_now() WHERE kind = $1 AND value = $2 AND ended_at IS NULL RETURNING id, ended_at),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT 'pause:' || p.id, 2, 'end', 'pause_ended', $3, $4, $5, $6, $7, '', '', p.ended_at, '{}' FROM p)
SELECT (SELECT id FROM p) AS id, '' AS held`, kind, value, by.Kind, by.ID, by.Name, by.Role, by.Method)
}

// Pauses returns what is paused now, and what was, newest first.
func (db *DB) Pauses(ctx context.Context, limit int) ([]approvals.Pause, error) {
	var pauses []approvals.Pause
	err := db.selectAll(ctx, &pauses, `
SELECT id, kind, value, reason, by_name, started_at, ended_at FROM pauses ORDER BY ended_at IS NOT NULL, started_at DESC LIMIT $1`, limit)
	return pauses, err
}

// OpenOfClient returns actions of a client that have not run, after an id.
func (db *DB) OpenOfClient(ctx context.Context, client, after string, limit int) ([]string, error) {
	var ids []string
	err := db.selectAll(ctx, &ids, `
SELECT id FROM actions WHERE client_id = $1 AND state IN ('draft', 'proposed', 'confirmed') AND id > $2 ORDER BY id LIMIT $3`, client, after, limit)
	return ids, err
}
