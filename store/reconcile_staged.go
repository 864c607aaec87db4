package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/triage"

	"github.com/lib/pq"
)

// Page returns the hash of a page that a reconciliation has, or "".
func (db *DB) Page(ctx context.Context, runID, pageID string) (string, error) {
	var hashes []string
	err := db.selectAll(ctx, &hashes, `SELECT p.hash FROM reconciliation_pages p WHERE p.run_id = $1 AND p.page_id = $2`, runID, pageID)
	if err != nil || len(hashes) == 0 {
		return "", err
	}
	return hashes[0], nil
}

// listerSilence is how long an executor that lists a run may be silent before
// another one is asked to go on.
const listerSilence = 30 * time.Second

const addPageSQL = `
WITH n AS (SELECT app_now() AS at),
r AS (
    UPDATE reconciliations SET version = version + 1, state = CASE WHEN $4 = '' THEN 'joining' ELSE 'listing' END, cursor = $4,
        pages = pages + 1, listed = listed + $5, tries = 0, problem = '', started_at = coalesce(started_at, n.at), progress_at = n.at,
        offer_at = n.at + $6 * interval '1 millisecond'
    FROM n WHERE reconciliations.id = $1 AND state IN ('waiting', 'listing') AND cursor = $3 RETURNING reconciliations.id, pages),
p AS (
    INSERT INTO reconciliation_pages (run_id, page_id, number, hash, items, client_id, at)
    SELECT r.id, $2, r.pages, $7, $5, $8, n.at FROM r, n),
i AS (
    INSERT INTO reconciliation_staged AS s (run_id, key, theirs, twice)
    SELECT r.id, t.key, t.theirs, t.twice FROM r, unnest($9::text[], $10::text[], $11::boolean[]) AS t (key, theirs, twice)
    ON CONFLICT (run_id, key) DO UPDATE SET theirs = excluded.theirs, twice = s.twice OR excluded.twice
        OR s.theirs <> excluded.theirs AND s.theirs::json ->> 'outcome' = excluded.theirs::json ->> 'outcome')
SELECT (SELECT id FROM r) AS id, '' AS held`

// AddPage lays a page of a business system's list out for the comparison. False
// when the run does not wait for the page with this cursor.
func (db *DB) AddPage(ctx context.Context, p triage.StoredPage) (bool, error) {
	var keys, theirs pq.StringArray
	var twice pq.BoolArray
	at := map[string]int{}
	for _, l := range p.Items {
		raw, err := json.Marshal(l)
		if err != nil {
			return false, fmt.Errorf("encoding a listed operation: %w", err)
		}
		if i, known := at[l.Key]; known {
			twice[i] = twice[i] || theirs[i] != string(raw)
			theirs[i] = string(raw)
			continue
		}
		at[l.Key] = len(keys)
		keys, theirs, twice = append(keys, l.Key), append(theirs, string(raw)), append(twice, false)
	}
	done, err := db.changed(ctx, addPageSQL, p.RunID, p.PageID, p.Cursor, p.Next, len(p.Items), listerSilence.Milliseconds(), p.Hash, p.By.ID, keys, theirs, twice)
	if done && p.Next != "" {
		return done, err
	}
	db.pulse.ring()
	return done, err
}

const joinOursSQL = `
WITH b AS MATERIALIZED (
    SELECT e.at, e.subject FROM events e
    WHERE e.kind = 'attempted' AND e.at >= $3 AND e.at < $4 AND (e.at, e.subject) > ($5, $6)
    ORDER BY e.at, e.subject LIMIT $7),
r AS (
    UPDATE reconciliations SET version = version + 1, progress_at = app_now(), joined_at = coalesce(l.at, joined_at), joined_id = coalesce(l.subject, joined_id),
        state = CASE WHEN (SELECT count(*) FROM b) < $7 THEN 'comparing' ELSE 'joining' END
    FROM (SELECT 1) one LEFT JOIN (SELECT b.at, b.subject FROM b ORDER BY b.at DESC, b.subject DESC LIMIT 1) l ON true
    WHERE reconciliations.id = $1 AND version = $2 AND state = 'joining' RETURNING reconciliations.id, tool),
o AS (
    INSERT INTO reconciliation_staged AS s (run_id, key, action_id, sent_at)
    SELECT r.id, a.refs[3], a.id, max(b.at) FROM r, b JOIN actions a ON a.id = b.subject WHERE a.tool = r.tool GROUP BY r.id, a.refs[3], a.id
    ON CONFLICT (run_id, key) DO UPDATE SET action_id = excluded.action_id, sent_at = greatest(s.sent_at, excluded.sent_at))
SELECT (SELECT id FROM r) AS id, '' AS held`

// JoinOurs lays some more of our records beside those of the business system:
// the actions of the run's tool that were attempted in its window.
func (db *DB) JoinOurs(ctx context.Context, r triage.Run, limit int) error {
	_, err := db.changed(ctx, joinOursSQL, r.ID, r.Version, r.From, r.To, r.JoinedAt, r.JoinedID, limit)
	return err
}

// joinedRow is one operation with both sides. Whatever is not staged as ours may
// still be: attempted at another time, or never.
type joinedRow struct {
	Key         string     `db:"key"`
	Theirs      *string    `db:"theirs"`
	Twice       bool       `db:"twice"`
	Sent        *time.Time `db:"sent_at"`
	Action      *string    `db:"action_id"`
	OwnKey      *string    `db:"own_key"`
	Tool        *string    `db:"tool"`
	ToolVersion *int       `db:"tool_version"`
	Scope       *string    `db:"scope"`
	State       *string    `db:"state"`
	Content     []byte     `db:"content"`
}

const joinedSQL = `
SELECT s.key, s.theirs, s.twice, s.sent_at, a.id AS action_id, a.refs[3] AS own_key, a.tool, a.tool_version, a.scope, a.state, b.content
FROM (SELECT t.key, t.theirs, t.twice, t.sent_at, t.action_id FROM reconciliation_staged t WHERE t.run_id = $1 AND t.key > $2 ORDER BY t.key LIMIT $3) s
LEFT JOIN LATERAL (
    SELECT s.action_id AS id WHERE s.action_id IS NOT NULL
    UNION ALL (
        SELECT k.id FROM actions k WHERE s.action_id IS NULL AND s.key LIKE 'exk\_%'
        AND k.refs @> ARRAY[split_part(s.key, ':', 1)] AND k.refs[3] = split_part(s.key, ':', 1) LIMIT 1)) o ON true
LEFT JOIN actions a ON a.id = o.id
LEFT JOIN bodies b ON b.subject = a.id AND b.version = a.content_version
ORDER BY s.key`

// Joined returns the operations of a run after the last compared, by key.
func (db *DB) Joined(ctx context.Context, r triage.Run, limit int) ([]triage.Joined, error) {
	var rows []joinedRow
	if err := db.selectAll(ctx, &rows, joinedSQL, r.ID, r.Compared, limit); err != nil {
		return nil, err
	}
	all := make([]triage.Joined, len(rows))
	for i, row := range rows {
		j := triage.Joined{Key: row.Key, Twice: row.Twice, InWindow: row.Sent != nil}
		if row.Theirs != nil {
			j.Theirs = &contract.Listed{}
			if err := json.Unmarshal([]byte(*row.Theirs), j.Theirs); err != nil {
				return nil, fmt.Errorf("reading a listed operation: %w", err)
			}
		}
		if row.Sent != nil {
			j.Sent = *row.Sent
		}
		if row.Action != nil {
			j.ActionID, j.OwnKey, j.Tool, j.ToolVersion, j.Scope, j.State = *row.Action, *row.OwnKey, *row.Tool, *row.ToolVersion, *row.Scope, action.State(*row.State)
			var content struct {
				Payload json.RawMessage `json:"payload"`
			}
			if len(row.Content) > 0 {
				if err := json.Unmarshal(row.Content, &content); err != nil {
					return nil, fmt.Errorf("reading what was asked for in %s: %w", j.ActionID, err)
				}
			}
			j.Payload = content.Payload
		}
		all[i] = j
	}
	return all, nil
}

// DropStaged removes what runs that are over were compared with, up to a number
// of rows, of one run at a time.
func (db *DB) DropStaged(ctx context.Context, limit int) error {
	var left int
	return db.write(ctx, &left, `
WITH r AS (SELECT id FROM reconciliations WHERE staged AND ended_at IS NOT NULL ORDER BY id LIMIT 1),
d AS (
    DELETE FROM reconciliation_staged s USING r
    WHERE s.run_id = r.id AND s.key IN (SELECT k.key FROM reconciliation_staged k WHERE k.run_id = r.id ORDER BY k.key LIMIT $1) RETURNING 1),
u AS (
    UPDATE reconciliations SET staged = false FROM r WHERE reconciliations.id = r.id AND (SELECT count(*) FROM d) < $1 RETURNING 1)
SELECT count(*) FROM u`, limit)
}
