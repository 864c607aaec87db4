package handlers

import (
	"context"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
)

// offers is the one action that a page of work for one would offer, or "".
func (e *env) offers(executor people.Client) string {
	e.T.Helper()
	offered, _, err := e.inner.offered(context.Background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Executor: executor.ID, Limit: 1})
	if err != nil {
		e.T.Fatal(err)
	}
	if len(offered) == 0 {
		return ""
	}
	return offered[0].ID
}

// What cannot be claimed is not offered, and takes nobody's place; once it can,
// it is.
func TestWorkIsWhatCanBeClaimed(t *testing.T) {
	e := newEnv(t)
	ctx := context.Background()
	e.Tool(stage.Contract("shop.asked", "", "status_query: { tool: shop.read_price }"))
	e.Tool(strings.Replace(stage.Contract("bank.limit", "", ""), "scope: shop", "scope: bank", 1))
	other := e.Client("other agent", e.Admin, people.RoleProposer)
	claims := func(by people.Client, a action.Action) error {
		_, err := e.Approvals.Claim(ctx, by, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
		return err
	}
	confirmed := func(p approvals.Proposal) action.Action { return e.Approve(e.Propose(p), e.Mia) }
	sent := func(a action.Action) (action.Action, string, string) {
		a, claim := e.Claim(a)
		a, attempt := e.Start(a, claim)
		return a, claim, attempt
	}
	missed := func(p approvals.Proposal) action.Action { // its retry is safe, as the business system says
		a, claim, attempt := sent(confirmed(p))
		e.Report(a, stage.Receipt(attempt, claim, action.Unknown))
		e.evidence(a.ID, action.FoundNotExecuted)
		return e.Read(a.ID)
	}
	task := func(l, more approvals.Limits, tool string) (approvals.Proposal, func()) {
		k := e.Task(l)
		p := stage.Proposal(tool, stage.Product(), 105)
		p.TaskID = k.ID
		return p, func() {
			command := approvals.TaskCommand{Op: action.NewID("req"), PersonID: e.Mia.ID, By: e.Mia.As(people.RoleSupport, people.ByPassword), Reason: "go on"}
			if _, err := e.Approvals.ExtendTask(ctx, command, k.ID, more); err != nil {
				t.Fatal(err)
			}
		}
	}
	for cause, arrange := range map[string]func() (a action.Action, lift func()){
		"paused tool, retry": func() (action.Action, func()) {
			return missed(stage.Proposal("shop.asked", stage.Product(), 105)), e.pause(approvals.PauseTool, "shop.asked")
		},
		"paused scope": func() (action.Action, func()) {
			return e.Confirmed("bank.limit", stage.Product()), e.pause(approvals.PauseScope, "bank")
		},
		"paused agent": func() (action.Action, func()) {
			snap, _, err := e.Approvals.Propose(ctx, other, stage.Proposal(stage.SetPrice, stage.Product(), 105))
			if err != nil {
				t.Fatal(err)
			}
			return e.Approve(snap.Action, e.Mia), e.pause(approvals.PauseClient, other.ID)
		},
		"busy target": func() (action.Action, func()) {
			product := stage.Product()
			a := e.Confirmed(stage.SetPrice, product)
			first, claim, attempt := sent(confirmed(stage.Proposal(stage.SetPrice, product, 110)))
			return a, func() { e.Report(first, stage.Receipt(attempt, claim, action.Success)) }
		},
		"target with a case": func() (action.Action, func()) {
			product := stage.Product()
			a := e.Confirmed(stage.SetPrice, product)
			first, claim, attempt := sent(confirmed(stage.Proposal(stage.SetPrice, product, 110)))
			e.Report(first, stage.Receipt(attempt, claim, action.Unknown))
			return a, func() { e.Report(first, stage.Receipt(attempt, claim, action.Success)) }
		},
		"used up budget": func() (action.Action, func()) {
			p, lift := task(approvals.Limits{Cost: new(approvals.Cost(1))}, approvals.Limits{Cost: new(approvals.Cost(9))}, stage.SetPrice)
			a := confirmed(p)
			if _, _, err := e.Approvals.Spend(ctx, e.Agent, p.TaskID, "s1", approvals.Spent{Cost: 2}); err != nil && !action.IsCode(err, action.BudgetExhausted) {
				t.Fatal(err)
			}
			return a, lift
		},
		"used up budget, retry": func() (action.Action, func()) {
			p, lift := task(approvals.Limits{Writes: new(1)}, approvals.Limits{Writes: new(9)}, "shop.asked")
			return missed(p), lift
		},
		"unknown original": func() (action.Action, func()) {
			p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
			first, claim, attempt := sent(confirmed(p))
			e.Report(first, stage.Receipt(attempt, claim, action.Unknown))
			fenced := e.Open(storetest.Skewed(e.DSN, 2*time.Minute), store.Options{MaxConns: 2})
			p.Key, p.Links.Resumes = action.NewID("key"), first.ID
			snap, _, err := fenced.Approvals.Propose(ctx, e.Agent, p)
			if err != nil {
				t.Fatal(err)
			}
			return e.Approve(snap.Action, e.Mia), func() { e.Report(first, stage.Receipt(attempt, claim, action.Failure)) }
		},
	} {
		a, lift := arrange()
		if err := claims(e.Executor, a); err == nil {
			t.Fatalf("%s: it can be claimed", cause)
		}
		if id := e.offers(e.Executor); id != "" {
			t.Errorf("%s: %s is offered", cause, id)
		}
		good := e.Confirmed(stage.SetPrice, stage.Product())
		if id := e.offers(e.Executor); id != good.ID {
			t.Errorf("%s: %q is offered, and not what can be claimed", cause, id)
		}
		if err := claims(e.Executor, good); err != nil {
			t.Fatal(err)
		}
		lift()
		if id := e.offers(e.Executor); id != a.ID {
			t.Errorf("%s: %q is offered when it is over", cause, id)
		}
		if err := claims(e.Executor, a); err != nil {
			t.Errorf("%s: when it is over: %v", cause, err)
		}
	}
	read := e.Propose(stage.Proposal(stage.ReadPrice, stage.Product(), 1))
	defer e.pause(approvals.PauseClient, e.Executor.ID)()
	if id := e.offers(e.Executor); id != "" {
		t.Errorf("a paused executor is offered %s", id)
	}
	if id := e.offers(e.Client("second executor", e.Admin, people.RoleExecutor)); id != read.ID {
		t.Errorf("another one is offered %q", id)
	}
}
