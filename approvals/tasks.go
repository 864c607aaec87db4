package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/action"
	"countersign/people"
)

// TaskLook says what a task's budget is asked for.
type TaskLook string

// The looks. Nothing asks for what finds out what came of something that was
// sent: no budget stops that.
const (
	LookNothing TaskLook = ""
	LookLock    TaskLook = "lock"  // only the task's lock is wanted
	LookOpen    TaskLook = "open"  // something is drafted or revised
	LookRead    TaskLook = "read"  // one is proposed
	LookWrite   TaskLook = "write" // one is proposed
	LookRun     TaskLook = "run"   // a claim or a first attempt
	LookRetry   TaskLook = "retry" // a write is sent once more
)

// TaskChange is a task as it shall be, and why. Version 1 means a new one.
type TaskChange struct {
	Task  Task
	Event action.Event
	Reads int // that the budget has to allow besides, judged under the task's lock
	// Rests are the people whose authority it rests on, as of a transition.
	Rests map[string]int64
}

// TaskStore keeps tasks.
type TaskStore interface {
	// Events returns everything that happened to a subject, in order.
	Events(ctx context.Context, subject string) ([]action.Event, time.Time, error)
	// Now returns the database's clock.
	Now(ctx context.Context) (time.Time, error)
	// FindTask returns the id of the task that an op opened, or "".
	FindTask(ctx context.Context, op string) (string, error)
	// SaveTask writes row and event in one statement. False means that the version,
	// or that of somebody it rests on, moved, or for a new task that its op opened one before. BudgetExhausted when
	// Reads is more than is left. action.ErrLost means nobody knows.
	SaveTask(ctx context.Context, c TaskChange) (bool, error)
	// TaskLimit returns the limit that stands in the way of n more, or "".
	TaskLimit(ctx context.Context, id, client string, look TaskLook, n int) (Limit, error)
	// TaskSubjects returns the tools and scopes of a task's actions.
	TaskSubjects(ctx context.Context, id string) ([]people.Subject, error)
	// OpenOfTask returns actions of a task that have not run, by id after one.
	OpenOfTask(ctx context.Context, id, after string, limit int) ([]string, error)
}

// NewTask is what a program opens a task with.
type NewTask struct {
	Key    string // the caller's Idempotency-Key
	Title  string
	Limits Limits
	Unit   string // of the cost, such as EUR or tokens
}

// Bounds of what a task may be opened with.
const (
	maxTaskTitle  = 200 // bytes
	maxTaskUnit   = 16
	maxTaskCount  = 1_000 // fewer than events, so that the limit is what ends a loop
	maxTaskTime   = 30 * 24 * time.Hour
	maxTaskCost   = 1_000_000_000 * CostUnit
	maxTaskReason = 500
	maxTaskEvents = 2_000 // every command reads them all
)

// OpenTask opens a task of a client. replayed says that this key opened it before.
func (s *Service) OpenTask(ctx context.Context, client people.Client, n NewTask) (k Task, now time.Time, replayed bool, err error) {
	if err := n.check(); err != nil {
		return k, now, false, err
	}
	op := "task:" + client.ID + ":" + n.Key
	for range maxLost {
		if now, err = s.tasks.Now(ctx); err != nil {
			return k, now, false, err
		}
		var e action.Event
		e, err = taskEvent(Task{ID: action.NewID("tsk")}, op, client.By(), TaskOpened, TaskOpen, now, taskOpened{Limits: n.Limits, Unit: n.Unit}, taskBody{Title: n.Title})
		if err == nil {
			k, err = Task{}.with(e)
		}
		if err != nil {
			return k, now, false, err
		}
		made, saveErr := s.tasks.SaveTask(ctx, TaskChange{Task: k, Event: e})
		if made {
			return k, now, false, nil
		}
		if err = saveErr; err == nil || errors.Is(err, action.ErrLost) {
			var there bool
			if k, now, there, err = s.openedBefore(ctx, op, n); there || err != nil {
				return k, now, there && k.ID != e.Subject, err
			}
		}
		if err != nil {
			return k, now, false, err
		}
	}
	return k, now, false, action.Refuse(action.OutcomeUnknown, "We cannot tell whether this was recorded. Repeat the request with the same key: it takes effect once.")
}

// openedBefore is the task that an op opened, if it did.
func (s *Service) openedBefore(ctx context.Context, op string, n NewTask) (k Task, now time.Time, there bool, err error) {
	id, err := s.tasks.FindTask(ctx, op)
	if err != nil || id == "" {
		return k, now, false, err
	}
	if k, now, err = s.Task(ctx, id); err != nil {
		return k, now, false, err
	}
	asked, err := json.Marshal(taskOpened{Limits: n.Limits, Unit: n.Unit})
	if err == nil && (string(k.ops[op].Data) != string(asked) || k.Title != n.Title) {
		err = action.Refuse(action.IdempotencyKeyReused, "This Idempotency-Key was used for another request. Use a new key for a new request.").With("task", id)
	}
	return k, now, true, err
}

func (n NewTask) check() error {
	refusal := action.Refuse(action.InvalidArgument, "The task is refused. The errors say where.")
	if strings.TrimSpace(n.Title) == "" || len(n.Title) > maxTaskTitle {
		refusal.At("/title", fmt.Sprintf("is required: what this is about, in at most %d bytes", maxTaskTitle))
	}
	if len(n.Unit) > maxTaskUnit {
		refusal.At("/cost_unit", fmt.Sprintf("must have at most %d bytes", maxTaskUnit))
	}
	if n.Limits == (Limits{}) {
		refusal.At("/limits", "is required: at least one of decisions, reads, writes, elapsed and cost")
	}
	n.Limits.check(refusal, "/limits")
	if len(refusal.Errors) > 0 {
		return refusal
	}
	return nil
}

// check notes every limit that is out of range.
func (l Limits) check(refusal *action.Refusal, under string) {
	for _, count := range []struct {
		limit Limit
		n     *int
	}{{LimitDecisions, l.Decisions}, {LimitReads, l.Reads}, {LimitWrites, l.Writes}} {
		if count.n != nil && (*count.n < 0 || *count.n > maxTaskCount) {
			refusal.At(under+"/"+string(count.limit), fmt.Sprintf("must be from 0 to %d", maxTaskCount))
		}
	}
	if l.Elapsed != nil && (*l.Elapsed < time.Second || *l.Elapsed > maxTaskTime) {
		refusal.At(under+"/elapsed", "must be from 1s to 720h")
	}
	if l.Cost != nil && (*l.Cost <= 0 || *l.Cost > maxTaskCost) {
		refusal.At(under+"/cost", "must be more than 0 and at most 1000000000")
	}
}

// Task returns a task and the database's clock. NotFound when there is none.
// Who may see it is for the caller to look at.
func (s *Service) Task(ctx context.Context, id string) (Task, time.Time, error) {
	events, now, err := s.tasks.Events(ctx, id)
	if err == nil && len(events) == 0 {
		err = noTask()
	}
	if err != nil {
		return Task{}, now, err
	}
	k, err := FoldTask(events)
	return k, now, err
}

func noTask() error {
	return action.Refuse(action.NotFound, "There is no such task, or you may not see it.").Because("task")
}

// Exhausted is the refusal of what a task's budget does not allow.
func Exhausted(task string, limit Limit) *action.Refusal {
	detail := fmt.Sprintf("The budget of task %s allows no more: %s. Nothing was done. Stop, and tell what is done and what is not: GET /v1/tasks/%s. A person can extend it there.", task, limit, task)
	if limit == LimitEnded {
		detail = fmt.Sprintf("Task %s was ended by a person. Nothing was done. Stop, and tell what is done and what is not: GET /v1/tasks/%s.", task, task)
	}
	return action.Refuse(action.BudgetExhausted, detail).Because(string(limit)).With("limit", string(limit)).With("task", task)
}

// taskStep is what a command makes of a task: an event to write, if it has a kind.
type taskStep struct {
	kind       action.Kind
	to         action.State
	data, body any
	reads      int
	rests      map[string]int64
}

// changeTask decides a command on the latest state of a task and writes it, anew
// when the task moved meanwhile. A command with an op that was given before
// changes nothing. It returns the task after the change, and the event with the op.
func (s *Service) changeTask(ctx context.Context, id, op string, by action.By, decide func(k Task, now time.Time) (taskStep, error)) (Task, action.Event, time.Time, error) {
	var unsure error
	for range maxTaskTries {
		k, now, err := s.Task(ctx, id)
		if err != nil {
			return k, action.Event{}, now, outcome(err, unsure)
		}
		if e, done := k.ops[op]; done {
			return k, e, now, nil
		}
		step, err := decide(k, now)
		if err != nil || step.kind == "" {
			return k, action.Event{}, now, outcome(err, unsure)
		}
		e, err := taskEvent(k, op, by, step.kind, step.to, now, step.data, step.body)
		if err != nil {
			return k, e, now, err
		}
		next, err := k.with(e)
		if err != nil {
			return k, e, now, err
		}
		written, err := s.tasks.SaveTask(ctx, TaskChange{Task: next, Event: e, Reads: step.reads, Rests: step.rests})
		switch {
		case written:
			return next, e, now, nil
		case errors.Is(err, action.ErrLost):
			unsure = err
		case err != nil && !action.IsCode(err, action.BudgetExhausted): // else what is left was taken meanwhile
			return k, e, now, outcome(err, unsure)
		}
	}
	return Task{}, action.Event{}, time.Time{}, outcome(fmt.Errorf("changing %s: lost %d races in a row", id, maxTaskTries), unsure)
}

// maxTaskTries bounds how often a command is decided anew: every lost race means
// that somebody else's went through.
const maxTaskTries = 100

// outcome is err, unless an earlier answer was lost: then nobody knows.
func outcome(err, lost error) error {
	if err == nil || lost == nil {
		return err
	}
	return action.Refuse(action.OutcomeUnknown, "We cannot tell whether this was recorded. Repeat the request with the same id: it takes effect once.").From(lost)
}

func taskEvent(k Task, op string, by action.By, kind action.Kind, to action.State, at time.Time, data, body any) (action.Event, error) {
	e := action.Event{Subject: k.ID, Version: k.Version + 1, Op: op, Kind: kind, By: by, From: k.State, To: to, At: at}
	var err error
	if e.Data, err = json.Marshal(data); err == nil && body != nil {
		e.Body, err = json.Marshal(body)
	}
	if err != nil {
		return e, fmt.Errorf("encoding a %s event: %w", kind, err)
	}
	return e, nil
}
