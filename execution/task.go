package execution

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"countersign/action"
	"countersign/execution/api"
)

// Task is a loop under a budget that the console keeps: how many rounds, reads
// and writes, how long, at what cost. The console counts and refuses; a Task
// obeys, and stops its loop by itself:
//
//	for task.Round(ctx) {
//		…
//		task.Cost(0.02)
//		a, err := task.Propose(ctx, p, key)
//	}
//	stand, err := task.Stand(ctx, "en") // what is done, what is not, and what may be said
//
// It is safe for concurrent use. A program that starts anew goes on with
// Client.Task: what was spent is in the console.
type Task struct {
	ID     string
	client *Client

	mu   sync.Mutex
	cost float64 // that the console was not told yet
	stop error
}

// OpenTask opens a task. The key names it as in Propose.
func (c *Client) OpenTask(ctx context.Context, t api.OpenTask, key string) (*Task, error) {
	r := post(t, "tasks")
	r.key = key
	var opened api.Task
	if err := c.do(ctx, r, &opened); err != nil {
		return nil, err
	}
	return c.Task(opened.ID), nil
}

// Task goes on with a task that this client opened before.
func (c *Client) Task(id string) *Task { return &Task{ID: id, client: c} }

// Round asks for another round of the loop, and tells what Cost noted. False says
// that the loop has to stop: see Err.
func (t *Task) Round(ctx context.Context) bool { return t.ask(ctx, api.Spend{Decisions: 1}) }

// Read asks for one reading that is no action, such as Tools.Ask. False says that
// the loop has to stop.
func (t *Task) Read(ctx context.Context) bool { return t.ask(ctx, api.Spend{Reads: 1}) }

// Cost notes what something has cost, in the unit that the task was opened with.
// The console is told with the next round, or with Stand.
func (t *Task) Cost(amount float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost += amount
}

// Propose is Client.Propose under the task. Once the budget refuses it, the loop
// has to stop.
func (t *Task) Propose(ctx context.Context, p api.Propose, key string) (api.Action, error) {
	p.TaskID = t.ID
	a, err := t.client.Propose(ctx, p, key)
	if HasCode(err, action.BudgetExhausted) {
		t.halt(err)
	}
	return a, err
}

// Err is why the loop had to stop, when it was not the budget: nil as long as it
// may go on, and once its budget, or a person, has ended it.
func (t *Task) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if HasCode(t.stop, action.BudgetExhausted) {
		return nil
	}
	return t.stop
}

// Stand reads where the task stands, in a language (en or zh). Exit is there once
// it has stopped.
func (t *Task) Stand(ctx context.Context, lang string) (api.Task, error) {
	var k api.Task
	told := t.tell(ctx, api.Spend{})
	r := get("tasks", t.ID)
	r.query = url.Values{"lang": {lang}}
	err := t.client.do(ctx, r, &k)
	return k, errors.Join(told, err)
}

func (t *Task) ask(ctx context.Context, s api.Spend) bool {
	t.mu.Lock()
	stopped := t.stop != nil
	t.mu.Unlock()
	if stopped {
		return false
	}
	if err := t.tell(ctx, s); err != nil {
		t.halt(err)
		return false
	}
	return true
}

// tell sends what is asked for, with what it has cost so far. A cost that the
// console may not have got is told again: twice is on the safe side.
func (t *Task) tell(ctx context.Context, s api.Spend) error {
	t.mu.Lock()
	s.Cost, t.cost = t.cost, 0
	t.mu.Unlock()
	if s == (api.Spend{}) {
		return nil
	}
	s.SpendID = action.NewSecret(16)
	err := t.client.do(ctx, post(s, "tasks", t.ID, "spend"), nil)
	if err != nil && !HasCode(err, action.BudgetExhausted) {
		t.Cost(s.Cost)
	}
	return err
}

func (t *Task) halt(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil {
		t.stop = why
	}
}
