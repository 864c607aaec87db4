package triage_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
)

// besideSet proposes several actions that are linked to the same one.
type besideSet struct{ *followSet }

func (s besideSet) propose(f follower, original action.Action, price float64) (action.Action, error) {
	s.T.Helper()
	p := stage.Proposal(f.tool, product(original), price)
	p.Links = f.links(original.ID)
	snap, _, err := s.past.Approvals.Propose(background(), s.Agent, p)
	return snap.Action, err
}

func (s besideSet) approved(f follower, original action.Action, price float64) action.Action {
	s.T.Helper()
	a, err := s.propose(f, original, price)
	must(s.t, err)
	return s.Approve(a, s.Mia)
}

func (s besideSet) attempt(a action.Action, claim string) (string, error) {
	p := attempt(a, claim)
	_, _, err := s.past.Triage.Start(background(), s.Executor, a.ID, p)
	return p.ID, err
}

func (s besideSet) report(a action.Action, attempt, claim string, o action.Outcome) action.Action {
	s.T.Helper()
	snap, err := s.past.Triage.Report(background(), s.Executor, a.ID, stage.Receipt(attempt, claim, o))
	must(s.t, err)
	return snap.Action
}

func (s besideSet) offered(a action.Action) bool {
	s.T.Helper()
	work, _, err := s.past.DB.Work(background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Limit: 100})
	must(s.t, err)
	return slices.ContainsFunc(work, func(w action.Action) bool { return w.ID == a.ID })
}

// One action is undone, continued or replaced once: beside one that was sent, and
// did not definitely fail, no other is claimed, sent, offered or proposed.
func TestReport26_OneActionIsFollowedOnce(t *testing.T) {
	s := besideSet{followersOf(t)}
	beside := func(err error, by action.Action) {
		t.Helper()
		if r := s.Refused(err, action.WrongState, "link-beside"); r.Args["action"] != by.ID {
			t.Errorf("refused with %v", r.Args)
		}
	}
	for _, f := range followers()[:4] {
		for _, outcome := range []action.Outcome{action.Success, action.Unknown, action.Failure} {
			o := s.original(f)
			first, second, third := s.approved(f, o, 7), s.approved(f, o, 8), s.approved(f, o, 9)
			claim, err := s.claim(first)
			must(t, err)
			other, err := s.claim(second) // what was claimed, and not sent, hinders nobody
			must(t, err)
			snap, err := s.past.DB.Snapshot(background(), third.ID)
			must(t, err)
			early, err := action.Decide(snap, action.TakeClaim{By: s.Executor.By(), ClaimID: action.NewID("clm"), ProposalHash: third.ProposalHash})
			must(t, err)
			sent, err := s.attempt(first, claim)
			must(t, err)
			_, err = s.attempt(second, other)
			beside(err, first)
			_, err = s.claim(third)
			beside(err, first)

			first = s.report(first, sent, claim, outcome)
			if first.State == action.Failed {
				if !s.offered(third) {
					t.Errorf("%s: it is not offered beside one that failed", f.name)
				}
				_, err = s.attempt(second, other)
				must(t, err)
				continue
			}
			_, err = s.past.DB.Append(background(), early)
			beside(err, first)
			_, err = s.attempt(second, other)
			beside(err, first)
			_, err = s.claim(third)
			beside(err, first)
			_, err = s.propose(f, o, 10)
			beside(err, first)
			if s.offered(third) {
				t.Errorf("%s, %s: it is offered", f.name, outcome)
			}
		}
	}
	_, err := s.DB.FoldCheck(background(), "", func(d store.Difference) { t.Errorf("%+v", d) })
	must(t, err)
}

// Claimed both, and sent at the same moment: one is.
func TestReport26_TwoFollowersAtTheSameMoment(t *testing.T) {
	s := besideSet{followersOf(t)}
	s.Tool(strings.Replace(stage.Contract("shop.nowhere", "", "status_query: { tool: shop.operation, max_polls: 2 }"), "target: { type: product, id: /product_id, scope: shop }\n", "", 1))
	f := followers()[0]
	f.tool = "shop.nowhere" // no lock of a target is theirs
	for range 5 {
		o, _ := s.unknown(f.tool)
		var all [3]action.Action
		var claims [3]string
		var errs [3]error
		for i := range all {
			all[i] = s.approved(f, o, float64(7+i))
			claim, err := s.claim(all[i])
			must(t, err)
			claims[i] = claim
		}
		var group sync.WaitGroup
		for i := range all {
			group.Go(func() { _, errs[i] = s.attempt(all[i], claims[i]) })
		}
		group.Wait()
		sent := 0
		for i := range all {
			if errs[i] == nil {
				sent++
			} else {
				s.Refused(errs[i], action.WrongState, "link-beside")
			}
		}
		if sent != 1 {
			t.Fatalf("%d of them were sent", sent)
		}
	}
}
