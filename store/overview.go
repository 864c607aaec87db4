package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/triage"

	"github.com/lib/pq"
)

// WaitingProposals counts the proposals that wait and that a viewer may see,
// and those that expire within soon, among the most urgent there are.
func (db *DB) WaitingProposals(ctx context.Context, viewer people.Viewer, soon time.Duration) (w approvals.Waiting, err error) {
	var see where
	see.see(viewer)
	see.args = append(see.args, soon.Seconds())
	err = db.get(ctx, &w, fmt.Sprintf(`
WITH urgent AS MATERIALIZED (
    SELECT tool, scope, client_id, created_at, expires_at FROM actions
    WHERE state = 'proposed' AND expires_at > (SELECT app_now()) ORDER BY expires_at, id LIMIT %d + 1)
SELECT count(*) AS n, min(a.created_at) AS oldest, (SELECT count(*) FROM urgent) > %d AS more,
    count(*) FILTER (WHERE a.expires_at < (SELECT app_now()) + $%d * interval '1 second') AS expiring
FROM urgent a %s`, approvals.Looked, approvals.Looked, len(see.args), see.String()), see.args...)
	return capped(w), err
}

// WaitingConfirmed counts the approved actions that no executor has taken yet.
func (db *DB) WaitingConfirmed(ctx context.Context, viewer people.Viewer) (w approvals.Waiting, err error) {
	see := &where{conditions: []string{"a.work = 'execute'", "a.state = 'confirmed'", "a.due_at > (SELECT app_now())"}}
	see.see(viewer)
	err = db.get(ctx, &w, fmt.Sprintf(`
SELECT count(*) AS n, min(q.updated_at) AS oldest, count(*) > %d AS more, 0 AS expiring
FROM (SELECT a.updated_at FROM actions a %s ORDER BY a.id LIMIT %d + 1) q`, approvals.Looked, see.String(), approvals.Looked), see.args...)
	return capped(w), err
}

func capped(w approvals.Waiting) approvals.Waiting {
	w.N = min(w.N, approvals.Looked)
	return w
}

// CaseAges returns since when cases are open and what they wait for, the oldest
// first, at most triage.Looked and one more.
func (db *DB) CaseAges(ctx context.Context, viewer people.Viewer) ([]triage.CaseAge, error) {
	w := cases(triage.CaseFilter{Viewer: viewer})
	w.args = append(w.args, triage.Looked+1)
	var rows []triage.CaseAge
	err := db.selectAll(ctx, &rows, fmt.Sprintf(`
SELECT a.case_id, a.case_since, a.needs_person, a.case_pending FROM actions a %s ORDER BY a.case_since LIMIT $%d`, w.String(), len(w.args)), w.args...)
	return rows, err
}

// Pace returns how long people took to decide, of the newest proposals that a
// filter lets through.
func (db *DB) Pace(ctx context.Context, f approvals.PaceFilter) ([]approvals.Decided, error) {
	var w where
	w.see(f.Viewer)
	w.add("a.created_at >= ? AND a.id >= ?", f.From, idFrom(f.From))
	w.add("a.created_at < ? AND a.id < ?", f.To, idTo(f.To))
	var seconds []float64
	err := db.selectAll(ctx, &seconds, fmt.Sprintf(`
SELECT d.seconds FROM (SELECT a.id FROM actions a %s ORDER BY a.id DESC LIMIT %d) r, LATERAL (SELECT decided_in(r.id) AS seconds) d
WHERE d.seconds IS NOT NULL`, w.String(), approvals.Looked), w.args...)
	decided := make([]approvals.Decided, len(seconds))
	for i, s := range seconds {
		decided[i] = approvals.Decided{Took: time.Duration(s * float64(time.Second)), Nobody: s < 0}
	}
	return decided, err
}

// idFrom is an id that no action has which is much younger than a moment: ids
// begin with the clock of the process that made them.
func idFrom(at time.Time) string { return action.IDAt("act", at.Add(-24*time.Hour)) }

// idTo is an id that no action has which is much older than a moment.
func idTo(at time.Time) string { return action.IDAt("act", at.Add(24*time.Hour)) }

// tookIn limits to what a filter's Took says, among the newest of what the
// conditions so far let through.
func (w *where) tookIn(t approvals.Took) {
	inner := w.String()
	w.conditions = []string{fmt.Sprintf("a.id = ANY (ARRAY (SELECT a.id FROM actions a %s ORDER BY a.id DESC LIMIT %d))", inner, approvals.Looked)}
	switch {
	case t.Nobody:
		w.add("decided_in(a.id) < 0")
	case t.To == 0:
		w.add("decided_in(a.id) >= ?", t.From.Seconds())
	default:
		w.add("decided_in(a.id) >= ?", t.From.Seconds())
		w.add("decided_in(a.id) < ?", t.To.Seconds())
	}
}

// RunningPauses returns what is paused now, of what a viewer may see, newest first.
func (db *DB) RunningPauses(ctx context.Context, viewer people.Viewer, limit int) ([]approvals.Pause, error) {
	all := viewer.All || viewer.Limited && len(viewer.Tools) == 0 && len(viewer.Scopes) == 0
	var pauses []approvals.Pause
	err := db.selectAll(ctx, &pauses, `
SELECT p.id, p.kind, coalesce(c.name, p.value) AS value, p.reason, p.by_name, p.started_at, p.ended_at
FROM pauses p LEFT JOIN clients c ON p.kind = 'client' AND c.id = p.value
WHERE p.ended_at IS NULL AND ($1 OR p.kind = 'tool' AND (p.value = ANY ($2) OR cardinality($2) = 0)
    OR p.kind = 'scope' AND (p.value = ANY ($3) OR cardinality($3) = 0))
ORDER BY p.started_at DESC, p.id LIMIT $4`, all, texts(viewer.Tools), texts(viewer.Scopes), limit)
	return pauses, err
}

func texts(s []string) pq.StringArray { return append(pq.StringArray{}, s...) }

// NoteExecutor writes down what an executor process says of itself.
func (db *DB) NoteExecutor(ctx context.Context, e approvals.Executor) error {
	systems, err := e.SystemsJSON()
	if err != nil {
		return err
	}
	_, err = db.saved(ctx, `
INSERT INTO executors (client_id, instance, name, tools, systems, seen_at) VALUES ($1, $2, $3, $4, $5, app_now())
ON CONFLICT (client_id, instance) DO UPDATE SET name = excluded.name, tools = excluded.tools, systems = excluded.systems, seen_at = excluded.seen_at
RETURNING instance AS id`, e.ClientID, e.Instance, e.Name, texts(e.Tools), systems)
	return err
}

// Executors returns what executor processes said of themselves within a time,
// those heard of last first. A viewer with limits sees those that serve one of
// their tools.
func (db *DB) Executors(ctx context.Context, viewer people.Viewer, within time.Duration, limit int) ([]approvals.Executor, error) {
	var rows []struct {
		ClientID string         `db:"client_id"`
		Instance string         `db:"instance"`
		Name     string         `db:"name"`
		Tools    pq.StringArray `db:"tools"`
		Systems  string         `db:"systems"`
		SeenAt   time.Time      `db:"seen_at"`
	}
	err := db.selectAll(ctx, &rows, `
SELECT e.client_id, e.instance, e.name, e.tools, e.systems, e.seen_at FROM executors e
WHERE e.seen_at > (SELECT app_now()) - $1 * interval '1 second'
  AND ($2 OR EXISTS (SELECT FROM unnest(e.tools) AS served, unnest($3::text[]) AS mine
          WHERE served = mine OR right(served, 1) = '*' AND starts_with(mine, left(served, -1))))
ORDER BY e.seen_at DESC, e.instance LIMIT $4`, within.Seconds(), viewer.All || viewer.Limited && len(viewer.Tools) == 0, texts(viewer.Tools), limit)
	found := make([]approvals.Executor, len(rows))
	for i, r := range rows {
		found[i] = approvals.Executor{ClientID: r.ClientID, Instance: r.Instance, Name: r.Name, Tools: r.Tools, SeenAt: r.SeenAt.UTC()}
		if err := json.Unmarshal([]byte(r.Systems), &found[i].Systems); err != nil {
			return nil, fmt.Errorf("reading the systems of executor %s: %w", r.Instance, err)
		}
	}
	return found, err
}

// ExecutorSeen returns when a program that may execute was last heard of, to the
// minute; nil when never.
func (db *DB) ExecutorSeen(ctx context.Context) (*time.Time, error) {
	var seen *time.Time
	err := db.get(ctx, &seen, `
SELECT greatest(
    (SELECT max(k.last_seen_at) FROM client_keys k JOIN clients c ON c.id = k.client_id WHERE 'executor' = ANY (c.roles)),
    (SELECT max(seen_at) FROM executors))`)
	return seen, err
}

// TidyExecutors forgets executor processes that were not heard of for a day.
func (db *DB) TidyExecutors(ctx context.Context) error {
	var gone int
	return db.write(ctx, &gone, `
WITH d AS (DELETE FROM executors WHERE seen_at < app_now() - interval '1 day' RETURNING 1) SELECT count(*) FROM d`)
}

// Figures counts what is open, by partial indexes of it.
func (db *DB) Figures(ctx context.Context) (f approvals.Figures, err error) {
	err = db.get(ctx, &f, `
WITH t AS (SELECT app_now() AS now)
SELECT p.n AS "proposed.n", p.oldest AS "proposed.oldest", c.n AS "confirmed.n", c.oldest AS "confirmed.oldest",
    k.person AS need_person, k.second AS need_second, k.asking, k.oldest AS oldest_case, h.n AS pauses, t.now
FROM t,
    (SELECT count(*) AS n, (SELECT o.created_at FROM actions o WHERE o.id = min(a.id)) AS oldest
       FROM actions a WHERE a.state = 'proposed' AND a.expires_at > (SELECT now FROM t)) p,
    (SELECT count(*) AS n, min(updated_at) AS oldest FROM actions WHERE work = 'execute' AND state = 'confirmed' AND due_at > (SELECT now FROM t)) c,
    (SELECT count(*) FILTER (WHERE needs_person) AS person, count(*) FILTER (WHERE case_pending) AS second,
            count(*) FILTER (WHERE NOT needs_person AND NOT case_pending) AS asking, min(case_since) AS oldest
       FROM actions WHERE case_id IS NOT NULL) k,
    (SELECT count(*) AS n FROM pauses WHERE ended_at IS NULL) h`)
	return f, err
}
