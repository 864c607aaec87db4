package triage_test

import (
	"testing"
	"time"

	"countersign/action"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// follow has an action that is linked to another one approved and carried out
// by a process, with one attempt that ended so.
func (s *caseSet) follow(c *stage.Console, a action.Action, how string, price float64, o action.Outcome) action.Action {
	s.T.Helper()
	p := stage.Proposal(askable, a.Target.ID, price)
	switch how {
	case action.LinkResumes:
		p.Links.Resumes = a.ID
	case action.LinkReplaces:
		p.Links.Replaces = a.ID
	default:
		p.Links.Compensates = a.ID
	}
	snap, _, err := c.Approvals.Propose(background(), s.Agent, p)
	must(s.t, err)
	next, claim := s.Approve(snap.Action, s.Mia), action.NewID("clm")
	_, err = c.Approvals.Claim(background(), s.Executor, next.Confirmation.Ref, claim, stage.Bound(next))
	must(s.t, err)
	t := stage.Attempt(claim)
	_, _, err = c.Triage.Start(background(), s.Executor, next.ID, t)
	must(s.t, err)
	snap, err = c.Triage.Report(background(), s.Executor, next.ID, stage.Receipt(t.ID, claim, o))
	must(s.t, err)
	return snap.Action
}

// What people found to be done in part is closed by the linked action that does
// the rest, undoes it or is done in its stead, and by no other.
func TestA7_WhatWasDoneInPartIsClosedByItsLinkedAction(t *testing.T) {
	s := casesOf(t)
	past := s.Later(3*time.Minute, storetest.Skewed)
	type half struct {
		how  string
		a    action.Action
		want action.State
	}
	var all []half
	for how, want := range map[string]action.State{action.LinkResumes: action.Applied, action.LinkCompensates: action.Failed, action.LinkReplaces: action.Failed} {
		a, _ := s.unknown(askable)
		snap, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.Partly))
		must(t, err)
		if all = append(all, half{how, snap.Action, want}); how != action.LinkCompensates {
			s.follow(past, a, how, 7, action.Failure) // in vain
		}
	}
	must(t, past.Triage.Conclude(background()))
	for _, h := range all {
		if a := s.Read(h.a.ID); a.State != action.ResultUnknown || s.in(a) != "person" {
			t.Errorf("%s in vain: %s in %q", h.how, a.State, s.in(a))
		}
		s.follow(past, h.a, h.how, 8, action.Success)
	}
	for range 2 {
		must(t, past.Triage.Conclude(background()))
	}
	codes := map[string]string{action.LinkCompensates: action.Compensated, action.LinkReplaces: action.Replaced}
	for _, h := range all {
		a := s.Read(h.a.ID)
		level, _ := a.Statement(a.UpdatedAt)
		if a.State != h.want || a.CaseID() != "" || a.FailureCode != codes[h.how] || s.in(a) != "settled" || s.Count(a.ID, action.KindConcluded) != 1 {
			t.Errorf("%s: %s in %q, code %q", h.how, a.State, s.in(a), a.FailureCode)
		}
		if done := h.want == action.Applied; done != (level == action.LevelCompleted) || a.Case.Verdict.Verdict != action.Partly {
			t.Errorf("%s: says %s, verdict %+v", h.how, level, a.Case.Verdict)
		}
	}
	_, err := s.DB.FoldCheck(background(), "", func(d store.Difference) { t.Errorf("%+v", d) })
	must(t, err)
}

// A compensation that cannot even begin leaves the object as nobody wants it:
// that is seen, and for people.
func TestA7_ACompensationThatCannotBeginIsTriaged(t *testing.T) {
	s := casesOf(t)
	s.Tool(stage.Contract("shop.checked", "", `preconditions: [ { read: shop.read_price, field: /price, expect: "value == 1" } ]`))
	for name, stop := range map[string]func(a action.Action, claim string){
		"nothing left": func(a action.Action, claim string) {
			a, attempt := s.Start(a, claim)
			r := stage.Receipt(attempt, claim, action.Failure)
			r.HTTPStatus, r.Code = 0, action.NotSent
			s.Report(a, r)
		},
		"a precondition": func(a action.Action, _ string) {
			_, err := s.Triage.Observe(background(), s.Executor, a.ID, reading(stage.ReadPrice, `{"price":2}`))
			must(t, err)
		},
		"not allowed": func(a action.Action, claim string) {
			_, err := s.Triage.Release(background(), s.Executor, a.ID, claim, "FORBIDDEN")
			must(t, err)
		},
	} {
		original, _ := s.applied("shop.checked")
		undoing := stage.Proposal("shop.checked", original.Target.ID, 1)
		undoing.Links.Compensates = original.ID
		for _, p := range []struct {
			p    action.Action
			want action.State
		}{
			{s.Propose(stage.Proposal("shop.checked", stage.Product(), 1)), action.Failed},
			{s.Propose(undoing), action.ResultUnknown},
		} {
			a, claim := s.Claim(s.Approve(p.p, s.Mia))
			stop(a, claim)
			a = s.Read(a.ID)
			level, _ := a.Statement(a.UpdatedAt)
			if a.State != p.want || level != action.LevelNotSubmitted || (a.CaseID() != "") != (p.want == action.ResultUnknown) {
				t.Errorf("%s: %s, case %q, says %s", name, a.State, a.CaseID(), level)
			}
			if a.CaseID() == "" {
				continue
			}
			if a.Case.Why != action.WhyCompensation || s.in(a) != "person" {
				t.Errorf("%s: %+v in %q", name, a.Case, s.in(a))
			}
			snap, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.DidNotHappen))
			if err != nil || snap.Action.State != action.Failed {
				t.Errorf("%s: settled as %s: %v", name, snap.Action.State, err)
			}
		}
	}
}

// applied returns an action that has taken effect.
func (s *caseSet) applied(tool string) (action.Action, string) {
	s.T.Helper()
	a, claim, attempt := running(s.Stage, tool)
	return s.Report(a, stage.Receipt(attempt, claim, action.Success)), attempt
}
