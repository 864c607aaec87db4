package action

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestTheUsualLife(t *testing.T) {
	l := newLife(t)
	l.do(l.draft(), Draft)
	if l.a.ExpiresAt != nil || l.a.Revision != 1 {
		t.Errorf("a draft expires %v in revision %d", l.a.ExpiresAt, l.a.Revision)
	}
	l.wait(time.Hour).do(l.submit(), Proposed)
	if got, want := *l.a.ExpiresAt, l.now.Add(30*time.Minute).Truncate(time.Second); !got.Equal(want) {
		t.Errorf("expires %v, want %v", got, want)
	}
	if l.a.ToolVersion != 4 || string(l.a.Payload) != payload5 || l.a.Actor.Name != "Uma" {
		t.Errorf("after submit: version %d, payload %s, actor %v", l.a.ToolVersion, l.a.Payload, l.a.Actor)
	}
	if l.a.Binding().Hash() != l.a.ProposalHash {
		t.Error("the proposal hash is not the hash of what is bound")
	}
	l.do(l.vote(mia, true), Confirmed)
	l.do(l.claim(executor, "c1"), Executing)
	l.do(l.attempt("c1", "t1"), Executing)
	if since := noon.Add(time.Hour); !l.a.Since.Equal(since) {
		t.Errorf("executing since %v, want %v", l.a.Since, since)
	}
	l.wait(time.Second).do(l.receipt("t1", Success, ProvesCompleted), Applied)
	if !l.a.Since.Equal(l.now) || !l.a.ProvenAt.Equal(l.now) {
		t.Errorf("applied since %v, proven at %v, now %v", l.a.Since, l.a.ProvenAt, l.now)
	}
	if l.a.Claim == nil || !l.a.Claim.Over || l.a.Executions() != 1 {
		t.Errorf("claim %+v, %d executions", l.a.Claim, l.a.Executions())
	}
	l.check()
}

func TestTheProposalHashBindsEachRevision(t *testing.T) {
	l := newLife(t).proposed()
	first := l.a
	l.wait(time.Second).do(l.revise(), Proposed)
	if l.a.Revision != 2 || l.a.ProposalHash == first.ProposalHash || l.a.ExecutionKey != first.ExecutionKey {
		t.Errorf("revision %d, hash %s, key %s", l.a.Revision, l.a.ProposalHash, l.a.ExecutionKey)
	}
	if l.a.Scope != "shop-2" || *l.a.ObjectVersion != "8" || string(l.a.Payload) != payload6 || l.a.Reason != "typo" || l.a.ContentVersion != 2 {
		t.Errorf("the revised content was not taken over: %+v", l.a)
	}
	if got, want := *l.a.ExpiresAt, l.now.Add(10*time.Minute).Truncate(time.Second); !got.Equal(want) {
		t.Errorf("expires %v, want %v", got, want)
	}
	l.check()
}

func TestZeroApprovalsConfirmAtOnce(t *testing.T) {
	l := newLife(t)
	l.needs = []Need{}
	l.do(l.propose(), Confirmed)
	if l.a.Confirmation == nil || l.a.Confirmation.Ref != "cnf_1" {
		t.Errorf("confirmation %+v", l.a.Confirmation)
	}
	l.check()
}

// What people were asked about once stays theirs to decide.
func TestRevisingNeverConfirmsByItself(t *testing.T) {
	l := newLife(t).proposed()
	c := l.revise()
	c.Needs = nil
	l.do(c, Proposed)
	if !reflect.DeepEqual(l.a.Needs, []Need{{Role: DefaultRole, Approvals: 1}}) {
		t.Errorf("needs %+v", l.a.Needs)
	}
}

// What happened before the end counts, and only until the end: every command
// on something that can expire carries the moment.
func TestNothingButExpiryHappensAfterTheEnd(t *testing.T) {
	for name, made := range map[string]struct {
		l *life
		c func(l *life) Command
	}{
		"approve":  {newLife(t).proposed(), func(l *life) Command { return l.vote(mia, true) }},
		"reject":   {newLife(t).proposed(), func(l *life) Command { return l.vote(mia, false) }},
		"revise":   {newLife(t).proposed(), func(l *life) Command { return l.revise() }},
		"cancel":   {newLife(t).proposed(), func(l *life) Command { return Cancel{Op: "x", By: proposer} }},
		"cancel 2": {newLife(t).confirmed(), func(l *life) Command { return Cancel{Op: "x", By: proposer} }},
		"claim":    {newLife(t).confirmed(), func(l *life) Command { return l.claim(executor, "c1") }},
		"reading":  {newLife(t).confirmed(), func(l *life) Command { return l.reading("8", HoldsUnknown) }},
	} {
		due, _ := made.l.a.DueAt()
		tr, err := made.l.try(made.c(made.l))
		if err != nil || !tr.Before.Equal(due) {
			t.Errorf("%s: allowed before %v, want %v (%v)", name, tr.Before, due, err)
		}
	}
	l := newLife(t).proposed().wait(time.Hour)
	if tr := l.do(Tick{}, Expired); !tr.Before.IsZero() {
		t.Error("expiry itself has an end")
	}
}

func TestRepeatingACommandWritesNothing(t *testing.T) {
	l := newLife(t)
	c := l.propose()
	l.do(c, Proposed)
	for _, again := range []Command{c} {
		if tr, err := l.try(again); err != nil || tr.Event.Kind != "" {
			t.Errorf("%T again: %v, wrote %q", again, err, tr.Event.Kind)
		}
	}
	revise := l.revise()
	l.do(revise, Proposed)
	if tr, err := l.try(revise); err != nil || tr.Event.Kind != "" || l.a.Revision != 2 {
		t.Errorf("revise again: %v, wrote %q, revision %d", err, tr.Event.Kind, l.a.Revision)
	}
	revise.Payload = []byte(payload5)
	l.refuse(revise, StaleRevision)
	vote := l.vote(mia, true)
	l.do(vote, Confirmed)
	if tr, err := l.try(vote); err != nil || tr.Event.Kind != "" {
		t.Errorf("vote again: %v, wrote %q", err, tr.Event.Kind)
	}
	vote.Approve = false
	if r := l.refuse(vote, AlreadyDecided); r.Reason != "by-you" {
		t.Errorf("reason %q", r.Reason)
	}
}

func TestNothingHappensToWhatIsNotThere(t *testing.T) {
	for _, c := range []Command{Submit{Op: "a"}, Tick{}, AddObservation{}, AddEvidence{}, AddReceipt{}, Cancel{Op: "b"}} {
		newLife(t).refuse(c, NotFound)
	}
}

func TestStatesAreListedOnce(t *testing.T) {
	states := States()
	slices.Sort(states)
	if len(states) != 12 || len(slices.Compact(states)) != 12 {
		t.Errorf("%d states", len(states))
	}
}
