package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/triage"
)

// Propose proposes p as the agent.
func (s *Stage) Propose(p approvals.Proposal) action.Action {
	s.T.Helper()
	snap, _, err := s.Approvals.Propose(context.Background(), s.Agent, p)
	s.must(err)
	return snap.Action
}

// Task opens a task of the agent.
func (s *Stage) Task(l approvals.Limits) approvals.Task {
	s.T.Helper()
	k, _, _, err := s.Approvals.OpenTask(context.Background(), s.Agent, approvals.NewTask{Key: action.NewID("key"), Title: "Answer a chat", Limits: l})
	s.must(err)
	return k
}

// Ballot is a yes to what an action is now.
func Ballot(a action.Action) approvals.Ballot {
	return approvals.Ballot{Approve: true, Revision: a.Revision, ProposalHash: a.ProposalHash, Method: "password"}
}

// Rejection is a no to what an action is now.
func Rejection(a action.Action) approvals.Ballot {
	b := Ballot(a)
	b.Approve, b.ReasonCode = false, "wrong_amount"
	return b
}

// Approve approves an action in turn by everybody named.
func (s *Stage) Approve(a action.Action, by ...people.Person) action.Action {
	s.T.Helper()
	for _, p := range by {
		snap, err := s.Approvals.Decide(context.Background(), p.ID, a.ID, Ballot(a))
		s.must(err)
		a = snap.Action
	}
	return a
}

// Confirmed returns an action on a product that Mia has approved.
func (s *Stage) Confirmed(tool, product string) action.Action {
	s.T.Helper()
	return s.Approve(s.Propose(Proposal(tool, product, 105)), s.Mia)
}

// Bound is what an executor sends with a claim of an action.
func Bound(a action.Action) approvals.Bound {
	return approvals.Bound{ProposalHash: a.ProposalHash, ObjectVersion: a.ObjectVersion}
}

// Claim claims an action as the executor and returns it with the claim_id.
func (s *Stage) Claim(a action.Action) (action.Action, string) {
	s.T.Helper()
	id := action.NewID("clm")
	c, err := s.Approvals.Claim(context.Background(), s.Executor, a.Confirmation.Ref, id, Bound(a))
	s.must(err)
	return c.Action, id
}

// Attempt is the request that an executor wants to send under a claim.
func Attempt(claim string) triage.Attempt {
	return triage.Attempt{ID: action.NewID("att"), ClaimID: claim, Fingerprint: "sha256:ab"}
}

// Start records an attempt under a claim.
func (s *Stage) Start(a action.Action, claim string) (action.Action, string) {
	s.T.Helper()
	t := Attempt(claim)
	_, _, err := s.Triage.Start(context.Background(), s.Executor, a.ID, t)
	s.must(err)
	return s.Read(a.ID), t.ID
}

// Receipt is a report of an attempt: SUCCESS with 200, FAILURE with 422, or
// UNKNOWN without an answer.
func Receipt(attempt, claim string, o action.Outcome) triage.Receipt {
	r := triage.Receipt{ID: action.NewID("rcp"), AttemptID: attempt, ClaimID: claim, Outcome: string(o), ProviderRef: "op-" + attempt}
	switch o {
	case action.Success:
		r.HTTPStatus, r.Proves, r.Body = 200, string(action.ProvesCompleted), []byte(`{"status":"done"}`)
	case action.Failure:
		r.HTTPStatus = 422
	}
	return r
}

// Report reports an attempt.
func (s *Stage) Report(a action.Action, r triage.Receipt) action.Action {
	s.T.Helper()
	snap, err := s.Triage.Report(context.Background(), s.Executor, a.ID, r)
	s.must(err)
	return snap.Action
}

// Read returns an action as its events tell it.
func (s *Stage) Read(id string) action.Action {
	s.T.Helper()
	snap, err := s.DB.Snapshot(context.Background(), id)
	s.must(err)
	return snap.Action
}

// Later starts a process that lives in the same database some time later.
func (s *Stage) Later(d time.Duration, skewed func(dsn string, d time.Duration) string) *Console {
	s.T.Helper()
	return s.Open(skewed(s.DSN, d), store.Options{MaxConns: 2})
}

// At returns a new action in a state, on a product of its own, that got there
// the way actions do. Expiry has to have a clock: later is a process that lives
// after every limit of the contracts.
func (s *Stage) At(state action.State, later *Console) action.Action {
	s.T.Helper()
	ctx, tool := context.Background(), SetPrice
	if state == action.Accepted {
		tool = AskOther
	}
	p := Proposal(tool, Product(), 105)
	p.Draft = state == action.Draft
	version := "v1"
	p.ObjectVersion = &version
	a := s.Propose(p)
	switch state {
	case action.Draft, action.Proposed:
		return a
	case action.Rejected:
		snap, err := s.Approvals.Decide(ctx, s.Mia.ID, a.ID, Rejection(a))
		s.must(err)
		return snap.Action
	case action.Cancelled:
		snap, err := s.Approvals.Cancel(ctx, s.Agent, a.ID, a.Version, "not wanted")
		s.must(err)
		return snap.Action
	case action.Expired:
		s.must(action.Sweep(ctx, later.DB, func(_ context.Context, after action.Due, _ int) (due []action.Due, _ error) {
			if after.ID == "" {
				due = append(due, action.Due{ID: a.ID})
			}
			return due, nil
		}, 1))
		return s.Read(a.ID)
	}
	if a = s.Approve(a, s.Mia); state == action.Confirmed {
		return a
	}
	a, claim := s.Claim(a)
	if state == action.Executing {
		return a
	}
	a, attempt := s.Start(a, claim)
	outcome, known := map[action.State]action.Outcome{action.Applied: action.Success, action.Accepted: action.Success,
		action.Failed: action.Failure, action.Conflict: action.Failure, action.ResultUnknown: action.Unknown}[state]
	if !known {
		s.T.Fatalf("the stage knows no way to the state %q", state)
	}
	r := Receipt(attempt, claim, outcome)
	if state == action.Conflict {
		r.HTTPStatus = 412
	}
	if a = s.Report(a, r); a.State != state {
		s.T.Fatalf("the way to %s led to %s", state, a.State)
	}
	return a
}

// Kinds returns the kinds of events of a subject, in order.
func (s *Stage) Kinds(subject string) []action.Kind {
	s.T.Helper()
	events, _, err := s.DB.Events(context.Background(), subject)
	s.must(err)
	kinds := []action.Kind{}
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Count tells how many events of a kind a subject has.
func (s *Stage) Count(subject string, kind action.Kind) int {
	s.T.Helper()
	n := 0
	for _, k := range s.Kinds(subject) {
		if k == kind {
			n++
		}
	}
	return n
}

// Refused fails the test unless err is a refusal with this code and, when one
// is given, this reason.
func (s *Stage) Refused(err error, code action.Code, reason ...string) *action.Refusal {
	s.T.Helper()
	if !action.IsCode(err, code) {
		s.T.Fatalf("want a refusal %q, got %v", code, err)
	}
	r := action.AsRefusal(err)
	if len(reason) > 0 && !slices.Contains(reason, r.Reason) {
		s.T.Fatalf("want the reason %q, got %q: %v", fmt.Sprint(reason), r.Reason, err)
	}
	return r
}

// Ops returns somebody who settles what nobody knows, the same every time.
func (s *Stage) Ops() people.Person {
	s.T.Helper()
	if s.ops.ID == "" {
		s.ops = s.Person("ops", people.RoleOps)
	}
	return s.ops
}
