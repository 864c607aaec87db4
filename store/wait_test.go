package store_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
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
			a, err := behind(t, s, blocker, func(seconds int) (action.Action, func() error) {
				p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
				p.ExpiresIn = stage.Seconds(seconds)
				a := s.Approve(s.Propose(p), s.Mia)
				return a, func() error {
					_, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
					return err
				}
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
	a, err := behind(t, s, blockers["locks the row"], func(seconds int) (action.Action, func() error) {
		p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
		p.ExpiresIn = stage.Seconds(seconds)
		a := s.Propose(p)
		return a, func() error {
			_, err := s.Approvals.Decide(background(), s.Mia.ID, a.ID, stage.Ballot(a))
			return err
		}
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
			a, err := behind(t, s, blockers[name], func(seconds int) (action.Action, func() error) {
				brief := fmt.Sprintf("shop.brief_%d", seconds)
				s.Tool(strings.Replace(stage.Contract(brief, "", "timeout: 1s"), "lease: 10m", fmt.Sprintf("lease: %ds", seconds), 1))
				a, claim := s.Claim(s.Confirmed(brief, stage.Product()))
				return a, func() error {
					_, _, err := s.Triage.Start(background(), s.Executor, a.ID, stage.Attempt(claim))
					return err
				}
			})
			s.Refused(err, action.LeaseLost)
			if got := s.Read(a.ID); got.State != action.Confirmed || len(got.Attempts) != 0 {
				t.Errorf("the action is %s", got.State)
			}
		})
	}
}

// behind runs a command that waits for a blocker until the time of its action is
// over by the database's clock. Where that is over before the command begins to
// wait nothing is shown, and another action gets more time.
func behind(t *testing.T, s *stage.Stage, blocker string, ready func(seconds int) (action.Action, func() error)) (action.Action, error) {
	t.Helper()
	db := owner(t, s)
	for seconds := 3; seconds < 100; seconds *= 3 {
		a, command := ready(seconds)
		if err, shown := waits(t, db, a, blocker, command); shown {
			return a, err
		}
	}
	t.Fatal("the time was always over before the command began to wait: nothing is shown")
	return action.Action{}, nil
}

// waits runs a command behind a blocker until the action's time is over, and
// reports whether it was not when the wait began.
func waits(t *testing.T, db *sql.DB, a action.Action, blocker string, command func() error) (err error, shown bool) {
	t.Helper()
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	if _, err := tx.Exec(blocker, a.ID); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- command() }()
	due := func() bool {
		return one[bool](t, db, `SELECT coalesce(app_now() >= due_at, true) FROM actions WHERE id = $1`, a.ID)
	}
	until(t, "the command's wait", func() bool { return waiting(t, db) == 1 || len(done) > 0 })
	shown = !due() && len(done) == 0
	until(t, "the end of its time", due)
	must(t, tx.Commit())
	return <-done, shown
}

// waiting counts the sessions of this database that wait for a lock.
func waiting(t *testing.T, db *sql.DB) int {
	t.Helper()
	return one[int](t, db, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// What is proposed while its tool is taken out of use is there to be cancelled, or
// is not written at all.
func TestNothingOfARetiredToolComesAfterTheLastLook(t *testing.T) {
	t.Parallel()
	s := set(t)
	db, product := owner(t, s), stage.Product()
	first := s.Propose(stage.Proposal(stage.SetPrice, product, 105))
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	_, err = tx.Exec(`SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 4801))`, first.Target.Type, first.Target.ID)
	must(t, err)
	results := make(chan error, 2)
	propose := func(p approvals.Proposal) { _, _, err := s.Approvals.Propose(background(), s.Agent, p); results <- err }
	go propose(stage.Proposal(stage.SetPrice, product, 106))
	until(t, "the proposal's wait", func() bool { return waiting(t, db) == 1 })
	retired := make(chan error, 1)
	go func() {
		retired <- s.Approvals.Retire(background(), stage.SetPrice, approvals.CancelOpen, s.Admin.As(people.RoleAdmin, people.ByPassword))
	}()
	until(t, "the retiring, or its wait", func() bool { return waiting(t, db) == 2 || len(retired) > 0 })
	draft := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	draft.Draft = true
	go propose(draft)
	until(t, "the draft, or its wait", func() bool { return waiting(t, db) == 3 || len(results) > 0 })
	must(t, tx.Commit())
	must(t, <-retired)
	for range 2 {
		if err := <-results; err != nil {
			s.Refused(err, action.ToolUnavailable)
		}
	}
	open, err := s.DB.OpenOf(background(), stage.SetPrice, "", 9)
	if err != nil || len(open) > 0 {
		t.Errorf("open of a tool out of use: %v, %v", open, err)
	}
}
