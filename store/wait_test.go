package store_test

import (
	"database/sql"
	"strings"
	"testing"

	"countersign/action"
	"countersign/store/stage"
)

// A blocker is another session that stands in a command's way.
var blockers = map[string]string{
	"locks the row":    `SELECT FROM actions WHERE id = $1 FOR UPDATE`,
	"updates the row":  `UPDATE actions SET updated_at = updated_at WHERE id = $1`,
	"holds the target": `SELECT hold_target('case', '', '{}', '', '', target_type, target_id, '') FROM actions WHERE id = $1`,
}

func TestAClaimThatWaitsPastExpiryIsRefused(t *testing.T) {
	for name, blocker := range blockers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t)
			p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
			p.ExpiresIn = stage.Seconds(3)
			a := s.Approve(s.Propose(p), s.Mia)
			err := behind(t, s, a, blocker, func() error {
				_, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
				return err
			})
			s.Refused(err, action.ExpiredCode)
			if got := s.Read(a.ID); got.State != action.Expired || got.Claim != nil {
				t.Errorf("the action is %s", got.State)
			}
		})
	}
}

func TestADecisionThatWaitsPastExpiryIsRefused(t *testing.T) {
	t.Parallel()
	s := set(t)
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.ExpiresIn = stage.Seconds(3)
	a := s.Propose(p)
	err := behind(t, s, a, blockers["locks the row"], func() error {
		_, err := s.Approvals.Decide(background(), s.Mia.ID, a.ID, stage.Ballot(a))
		return err
	})
	s.Refused(err, action.ExpiredCode)
	if got := s.Read(a.ID); got.State != action.Expired || len(got.Decisions) != 0 {
		t.Errorf("the action is %s", got.State)
	}
}

func TestAnAttemptThatWaitsPastTheLeaseIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"locks the row", "holds the target"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t)
			s.Tool(strings.Replace(stage.Contract("shop.brief", "", "timeout: 1s"), "lease: 10m", "lease: 3s", 1))
			a, claim := s.Claim(s.Confirmed("shop.brief", stage.Product()))
			err := behind(t, s, a, blockers[name], func() error {
				_, _, err := s.Triage.Start(background(), s.Executor, a.ID, stage.Attempt(claim))
				return err
			})
			s.Refused(err, action.LeaseLost)
			if got := s.Read(a.ID); got.State != action.Confirmed || len(got.Attempts) != 0 {
				t.Errorf("the action is %s", got.State)
			}
		})
	}
}

// behind runs a command that waits for a blocker until the action's time is
// over by the database's clock.
func behind(t *testing.T, s *stage.Stage, a action.Action, blocker string, command func() error) error {
	t.Helper()
	db := owner(t, s)
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	if _, err := tx.Exec(blocker, a.ID); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- command() }()
	until(t, "the command's wait", func() bool { return waiting(t, db) == 1 })
	due := func(q interface {
		QueryRow(string, ...any) *sql.Row
	}) bool {
		return one[bool](t, q, `SELECT app_now() >= due_at FROM actions WHERE id = $1`, a.ID)
	}
	if due(db) {
		t.Fatal("the time was over before the command began to wait: nothing is shown")
	}
	until(t, "the end of its time", func() bool { return due(db) })
	must(t, tx.Commit())
	return <-done
}

// waiting counts the sessions of this database that wait for a lock.
func waiting(t *testing.T, db *sql.DB) int {
	t.Helper()
	return one[int](t, db, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}
