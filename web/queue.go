package web

import (
	"time"
)

// Tab is one view of the approvals queue.
type Tab string

// The tabs, the first is the default.
const (
	TabMine   Tab = "mine"   // I may, I have not, it is not mine
	TabOthers Tab = "others" // waiting for somebody else
	TabAll    Tab = "all"
)

// Queue is the approvals page.
type Queue struct {
	Tab       Tab
	Counts    map[Tab]Count
	Filter    QueueFilter
	Rows      []Row
	NextURL   string // the following page; "" when this is the last
	FirstPage bool   // false when this is a following page
	ReadAt    time.Time
	StreamURL string     // server-sent events named "new" whose data is a number; "" for none
	Setup     *Checklist // shown while the console is empty
	Paused    []Pause
}

// QueueFilter is what the queue's address narrows it to.
type QueueFilter struct {
	Tool     string   // one of Tools, or ""
	Target   Text     // as the address says
	Expiring bool     // only what expires soon
	Nobody   bool     // only what nobody can approve
	Tools    []string // names to choose from
}

// active reports whether anything is narrowed.
func (f QueueFilter) active() bool {
	return f.Tool != "" || !f.Target.Empty() || f.Expiring || f.Nobody
}

// url is the address of a tab with the same filter.
func (q Queue) url(t Tab) string {
	tab, expiring, nobody := string(t), "", ""
	if t == TabMine {
		tab = ""
	}
	if q.Filter.Expiring {
		expiring = "1"
	}
	if q.Filter.Nobody {
		nobody = "1"
	}
	return urlWith("/approvals", "tab", tab, "tool", q.Filter.Tool, "target", q.Filter.Target.s, "expiring", expiring, "nobody", nobody)
}

// Row is one action in the queue. A row has no button: deciding needs its page.
type Row struct {
	ID          string
	ExpiresAt   time.Time
	Effect      Effect
	Measure     *Measure
	Actor       Text
	Client      Text
	Target      *Target
	Needs       int    // approvals still missing
	Decided     bool   // the viewer has approved it
	Looking     []Text // who has it open, besides the viewer
	Warning     *WarningKind
	Paused      *Pause // keeps it from running
	Blocked     bool   // an open case holds its target
	PayloadHash string
}
