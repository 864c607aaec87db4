package approvals

import (
	"time"

	"countersign/action"
	"countersign/people"
)

// Filter says which actions a list shows, newest first. Empty members do not
// filter.
type Filter struct {
	Viewer    people.Viewer
	State     action.State
	Tool      string
	ActorID   string
	Target    *action.Target // an empty Type means any
	TaskID    string
	ClaimedBy string // client id
	Ref       string // any id or hash of the action
	Approver  string // person id
	From, To  *time.Time
	Took      *Took  // of the newest that the other members let through, at most Looked
	Before    string // id of the last action seen
	Limit     int
}

// Tab is a part of the approvals queue.
type Tab string

// The tabs: what waits for the viewer, what waits for others, both.
const (
	NeedsMe   Tab = "me"
	ForOthers Tab = "others"
	Everybody Tab = "all"
)

// QueueFilter says which waiting proposals a person's queue shows, by time left.
type QueueFilter struct {
	Person   people.Person
	Roles    []string // in which the person decides
	Tab      Tab
	Tool     string
	Target   string        // id
	Expiring time.Duration // 0: whenever
	After    QueueCursor
	Limit    int
}

// QueueCursor is where a page of the queue ended.
type QueueCursor struct {
	ExpiresAt time.Time
	ID        string
}

// WorkFilter says which work an executor asks for. Tools are names, or
// prefixes that end in "*"; empty for all.
type WorkFilter struct {
	Viewer   people.Viewer
	Executor string // client id of who asks: it may be paused
	Tools    []string
	After    string // id of the last action seen
	Limit    int
}

// Past is what a decider should know of the past.
type Past struct {
	Blocking string          // open case of another action that holds up the target, or ""
	OnTarget []action.Action // other actions on the same target, newest first
	Rejected []action.Action // the same content, rejected before, newest first
}
