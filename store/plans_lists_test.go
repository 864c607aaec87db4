package store_test

import (
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// A list that few rows belong to costs what it shows, not what else there is.
func TestAListOfFewReadsFew(t *testing.T) {
	t.Parallel()
	s := set(t)
	const many, few, page = 20_000, 3, 50
	rare := s.Client("rare", s.Admin, people.RoleProposer)
	for range few {
		a := s.Propose(stage.Proposal(stage.BigPrice, stage.Product(), 105))
		_, err := owner(t, s).Exec(`UPDATE actions SET client_id = $2, scope = 'rare', state = 'conflict', due_at = NULL, claimed_by = 'rare',
			created_at = created_at - interval '30 days', id = replace(id, left(id, 8), 'act_01A1') WHERE id = $1`, a.ID, rare.ID)
		must(t, err)
		_, err = owner(t, s).Exec(`UPDATE events SET subject = replace(subject, left(subject, 8), 'act_01A1') WHERE subject = $1`, a.ID)
		must(t, err)
	}
	all := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105)).ID
	storetest.Multiply(t, storetest.Owner(s.DSN), all, many)
	_, err := owner(t, s).Exec(`UPDATE actions a SET target_id = o.target_id, refs = o.refs FROM actions o
		WHERE o.id = $1 AND a.id IN (SELECT id FROM actions WHERE tool = o.tool ORDER BY id LIMIT 2000)`, all)
	must(t, err)
	narrow, _, cost := counted(t, s)
	everything, old := people.Viewer{All: true}, new(time.Now().AddDate(0, 0, -15))
	for name, f := range map[string]approvals.Filter{
		"tool":             {Viewer: everything, Tool: stage.BigPrice},
		"state":            {Viewer: everything, State: action.Conflict},
		"program":          {Viewer: people.Viewer{ClientID: rare.ID}},
		"tools":            {Viewer: people.Viewer{Limited: true, Tools: []string{stage.BigPrice, "shop.other"}}},
		"scopes":           {Viewer: people.Viewer{Limited: true, Scopes: []string{"rare", "other"}}},
		"claimed":          {Viewer: everything, ClaimedBy: "rare"},
		"before":           {Viewer: everything, To: old},
		"tool and outcome": {Viewer: everything, Tool: stage.BigPrice, State: action.Conflict},
	} {
		f.Limit = page
		got := cost(func() {
			if found, _, err := narrow.DB.Actions(background(), f); err != nil || len(found) != few {
				t.Fatalf("%s: %d found, %v", name, len(found), err)
			}
		})
		if got.scans != 0 || got.rows > 4*page {
			t.Errorf("%s reads %+v", name, got)
		}
	}
	of := s.Read(all)
	for name, f := range map[string]approvals.Filter{
		"actor":       {ActorID: of.Actor.ID},
		"target":      {Target: of.Target},
		"target's id": {Target: &action.Target{ID: of.Target.ID}},
	} {
		f.Viewer, f.Limit = everything, page
		got := cost(func() {
			if found, _, err := narrow.DB.Actions(background(), f); err != nil || len(found) != page {
				t.Fatalf("%s: %d found, %v", name, len(found), err)
			}
		})
		if got.scans != 0 || got.rows > 4*page {
			t.Errorf("%s of many reads %+v", name, got)
		}
	}
	others := approvals.QueueFilter{Person: s.Mia, Roles: s.Mia.Roles, Tab: approvals.ForOthers, Limit: page}
	if got := cost(func() { _, _, err := narrow.DB.Queue(background(), others); must(t, err) }); got.scans != 0 || got.rows > many+2*page {
		t.Errorf("a tab that nothing is in reads %+v", got)
	}
	for name, read := range map[string]func() error{
		"waiting":   func() error { _, err := narrow.DB.WaitingProposals(background(), everything, time.Minute); return err },
		"confirmed": func() error { _, err := narrow.DB.WaitingConfirmed(background(), everything); return err },
		"ages":      func() error { _, err := narrow.DB.CaseAges(background(), everything); return err },
		"pace": func() error {
			_, err := narrow.DB.Pace(background(), approvals.PaceFilter{Viewer: everything, From: time.Now().AddDate(0, 0, -7), To: time.Now().AddDate(0, 0, 1)})
			return err
		},
		"count": func() error { _, err := narrow.DB.QueueCount(background(), others, "", 200); return err },
	} {
		if got := cost(func() { must(t, read()) }); got.scans != 0 || got.rows > 3*approvals.Looked {
			t.Errorf("%s reads %+v", name, got)
		}
	}
}

// The lists of tasks, reconciliations, pauses and parked callbacks cost what they
// show.
func TestOtherListsReadWhatTheyShow(t *testing.T) {
	t.Parallel()
	s := set(t)
	const many, page = 10_000, 50
	k := s.Task(approvals.Limits{Writes: new(5)})
	for _, statement := range []string{
		`INSERT INTO tasks (id, version, state, create_op, client_id, created_at, reached, ends_at, max_reads, max_writes, reads)
			SELECT 'tsk_0' || lpad(i::text, 25, '0'), version, state, create_op || i, client_id, created_at, reached, ends_at, max_reads, max_writes, reads
			FROM tasks, generate_series(1, 10000) i WHERE id = '` + k.ID + `'`,
		`INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
			SELECT 'tsk_0' || lpad(i::text, 25, '0'), version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data
			FROM events, generate_series(1, 10000) i WHERE subject = '` + k.ID + `'`,
		`INSERT INTO bodies (subject, version, salt, content)
			SELECT 'tsk_0' || lpad(i::text, 25, '0'), version, salt, content FROM bodies, generate_series(1, 10000) i WHERE subject = '` + k.ID + `'`,
		`INSERT INTO reconciliations (id, op, version, tool, tool_version, from_at, to_at, sweep, by_kind, by_id, by_name, state, cursor, pages, listed, tries,
			problem, asked_at, progress_at, offer_at, ended_at, joined_at, joined_id, compared, totals, staged)
			SELECT 'rec_0' || lpad(i::text, 25, '0'), 'op' || i, 1, 'shop.listed', 1, now() - interval '2 hours', now() - interval '1 hour', true, 'system', '', '',
			'done', '', 1, 1, 0, '', now(), now(), now(), now(), now(), '', '', '{}', false FROM generate_series(1, 10000) i`,
		`INSERT INTO reconciliation_differences (run_id, key, class, tool, scope, action_id, case_id, digest, detail)
			SELECT 'rec_0' || lpad((1 + i % 2)::text, 25, '0'), 'exk_' || lpad(i::text, 6, '0'), CASE WHEN i % 2500 = 1 THEN 'theirs_only' ELSE 'awaiting' END,
			'shop.listed', '', '', '', '', '{}' FROM generate_series(1, 10000) i`,
		`INSERT INTO pauses (id, kind, value, reason, by_name, started_at, ended_at)
			SELECT 'pau_' || i, 'tool', 'shop.listed', 'why', 'Ana', now() - i * interval '1 minute', now() FROM generate_series(1, 10000) i`,
		`INSERT INTO parked_callbacks (tool, webhook_id, key, body, received_at, expires_at)
			SELECT 'shop.listed', 'msg_' || i, 'exk_' || i, '{}', now() - i * interval '1 second', now() + interval '1 day' FROM generate_series(1, 10000) i`,
		`ANALYZE`,
	} {
		_, err := owner(t, s).Exec(statement)
		must(t, err)
	}
	narrow, _, cost := counted(t, s, "tasks", "events", "bodies", "reconciliations", "reconciliation_differences", "pauses", "parked_callbacks")
	all := people.Viewer{All: true}
	run := "rec_00000000000000000000000002"
	for name, read := range map[string]func() (int, error){
		"tasks": func() (int, error) {
			found, _, err := narrow.DB.Tasks(background(), approvals.TaskFilter{Viewer: all, Limit: page})
			return len(found), err
		},
		"tasks of a program": func() (int, error) {
			found, _, err := narrow.DB.Tasks(background(), approvals.TaskFilter{Viewer: people.Viewer{ClientID: s.Agent.ID}, Limit: page})
			return len(found), err
		},
		"reconciliations": func() (int, error) {
			found, _, err := narrow.DB.Runs(background(), triage.RunFilter{Viewer: all, Limit: page})
			return len(found), err
		},
		"reconciliations of a tool": func() (int, error) {
			found, _, err := narrow.DB.Runs(background(), triage.RunFilter{Viewer: people.Viewer{Limited: true, Tools: []string{"shop.listed"}}, Limit: page})
			return len(found), err
		},
		"awaiting": func() (int, error) {
			found, err := narrow.DB.Differences(background(), triage.DifferenceFilter{Viewer: all, RunID: run, Class: triage.ClassAwaiting, Limit: page})
			return len(found), err
		},
		"pauses": func() (int, error) { found, err := narrow.DB.Pauses(background(), page); return len(found), err },
		"parked": func() (int, error) {
			found, _, err := narrow.DB.ParkedCallbacks(background(), all, page)
			return len(found), err
		},
	} {
		got := cost(func() {
			if n, err := read(); err != nil || n != page {
				t.Fatalf("%s: %d found, %v", name, n, err)
			}
		})
		if got.scans != 0 || got.rows > 8*page {
			t.Errorf("%s read %+v", name, got)
		}
	}
	// A few differences among many that are awaited, and what nothing is in.
	few := func(want int, read func() (int, error)) reads {
		return cost(func() {
			if n, err := read(); err != nil || n != want {
				t.Fatalf("%d found, want %d: %v", n, want, err)
			}
		})
	}
	if got := few(4, func() (int, error) {
		found, err := narrow.DB.Differences(background(), triage.DifferenceFilter{Viewer: all, RunID: run, Limit: page})
		return len(found), err
	}); got.scans != 0 || got.rows > 4*page {
		t.Errorf("differences read %+v", got)
	}
	if got := few(0, func() (int, error) {
		found, err := narrow.DB.RunningPauses(background(), all, page)
		return len(found), err
	}); got.scans != 0 || got.rows > page {
		t.Errorf("what is paused now reads %+v", got)
	}
	if got := few(0, func() (int, error) {
		runs, _, err := narrow.DB.OpenRuns(background(), triage.Run{}, page)
		return len(runs), err
	}); got.scans != 0 || got.rows > page {
		t.Errorf("what is compared now reads %+v", got)
	}
}
