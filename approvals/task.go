package approvals

import (
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/people"
)

// The kinds of events that a task can have. Its id is their subject.
const (
	TaskOpened   action.Kind = "task_opened"
	TaskSpent    action.Kind = "task_spent"
	TaskPausedBy action.Kind = "task_paused" // by a limit
	TaskExtended action.Kind = "task_extended"
	TaskEndedBy  action.Kind = "task_ended"
)

// The states of a task.
const (
	TaskOpen   action.State = "open"
	TaskPaused action.State = "paused" // a limit was reached; a person may extend it
	TaskEnded  action.State = "ended"  // by a person, for good
)

// Limit names what a budget bounds (rows A11 and C6 of docs/systems.md).
type Limit string

// The limits, and LimitEnded for a task that allows nothing any more.
const (
	LimitDecisions Limit = "decisions" // rounds of the program's loop
	LimitReads     Limit = "reads"
	LimitWrites    Limit = "writes"
	LimitElapsed   Limit = "elapsed"
	LimitCost      Limit = "cost"
	LimitEnded     Limit = "ended"
)

// Cost is an amount in millionths of the task's unit.
type Cost int64

// CostUnit is how many of Cost make one unit.
const CostUnit = 1_000_000

// Limits are the bounds of a task, or what is added to them. A nil one is no
// bound.
type Limits struct {
	Decisions *int           `json:"decisions,omitempty"`
	Reads     *int           `json:"reads,omitempty"`
	Writes    *int           `json:"writes,omitempty"`
	Elapsed   *time.Duration `json:"elapsed,omitempty"` // since the task was opened
	Cost      *Cost          `json:"cost,omitempty"`
}

// Spent is what a program reports of its loop. Reads and writes that are
// actions are counted by themselves.
type Spent struct {
	Decisions int  `json:"decisions,omitempty"`
	Reads     int  `json:"reads,omitempty"`
	Cost      Cost `json:"cost,omitempty"`
}

// asks reports whether more is wanted, and not only told what was spent.
func (s Spent) asks() bool { return s.Decisions > 0 || s.Reads > 0 }

// Task is a group of actions under one budget, as its events say.
type Task struct {
	ID        string
	Version   int64
	State     action.State
	Client    action.By // whose task it is
	Title     string
	Unit      string // of the cost
	Limits    Limits // as they are by now
	Spent     Spent
	EndsAt    *time.Time // when its time is used up
	Reached   Limit      // what paused it
	CreatedAt time.Time
	Since     time.Time // when it came to its state
	By        action.By // who brought it there
	Note      string    // why a person did
	Said      string    // why a person extended it, the last time
	ops       map[string]action.Event
}

type taskOpened struct {
	Limits Limits `json:"limits"`
	Unit   string `json:"cost_unit,omitempty"`
}

type taskSpent struct {
	Asked   Spent `json:"asked"`
	Granted Spent `json:"granted"`
	Refused Limit `json:"refused,omitempty"`
}

type taskPaused struct {
	Limit Limit `json:"limit"`
}

type taskBody struct {
	Title  string `json:"title,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// FoldTask computes a task from all its events, in order of version.
func FoldTask(events []action.Event) (Task, error) {
	return FoldTaskEach(events, func(Task, Task, action.Event) {})
}

// FoldTaskEach is FoldTask that tells of each event what it made of the task.
func FoldTaskEach(events []action.Event, tell func(before, after Task, e action.Event)) (Task, error) {
	k := Task{ops: map[string]action.Event{}}
	for _, e := range events {
		next, err := k.with(e)
		if err != nil {
			return Task{}, err
		}
		next.ops[e.Op] = e
		tell(k, next, e)
		k = next
	}
	if k.Version == 0 {
		return Task{}, fmt.Errorf("folding a task: no events")
	}
	return k, nil
}

// with returns the task as it is after e, but for the ops. The receiver is left as
// it was.
func (k Task) with(e action.Event) (Task, error) {
	if e.Version != k.Version+1 || e.From != k.State {
		return k, fmt.Errorf("folding %s: event %d from %q does not follow version %d in %q", e.Subject, e.Version, e.From, k.Version, k.State)
	}
	n := k
	n.ID, n.Version, n.State = e.Subject, e.Version, e.To
	var body taskBody
	if len(e.Body) > 0 {
		if err := json.Unmarshal(e.Body, &body); err != nil {
			return k, fmt.Errorf("folding %s event %d: %w", e.Subject, e.Version, err)
		}
	}
	if e.From != e.To {
		n.Since, n.By, n.Note = e.At, e.By, body.Reason
	}
	if e.To != TaskPaused {
		n.Reached = ""
	}
	if err := n.absorb(e, body); err != nil {
		return k, fmt.Errorf("folding %s event %d (%s): %w", e.Subject, e.Version, e.Kind, err)
	}
	return n, nil
}

func (k *Task) absorb(e action.Event, body taskBody) error {
	switch e.Kind {
	case TaskOpened:
		var d taskOpened
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		k.Client, k.Title, k.Unit, k.Limits, k.CreatedAt = e.By, body.Title, d.Unit, d.Limits, e.At
		if d.Limits.Elapsed != nil {
			k.EndsAt = new(e.At.Add(*d.Limits.Elapsed))
		}
	case TaskSpent:
		var d taskSpent
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		k.Spent.Decisions += d.Granted.Decisions
		k.Spent.Reads += d.Granted.Reads
		k.Spent.Cost += d.Granted.Cost
		if e.From == TaskOpen && e.To == TaskPaused {
			k.Reached = d.Refused
		}
	case TaskPausedBy:
		var d taskPaused
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		k.Reached = d.Limit
	case TaskExtended:
		var d taskOpened
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		k.extend(d.Limits, e.At)
		k.Said = body.Reason
	case TaskEndedBy:
	default:
		return fmt.Errorf("unknown kind")
	}
	return nil
}

// extend adds to the limits. Time that is added counts from now when it was up.
func (k *Task) extend(more Limits, at time.Time) {
	k.Limits = Limits{Decisions: plus(k.Limits.Decisions, more.Decisions), Reads: plus(k.Limits.Reads, more.Reads),
		Writes: plus(k.Limits.Writes, more.Writes), Elapsed: k.Limits.Elapsed, Cost: plus(k.Limits.Cost, more.Cost)}
	if more.Elapsed != nil && k.EndsAt != nil {
		from := *k.EndsAt
		if from.Before(at) {
			from = at
		}
		k.EndsAt = new(from.Add(*more.Elapsed))
		k.Limits.Elapsed = new(k.EndsAt.Sub(k.CreatedAt))
	}
}

func plus[T int | Cost](limit, more *T) *T {
	if limit == nil || more == nil {
		return limit
	}
	return new(*limit + *more)
}

// ReachedAt is the limit that holds the task up as of a moment, or "": time is up
// before the event that says so is written.
func (k Task) ReachedAt(now time.Time) Limit {
	switch {
	case k.State == TaskEnded:
		return LimitEnded
	case k.State == TaskPaused:
		return k.Reached
	case k.EndsAt != nil && !now.Before(*k.EndsAt):
		return LimitElapsed
	}
	return ""
}

// StateAt is the state as of a moment.
func (k Task) StateAt(now time.Time) action.State {
	if k.State == TaskOpen && k.ReachedAt(now) != "" {
		return TaskPaused
	}
	return k.State
}

// allows returns the limit that stands in the way of spending this, or "". What
// is told of the cost counts first: it is gone.
func (k Task) allows(s Spent, now time.Time) Limit {
	if reached := k.ReachedAt(now); reached != "" {
		return reached
	}
	switch {
	case k.Limits.Cost != nil && k.Spent.Cost+s.Cost >= *k.Limits.Cost:
		return LimitCost
	case s.Decisions > 0 && k.Limits.Decisions != nil && k.Spent.Decisions+s.Decisions > *k.Limits.Decisions:
		return LimitDecisions
	}
	return ""
}

// TaskUse is what a task's actions count for in its budget: proposals, and
// retries of writes.
type TaskUse struct {
	Actions int `db:"actions"`
	Reads   int `db:"reads"`
	Writes  int `db:"writes"`
}

// ListedTask is a task as a list has it: without limits and what was spent.
type ListedTask struct {
	Task
	Unreadable bool // what it was opened as cannot be read
}

// TaskTitle reads a task's title from what it was opened with. It is empty once
// retention has removed that, and unreadable when it is damaged.
func TaskTitle(opened []byte) (title string, unreadable bool) {
	var body taskBody
	if len(opened) > 0 && json.Unmarshal(opened, &body) != nil {
		return "", true
	}
	return body.Title, false
}

// TaskFilter says which tasks a list shows, newest first.
type TaskFilter struct {
	Viewer people.Viewer
	Before string // id of the last one seen
	Limit  int
}
