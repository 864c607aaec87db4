package web

import (
	"context"
	"time"
)

// TaskPart is what has become of one action, in the sum of its task.
type TaskPart string

// The parts, in the order in which a page tells them.
const (
	PartUnknown  TaskPart = "unknown"
	PartAccepted TaskPart = "accepted" // that it is done is not proven
	PartDone     TaskPart = "done"
	PartRunning  TaskPart = "running"
	PartWaiting  TaskPart = "waiting" // can still run
	PartUndone   TaskPart = "undone"
)

// TaskParts lists them in that order.
func TaskParts() []TaskPart {
	return []TaskPart{PartUnknown, PartRunning, PartWaiting, PartAccepted, PartDone, PartUndone}
}

// TaskStatement is what may be said about a task that has stopped.
type TaskStatement struct {
	Limit string // decisions, reads, writes, elapsed, cost, or ended
	Parts map[TaskPart]int
	More  bool // of the task than is counted
}

// Count counts one action. Of what runs the result is as little known.
func (s *TaskStatement) Count(p TaskPart) {
	if p == PartRunning {
		p = PartUnknown
	}
	if s.Parts == nil {
		s.Parts = map[TaskPart]int{}
	}
	s.Parts[p]++
}

// MaySay returns the sentences that may be said, in one language.
func (s TaskStatement) MaySay(l Lang) []string {
	ctx := WithLocale(context.Background(), Locale{Lang: l})
	stopped := "task.say.limit"
	if s.Limit == "ended" {
		stopped = "task.say.ended"
	}
	out := []string{T(ctx, stopped)}
	for _, p := range []TaskPart{PartDone, PartAccepted, PartUndone, PartWaiting, PartUnknown} {
		if n := s.Parts[p]; n > 0 {
			out = append(out, T(ctx, "task.say."+string(p), "n", n))
		}
	}
	switch {
	case s.More:
		out = append(out, T(ctx, "task.say.more"))
	case len(s.Parts) == 0:
		out = append(out, T(ctx, "task.say.nothing"))
	}
	if s.Limit != "ended" {
		out = append(out, T(ctx, "task.say.person"))
	}
	return out
}

// MustNotSay returns the words that must not be said of the whole, in one language.
func (s TaskStatement) MustNotSay(l Lang) []string {
	ctx := WithLocale(context.Background(), Locale{Lang: l})
	out := []string{}
	if s.Parts[PartDone] == 0 || s.More || len(s.Parts) > 1 {
		out = append(out, T(ctx, "statement.not.done"))
	}
	if s.Parts[PartUnknown] > 0 {
		out = append(out, T(ctx, "statement.not.failed"))
	}
	return out
}

func (s TaskStatement) mustNot(ctx context.Context) string {
	var parts []any
	for _, l := range Langs() {
		for _, w := range s.MustNotSay(l) {
			parts = append(parts, w)
		}
	}
	return list("list.comma", parts).Plain(ctx)
}

// TaskStatus is where a task stands.
type TaskStatus struct {
	State string // open, paused or ended
	Limit string // what paused it
	By    Text   // who ended it
}

// Words is the status as a sentence.
func (s TaskStatus) Words() Msg {
	if s.State == "paused" {
		return msg("task.state.paused", "limit", msg("task.limit_of."+s.Limit))
	}
	return msg("task.state."+s.State, "by", s.By)
}

// shape is the drawing that stands for it.
func (s TaskStatus) shape() string {
	return map[string]string{"open": "executing", "paused": "paused", "ended": "cancelled"}[s.State]
}

// BudgetLine is one limit of a task and what of it is used. Numbers come as they
// are written in the viewer's language.
type BudgetLine struct {
	Limit   string
	Used    Text
	Of      Text // empty: no limit
	Reached bool
}

// TaskAction is one action of a task.
type TaskAction struct {
	ID     string
	Effect Effect
	Status Status
}

// TaskPage is one task. Its forms post to /tasks/{id}/extend (op, one input a
// limit, reason) and /tasks/{id}/end (op, reason).
type TaskPage struct {
	ID        string
	Title     Text
	Status    TaskStatus
	Client    Text
	Opened    time.Time
	Budget    []BudgetLine
	Checks    int // readings and questions that no limit stops
	Statement *TaskStatement
	AsOf      time.Time
	Parts     map[TaskPart][]TaskAction
	Actions   int  // of the task
	More      bool // than are shown
	Record    []TaskTold
	Extend    *ExtendForm // nil for who may not, and when it was ended
	End       *EndForm
	WhyNot    *Refusal // why the viewer may not
	Refused   *Refusal
}

// hidden is how many of its actions the page does not show.
func (p TaskPage) hidden() int {
	n := p.Actions
	for _, part := range p.Parts {
		n -= len(part)
	}
	return n
}

// ExtendForm adds to the limits that a task has.
type ExtendForm struct {
	Op     string
	Values map[string]Own // by limit, for those that there are
	Reason Own
}

// EndForm ends a task.
type EndForm struct {
	Op     string
	Reason Own
	Open   int // actions that it cancels
}

// Limits lists what a budget can bound, in the order of the forms.
func Limits() []string { return []string{"decisions", "reads", "writes", "elapsed", "cost"} }

// TaskTold is one entry of a task's record.
type TaskTold struct {
	At    time.Time
	Kind  string // opened, paused, extended or ended
	By    Text
	Limit string
	Added []BudgetLine // Used is what was added
	Why   Text
}

func (t TaskTold) line() Msg {
	var added []any
	for _, l := range t.Added {
		added = append(added, msg("task.added."+l.Limit, "more", l.Used))
	}
	limit := Msg{}
	if t.Limit != "" {
		limit = msg("task.limit_of." + t.Limit)
	}
	return msg("task.told."+t.Kind, "by", t.By, "limit", limit, "what", list("list.comma", added))
}

// TasksPage lists tasks, newest first.
type TasksPage struct {
	Tasks   []TaskRow
	NextURL string
}

// TaskRow is one task in the list.
type TaskRow struct {
	ID     string
	Title  Text
	Unread bool // its history cannot be read
	Status TaskStatus
	Client Text
	Opened time.Time
}

// PartOfTask is the task that an action belongs to.
type PartOfTask struct {
	ID     string
	Title  Text
	Status TaskStatus
}
