package approvals_test

import (
	"context"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

// A program that is limited or disabled while its command is decided, or while
// that waits for its target, does nothing any more. What is changed of it
// otherwise costs it nothing.
func TestReport13_AProgramIsJudgedWhereItsCommandIsWritten(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	now := &meanwhile{Ledger: s.DB}
	c := s.Over(s.DB, now)
	grant := func(client people.Client, roles ...string) {
		t.Helper()
		if _, err := s.People.SetClientGrants(background(), stage.System(action.NewID("req")), client.ID, people.ClientGrants{Roles: roles}); err != nil {
			t.Fatal(err)
		}
	}
	commands := map[string]func(client people.Client) (a action.Action, run func() error){
		"claim": func(client people.Client) (action.Action, func() error) {
			a := s.Confirmed(stage.SetPrice, stage.Product())
			return a, func() error {
				_, err := c.Approvals.Claim(background(), client, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
				return err
			}
		},
		"attempt": func(client people.Client) (action.Action, func() error) {
			a, claim := s.Confirmed(stage.SetPrice, stage.Product()), action.NewID("clm")
			if _, err := s.Approvals.Claim(background(), client, a.Confirmation.Ref, claim, stage.Bound(a)); err != nil {
				t.Fatal(err)
			}
			return s.Read(a.ID), func() error {
				_, _, err := c.Triage.Start(background(), client, a.ID, stage.Attempt(claim))
				return err
			}
		},
		"revise": func(client people.Client) (action.Action, func() error) {
			snap, _, err := s.Approvals.Propose(background(), client, stage.Proposal(stage.SetPrice, stage.Product(), 105))
			if err != nil {
				t.Fatal(err)
			}
			return snap.Action, func() error {
				_, err := c.Approvals.Revise(background(), client, snap.Action.ID, snap.Action.Version, approvals.Revision{Payload: cheaper(snap.Action), ObjectVersion: snap.Action.ObjectVersion})
				return err
			}
		},
	}
	for name, prepare := range commands {
		client := s.Client(name, s.Admin, people.RoleExecutor, people.RoleProposer)
		a, run := prepare(client)
		now.happens = func() { grant(client, people.RoleReader) }
		s.Refused(run(), action.Forbidden)
		if again := s.Read(a.ID); again.Version != a.Version {
			t.Errorf("%s: written for who may not any more", name)
		}
		now.happens = func() { grant(client, people.RoleExecutor, people.RoleProposer, people.RoleReader) }
		grant(client, people.RoleExecutor, people.RoleProposer)
		if err := run(); err != nil {
			t.Errorf("%s: %v, though it still may", name, err)
		}
	}

	client := s.Client("waiting", s.Admin, people.RoleExecutor)
	a, run := commands["claim"](client)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 4801))`, a.Target.Type, a.Target.ID); err != nil {
		t.Fatal(err)
	}
	claimed := make(chan error, 1)
	go func() { claimed <- run() }()
	waits(t, db)
	if _, err := s.People.DisableClient(background(), stage.System("off"), client.ID); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-claimed; !action.IsCode(err, action.NotFound) {
		t.Errorf("disabled while it waited for the target: %v", err)
	}
	if again := s.Read(a.ID); again.State != action.Confirmed {
		t.Errorf("disabled while it waited for the target: %s", again.State)
	}
}

// meanwhileTasks is where something happens once before a task is written.
type meanwhileTasks struct {
	approvals.TaskStore
	happens func()
}

func (m *meanwhileTasks) SaveTask(ctx context.Context, c approvals.TaskChange) (bool, error) {
	if happens := m.happens; happens != nil {
		m.happens = nil
		happens()
	}
	return m.TaskStore.SaveTask(ctx, c)
}

// Nobody gives a budget, or gets a case, whose authority is taken away meanwhile.
func TestReport13_WhoTendsATaskOrGetsACaseIsJudgedWhereItIsWritten(t *testing.T) {
	s := set(t)
	now := &meanwhileTasks{TaskStore: s.DB}
	tasks := approvals.New(s.DB, now, s.Catalogue, s.DB, s.Approvals.Signer(), approvals.DefaultMaxOpen)
	k := s.Task(approvals.Limits{Decisions: new(1)})
	extend := func(p people.Person) error {
		_, err := tasks.ExtendTask(background(), approvals.TaskCommand{Op: action.NewID("req"), PersonID: p.ID, By: p.As(people.RoleSupport, people.ByPassword), Reason: "go on"},
			k.ID, approvals.Limits{Decisions: new(1)})
		return err
	}
	ana := s.Person("ana", people.RoleSupport)
	now.happens = func() { s.Grant(ana, people.Grants{Roles: []string{people.RoleAuditor}}) }
	s.Refused(extend(ana), action.Forbidden)
	if after, _, err := s.Approvals.Task(background(), k.ID); err != nil || after.Version != k.Version {
		t.Errorf("version %d after %d, %v", after.Version, k.Version, err)
	}
	now.happens = func() { s.Grant(s.Ken, people.Grants{Roles: []string{people.RoleSupport, people.RoleOps}}) }
	if err := extend(s.Ken); err != nil {
		t.Errorf("%v, though they still may", err)
	}

	ledger := &meanwhile{Ledger: s.DB}
	c := s.Over(s.DB, ledger)
	lost := s.At(action.ResultUnknown, nil)
	olga, otto := s.Person("olga", people.RoleOps), s.Person("otto", people.RoleOps)
	who := triage.Who{ID: olga.ID, Method: people.ByPassword}
	taken, err := s.Cases.Take(background(), who, triage.See(lost))
	if err != nil {
		t.Fatal(err)
	}
	ledger.happens = func() { s.Grant(otto, people.Grants{Roles: []string{people.RoleSupport}}) }
	_, err = c.Cases.HandOver(background(), who, triage.See(taken.Action), otto.ID)
	s.Refused(err, action.InvalidArgument)
	if again := s.Read(lost.ID); again.Version != taken.Action.Version {
		t.Error("a case was given to somebody who may not settle it any more")
	}
}
