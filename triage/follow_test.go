package triage_test

import (
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

const twoSteps = "shop.price_and_notice"

// follower is one way in which an action belongs to another one, and how the
// other turns out so that this one is not wanted any more.
type follower struct {
	name   string
	links  func(original string) action.Links
	tool   string
	late   string // what the business system says of the original afterwards
	state  action.State
	reason string
}

func followers() []follower {
	resumes := func(id string) action.Links { return action.Links{Resumes: id} }
	return []follower{
		{"resumes", resumes, askable, "SUCCEEDED", action.Applied, "link-complete"},
		{"resumes by another tool", resumes, risky, "SUCCEEDED", action.Applied, "link-moved"},
		{"replaces", func(id string) action.Links { return action.Links{Replaces: id} }, askable, "SUCCEEDED", action.Applied, "link-done"},
		{"compensates", func(id string) action.Links { return action.Links{Compensates: id} }, askable, "FAILED", action.Failed, "link-nothing"},
		{"resumes in steps", resumes, twoSteps, "SUCCEEDED", action.ResultUnknown, "link-complete"},
	}
}

// followSet is a console with contracts of which the business system can be asked,
// and a process that lives after every fence.
type followSet struct {
	*caseSet
	past *stage.Console
}

func followersOf(t *testing.T) *followSet {
	t.Helper()
	s := casesOf(t)
	s.Tool(strings.Replace(stage.Contract(twoSteps, "", `status_query: { tool: shop.operation, max_polls: 3 }
  steps:
    - { name: price, http: { method: POST, path: "/products/{product_id}/price" } }
    - { name: notify, http: { method: POST, path: "/products/{product_id}/notices" } }`),
		"http: { method: POST, path: \"/products/{product_id}/price\", body: payload }\n", "", 1))
	return &followSet{s, s.Later(3*time.Minute, storetest.Skewed)}
}

// original is an action whose outcome is unknown or, in steps, was in part.
func (s *followSet) original(f follower) action.Action {
	s.T.Helper()
	if f.tool != twoSteps {
		a, _ := s.unknown(askable)
		return a
	}
	a, claim := s.Claim(s.Confirmed(f.tool, stage.Product()))
	for step, o := range []action.Outcome{action.Success, action.Failure} {
		t := stage.Attempt(claim)
		t.Step = a.Terms.Steps[step].Name
		_, _, err := s.Triage.Start(background(), s.Executor, a.ID, t)
		must(s.t, err)
		a = s.Report(a, stage.Receipt(t.ID, claim, o))
	}
	if !a.Partly() {
		s.T.Fatalf("%s: %s", f.name, a.State)
	}
	return a
}

// approved is an approved action that follows another one.
func (s *followSet) approved(f follower, original action.Action) action.Action {
	s.T.Helper()
	p := stage.Proposal(f.tool, product(original), 7)
	p.Links = f.links(original.ID)
	snap, _, err := s.past.Approvals.Propose(background(), s.Agent, p)
	must(s.t, err)
	return s.Approve(snap.Action, s.Mia)
}

func (s *followSet) claim(a action.Action) (string, error) {
	id := action.NewID("clm")
	_, err := s.past.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, id, stage.Bound(a))
	return id, err
}

// attempt is the request that a claim would send.
func attempt(a action.Action, claim string) triage.Attempt {
	t := stage.Attempt(claim)
	if len(a.Terms.Steps) > 0 {
		t.Step = "notify"
	}
	return t
}

// says reports an answer by the key of an action, or of its last step.
func (s *followSet) says(a action.Action, status string) action.Action {
	s.T.Helper()
	o := reading("shop.operation", `{"status":"`+status+`"}`)
	if len(a.Terms.Steps) > 0 {
		o.Step = "notify"
	}
	snap, err := s.past.Triage.Observe(background(), s.Executor, a.ID, o)
	must(s.t, err)
	return snap.Action
}

// What follows another action is not sent once the other turns out to have done
// what it was to do, or to have left nothing to undo: however late that is known,
// before it is claimed, between the claim and the attempt, and before the retry;
// and not either where that was decided before and is only written now.
func TestReport26_NothingFollowsWhatTurnedOutOtherwise(t *testing.T) {
	s := followersOf(t)
	gates := map[string]func(follower, action.Action) (action.Action, action.Command, func(action.Action) error){
		"claim": func(f follower, o action.Action) (action.Action, action.Command, func(action.Action) error) {
			a := s.approved(f, o)
			return a, action.TakeClaim{By: s.Executor.By(), ClaimID: action.NewID("clm"), ProposalHash: a.ProposalHash}, func(a action.Action) error {
				_, err := s.claim(a)
				return err
			}
		},
		"attempt": func(f follower, o action.Action) (action.Action, action.Command, func(action.Action) error) {
			a := s.approved(f, o)
			claim, err := s.claim(a)
			must(t, err)
			p := attempt(a, claim)
			return a, action.StartAttempt{By: s.Executor.By(), AttemptID: action.NewID("att"), ClaimID: claim, Step: p.Step, Fingerprint: p.Fingerprint}, func(action.Action) error {
				_, _, err := s.past.Triage.Start(background(), s.Executor, a.ID, p)
				return err
			}
		},
		"retry": func(f follower, o action.Action) (action.Action, action.Command, func(action.Action) error) {
			a := s.approved(f, o)
			claim, err := s.claim(a)
			must(t, err)
			p := attempt(a, claim)
			_, _, err = s.past.Triage.Start(background(), s.Executor, a.ID, p)
			must(t, err)
			_, err = s.past.Triage.Report(background(), s.Executor, a.ID, stage.Receipt(p.ID, claim, action.Unknown))
			must(t, err)
			if a = s.says(a, "NOT_EXECUTED"); a.Work() != action.WorkRetry {
				t.Fatalf("%s: no retry is offered", f.name)
			}
			return a, action.StartRetry{By: s.Executor.By(), ClaimID: action.NewID("clm"), ProposalHash: a.ProposalHash}, func(a action.Action) error {
				_, err := s.claim(a)
				return err
			}
		},
	}
	for _, f := range followers() {
		for gate, at := range gates {
			if gate == "retry" && f.name == "compensates" { // it is sent once
				continue
			}
			o := s.original(f)
			a, cmd, late := at(f, o)
			snap, err := s.past.DB.Snapshot(background(), a.ID)
			must(t, err)
			early, err := action.Decide(snap, cmd)
			must(t, err)
			may, err := s.past.Approvals.MayFollow(background(), a)
			if must(t, err); !may {
				t.Errorf("%s, %s: it may not follow yet", f.name, gate)
			}
			if o = s.says(o, f.late); o.State != f.state {
				t.Fatalf("%s, %s: the original is %s", f.name, gate, o.State)
			}
			if written, err := s.past.DB.Append(background(), early); written || err != nil {
				t.Errorf("%s, %s: what was decided before is written: %v, %v", f.name, gate, written, err)
			}
			s.Refused(late(a), action.WrongState, f.reason)
			may, err = s.past.Approvals.MayFollow(background(), s.Read(a.ID))
			if must(t, err); may && gate != "attempt" {
				t.Errorf("%s, %s: it is offered", f.name, gate)
			}
			for range 2 {
				must(t, s.past.Triage.Conclude(background()))
			}
			left := gate == "retry" && f.state == action.Applied
			if n := s.Count(a.ID, action.KindConcluded); (n == 1) != left || left && s.Read(a.ID).Work() == action.WorkRetry {
				t.Errorf("%s, %s: left to people %d times", f.name, gate, n)
			}
			if n := s.Count(a.ID, action.KindAttempted); n != map[string]int{"retry": 1}[gate] {
				t.Errorf("%s, %s: %d attempts", f.name, gate, n)
			}
		}
	}
	_, err := s.DB.FoldCheck(background(), "", func(d store.Difference) { t.Errorf("%+v", d) })
	must(t, err)
}

// The attempt and what is found out of the original at the same moment: either
// the attempt was first, or it is not made; nobody waits for the other for ever.
func TestReport26_TheOriginalIsFoundOutAtTheSameMoment(t *testing.T) {
	s := followersOf(t)
	f := followers()[1]
	for range 10 {
		o := s.original(f)
		a := s.approved(f, o)
		claim, err := s.claim(a)
		must(t, err)
		var both sync.WaitGroup
		var refused error
		both.Go(func() {
			_, _, refused = s.past.Triage.Start(background(), s.Executor, a.ID, attempt(a, claim))
		})
		both.Go(func() { s.says(o, f.late) })
		both.Wait()
		if n := s.Count(a.ID, action.KindAttempted); (n == 1) != (refused == nil) {
			t.Fatalf("%d attempts, and the answer is %v", n, refused)
		}
		if refused != nil {
			s.Refused(refused, action.WrongState, f.reason)
		}
	}
}

// Of what cannot be read nobody knows whether it was done: nothing follows it,
// and what is known of the follower is taken all the same.
func TestNothingFollowsWhatCannotBeRead(t *testing.T) {
	s := followersOf(t)
	f := followers()[1]
	o := s.original(f)
	a := s.approved(f, o)
	db, err := sql.Open("postgres", storetest.Owner(s.DSN))
	must(t, err)
	defer db.Close()
	_, err = db.Exec(`UPDATE events SET data = '{' WHERE subject = $1 AND version = 1`, o.ID)
	must(t, err)
	_, err = s.claim(a)
	s.Refused(err, action.WrongState, "link-unreadable")
	may, err := s.past.Approvals.MayFollow(background(), a)
	if may || err != nil {
		t.Errorf("it may follow: %v, %v", may, err)
	}
	_, err = s.past.Triage.Observe(background(), s.Executor, a.ID, reading(stage.ReadPrice, `{"price":1}`))
	must(t, err)
}
