package triage_test

import (
	"sync"
	"testing"

	"countersign/action"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/triage"
)

func TestTwoPeopleSettleWhereTheContractSaysSo(t *testing.T) {
	s := casesOf(t)
	a, _ := s.unknown(risky)
	snap, err := s.Cases.Settle(background(), who(s.olga), triage.See(a), found(action.Happened))
	must(t, err)
	a = snap.Action
	if got := s.in(a); got != "second" || a.State != action.ResultUnknown {
		t.Fatalf("%s in %q", a.State, got)
	}
	_, err = s.Cases.Confirm(background(), who(s.olga), triage.See(a), true, "")
	s.Refused(err, action.Forbidden, "second-person")
	snap, err = s.Cases.Confirm(background(), who(s.otto), triage.See(a), true, "seen it too")
	must(t, err)
	if v := snap.Action.Case.Verdict; snap.Action.State != action.Applied || v.By.ID != s.olga.ID || v.Second.By.ID != s.otto.ID {
		t.Errorf("%s, verdict %+v", snap.Action.State, v)
	}
	p := stage.Proposal(risky, stage.Product(), 99)
	cheap := s.Approve(s.Propose(p), s.Mia)
	cheap, claim := s.Claim(cheap)
	cheap, attempt := s.Start(cheap, claim)
	cheap = s.Report(cheap, stage.Receipt(attempt, claim, action.Unknown))
	snap, err = s.Cases.Settle(background(), who(s.olga), triage.See(cheap), found(action.Happened))
	if err != nil || snap.Action.State != action.Applied {
		t.Errorf("below the limit: %s, %v", snap.Action.State, err)
	}
}

func TestOnlyThoseWhoMaySettle(t *testing.T) {
	s := casesOf(t)
	a, _ := s.unknown(askable)
	seen := triage.See(a)
	auditor := s.Person("ada", people.RoleAuditor)
	elsewhere := s.PersonWith("eve", people.Grants{Roles: []string{people.RoleOps}, Scopes: []string{"bank"}})
	for name, c := range map[string]struct {
		person people.Person
		code   action.Code
	}{"support": {s.Mia, action.Forbidden}, "an auditor": {auditor, action.Forbidden}, "an admin": {s.Admin, action.Forbidden}, "ops of another scope": {elsewhere, action.NotFound}} {
		for what, call := range map[string]func() error{
			"take": func() error { _, err := s.Cases.Take(background(), who(c.person), seen); return err },
			"ask":  func() error { _, err := s.Cases.AskAgain(background(), who(c.person), seen); return err },
			"hand": func() error { _, err := s.Cases.HandOver(background(), who(c.person), seen, s.otto.ID); return err },
			"settle": func() error {
				_, err := s.Cases.Settle(background(), who(c.person), seen, found(action.Happened))
				return err
			},
			"confirm": func() error { _, err := s.Cases.Confirm(background(), who(c.person), seen, true, ""); return err },
		} {
			if err := call(); !action.IsCode(err, c.code) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	_, err := s.Cases.HandOver(background(), who(s.olga), seen, auditor.ID)
	s.Refused(err, action.InvalidArgument, "receiver")
	_, err = s.Cases.HandOver(background(), who(s.olga), seen, "per_nobody")
	s.Refused(err, action.InvalidArgument)
	_, err = s.Cases.Take(background(), who(s.olga), triage.Seen{CaseID: action.NewID("cas")})
	s.Refused(err, action.NotFound)
	snap, err := s.Cases.HandOver(background(), who(s.olga), seen, s.otto.ID)
	must(t, err)
	_, err = s.Cases.Settle(background(), who(s.olga), triage.See(snap.Action), found(action.Happened))
	if r := s.Refused(err, action.AlreadyClaimed, "case-held"); r.Args["by"] != s.otto.Name {
		t.Errorf("held by %q", r.Args["by"])
	}
	s.Grant(s.otto, people.Grants{Roles: []string{people.RoleSupport}}) // and is not asked any more
	_, err = s.Cases.Settle(background(), who(s.otto), triage.See(snap.Action), found(action.Happened))
	s.Refused(err, action.Forbidden)
	if got := s.Read(a.ID); got.State != action.ResultUnknown || got.Version != snap.Action.Version {
		t.Errorf("refusals left events: %v", s.Kinds(a.ID))
	}
}

// atOnce gives commands at the same time and returns how many were recorded.
func atOnce(t *testing.T, code action.Code, calls ...func() error) (won int) {
	t.Helper()
	results := make([]error, len(calls))
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i, call := range calls {
		wg.Go(func() { <-start; results[i] = call() })
	}
	close(start)
	wg.Wait()
	for _, err := range results {
		if err == nil {
			won++
		} else if !action.IsCode(err, code) && !action.IsCode(err, action.WrongState) {
			t.Errorf("lost with %v", err)
		}
	}
	return won
}

func TestOfManyAtOnceOneWins(t *testing.T) {
	s := casesOf(t)
	other := s.Open(s.DSN, store.Options{MaxConns: 4})
	for range 5 {
		a, attempt := s.unknown(askable)
		seen := triage.See(a)
		take := func(c *stage.Console, p people.Person) func() error {
			return func() error { _, err := c.Cases.Take(background(), who(p), seen); return err }
		}
		if n := atOnce(t, action.StaleRevision, take(s.Console, s.olga), take(other, s.otto)); n != 1 {
			t.Errorf("%d took it", n)
		}
		a = s.Read(a.ID)
		holder := map[string]people.Person{s.olga.ID: s.olga, s.otto.ID: s.otto}[a.Case.Holder.ID]
		seen = triage.See(a)
		settle := func(c *stage.Console, verdict string) func() error {
			return func() error { _, err := c.Cases.Settle(background(), who(holder), seen, found(verdict)); return err }
		}
		if n := atOnce(t, action.StaleRevision, settle(s.Console, action.Happened), settle(other, action.Partly)); n != 1 {
			t.Errorf("%d verdicts were recorded", n)
		}
		_ = attempt
	}
	for range 5 { // a verdict against a receipt that comes late
		a, attempt := s.unknown(askable)
		seen := triage.See(a)
		settled := 0
		atOnce(t, action.StaleRevision, func() error {
			_, err := s.Cases.Settle(background(), who(s.olga), seen, found(action.Happened))
			if err == nil {
				settled++
			}
			return err
		}, func() error {
			_, err := other.Triage.Report(background(), s.Executor, a.ID, stage.Receipt(attempt, a.Claim.ID, action.Failure))
			return err
		})
		got := s.Read(a.ID)
		contradiction := got.State == action.ResultUnknown && got.Case.Kind == action.CaseContradiction
		if settled == 1 != contradiction || settled == 0 && got.State != action.Failed {
			t.Errorf("settled %d times, it is %s", settled, got.State)
		}
	}
}
