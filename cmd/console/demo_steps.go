package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
)

// scene is a step of the guide: how it begins, and what can happen meanwhile.
type scene struct {
	name  string
	begin func(g *guide, ctx context.Context) (api.Action, error)
	turn  func(g *guide, ctx context.Context, a api.Action) error
}

func scenes() []scene {
	return []scene{
		{"price", (*guide).aPrice, nil},
		{"stale", (*guide).aPrice, (*guide).anotherPrice},
		{"timeout", (*guide).refundThatTimesOut, nil},
		{"steps", (*guide).announcedInVain, (*guide).onlyTheRest},
		{"message", (*guide).messageInMemory, nil},
		{"lie", (*guide).cancelThatLies, nil},
		{"ledger", (*guide).nextOfTheLedger, nil},
	}
}

// offer proposes the first of some ideas that is taken: a target may be blocked
// by what was played before.
func (g *guide) offer(ctx context.Context, ideas []api.Propose) (api.Action, error) {
	refused := error(action.Refuse(action.WrongState, "Everything that this step could be played with is waiting already. Decide on some of it first."))
	for _, idea := range ideas {
		a, err := g.agent.client.Propose(ctx, idea, "")
		var p *execution.Problem
		if err == nil || !errors.As(err, &p) || !p.Has(action.TargetBlocked, action.DuplicateOpenAction) {
			return a, err
		}
		refused = err
	}
	return api.Action{}, refused
}

func (g *guide) aPrice(ctx context.Context) (api.Action, error) {
	waiting, err := g.agent.waiting(ctx)
	if err != nil {
		return api.Action{}, err
	}
	var ideas []api.Propose
	for _, p := range slices.Backward(g.agent.products(ctx, waiting)) {
		ideas = append(ideas, setPrice(p, round(p.Price*1.05), "The supplier's new list applies from today."))
	}
	return g.offer(ctx, ideas)
}

// anotherPrice replaces the content that somebody is looking at.
func (g *guide) anotherPrice(ctx context.Context, a api.Action) error {
	var asked struct {
		Product string      `json:"product_id"`
		Price   json.Number `json:"new_price"`
	}
	if err := json.Unmarshal(a.Payload, &asked); err != nil {
		return fmt.Errorf("reading a proposal of our own: %w", err)
	}
	price, err := asked.Price.Float64()
	if err != nil {
		return fmt.Errorf("reading a proposal of our own: %w", err)
	}
	content := asks("", "", "", "", map[string]any{"product_id": asked.Product, "new_price": round(price * 1.2)})
	_, err = g.agent.client.Revise(ctx, a.ID, a.Version, api.Revise{Payload: content.Payload, ObjectVersion: a.ObjectVersion,
		Reason: "The supplier has sent a corrected list."})
	return err
}

// lookedAt waits until the executor has read what a proposal is about, and may
// have nothing more to read: who decides wants to see what is there now.
func (g *guide) lookedAt(ctx context.Context, a api.Action) error {
	for range 5 {
		next, err := g.agent.client.Await(ctx, a.ID, a.Version, time.Second)
		if err != nil || next.Version == a.Version && len(a.Observations) > 0 {
			return err
		}
		a = next
	}
	return nil
}

// lateAnswer is longer than an executor waits for the refund desk.
const lateAnswer = 12000 // milliseconds

func (g *guide) refundThatTimesOut(ctx context.Context) (api.Action, error) {
	prefix := "1" + strings.ToUpper(action.NewSecret(3))
	if err := g.agent.shop.SeedOrders(ctx, prefix, 1, 4200); err != nil {
		return api.Action{}, err
	}
	o := order{ID: prefix + "-000001", Customer: "Zhou Ling", Refundable: 42}
	if err := g.control(ctx, http.MethodPost, map[string]any{"system": "refunds", "object": o.ID, "fault": "act-then-delay", "delay_ms": lateAnswer}, nil); err != nil {
		return api.Action{}, err
	}
	return g.agent.client.Propose(ctx, refund(o, o.Refundable, "arrived broken"), "")
}

// announcedInVain changes a price, of which nobody can be told then.
func (g *guide) announcedInVain(ctx context.Context) (api.Action, error) {
	waiting, err := g.agent.waiting(ctx)
	if err != nil {
		return api.Action{}, err
	}
	var ideas []api.Propose
	for _, p := range slices.Backward(g.agent.products(ctx, waiting)) {
		ideas = append(ideas, announced(p))
	}
	a, err := g.offer(ctx, ideas)
	if err != nil || a.Target == nil {
		return a, err
	}
	return a, g.control(ctx, http.MethodPost, map[string]any{"system": "catalog", "path": "/catalog/products/" + a.Target.ID + "/notices",
		"method": http.MethodPost, "fault": "error-before", "status": http.StatusUnprocessableEntity}, nil)
}

// onlyTheRest proposes what was not done of an action, on the object as that
// action left it.
func (g *guide) onlyTheRest(ctx context.Context, a api.Action) error {
	rest := api.Propose{Tool: a.Tool, Actor: &a.Actor, Payload: a.Payload, ObjectVersion: a.ObjectVersion, Resumes: a.ID, Entry: "chat",
		Reason: "The price is changed already, and those who watch the product were not told."}
	for _, r := range a.Receipts {
		if r.ObjectVersionAfter != nil {
			rest.ObjectVersion = r.ObjectVersionAfter
		}
	}
	next, err := g.agent.client.Propose(ctx, rest, "")
	if err != nil {
		return err
	}
	return g.lookedAt(ctx, next)
}

func (g *guide) messageInMemory(ctx context.Context) (api.Action, error) {
	idea, _ := g.agent.pager(ctx, nil)
	return g.agent.client.Propose(ctx, idea, "")
}

func (g *guide) cancelThatLies(ctx context.Context) (api.Action, error) {
	waiting, err := g.agent.waiting(ctx)
	if err != nil {
		return api.Action{}, err
	}
	var ideas []api.Propose
	for _, o := range g.agent.cancellable(ctx, waiting) {
		ideas = append(ideas, cancel(o))
	}
	a, err := g.offer(ctx, ideas)
	if err != nil || a.Target == nil {
		return a, err
	}
	return a, g.control(ctx, http.MethodPost, map[string]any{"system": "orders", "object": a.Target.ID, "fault": "lie"}, nil)
}

// nextOfTheLedger is what the closing of the month needs next, which the agent
// may have asked for already.
func (g *guide) nextOfTheLedger(ctx context.Context) (api.Action, error) {
	waiting, err := g.agent.waiting(ctx)
	if err != nil {
		return api.Action{}, err
	}
	if idea, ok := g.agent.closing(ctx, waiting); ok {
		return g.offer(ctx, []api.Propose{idea})
	}
	for _, tool := range []string{"ledger.sign_off", "ledger.post_adjustment"} {
		open, err := g.agent.client.List(ctx, execution.Filter{State: "proposed", Tool: tool, Limit: 1})
		if err != nil {
			return api.Action{}, err
		}
		if len(open.Items) > 0 {
			return open.Items[0], nil
		}
	}
	return api.Action{}, action.Refuse(action.WrongState, "The month is closed: signed off, and its difference is posted.")
}
