package approvals_test

import (
	"context"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

// meanwhile is a ledger where something happens once between what a command is
// decided on and its being written.
type meanwhile struct {
	approvals.Ledger
	happens func()
}

func (m *meanwhile) Append(ctx context.Context, t action.Transition) (bool, error) {
	if happens := m.happens; happens != nil {
		m.happens = nil
		happens()
	}
	return m.Ledger.Append(ctx, t)
}

// Authority that is taken away before a decision is written does not count, not
// even when that is done in the same moment: of who decides, of who approved
// before, and of who settles.
func TestReport13_AuthorityIsJudgedWhereTheDecisionIsWritten(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	now := &meanwhile{Ledger: s.DB}
	c := s.Over(s.DB, now)
	for name, revoke := range map[string]func(p people.Person){
		"before": func(p people.Person) { s.Grant(p, people.Grants{Roles: []string{people.RoleAuditor}}) },
		"in the same moment": func(p people.Person) {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(`UPDATE persons SET version = version + 1, roles = '{auditor}' WHERE id = $1`, p.ID); err != nil {
				t.Fatal(err)
			}
			go func() { // once the decision waits for it
				for waiting := 0; waiting == 0; time.Sleep(5 * time.Millisecond) {
					if err := db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
						t.Error(err)
						break
					}
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
			}()
		},
	} {
		first, second := s.Person(action.NewSecret(8), people.RoleSupport), s.Person(action.NewSecret(8), people.RoleSupport)
		a := s.Approve(s.Propose(stage.Proposal(stage.BigPrice, stage.Product(), 105)), first)
		now.happens = func() { revoke(first) }
		snap, err := c.Approvals.Decide(background(), second.ID, a.ID, stage.Ballot(a))
		if err != nil || snap.Action.State != action.Proposed || len(snap.Action.Decisions) != 2 {
			t.Errorf("%s: who approved before may not any more, and it is %s, %v", name, snap.Action.State, err)
		}
		a = s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
		now.happens = func() { revoke(second) }
		_, err = c.Approvals.Decide(background(), second.ID, a.ID, stage.Ballot(a))
		s.Refused(err, action.Forbidden)
		if a = s.Read(a.ID); a.Version != 1 {
			t.Errorf("%s: %d events", name, a.Version)
		}

		lost := s.At(action.ResultUnknown, nil)
		olga := s.Person(action.NewSecret(8), people.RoleOps)
		now.happens = func() { revoke(olga) }
		_, err = c.Cases.Settle(background(), triage.Who{ID: olga.ID, Method: people.ByPassword}, triage.See(lost),
			triage.Finding{Verdict: action.Happened, EvidenceKind: action.EvidenceReference, EvidenceRef: "r-1"})
		s.Refused(err, action.Forbidden)
		if again := s.Read(lost.ID); again.Version != lost.Version {
			t.Errorf("%s: settled by who may not", name)
		}
	}
}

// Who loses their authority and has it back counts again, and what that makes
// enough is confirmed although nobody is left to decide: whatever was read of it
// meanwhile, whatever stands before it, and however the change and a decision
// have overtaken each other.
func TestReport13_ApprovalsThatCountAgainConfirm(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	recount := func() error { return s.Approvals.Recount(background(), 1) }
	waiting := func() int {
		t.Helper()
		found, err := s.DB.Recounts(background(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	propose := func() action.Action {
		return s.Propose(stage.Proposal(stage.BigPrice, stage.Product(), 105))
	}
	damaged, other, a := s.Approve(propose(), s.Mia), s.Approve(propose(), s.Mia), s.Approve(propose(), s.Mia)
	tamper(t, db, `UPDATE events SET data = '{' WHERE subject = $1 AND version = 1`, damaged.ID)
	s.Grant(s.Mia, people.Grants{Roles: []string{people.RoleOps}})
	if a = s.Approve(a, s.Ken); a.State != action.Proposed {
		t.Fatalf("%s with one approval that counts", a.State)
	}
	if err := recount(); err == nil {
		t.Error("nothing is said of one that cannot be read")
	}
	if now := s.Read(a.ID); now.Version != a.Version || waiting() != 1 {
		t.Errorf("%s with one approval that counts, %d are looked at again", now.State, waiting())
	}
	s.Grant(s.Mia, people.Grants{Roles: []string{people.RoleSupport}})
	_, err := s.Triage.Observe(background(), s.Executor, a.ID, triage.Observation{ID: action.NewID("obs"), Tool: stage.ReadPrice, Snapshot: []byte(`{"price":100}`), ObservedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	recount()
	recount()
	if a = s.Read(a.ID); a.State != action.Confirmed || s.Count(a.ID, action.KindCounted) != 1 {
		t.Fatalf("%s, %q", a.State, s.Kinds(a.ID))
	}
	if named := approvers(t, s, a); len(named) != 2 {
		t.Errorf("the token names %q", named)
	}
	if other = s.Read(other.ID); other.State != action.Proposed || waiting() != 1 {
		t.Errorf("another one is %s, %d are looked at again", other.State, waiting())
	}
	s.Claim(a)

	b := s.Approve(s.Propose(stage.Proposal(stage.TwoRoles, stage.Product(), 105)), s.Ken)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT FROM persons WHERE id = $1 FOR SHARE`, s.Mia.ID); err != nil {
		t.Fatal(err)
	}
	granted := make(chan error, 1)
	go func() {
		_, err := s.People.SetGrants(background(), stage.System("both"), s.Mia.ID, people.Grants{Roles: []string{people.RoleSupport, "finance"}})
		granted <- err
	}()
	waits(t, db)
	if b = s.Approve(b, s.Mia); b.State != action.Proposed {
		t.Fatalf("%s by two of one role", b.State)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
	recount()
	if b = s.Read(b.ID); b.State != action.Confirmed {
		t.Errorf("%s, after a decision that the change of who gave it had to wait for", b.State)
	}
}
