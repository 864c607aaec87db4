package approvals_test

import (
	"slices"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
)

func TestOf64ClaimsAtOnceOneWins(t *testing.T) {
	s := set(t)
	a := s.Confirmed(stage.SetPrice, stage.Product())
	const n = 64
	consoles := make([]*stage.Console, n)
	for i := range consoles {
		consoles[i] = s.Open(s.DSN, store.Options{MaxConns: 1})
	}
	answers, errs := make([]approvals.Claimed, n), make([]error, n)
	claims := make([]string, n)
	for i := range claims {
		claims[i] = action.NewID("clm")
	}
	atOnce(n, func(i int) {
		answers[i], errs[i] = consoles[i].Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, claims[i], stage.Bound(a))
	})
	winner := slices.Index(errs, nil)
	if winner < 0 {
		t.Fatalf("nobody won: %v", errs)
	}
	for i, err := range errs {
		if i != winner {
			s.Refused(err, action.AlreadyClaimed)
		}
	}
	if got := s.Read(a.ID); got.State != action.Executing || got.Claim.ID != claims[winner] {
		t.Errorf("the action is %s, claimed by %+v", got.State, got.Claim)
	}
	if n := s.Count(a.ID, action.KindClaimed); n != 1 {
		t.Errorf("%d claims were recorded", n)
	}

	first := answers[winner]
	again, err := consoles[(winner+1)%n].Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, claims[winner], stage.Bound(a))
	if err != nil {
		t.Fatalf("the winner's repeat: %v", err)
	}
	if first.Token == "" || again.Token != first.Token || again.Action.ID != first.Action.ID ||
		again.Action.ExecutionKey != first.Action.ExecutionKey || string(again.Action.Payload) != string(first.Action.Payload) ||
		!again.Action.Claim.LeaseUntil.Equal(first.Action.Claim.LeaseUntil) || again.Tool.Version != first.Tool.Version {
		t.Errorf("the winner's repeat answers %+v, not %+v", again, first)
	}
}

func TestAClaimIsBoundToItsClient(t *testing.T) {
	s := set(t)
	other := s.Client("other executor", s.Admin, people.RoleExecutor)
	a := s.Confirmed(stage.SetPrice, stage.Product())
	a, claim := s.Claim(a)
	_, err := s.Approvals.Claim(background(), other, a.Confirmation.Ref, claim, stage.Bound(a))
	s.Refused(err, action.AlreadyClaimed)
	if got := s.Read(a.ID); got.Claim.Client != s.Executor.ID {
		t.Errorf("claimed by %s", got.Claim.Client)
	}
}

func TestALostLeaseCannotBeRepeatedBack(t *testing.T) {
	s := set(t)
	a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
	if _, err := s.Triage.Release(background(), s.Executor, a.ID, claim, "", ""); err != nil {
		t.Fatal(err)
	}
	_, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, claim, stage.Bound(a))
	s.Refused(err, action.LeaseLost)
	if got := s.Read(a.ID); got.State != action.Confirmed {
		t.Fatalf("the action is %s", got.State)
	}
	if b, _ := s.Claim(s.Read(a.ID)); b.State != action.Executing {
		t.Errorf("a new claim leaves it %s", b.State)
	}
}

// Report 2: a confirmation belongs to one action, whatever else is open.
func TestReport02_AConfirmationIsOfOneActionOnly(t *testing.T) {
	s := set(t)
	asked := s.Confirmed(stage.SetPrice, stage.Product())
	other := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 5))
	if other.Confirmation != nil {
		t.Fatal("what nobody approved has a confirmation")
	}
	_, err := s.Approvals.Claim(background(), s.Executor, asked.Confirmation.Ref, action.NewID("clm"), stage.Bound(other))
	s.Refused(err, action.StaleRevision)
	if a := s.Read(asked.ID); a.State != action.Confirmed {
		t.Errorf("a refused claim left the action %s", a.State)
	}
	c, err := s.Approvals.Claim(background(), s.Executor, asked.Confirmation.Ref, action.NewID("clm"), stage.Bound(asked))
	if err != nil || c.Action.ID != asked.ID || string(c.Action.Payload) != string(asked.Payload) {
		t.Errorf("the claim gave %s %s, %v", c.Action.ID, c.Action.Payload, err)
	}
	if a := s.Read(other.ID); a.State != action.Proposed {
		t.Errorf("the other action is %s", a.State)
	}
}

// Report 8: two surfaces approve at once; what they approved runs once.
func TestReport08_TwoApprovalsAtOnceReleaseOneRun(t *testing.T) {
	s := set(t)
	for range 8 {
		a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
		voters := []people.Person{s.Mia, s.Ken}
		refs := make([]string, 2)
		atOnce(2, func(i int) {
			snap, err := s.Approvals.Decide(background(), voters[i].ID, a.ID, stage.Ballot(a))
			if err == nil {
				refs[i] = snap.Action.Confirmation.Ref
			}
		})
		if (refs[0] == "") == (refs[1] == "") {
			t.Fatalf("confirmations %q: one approval should have been too late", refs)
		}
		a = s.Read(a.ID)
		if n := s.Count(a.ID, action.KindDecided); n != 1 {
			t.Fatalf("%d decisions confirm one action", n)
		}
		var won tally
		atOnce(4, func(int) {
			if _, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a)); err == nil {
				won.add("won")
			}
		})
		if won.n["won"] != 1 {
			t.Fatalf("%d executors may run it", won.n["won"])
		}
	}
}

// Report 10: what is over cannot run, whether or not somebody noticed.
func TestReport10_WhatIsOverCannotBeClaimed(t *testing.T) {
	s := set(t)
	a := s.Confirmed(stage.SetPrice, stage.Product())
	later := s.Later(time.Hour, storetest.Skewed)
	s.Refused(later.Approvals.Verify(background(), s.Executor, a.Confirmation.Ref, stage.Bound(a)), action.ExpiredCode)
	if n := s.Count(a.ID, action.KindExpired); n != 0 {
		t.Error("a check wrote an event")
	}
	_, err := later.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
	s.Refused(err, action.ExpiredCode)
	if got := s.Read(a.ID); got.State != action.Expired || len(got.Attempts) != 0 {
		t.Errorf("the action is %s", got.State)
	}
}
