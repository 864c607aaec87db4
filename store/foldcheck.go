package store

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"countersign/action"

	"github.com/lib/pq"
)

// Difference is one place where the row of an action, or of a task, is not what
// its events say.
type Difference struct {
	Action string // its id
	Column string // "row" or "events" when the whole is missing or unreadable
	Row    string
	Events string
}

// FoldResult counts what FoldCheck looked at and found.
type FoldResult struct {
	Actions     int
	Tasks       int
	Events      int // of actions
	Differences int
}

// foldBatch is how many actions are compared in one statement, and so on one
// view of the database.
const foldBatch = 200

// FoldCheck recomputes every action and every task from its events, or the one
// with an id, and compares it with its row, column by column. Each difference is
// reported as it is found. What changes meanwhile is seen before or after.
func (db *DB) FoldCheck(ctx context.Context, id string, report func(Difference)) (FoldResult, error) {
	var result FoldResult
	note := func(d Difference) {
		result.Differences++
		report(d)
	}
	for after := ""; ; {
		rows, err := db.foldRows(ctx, id, after)
		if err != nil {
			return result, err
		}
		if len(rows) == 0 {
			break
		}
		for _, one := range perAction(rows) {
			result.Actions++
			result.Events += compareFold(one, note)
		}
		after = rows[len(rows)-1].Row.ID
	}
	var err error
	if result.Tasks, err = db.foldTasks(ctx, id, note); err != nil {
		return result, err
	}
	return result, db.orphans(ctx, id, note)
}

// foldRow is an action's row with one of its events, if it has any.
type foldRow struct {
	Row   projected `db:"row"`
	Event *int64    `db:"event"`
	eventRow
}

// projected is a whole row of actions as it is read, in its columns' names.
type projected struct {
	ID              string         `db:"id"`
	State           string         `db:"state"`
	Version         int64          `db:"version"`
	Revision        int            `db:"revision"`
	CreateOp        string         `db:"create_op"`
	Tool            string         `db:"tool"`
	ToolVersion     int            `db:"tool_version"`
	ClientID        string         `db:"client_id"`
	Scope           string         `db:"scope"`
	TaskID          string         `db:"task_id"`
	ActorID         string         `db:"actor_id"`
	TargetType      *string        `db:"target_type"`
	TargetID        *string        `db:"target_id"`
	ObjectVersion   *string        `db:"object_version"`
	PayloadHash     string         `db:"payload_hash"`
	ProposalHash    string         `db:"proposal_hash"`
	ContentVersion  int64          `db:"content_version"`
	CreatedAt       time.Time      `db:"created_at"`
	UpdatedAt       time.Time      `db:"updated_at"`
	ExpiresAt       *time.Time     `db:"expires_at"`
	DueAt           *time.Time     `db:"due_at"`
	Work            *string        `db:"work"`
	WorkAt          *time.Time     `db:"work_at"`
	Roles           pq.StringArray `db:"roles"`
	Deciders        pq.StringArray `db:"deciders"`
	ConfirmationRef *string        `db:"confirmation_ref"`
	ClaimedBy       *string        `db:"claimed_by"`
	Writing         bool           `db:"writing"`
	OpenAttempt     bool           `db:"open_attempt"`
	Block           string         `db:"block"`
	CaseID          *string        `db:"case_id"`
	CaseSince       *time.Time     `db:"case_since"`
	CaseMovedAt     *time.Time     `db:"case_moved_at"`
	CaseWhy         *string        `db:"case_why"`
	CasePending     bool           `db:"case_pending"`
	NeedsPerson     bool           `db:"needs_person"`
	KeyUntil        *time.Time     `db:"key_until"`
	CaseClosedAt    *time.Time     `db:"case_closed_at"`
	Partly          bool           `db:"partly"`
	Links           pq.StringArray `db:"links"`
	Refs            pq.StringArray `db:"refs"`
	Reads           int            `db:"reads"`
	Writes          int            `db:"writes"`
	TaskLook        string         `db:"task_look"`
}

const foldSQL = `
SELECT a.id AS "row.id", a.state AS "row.state", a.version AS "row.version", a.revision AS "row.revision", a.create_op AS "row.create_op", a.tool AS "row.tool",
    a.tool_version AS "row.tool_version", a.client_id AS "row.client_id", a.scope AS "row.scope", a.task_id AS "row.task_id",
    a.actor_id AS "row.actor_id", a.target_type AS "row.target_type", a.target_id AS "row.target_id",
    a.object_version AS "row.object_version", a.payload_hash AS "row.payload_hash", a.proposal_hash AS "row.proposal_hash",
    a.content_version AS "row.content_version", a.created_at AS "row.created_at", a.updated_at AS "row.updated_at",
    a.expires_at AS "row.expires_at", a.due_at AS "row.due_at", a.work AS "row.work", a.work_at AS "row.work_at", a.roles AS "row.roles",
    a.deciders AS "row.deciders", a.confirmation_ref AS "row.confirmation_ref", a.claimed_by AS "row.claimed_by",
    a.writing AS "row.writing", a.open_attempt AS "row.open_attempt", a.block AS "row.block", a.case_id AS "row.case_id", a.case_since AS "row.case_since",
    a.case_moved_at AS "row.case_moved_at",
    a.case_why AS "row.case_why", a.case_pending AS "row.case_pending", a.needs_person AS "row.needs_person", a.key_until AS "row.key_until",
    a.case_closed_at AS "row.case_closed_at", a.partly AS "row.partly", a.links AS "row.links", a.refs AS "row.refs",
    a.reads AS "row.reads", a.writes AS "row.writes", a.task_look AS "row.task_look",
    e.version AS event, a.id AS subject, coalesce(e.version, 0) AS version, coalesce(e.op, '') AS op, coalesce(e.kind, '') AS kind,
    coalesce(e.by_kind, '') AS by_kind, coalesce(e.by_id, '') AS by_id, coalesce(e.by_name, '') AS by_name,
    coalesce(e.by_role, '') AS by_role, coalesce(e.by_method, '') AS by_method, coalesce(e.from_state, '') AS from_state,
    coalesce(e.to_state, '') AS to_state, coalesce(e.at, a.created_at) AS at, coalesce(e.data, '{}') AS data, b.content
FROM actions a LEFT JOIN events e ON e.subject = a.id LEFT JOIN bodies b ON b.subject = e.subject AND b.version = e.version
WHERE a.id IN (SELECT p.id FROM actions p WHERE p.id > $1 AND ($2 = '' OR p.id = $2) ORDER BY p.id LIMIT $3)
ORDER BY a.id, e.version`

func (db *DB) foldRows(ctx context.Context, id, after string) ([]foldRow, error) {
	var rows []foldRow
	if err := db.selectAll(ctx, &rows, foldSQL, after, id, foldBatch); err != nil {
		return nil, fmt.Errorf("reading actions: %w", err)
	}
	return rows, nil
}

// perAction cuts a sorted list where the action changes.
func perAction(rows []foldRow) (groups [][]foldRow) {
	start := 0
	for i := range rows {
		if i+1 == len(rows) || rows[i+1].Row.ID != rows[i].Row.ID {
			groups = append(groups, rows[start:i+1])
			start = i + 1
		}
	}
	return groups
}

// compareFold compares one action and returns how many events it has.
func compareFold(rows []foldRow, note func(Difference)) int {
	row := rows[0].Row
	if rows[0].Event == nil {
		note(Difference{Action: row.ID, Column: "events", Row: "there", Events: "none"})
		return 0
	}
	events := make([]action.Event, len(rows))
	for i, r := range rows {
		events[i] = r.event()
	}
	a, err := action.Fold(events)
	if err != nil {
		note(Difference{Action: row.ID, Column: "events", Row: "there", Events: err.Error()})
		return len(events)
	}
	wanted := folded(a)
	wanted.CreateOp = events[0].Op
	compareColumns(row.ID, row, wanted, note)
	if len(a.Payload) > 0 && action.PayloadHash(a.Payload) != a.PayloadHash {
		note(Difference{Action: row.ID, Column: "payload", Row: a.PayloadHash, Events: action.PayloadHash(a.Payload)})
	}
	return len(events)
}

// folded is the row that an action should have, but for the op that made it.
func folded(a action.Action) projected {
	r := project(a)
	return projected{ID: a.ID, State: string(a.State), Version: a.Version, Revision: a.Revision, Tool: a.Tool, ToolVersion: a.ToolVersion,
		ClientID: a.Client.ID, Scope: a.Scope, TaskID: a.TaskID, ActorID: a.Actor.ID, TargetType: r.targetType, TargetID: r.targetID,
		ObjectVersion: a.ObjectVersion, PayloadHash: a.PayloadHash, ProposalHash: a.ProposalHash, ContentVersion: a.ContentVersion,
		CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, ExpiresAt: a.ExpiresAt, DueAt: r.dueAt, Work: r.work, WorkAt: r.workAt, Roles: r.roles,
		Deciders: r.deciders, ConfirmationRef: r.confirmationRef, ClaimedBy: r.claimedBy, Writing: a.Terms.Write, OpenAttempt: r.openAttempt, Block: r.block,
		CaseID: r.caseID, CaseSince: r.caseSince, CaseMovedAt: r.caseMovedAt, CaseWhy: r.caseWhy, CasePending: r.casePending, NeedsPerson: r.needsPerson,
		KeyUntil: r.keyUntil, CaseClosedAt: r.caseClosedAt, Partly: r.partly, Links: r.links, Refs: r.refs, Reads: r.reads, Writes: r.writes, TaskLook: string(r.taskLook)}
}

// compareColumns compares column by column, as text.
func compareColumns(id string, row, events any, note func(Difference)) {
	there, wanted := reflect.ValueOf(row), reflect.ValueOf(events)
	for i := range there.NumField() {
		a, b := columnText(there.Field(i).Interface()), columnText(wanted.Field(i).Interface())
		if a != b {
			note(Difference{Action: id, Column: there.Type().Field(i).Tag.Get("db"), Row: a, Events: b})
		}
	}
}

// columnText writes a value so that equal columns are equal texts: the
// database keeps times to the microsecond, in any zone.
func columnText(v any) string {
	switch t := v.(type) {
	case time.Time:
		return stamp(t)
	case *time.Time:
		if t == nil {
			return "null"
		}
		return stamp(*t)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// orphanBatch is how many actions' first events are looked at in one statement.
const orphanBatch = 5000

// orphans reports actions that have events and no row.
func (db *DB) orphans(ctx context.Context, id string, note func(Difference)) error {
	for after := ""; ; {
		var first []struct {
			Subject string `db:"subject"`
			There   bool   `db:"there"`
		}
		err := db.selectAll(ctx, &first, `
SELECT e.subject, EXISTS (SELECT FROM actions a WHERE a.id = e.subject) AS there FROM events e
WHERE e.subject > $1 AND e.subject LIKE 'act\_%' AND e.version = 1 AND ($2 = '' OR e.subject = $2)
ORDER BY e.subject LIMIT $3`, after, id, orphanBatch)
		if err != nil {
			return fmt.Errorf("reading events: %w", err)
		}
		if len(first) == 0 {
			return nil
		}
		for _, e := range first {
			if !e.There {
				note(Difference{Action: e.Subject, Column: "row", Row: "none", Events: "there"})
			}
		}
		after = first[len(first)-1].Subject
	}
}
