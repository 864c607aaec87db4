package store

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"

	"github.com/lib/pq"
)

// row is an action's projection: what lists filter and sort by. Every column
// follows from the folded action.
type row struct {
	roles, deciders, links, refs pq.StringArray
	targetType, targetID         *string
	confirmationRef, claimedBy   *string
	work, caseID                 *string
	dueAt, workAt                *time.Time
	openAttempt                  bool
	block                        string
	caseWhy                      *string
	caseSince, keyUntil          *time.Time
	caseMovedAt                  *time.Time
	caseClosedAt                 *time.Time
	casePending, needsPerson     bool
	partly                       bool
	reads, writes                int // that it counts for in its task's budget
	taskLook                     approvals.TaskLook
}

func project(a action.Action) row {
	r := row{roles: pq.StringArray{}, deciders: pq.StringArray{}, links: pq.StringArray{}, block: a.Terms.Block,
		caseID: orNull(a.CaseID())}
	if work, at := a.NextWork(); work != action.WorkNone {
		r.work, r.workAt = orNull(string(work)), &at
	}
	if r.block == "" {
		r.block = action.BlockTarget
	}
	for _, n := range a.Needs {
		if n.Approvals > 0 {
			r.roles = append(r.roles, n.Role)
		}
	}
	for _, d := range a.Decisions {
		if d.Revision == a.Revision {
			r.deciders = append(r.deciders, d.By.ID)
		}
	}
	for _, id := range []string{a.Links.Compensates, a.Links.Resumes, a.Links.Replaces} {
		if id != "" {
			r.links = append(r.links, id)
		}
	}
	if a.Target != nil {
		r.targetType, r.targetID = &a.Target.Type, &a.Target.ID
	}
	if a.Confirmation != nil {
		r.confirmationRef = &a.Confirmation.Ref
	}
	if a.Claim != nil && !a.Claim.Over {
		r.claimedBy = &a.Claim.Client
	}
	if due, ok := a.DueAt(); ok {
		r.dueAt = &due
	}
	if a.State.In(action.Executing, action.ResultUnknown) {
		_, r.openAttempt = a.OpenAttempt()
	}
	switch a.Work() {
	case action.WorkExecute:
		r.taskLook = lookAt(a, action.KindClaimed)
	case action.WorkRetry:
		r.taskLook = lookAt(a, action.KindRetried)
	}
	r.refs = references(a)
	r.projectCase(a)
	switch {
	case a.TaskID == "" || a.ExpiresAt == nil: // an eternal draft
	case a.Terms.Write:
		r.writes = 1 + a.Resends()
	default:
		r.reads = 1
	}
	return r
}

func (r *row) projectCase(a action.Action) {
	switch {
	case a.CaseID() != "":
		r.caseSince, r.caseMovedAt, r.caseWhy = &a.Case.OpenedAt, &a.CaseMovedAt, &a.Case.Why
		r.casePending, r.needsPerson, r.partly = a.Case.Pending != nil, a.Exhausted(), a.Partly()
		if until, ok := a.KeyUntil(); ok {
			r.keyUntil = &until
		}
	case a.Case != nil:
		r.caseClosedAt = &a.Case.ClosedAt
	}
}

// references are the ids and hashes that somebody may look an action up by.
func references(a action.Action) pq.StringArray {
	refs := pq.StringArray{a.PayloadHash, a.ProposalHash, a.ExecutionKey, a.RequestID, a.Actor.ID}
	if a.Target != nil {
		refs = append(refs, a.Target.ID)
	}
	if a.Confirmation != nil {
		refs = append(refs, a.Confirmation.Ref)
	}
	if a.Case != nil {
		refs = append(refs, a.Case.ID)
	}
	for _, c := range a.PastCases {
		refs = append(refs, c.ID)
	}
	for _, d := range a.Decisions {
		refs = append(refs, d.By.ID)
	}
	for _, t := range a.Attempts {
		refs = append(refs, t.ID)
	}
	for _, r := range a.Receipts {
		if r.ProviderRef != "" {
			refs = append(refs, r.ProviderRef)
		}
	}
	return refs
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// written is the answer of both statements below.
type written struct {
	ID   *string `db:"id"`
	Held string  `db:"held"`
}

const createSQL = `
WITH p AS MATERIALIZED (
    SELECT CASE WHEN $40 AND NOT EXISTS (SELECT FROM actions WHERE create_op = $5) THEN paused($6, $8, $32, $9) ELSE '' END AS held),
h AS MATERIALIZED (
    SELECT CASE WHEN p.held <> '' THEN p.held WHEN EXISTS (SELECT FROM actions WHERE create_op = $5) THEN ''
           WHEN NOT tool_stands($6, $7) THEN 'tool:'
           WHEN $13 = '' THEN ''
           ELSE hold_target($13, $1, $28, $11, $6, $14, $15, $17) END AS held
    FROM p),
k AS MATERIALIZED (
    SELECT CASE WHEN h.held <> '' THEN h.held WHEN $43 = '' OR EXISTS (SELECT FROM actions WHERE create_op = $5) THEN ''
           ELSE hold_task($43, $10, $8, 1) END AS held
    FROM h),
a AS (
    INSERT INTO actions (id, state, version, revision, create_op, tool, tool_version, client_id, scope, task_id,
        actor_id, target_type, target_id, object_version, payload_hash, proposal_hash, content_version,
        created_at, updated_at, expires_at, due_at, work, work_at, roles, deciders, confirmation_ref, open_attempt, block, links, refs,
        reads, writes, writing, task_look)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $14, $15, $16, $17, $18, $12,
        $19, $19, $20, $21, $22, $39, $23, $24, $25, $26, $27, $28, $29, $41, $42, $44, $45
    FROM k WHERE k.held = ''
    ON CONFLICT (create_op) DO NOTHING
    RETURNING id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT a.id, $3, $5, $30, $31, $32, $33, $34, $35, '', $2, $19, $36 FROM a),
b AS (
    INSERT INTO bodies (subject, version, salt, content) SELECT a.id, $3, $37, $38 FROM a WHERE $38::bytea IS NOT NULL)
SELECT (SELECT id FROM a) AS id, k.held AS held FROM k`

// Create writes the first event of an action and its row. False means that
// this op has made an action before. ToolUnavailable, approvals.ToolMoved, when
// the contract's version is not the one in use any more.
func (db *DB) Create(ctx context.Context, t action.Transition) (bool, error) {
	var w written
	if err := db.write(ctx, &w, createSQL, createArgs(t)...); err != nil {
		return false, err
	}
	if w.ID != nil {
		db.pulse.ring()
	}
	return w.ID != nil, heldUp(w.Held)
}

func createArgs(t action.Transition) []any {
	a, e := t.Next, t.Event
	r := project(a)
	return []any{a.ID, a.State, a.Version, a.Revision, e.Op, a.Tool, a.ToolVersion, a.Client.ID, a.Scope, a.TaskID,
		a.Actor.ID, a.ContentVersion, look(t), r.targetType, r.targetID, a.ObjectVersion, a.PayloadHash, a.ProposalHash,
		e.At, a.ExpiresAt, r.dueAt, r.work, r.roles, r.deciders, r.confirmationRef, r.openAttempt, r.block, r.links, r.refs,
		e.Kind, e.By.Kind, e.By.ID, e.By.Name, e.By.Role, e.By.Method, string(e.Data), salt(), nullBytes(e.Body), r.workAt, goesOn(t),
		r.reads, r.writes, spends(t), a.Terms.Write, r.taskLook}
}

const appendSQL = `
WITH l AS MATERIALIZED (
    SELECT version FROM actions WHERE id = $1 FOR UPDATE),
r AS MATERIALIZED (
    SELECT p.id FROM l, persons p JOIN unnest($57::text[], $58::bigint[]) AS w (id, version) ON p.id = w.id
    WHERE p.version = w.version FOR SHARE OF p),
o AS MATERIALIZED (
    SELECT a.version FROM l, actions a WHERE a.id = $60 FOR SHARE OF a),
p AS MATERIALIZED (
    SELECT CASE WHEN $48 THEN paused($8, $49, $32, $10) ELSE '' END AS held FROM l
    WHERE l.version = $2 - 1 AND ($60::text IS NULL OR (SELECT version FROM o) = $61) AND (cardinality($57::text[]) = 0 OR (SELECT count(*) FROM r) = cardinality($57::text[]))),
h AS MATERIALIZED (
    SELECT CASE WHEN p.held <> '' THEN p.held WHEN $5 = '' THEN '' ELSE hold_target($5, $1, $21, $37, $8, $11, $12, $14) END AS held
    FROM p),
k AS MATERIALIZED (
    SELECT CASE WHEN h.held <> '' THEN h.held WHEN $53 = '' THEN '' ELSE hold_task($53, $54, $49, 1) END AS held FROM h),
t AS MATERIALIZED (
    SELECT k.held, app_now() AS at, $62 = '' OR client_stands($62, $63) AS stands FROM k),
u AS (
    UPDATE actions SET state = $3, version = $2, revision = $4, tool = $8, tool_version = $9, scope = $10,
        target_type = $11, target_id = $12, object_version = $13, payload_hash = $14, proposal_hash = $15,
        content_version = $16, updated_at = $7, expires_at = $17, due_at = $18, work = $19, work_at = $41, roles = $20, links = $21,
        refs = $22, deciders = $23, confirmation_ref = $24, claimed_by = $25, open_attempt = $26, block = $27, case_id = $28,
        case_since = $42, case_why = $43, case_pending = $44, needs_person = $45, key_until = $46, case_closed_at = $47, partly = $50,
        reads = $51, writes = $52, writing = $55, task_look = $56, case_moved_at = $59
    FROM t WHERE actions.id = $1 AND t.held = '' AND t.stands AND ($6::timestamptz IS NULL OR t.at < $6)
    RETURNING actions.id),
e AS (
    INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
    SELECT u.id, $2, $29, $30, $31, $32, $33, $34, $35, $36, $3, $7, $38 FROM u),
b AS (
    INSERT INTO bodies (subject, version, salt, content) SELECT u.id, $2, $39, $40 FROM u WHERE $40::bytea IS NOT NULL)
SELECT (SELECT id FROM u) AS id, coalesce((SELECT held FROM t), '') AS held`

// Append writes a transition: row and event in one statement, only if the
// version is still the one it was decided on, its time is not over, and those
// whose authority it rests on, and the action that it follows, are as they were. Who
// changes one of the people, or that action, waits. Rows are locked before the
// target, and each before the one that it is linked to, which is older: nobody waits
// in a circle. A program is only looked at, last of all, because all that it does at
// once would wait at one row: what is changed of it later comes after this.
func (db *DB) Append(ctx context.Context, t action.Transition) (bool, error) {
	a, e := t.Next, t.Event
	r := project(a)
	var before *time.Time
	if !t.Before.IsZero() {
		before = &t.Before
	}
	on := restsOn(t.Rests)
	var original *string
	if linked, _ := a.Links.To(); t.Original > 0 {
		original = orNull(linked)
	}
	var w written
	err := db.write(ctx, &w, appendSQL, a.ID, a.Version, a.State, a.Revision, look(t), before, e.At,
		a.Tool, a.ToolVersion, a.Scope, r.targetType, r.targetID, a.ObjectVersion, a.PayloadHash, a.ProposalHash,
		a.ContentVersion, a.ExpiresAt, r.dueAt, r.work, r.roles, r.links, r.refs, r.deciders, r.confirmationRef,
		r.claimedBy, r.openAttempt, r.block, r.caseID, e.Op, e.Kind, e.By.Kind, e.By.ID, e.By.Name, e.By.Role, e.By.Method,
		e.From, a.Actor.ID, string(e.Data), salt(), nullBytes(e.Body), r.workAt,
		r.caseSince, r.caseWhy, r.casePending, r.needsPerson, r.keyUntil, r.caseClosedAt, goesOn(t), a.Client.ID, r.partly,
		r.reads, r.writes, spends(t), a.TaskID, a.Terms.Write, r.taskLook, on.people, on.versions, r.caseMovedAt, original, t.Original,
		on.client, on.clientVersion)
	if err != nil {
		return false, err
	}
	if w.ID != nil {
		db.pulse.ring()
	}
	return w.ID != nil, heldUp(w.Held)
}

// rests are those whose authority something rests on, with their versions.
type rests struct {
	people        pq.StringArray
	versions      pq.Int64Array
	client        string
	clientVersion int64
}

func restsOn(subjects map[string]int64) rests {
	r := rests{people: pq.StringArray{}, versions: pq.Int64Array{}}
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		kind, id, _ := strings.Cut(subject, ":")
		if kind == action.ByClient {
			r.client, r.clientVersion = id, subjects[subject]
		} else {
			r.people, r.versions = append(r.people, id), append(r.versions, subjects[subject])
		}
	}
	return r
}

// look is the look at the target that belongs to a transition. What only reads
// waits for nobody: of it there may just not be two open at once.
func look(t action.Transition) string {
	switch {
	case t.Next.Terms.Write:
		return string(t.Hold)
	case t.Hold == action.HoldContent:
		return "same"
	}
	return ""
}

// goesOn reports whether a transition is one that a pause stops: something is
// proposed, claimed or attempted.
func goesOn(t action.Transition) bool {
	return t.Hold == action.HoldContent || t.Hold == action.HoldRun
}

// heldUp turns what stands in a target's way into a refusal.
func heldUp(held string) error {
	what, id, _ := strings.Cut(held, ":")
	switch what {
	case "":
		return nil
	case "paused":
		return pausedBy(id)
	case "budget":
		return exhausted(id)
	case "task":
		return action.Refuse(action.InvalidArgument, "This program has opened no such task.").Because("task").
			At("/task_id", "must be the id of a task that this program has opened, or be left out")
	case "tool":
		return action.Refuse(action.ToolUnavailable, "This tool was changed or taken out of use just now. Send the same again.").Because(approvals.ToolMoved)
	case "duplicate":
		return action.Refuse(action.DuplicateOpenAction, "The same is open already as "+id+". Wait for it, or cancel it first.").With("action", id)
	case "linked":
		return action.Followed(id)
	case "beside":
		return action.Beside(id)
	case "busy":
		return action.Refuse(action.TargetBlocked, "Another action on this object, "+id+", was sent and has no outcome yet.").Because("busy").With("action", id)
	}
	return action.Refuse(action.TargetBlocked, "The result of an earlier action on this object is unknown, case "+id+". It has to be settled first.").With("case", id)
}

func salt() []byte {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}

func nullBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return []byte(b)
}
