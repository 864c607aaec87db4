package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"countersign/action"
	"countersign/execution"
	"countersign/handlers"
)

// guide plays the steps of the demo's guide, through the same doors as any
// program: the console's API and the shop's own.
type guide struct {
	busy sync.Mutex // held by whoever plays, breaks or tries: one at a time

	mu     sync.Mutex // of what follows, and never held for long: every page reads it
	dir    string
	played map[string]played
	agent  *agent
	admin  *execution.Client
	tried  []string // names of tools that people tried
	broke  string   // op of the last form that broke something
}

// played is a step as it was played last.
type played struct {
	Op     string `json:"op"`
	Action string `json:"action"`
	TurnOp string `json:"turn_op,omitempty"` // of its turn
	Rest   string `json:"rest,omitempty"`    // the action that its turn proposed
}

// guideFile is what the guide keeps over a restart.
type guideFile struct {
	Steps map[string]played `json:"steps"`
	Tried []string          `json:"tried"`
}

// open gives the guide its company, once everything runs.
func (g *guide) open(d *demoRun) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	client, err := execution.NewClient(d.file.Console, execution.NewSecret(d.file.Keys.Proposer), execution.Options{Logger: d.log, Agent: "shop-assistant"})
	if err != nil {
		return err
	}
	admin, err := execution.NewClient(d.file.Console, execution.NewSecret(d.file.Keys.Admin), execution.Options{Logger: d.log})
	if err != nil {
		return err
	}
	kept := guideFile{Steps: map[string]played{}}
	g.dir, g.admin = d.dir, admin
	raw, err := os.ReadFile(g.path())
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = nil
	case err == nil:
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w; delete it to begin the guide anew", g.path(), err)
	}
	g.played, g.tried = kept.Steps, kept.Tried
	g.agent = &agent{client: client, shop: d.shop, http: &http.Client{Timeout: shopTimeout}, log: d.log}
	return nil
}

func (g *guide) path() string { return filepath.Join(g.dir, "guide.json") }

// enter waits for whoever is inside; the company has to be open.
func (g *guide) enter() (leave func(), err error) {
	g.busy.Lock()
	if !g.isOpen() {
		g.busy.Unlock()
		return nil, action.Refuse(action.ToolUnavailable, "The demo is still starting. Try again in a moment.")
	}
	return g.busy.Unlock, nil
}

func (g *guide) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.agent != nil
}

// Steps implements handlers.Demo.
func (g *guide) Steps(context.Context) ([]handlers.DemoStep, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var steps []handlers.DemoStep
	for _, s := range scenes() {
		last := g.played[s.name]
		step := handlers.DemoStep{Name: s.name, ActionID: last.Action, RestID: last.Rest, Turns: s.turn != nil, InPart: s.name == "steps", Turned: last.TurnOp != ""}
		if s.over != nil && g.agent != nil {
			step.Over = func(ctx context.Context) bool { return s.over(g, ctx) }
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// Play implements handlers.Demo.
func (g *guide) Play(ctx context.Context, step string, turn bool, op string) (string, error) {
	leave, err := g.enter()
	if err != nil {
		return "", err
	}
	defer leave()
	i := slices.IndexFunc(scenes(), func(s scene) bool { return s.name == step })
	if i < 0 || turn && scenes()[i].turn == nil {
		return "", action.Refuse(action.NotFound, "The guide has no such step.")
	}
	now, s := g.played[step], scenes()[i]
	switch {
	case turn && now.Action == "":
		return "", action.Refuse(action.WrongState, "This step was not played yet. Play it first.")
	case turn && now.TurnOp == op, !turn && now.Op == op:
		return now.Action, nil // a form that was sent twice
	case turn:
		now.TurnOp = op
		now.Rest, err = g.turned(ctx, s, now)
	default:
		now, err = g.begun(ctx, s, op)
	}
	if err != nil {
		return "", toldBy(err)
	}
	return now.Action, g.remember(step, now)
}

func (g *guide) begun(ctx context.Context, s scene, op string) (played, error) {
	a, err := s.begin(g, ctx)
	if err == nil {
		err = g.lookedAt(ctx, a)
	}
	return played{Op: op, Action: a.ID}, err
}

func (g *guide) turned(ctx context.Context, s scene, now played) (rest string, err error) {
	a, err := g.agent.client.Get(ctx, now.Action)
	if err != nil {
		return "", err
	}
	return s.turn(g, ctx, a)
}

// remember notes how far a step is.
func (g *guide) remember(step string, now played) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.played[step] = now
	return g.save()
}

// save keeps how far the guide is over a restart.
func (g *guide) save() error {
	text, err := json.Marshal(guideFile{Steps: g.played, Tried: g.tried})
	if err != nil {
		return fmt.Errorf("encoding the guide: %w", err)
	}
	return writePrivately(g.path(), text)
}

// toldBy makes what the console or the shop said no with a refusal that a page
// can show.
func toldBy(err error) error {
	var p *execution.Problem
	if !errors.As(err, &p) || p.Status == 0 {
		return err
	}
	refusal := action.Refuse(action.Code(p.Code), p.Detail).Because(p.Reason).From(err)
	refusal.Args = p.Args
	for _, e := range p.Errors {
		refusal.At(e.Pointer, e.Detail)
	}
	return refusal
}

// Faults implements handlers.Demo.
func (g *guide) Faults(ctx context.Context) ([]handlers.DemoFault, error) {
	leave, err := g.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var armed struct {
		Items []struct {
			System string `json:"system"`
			Kind   string `json:"fault"`
			Count  int    `json:"count"`
		} `json:"items"`
	}
	if err := g.control(ctx, http.MethodGet, nil, &armed); err != nil {
		return nil, err
	}
	var on []handlers.DemoFault
	for _, a := range armed.Items {
		on = append(on, handlers.DemoFault{System: a.System, Kind: a.Kind, Left: a.Count})
	}
	return on, nil
}

// Break implements handlers.Demo.
func (g *guide) Break(ctx context.Context, f handlers.DemoFault, op string) error {
	leave, err := g.enter()
	if err != nil {
		return err
	}
	defer leave()
	if op == g.broke {
		return nil
	}
	g.broke = op
	return g.control(ctx, http.MethodPost, map[string]any{"system": f.System, "fault": f.Kind, "count": f.Left}, nil)
}

// Mend implements handlers.Demo.
func (g *guide) Mend(ctx context.Context) error {
	leave, err := g.enter()
	if err != nil {
		return err
	}
	defer leave()
	return g.control(ctx, http.MethodDelete, nil, nil)
}

// control asks for or changes the shop's faults.
func (g *guide) control(ctx context.Context, method string, body any, into any) error {
	var text strings.Builder
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return fmt.Errorf("encoding a fault: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, g.agent.shop.url+"/faults", strings.NewReader(text.String()))
	if err != nil {
		return fmt.Errorf("asking the sandbox: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+g.agent.shop.Tokens().Control)
	resp, err := g.agent.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking the sandbox: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", resp.Status)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		return fmt.Errorf("asking the sandbox: %w", err)
	}
	return nil
}
