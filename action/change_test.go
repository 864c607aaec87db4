package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRaceOfClaims(t *testing.T) {
	l := ledgerOf(newLife(t).confirmed())
	errs := l.race(64, func(i int, s Snapshot) Command {
		return TakeClaim{By: By{Kind: ByClient, ID: fmt.Sprint("cli_", i)}, ClaimID: fmt.Sprint("c", i),
			ProposalHash: s.Action.ProposalHash, ObjectVersion: s.Action.ObjectVersion}
	})
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Errorf("%d and %d both claimed", winner, i)
		case !IsCode(err, AlreadyClaimed):
			t.Errorf("%d: %v", i, err)
		}
	}
	a := l.action(t)
	if winner < 0 || l.count(KindClaimed) != 1 || a.Claim.ID != fmt.Sprint("c", winner) {
		t.Fatalf("winner %d, %d claims, %+v", winner, l.count(KindClaimed), a.Claim)
	}
	again, err := Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) {
		return TakeClaim{By: By{Kind: ByClient, ID: fmt.Sprint("cli_", winner)}, ClaimID: a.Claim.ID,
			ProposalHash: a.ProposalHash, ObjectVersion: a.ObjectVersion}, nil
	})
	if err != nil || again.Action.Claim.LeaseUntil != a.Claim.LeaseUntil || again.Action.Version != a.Version {
		t.Errorf("the winner's repeat: %v, %+v", err, again.Action.Claim)
	}
}

func TestReport09_RaceOfDecisions(t *testing.T) {
	life := newLife(t).proposed()
	for i := range 50 {
		life.authority[fmt.Sprint("per_", i)] = []string{"support"}
	}
	l := ledgerOf(life)
	errs := l.race(50, func(i int, s Snapshot) Command {
		by := By{Kind: ByPerson, ID: fmt.Sprint("per_", i), Name: fmt.Sprint("Person ", i)}
		return Vote{Op: "decide:1:" + by.ID, By: by, Approve: i%2 == 0, Revision: 1, ProposalHash: life.a.ProposalHash, Ref: fmt.Sprint("cnf_", i)}
	})
	a := l.action(t)
	if !a.State.In(Confirmed, Rejected) || l.count(KindDecided) != 1 || len(l.events) != 2 {
		t.Fatalf("%s after %d decisions", a.State, l.count(KindDecided))
	}
	winner := a.Decisions[0]
	outcome := map[bool]string{true: "approved", false: "rejected"}[winner.Approve]
	for i, err := range errs {
		if fmt.Sprint("per_", i) == winner.By.ID {
			if err != nil {
				t.Errorf("the winner: %v", err)
			}
			continue
		}
		if r := AsRefusal(err); r.Code != AlreadyDecided || r.Reason != outcome || r.Args["by"] != winner.By.Name {
			t.Errorf("%d: %v by %q", i, err, r.Args["by"])
		}
	}
}

func TestReport08_TwoApproversAtOnceWhereTwoAreNeeded(t *testing.T) {
	life := newLife(t)
	life.needs = []Need{{Role: "support", Approvals: 2}}
	l := ledgerOf(life.proposed())
	errs := l.race(2, func(i int, s Snapshot) Command {
		by := []By{mia, ben}[i]
		return Vote{Op: "decide:1:" + by.ID, By: by, Approve: true, Revision: 1, ProposalHash: s.Action.ProposalHash, Ref: "cnf_" + by.ID}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if a := l.action(t); a.State != Confirmed || a.Confirmation == nil || len(a.Decisions) != 2 {
		t.Errorf("%s with %d decisions", a.State, len(a.Decisions))
	}
}

func TestRaceOfCancelAndClaim(t *testing.T) {
	for range 20 {
		l := ledgerOf(newLife(t).confirmed())
		errs := l.race(2, func(i int, s Snapshot) Command {
			if i == 0 {
				return Cancel{Op: "cancel", By: proposer}
			}
			return TakeClaim{By: executor, ClaimID: "c1", ProposalHash: s.Action.ProposalHash, ObjectVersion: s.Action.ObjectVersion}
		})
		a := l.action(t)
		if (errs[0] == nil) == (errs[1] == nil) || (errs[0] == nil) != (a.State == Cancelled) || len(l.events) != 3 {
			t.Fatalf("cancel: %v, claim: %v, %s", errs[0], errs[1], a.State)
		}
	}
}

// A lost answer is neither success nor failure: the same command again finds
// out, and takes effect once.
func TestALostAnswer(t *testing.T) {
	commands := map[string]struct {
		station string
		command func(s Snapshot) Command
		to      State
	}{
		"revise": {"proposed", func(Snapshot) Command { return newLife(t).revise() }, Proposed},
		"decide": {"proposed", func(s Snapshot) Command {
			return Vote{Op: "decide:1", By: mia, Approve: true, Revision: 1, ProposalHash: s.Action.ProposalHash, Ref: NewRef()}
		}, Confirmed},
		"claim": {"confirmed", func(s Snapshot) Command {
			return TakeClaim{By: executor, ClaimID: "c1", ProposalHash: s.Action.ProposalHash, ObjectVersion: s.Action.ObjectVersion}
		}, Executing},
		"cancel":  {"confirmed", func(Snapshot) Command { return Cancel{Op: "cancel", By: proposer} }, Cancelled},
		"attempt": {"claimed", func(Snapshot) Command { return newLife(t).attempt("c1", "t1") }, Executing},
		"receipt": {"sent", func(Snapshot) Command {
			return AddReceipt{By: executor, Receipt: Receipt{ID: "r1", AttemptID: "t1", Claimed: Success, Outcome: Success, Proves: ProvesCompleted}}
		}, Applied},
	}
	for name, c := range commands {
		for _, committed := range []bool{true, false} {
			l := ledgerOf(stationLife(t, c.station))
			before := len(l.events)
			l.lose = func(n int) (bool, bool) { return n == 1, n > 1 || committed }
			s, err := Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) { return c.command(s), nil })
			if err != nil || s.Action.State != c.to || len(l.events) != before+1 {
				t.Errorf("%s, committed %v: %v, %s, %d events", name, committed, err, s.Action.State, len(l.events)-before)
				continue
			}
			again, err := Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) { return c.command(s), nil })
			if err != nil || again.Action.Version != s.Action.Version || len(l.events) != before+1 {
				t.Errorf("%s again: %v, version %d, was %d", name, err, again.Action.Version, s.Action.Version)
			}
		}
	}
}

func TestAnswersLostForEver(t *testing.T) {
	for _, committed := range []bool{true, false} {
		l := ledgerOf(newLife(t).confirmed())
		l.lose = func(int) (bool, bool) { return true, committed }
		_, err := Change(context.Background(), l, "act_1", func(Snapshot) (Command, error) { return Cancel{Op: "cancel", By: proposer}, nil })
		if committed && err != nil { // the next look shows it
			t.Errorf("committed: %v", err)
		}
		if !committed && !IsCode(err, OutcomeUnknown) {
			t.Errorf("not committed: %v", err)
		}
		if l.writes > 10 {
			t.Errorf("asked %d times", l.writes)
		}
	}
}

func TestNobodyKnowsWhileItCannotBeLookedAt(t *testing.T) {
	down := errors.New("no connection")
	l := ledgerOf(newLife(t).confirmed())
	l.lose = func(int) (bool, bool) { return true, false }
	l.unreadable = func(n int) error {
		if n > 1 {
			return down
		}
		return nil
	}
	cancel := func(Snapshot) (Command, error) { return Cancel{Op: "cancel", By: proposer}, nil }
	if _, err := Change(context.Background(), l, "act_1", cancel); !IsCode(err, OutcomeUnknown) || !errors.Is(err, down) {
		t.Errorf("lost, then no connection: %v", err)
	}
	l = ledgerOf(newLife(t).confirmed())
	l.unreadable = func(int) error { return down }
	if _, err := Change(context.Background(), l, "act_1", cancel); !errors.Is(err, down) || IsCode(err, OutcomeUnknown) {
		t.Errorf("nothing was written yet: %v", err)
	}
}

// What was written into a broken connection may still come through: a refusal
// is only true once the version has moved.
func TestARefusalAfterALostAnswer(t *testing.T) {
	no := Refuse(Forbidden, "not any more")
	vote := func(s Snapshot) (Command, error) {
		if len(s.Authority) == 0 {
			return nil, no
		}
		return Vote{Op: "d", By: mia, Approve: true, Revision: 1, ProposalHash: s.Action.ProposalHash, Ref: "cnf_x"}, nil
	}
	l := ledgerOf(newLife(t).proposed())
	l.lose = func(int) (bool, bool) { l.authority = nil; return true, false }
	if _, err := Change(context.Background(), l, "act_1", vote); !IsCode(err, OutcomeUnknown) {
		t.Errorf("it may still be written: %v", err)
	}
	l = ledgerOf(newLife(t).proposed())
	l.lose = func(n int) (bool, bool) {
		life := newLife(t).proposed()
		l.events, l.authority = append(l.events, life.do(life.revise(), Proposed).Event), nil
		return true, false
	}
	if _, err := Change(context.Background(), l, "act_1", vote); !IsCode(err, Forbidden) {
		t.Errorf("the version moved: %v", err)
	}
}

// The end is judged after the wait for the row.
func TestExpiredWhileWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		station string
		command func(s Snapshot) Command
	}{
		"claim": {"confirmed", func(s Snapshot) Command {
			return TakeClaim{By: executor, ClaimID: "c1", ProposalHash: s.Action.ProposalHash, ObjectVersion: s.Action.ObjectVersion}
		}},
		"decide": {"proposed", func(s Snapshot) Command {
			return Vote{Op: "d", By: mia, Approve: true, Revision: 1, ProposalHash: s.Action.ProposalHash, Ref: "cnf_x"}
		}},
		"cancel": {"confirmed", func(Snapshot) Command { return Cancel{Op: "cancel", By: proposer} }},
		"revise": {"proposed", func(Snapshot) Command { return newLife(t).revise() }},
	} {
		l := ledgerOf(stationLife(t, c.station))
		due, _ := l.action(t).DueAt()
		l.behindTheLock = func(l *ledger) { l.now = due }
		_, err := Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) { return c.command(s), nil })
		if !IsCode(err, ExpiredCode) || l.action(t).State != Expired || l.count(KindExpired) != 1 {
			t.Errorf("%s: %v, %s, %d expiries", name, err, l.action(t).State, l.count(KindExpired))
		}
	}
}

// An attempt that waited past its lease is not recorded.
func TestTheLeaseEndsWhileWaiting(t *testing.T) {
	l := ledgerOf(newLife(t).claimed())
	l.behindTheLock = func(l *ledger) { l.now = noon.Add(time.Minute) }
	_, err := Change(context.Background(), l, "act_1", func(Snapshot) (Command, error) { return newLife(t).attempt("c1", "t1"), nil })
	if a := l.action(t); !IsCode(err, LeaseLost) || a.State != Confirmed || len(a.Attempts) != 0 {
		t.Errorf("%v, %s", err, a.State)
	}
}

func TestWhatTimeDidIsWrittenFirst(t *testing.T) {
	l := ledgerOf(newLife(t).claimed().wait(time.Minute))
	s, err := Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) {
		return TakeClaim{By: rival, ClaimID: "c2", ProposalHash: s.Action.ProposalHash, ObjectVersion: s.Action.ObjectVersion}, nil
	})
	if err != nil || s.Action.Claim.ID != "c2" || l.count(KindLapsed) != 1 {
		t.Errorf("%v, claim %+v, %d lapses", err, s.Action.Claim, l.count(KindLapsed))
	}
	// Also when the command itself is refused before it is made.
	l = ledgerOf(newLife(t).proposed().wait(time.Hour))
	_, err = Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) { return nil, Refuse(StaleRevision, "no") })
	if !IsCode(err, StaleRevision) || l.action(t).State != Expired {
		t.Errorf("%v, %s", err, l.action(t).State)
	}
	// A repetition only answers as before.
	l = ledgerOf(newLife(t).proposed().wait(time.Hour))
	vote := newLife(t).proposed()
	voted := vote.do(vote.vote(mia, true), Confirmed).Event
	l.events = append(l.events, voted)
	s, err = Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) {
		return Vote{Op: voted.Op, By: mia, Approve: true, Revision: 1, ProposalHash: s.Action.ProposalHash, Ref: "cnf_y"}, nil
	})
	if err != nil || len(l.events) != 2 || s.Action.Confirmation.Ref != "cnf_per_mia" {
		t.Errorf("%v, %d events", err, len(l.events))
	}
}

func TestARefusalByTheTargetsLockEndsTheChange(t *testing.T) {
	l := &held{ledgerOf(newLife(t).confirmed())}
	_, err := Change(context.Background(), l, "act_1", func(s Snapshot) (Command, error) {
		return TakeClaim{By: executor, ClaimID: "c1", ProposalHash: s.Action.ProposalHash, ObjectVersion: s.Action.ObjectVersion}, nil
	})
	if !IsCode(err, TargetBlocked) || l.action(t).State != Confirmed {
		t.Errorf("%v, %s", err, l.action(t).State)
	}
}

type held struct{ *ledger }

func (h *held) Append(context.Context, Transition) (bool, error) {
	return false, Refuse(TargetBlocked, "case cas_1")
}

// never is a ledger on which everybody else is faster, always.
type never struct{ *ledger }

func (never) Append(context.Context, Transition) (bool, error) { return false, nil }

func TestChangeEndsWhenEveryRaceIsLost(t *testing.T) {
	l := never{ledgerOf(newLife(t).confirmed())}
	_, err := Change(context.Background(), l, "act_1", func(Snapshot) (Command, error) { return Cancel{Op: "c", By: proposer}, nil })
	if err == nil || AsRefusal(err).Code != Internal || l.reads > maxTries {
		t.Errorf("after %d reads: %v", l.reads, err)
	}
}

func TestSweep(t *testing.T) {
	l := ledgerOf(newLife(t).proposed().wait(time.Hour))
	due := func(names ...string) func(context.Context, Due, int) ([]Due, error) {
		return func(_ context.Context, after Due, limit int) (page []Due, _ error) {
			for _, id := range names[slices.Index(names, after.ID)+1:] {
				page = append(page, Due{ID: id})
			}
			return page[:min(limit, len(page))], nil
		}
	}
	err := Sweep(context.Background(), l, due("act_gone", "act_1", "act_lost"), 1)
	if l.action(t).State != Expired {
		t.Errorf("%s: one that cannot be swept kept another waiting", l.action(t).State)
	}
	if err == nil || !strings.Contains(err.Error(), "act_gone") || !strings.Contains(err.Error(), "act_lost") {
		t.Errorf("what failed is not named: %v", err)
	}
	if err := Sweep(context.Background(), l, due("act_1"), 1); err != nil {
		t.Errorf("nothing is due: %v", err)
	}
	if n := l.count(KindExpired); n != 1 {
		t.Errorf("%d expiries", n)
	}
	down := errors.New("down")
	if err := Sweep(context.Background(), l, func(context.Context, Due, int) ([]Due, error) { return nil, down }, 1); !errors.Is(err, down) {
		t.Errorf("the list cannot be read: %v", err)
	}
}
