package web

import "time"

// HistoryPage is the filtered list of what was decided and what became of it.
type HistoryPage struct {
	Filter   HistoryFilter
	Rows     []HistoryRow
	More     bool   // more rows exist
	NextURL  string // the following page; "" when there is none
	CSVURL   string // "" when there is no file to download
	CallsURL string // the record of their calls; "" when there is none to download
	Refused  *Refusal
}

// HistoryFilter is what the address narrows the history to. Its form is a GET
// with the parameters q, from, to, zone, tool, outcome, approver and took.
type HistoryFilter struct {
	Query    Text   // any id, key or hash
	From     string // 2026-11-01, inclusive, in Zone; "" is open
	To       string // inclusive
	Zone     string // IANA name in which the days are meant
	Zones    []string
	Tool     string
	Tools    []string
	Outcome  State // "" is every one
	Approver Text
	Took     PaceBucket // "" for any time
}

// active reports whether anything is narrowed.
func (f HistoryFilter) active() bool {
	return !f.Query.Empty() || f.From != "" || f.To != "" || f.Tool != "" || f.Outcome != "" || !f.Approver.Empty() || f.Took != ""
}

// HistoryRow is one action that is over, or running.
type HistoryRow struct {
	ID        string
	At        time.Time // when it was proposed: the order of the list
	Effect    Effect
	Measure   *Measure
	Status    Status
	For       Text
	Tool      Text
	Decisions []Decision // of the last revision
	Rules     []Rule     // that were met
}
