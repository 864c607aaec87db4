package approvals_test

import (
	"fmt"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/store/stage"
)

// The columns of actions that an approval depends on, and what somebody with
// other access to the database could write there.
func boundColumns() map[string]string {
	return map[string]string{
		"state":            `'executing'`,
		"version":          `version + 1`,
		"revision":         `revision + 1`,
		"tool":             `'shop.big_price'`,
		"tool_version":     `tool_version + 1`,
		"client_id":        `'cli_other'`,
		"actor_id":         `'u-99'`,
		"target_type":      `'order'`,
		"target_id":        `'sku_other'`,
		"object_version":   `'v2'`,
		"payload_hash":     `'sha256:00'`,
		"proposal_hash":    `'sha256:00'`,
		"expires_at":       `expires_at + interval '1 day'`,
		"due_at":           `due_at + interval '1 day'`,
		"confirmation_ref": `'cnf_' || upper(md5(id))`,
	}
}

// freeColumns serve lists and order only: what runs is read from the events. A
// new column has to be in one of the two.
func freeColumns() []string {
	return []string{"id", "create_op", "scope", "task_id", "content_version", "created_at", "updated_at", "work", "work_at", "roles", "deciders",
		"claimed_by", "open_attempt", "block", "links", "refs", "key_until", "needs_person", "partly",
		"case_id", "case_why", "case_since", "case_moved_at", "case_pending", "case_closed_at", "reads", "writes", "writing", "task_look"}
}

// Report 1: what runs is what was approved, whoever changed what is stored.
func TestReport01_AChangedColumnIsNotRun(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	known := map[string]bool{}
	for _, c := range freeColumns() {
		known[c] = true
	}
	for column, value := range boundColumns() {
		known[column] = true
		t.Run(column, func(t *testing.T) {
			for _, state := range []action.State{action.Confirmed, action.Executing} {
				s.T = t
				change := fmt.Sprintf(`UPDATE actions SET %s = %s WHERE id = $1`, column, value)
				if state == action.Executing && column == "state" {
					change = `UPDATE actions SET state = 'confirmed' WHERE id = $1`
				}
				if state == action.Executing && column == "due_at" {
					continue // it says when the lease ends, which is read from the events
				}
				refusesWhen(s, state, func(a action.Action) { tamper(t, db, change, a.ID) })
			}
		})
	}
	s.T = t
	var columns []string
	rows, err := db.Query(`SELECT column_name FROM information_schema.columns WHERE table_name = 'actions'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c string
		if err := rows.Scan(&c); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, c)
		if !known[c] {
			t.Errorf("nobody has said whether the column %s binds an approval", c)
		}
	}
	if rows.Err() != nil || len(columns) != len(known) {
		t.Errorf("%d columns, %d known, %v", len(columns), len(known), rows.Err())
	}
}

func TestReport01_AChangedEventIsNotRun(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	data := func(version int, path, value string) func(action.Action) {
		return func(a action.Action) {
			tamper(s.T, db, `UPDATE events SET data = jsonb_set(data::jsonb, $3::text[], $4::jsonb)::text WHERE subject = $1 AND version = $2`,
				a.ID, version, "{"+path+"}", value)
		}
	}
	content := func(from, to string) func(action.Action) {
		return func(a action.Action) {
			tamper(s.T, db, `UPDATE bodies SET content = replace(convert_from(content, 'UTF8'), $2, $3)::bytea WHERE subject = $1 AND version = 1`, a.ID, from, to)
		}
	}
	for name, change := range map[string]func(action.Action){
		"revision":       data(1, "revision", `2`),
		"tool":           data(1, "tool", `"shop.big_price"`),
		"tool version":   data(1, "tool_version", `7`),
		"actor":          data(1, "actor_id", `"u-99"`),
		"target type":    data(1, "target,type", `"order"`),
		"target id":      data(1, "target,id", `"sku_other"`),
		"no target":      data(1, "target", `null`),
		"object version": data(1, "object_version", `"v2"`),
		"no version":     data(1, "object_version", `null`),
		"payload hash":   data(1, "payload_hash", `"sha256:00"`),
		"proposal hash":  data(1, "proposal_hash", `"sha256:00"`),
		"execution key":  data(1, "execution_key", `"exk_other"`),
		"expiry":         data(1, "expires_at", `"2040-01-01T00:00:00Z"`),
		"approved hash":  data(2, "proposal_hash", `"sha256:00"`),
		"approved revision": func(a action.Action) {
			data(2, "revision", `2`)(a)
			data(2, "confirmation,revision", `2`)(a)
		},
		"a number in the payload": content(`105`, `501`),
		"a member more":           content(`"new_price"`, `"x":1,"new_price"`),
		"content and its hash": func(a action.Action) {
			content(`105`, `501`)(a)
			payload := fmt.Appendf(nil, `{"new_price":501,"product_id":%q}`, a.Target.ID)
			data(1, "payload_hash", fmt.Sprintf("%q", action.PayloadHash(payload)))(a)
		},
		"state": func(a action.Action) {
			tamper(s.T, db, `UPDATE events SET to_state = 'applied' WHERE subject = $1 AND version = 2`, a.ID)
		},
		"an event taken away": func(a action.Action) {
			tamper(s.T, db, `DELETE FROM events WHERE subject = $1 AND version = 2`, a.ID)
		},
		"an event put in": func(a action.Action) {
			tamper(s.T, db, `INSERT INTO events SELECT subject, 9, 'more', kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data
				FROM events WHERE subject = $1 AND version = 2`, a.ID)
		},
		"the content taken away": func(a action.Action) {
			tamper(s.T, db, `DELETE FROM bodies WHERE subject = $1 AND version = 1`, a.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			refusesWhen(s, action.Confirmed, change)
			if name != "an event put in" {
				refusesWhen(s, action.Executing, change)
			}
		})
	}
	s.T = t
	refusesWhen(s, action.Confirmed, data(2, "confirmation,expires_at", `"2040-01-01T00:00:00Z"`))
}

// refusesWhen changes what is stored of a new action in a state, and asks for
// everything that leads to its run. Nothing may be answered or written.
func refusesWhen(s *stage.Stage, state action.State, change func(action.Action)) {
	s.T.Helper()
	version := "v1"
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.ObjectVersion = &version
	a := s.Approve(s.Propose(p), s.Mia)
	claim := action.NewID("clm")
	if state == action.Executing {
		a, claim = s.Claim(a)
	}
	change(a)
	before := len(s.Kinds(a.ID))
	refused(s, "verify", s.Approvals.Verify(background(), s.Executor, a.Confirmation.Ref, stage.Bound(a)))
	_, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, claim, stage.Bound(a))
	refused(s, "claim", err)
	if state == action.Executing {
		_, _, err = s.Triage.Start(background(), s.Executor, a.ID, stage.Attempt(claim))
		refused(s, "attempt", err)
	}
	if n := len(s.Kinds(a.ID)); n != before {
		s.T.Errorf("%s: a refusal wrote an event", state)
	}
}

// refused wants a refusal that a caller understands, not a fault of ours.
func refused(s *stage.Stage, what string, err error) {
	s.T.Helper()
	if err == nil {
		s.T.Errorf("%s goes through", what)
	} else if code := action.AsRefusal(err).Code; code == action.Internal || code == action.OutcomeUnknown {
		s.T.Errorf("%s fails with %v", what, err)
	}
}

// Report 1: nothing is changed through the API after an approval.
func TestReport01_NothingIsChangedAfterApproval(t *testing.T) {
	s := set(t)
	a := s.Confirmed(stage.SetPrice, stage.Product())
	_, err := s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, approvals.Revision{Payload: cheaper(a)})
	s.Refused(err, action.WrongState)
	_, err = s.Approvals.Submit(background(), s.Agent, a.ID, a.Version)
	s.Refused(err, action.WrongState)
	for name, b := range map[string]approvals.Bound{
		"another hash":   {ProposalHash: a.PayloadHash},
		"no hash":        {},
		"a version more": {ProposalHash: a.ProposalHash, ObjectVersion: new(string)},
	} {
		refused(s, name, s.Approvals.Verify(background(), s.Executor, a.Confirmation.Ref, b))
		_, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), b)
		refused(s, name, err)
	}
	if got := s.Read(a.ID); got.Version != a.Version {
		t.Errorf("refusals left events: %v", s.Kinds(a.ID))
	}
	got, _ := s.Claim(a)
	if string(got.Payload) != string(a.Payload) || got.ProposalHash != a.ProposalHash {
		t.Errorf("approved %s, claimed %s", a.Payload, got.Payload)
	}
}
