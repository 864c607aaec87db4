package triage_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// running returns an action that was claimed and sent, with both ids.
func running(s *stage.Stage, tool string) (a action.Action, claim, attempt string) {
	a, claim = s.Claim(s.Confirmed(tool, stage.Product()))
	a, attempt = s.Start(a, claim)
	return a, claim, attempt
}

// reading is what a read tool showed when it arrives, also on a console whose
// clock is ahead of this one.
func reading(tool, snapshot string) triage.Observation {
	return triage.Observation{ID: action.NewID("obs"), Tool: tool, Snapshot: []byte(snapshot), ObservedAt: time.Now().Add(1000 * time.Hour)}
}

// B6: every state of a life is reached.
func TestB6_EveryStateIsReached(t *testing.T) {
	s := set(t)
	later := s.Later(48*time.Hour, storetest.Skewed)
	for _, state := range action.States() {
		a := s.At(state, later)
		if got := s.Read(a.ID); got.State != state {
			t.Errorf("%s is stored as %s", state, got.State)
		}
		list, _, err := s.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, State: state, Limit: 100})
		if err != nil || len(list) == 0 || list[0].ID != a.ID {
			t.Errorf("a list of %s shows %d, %v", state, len(list), err)
		}
	}
}

// B5, as far as the console goes: a price change with a version, a confirmation
// and a key.
func TestB5_APriceChangeIsAppliedOnce(t *testing.T) {
	s := set(t)
	version, product := "7", stage.Product()
	p := stage.Proposal(stage.SetPrice, product, 105)
	p.ObjectVersion = &version
	a := s.Approve(s.Propose(p), s.Mia)
	a, claim := s.Claim(a)
	a, attempt := s.Start(a, claim)
	r := stage.Receipt(attempt, claim, action.Success)
	r.ObjectVersionAfter = "8"
	if a = s.Report(a, r); a.State != action.Applied || a.Executions() != 1 {
		t.Fatalf("%s after %d executions", a.State, a.Executions())
	}
	// The same key is the same action, still done once.
	snap, replayed, err := s.Approvals.Propose(background(), s.Agent, p)
	if err != nil || !replayed || snap.Action.ID != a.ID || snap.Action.Executions() != 1 {
		t.Errorf("the key again: %s, replayed %v, %v", snap.Action.ID, replayed, err)
	}
	_, err = s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
	s.Refused(err, action.WrongState)
	_, _, err = s.Triage.Start(background(), s.Executor, a.ID, stage.Attempt(claim))
	s.Refused(err, action.LeaseLost)
	p.Payload = fmt.Appendf(nil, `{"product_id":%q,"new_price":110}`, product)
	_, _, err = s.Approvals.Propose(background(), s.Agent, p)
	s.Refused(err, action.IdempotencyKeyReused)
}

func TestB5_AMovedObjectIsAConflictAndNeedsANewProposal(t *testing.T) {
	s := set(t)
	version := "7"
	propose := func() action.Action {
		p := stage.Proposal(stage.ReadBack, stage.Product(), 105)
		p.ObjectVersion = &version
		return s.Approve(s.Propose(p), s.Mia)
	}
	moved := reading(stage.ReadPrice, `{"price":100,"version":8}`)
	for name, way := range map[string]func(a action.Action) (action.Action, error){
		"seen before the claim": func(a action.Action) (action.Action, error) {
			snap, err := s.Triage.Observe(background(), s.Executor, a.ID, moved)
			return snap.Action, err
		},
		"seen before the attempt": func(a action.Action) (action.Action, error) {
			a, _ = s.Claim(a)
			snap, err := s.Triage.Observe(background(), s.Executor, a.ID, moved)
			return snap.Action, err
		},
		"said by the business system": func(a action.Action) (action.Action, error) {
			a, claim := s.Claim(a)
			a, attempt := s.Start(a, claim)
			r := stage.Receipt(attempt, claim, action.Failure)
			r.HTTPStatus = 412
			snap, err := s.Triage.Report(background(), s.Executor, a.ID, r)
			return snap.Action, err
		},
	} {
		a, err := way(propose())
		if err != nil || a.State != action.Conflict {
			t.Errorf("%s: %s, %v", name, a.State, err)
			continue
		}
		_, err = s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
		s.Refused(err, action.WrongState)
		_, err = s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, approvals.Revision{Payload: a.Payload})
		s.Refused(err, action.WrongState)
		again := stage.Proposal(stage.ReadBack, a.Target.ID, 105)
		newer := "8"
		again.ObjectVersion, again.Links.Replaces = &newer, a.ID
		if b := s.Propose(again); b.State != action.Proposed || b.ExecutionKey == a.ExecutionKey || len(b.Decisions) != 0 {
			t.Errorf("%s: the new proposal is %s", name, b.State)
		}
	}
	same, err := s.Triage.Observe(background(), s.Executor, propose().ID, reading(stage.ReadPrice, `{"price":100,"version":"7"}`))
	if err != nil || same.Action.State != action.Confirmed {
		t.Errorf("the approved version makes it %s, %v", same.Action.State, err)
	}
}

func TestAReceiptCountsOnceAndIsTakenAfterTheLease(t *testing.T) {
	s := set(t)
	a, claim, attempt := running(s, stage.SetPrice)
	later := s.Later(20*time.Minute, storetest.Skewed) // the lease is 10 minutes
	r := stage.Receipt(attempt, claim, action.Success)
	r.Body = []byte(`{ "status": "done" }`)
	snap, err := later.Triage.Report(background(), s.Executor, a.ID, r)
	if err != nil || snap.Action.State != action.Applied || snap.Action.CaseID() != "" {
		t.Fatalf("a late receipt makes it %s, case %q, %v", snap.Action.State, snap.Action.CaseID(), err)
	}
	for range 3 {
		again, err := s.Triage.Report(background(), s.Executor, a.ID, r)
		if err != nil || again.Action.Version != snap.Action.Version || len(again.Action.Receipts) != 1 {
			t.Errorf("delivered again: %d receipts, %v", len(again.Action.Receipts), err)
		}
	}
	for name, edit := range map[string]func(*triage.Receipt){
		"outcome": func(r *triage.Receipt) { r.Outcome = string(action.Failure) },
		"status":  func(r *triage.Receipt) { r.HTTPStatus = 500 },
		"body":    func(r *triage.Receipt) { r.Body = []byte(`{"status":"gone"}`) },
		"ref":     func(r *triage.Receipt) { r.ProviderRef = "other" },
	} {
		other := r
		edit(&other)
		if _, err := s.Triage.Report(background(), s.Executor, a.ID, other); !action.IsCode(err, action.IdempotencyKeyInUse) {
			t.Errorf("the same id with another %s: %v", name, err)
		}
	}
	unknown := stage.Receipt(attempt, claim, action.Unknown)
	if got := s.Report(a, unknown); got.State != action.Applied {
		t.Errorf("not knowing lowers it to %s", got.State)
	}
}

func TestOutcomesAreWhatTheContractMakesOfThem(t *testing.T) {
	s := set(t)
	for name, c := range map[string]struct {
		receipt triage.Receipt
		want    action.State
	}{
		"a definite refusal":                  {triage.Receipt{Outcome: "FAILURE", HTTPStatus: 422}, action.Failed},
		"a failure that is not definite":      {triage.Receipt{Outcome: "FAILURE", HTTPStatus: 500}, action.ResultUnknown},
		"too many requests":                   {triage.Receipt{Outcome: "FAILURE", HTTPStatus: 429}, action.ResultUnknown},
		"a timeout":                           {triage.Receipt{Outcome: "UNKNOWN", Code: "EXECUTION_ERROR"}, action.ResultUnknown},
		"a failure without an answer":         {triage.Receipt{Outcome: "FAILURE"}, action.ResultUnknown},
		"nothing was sent":                    {triage.Receipt{Outcome: "FAILURE", Code: action.NotSent}, action.Failed},
		"a success with a refusal's status":   {triage.Receipt{Outcome: "SUCCESS", Proves: "completed", HTTPStatus: 422}, action.ResultUnknown},
		"accepted":                            {triage.Receipt{Outcome: "SUCCESS", Proves: "accepted", HTTPStatus: 202}, action.Accepted},
		"completed":                           {triage.Receipt{Outcome: "SUCCESS", Proves: "completed", HTTPStatus: 200}, action.Applied},
		"a success that does not say of what": {triage.Receipt{Outcome: "SUCCESS", HTTPStatus: 200}, action.Accepted},
	} {
		a, claim, attempt := running(s, stage.SetPrice)
		c.receipt.ID, c.receipt.AttemptID, c.receipt.ClaimID = action.NewID("rcp"), attempt, claim
		got := s.Report(a, c.receipt)
		if got.State != c.want || (got.State == action.ResultUnknown) != (got.CaseID() != "") {
			t.Errorf("%s: %s, case %q, want %s", name, got.State, got.CaseID(), c.want)
		}
	}
	a, claim, attempt := running(s, stage.AskOther) // proves acceptance at most
	if a = s.Report(a, stage.Receipt(attempt, claim, action.Success)); a.State != action.Accepted || a.Proven != action.ProvesAccepted {
		t.Errorf("it claims completion and is %s, proven %s", a.State, a.Proven)
	}
}

func TestAnAttemptIsOneRequest(t *testing.T) {
	s := set(t)
	a, claim, attempt := running(s, stage.SetPrice)
	first := s.Read(a.ID).Attempts[0]
	same := triage.Attempt{ID: attempt, ClaimID: claim, Fingerprint: first.Fingerprint}
	got, now, err := s.Triage.Start(background(), s.Executor, a.ID, same)
	if err != nil || got.Number != 1 || !got.SendBy.Equal(first.SendBy) || now.Before(first.At) {
		t.Errorf("asked again: %+v, %v", got, err)
	}
	for name, edit := range map[string]func(*triage.Attempt){
		"fingerprint": func(t *triage.Attempt) { t.Fingerprint = "other" },
		"step":        func(t *triage.Attempt) { t.Step = "other" },
	} {
		other := same
		edit(&other)
		if _, _, err := s.Triage.Start(background(), s.Executor, a.ID, other); !action.IsCode(err, action.IdempotencyKeyInUse) {
			t.Errorf("the same id with another %s: %v", name, err)
		}
	}
	_, _, err = s.Triage.Start(background(), s.Executor, a.ID, stage.Attempt(claim))
	s.Refused(err, action.AttemptOpen)
	_, _, err = s.Triage.Start(background(), s.Executor, a.ID, stage.Attempt(action.NewID("clm")))
	s.Refused(err, action.LeaseLost)
	_, err = s.Triage.Release(background(), s.Executor, a.ID, claim, "", "")
	s.Refused(err, action.AttemptOpen)
	if life := first.SendBy.Sub(first.At); life <= 0 || life > time.Minute {
		t.Errorf("it may leave for %s", life)
	}
}

func TestALeaseIsRenewedAndGivenBack(t *testing.T) {
	s := set(t)
	a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
	later := s.Later(5*time.Minute, storetest.Skewed)
	lease := action.NewID("lea")
	snap, err := later.Triage.Renew(background(), s.Executor, a.ID, claim, lease)
	if err != nil || !snap.Action.Claim.LeaseUntil.After(a.Claim.LeaseUntil.Add(4*time.Minute)) {
		t.Fatalf("renewed to %v from %v, %v", snap.Action.Claim.LeaseUntil, a.Claim.LeaseUntil, err)
	}
	again, err := later.Triage.Renew(background(), s.Executor, a.ID, claim, lease)
	if err != nil || !again.Action.Claim.LeaseUntil.Equal(snap.Action.Claim.LeaseUntil) {
		t.Errorf("the same renewal again: %v, %v", again.Action.Claim.LeaseUntil, err)
	}
	after := s.Later(14*time.Minute, storetest.Skewed) // past the first lease, within the second
	_, err = after.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
	s.Refused(err, action.AlreadyClaimed)
	end := s.Later(16*time.Minute, storetest.Skewed)
	_, err = end.Triage.Renew(background(), s.Executor, a.ID, claim, action.NewID("lea"))
	s.Refused(err, action.LeaseLost)
	c, err := end.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
	if err != nil || c.Action.State != action.Executing {
		t.Fatalf("a lapsed claim keeps the confirmation: %v", err)
	}
	if n := s.Count(a.ID, action.KindLapsed); n != 1 {
		t.Errorf("it lapsed %d times", n)
	}

	for code, want := range map[string]action.State{"": action.Confirmed, "FORBIDDEN": action.Failed, "TOOL_UNAVAILABLE": action.Failed, "PRECONDITION_FAILED": action.Failed} {
		a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
		snap, err := s.Triage.Release(background(), s.Executor, a.ID, claim, code, "")
		if err != nil || snap.Action.State != want || snap.Action.FailureCode != code {
			t.Errorf("given back with %q: %s, %q, %v", code, snap.Action.State, snap.Action.FailureCode, err)
		}
		if code == "" {
			code = "FORBIDDEN"
		} else {
			code = ""
		}
		_, err = s.Triage.Release(background(), s.Executor, a.ID, claim, code, "")
		s.Refused(err, action.IdempotencyKeyInUse)
	}
	a, claim = s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
	_, err = s.Triage.Release(background(), s.Executor, a.ID, claim, "BORED", "")
	s.Refused(err, action.InvalidArgument)
}

func TestOnlyExecutorsWithinTheirLimitsReport(t *testing.T) {
	s := set(t)
	a, claim, attempt := running(s, stage.SetPrice)
	limited := func(name string, g people.ClientGrants) people.Client { return s.ClientWith(name, s.Admin, g) }
	for name, c := range map[string]struct {
		client people.Client
		code   action.Code
	}{
		"the proposer":       {s.Agent, action.Forbidden},
		"a reader":           {s.Client("reader", s.Admin, people.RoleReader), action.Forbidden},
		"another's proposer": {s.Client("proposer", s.Admin, people.RoleProposer), action.NotFound},
		"of another tool":    {limited("tool", people.ClientGrants{Roles: []string{people.RoleExecutor}, Tools: []string{stage.BigPrice}}), action.NotFound},
		"of another scope":   {limited("scope", people.ClientGrants{Roles: []string{people.RoleExecutor}, Scopes: []string{"bank"}}), action.NotFound},
	} {
		for what, call := range map[string]func() error{
			"claim": func() error {
				_, err := s.Approvals.Claim(background(), c.client, a.Confirmation.Ref, claim, stage.Bound(a))
				return err
			},
			"renew": func() error {
				_, err := s.Triage.Renew(background(), c.client, a.ID, claim, action.NewID("lea"))
				return err
			},
			"release": func() error { _, err := s.Triage.Release(background(), c.client, a.ID, claim, "", ""); return err },
			"attempt": func() error {
				_, _, err := s.Triage.Start(background(), c.client, a.ID, stage.Attempt(claim))
				return err
			},
			"receipt": func() error {
				_, err := s.Triage.Report(background(), c.client, a.ID, stage.Receipt(attempt, claim, action.Success))
				return err
			},
			"observe": func() error {
				_, err := s.Triage.Observe(background(), c.client, a.ID, reading(stage.ReadPrice, `{"price":1}`))
				return err
			},
		} {
			if err := call(); !action.IsCode(err, c.code) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	if got := s.Read(a.ID); got.Version != a.Version {
		t.Errorf("refusals left events: %v", s.Kinds(a.ID))
	}
}

// What was sent is done only when it is read back.
func TestCompletionIsReadBack(t *testing.T) {
	s := set(t)
	observe := func(a action.Action, o triage.Observation) action.Action {
		t.Helper()
		snap, err := s.Triage.Observe(background(), s.Executor, a.ID, o)
		must(t, err)
		return snap.Action
	}
	a, claim, attempt := running(s, stage.ReadBack)
	a = s.Report(a, stage.Receipt(attempt, claim, action.Success))
	if a.State != action.Accepted || a.Work() != action.WorkVerify {
		t.Fatalf("%s, to do: %q", a.State, a.Work())
	}
	failed := reading(stage.ReadPrice, "")
	failed.Snapshot, failed.Error = nil, "timeout"
	if a = observe(a, failed); a.State != action.Accepted {
		t.Errorf("a reading that failed makes it %s", a.State)
	}
	if a = observe(a, reading(stage.SetPrice, `{"price":105}`)); a.State != action.Accepted {
		t.Errorf("a reading of something else makes it %s", a.State)
	}
	if a = observe(a, reading(stage.ReadPrice, `{"price":105}`)); a.State != action.Applied {
		t.Errorf("the promised price makes it %s", a.State)
	}
	b, claim, attempt := running(s, stage.ReadBack)
	b = s.Report(b, stage.Receipt(attempt, claim, action.Success))
	for range 9 {
		if b = observe(b, reading(stage.ReadPrice, `{"price":100}`)); b.State != action.Accepted {
			break
		}
	}
	if b.State != action.ResultUnknown || b.Case.Why != action.WhyMismatch {
		t.Errorf("the old price, again and again, makes it %s", b.State)
	}
}

func TestReportsAreChecked(t *testing.T) {
	s := set(t)
	a, claim, attempt := running(s, stage.SetPrice)
	ok := stage.Receipt(attempt, claim, action.Success)
	for pointer, edit := range map[string]func(*triage.Receipt){
		"/receipt_id":   func(r *triage.Receipt) { r.ID = "" },
		"/attempt_id":   func(r *triage.Receipt) { r.AttemptID = "a b" },
		"/outcome":      func(r *triage.Receipt) { r.Outcome = "DONE" },
		"/proves":       func(r *triage.Receipt) { r.Proves = "everything" },
		"/provider_ref": func(r *triage.Receipt) { r.ProviderRef = string(make([]byte, 300)) },
	} {
		r := ok
		edit(&r)
		_, err := s.Triage.Report(background(), s.Executor, a.ID, r)
		if refusal := s.Refused(err, action.InvalidArgument); len(refusal.Errors) == 0 || refusal.Errors[0].Pointer != pointer {
			t.Errorf("%s: names %v", pointer, refusal.Errors)
		}
	}
	for name, o := range map[string]triage.Observation{
		"nothing":         {ID: "o", Tool: "t", ObservedAt: time.Now()},
		"both":            {ID: "o", Tool: "t", ObservedAt: time.Now(), Snapshot: []byte(`{}`), Error: "x"},
		"no time":         {ID: "o", Tool: "t", Snapshot: []byte(`{}`)},
		"no id":           {Tool: "t", Snapshot: []byte(`{}`), ObservedAt: time.Now()},
		"a callback's":    {ID: "webhook:msg_1", Tool: "t", Snapshot: []byte(`{}`), ObservedAt: time.Now()},
		"a list's":        {ID: "list:0", Tool: "t", Snapshot: []byte(`{}`), ObservedAt: time.Now()},
		"an endless text": {ID: "o", Tool: "t", Error: string(make([]byte, 2000)), ObservedAt: time.Now()},
	} {
		if _, err := s.Triage.Observe(background(), s.Executor, a.ID, o); !action.IsCode(err, action.InvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	missing := ok
	missing.AttemptID = action.NewID("att")
	_, err := s.Triage.Report(background(), s.Executor, a.ID, missing)
	s.Refused(err, action.NotFound)
	_, err = s.Triage.Report(background(), s.Executor, action.NewID("act"), ok)
	s.Refused(err, action.NotFound)
	if got := s.Read(a.ID); got.Version != a.Version {
		t.Errorf("refusals left events: %v", s.Kinds(a.ID))
	}
}
