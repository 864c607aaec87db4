package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/triage"

	"github.com/lib/pq"
)

// CaseAction returns the id of the action that a case, open or closed, belongs
// to, or "".
func (db *DB) CaseAction(ctx context.Context, caseID string) (string, error) {
	if !strings.HasPrefix(caseID, "cas_") {
		return "", nil
	}
	var ids []string
	err := db.selectAll(ctx, &ids, `
SELECT id FROM actions WHERE case_id = $1
UNION ALL (SELECT id FROM actions WHERE refs @> ARRAY[$1] LIMIT 1) LIMIT 1`, caseID)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// Cases returns a page of cases, as the actions that they belong to, and the
// database clock.
func (db *DB) Cases(ctx context.Context, f triage.CaseFilter) ([]action.Action, time.Time, error) {
	w, order := cases(f), "coalesce(a.key_until, 'infinity'), a.case_since, a.id"
	if f.Tab == triage.TabSettled {
		order = "a.case_closed_at DESC, a.id DESC"
	}
	switch c := f.After; {
	case c == nil:
	case f.Tab == triage.TabSettled:
		w.add("(a.case_closed_at, a.id) < (?, ?)", c.At, c.ID)
	default:
		w.add("(coalesce(a.key_until, 'infinity'), a.case_since, a.id) > (coalesce(?::timestamptz, 'infinity'), ?, ?)", c.KeyUntil, c.At, c.ID)
	}
	w.args = append(w.args, f.Limit)
	return db.listed(ctx, fmt.Sprintf("SELECT a.id FROM actions a %s ORDER BY %s LIMIT $%d", w.String(), order, len(w.args)), w.args)
}

// CaseCount counts what a filter lets through, up to most.
func (db *DB) CaseCount(ctx context.Context, f triage.CaseFilter, most int) (int, error) {
	w := cases(f)
	w.args = append(w.args, most)
	var n int
	err := db.get(ctx, &n, fmt.Sprintf("SELECT count(*) FROM (SELECT FROM actions a %s LIMIT $%d) q", w.String(), len(w.args)), w.args...)
	return n, err
}

// CaseNews counts the open cases that a filter lets through and that came into
// its tab after a moment, up to most.
func (db *DB) CaseNews(ctx context.Context, f triage.CaseFilter, since time.Time, most int) (int, error) {
	w := cases(f)
	w.add("a.case_id IS NOT NULL AND a.case_moved_at > ?", since)
	w.args = append(w.args, most)
	var n int
	err := db.get(ctx, &n, fmt.Sprintf("SELECT count(*) FROM (SELECT FROM actions a %s LIMIT $%d) q", w.String(), len(w.args)), w.args...)
	return n, err
}

func cases(f triage.CaseFilter) *where {
	w := &where{conditions: []string{"a.case_id IS NOT NULL"}}
	switch f.Tab {
	case triage.TabPerson:
		w.conditions = []string{"a.needs_person"}
	case triage.TabSecond:
		w.conditions = []string{"a.case_pending"}
	case triage.TabAsking:
		w.conditions = append(w.conditions, "NOT a.needs_person", "NOT a.case_pending")
	case triage.TabSettled:
		w.conditions = []string{"a.case_closed_at IS NOT NULL"}
	}
	w.see(f.Viewer)
	if f.Tool != "" {
		w.add("a.tool = ?", f.Tool)
	}
	if f.Ref != "" {
		w.named(f.Ref)
	}
	if f.From != nil {
		w.add("a.case_since >= ?", *f.From)
	}
	if f.To != nil {
		w.add("a.case_since < ?", *f.To)
	}
	if len(f.Keys) > 0 {
		w.add("a.refs && ?", pq.StringArray(f.Keys))
	}
	return w
}

// CaseTools returns the names of the tools that have open cases which a viewer
// may see, up to most.
func (db *DB) CaseTools(ctx context.Context, viewer people.Viewer, most int) ([]string, error) {
	w := cases(triage.CaseFilter{Viewer: viewer})
	w.args = append(w.args, most)
	var names []string
	err := db.selectAll(ctx, &names, fmt.Sprintf("SELECT DISTINCT a.tool FROM actions a %s ORDER BY a.tool LIMIT $%d", w.String(), len(w.args)), w.args...)
	return names, err
}
