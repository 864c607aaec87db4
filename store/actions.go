package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"countersign/action"
	"countersign/triage"

	"github.com/lib/pq"
)

// eventRow is an event as read, with its body and the database clock.
type eventRow struct {
	Subject  string    `db:"subject"`
	Version  int64     `db:"version"`
	Op       string    `db:"op"`
	Kind     string    `db:"kind"`
	ByKind   string    `db:"by_kind"`
	ByID     string    `db:"by_id"`
	ByName   string    `db:"by_name"`
	ByRole   string    `db:"by_role"`
	ByMethod string    `db:"by_method"`
	From     string    `db:"from_state"`
	To       string    `db:"to_state"`
	At       time.Time `db:"at"`
	Data     string    `db:"data"`
	Body     []byte    `db:"content"`
	Now      time.Time `db:"now"`
}

const eventColumns = `e.subject, e.version, e.op, e.kind, e.by_kind, e.by_id, e.by_name, e.by_role, e.by_method,
    e.from_state, e.to_state, e.at, e.data, b.content, (SELECT app_now()) AS now`

func (r eventRow) event() action.Event {
	e := action.Event{Subject: r.Subject, Version: r.Version, Op: r.Op, Kind: action.Kind(r.Kind),
		By:   action.By{Kind: r.ByKind, ID: r.ByID, Name: r.ByName, Role: r.ByRole, Method: r.ByMethod},
		From: action.State(r.From), To: action.State(r.To), At: r.At.UTC(), Data: json.RawMessage(r.Data)}
	if r.Body != nil {
		e.Body = json.RawMessage(r.Body)
	}
	return e
}

const eventsSQL = `
SELECT ` + eventColumns + `
FROM events e LEFT JOIN bodies b ON b.subject = e.subject AND b.version = e.version
WHERE e.subject = $1 ORDER BY e.version`

// Events returns everything that happened to a subject, in order, and the
// database clock. It is empty when there is no such subject.
func (db *DB) Events(ctx context.Context, subject string) ([]action.Event, time.Time, error) {
	var rows []eventRow
	if err := db.selectAll(ctx, &rows, eventsSQL, subject); err != nil {
		return nil, time.Time{}, err
	}
	var now time.Time
	events := make([]action.Event, len(rows))
	for i, r := range rows {
		events[i], now = r.event(), r.Now.UTC()
	}
	return events, now, nil
}

// rowColumns are the columns of an action's row that approvals are bound to.
type rowColumns struct {
	State         string     `db:"state"`
	Version       int64      `db:"version"`
	Revision      int        `db:"revision"`
	Tool          string     `db:"tool"`
	ToolVersion   int        `db:"tool_version"`
	ClientID      string     `db:"client_id"`
	ActorID       string     `db:"actor_id"`
	TargetType    *string    `db:"target_type"`
	TargetID      *string    `db:"target_id"`
	ObjectVersion *string    `db:"object_version"`
	PayloadHash   string     `db:"payload_hash"`
	ProposalHash  string     `db:"proposal_hash"`
	ExpiresAt     *time.Time `db:"expires_at"`
	DueAt         *time.Time `db:"due_at"`
	Ref           *string    `db:"confirmation_ref"`
}

// differs names the first column that is not what the events say, or "".
func (c rowColumns) differs(a action.Action) string {
	r := project(a)
	for _, f := range []struct {
		column string
		same   bool
	}{
		{"state", c.State == string(a.State)}, {"version", c.Version == a.Version}, {"revision", c.Revision == a.Revision},
		{"tool", c.Tool == a.Tool}, {"tool_version", c.ToolVersion == a.ToolVersion}, {"client_id", c.ClientID == a.Client.ID},
		{"actor_id", c.ActorID == a.Actor.ID}, {"target_type", same(c.TargetType, r.targetType)},
		{"target_id", same(c.TargetID, r.targetID)}, {"object_version", same(c.ObjectVersion, a.ObjectVersion)},
		{"payload_hash", c.PayloadHash == a.PayloadHash}, {"proposal_hash", c.ProposalHash == a.ProposalHash},
		{"confirmation_ref", same(c.Ref, r.confirmationRef)},
		{"expires_at", sameTime(c.ExpiresAt, a.ExpiresAt)},
		{"due_at", a.State != action.Confirmed || sameTime(c.DueAt, r.dueAt)}, // when the confirmation ends
	} {
		if !f.same {
			return f.column
		}
	}
	return ""
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// snapshotRow is an event with the action's row beside it.
type snapshotRow struct {
	eventRow
	rowColumns `db:"row"`
	FollowedBy *string `db:"followed_by"`
	AwaitedBy  *string `db:"awaited_by"`
	Beside     *string `db:"beside"`
}

const snapshotSQL = `
SELECT ` + eventColumns + `,
    a.state AS "row.state", a.version AS "row.version", a.revision AS "row.revision", a.tool AS "row.tool",
    a.tool_version AS "row.tool_version", a.client_id AS "row.client_id", a.actor_id AS "row.actor_id",
    a.target_type AS "row.target_type", a.target_id AS "row.target_id", a.object_version AS "row.object_version",
    a.payload_hash AS "row.payload_hash", a.proposal_hash AS "row.proposal_hash", a.expires_at AS "row.expires_at",
    a.due_at AS "row.due_at", a.confirmation_ref AS "row.confirmation_ref", (SELECT followed_by($1)) AS followed_by,
    CASE WHEN a.state = 'result_unknown' THEN (SELECT awaited_by($1)) END AS awaited_by,
    CASE WHEN a.writing THEN (SELECT beside($1, a.links)) END AS beside
FROM actions a JOIN events e ON e.subject = a.id LEFT JOIN bodies b ON b.subject = e.subject AND b.version = e.version
WHERE a.id = $1 ORDER BY e.version`

// Snapshot reads what a command on an action is decided on. NotFound when
// there is no such action.
func (db *DB) Snapshot(ctx context.Context, id string) (action.Snapshot, error) {
	snap, err := db.snapshot(ctx, id)
	if err != nil {
		return snap, err
	}
	if linked, _ := snap.Action.Links.To(); linked != "" {
		original, err := db.snapshot(ctx, linked)
		if err != nil && !action.IsCode(err, action.StaleRevision) && !action.IsCode(err, action.NotFound) {
			return action.Snapshot{}, err
		}
		snap.Original = &original
	}
	return snap, nil
}

// snapshot is Snapshot without the action that it is linked to.
func (db *DB) snapshot(ctx context.Context, id string) (action.Snapshot, error) {
	var rows []snapshotRow
	if err := db.selectAll(ctx, &rows, snapshotSQL, id); err != nil {
		return action.Snapshot{}, err
	}
	if len(rows) == 0 {
		return action.Snapshot{}, noAction()
	}
	events := make([]action.Event, len(rows))
	for i, r := range rows {
		events[i] = r.event()
	}
	a, err := action.Fold(events)
	if err != nil {
		return action.Snapshot{}, action.Refuse(action.StaleRevision, "What is stored of this action does not belong together. Do not run it; tell whoever runs this console.").
			Because("tampered").From(err)
	}
	snap := action.Snapshot{Action: a, Now: rows[0].Now.UTC(), Authority: map[string][]string{}, Rests: map[string]int64{}, Differs: rows[0].differs(a)}
	if by := rows[0].FollowedBy; by != nil {
		snap.FollowedBy = *by
	}
	if by := rows[0].AwaitedBy; by != nil {
		snap.AwaitedBy = *by
	}
	if beside := rows[0].Beside; beside != nil {
		snap.Beside = *beside
	}
	return snap, nil
}

func noAction() error {
	return action.Refuse(action.NotFound, "There is no such action, or you may not see it.")
}

// Now returns the database clock.
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := db.get(ctx, &now, `SELECT app_now()`)
	return now.UTC(), err
}

// Find returns the id of the action that a propose op made, or that a
// confirmation_ref belongs to, or "".
func (db *DB) Find(ctx context.Context, opOrRef string) (string, error) {
	var ids []string
	err := db.selectAll(ctx, &ids, `
SELECT id FROM actions WHERE create_op = $1 UNION ALL SELECT id FROM actions WHERE confirmation_ref = $1`, opOrRef)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// OpenProposals counts a client's proposals that wait for a decision.
func (db *DB) OpenProposals(ctx context.Context, client string) (int, error) {
	var n int
	err := db.get(ctx, &n, `SELECT count(*) FROM actions WHERE client_id = $1 AND state = 'proposed'`, client)
	return n, err
}

// Due returns actions that time alone has changed, oldest first, after one.
func (db *DB) Due(ctx context.Context, after action.Due, limit int) ([]action.Due, error) {
	var due []action.Due
	err := db.selectAll(ctx, &due, `
SELECT id, due_at FROM actions WHERE due_at <= (SELECT app_now()) AND (due_at, id) > ($2, $3)
ORDER BY due_at, id LIMIT $1`, limit, after.At, after.ID)
	return due, err
}

// fold reads and folds several actions, in the order of ids, and the clock. One
// whose events cannot be folded is there as its row has it, and says so.
func (db *DB) fold(ctx context.Context, ids []string) ([]action.Action, time.Time, error) {
	events, now, err := db.eventsOf(ctx, ids)
	if err != nil {
		return nil, time.Time{}, err
	}
	actions := make([]action.Action, len(ids))
	var broken []string
	for i, id := range ids {
		if actions[i], err = action.Fold(events[id]); err != nil {
			broken = append(broken, id)
		}
	}
	if len(broken) == 0 {
		return actions, now, nil
	}
	remains, now, err := db.remains(ctx, broken)
	for i, id := range ids {
		if a, is := remains[id]; is {
			actions[i] = a
		}
	}
	return actions, now, err
}

// ByID returns actions by their ids, in that order, as lists have them: one whose
// events cannot be folded as its row has it. What is not there is left out.
func (db *DB) ByID(ctx context.Context, ids ...string) ([]action.Action, error) {
	actions, _, err := db.fold(ctx, ids)
	return slices.DeleteFunc(actions, func(a action.Action) bool { return a.ID == "" }), err
}

// eventsOf reads all events of actions, by their ids, and the database clock.
func (db *DB) eventsOf(ctx context.Context, ids []string) (map[string][]action.Event, time.Time, error) {
	var rows []eventRow
	err := db.selectAll(ctx, &rows, `
SELECT `+eventColumns+`
FROM events e LEFT JOIN bodies b ON b.subject = e.subject AND b.version = e.version
WHERE e.subject = ANY ($1) ORDER BY e.subject, e.version`, pq.StringArray(ids))
	if err != nil {
		return nil, time.Time{}, err
	}
	var now time.Time
	events := map[string][]action.Event{}
	for _, r := range rows {
		now = r.Now.UTC()
		events[r.Subject] = append(events[r.Subject], r.event())
	}
	return events, now, nil
}

// Concluded returns pairs of an action that was done in part, or that an executor
// would go on with, and one that has taken effect and is linked to it, or that it
// is linked to; the oldest first, after one.
func (db *DB) Concluded(ctx context.Context, after triage.Conclusion, limit int) ([]triage.Conclusion, error) {
	var pairs []triage.Conclusion
	err := db.selectAll(ctx, &pairs, `
WITH o AS (SELECT id, links FROM actions WHERE partly UNION SELECT id, links FROM actions WHERE work = 'retry'),
p AS (
    SELECT o.id AS action, l.id AS linked FROM o JOIN actions l ON l.links && ARRAY[o.id] AND l.links <> '{}'
    WHERE l.state IN ('applied', 'accepted')
    UNION ALL
    SELECT o.id, l.id FROM o JOIN actions l ON l.id = ANY (o.links) WHERE l.state IN ('applied', 'accepted'))
SELECT action, linked FROM p WHERE (action, linked) > ($2, $3) ORDER BY action, linked LIMIT $1`, limit, after.Action, after.Linked)
	return pairs, err
}

// Linked returns the actions that compensate, resume or replace any of these,
// oldest first.
func (db *DB) Linked(ctx context.Context, ids ...string) ([]action.Action, error) {
	var linked []string
	err := db.selectAll(ctx, &linked, `SELECT id FROM actions WHERE links && $1 AND links <> '{}' ORDER BY id LIMIT 1000`, pq.StringArray(ids))
	if err != nil || len(linked) == 0 {
		return nil, err
	}
	actions, _, err := db.fold(ctx, linked)
	return actions, err
}
