package approvals_test

import (
	"fmt"
	"slices"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
)

// Report 9: approve and reject race; whoever is first has decided.
func TestReport09_Of50DecisionsAtOnceOneDecides(t *testing.T) {
	s := set(t)
	voters := make([]people.Person, 50)
	for i := range voters {
		voters[i] = s.Person(fmt.Sprintf("voter%02d", i), people.RoleSupport)
	}
	seen := map[action.State]bool{}
	for round := 0; round < 6 && len(seen) < 2; round++ {
		a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
		errs := make([]error, len(voters))
		atOnce(len(voters), func(i int) {
			b := stage.Ballot(a)
			if (i+round)%2 == 0 {
				b = stage.Rejection(a)
			}
			_, errs[i] = s.Approvals.Decide(background(), voters[i].ID, a.ID, b)
		})
		winner := -1
		for i, err := range errs {
			if err == nil && winner >= 0 {
				t.Fatalf("both %s and %s decided", voters[winner].Name, voters[i].Name)
			} else if err == nil {
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("nobody decided: %v", errs[0])
		}
		state, outcome := action.Confirmed, "approved"
		if (winner+round)%2 == 0 {
			state, outcome = action.Rejected, "rejected"
		}
		for i, err := range errs {
			if i == winner {
				continue
			}
			if r := s.Refused(err, action.AlreadyDecided, outcome); r.Args["by"] != voters[winner].Name {
				t.Fatalf("the loser is told that %q decided, not %q", r.Args["by"], voters[winner].Name)
			}
		}
		got := s.Read(a.ID)
		if got.State != state || len(got.Decisions) != 1 || got.Decisions[0].By.ID != voters[winner].ID {
			t.Fatalf("%s after %s %s it, with %d decisions", got.State, voters[winner].Name, outcome, len(got.Decisions))
		}
		if n := s.Count(a.ID, action.KindDecided); n != 1 {
			t.Fatalf("%d events decide it", n)
		}
		seen[state] = true
	}
}

func TestTwoApproversAtOnceConfirmWhereTwoAreNeeded(t *testing.T) {
	s := set(t)
	for range 10 {
		a := s.Propose(stage.Proposal(stage.BigPrice, stage.Product(), 105))
		voters, errs := []people.Person{s.Mia, s.Ken}, make([]error, 2)
		atOnce(2, func(i int) {
			_, errs[i] = s.Approvals.Decide(background(), voters[i].ID, a.ID, stage.Ballot(a))
		})
		if errs[0] != nil || errs[1] != nil {
			t.Fatalf("refused: %v", errs)
		}
		if got := s.Read(a.ID); got.State != action.Confirmed || len(got.Decisions) != 2 {
			t.Fatalf("%s after %d approvals of two", got.State, len(got.Decisions))
		}
	}
}

// Report 13: an approval counts as long as its giver may approve.
func TestReport13_AnApproverWithoutAuthorityNoLongerCounts(t *testing.T) {
	for name, revoke := range map[string]func(*stage.Stage){
		"another role": func(s *stage.Stage) { s.Grant(s.Mia, people.Grants{Roles: []string{people.RoleOps}}) },
		"other tools":  func(s *stage.Stage) { s.Grant(s.Mia, people.Grants{Roles: s.Mia.Roles, Tools: []string{"else"}}) },
		"auditor":      func(s *stage.Stage) { s.Grant(s.Mia, people.Grants{Roles: []string{people.RoleAuditor}}) },
		"own action": func(s *stage.Stage) {
			s.Grant(s.Mia, people.Grants{Roles: s.Mia.Roles, Actors: []string{"u-17"}})
		},
		"disabled": func(s *stage.Stage) {
			if _, err := s.People.DisablePerson(background(), stage.System("off"), s.Mia.ID); err != nil {
				s.T.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			a := s.Approve(s.Propose(stage.Proposal(stage.BigPrice, stage.Product(), 105)), s.Mia)
			if a.State != action.Proposed {
				t.Fatalf("%s after one approval of two", a.State)
			}
			revoke(s)
			standing, err := s.Approvals.Standing(background(), a, &s.Ken)
			if err != nil || standing.Given != 0 || standing.Missing != 2 || standing.Counting[s.Mia.ID] {
				t.Errorf("the standing still counts her: %+v, %v", standing, err)
			}
			if a = s.Approve(a, s.Ken); a.State != action.Proposed {
				t.Fatalf("%s with one approval that counts", a.State)
			}
			ada := s.Person("ada", people.RoleSupport)
			if a = s.Approve(a, ada); a.State != action.Confirmed {
				t.Fatalf("%s with two approvals that count", a.State)
			}
			if named := approvers(t, s, a); !slices.Equal(named, []string{s.Ken.ID + " support", ada.ID + " support"}) {
				t.Errorf("the token names %q", named)
			}
			s.Grant(ada, people.Grants{Roles: []string{people.RoleOps}})
			standing, err = s.Approvals.Standing(background(), a, nil)
			if err != nil || standing.Given != 2 || standing.Missing != 0 || !standing.Counting[ada.ID] || standing.Counting[s.Mia.ID] {
				t.Errorf("what was enough when it was confirmed is now %+v, %v", standing, err)
			}
		})
	}
}

// Report 12: a person counts once, whatever roles they hold.
func TestReport12_OnePersonWithTwoRolesCountsOnce(t *testing.T) {
	s := set(t)
	both := s.Person("both", people.RoleSupport, "finance")
	a := s.Approve(s.Propose(stage.Proposal(stage.TwoRoles, stage.Product(), 105)), both)
	if a.State != action.Proposed {
		t.Fatalf("one person with two roles made it %s", a.State)
	}
	again, err := s.Approvals.Decide(background(), both.ID, a.ID, stage.Ballot(a))
	if err != nil || again.Action.Version != a.Version {
		t.Errorf("approving again: version %d, %v", again.Action.Version, err)
	}
	// Whichever of the two seats is left, somebody with that role fills it.
	if a = s.Approve(a, s.Mia); a.State != action.Confirmed {
		t.Errorf("%s after the second person", a.State)
	}
	if named := approvers(t, s, a); !slices.Equal(named, []string{both.ID + " finance", s.Mia.ID + " support"}) {
		t.Errorf("the token names %q", named)
	}
	b := s.Approve(s.Propose(stage.Proposal(stage.TwoRoles, stage.Product(), 105)), both, s.Person("fin", "finance"))
	if b.State != action.Confirmed {
		t.Errorf("%s after the second person in the other role", b.State)
	}
	c := s.Propose(stage.Proposal(stage.TwoRoles, stage.Product(), 105))
	if c = s.Approve(c, s.Mia, s.Ken); c.State != action.Proposed {
		t.Errorf("two people in one role made it %s", c.State)
	}
}

// Report 4: a decision is about what its page showed.
func TestReport04_AStaleTabDecidesNothing(t *testing.T) {
	s := set(t)
	a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	shown := stage.Ballot(a)
	revised, err := s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, approvals.Revision{Payload: []byte(`{"product_id":"x","new_price":1}`)})
	s.Refused(err, action.InvalidArgument) // another target is another action
	revised, err = s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, approvals.Revision{Payload: cheaper(a)})
	if err != nil {
		t.Fatal(err)
	}
	b := revised.Action
	for name, ballot := range map[string]approvals.Ballot{
		"the old page":                      shown,
		"the old hash as the new revision":  {Approve: true, Revision: b.Revision, ProposalHash: a.ProposalHash},
		"the new hash as the old revision":  {Approve: true, Revision: a.Revision, ProposalHash: b.ProposalHash},
		"no hash":                           {Approve: true, Revision: b.Revision},
		"the old page, rejecting":           stage.Rejection(a),
		"the payload's hash as the content": {Approve: true, Revision: b.Revision, ProposalHash: b.PayloadHash},
	} {
		_, err := s.Approvals.Decide(background(), s.Mia.ID, a.ID, ballot)
		if !action.IsCode(err, action.StaleRevision) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := s.Read(a.ID); got.Version != b.Version {
		t.Errorf("refused decisions left events: %v", s.Kinds(a.ID))
	}
	if got := s.Approve(b, s.Mia); got.State != action.Confirmed {
		t.Errorf("the new page's approval leaves it %s", got.State)
	}
}

// Report 16: what was decided is seen as decided, and stays so.
func TestReport16_ADecisionStands(t *testing.T) {
	s := set(t)
	a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	if _, err := s.Approvals.Decide(background(), s.Mia.ID, a.ID, stage.Rejection(a)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Approvals.Decide(background(), s.Ken.ID, a.ID, stage.Ballot(a))
	s.Refused(err, action.AlreadyDecided, "rejected")
	_, err = s.Approvals.Decide(background(), s.Mia.ID, a.ID, stage.Ballot(a))
	s.Refused(err, action.AlreadyDecided, "by-you")
	if got := s.Read(a.ID); got.State != action.Rejected || got.Confirmation != nil {
		t.Errorf("the rejected action is %s", got.State)
	}
	queue, _, err := s.DB.Queue(background(), approvals.QueueFilter{Person: s.Ken, Roles: s.Ken.Roles, Tab: approvals.Everybody, Limit: 9})
	if err != nil || len(queue) != 0 {
		t.Errorf("a rejected action waits in the queue: %d, %v", len(queue), err)
	}

	b := s.Confirmed(stage.SetPrice, stage.Product())
	_, err = s.Approvals.Decide(background(), s.Ken.ID, b.ID, stage.Rejection(b))
	s.Refused(err, action.AlreadyDecided, "approved")
	_, err = s.Approvals.Decide(background(), s.Mia.ID, b.ID, stage.Rejection(b))
	s.Refused(err, action.AlreadyDecided, "by-you")
	if got := s.Read(b.ID); got.State != action.Confirmed {
		t.Errorf("the approved action is %s", got.State)
	}
	if c, _ := s.Claim(b); c.State != action.Executing {
		t.Errorf("the approved action cannot run: %s", c.State)
	}
}

func TestOnlyWhoMayDecideDecides(t *testing.T) {
	s := set(t)
	a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	for reason, p := range map[string]people.Person{
		"role":                s.Person("ops", people.RoleOps),
		"self-approval-actor": s.PersonWith("lin", people.Grants{Roles: []string{people.RoleSupport}, Actors: []string{"U-17"}}),
	} {
		_, err := s.Approvals.Decide(background(), p.ID, a.ID, stage.Ballot(a))
		s.Refused(err, action.Forbidden, reason)
	}
	both := s.Person("boss", people.RoleSupport, people.RoleAdmin)
	own := s.Client("the boss's agent", both, people.RoleProposer)
	snap, _, err := s.Approvals.Propose(background(), own, stage.Proposal(stage.SetPrice, stage.Product(), 105))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Approvals.Decide(background(), both.ID, snap.Action.ID, stage.Ballot(snap.Action))
	s.Refused(err, action.Forbidden, "self-approval-client")
	hidden := s.PersonWith("far", people.Grants{Roles: []string{people.RoleSupport}, Tools: []string{stage.BigPrice}})
	_, err = s.Approvals.Decide(background(), hidden.ID, a.ID, stage.Ballot(a))
	s.Refused(err, action.NotFound)
	if got := s.Read(a.ID); got.Version != 1 {
		t.Errorf("refusals left events: %v", s.Kinds(a.ID))
	}
}

func cheaper(a action.Action) []byte {
	return fmt.Appendf(nil, `{"new_price":99,"product_id":%q}`, a.Target.ID)
}
