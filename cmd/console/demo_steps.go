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

// scene is a step of the guide: how it begins, what can happen meanwhile, which
// may propose another action, and whether it can be played no more.
type scene struct {
	name  string
	begin func(g *guide, ctx context.Context) (api.Action, error)
	turn  func(g *guide, ctx context.Context, a api.Action) (proposed string, err error)
	over  func(g *guide, ctx context.Context) bool
}

func scenes() []scene {
	return []scene{
		{"price", (*guide).aPrice, nil, nil},
		{"stale", (*guide).aPrice, (*guide).anotherPrice, nil},
		{"timeout", (*guide).refundThatTimesOut, nil, nil},
		{"steps", (*guide).announcedInVain, (*guide).onlyTheRest, nil},
		{"message", (*guide).messageInMemory, nil, nil},
		{"lie", (*guide).cancelThatLies, nil, nil},
		{"ledger", (*guide).nextOfTheLedger, nil, (*guide).monthClosed},
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
func (g *guide) anotherPrice(ctx context.Context, a api.Action) (string, error) {
	var asked struct {
		Product string      `json:"product_id"`
		Price   json.Number `json:"new_price"`
	}
	if err := json.Unmarshal(a.Payload, &asked); err != nil {
		return "", fmt.Errorf("reading a proposal of our own: %w", err)
	}
	price, err := asked.Price.Float64()
	if err != nil {
		return "", fmt.Errorf("reading a proposal of our own: %w", err)
	}
	content := asks("", "", "", "", map[string]any{"product_id": asked.Product, "new_price": round(price * 1.2)})
	_, err = g.agent.client.Revise(ctx, a.ID, a.Version, api.Revise{Payload: content.Payload, ObjectVersion: a.ObjectVersion,
		Reason: "The supplier has sent a corrected list."})
	return "", err
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
func (g *guide) onlyTheRest(ctx context.Context, a api.Action) (string, error) {
	rest := api.Propose{Tool: a.Tool, Actor: &a.Actor, Payload: a.Payload, ObjectVersion: a.ObjectVersion, Resumes: a.ID, Entry: "chat",
		Reason: "The price is changed already, and those who watch the product were not told."}
	for _, r := range a.Receipts {
		if r.ObjectVersionAfter != nil {
			rest.ObjectVersion = r.ObjectVersionAfter
		}
	}
	next, err := g.agent.client.Propose(ctx, rest, "")
	if err != nil {
		return "", err
	}
	return next.ID, g.lookedAt(ctx, next)
}

func (g *guide) messageInMemory(ctx context.Context) (api.Action, error) {
	waiting, err := g.agent.waiting(ctx)
	if err != nil {
		return api.Action{}, err
	}
	var ideas []api.Propose
	for range 6 { // one of few conversations, by chance; a free one rather
		if idea, free := g.agent.pager(ctx, waiting); free {
			ideas = slices.Insert(ideas, 0, idea)
		} else {
			ideas = append(ideas, idea)
		}
	}
	return g.offer(ctx, ideas)
}

// cancelThatLies is about an order of its own: one that was cancelled, or that
// nobody knows about, is none to cancel.
func (g *guide) cancelThatLies(ctx context.Context) (api.Action, error) {
	o := order{ID: "2" + strings.ToUpper(action.NewSecret(3)), Customer: "Zhou Ling"}
	if err := g.agent.shop.SeedShopOrder(ctx, o.ID, o.Customer, 4200); err != nil {
		return api.Action{}, err
	}
	if err := g.control(ctx, http.MethodPost, map[string]any{"system": "orders", "object": o.ID, "fault": "lie"}, nil); err != nil {
		return api.Action{}, err
	}
	return g.agent.client.Propose(ctx, cancel(o), "")
}

// nextOfTheLedger is what the closing of the month needs next.
func (g *guide) nextOfTheLedger(ctx context.Context) (api.Action, error) {
	idea, open, err := g.ledger(ctx)
	switch {
	case err != nil:
		return api.Action{}, err
	case open != nil:
		return *open, nil
	case idea != nil:
		return g.offer(ctx, []api.Propose{*idea})
	}
	return api.Action{}, action.Refuse(action.WrongState, "The month is closed: signed off, and its difference is posted. A closed month stays closed; a demo with another --data folder has an open one.")
}

// monthClosed reports whether there is nothing left to do about the month.
func (g *guide) monthClosed(ctx context.Context) bool {
	idea, open, err := g.ledger(ctx)
	return err == nil && idea == nil && open == nil
}

// ledger is what the closing of the month needs next, or what waits for it,
// which the agent may have asked for already; neither when it is closed.
func (g *guide) ledger(ctx context.Context) (next *api.Propose, open *api.Action, err error) {
	for _, tool := range []string{"ledger.sign_off", "ledger.post_adjustment"} {
		list, err := g.agent.client.List(ctx, execution.Filter{State: "proposed", Tool: tool, Limit: 1})
		if err != nil {
			return nil, nil, err
		}
		if len(list.Items) > 0 {
			return nil, &list.Items[0], nil
		}
	}
	if idea, ok := g.agent.closing(ctx, nil); ok {
		return &idea, nil, nil
	}
	return nil, nil, nil
}
