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

// Spend asks for another round of a program's loop, or for reads of its own, and
// tells what was spent so far. What it tells is always recorded; what it asks for
// is granted or refused as BudgetExhausted, and then the task is paused. Repeating
// an id gives the same answer.
func (s *Service) Spend(ctx context.Context, client people.Client, id, spendID string, spent Spent) (Task, time.Time, error) {
	if err := spent.check(spendID); err != nil {
		return Task{}, time.Time{}, err
	}
	var refused Limit
	k, e, now, err := s.changeTask(ctx, id, "spend:"+spendID, client.By(), func(k Task, now time.Time) (step taskStep, err error) {
		if err := mine(client, k); err != nil {
			return step, err
		}
		if refused, err = s.refusing(ctx, k, spent, now); err != nil {
			return step, err
		}
		return k.spend(spent, refused)
	})
	if err != nil {
		return k, now, err
	}
	if err := mine(client, k); err != nil {
		return k, now, err
	}
	if e.Kind != "" {
		var d taskSpent
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return k, now, fmt.Errorf("reading what was spent: %w", err)
		}
		if d.Asked != spent {
			return k, now, action.Refuse(action.IdempotencyKeyInUse, "This id was used before with other content. Use a new id for something new.")
		}
		refused = d.Refused
	}
	if refused != "" && spent.asks() {
		return k, now, Exhausted(k.ID, refused)
	}
	return k, now, nil
}

// refusing returns the limit that stands in the way of spending this, or "".
func (s *Service) refusing(ctx context.Context, k Task, spent Spent, now time.Time) (Limit, error) {
	if limit := k.allows(spent, now); limit != "" || spent.Reads == 0 {
		return limit, nil
	}
	return s.tasks.TaskLimit(ctx, k.ID, k.Client.ID, LookRead, spent.Reads)
}

// spend records what was spent, with what was granted unless a limit refuses it.
func (k Task) spend(spent Spent, refused Limit) (taskStep, error) {
	if k.Version >= maxTaskEvents {
		return taskStep{}, action.Refuse(action.WrongState, "This task has been reported on too often. Open another one.").Because("task-full")
	}
	d := taskSpent{Asked: spent, Granted: spent, Refused: refused}
	step := taskStep{kind: TaskSpent, to: k.State, reads: spent.Reads}
	if refused != "" {
		d.Granted, step.reads = Spent{Cost: spent.Cost}, 0
		switch {
		case k.State == TaskOpen:
			step.to = TaskPaused
		case spent.Cost == 0:
			return taskStep{}, nil // a loop that does not stop writes nothing
		}
	}
	step.data = d
	return step, nil
}

func (s Spent) check(id string) error {
	if err := checkID("/spend_id", id); err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "What was spent is refused. The errors say where.")
	if s.Decisions < 0 || s.Decisions > maxTaskCount {
		refusal.At("/decisions", fmt.Sprintf("must be from 0 to %d", maxTaskCount))
	}
	if s.Reads < 0 || s.Reads > maxTaskCount {
		refusal.At("/reads", fmt.Sprintf("must be from 0 to %d", maxTaskCount))
	}
	if s.Cost < 0 || s.Cost > maxTaskCost {
		refusal.At("/cost", "must be from 0 to 1000000000")
	}
	if s == (Spent{}) {
		refusal.At("", "say at least one of decisions, reads and cost")
	}
	if len(refusal.Errors) > 0 {
		return refusal
	}
	return nil
}

// mine refuses a task of another client.
func mine(client people.Client, k Task) error {
	switch {
	case k.Client.ID == client.ID:
		return nil
	case people.ClientViewer(client).All:
		return action.Refuse(action.Forbidden, "Only the program that opened this task spends its budget.").Because("proposer")
	}
	return noTask()
}

// pauseTask notes that a limit stopped what a client asked for, unless there is
// room by now. What it is told it cannot note was refused all the same.
func (s *Service) pauseTask(ctx context.Context, client string, refused error) error {
	if !action.IsCode(refused, action.BudgetExhausted) {
		return refused
	}
	refusal := action.AsRefusal(refused)
	look := map[Limit]TaskLook{LimitReads: LookRead, LimitWrites: LookWrite}[Limit(refusal.Args["limit"])]
	if look == LookNothing {
		return refused // it is paused, ended, or soon will be
	}
	id := refusal.Args["task"]
	_, _, _, err := s.changeTask(ctx, id, "pause:"+action.NewSecret(8), action.By{Kind: action.BySystem}, func(k Task, now time.Time) (taskStep, error) {
		if k.State != TaskOpen {
			return taskStep{}, nil
		}
		limit, err := s.tasks.TaskLimit(ctx, id, client, look, 1)
		if err != nil || limit == "" {
			return taskStep{}, err
		}
		return taskStep{kind: TaskPausedBy, to: TaskPaused, data: taskPaused{limit}}, nil
	})
	return errors.Join(refused, err)
}

// SweepTasks pauses tasks whose time is up: all that due names, limit at a time
// after the last one. One that cannot be paused keeps no other going.
func (s *Service) SweepTasks(ctx context.Context, due func(ctx context.Context, after action.Due, limit int) ([]action.Due, error), limit int) error {
	return action.Each(ctx, func(after action.Due) ([]action.Due, error) { return due(ctx, after, limit) }, func(d action.Due) error {
		_, _, _, err := s.changeTask(ctx, d.ID, "elapsed:"+action.NewSecret(8), action.By{Kind: action.BySystem}, func(k Task, now time.Time) (taskStep, error) {
			if k.State != TaskOpen || k.ReachedAt(now) != LimitElapsed {
				return taskStep{}, nil
			}
			return taskStep{kind: TaskPausedBy, to: TaskPaused, data: taskPaused{LimitElapsed}}, nil
		})
		if err != nil {
			return fmt.Errorf("pausing %s: %w", d.ID, err)
		}
		return nil
	})
}

// TaskCommand is what a person asks of a task, and why.
type TaskCommand struct {
	Op       string // of the form
	PersonID string
	By       action.By
	Reason   string
}

// MayTend tells whether a person may extend or end a task: support or ops, whose
// limits cover all of its actions, and not whoever answers for its program.
func (s *Service) MayTend(ctx context.Context, p people.Person, k Task) error {
	owner, err := s.owner(ctx, k.Client.ID)
	if err != nil {
		return err
	}
	subjects, err := s.tasks.TaskSubjects(ctx, k.ID)
	if err != nil {
		return err
	}
	if len(subjects) == 0 {
		subjects = []people.Subject{{}}
	}
	for _, subject := range subjects {
		subject.ClientID, subject.ClientOwner = k.Client.ID, owner
		if err := people.May(p, people.ToTend, subject); err != nil {
			return err
		}
	}
	return nil
}

// ExtendTask adds to limits that the task has, and lets it go on.
func (s *Service) ExtendTask(ctx context.Context, c TaskCommand, id string, more Limits) (Task, error) {
	return s.tend(ctx, c, id, func(k Task, now time.Time) (taskStep, error) {
		refusal := action.Refuse(action.InvalidArgument, "The budget was not extended. The errors say why.")
		c.check(refusal)
		more.check(refusal, "")
		k.fits(refusal, more)
		after := k
		after.State = TaskOpen
		after.extend(more, now)
		if limit := after.allows(Spent{}, now); limit != "" && len(refusal.Errors) == 0 {
			refusal.At("/"+string(limit), "would still be used up: add more")
		}
		switch {
		case k.State == TaskEnded:
			return taskStep{}, action.Refuse(action.WrongState, "This task was ended.").Because("task-ended")
		case len(refusal.Errors) > 0:
			return taskStep{}, refusal
		}
		return taskStep{kind: TaskExtended, to: TaskOpen, data: taskOpened{Limits: more}, body: taskBody{Reason: c.Reason}}, nil
	})
}

// fits notes what cannot be added to a task's limits.
func (k Task) fits(refusal *action.Refusal, more Limits) {
	if more == (Limits{}) {
		refusal.At("", "say by how much at least one limit is extended")
	}
	for _, l := range []struct {
		limit       Limit
		given, open bool
	}{
		{LimitDecisions, more.Decisions != nil, k.Limits.Decisions == nil}, {LimitReads, more.Reads != nil, k.Limits.Reads == nil},
		{LimitWrites, more.Writes != nil, k.Limits.Writes == nil}, {LimitElapsed, more.Elapsed != nil, k.Limits.Elapsed == nil},
		{LimitCost, more.Cost != nil, k.Limits.Cost == nil},
	} {
		if l.given && l.open {
			refusal.At("/"+string(l.limit), "has no limit that could be extended")
		}
	}
}

// EndTask ends a task for good, and cancels its actions that have not run. Ending
// it again cancels what an interrupted end has left. StaleRevision when some
// cannot be cancelled, because they cannot be read; all else is done.
func (s *Service) EndTask(ctx context.Context, c TaskCommand, id string) (Task, error) {
	var before bool // it was ended by another command
	k, err := s.tend(ctx, c, id, func(k Task, _ time.Time) (taskStep, error) {
		before = k.State == TaskEnded
		refusal := action.Refuse(action.InvalidArgument, "The task was not ended. The errors say why.")
		switch c.check(refusal); {
		case len(refusal.Errors) > 0:
			return taskStep{}, refusal
		case k.State == TaskEnded:
			return taskStep{}, nil
		}
		return taskStep{kind: TaskEndedBy, to: TaskEnded, data: struct{}{}, body: taskBody{Reason: c.Reason}}, nil
	})
	if err != nil || k.State != TaskEnded {
		return k, err
	}
	cancelled, err := cancelAll(ctx, s.ledger, func(after string) ([]string, error) { return s.tasks.OpenOfTask(ctx, id, after, 100) },
		action.Cancel{Op: "task-ended:" + id, By: c.By, Reason: c.Reason})
	if err == nil && before && cancelled == 0 {
		err = action.Refuse(action.WrongState, "This task was ended already.").Because("task-ended")
	}
	return k, err
}

// tend lets a person change a task. Their ops are their own: no program and no
// other person can have answered one before. What they may is read anew for every
// try.
func (s *Service) tend(ctx context.Context, c TaskCommand, id string, decide func(Task, time.Time) (taskStep, error)) (Task, error) {
	may := func(k Task) (map[string]int64, error) {
		person, err := s.directory.Person(ctx, c.PersonID)
		if err == nil {
			err = s.MayTend(ctx, person, k)
		}
		return map[string]int64{person.Subject(): person.Version}, err
	}
	k, _, err := s.Task(ctx, id)
	if err != nil {
		return k, err
	}
	if _, err := may(k); err != nil {
		return k, err
	}
	k, _, _, err = s.changeTask(ctx, id, "tend:"+c.PersonID+":"+c.Op, c.By, func(k Task, now time.Time) (taskStep, error) {
		rests, err := may(k)
		if err != nil {
			return taskStep{}, err
		}
		step, err := decide(k, now)
		step.rests = rests
		return step, err
	})
	return k, err
}

func (c TaskCommand) check(refusal *action.Refusal) {
	if reason := strings.TrimSpace(c.Reason); reason == "" || len(reason) > maxTaskReason {
		refusal.At("/reason", fmt.Sprintf("say why, in at most %d bytes", maxTaskReason))
	}
}
