package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"countersign/action"

	"github.com/lib/pq"
)

// remainsRow is what an action's row says without its events.
type remainsRow struct {
	rowColumns
	ID           string         `db:"id"`
	Scope        string         `db:"scope"`
	TaskID       string         `db:"task_id"`
	CreatedAt    time.Time      `db:"created_at"`
	UpdatedAt    time.Time      `db:"updated_at"`
	CaseID       *string        `db:"case_id"`
	CaseSince    *time.Time     `db:"case_since"`
	CaseWhy      *string        `db:"case_why"`
	CaseClosedAt *time.Time     `db:"case_closed_at"`
	KeyUntil     *time.Time     `db:"key_until"`
	Links        pq.StringArray `db:"links"`
	Refs         pq.StringArray `db:"refs"`
	Now          time.Time      `db:"now"`
}

// remains returns actions as their rows have them, for lists to name those whose
// events cannot be folded, by their ids; and the database clock.
func (db *DB) remains(ctx context.Context, ids []string) (map[string]action.Action, time.Time, error) {
	var rows []remainsRow
	err := db.selectAll(ctx, &rows, `
SELECT a.id, a.state, a.version, a.revision, a.tool, a.tool_version, a.client_id, a.actor_id, a.target_type, a.target_id, a.object_version,
    a.payload_hash, a.proposal_hash, a.expires_at, a.due_at, a.confirmation_ref, a.scope, a.task_id, a.created_at, a.updated_at,
    a.case_id, a.case_since, a.case_why, a.case_closed_at, a.key_until, a.links, a.refs, (SELECT app_now()) AS now
FROM actions a WHERE a.id = ANY ($1)`, pq.StringArray(ids))
	var now time.Time
	actions := map[string]action.Action{}
	for _, r := range rows {
		actions[r.ID], now = r.action(), r.Now.UTC()
	}
	return actions, now, err
}

func (r remainsRow) action() action.Action {
	a := action.Action{ID: r.ID, State: action.State(r.State), Version: r.Version, Revision: r.Revision, Tool: r.Tool, ToolVersion: r.ToolVersion,
		Client: action.By{Kind: action.ByClient, ID: r.ClientID, Name: r.ClientID}, Scope: r.Scope, TaskID: r.TaskID, Actor: action.Actor{ID: r.ActorID},
		ObjectVersion: r.ObjectVersion, PayloadHash: r.PayloadHash, ProposalHash: r.ProposalHash, ExpiresAt: r.ExpiresAt,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Unreadable: &action.Remains{DueAt: r.DueAt, KeyUntil: r.KeyUntil, Links: r.Links}}
	if i := slices.IndexFunc(r.Refs, func(ref string) bool { return strings.HasPrefix(ref, "exk_") }); i >= 0 {
		a.ExecutionKey = r.Refs[i] // none but its own can stand first
	}
	if r.TargetType != nil && r.TargetID != nil {
		a.Target = &action.Target{Type: *r.TargetType, ID: *r.TargetID}
	}
	switch {
	case r.CaseID != nil && r.CaseSince != nil:
		a.Case = &action.Case{ID: *r.CaseID, Open: true, OpenedAt: *r.CaseSince}
		if r.CaseWhy != nil {
			a.Case.Why = *r.CaseWhy
		}
	case r.CaseClosedAt != nil:
		a.Case = &action.Case{ClosedAt: *r.CaseClosedAt, OpenedAt: *r.CaseClosedAt}
		if i := slices.IndexFunc(r.Refs, func(ref string) bool { return strings.HasPrefix(ref, "cas_") }); i >= 0 {
			a.Case.ID = r.Refs[i] // the latest stands first
		}
	}
	return a
}
