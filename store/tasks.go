package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
)

// spends is the look at the budget of an action's task that belongs to a
// transition. What was sent, and finding out what came of it, no budget stops.
func spends(t action.Transition) approvals.TaskLook { return lookAt(t.Next, t.Event.Kind) }

// lookAt is the look that belongs to an event of a kind.
func lookAt(a action.Action, kind action.Kind) approvals.TaskLook {
	if a.TaskID == "" {
		return approvals.LookNothing
	}
	switch kind {
	case action.KindDrafted, action.KindRevised:
		return approvals.LookOpen
	case action.KindProposed, action.KindSubmitted:
		if a.Terms.Write {
			return approvals.LookWrite
		}
		return approvals.LookRead
	case action.KindClaimed:
		return approvals.LookRun
	case action.KindAttempted:
		if a.Executions() == 1 { // this one
			return approvals.LookRun
		}
	case action.KindRetried:
		wanted := a.CaseID() != "" && a.Case.SendAgain // by a person, whom no budget of a program stops
		if a.Terms.Write && !wanted && a.StepExecutions(a.CurrentStep()) > 0 {
			return approvals.LookRetry
		}
	}
	return approvals.LookNothing
}

// exhausted turns what the database says of a budget into a refusal.
func exhausted(text string) error {
	var b struct {
		Task  string
		Limit approvals.Limit
	}
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return fmt.Errorf("reading a budget: %w", err)
	}
	return approvals.Exhausted(b.Task, b.Limit)
}

const insertTaskSQL = `
WITH k AS (
    INSERT INTO tasks (id, version, state, create_op, client_id, created_at, reached, ends_at, max_reads, max_writes, reads)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT DO NOTHING
    RETURNING id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT k.id, $2, $4, $12, $13, $5, $14, $15, $16, $17, $3, $6, $18 FROM k),
b AS (
    INSERT INTO bodies (subject, version, salt, content) SELECT k.id, $2, $19, $20 FROM k WHERE $20::bytea IS NOT NULL)
SELECT (SELECT id FROM k) AS id, '' AS held`

const updateTaskSQL = `
WITH r AS MATERIALIZED (
    SELECT p.id FROM persons p JOIN unnest($24::text[], $25::bigint[]) AS w (id, version) ON p.id = w.id
    WHERE p.version = w.version FOR SHARE OF p),
h AS MATERIALIZED (
    SELECT hold_task($18, $1, $19, $20) AS held WHERE cardinality($24::text[]) = 0 OR (SELECT count(*) FROM r) = cardinality($24::text[])),
k AS (
    UPDATE tasks SET version = $2, state = $3, reached = $4, ends_at = $5, max_reads = $6, max_writes = $7, reads = $8
    FROM h WHERE h.held = '' AND tasks.id = $1 AND tasks.version = $2 - 1
    RETURNING tasks.id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT k.id, $2, $9, $10, $11, $12, $13, $14, $15, $16, $3, $17, $21 FROM k),
b AS (
    INSERT INTO bodies (subject, version, salt, content) SELECT k.id, $2, $22, $23 FROM k WHERE $23::bytea IS NOT NULL)
SELECT (SELECT id FROM k) AS id, coalesce((SELECT held FROM h), '') AS held`

// SaveTask writes a task's row and event in one statement, under the task's lock,
// so that what is proposed meanwhile was let through before or sees it. False
// means that the version, or that of somebody it rests on, moved, or that the op opened a task before.
// BudgetExhausted when the reads are more than is left.
func (db *DB) SaveTask(ctx context.Context, c approvals.TaskChange) (bool, error) {
	k, e := c.Task, c.Event
	var w written
	var err error
	if k.Version == 1 {
		err = db.write(ctx, &w, insertTaskSQL, k.ID, k.Version, k.State, e.Op, k.Client.ID, k.CreatedAt, k.Reached, k.EndsAt,
			k.Limits.Reads, k.Limits.Writes, k.Spent.Reads, e.Kind, e.By.Kind, e.By.Name, e.By.Role, e.By.Method, e.From, string(e.Data), salt(), nullBytes(e.Body))
	} else {
		look, on := approvals.LookLock, restsOn(c.Rests)
		if c.Reads > 0 {
			look = approvals.LookRead
		}
		err = db.write(ctx, &w, updateTaskSQL, k.ID, k.Version, k.State, k.Reached, k.EndsAt, k.Limits.Reads, k.Limits.Writes, k.Spent.Reads,
			e.Op, e.Kind, e.By.Kind, e.By.ID, e.By.Name, e.By.Role, e.By.Method, e.From, e.At, look, k.Client.ID, c.Reads,
			string(e.Data), salt(), nullBytes(e.Body), on.people, on.versions)
	}
	if err != nil {
		return false, err
	}
	if w.ID != nil {
		db.pulse.ring()
	}
	return w.ID != nil, heldUp(w.Held)
}

// FindTask returns the id of the task that an op opened, or "".
func (db *DB) FindTask(ctx context.Context, op string) (string, error) {
	var ids []string
	if err := db.selectAll(ctx, &ids, `SELECT id FROM tasks WHERE create_op = $1`, op); err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// TaskLimit returns the limit of a client's task that stands in the way of n
// more, or "".
func (db *DB) TaskLimit(ctx context.Context, id, client string, look approvals.TaskLook, n int) (approvals.Limit, error) {
	var held string
	if err := db.get(ctx, &held, `SELECT hold_task($1, $2, $3, $4)`, look, id, client, n); err != nil {
		return "", err
	}
	err := heldUp(held)
	if action.IsCode(err, action.BudgetExhausted) {
		return approvals.Limit(action.AsRefusal(err).Args["limit"]), nil
	}
	return "", err
}

// TaskSubjects returns the tools and scopes of a task's actions.
func (db *DB) TaskSubjects(ctx context.Context, id string) ([]people.Subject, error) {
	var subjects []people.Subject
	err := db.selectAll(ctx, &subjects, `SELECT DISTINCT tool, scope FROM actions WHERE task_id = $1 AND task_id <> ''`, id)
	return subjects, err
}

// OpenOfTask returns actions of a task that have not run, after an id.
func (db *DB) OpenOfTask(ctx context.Context, id, after string, limit int) ([]string, error) {
	var ids []string
	err := db.selectAll(ctx, &ids, `
SELECT id FROM actions WHERE task_id = $1 AND task_id <> '' AND state IN ('draft', 'proposed', 'confirmed') AND id > $2 ORDER BY id LIMIT $3`,
		id, after, limit)
	return ids, err
}

// DueTasks returns tasks whose time is up and that are not paused yet, oldest
// first, after one.
func (db *DB) DueTasks(ctx context.Context, after action.Due, limit int) ([]action.Due, error) {
	var due []action.Due
	err := db.selectAll(ctx, &due, `
SELECT id, ends_at AS due_at FROM tasks
WHERE state = 'open' AND ends_at IS NOT NULL AND ends_at <= (SELECT app_now()) AND (ends_at, id) > ($2, $3)
ORDER BY ends_at, id LIMIT $1`, limit, after.At, after.ID)
	return due, err
}

// TaskUse returns what a task's actions count for in its budget.
func (db *DB) TaskUse(ctx context.Context, id string) (approvals.TaskUse, error) {
	var use approvals.TaskUse
	err := db.get(ctx, &use, `
SELECT count(*) AS actions, coalesce(sum(reads), 0) AS reads, coalesce(sum(writes), 0) AS writes FROM actions
WHERE task_id = $1 AND task_id <> ''`, id)
	return use, err
}

// Tasks returns the tasks that a viewer may see, newest first, and the database's
// clock: of each what a list says, whatever else happened to it.
func (db *DB) Tasks(ctx context.Context, f approvals.TaskFilter) ([]approvals.ListedTask, time.Time, error) {
	var w where
	w.seeTasks(f.Viewer)
	if f.Before != "" {
		w.add("k.id < ?", f.Before)
	}
	w.args = append(w.args, f.Limit)
	var rows []struct {
		ID        string     `db:"id"`
		State     string     `db:"state"`
		ClientID  string     `db:"client_id"`
		CreatedAt time.Time  `db:"created_at"`
		Reached   string     `db:"reached"`
		EndsAt    *time.Time `db:"ends_at"`
		Client    string     `db:"client"`
		Opened    []byte     `db:"opened"`
		EndedBy   string     `db:"ended_by"`
	}
	err := db.selectAll(ctx, &rows, fmt.Sprintf(`
SELECT k.id, k.state, k.client_id, k.created_at, k.reached, k.ends_at,
    coalesce((SELECT e.by_name FROM events e WHERE e.subject = k.id AND e.version = 1), '') AS client,
    (SELECT b.content FROM bodies b WHERE b.subject = k.id AND b.version = 1) AS opened,
    coalesce((SELECT e.by_name FROM events e WHERE k.state = 'ended' AND e.subject = k.id AND e.to_state = 'ended' AND e.from_state <> 'ended'
        ORDER BY e.version DESC LIMIT 1), '') AS ended_by
FROM tasks k %s ORDER BY k.id DESC LIMIT $%d`, w.String(), len(w.args)), w.args...)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := db.Now(ctx)
	tasks := make([]approvals.ListedTask, len(rows))
	for i, r := range rows {
		tasks[i].Task = approvals.Task{ID: r.ID, State: action.State(r.State), Client: action.By{Kind: action.ByClient, ID: r.ClientID, Name: r.Client},
			CreatedAt: r.CreatedAt.UTC(), Reached: approvals.Limit(r.Reached), EndsAt: r.EndsAt, By: action.By{Name: r.EndedBy}}
		tasks[i].Title, tasks[i].Unreadable = approvals.TaskTitle(r.Opened)
	}
	return tasks, now, err
}

// seeTasks limits to tasks that a viewer may see: a program's own, and for who is
// limited those with an action within the limits.
func (w *where) seeTasks(v people.Viewer) {
	switch {
	case v.All, v.Limited && len(v.Tools)+len(v.Scopes) == 0:
		return
	case v.Limited:
		inner := where{args: w.args}
		inner.see(v)
		w.args = inner.args
		w.add("EXISTS (SELECT FROM actions a WHERE a.task_id = k.id AND a.task_id <> '' AND " + strings.Join(inner.conditions, " AND ") + ")")
	default:
		w.add("k.client_id = ?", v.ClientID)
	}
}
