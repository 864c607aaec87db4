package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
)

// ActiveTool returns the newest version of a tool. It is false when there is
// no such tool.
func (db *DB) ActiveTool(ctx context.Context, name string) (rule.ToolVersion, bool, error) {
	return db.tool(ctx, `
SELECT v.name, v.version, v.source, v.created_at, t.retired_at IS NULL AS active, app_now() AS now
FROM tools t JOIN tool_versions v ON v.name = t.name AND v.version = t.version WHERE t.name = $1`, name)
}

// Tool returns one version of a tool. It is false when there is none.
func (db *DB) Tool(ctx context.Context, name string, version int) (rule.ToolVersion, bool, error) {
	return db.tool(ctx, `
SELECT v.name, v.version, v.source, v.created_at, (t.retired_at IS NULL AND t.version = v.version) AS active, app_now() AS now
FROM tools t JOIN tool_versions v ON v.name = t.name WHERE v.name = $1 AND v.version = $2`, name, version)
}

func (db *DB) tool(ctx context.Context, query string, args ...any) (rule.ToolVersion, bool, error) {
	var rows []rule.ToolVersion
	if err := db.selectAll(ctx, &rows, query, args...); err != nil || len(rows) == 0 {
		return rule.ToolVersion{}, false, err
	}
	return rows[0], true, nil
}

// Tools returns the newest version of every tool by name, after a name.
func (db *DB) Tools(ctx context.Context, after string, limit int) ([]rule.ToolVersion, error) {
	var rows []rule.ToolVersion
	err := db.selectAll(ctx, &rows, `
SELECT v.name, v.version, v.source, v.created_at, t.retired_at IS NULL AS active, app_now() AS now
FROM tools t JOIN tool_versions v ON v.name = t.name AND v.version = t.version
WHERE t.name > $1 ORDER BY t.name LIMIT $2`, after, limit)
	return rows, err
}

// ToolVersions returns all versions of a tool, newest first.
func (db *DB) ToolVersions(ctx context.Context, name string) ([]rule.ToolVersion, error) {
	var rows []rule.ToolVersion
	err := db.selectAll(ctx, &rows, `
SELECT v.name, v.version, v.source, v.created_at, (t.retired_at IS NULL AND t.version = v.version) AS active, app_now() AS now
FROM tools t JOIN tool_versions v ON v.name = t.name WHERE v.name = $1 ORDER BY v.version DESC`, name)
	return rows, err
}

const saveToolSQL = `
WITH n AS (SELECT app_now() AS at),
t AS (
    INSERT INTO tools (name, version) SELECT $1, $2 FROM n WHERE $2 = 1
    ON CONFLICT (name) DO NOTHING RETURNING name),
u AS (
    UPDATE tools SET version = $2, retired_at = NULL WHERE name = $1 AND version = $2 - 1 RETURNING name),
v AS (
    INSERT INTO tool_versions (name, version, source, created_at)
    SELECT c.name, $2, $3, n.at FROM (SELECT name FROM t UNION ALL SELECT name FROM u) c, n RETURNING name),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT 'tool:' || v.name, (SELECT coalesce(max(version), 0) + 1 FROM events WHERE subject = 'tool:' || $1),
        $4, 'tool_saved', $5, $6, $7, $8, $9, '', '', n.at, $10 FROM v, n)
SELECT (SELECT name FROM v) AS id, '' AS held`

// SaveTool stores the next version of a tool and makes it the active one.
// False means that somebody else stored a version meanwhile.
func (db *DB) SaveTool(ctx context.Context, v rule.ToolVersion, by action.By, op string) (bool, error) {
	data, err := json.Marshal(map[string]any{"version": v.Version, "contract_hash": action.PayloadHash(v.Source)})
	if err != nil {
		return false, fmt.Errorf("encoding the event: %w", err)
	}
	return db.changed(ctx, saveToolSQL, v.Name, v.Version, v.Source, op, by.Kind, by.ID, by.Name, by.Role, by.Method, string(data))
}

const retireToolSQL = `
WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock(4801, 2)),
n AS MATERIALIZED (SELECT app_now() AS at FROM l),
u AS (
    UPDATE tools SET retired_at = n.at FROM n WHERE name = $1 AND version = $2 AND retired_at IS NULL RETURNING name),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT 'tool:' || u.name, (SELECT coalesce(max(version), 0) + 1 FROM events WHERE subject = 'tool:' || $1),
        $3, 'tool_retired', $4, $5, $6, $7, $8, '', '', n.at, $9 FROM u, n)
SELECT (SELECT name FROM u) AS id, '' AS held`

// RetireTool takes a tool out of use. Whatever was proposed with it before is
// written when this returns. False means that it was not in use.
func (db *DB) RetireTool(ctx context.Context, name string, version int, openActions string, by action.By, op string) (bool, error) {
	data, err := json.Marshal(map[string]any{"version": version, "open_actions": openActions})
	if err != nil {
		return false, fmt.Errorf("encoding the event: %w", err)
	}
	return db.changed(ctx, retireToolSQL, name, version, op, by.Kind, by.ID, by.Name, by.Role, by.Method, string(data))
}

// changed runs a statement that answers with an id when it wrote something. A
// race for the same event number counts as nothing written.
func (db *DB) changed(ctx context.Context, query string, args ...any) (bool, error) {
	var w written
	err := db.write(ctx, &w, query, args...)
	if constraint(err) != "" {
		return false, nil
	}
	if errors.Is(err, action.ErrLost) {
		return false, unreachable(err)
	}
	return w.ID != nil, err
}

// OpenOf returns actions of a tool that have not run, after an id.
func (db *DB) OpenOf(ctx context.Context, tool, after string, limit int) ([]string, error) {
	var ids []string
	err := db.selectAll(ctx, &ids, `
SELECT id FROM actions WHERE tool = $1 AND state IN ('draft', 'proposed', 'confirmed') AND id > $2 ORDER BY id LIMIT $3`, tool, after, limit)
	return ids, err
}

// SigningKeys returns all keys that sign confirmations, oldest first.
func (db *DB) SigningKeys(ctx context.Context) ([]approvals.SigningKey, error) {
	var keys []approvals.SigningKey
	err := db.selectAll(ctx, &keys, `SELECT kid, public_key, sealed, active_from FROM signing_keys ORDER BY active_from, kid`)
	return keys, err
}

// AddSigningKey stores a key that becomes active after a delay. Without a
// delay it is stored only as the first one.
func (db *DB) AddSigningKey(ctx context.Context, k approvals.SigningKey, delay time.Duration) error {
	var w written
	return db.write(ctx, &w, `
WITH k AS (
    INSERT INTO signing_keys (kid, public_key, sealed, active_from, first)
    VALUES ($1, $2, $3, app_now() + $4 * interval '1 second', $4 = 0)
    ON CONFLICT DO NOTHING RETURNING kid)
SELECT (SELECT kid FROM k) AS id, '' AS held`, k.ID, k.Public, k.Sealed, delay.Seconds())
}
