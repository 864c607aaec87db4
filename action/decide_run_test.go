package action

import (
	"testing"
	"time"
)

func TestOneClaimIsLive(t *testing.T) {
	l := newLife(t).confirmed()
	first := l.claim(executor, "c1")
	l.do(first, Executing)
	if tr, err := l.wait(30 * time.Second).try(first); err != nil || tr.Event.Kind != "" {
		t.Errorf("the winner's repeat: %v, wrote %q", err, tr.Event.Kind)
	}
	l.refuse(l.claim(rival, "c2"), AlreadyClaimed)
	l.refuse(l.claim(executor, "c2"), AlreadyClaimed)
	l.refuse(l.claim(rival, "c1"), AlreadyClaimed)
	other := first
	other.ProposalHash = "sha256:00"
	l.refuse(other, StaleRevision)
	other = first
	other.ObjectVersion = nil
	l.refuse(other, VersionConflict)
	l.wait(30 * time.Second)
	l.refuse(first, LeaseLost)
}

func TestALapsedClaimFreesTheConfirmation(t *testing.T) {
	l := newLife(t).claimed()
	first := l.claim(executor, "c1")
	l.wait(time.Minute).do(Tick{}, Confirmed)
	if l.a.Confirmation.Ref != "cnf_per_mia" || !l.a.Claim.Over {
		t.Errorf("confirmation %+v, claim %+v", l.a.Confirmation, l.a.Claim)
	}
	l.refuse(first, LeaseLost) // the process that lost it does not get it back
	l.do(l.claim(rival, "c2"), Executing)
	l.refuse(l.attempt("c1", "t1"), LeaseLost)
	l.wait(4*time.Minute).do(Tick{}, Expired)
	l.refuse(l.claim(executor, "c3"), ExpiredCode)
}

func TestReleaseAfterTheConfirmationEnded(t *testing.T) {
	l := newLife(t).confirmed().wait(4*time.Minute + 30*time.Second)
	l.do(l.claim(executor, "c1"), Executing)
	l.wait(31*time.Second).do(Release{Op: "r", By: executor, ClaimID: "c1"}, Expired)
}

// The confirmation ends with the proposal, however long its own time is.
func TestAConfirmationDoesNotOutliveItsProposal(t *testing.T) {
	l := newLife(t).proposed().wait(28 * time.Minute)
	l.do(l.vote(mia, true), Confirmed)
	if !l.a.Confirmation.ExpiresAt.Equal(*l.a.ExpiresAt) {
		t.Errorf("confirmed until %v, proposed until %v", l.a.Confirmation.ExpiresAt, *l.a.ExpiresAt)
	}
}

func TestReport10_ExpiredIsExpiredBeforeAnybodyTries(t *testing.T) {
	l := newLife(t).proposed()
	end := *l.a.ExpiresAt
	for at, want := range map[time.Time]State{end.Add(-time.Nanosecond): Proposed, end: Expired, end.Add(time.Hour): Expired} {
		if got := l.a.StateAt(at); got != want {
			t.Errorf("at %v: %s, want %s", at, got, want)
		}
	}
	l = newLife(t).confirmed()
	if got := l.a.StateAt(l.a.Confirmation.ExpiresAt); got != Expired {
		t.Errorf("a confirmation at its end: %s", got)
	}
	l.wait(5 * time.Minute)
	if err := l.snap().Verify(l.a.ProposalHash, l.a.ObjectVersion); !IsCode(err, ExpiredCode) {
		t.Errorf("verify after the end: %v", err)
	}
}

func TestVerifyConsumesNothing(t *testing.T) {
	l := newLife(t).confirmed()
	if err := l.snap().Verify(l.a.ProposalHash, ptr("7")); err != nil {
		t.Errorf("what was approved: %v", err)
	}
	if err := l.snap().Verify("sha256:00", ptr("7")); !IsCode(err, StaleRevision) {
		t.Errorf("another hash: %v", err)
	}
	if err := l.snap().Verify(l.a.ProposalHash, nil); !IsCode(err, VersionConflict) {
		t.Errorf("no version: %v", err)
	}
	if err := newLife(t).proposed().snap().Verify("", nil); !IsCode(err, WrongState) {
		t.Errorf("what is only proposed: %v", err)
	}
}

// Every bound field that differs from what was approved is seen, also when
// somebody with other access to the database changed it.
func TestReport01_ClaimRefusesWhatWasTamperedWith(t *testing.T) {
	for name, spoil := range map[string]func(*Action){
		"payload":       func(a *Action) { a.Payload = []byte(payload6) },
		"payload, hash": func(a *Action) { a.Payload = []byte(payload6); a.PayloadHash = PayloadHash(a.Payload) },
		"target":        func(a *Action) { a.Target = &Target{"product", "p-2"} },
		"no target":     func(a *Action) { a.Target = nil },
		"actor":         func(a *Action) { a.Actor.ID = "u-2" },
		"tool":          func(a *Action) { a.Tool = "catalog.delete" },
		"tool version":  func(a *Action) { a.ToolVersion++ },
		"key":           func(a *Action) { a.ExecutionKey = "exk_2" },
		"expiry":        func(a *Action) { a.ExpiresAt = ptr(a.ExpiresAt.Add(time.Hour)) },
		"revision":      func(a *Action) { a.Revision++ },
		"decision":      func(a *Action) { a.Decisions[0].ProposalHash = "sha256:00" },
		"all rehashed": func(a *Action) {
			a.Payload = []byte(payload6)
			a.PayloadHash = PayloadHash(a.Payload)
			a.ProposalHash = a.Binding().Hash()
		},
	} {
		l := newLife(t).confirmed()
		spoil(&l.a)
		if r := l.refuse(l.claim(executor, "c1"), StaleRevision); r.Reason != "tampered" {
			t.Errorf("%s: reason %q", name, r.Reason)
		}
		l = newLife(t).claimed()
		spoil(&l.a)
		if r := l.refuse(l.attempt("c1", "t1"), StaleRevision); r.Reason != "tampered" {
			t.Errorf("%s: reason %q at the attempt", name, r.Reason)
		}
	}
	l := newLife(t).confirmed()
	s := l.snap()
	s.Differs = "object_version"
	if _, err := Decide(s, l.claim(executor, "c1")); !IsCode(err, StaleRevision) {
		t.Errorf("a row that differs from its events: %v", err)
	}
}

func TestVerifyDuringTheClaim(t *testing.T) {
	l := newLife(t).claimed()
	if err := l.snap().Verify(l.a.ProposalHash, ptr("7")); err != nil {
		t.Errorf("a claimed confirmation: %v", err)
	}
}

func TestRenew(t *testing.T) {
	l := newLife(t).claimed().wait(50 * time.Second)
	c := Renew{Op: "renew:1", By: executor, ClaimID: "c1"}
	tr := l.do(c, Executing)
	if want := l.now.Add(time.Minute); !l.a.Claim.LeaseUntil.Equal(want) {
		t.Errorf("lease until %v, want %v", l.a.Claim.LeaseUntil, want)
	}
	if !tr.Before.Equal(noon.Add(time.Minute)) {
		t.Errorf("renewed before %v", tr.Before)
	}
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	l.wait(time.Minute)
	l.refuse(c, LeaseLost) // a repetition does not say that a lost lease is live
}

// The time to send never outlives the lease: whoever lost it may not send.
func TestSendByEndsWithTheLease(t *testing.T) {
	l := newLife(t).claimed().wait(10 * time.Second)
	l.do(l.attempt("c1", "t1"), Executing)
	if want := l.now.Add(5 * time.Second); !l.a.Attempts[0].SendBy.Equal(want) {
		t.Errorf("send by %v, want %v", l.a.Attempts[0].SendBy, want)
	}
	l = newLife(t).claimed().wait(57 * time.Second)
	tr := l.do(l.attempt("c1", "t1"), Executing)
	if end := l.a.Claim.LeaseUntil; !l.a.Attempts[0].SendBy.Equal(end) || !tr.Before.Equal(end) {
		t.Errorf("send by %v, written before %v, lease until %v", l.a.Attempts[0].SendBy, tr.Before, end)
	}
}

func TestTheAttemptGate(t *testing.T) {
	l := newLife(t).claimed()
	first := l.attempt("c1", "t1")
	byRival := first
	byRival.By = rival
	l.refuse(byRival, LeaseLost)
	l.do(first, Executing)
	if tr, err := l.try(first); err != nil || tr.Event.Kind != "" {
		t.Errorf("the same attempt again: %v, wrote %q", err, tr.Event.Kind)
	}
	changed := first
	changed.Fingerprint = "other"
	l.refuse(changed, IdempotencyKeyInUse)
	l.refuse(byRival, IdempotencyKeyInUse)
	l.refuse(l.attempt("c1", "t2"), AttemptOpen)
	step := l.attempt("c1", "t2")
	step.Step = "notify"
	l.refuse(step, InvalidArgument)
	l.refuse(Release{Op: "r", By: executor, ClaimID: "c1"}, AttemptOpen)
	late := newLife(t).claimed().wait(time.Minute)
	late.refuse(late.attempt("c1", "t1"), LeaseLost)
}

// A console that finds an action waiting too long asks people, even when its
// executor renews for ever.
func TestADeadlineEndsARenewedClaim(t *testing.T) {
	l := newLife(t).sent()
	for range 3 {
		l.wait(50*time.Second).do(Renew{Op: l.op(), By: executor, ClaimID: "c1"}, Executing)
	}
	if due, _ := l.a.DueAt(); !due.Equal(noon.Add(3 * time.Minute)) {
		t.Fatalf("due at %v", due)
	}
	l.wait(30*time.Second).do(Tick{CaseID: "cas_1"}, ResultUnknown)
	if l.a.Case.Why != WhyDeadline || l.a.Case.Kind != CaseUnknown {
		t.Errorf("case %+v", l.a.Case)
	}
}

func TestACaseIsOpenedUnderTheTargetsLock(t *testing.T) {
	l := newLife(t).sent().wait(time.Minute)
	if tr := l.do(Tick{CaseID: "cas_1"}, ResultUnknown); tr.Hold != HoldCase {
		t.Errorf("holds %q", tr.Hold)
	}
	if l.a.Case.ID != "cas_1" || l.a.Case.Why != WhyLeaseLapsed {
		t.Errorf("case %+v", l.a.Case)
	}
	l = newLife(t).confirmed()
	if tr := l.do(l.evidence(FoundSucceeded, ProvesCompleted), ResultUnknown); tr.Hold != HoldCase {
		t.Errorf("a contradiction holds %q", tr.Hold)
	}
	l = newLife(t).sent()
	if tr := l.do(l.receipt("t1", Unknown, ""), ResultUnknown); tr.Hold != HoldCase {
		t.Errorf("an unknown receipt holds %q", tr.Hold)
	}
	l = stationLife(t, "verifying").wait(time.Minute)
	if tr := l.do(l.reading("8", HoldsFalse), ResultUnknown); tr.Hold != HoldCase {
		t.Errorf("a mismatch holds %q", tr.Hold)
	}
	l = newLife(t)
	if tr := l.do(l.propose(), Proposed); tr.Hold != HoldContent {
		t.Errorf("a proposal holds %q", tr.Hold)
	}
	l.do(l.vote(mia, true), Confirmed)
	if tr := l.do(l.claim(executor, "c1"), Executing); tr.Hold != HoldRun {
		t.Errorf("a claim holds %q", tr.Hold)
	}
	if tr := l.do(l.attempt("c1", "t1"), Executing); tr.Hold != HoldRun {
		t.Errorf("an attempt holds %q", tr.Hold)
	}
}

func TestGivenUpBeforeAnythingWasSent(t *testing.T) {
	l := newLife(t).claimed()
	c := Release{Op: "r", By: executor, ClaimID: "c1", Code: "FORBIDDEN"}
	l.do(c, Failed)
	if l.a.FailureCode != "FORBIDDEN" || l.a.Executions() != 0 {
		t.Errorf("code %q, %d executions", l.a.FailureCode, l.a.Executions())
	}
	if tr, err := l.try(c); err != nil || tr.Event.Kind != "" {
		t.Errorf("again: %v, wrote %q", err, tr.Event.Kind)
	}
	c.Code = ""
	l.refuse(c, IdempotencyKeyInUse)
}

func TestAPreconditionThatDoesNotHold(t *testing.T) {
	l := newLife(t).claimed()
	l.do(l.reading("7", HoldsFalse), Failed)
	if l.a.FailureCode != PreconditionFailed {
		t.Errorf("code %q", l.a.FailureCode)
	}
}

// What cannot be run is offered again later every time, and at once when it was
// given back for no reason of its own.
func TestWhatCannotBeRunIsOfferedLaterEveryTime(t *testing.T) {
	l := newLife(t).confirmed()
	give := func(why string) time.Duration {
		t.Helper()
		claim := l.op()
		l.do(l.claim(executor, claim), Executing)
		l.do(Release{Op: l.op(), By: executor, ClaimID: claim, Why: why}, Confirmed)
		work, at := l.a.NextWork()
		if work != WorkExecute {
			t.Fatalf("offers %q", work)
		}
		return at.Sub(l.now.Truncate(time.Microsecond))
	}
	if wait := give(""); wait != 0 || l.a.Stall.Times != 0 {
		t.Errorf("offered after %s", wait)
	}
	last := time.Duration(0)
	for n := range 4 {
		wait := give("the shop does not say")
		if wait <= last || l.a.Stall != (Stall{Times: n + 1, Why: "the shop does not say"}) {
			t.Errorf("offered after %s, then after %s: %+v", last, wait, l.a.Stall)
		}
		last = wait
	}
	for range 8 {
		if last = give("still"); last > mostStall*5/4 {
			t.Fatalf("offered after %s", last)
		}
	}
	for name, end := range map[string]func(claim string){
		"given back for no reason of its own": func(claim string) { l.do(Release{Op: l.op(), By: executor, ClaimID: claim}, Confirmed) },
		"left to lapse": func(string) {
			l.now = l.a.Claim.LeaseUntil
			l.do(Tick{}, Confirmed)
		},
	} {
		claim := l.op()
		l.do(l.claim(executor, claim), Executing)
		end(claim)
		if _, at := l.a.NextWork(); l.a.Stall != (Stall{}) || at.After(l.now) {
			t.Errorf("%s, it is offered at %s: %+v", name, at, l.a.Stall)
		}
		if give("not yet"); l.a.Stall != (Stall{Times: 1, Why: "not yet"}) {
			t.Errorf("%s, then in vain: %+v", name, l.a.Stall)
		}
	}
	if folded, err := Fold(l.events); err != nil || folded.Stall != l.a.Stall {
		t.Errorf("folds to %+v, %v", folded.Stall, err)
	}
}

// Sent again is only what the business system surely knows the key of: however
// long the one that picked it up took, and kept its lease alive.
func TestARetryIsNotSentOnceTheKeyMayBeForgotten(t *testing.T) {
	known := noon.Add(24 * time.Hour * 9 / 10)
	picked := func(before time.Duration) *life {
		l := newLife(t).unknown()
		l.do(l.evidence(FoundNotExecuted, ""), ResultUnknown)
		l.now = known.Add(-before)
		l.do(l.retry("c2"), Executing)
		return l
	}
	l := picked(90 * time.Second)
	l.wait(50 * time.Second)
	l.do(Renew{Op: l.op(), By: executor, ClaimID: "c2"}, Executing)
	if !l.a.Claim.LeaseUntil.Equal(known) {
		t.Errorf("renewed until %v, known until %v", l.a.Claim.LeaseUntil, known)
	}
	l.now = known.Add(-2 * time.Second)
	tr := l.do(l.attempt("c2", "t2"), Executing)
	if sent := l.a.Attempts[1]; !tr.Before.Equal(known) || sent.SendBy.After(known) {
		t.Errorf("before %v, to be sent by %v, known until %v", tr.Before, sent.SendBy, known)
	}
	l = picked(30 * time.Second)
	l.now = known
	if r := l.refuse(l.attempt("c2", "t2"), ExpiredCode); r.Reason != "key" {
		t.Errorf("reason %q", r.Reason)
	}
	l.do(Release{Op: l.op(), By: executor, ClaimID: "c2", CaseID: "cas_2"}, ResultUnknown)
	l.refuse(l.retry("c3"), ExpiredCode)
	if l.do(Tick{CaseID: "cas_2"}, ResultUnknown); l.a.Work() == WorkRetry {
		t.Error("it is to be picked up again")
	}
}

// A claim that sends nothing outlives its confirmation only by the lease that it
// began with.
func TestAClaimIsNotRenewedBeyondItsConfirmation(t *testing.T) {
	l := newLife(t).claimed()
	ends := l.a.Confirmation.ExpiresAt
	for l.now.Before(ends.Add(-time.Minute)) {
		l.wait(40*time.Second).do(Renew{Op: l.op(), By: executor, ClaimID: "c1"}, Executing)
	}
	if !l.a.Claim.LeaseUntil.Equal(ends) {
		t.Errorf("renewed until %v, confirmed until %v", l.a.Claim.LeaseUntil, ends)
	}
	if tr, err := l.try(Renew{Op: l.op(), By: executor, ClaimID: "c1"}); err != nil || tr.Event.Kind != "" || !tr.Next.Claim.LeaseUntil.Equal(ends) {
		t.Errorf("once more: wrote %q, until %v: %v", tr.Event.Kind, tr.Next.Claim.LeaseUntil, err)
	}
	l.now = ends
	l.refuse(l.attempt("c1", "t1"), LeaseLost)
	l.do(Tick{}, Expired)
}
