package triage_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// What another action was done in the stead of, or to undo it, is not sent again
// beside it: not by itself, not by a person, and not at the same moment. People
// see why, and it is left to them.
func TestReport26_NothingIsSentAgainBesideALinkedAction(t *testing.T) {
	s := casesOf(t)
	s.Tool(strings.Replace(stage.Contract("shop.nowhere", "", "status_query: { tool: shop.operation, max_polls: 2 }"), "target: { type: product, id: /product_id, scope: shop }\n", "", 1))
	past := s.Later(3*time.Minute, storetest.Skewed)
	retry := func(a action.Action) error {
		_, err := past.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
		return err
	}
	offered := func(a action.Action) bool {
		t.Helper()
		work, _, err := past.DB.Work(background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Limit: 100})
		must(t, err)
		return slices.ContainsFunc(work, func(w action.Action) bool { return w.ID == a.ID })
	}
	for _, tool := range []string{askable, "shop.nowhere"} {
		// The answer that nothing was executed comes before the other action begins.
		a, _ := s.unknown(tool)
		a = s.answer(a, "NOT_EXECUTED")
		if !offered(a) {
			t.Fatalf("%s: no retry is offered", tool)
		}
		snap, err := past.DB.Snapshot(background(), a.ID)
		must(t, err)
		early, err := action.Decide(snap, action.StartRetry{By: s.Executor.By(), ClaimID: action.NewID("clm"), ProposalHash: a.ProposalHash})
		must(t, err)
		s.follow(past, a, action.LinkReplaces, 7, action.Success)
		_, err = past.DB.Append(background(), early)
		s.Refused(err, action.WrongState, "retry-linked")
		s.Refused(retry(a), action.WrongState, "retry-linked")
		if offered(a) || s.in(a) != "asking" {
			t.Errorf("%s: the retry is offered: %v, it is in %q", tool, offered(a), s.in(a))
		}
		must(t, past.Triage.Conclude(background()))
		must(t, past.Triage.Conclude(background()))
		a = s.Read(a.ID)
		if a.State != action.ResultUnknown || a.Work() == action.WorkRetry || s.Count(a.ID, action.KindConcluded) != 1 {
			t.Errorf("%s: %s, %q is done", tool, a.State, a.Work())
		}

		// It comes after: nothing happened, and nothing will.
		for _, o := range []action.Outcome{action.Success, action.Unknown} {
			b, _ := s.unknown(tool)
			s.follow(past, b, action.LinkReplaces, 7, o)
			_, err = past.Cases.SendAgain(background(), who(s.olga), triage.See(b))
			s.Refused(err, action.WrongState, "retry-linked")
			snap, err = past.Cases.AskAgain(background(), who(s.olga), triage.See(b))
			must(t, err)
			snap, err = past.Triage.Observe(background(), s.Executor, b.ID, reading("shop.operation", `{"status":"NOT_EXECUTED"}`))
			must(t, err)
			if snap.Action.State != action.Failed || offered(b) || snap.Action.CaseID() != "" {
				t.Errorf("%s, %s: answered that nothing was executed, it is %s", tool, o, snap.Action.State)
			}
			s.Refused(retry(b), action.WrongState)
		}

		// What did not take effect stands in nobody's way.
		c, _ := s.unknown(tool)
		s.follow(past, c, action.LinkReplaces, 7, action.Failure)
		s.answer(c, "NOT_EXECUTED")
		if !offered(c) {
			t.Errorf("%s: no retry is offered beside an action that failed", tool)
		}
		must(t, retry(c))
	}
	_, err := s.DB.FoldCheck(background(), "", func(d store.Difference) { t.Errorf("%+v", d) })
	must(t, err)
}

// While a linked proposal waits, nobody has the same sent again: people choose
// one. What was to do the rest is not carried out once nothing is left to do.
func TestReport26_OneOfTwoWaysIsTaken(t *testing.T) {
	s := casesOf(t)
	past := s.Later(3*time.Minute, storetest.Skewed)
	resumption := func(a action.Action) action.Action {
		p := stage.Proposal(a.Tool, product(a), 105)
		p.Links.Resumes = a.ID
		snap, _, err := past.Approvals.Propose(background(), s.Agent, p)
		must(t, err)
		return snap.Action
	}
	again := func(a action.Action) error {
		_, err := past.Cases.SendAgain(background(), who(s.olga), triage.See(s.Read(a.ID)))
		return err
	}
	a, _ := s.unknown(askable)
	b := resumption(a)
	for _, waits := range []func() action.Action{func() action.Action { return b }, func() action.Action { return s.Approve(b, s.Mia) }} {
		b = waits()
		if r := s.Refused(again(a), action.WrongState, "retry-awaited"); r.Args["action"] != b.ID {
			t.Errorf("%s: %v", b.State, r.Args)
		}
	}
	_, err := past.Approvals.Cancel(background(), s.Agent, b.ID, b.Version, "sending again is better")
	must(t, err)
	must(t, again(a))

	// Both were asked for before the other could be seen.
	b = s.Approve(resumption(a), s.Mia)
	for _, run := range []struct {
		a      action.Action
		code   action.Code
		reason string
	}{{a: s.Read(a.ID)}, {a: b, code: action.WrongState, reason: "link-complete"}} {
		claim := action.NewID("clm")
		_, err := past.Approvals.Claim(background(), s.Executor, run.a.Confirmation.Ref, claim, stage.Bound(run.a))
		if run.code != "" {
			s.Refused(err, run.code, run.reason)
			may, err := past.Approvals.MayFollow(background(), run.a)
			if must(t, err); may {
				t.Error("it is offered")
			}
			continue
		}
		must(t, err)
		attempt := stage.Attempt(claim)
		attempt.Fingerprint = a.Attempts[0].Fingerprint
		_, _, err = past.Triage.Start(background(), s.Executor, run.a.ID, attempt)
		must(t, err)
		snap, err := past.Triage.Report(background(), s.Executor, run.a.ID, stage.Receipt(attempt.ID, claim, action.Success))
		if must(t, err); snap.Action.State != action.Applied {
			t.Errorf("sent again, it is %s", snap.Action.State)
		}
	}
}

// follow has an action that is linked to another one approved and carried out
// by a process, with one attempt that ended so.
func (s *caseSet) follow(c *stage.Console, a action.Action, how string, price float64, o action.Outcome) action.Action {
	s.T.Helper()
	p := stage.Proposal(a.Tool, product(a), price)
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

// product is what a proposal for the same product as an action's is about.
func product(a action.Action) string {
	var payload struct {
		Product string `json:"product_id"`
	}
	json.Unmarshal(a.Payload, &payload)
	return payload.Product
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
			_, err := s.Triage.Release(background(), s.Executor, a.ID, claim, "FORBIDDEN", "")
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
