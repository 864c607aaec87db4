package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
	"countersign/triage"

	"github.com/lib/pq"
)

// differenceDetail is what only people read of a difference.
type differenceDetail struct {
	ToolVersion int                    `json:"tool_version"`
	Why         string                 `json:"why"`
	Untold      string                 `json:"untold,omitempty"`
	Ours        action.State           `json:"ours,omitempty"`
	Theirs      *contract.Listed       `json:"theirs,omitempty"`
	Fields      []triage.FieldCompared `json:"fields,omitempty"`
}

// Runs returns reconciliations that a viewer may see, newest first, and the
// database clock.
func (db *DB) Runs(ctx context.Context, f triage.RunFilter) ([]triage.Run, time.Time, error) {
	var w where
	seeTool(&w, "r.tool", f.Viewer)
	if f.ID != "" {
		w.add("r.id = ?", f.ID)
	}
	if f.Before != "" {
		w.add("r.id < ?", f.Before)
	}
	w.args = append(w.args, f.Limit)
	return db.runs(ctx, fmt.Sprintf("%s ORDER BY r.id DESC LIMIT $%d", w.String(), len(w.args)), w.args...)
}

// seeTool limits what belongs to whole tools, such as the figures of a
// reconciliation, to a viewer's tools. Who is limited to scopes sees none of it.
func seeTool(w *where, column string, v people.Viewer) {
	switch whole := v.Limited && len(v.Scopes) == 0; {
	case v.All, whole && len(v.Tools) == 0:
	case whole:
		w.add(column+" = ANY (?)", pq.StringArray(v.Tools))
	default:
		w.add("false")
	}
}

type differenceRow struct {
	RunID         string     `db:"run_id"`
	Key           string     `db:"key"`
	Class         string     `db:"class"`
	Tool          string     `db:"tool"`
	Scope         string     `db:"scope"`
	ActionID      string     `db:"action_id"`
	CaseID        string     `db:"case_id"`
	CaseOpen      bool       `db:"case_open"`
	Digest        string     `db:"digest"`
	Detail        string     `db:"detail"`
	ExplainedAt   *time.Time `db:"explained_at"`
	ExplainedBy   *string    `db:"explained_by"`
	ExplainedName *string    `db:"explained_name"`
	ExplainedData *string    `db:"explained_data"`
	ExplainedBody []byte     `db:"explained_body"`
}

func (r differenceRow) difference() (triage.Difference, error) {
	d := triage.Difference{RunID: r.RunID, Tool: r.Tool, Key: r.Key, Class: triage.Class(r.Class), Digest: r.Digest, Scope: r.Scope, ActionID: r.ActionID,
		CaseID: r.CaseID, CaseOpen: r.CaseOpen}
	var detail differenceDetail
	if err := json.Unmarshal([]byte(r.Detail), &detail); err != nil {
		return d, fmt.Errorf("reading the difference about %s: %w", r.Key, err)
	}
	d.ToolVersion, d.Why, d.Untold, d.Ours, d.Theirs, d.Fields = detail.ToolVersion, detail.Why, detail.Untold, detail.Ours, detail.Theirs, detail.Fields
	if r.ExplainedAt != nil {
		var said explained
		var content struct{ Note string }
		if err := json.Unmarshal([]byte(*r.ExplainedData), &said); err != nil {
			return d, fmt.Errorf("reading what was said of %s: %w", r.Key, err)
		}
		if err := json.Unmarshal(r.ExplainedBody, &content); err != nil && len(r.ExplainedBody) > 0 {
			return d, fmt.Errorf("reading what was said of %s: %w", r.Key, err)
		}
		d.Explained = &triage.Explanation{By: action.By{Kind: action.ByPerson, ID: *r.ExplainedBy, Name: *r.ExplainedName}, At: r.ExplainedAt.UTC(),
			Note: content.Note, RunID: said.Run}
	}
	return d, nil
}

// Differences returns what a reconciliation found, by key, as far as a viewer
// may see it.
func (db *DB) Differences(ctx context.Context, f triage.DifferenceFilter) ([]triage.Difference, error) {
	var w where
	w.add("d.run_id = ?", f.RunID)
	seeTool(&w, "d.tool", f.Viewer)
	if f.Class != "" {
		w.add("d.class = ?", f.Class)
	} else if f.Key == "" {
		w.add("d.class IN ('mismatch', 'ours_only', 'theirs_only')")
	}
	if f.Key != "" {
		w.add("d.key = ?", f.Key)
	}
	w.add("d.key > ?", f.After)
	w.args = append(w.args, f.Limit)
	var rows []differenceRow
	err := db.selectAll(ctx, &rows, fmt.Sprintf(`
SELECT d.run_id, d.key, d.class, d.tool, d.scope, d.action_id, d.case_id, d.digest, d.detail,
    e.at AS explained_at, e.by_id AS explained_by, e.by_name AS explained_name, e.data AS explained_data, e.content AS explained_body,
    coalesce(a.case_id = d.case_id, false) AS case_open
FROM reconciliation_differences d LEFT JOIN actions a ON a.id = d.action_id AND d.case_id <> ''
LEFT JOIN LATERAL (
    SELECT e.at, e.by_id, e.by_name, e.data, (SELECT b.content FROM bodies b WHERE b.subject = e.subject AND b.version = e.version) AS content
    FROM events e WHERE e.subject = difference_subject(d.tool, d.key, d.digest) COLLATE "default" AND e.version = 1 LIMIT 1) e ON true
%s ORDER BY d.key LIMIT $%d`, w.String(), len(w.args)), w.args...)
	if err != nil {
		return nil, err
	}
	found := make([]triage.Difference, len(rows))
	for i, row := range rows {
		if found[i], err = row.difference(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

const explainSQL = `
WITH e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT difference_subject(d.tool, d.key, d.digest), 1, 'explain', 'difference_explained', 'person', $3, $4, $5, $6, '', '', app_now(), $7
    FROM reconciliation_differences d WHERE d.run_id = $1 AND d.key = $2
    ON CONFLICT DO NOTHING RETURNING subject, version),
b AS (
    INSERT INTO bodies (subject, version, salt, content) SELECT e.subject, e.version, $8, $9 FROM e)
SELECT (SELECT subject FROM e) AS id, '' AS held`

// explained is what the event of an explanation says beside its note.
type explained struct {
	Run    string       `json:"run"` // where it was said
	Key    string       `json:"key"`
	Class  triage.Class `json:"class"`
	Digest string       `json:"digest"`
}

// Explain records what a person says of a difference, once, and returns what
// stands.
func (db *DB) Explain(ctx context.Context, d triage.Difference, e triage.Explanation) (triage.Explanation, error) {
	data, err := json.Marshal(explained{Run: d.RunID, Key: d.Key, Class: d.Class, Digest: d.Digest})
	if err != nil {
		return e, fmt.Errorf("encoding the event: %w", err)
	}
	body, err := json.Marshal(map[string]string{"note": e.Note})
	if err != nil {
		return e, fmt.Errorf("encoding the event: %w", err)
	}
	done, err := db.changed(ctx, explainSQL, d.RunID, d.Key, e.By.ID, e.By.Name, e.By.Role, e.By.Method, string(data), salt(), body)
	if err != nil || done {
		return e, err
	}
	found, err := db.Differences(ctx, triage.DifferenceFilter{Viewer: people.Viewer{All: true}, RunID: d.RunID, Key: d.Key, Limit: 1})
	switch {
	case err != nil:
		return e, err
	case len(found) == 0:
		return e, triage.NoRun()
	case found[0].Explained == nil:
		return e, action.Refuse(action.OutcomeUnknown, "Somebody else explains this difference in this moment. Send the same again.").Because("database")
	}
	return *found[0].Explained, nil
}
