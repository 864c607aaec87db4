package action

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// life drives one action through Decide and keeps its events, the way a
// console does: each event folds into what the next command is decided on.
type life struct {
	t         tester
	now       time.Time
	a         Action
	events    []Event
	authority map[string][]string
	terms     Terms
	needs     []Need
	ops       int
}

var (
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)
	proposer = By{Kind: ByClient, ID: "cli_agent", Name: "agent"}
	executor = By{Kind: ByClient, ID: "cli_exec", Name: "executor"}
	rival    = By{Kind: ByClient, ID: "cli_rival", Name: "rival"}
	mia      = By{Kind: ByPerson, ID: "per_mia", Name: "Mia", Role: "support"}
	ben      = By{Kind: ByPerson, ID: "per_ben", Name: "Ben", Role: "support"}
	ops      = By{Kind: ByPerson, ID: "per_ops", Name: "Olga", Role: "ops"}
	otto     = By{Kind: ByPerson, ID: "per_ota", Name: "Otto", Role: "ops"}
)

const (
	payload5 = `{"new_price":105,"product_id":"p-1"}`
	payload6 = `{"new_price":106,"product_id":"p-1"}`
)

// newLife has a contract that allows everything once: a retry, completion, no
// reading back; one support approval; half an hour to decide.
func newLife(t tester) *life {
	return &life{t: t, now: noon,
		authority: map[string][]string{mia.ID: {"support"}, ben.ID: {"support"}},
		needs:     []Need{{Role: "support", Approvals: 1}},
		terms: Terms{Write: true, ConfirmationTTL: 5 * time.Minute, Lease: time.Minute, SendWithin: 5 * time.Second,
			Proves: ProvesCompleted, RetrySameKey: true, KeyLifetime: 24 * time.Hour, FenceAfter: 2 * time.Minute,
			Deadline: 3 * time.Minute, VerifyTries: 3, VerifyWindow: 20 * time.Second, Block: BlockTarget}}
}

func (l *life) snap() Snapshot {
	return Snapshot{Action: l.a, Now: l.now, Authority: l.authority}
}

// op returns a new name for a command.
func (l *life) op() string {
	l.ops++
	return fmt.Sprintf("op:%d", l.ops)
}

// try decides a command and, when there is something to write, writes it.
func (l *life) try(c Command) (Transition, error) {
	t, err := Decide(l.snap(), c)
	if err != nil || t.Event.Kind == "" {
		return t, err
	}
	l.events = append(l.events, t.Event)
	l.a = t.Next
	return t, nil
}

// do writes a command that must be allowed and leads to a state.
func (l *life) do(c Command, want State) Transition {
	l.t.Helper()
	t, err := l.try(c)
	if err != nil {
		l.t.Fatalf("%T: %v", c, err)
	}
	if t.Event.Kind == "" {
		l.t.Fatalf("%T wrote nothing", c)
	}
	if l.a.State != want {
		l.t.Fatalf("%T led to %s, want %s", c, l.a.State, want)
	}
	return t
}

// refuse wants a command to be refused.
func (l *life) refuse(c Command, code Code) *Refusal {
	l.t.Helper()
	version := l.a.Version
	t, err := l.try(c)
	var r *Refusal
	if !errors.As(err, &r) {
		l.t.Fatalf("%T was not refused: %v, wrote %q", c, err, t.Event.Kind)
	}
	if r.Code != code {
		l.t.Fatalf("%T refused with %q (%s), want %q", c, r.Code, r.Detail, code)
	}
	if l.a.Version != version || t.Event.Kind != "" {
		l.t.Fatalf("%T was refused and wrote something", c)
	}
	return r
}

func (l *life) wait(d time.Duration) *life { l.now = l.now.Add(d); return l }

func (l *life) content() Content {
	return Content{ToolVersion: 3, Scope: "shop", Target: &Target{"product", "p-1"}, ObjectVersion: ptr("7"),
		Payload: []byte(payload5), Reason: "list price", ExpiresIn: 30 * time.Minute, Terms: l.terms, Needs: l.needs}
}

func (l *life) propose() Propose {
	return Propose{Op: "propose:1", By: proposer, ID: "act_1", Tool: "catalog.set_price", Actor: Actor{"u-1", "Uma"}, Entry: "chat",
		RequestID: "req_1", Key: "exk_1", Ref: "cnf_1", Digest: "d", Content: l.content()}
}

func (l *life) draft() Propose {
	c := l.propose()
	c.Draft = true
	return c
}

func (l *life) submit() Submit {
	return Submit{Op: l.op(), By: proposer, ToolVersion: 4, Scope: "shop", Target: &Target{"product", "p-1"},
		Terms: l.terms, Needs: l.needs, Ref: "cnf_s"}
}

func (l *life) revise() Revise {
	return Revise{Op: l.op(), By: proposer, Scope: "shop-2", ObjectVersion: ptr("8"), Payload: []byte(payload6),
		Reason: "typo", ExpiresIn: 10 * time.Minute, Needs: l.needs, SecondPerson: l.terms.SecondPerson, Ref: "cnf_r"}
}

func (l *life) vote(by By, approve bool) Vote {
	return Vote{Op: fmt.Sprintf("decide:%d:%s", l.a.Revision, by.ID), By: by, Approve: approve, Revision: l.a.Revision,
		ProposalHash: l.a.ProposalHash, Ref: "cnf_" + by.ID}
}

func (l *life) claim(by By, id string) TakeClaim {
	return TakeClaim{By: by, ClaimID: id, ProposalHash: l.a.ProposalHash, ObjectVersion: l.a.ObjectVersion}
}

func (l *life) attempt(claim, id string) StartAttempt {
	next, _ := l.a.next()
	return StartAttempt{By: executor, AttemptID: id, ClaimID: claim, Step: next.Name, Fingerprint: "fp"}
}

// stepSent is the step that was attempted last.
func (l *life) stepSent() string {
	if n := len(l.a.Attempts); n > 0 {
		return l.a.Attempts[n-1].Step
	}
	next, _ := l.a.next()
	return next.Name
}

// inSteps gives the contract two steps, each with a query by its own key.
func (l *life) inSteps() *life {
	l.terms.Steps = []StepTerms{{Name: "price", Proves: ProvesCompleted, StatusQuery: "catalog.get_operation"},
		{Name: "notify", Proves: ProvesCompleted, StatusQuery: "catalog.get_operation"}}
	l.terms.MaxPolls = 3
	return l
}

// between has done the first step, in an attempt.
func (l *life) between(attempt string) *life {
	l.t.Helper()
	l.inSteps().claimed().do(l.attempt("c1", attempt), Executing)
	l.do(l.receipt(attempt, Success, ProvesCompleted), Executing)
	return l
}

func (l *life) receipt(attempt string, o Outcome, p Proof) AddReceipt {
	return AddReceipt{By: executor, CaseID: "cas_" + l.op(), Receipt: Receipt{ID: l.op(), AttemptID: attempt, Claimed: o, Outcome: o, Proves: p}}
}

func (l *life) failure(attempt, code string, conflict bool) AddReceipt {
	c := l.receipt(attempt, Failure, ProvesNothing)
	c.Receipt.Code, c.Receipt.Conflict = code, conflict
	return c
}

func (l *life) reading(version string, h Holds) AddObservation {
	return AddObservation{By: executor, CaseID: "cas_" + l.op(), Needs: l.needs, Observation: Observation{ID: l.op(), Tool: "catalog.get_product",
		Version: version, Holds: h, ObservedAt: l.now, Snapshot: []byte(`{"price":100}`)}}
}

func (l *life) evidence(outcome string, p Proof) AddEvidence {
	return AddEvidence{By: executor, CaseID: "cas_" + l.op(), Found: Found{ID: l.op(), Source: "catalog.get_operation", Step: l.stepSent(), Outcome: outcome, Proves: p, ObservedAt: l.now}}
}

func (l *life) retry(claim string) StartRetry {
	return StartRetry{By: executor, ClaimID: claim, ProposalHash: l.a.ProposalHash, ObjectVersion: l.a.ObjectVersion}
}

func (l *life) settle(verdict string) Settle {
	return Settle{Op: l.op(), By: ops, CaseID: l.a.CaseID(), Version: l.a.Version, Verdict: Verdict{Verdict: verdict,
		EvidenceKind: EvidenceReference, EvidenceRef: "r-9", SnapshotHash: l.a.SnapshotHash(), Note: "looked <&>"}}
}

func (l *life) confirm(by By, agree bool) Confirm {
	return Confirm{Op: l.op(), By: by, CaseID: l.a.CaseID(), Version: l.a.Version, SnapshotHash: l.a.SnapshotHash(), Agree: agree, Note: "so <&>"}
}

func (l *life) take(by By) TakeCase {
	return TakeCase{Op: l.op(), By: by, CaseID: l.a.CaseID(), Version: l.a.Version, SnapshotHash: l.a.SnapshotHash()}
}

func (l *life) handOver(by, to By) HandOver {
	return HandOver{Op: l.op(), By: by, CaseID: l.a.CaseID(), Version: l.a.Version, SnapshotHash: l.a.SnapshotHash(), To: to.ID, ToName: to.Name}
}

func (l *life) askAgain(by By) AskAgain {
	return AskAgain{Op: l.op(), By: by, CaseID: l.a.CaseID(), Version: l.a.Version, SnapshotHash: l.a.SnapshotHash()}
}

func (l *life) sendAgain(by By) SendAgain {
	return SendAgain{Op: l.op(), By: by, CaseID: l.a.CaseID(), Version: l.a.Version, SnapshotHash: l.a.SnapshotHash()}
}

// missed has the business system never have said that nothing was executed, and
// lets time pass.
func (l *life) missed(d time.Duration) *life {
	l.a.missed = 0
	return l.wait(d)
}

// query gives the contract a query by key.
func (l *life) query() { l.a.Terms.StatusQuery, l.a.Terms.MaxPolls = "catalog.get_operation", 3 }

// undoing makes it an action that undoes another one.
func (l *life) undoing() { l.a.Links.Compensates = "act_0" }

// linked is the end of an action that is linked to one that was done in part, as
// people found where it has no steps, when nothing can be on its way any more.
func (l *life) linked(how string, outcome State) Conclude {
	if l.wait(3 * time.Minute); l.a.CaseID() != "" && len(l.a.Steps) == 0 {
		l.do(l.settle(Partly), ResultUnknown)
	}
	return Conclude{By: By{Kind: BySystem}, Linked: "act_2", How: how, Outcome: outcome}
}

// held has a person take the case, when there is one.
func (l *life) held(by By) {
	if l.a.CaseID() != "" {
		l.do(l.take(by), ResultUnknown)
	}
}

// waiting has a verdict wait for a second person, when there is a case that can
// be settled so.
func (l *life) waiting(verdict string) {
	l.a.Terms.SecondPerson = true
	if l.a.CaseID() != "" && l.snap().Speaks(verdict) == nil {
		l.do(l.settle(verdict), ResultUnknown)
	}
}

// The stations of a life, each reached from the one before.

func (l *life) proposed() *life { l.t.Helper(); l.do(l.propose(), Proposed); return l }

func (l *life) confirmed() *life {
	l.t.Helper()
	l.proposed().do(l.vote(mia, true), Confirmed)
	return l
}

func (l *life) claimed() *life {
	l.t.Helper()
	l.confirmed().do(l.claim(executor, "c1"), Executing)
	return l
}

func (l *life) sent() *life { l.t.Helper(); l.claimed().do(l.attempt("c1", "t1"), Executing); return l }

func (l *life) unknown() *life {
	l.t.Helper()
	l.sent().do(l.receipt("t1", Unknown, ProvesNothing), ResultUnknown)
	return l
}

// retried has an unknown first attempt and a second one on its way.
func (l *life) retried() *life {
	l.t.Helper()
	l.unknown().do(l.evidence(FoundNotExecuted, ProvesNothing), ResultUnknown)
	l.do(l.retry("c2"), Executing)
	l.do(l.attempt("c2", "t2"), Executing)
	return l
}

// check holds what is true of every action at any time.
func (l *life) check() {
	l.t.Helper()
	folded, err := Fold(l.events)
	if err != nil {
		l.t.Fatal(err)
	}
	if !reflect.DeepEqual(folded, l.a) {
		l.t.Fatalf("folding all events makes another action:\n%+v\n%+v", folded, l.a)
	}
}
