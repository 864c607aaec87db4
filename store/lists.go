package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"

	"github.com/lib/pq"
)

// where collects conditions and their arguments. Every set of conditions is a
// statement of its own, so that the planner sees what is filtered by.
type where struct {
	conditions []string
	args       []any
}

// add takes a condition with ? for each argument.
func (w *where) add(condition string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(w.args)), 1)
	}
	w.conditions = append(w.conditions, condition)
}

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(w.conditions, " AND ")
}

// see limits to what a viewer may see.
func (w *where) see(v people.Viewer) {
	if v.All {
		return
	}
	var any []string
	inner := &where{args: w.args}
	if v.Limited {
		limits := []string{"true"}
		if len(v.Tools) > 0 {
			inner.add("a.tool = ANY (?)", pq.StringArray(v.Tools))
			limits = append(limits, inner.conditions[len(inner.conditions)-1])
		}
		if len(v.Scopes) > 0 {
			inner.add("a.scope = ANY (?)", pq.StringArray(v.Scopes))
			limits = append(limits, inner.conditions[len(inner.conditions)-1])
		}
		any = append(any, strings.Join(limits, " AND "))
	}
	if v.ClientID != "" {
		inner.add("a.client_id = ?", v.ClientID)
		any = append(any, inner.conditions[len(inner.conditions)-1])
	}
	if len(any) == 0 {
		any = []string{"false"}
	}
	w.args = inner.args
	w.conditions = append(w.conditions, "("+strings.Join(any, " OR ")+")")
}

// in limits to a state as of now: what is over is expired before the event that
// says so is written.
func (w *where) in(state action.State) {
	switch state {
	case "":
	case action.Proposed:
		w.add("a.state = ? AND a.due_at > (SELECT app_now())", state)
	case action.Confirmed: // all of them are work, of which there is an index
		w.add("a.work = 'execute' AND a.state = ? AND a.due_at > (SELECT app_now())", state)
	case action.Expired:
		w.add("(a.state = 'expired' OR a.state IN ('proposed', 'confirmed') AND a.due_at <= (SELECT app_now()))")
	default:
		w.add("a.state = ?", state)
	}
}

// named limits to actions that have this id or hash, in whatever role. They are
// collected first: otherwise the planner may hope to meet them soon, while it
// reads everything from the newest on.
func (w *where) named(ref string) {
	w.add(`a.id = ANY (ARRAY (
    SELECT r.id FROM actions r WHERE r.id = ? UNION ALL SELECT r.id FROM actions r WHERE r.refs @> ARRAY[?]))`, ref, ref)
}

// Actions returns the actions that a filter lets through, newest first, and
// the database clock.
func (db *DB) Actions(ctx context.Context, f approvals.Filter) ([]action.Action, time.Time, error) {
	var w where
	w.see(f.Viewer)
	for _, c := range []struct{ condition, value string }{
		{"a.tool = ?", f.Tool}, {"a.actor_id = ?", f.ActorID}, {"a.task_id <> '' AND a.task_id = ?", f.TaskID},
		{"a.claimed_by = ?", f.ClaimedBy},
	} {
		if c.value != "" {
			w.add(c.condition, c.value)
		}
	}
	w.in(f.State)
	switch {
	case f.Target == nil:
	case f.Target.Type != "":
		w.add("a.target_type = ? AND a.target_id = ?", f.Target.Type, f.Target.ID)
	default:
		w.add("a.target_id = ?", f.Target.ID)
	}
	if f.Ref != "" {
		w.named(f.Ref)
	}
	if f.Approver != "" {
		w.add("a.refs @> ARRAY[?]", f.Approver)
	}
	if f.From != nil {
		w.add("a.created_at >= ? AND a.id >= ?", *f.From, idFrom(*f.From))
	}
	if f.To != nil {
		w.add("a.created_at < ? AND a.id < ?", *f.To, idTo(*f.To))
	}
	if f.Took != nil {
		w.tookIn(*f.Took)
	}
	if f.Before != "" {
		w.add("a.id < ?", f.Before)
	}
	w.args = append(w.args, f.Limit)
	return db.listed(ctx, fmt.Sprintf("SELECT a.id FROM actions a %s ORDER BY a.id DESC LIMIT $%d", w.String(), len(w.args)), w.args)
}

// listed runs a query for ids and folds what it finds.
func (db *DB) listed(ctx context.Context, query string, args []any) ([]action.Action, time.Time, error) {
	var ids []string
	if err := db.selectAll(ctx, &ids, query, args...); err != nil {
		return nil, time.Time{}, err
	}
	if len(ids) == 0 {
		now, err := db.Now(ctx)
		return nil, now, err
	}
	return db.fold(ctx, ids)
}

// Queue returns a page of a person's approvals queue, by time left, and the
// database clock.
func (db *DB) Queue(ctx context.Context, f approvals.QueueFilter) ([]action.Action, time.Time, error) {
	w := queued(f)
	if f.After.ID != "" {
		w.add("(a.expires_at, a.id) > (?, ?)", f.After.ExpiresAt, f.After.ID)
	}
	w.args = append(w.args, f.Limit)
	return db.listed(ctx, fmt.Sprintf("SELECT a.id FROM actions a %s ORDER BY a.expires_at, a.id LIMIT $%d", w.String(), len(w.args)), w.args)
}

// QueueCount counts a tab of the queue, up to most; of what came after an id,
// if one is given. It is -1 when it would take too long to know: so many wait
// that looking at the most urgent does not tell.
func (db *DB) QueueCount(ctx context.Context, f approvals.QueueFilter, after string, most int) (int, error) {
	w := queued(f)
	from := "actions a"
	if after != "" {
		w.add("a.id > ?", after)
	} else {
		from = "urgent a"
	}
	w.args = append(w.args, most)
	var n int
	err := db.get(ctx, &n, fmt.Sprintf(`
WITH urgent AS (
    SELECT * FROM actions WHERE state = 'proposed' AND expires_at > (SELECT app_now()) ORDER BY expires_at, id LIMIT %[1]d)
SELECT CASE WHEN %[4]t AND n < $%[3]d AND (SELECT count(*) FROM urgent) = %[1]d THEN -1 ELSE n END
FROM (SELECT count(*) AS n FROM (SELECT FROM %[5]s %[2]s LIMIT $%[3]d) q) c`, approvals.Looked, w.String(), len(w.args), after == "", from), w.args...)
	return n, err
}

// Newest returns the id of the newest action there is, or "".
func (db *DB) Newest(ctx context.Context) (string, error) {
	var ids []string
	if err := db.selectAll(ctx, &ids, `SELECT id FROM actions ORDER BY id DESC LIMIT 1`); err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

func queued(f approvals.QueueFilter) *where {
	w := &where{conditions: []string{"a.state = 'proposed'", "a.expires_at > (SELECT app_now())"}}
	w.see(people.PersonViewer(f.Person))
	if f.Tool != "" {
		w.add("a.tool = ?", f.Tool)
	}
	if f.Target != "" {
		w.add("a.target_id = ?", f.Target)
	}
	if f.Expiring > 0 {
		w.add("a.expires_at < (SELECT app_now()) + ? * interval '1 second'", f.Expiring.Seconds())
	}
	switch f.Tab {
	case approvals.NeedsMe:
		w.mine(f, "")
	case approvals.ForOthers:
		w.mine(f, "NOT ")
	}
	return w
}

// mine limits to what a person may decide on, has not decided on and is asked
// for, nearly as people.RolesOn says: an actor that only looks like one of the
// person's is not left out here, and is refused when it is decided on. With "NOT "
// it limits to the rest. None of its conditions may be null: then a proposal would be
// in neither.
func (w *where) mine(f approvals.QueueFilter, not string) {
	list := func(s []string) pq.StringArray { return append(pq.StringArray{}, s...) }
	w.add(not+`(a.roles && ? AND NOT a.deciders @> ARRAY[?]
        AND lower(btrim(a.actor_id)) NOT IN (SELECT lower(btrim(own)) FROM unnest(?::text[]) own)
        AND a.client_id NOT IN (SELECT c.id FROM clients c WHERE c.owner = ?))`,
		list(f.Roles), f.Person.ID, list(f.Person.Actors), f.Person.ID)
}

// Work returns actions that an executor should do something about, oldest
// first. What could not be claimed now is left out, and takes nobody's place: what
// is paused, has no budget left, or has to wait for another action, and what
// cannot be read. Fewer than the limit are all that there are.
func (db *DB) Work(ctx context.Context, f approvals.WorkFilter) ([]action.Action, time.Time, error) {
	w := &where{conditions: []string{"a.work IS NOT NULL", "a.work_at <= (SELECT app_now())", "(a.due_at IS NULL OR a.due_at > (SELECT app_now()))"}}
	w.add(`NOT (a.work IN ('execute', 'retry') AND (EXISTS (SELECT FROM pauses_of(a.tool, a.client_id, ?, a.scope))
        OR a.task_look <> '' AND task_stops(a.task_look, a.task_id, a.client_id, 1) IS NOT NULL
        OR a.writing AND held_up(a.id, a.links, a.tool, a.target_type, a.target_id) IS NOT NULL
        OR NOT a.writing AND a.work = 'retry' AND followed_by(a.id) IS NOT NULL))`, f.Executor)
	w.see(f.Viewer)
	if len(f.Tools) > 0 {
		var names, prefixes pq.StringArray
		for _, t := range f.Tools {
			if prefix, cut := strings.CutSuffix(t, "*"); cut {
				prefixes = append(prefixes, likePrefix(prefix))
			} else {
				names = append(names, t)
			}
		}
		w.add("(a.tool = ANY (?) OR a.tool LIKE ANY (?))", names, prefixes)
	}
	w.args = append(w.args, f.Limit, f.After)
	query := fmt.Sprintf("SELECT a.id FROM actions a %s AND a.id > $%d ORDER BY a.id LIMIT $%d", w.String(), len(w.args), len(w.args)-1)
	var found []action.Action
	for {
		page, now, err := db.listed(ctx, query, w.args)
		if err != nil {
			return nil, now, err
		}
		for _, a := range page {
			// It may have moved on between its row and its events.
			if work, from := a.NextWork(); a.Unreadable == nil && work != action.WorkNone && !from.After(now) && len(found) < f.Limit {
				found = append(found, a)
			}
		}
		if len(page) < f.Limit || len(found) == f.Limit {
			return found, now, nil
		}
		w.args[len(w.args)-1] = page[len(page)-1].ID
	}
}

func likePrefix(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}

// Past returns what a decider should know: other actions on the same target
// since a moment, earlier rejections of the same content, and the open case
// that holds the target up.
func (db *DB) Past(ctx context.Context, a action.Action, since time.Time) (p approvals.Past, err error) {
	if a.Target != nil {
		p.OnTarget, _, err = db.listed(ctx, `
SELECT a.id FROM actions a WHERE a.target_type = $1 AND a.target_id = $2 AND a.id <> $3 AND a.created_at >= $4
ORDER BY a.id DESC LIMIT 20`, []any{a.Target.Type, a.Target.ID, a.ID, since})
		if err != nil {
			return p, err
		}
		blocked, err := db.Blocked(ctx, []string{a.ID})
		if err != nil {
			return p, err
		}
		p.Blocking = blocked[a.ID]
	}
	p.Rejected, _, err = db.listed(ctx, `
SELECT a.id FROM actions a WHERE a.payload_hash = $1 AND a.tool = $2 AND a.state = 'rejected' AND a.id <> $3
ORDER BY a.id DESC LIMIT 3`, []any{a.PayloadHash, a.Tool, a.ID})
	return p, err
}

// Blocked returns which of these actions' targets are held up by an open case of
// another action, by id, with the case.
func (db *DB) Blocked(ctx context.Context, ids []string) (map[string]string, error) {
	var rows []struct {
		ID string `db:"id"`
		By string `db:"by"`
	}
	err := db.selectAll(ctx, &rows, `
SELECT b.id, b.by FROM (
    SELECT a.id, blocked_by(a.id, a.links, a.tool, a.target_type, a.target_id) AS by FROM actions a WHERE a.id = ANY ($1)) b
WHERE b.by IS NOT NULL`, pq.StringArray(ids))
	found := map[string]string{}
	for _, r := range rows {
		found[r.ID] = strings.TrimPrefix(r.By, "blocked:")
	}
	return found, err
}

// Rejected returns which of these contents were rejected before.
func (db *DB) Rejected(ctx context.Context, payloadHashes []string) (map[string]bool, error) {
	var hashes []string
	err := db.selectAll(ctx, &hashes, `
SELECT DISTINCT payload_hash FROM actions WHERE payload_hash = ANY ($1) AND state = 'rejected'`, pq.StringArray(payloadHashes))
	found := map[string]bool{}
	for _, h := range hashes {
		found[h] = true
	}
	return found, err
}
