package approvals_test

import (
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// another returns a request for the same product that is no duplicate.
func another(product string) approvals.Proposal {
	return stage.Proposal(stage.SetPrice, product, 120)
}

func TestAClaimWaitsForTheOtherAttemptOnItsTarget(t *testing.T) {
	s := set(t)
	product := stage.Product()
	first := s.Confirmed(stage.SetPrice, product)
	second := s.Approve(s.Propose(another(product)), s.Mia)
	elsewhere := s.Confirmed(stage.SetPrice, stage.Product())
	first, claim := s.Claim(first)
	first, attempt := s.Start(first, claim)

	_, err := s.Approvals.Claim(background(), s.Executor, second.Confirmation.Ref, action.NewID("clm"), stage.Bound(second))
	if r := s.Refused(err, action.TargetBlocked, "busy"); r.Args["action"] != first.ID {
		t.Errorf("busy with %q", r.Args["action"])
	}
	if got := s.Read(second.ID); got.State != action.Confirmed {
		t.Errorf("a refused claim left it %s", got.State)
	}
	s.Claim(elsewhere)
	s.Propose(stage.Proposal(stage.SetPrice, product, 130)) // it may wait for people meanwhile
	s.Report(first, stage.Receipt(attempt, claim, action.Success))
	if got, _ := s.Claim(second); got.State != action.Executing {
		t.Errorf("once the attempt is over it is %s", got.State)
	}
}

func TestAnOpenCaseHoldsItsTargetUp(t *testing.T) {
	s := set(t)
	product := stage.Product()
	waiting := s.Propose(another(product))
	confirmed := s.Approve(s.Propose(stage.Proposal(stage.SetPrice, product, 130)), s.Mia)
	running, runningClaim := s.Claim(s.Approve(s.Propose(stage.Proposal(stage.SetPrice, product, 140)), s.Mia))
	draft := stage.Proposal(stage.SetPrice, product, 150)
	draft.Draft = true
	drafted := s.Propose(draft)

	lost, claim := s.Claim(s.Confirmed(stage.SetPrice, product))
	lost, attempt := s.Start(lost, claim)
	lost = s.Report(lost, stage.Receipt(attempt, claim, action.Unknown))
	if lost.State != action.ResultUnknown || lost.CaseID() == "" {
		t.Fatalf("%s, case %q", lost.State, lost.CaseID())
	}
	blocked := func(what string, err error) {
		t.Helper()
		if r := s.Refused(err, action.TargetBlocked); r.Args["case"] != lost.CaseID() {
			t.Errorf("%s: names %v, not the case %s", what, r.Args, lost.CaseID())
		}
	}
	_, _, err := s.Approvals.Propose(background(), s.Agent, stage.Proposal(stage.SetPrice, product, 160))
	blocked("propose", err)
	_, err = s.Approvals.Submit(background(), s.Agent, drafted.ID, drafted.Version)
	blocked("submit", err)
	_, err = s.Approvals.Revise(background(), s.Agent, waiting.ID, waiting.Version, approvals.Revision{Payload: waiting.Payload, Reason: "again"})
	blocked("revise", err)
	_, err = s.Approvals.Claim(background(), s.Executor, confirmed.Confirmation.Ref, action.NewID("clm"), stage.Bound(confirmed))
	blocked("claim", err)
	_, _, err = s.Triage.Start(background(), s.Executor, running.ID, stage.Attempt(runningClaim))
	blocked("attempt", err)
	for _, a := range []action.Action{waiting, confirmed, running, drafted} {
		if got := s.Read(a.ID); got.Version != a.Version {
			t.Errorf("%s: a refusal left an event: %v", a.State, s.Kinds(a.ID))
		}
	}

	// A linked action is how it is put right; another target has nothing to do with it.
	past := *s // what was sent cannot take effect any more
	past.Console = s.Open(storetest.Skewed(s.DSN, 2*time.Minute), store.Options{MaxConns: 4})
	for i, linked := range []struct {
		links   action.Links
		outcome action.Outcome
		state   action.State
	}{{action.Links{Replaces: lost.ID}, action.Failure, action.Failed}, {action.Links{Resumes: lost.ID}, action.Success, action.Applied}} {
		p := stage.Proposal(stage.SetPrice, product, float64(200+i))
		p.Links = linked.links
		a, claim := past.Claim(past.Approve(past.Propose(p), s.Mia))
		a, attempt := past.Start(a, claim)
		if a = past.Report(a, stage.Receipt(attempt, claim, linked.outcome)); a.State != linked.state {
			t.Errorf("%+v: it is %s", linked, a.State)
		}
	}
	s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
	s.Approve(waiting, s.Ken) // people may still decide

	// The case ends with a late receipt; everything goes on.
	late := stage.Receipt(attempt, claim, action.Success)
	if lost = s.Report(lost, late); lost.State != action.Applied || lost.CaseID() != "" {
		t.Fatalf("after the late receipt: %s, case %q", lost.State, lost.CaseID())
	}
	if got, _ := s.Claim(confirmed); got.State != action.Executing {
		t.Errorf("afterwards it is %s", got.State)
	}
}

func TestAContractNarrowsWhatItsCaseHoldsUp(t *testing.T) {
	s := set(t)
	for _, block := range []string{action.BlockTool, action.BlockNone} {
		s.Tool(strings.Replace(stage.Contract("shop.block_"+block, "", ""), "scope: shop", "scope: shop, block: "+block, 1))
	}
	for _, c := range []struct {
		block       string
		same, else_ bool // blocked?
	}{{action.BlockTool, true, false}, {action.BlockNone, false, false}} {
		product := stage.Product()
		tool := "shop.block_" + c.block
		lost, claim := s.Claim(s.Confirmed(tool, product))
		lost, attempt := s.Start(lost, claim)
		s.Report(lost, stage.Receipt(attempt, claim, action.Unknown))
		_, _, same := s.Approvals.Propose(background(), s.Agent, stage.Proposal(tool, product, 1))
		_, _, other := s.Approvals.Propose(background(), s.Agent, stage.Proposal(stage.SetPrice, product, 1))
		if action.IsCode(same, action.TargetBlocked) != c.same || action.IsCode(other, action.TargetBlocked) != c.else_ {
			t.Errorf("block: %s: the same tool %v, another %v", c.block, same, other)
		}
	}
}

// Two executors hold claims on one target: their attempts never overlap.
func TestAttemptsOnOneTargetNeverOverlap(t *testing.T) {
	s := set(t)
	one, two := s.Open(s.DSN, store.Options{MaxConns: 2}), s.Open(s.DSN, store.Options{MaxConns: 2})
	both := 0
	for range 25 {
		product := stage.Product()
		a, claimA := s.Claim(s.Confirmed(stage.SetPrice, product))
		b, claimB := s.Claim(s.Approve(s.Propose(another(product)), s.Mia))
		runs := []struct {
			console *stage.Console
			a       action.Action
			attempt triage.Attempt
		}{{one, a, stage.Attempt(claimA)}, {two, b, stage.Attempt(claimB)}}
		errs := make([]error, 2)
		atOnce(2, func(i int) {
			_, _, errs[i] = runs[i].console.Triage.Start(background(), s.Executor, runs[i].a.ID, runs[i].attempt)
		})
		if errs[0] == nil && errs[1] == nil {
			t.Fatal("both may send to one object")
		}
		for i, err := range errs {
			if err != nil {
				s.Refused(err, action.TargetBlocked, "busy")
				both++
				continue
			}
			s.Report(runs[i].a, stage.Receipt(runs[i].attempt.ID, runs[i].attempt.ClaimID, action.Success))
		}
		for i := range runs {
			if errs[i] != nil { // it can go on now
				if _, _, err := runs[i].console.Triage.Start(background(), s.Executor, runs[i].a.ID, runs[i].attempt); err != nil {
					t.Fatalf("the loser is still held up: %v", err)
				}
			}
		}
	}
	if both != 25 {
		t.Errorf("%d of 25 races had one winner", both)
	}
}

func TestProposalsForOneTargetWaitForItsCase(t *testing.T) {
	s := set(t)
	for range 10 {
		product := stage.Product()
		lost, claim := s.Claim(s.Confirmed(stage.SetPrice, product))
		lost, attempt := s.Start(lost, claim)
		other := s.Approve(s.Propose(another(product)), s.Mia)
		var err error
		atOnce(2, func(i int) {
			if i == 0 {
				s.Triage.Report(background(), s.Executor, lost.ID, stage.Receipt(attempt, claim, action.Unknown))
				return
			}
			_, err = s.Approvals.Claim(background(), s.Executor, other.Confirmation.Ref, action.NewID("clm"), stage.Bound(other))
		})
		s.Refused(err, action.TargetBlocked) // busy before the receipt, held up by the case after it
	}
}

// What only reads waits for no case and no attempt, and holds nobody up.
func TestReadsNeitherWaitNorHoldUp(t *testing.T) {
	s := set(t)
	s.Tool(`name: shop.look
read_only: true
input_schema: { type: object }
`)
	product := stage.Product()
	look := func(n float64) (action.Action, string) {
		t.Helper()
		p := stage.Proposal("shop.look", product, n)
		p.Target = &action.Target{Type: "product", ID: product}
		a, claim := s.Claim(s.Propose(p))
		return s.Start(a, claim)
	}
	lost, claim := s.Claim(s.Confirmed(stage.SetPrice, product))
	lost, attempt := s.Start(lost, claim)
	look(1) // beside an attempt
	s.Report(lost, stage.Receipt(attempt, claim, action.Unknown))
	a, read := look(2) // beside a case
	s.Report(lost, stage.Receipt(attempt, claim, action.Success))

	// The reads have open attempts; then one of them has a case.
	other, claim := s.Claim(s.Approve(s.Propose(another(product)), s.Mia))
	s.Report(a, stage.Receipt(read, a.Claim.ID, action.Unknown))
	if s.Read(a.ID).CaseID() == "" {
		t.Error("a read without an answer has no case")
	}
	s.Start(other, claim)
	s.Propose(stage.Proposal(stage.SetPrice, product, 3))

	p := stage.Proposal("shop.look", product, 1)
	p.Target = &action.Target{Type: "product", ID: product}
	_, _, err := s.Approvals.Propose(background(), s.Agent, p)
	s.Refused(err, action.DuplicateOpenAction) // the same read is open once
}
