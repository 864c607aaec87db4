package api

import "time"

// OpenTask is the body of POST /v1/tasks: a group of actions under one budget.
// The Idempotency-Key goes in the header.
type OpenTask struct {
	Title    string     `json:"title"` // what it is about, for people
	Limits   TaskLimits `json:"limits"`
	CostUnit string     `json:"cost_unit,omitempty"` // what cost is counted in, such as EUR or tokens
}

// TaskLimits bound a task. A limit that is null, or left out, is none; at least
// one is there.
type TaskLimits struct {
	Decisions *int      `json:"decisions"` // rounds of the program's loop
	Reads     *int      `json:"reads"`
	Writes    *int      `json:"writes"`  // proposals to write, and retries
	Elapsed   *Duration `json:"elapsed"` // since the task was opened
	Cost      *float64  `json:"cost"`    // in cost_unit, to six decimals
}

// Spend is the body of POST /v1/tasks/{task}/spend. It asks for rounds of the
// loop, and for reads that are no actions; and it tells what was spent since the
// last time. SpendID makes a repetition recognisable.
type Spend struct {
	SpendID   string  `json:"spend_id"`
	Decisions int     `json:"decisions,omitempty"`
	Reads     int     `json:"reads,omitempty"`
	Cost      float64 `json:"cost,omitempty"`
}

// TaskUsed is how much of a task's budget is used up. Checks are the readings
// and questions with which results were found out: they are counted, and no
// limit stops them.
type TaskUsed struct {
	Decisions int      `json:"decisions"`
	Reads     int      `json:"reads"`
	Writes    int      `json:"writes"`
	Elapsed   Duration `json:"elapsed"`
	Cost      float64  `json:"cost"`
	Checks    int      `json:"checks"`
}

// Task is a group of actions under one budget. State is open, paused or ended.
type Task struct {
	ID        string     `json:"id"`
	Title     string     `json:"title"`
	State     string     `json:"state"`
	Version   int64      `json:"version"`
	Client    string     `json:"client"` // the program whose task it is
	CreatedAt time.Time  `json:"created_at"`
	EndsAt    *time.Time `json:"ends_at"` // when its time is used up
	CostUnit  *string    `json:"cost_unit"`
	Limits    TaskLimits `json:"limits"` // as they are by now
	Used      TaskUsed   `json:"used"`
	Actions   int        `json:"actions"`
	Exit      *TaskExit  `json:"exit"` // null while it is open
	Links     TaskLinks  `json:"links"`
}

// TaskExit is where a task stopped: what is done, accepted without proof that it
// is done, not done, and not known; and what may be said about the whole. More
// says that the task has more actions than are listed.
type TaskExit struct {
	Limit      string     `json:"limit"` // decisions, reads, writes, elapsed, cost, or ended by a person
	At         time.Time  `json:"at"`
	By         *string    `json:"by"`     // the person who ended it
	Reason     *string    `json:"reason"` // why they did
	Done       []TaskItem `json:"done"`
	Accepted   []TaskItem `json:"accepted"`
	Undone     []TaskItem `json:"undone"`
	Unknown    []TaskItem `json:"unknown"`
	More       bool       `json:"more"`
	MaySay     []string   `json:"may_say"`
	MustNotSay []string   `json:"must_not_say"`
	AsOf       time.Time  `json:"as_of"`
}

// TaskItem is one action of a task, with what may be said about it.
type TaskItem struct {
	ActionID  string    `json:"action_id"`
	Tool      string    `json:"tool"`
	Target    *Target   `json:"target"`
	State     string    `json:"state"`
	CaseID    *string   `json:"case_id"`
	Statement Statement `json:"statement"`
}

// TaskLinks are a task's page.
type TaskLinks struct {
	Page string `json:"page"`
}
