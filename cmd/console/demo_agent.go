package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"countersign/execution"
	"countersign/execution/api"
)

// How calm the agent is.
const (
	agentOpen     = 12 // it proposes nothing more while so many of its proposals wait
	agentShortest = 20 * time.Second
	agentLongest  = 40 * time.Second
	shopTimeout   = 10 * time.Second
)

// The budget of one start: far more than it uses up in a day of calm.
const (
	agentRounds = 800
	agentWrites = 1000
	agentCost   = 30.0 // EUR
	roundCost   = 0.004
)

// agent plays the shop's assistant: it reads the shop and proposes what an
// assistant would.
type agent struct {
	client *execution.Client
	task   *execution.Task
	shop   *shop
	http   *http.Client
	log    *slog.Logger
}

func (d *demoRun) startAgent(ctx context.Context) error {
	client, err := execution.NewClient(d.file.Console, execution.NewSecret(d.file.Keys.Proposer), execution.Options{Logger: d.log, Agent: "shop-assistant"})
	if err != nil {
		return err
	}
	task, err := client.OpenTask(ctx, api.OpenTask{Title: "Look after the shop", CostUnit: "EUR",
		Limits: api.TaskLimits{Decisions: new(agentRounds), Writes: new(agentWrites), Cost: new(agentCost)}}, "")
	if err != nil {
		return err
	}
	a := &agent{client: client, task: task, shop: d.shop, http: &http.Client{Timeout: shopTimeout}, log: d.log}
	if d.fresh {
		a.open(ctx)
	} else {
		a.reopen(ctx)
	}
	d.work(ctx, func(ctx context.Context) error { a.run(ctx); return nil })
	return nil
}

// open proposes one of each kind, so that there is something to look at.
func (a *agent) open(ctx context.Context) {
	for _, idea := range []func(context.Context, busy) (api.Propose, bool){
		a.firstPrice, a.firstRefund, a.announcedPrice, a.steepPrice, a.transfer, a.cancelOrder, a.message,
		a.firstMinutes, a.serviceRequest, a.closing, a.pager, a.delivery,
	} {
		a.propose(ctx, idea)
	}
}

// reopen proposes a few things after a restart.
func (a *agent) reopen(ctx context.Context) {
	for range 3 {
		a.propose(ctx, a.idea())
	}
}

// run proposes something every now and then until ctx ends.
func (a *agent) run(ctx context.Context) {
	for {
		pause := agentShortest + rand.N(agentLongest-agentShortest)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		a.propose(ctx, a.idea())
	}
}

// idea picks what to do next, the common more often.
func (a *agent) idea() func(context.Context, busy) (api.Propose, bool) {
	switch n := rand.IntN(20); {
	case n < 4:
		return a.price
	case n < 5:
		return a.announcedPrice
	case n < 6:
		return a.steepPrice
	case n < 10:
		return a.refund
	case n < 11:
		return a.cancelOrder
	case n < 12:
		return a.message
	case n < 14:
		return a.minutes
	case n < 15:
		return a.serviceRequest
	case n < 16:
		return a.closing
	case n < 18:
		return a.pager
	case n < 19:
		return a.delivery
	}
	return a.transfer
}

// busy are the targets that a proposal waits for already.
type busy map[string]bool

// propose proposes an idea, unless enough is waiting, in a round of its task. An
// idea is false when it finds nothing to do. When the budget is used up it waits
// for somebody to extend it.
func (a *agent) propose(ctx context.Context, idea func(context.Context, busy) (api.Propose, bool)) {
	waiting, err := a.waiting(ctx)
	if err != nil || len(waiting) >= agentOpen {
		a.note("looked", err)
		return
	}
	if !a.task.Round(ctx) {
		a.note("asked for a round", cmp.Or(a.task.Err(), errBudget))
		a.task = a.client.Task(a.task.ID)
		return
	}
	a.task.Cost(roundCost)
	p, ok := idea(ctx, waiting)
	if !ok {
		return
	}
	_, err = a.task.Propose(ctx, p, "")
	a.note("proposed "+p.Tool, err)
}

// waiting reads which targets have a proposal that waits.
func (a *agent) waiting(ctx context.Context) (busy, error) {
	open, err := a.client.List(ctx, execution.Filter{State: "proposed", Limit: 100})
	if err != nil {
		return nil, err
	}
	targets := busy{}
	for _, o := range open.Items {
		if o.Target != nil {
			targets[o.Target.ID] = true
		}
	}
	return targets, nil
}

var errBudget = errors.New("the budget of its task is used up")

func (a *agent) note(what string, err error) {
	if err != nil {
		a.log.Info("the agent was refused", "what", what, "error", err)
	}
}

// product and order are what the agent reads of the shop.
type product struct {
	ID      string  `json:"product_id"`
	Name    string  `json:"name"`
	Price   float64 `json:"price"`
	Status  string  `json:"status"`
	Version int64   `json:"version"`
}

type order struct {
	ID         string  `json:"order_id"`
	Customer   string  `json:"customer_name"`
	Refundable float64 `json:"refundable"`
	Status     string  `json:"status"`
}

// read reads a page of the shop with a token that cannot write.
func (a *agent) read(ctx context.Context, path, token string, into any) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.shop.url+path, nil)
	if err != nil {
		a.note("read", err)
		return false
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := a.http.Do(req)
	if err != nil {
		a.note("read", err)
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", path, resp.Status)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	a.note("read", err)
	return err == nil
}

// products reads what is on sale and waits for no decision.
func (a *agent) products(ctx context.Context, waiting busy) []product {
	var page struct {
		Items []product `json:"items"`
	}
	if !a.read(ctx, "/catalog/products", a.shop.Tokens().CatalogRead, &page) {
		return nil
	}
	var free []product
	for _, p := range page.Items {
		if p.Status == "on_sale" && !waiting[p.ID] {
			free = append(free, p)
		}
	}
	return free
}

// orders reads what can be refunded and waits for no decision.
func (a *agent) orders(ctx context.Context, waiting busy) []order {
	var page struct {
		Items []order `json:"items"`
	}
	if !a.read(ctx, "/refunds/orders", a.shop.Tokens().RefundsRead, &page) {
		return nil
	}
	var free []order
	for _, o := range page.Items {
		if o.Status != "closed" && o.Refundable >= 5 && !waiting[o.ID] && o.ID != pastedOrder {
			free = append(free, o)
		}
	}
	return free
}

func pick[T any](items []T) (item T, ok bool) {
	if len(items) == 0 {
		return item, false
	}
	return items[rand.IntN(len(items))], true
}

// round keeps cents.
func round(amount float64) float64 { return math.Round(amount*100) / 100 }
