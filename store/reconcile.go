package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/triage"
)

// runRow is a reconciliation as it is stored.
type runRow struct {
	ID          string     `db:"id"`
	Op          string     `db:"op"`
	Version     int64      `db:"version"`
	Tool        string     `db:"tool"`
	ToolVersion int        `db:"tool_version"`
	From        time.Time  `db:"from_at"`
	To          time.Time  `db:"to_at"`
	Sweep       bool       `db:"sweep"`
	ByKind      string     `db:"by_kind"`
	ByID        string     `db:"by_id"`
	ByName      string     `db:"by_name"`
	State       string     `db:"state"`
	Cursor      string     `db:"cursor"`
	Pages       int64      `db:"pages"`
	Listed      int64      `db:"listed"`
	Tries       int        `db:"tries"`
	Problem     string     `db:"problem"`
	AskedAt     time.Time  `db:"asked_at"`
	StartedAt   *time.Time `db:"started_at"`
	ProgressAt  time.Time  `db:"progress_at"`
	OfferAt     time.Time  `db:"offer_at"`
	EndedAt     *time.Time `db:"ended_at"`
	JoinedAt    time.Time  `db:"joined_at"`
	JoinedID    string     `db:"joined_id"`
	Compared    string     `db:"compared"`
	Totals      string     `db:"totals"`
	Now         time.Time  `db:"now"`
}

const runColumns = `r.id, r.op, r.version, r.tool, r.tool_version, r.from_at, r.to_at, r.sweep, r.by_kind, r.by_id, r.by_name, r.state, r.cursor,
    r.pages, r.listed, r.tries, r.problem, r.asked_at, r.started_at, r.progress_at, r.offer_at, r.ended_at, r.joined_at, r.joined_id,
    r.compared, r.totals, (SELECT app_now()) AS now`

func (r runRow) run() (triage.Run, error) {
	run := triage.Run{ID: r.ID, Op: r.Op, Version: r.Version, Tool: r.Tool, ToolVersion: r.ToolVersion, From: r.From.UTC(), To: r.To.UTC(), Sweep: r.Sweep,
		By: action.By{Kind: r.ByKind, ID: r.ByID, Name: r.ByName}, State: triage.RunState(r.State), Cursor: r.Cursor, Pages: r.Pages, Listed: r.Listed,
		Tries: r.Tries, Problem: r.Problem, AskedAt: r.AskedAt.UTC(), StartedAt: r.StartedAt, ProgressAt: r.ProgressAt, OfferAt: r.OfferAt,
		EndedAt: r.EndedAt, JoinedAt: r.JoinedAt, JoinedID: r.JoinedID, Compared: r.Compared}
	if err := json.Unmarshal([]byte(r.Totals), &run.Totals); err != nil {
		return run, fmt.Errorf("reading the totals of %s: %w", r.ID, err)
	}
	return run, nil
}

func (db *DB) runs(ctx context.Context, query string, args ...any) ([]triage.Run, time.Time, error) {
	var rows []runRow
	if err := db.selectAll(ctx, &rows, `SELECT `+runColumns+` FROM reconciliations r `+query, args...); err != nil {
		return nil, time.Time{}, err
	}
	if len(rows) == 0 {
		now, err := db.Now(ctx)
		return nil, now, err
	}
	runs := make([]triage.Run, len(rows))
	for i, row := range rows {
		run, err := row.run()
		if err != nil {
			return nil, time.Time{}, err
		}
		runs[i] = run
	}
	return runs, rows[0].Now.UTC(), nil
}

// Run returns a reconciliation and the database clock. NotFound when there is none.
func (db *DB) Run(ctx context.Context, id string) (triage.Run, time.Time, error) {
	runs, now, err := db.runs(ctx, `WHERE r.id = $1`, id)
	if err == nil && len(runs) == 0 {
		err = triage.NoRun()
	}
	if err != nil {
		return triage.Run{}, now, err
	}
	return runs[0], now, nil
}

// OpenRuns returns the reconciliations that go on, oldest first, after one, and
// the database clock.
func (db *DB) OpenRuns(ctx context.Context, after triage.Run, limit int) ([]triage.Run, time.Time, error) {
	return db.runs(ctx, `WHERE r.ended_at IS NULL AND (r.asked_at, r.id) > ($1, $2) ORDER BY r.asked_at, r.id LIMIT $3`, after.AskedAt, after.ID, limit)
}

// Sweeps returns the latest sweep of a tool, the one that is done and reaches
// furthest, and the one that looked back furthest; zero where there is none.
func (db *DB) Sweeps(ctx context.Context, tool string) (latest, done, first triage.Run, err error) {
	for into, which := range map[*triage.Run]string{&latest: "ORDER BY r.asked_at DESC, r.id DESC", &done: "AND r.state = 'done' ORDER BY r.to_at DESC", &first: "ORDER BY r.from_at"} {
		runs, _, err := db.runs(ctx, `WHERE r.sweep AND r.tool = $1 `+which+` LIMIT 1`, tool)
		if err != nil {
			return latest, done, first, err
		}
		if len(runs) > 0 {
			*into = runs[0]
		}
	}
	return latest, done, first, nil
}

const addRunSQL = `
WITH n AS (SELECT app_now() AS at),
r AS (
    INSERT INTO reconciliations (id, op, version, tool, tool_version, from_at, to_at, sweep, by_kind, by_id, by_name, state, cursor,
        pages, listed, tries, problem, asked_at, progress_at, offer_at, joined_at, joined_id, compared, totals, staged)
    SELECT $1, $2, 1, $3, $4, $5, $6, $7, $8, $9, $10, 'waiting', '', 0, 0, 0, '', n.at, n.at, n.at, $5, '', '', '{}', true FROM n
    ON CONFLICT (op) DO NOTHING RETURNING id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT 'reconciliation:' || r.id, 1, 'ask', 'reconciliation_asked', $8, $9, $10, $11, $12, '', '', n.at, $13 FROM r, n)
SELECT coalesce((SELECT id FROM r), (SELECT id FROM reconciliations WHERE op = $2)) AS id, '' AS held`

// AddRun adds a reconciliation. The same op again returns the one it made.
func (db *DB) AddRun(ctx context.Context, r triage.Run) (triage.Run, error) {
	data, err := json.Marshal(map[string]any{"tool": r.Tool, "tool_version": r.ToolVersion, "from": r.From, "to": r.To, "sweep": r.Sweep})
	if err != nil {
		return triage.Run{}, fmt.Errorf("encoding the event: %w", err)
	}
	var w written
	add := func() error {
		return db.write(ctx, &w, addRunSQL, r.ID, r.Op, r.Tool, r.ToolVersion, r.From, r.To, r.Sweep, r.By.Kind, r.By.ID, r.By.Name, r.By.Role, r.By.Method, string(data))
	}
	if err = add(); err == nil && w.ID == nil { // made by the same request in the same moment: only in the view of the next statement
		err = add()
	}
	if err != nil {
		return triage.Run{}, err
	}
	db.pulse.ring()
	run, _, err := db.Run(ctx, *w.ID)
	return run, err
}

const saveRunSQL = `
WITH n AS (SELECT app_now() AS at),
r AS (
    UPDATE reconciliations SET version = version + 1, state = $3, cursor = $4, tries = $5, problem = $6, offer_at = $7, compared = $8, totals = $9,
        progress_at = CASE WHEN $5 > 0 THEN progress_at ELSE n.at END,
        ended_at = CASE WHEN $3 IN ('done', 'given_up') THEN n.at END
    FROM n WHERE reconciliations.id = $1 AND version = $2 RETURNING reconciliations.id, tool, pages),
d AS (
    INSERT INTO reconciliation_differences (run_id, key, class, tool, scope, action_id, case_id, digest, detail)
    SELECT r.id, f.key, f.class, r.tool, f.scope, f.action_id, f.case_id, f.digest, f.detail
    FROM r, json_to_recordset($10::json) AS f (key text, class text, scope text, action_id text, case_id text, digest text, detail text)
    ON CONFLICT (run_id, key) DO NOTHING),
p AS (
    INSERT INTO reconciliation_pages (run_id, page_id, number, hash, items, client_id, at)
    SELECT r.id, $12, r.pages + 1, $13, 0, $14, n.at FROM r, n WHERE $12 <> ''),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT 'reconciliation:' || r.id, (SELECT coalesce(max(version), 0) + 1 FROM events WHERE subject = 'reconciliation:' || $1),
        'end', 'reconciliation_ended', 'system', '', '', '', '', '', '', n.at, $11 FROM r, n WHERE $3 IN ('done', 'given_up'))
SELECT (SELECT id FROM r) AS id, '' AS held`

// foundRow is a difference as the statement above reads it.
type foundRow struct {
	Key      string `json:"key"`
	Class    string `json:"class"`
	Scope    string `json:"scope"`
	ActionID string `json:"action_id"`
	CaseID   string `json:"case_id"`
	Digest   string `json:"digest"`
	Detail   string `json:"detail"`
}

// SaveRun moves a reconciliation on by one version, with a page that was reported
// and does not count, unless it has no id. False when the version is not the one
// that it was read with.
func (db *DB) SaveRun(ctx context.Context, r triage.Run, found []triage.Difference, page triage.StoredPage) (bool, error) {
	totals, err := json.Marshal(r.Totals)
	if err != nil {
		return false, fmt.Errorf("encoding totals: %w", err)
	}
	rows := make([]foundRow, len(found))
	for i, d := range found {
		detail, err := json.Marshal(differenceDetail{ToolVersion: d.ToolVersion, Why: d.Why, Untold: d.Untold, Ours: d.Ours, Theirs: d.Theirs, Fields: d.Fields})
		if err != nil {
			return false, fmt.Errorf("encoding a difference: %w", err)
		}
		rows[i] = foundRow{d.Key, string(d.Class), d.Scope, d.ActionID, d.CaseID, d.Digest, string(detail)}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return false, fmt.Errorf("encoding differences: %w", err)
	}
	data, err := json.Marshal(map[string]any{"state": r.State, "totals": r.Totals, "problem": r.Problem})
	if err != nil {
		return false, fmt.Errorf("encoding the event: %w", err)
	}
	return db.changed(ctx, saveRunSQL, r.ID, r.Version, r.State, r.Cursor, r.Tries, r.Problem, r.OfferAt, r.Compared, string(totals), string(list), string(data),
		page.PageID, page.Hash, page.By.ID)
}
