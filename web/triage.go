package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TriageTab is one view of the unknown results.
type TriageTab string

// The tabs, the first is the default.
const (
	TriagePerson  TriageTab = "person"  // asking is over, somebody has to find out
	TriageAsking  TriageTab = "asking"  // still asked by itself
	TriageSecond  TriageTab = "second"  // settled by one person, waiting for another
	TriageSettled TriageTab = "settled" // over
)

// TriagePage is the queue of unknown results at /triage: tab, tool, q.
type TriagePage struct {
	Tab       TriageTab
	Counts    map[TriageTab]Count
	Filter    TriageFilter
	Groups    []CaseGroup // by their earliest deadline; a group of one is a plain row
	NextURL   string      // the following page; "" when this is the last
	FirstPage bool        // false when this is a following page
	ReadAt    time.Time
	StreamURL string // server-sent events named "new" whose data is a number; "" for none
	Settles   bool   // the viewer may ask, take and settle
	Paused    []Pause
	Callbacks bool // callbacks wait that belong to nothing
}

// TriageFilter is what the address of the unknown results narrows them to.
type TriageFilter struct {
	Tool  string    // one of Tools, or ""
	Tools []string  // names to choose from
	Query Text      // target or key
	Age   AgeBucket // "" for every age
}

// active reports whether anything is narrowed.
func (f TriageFilter) active() bool { return f.Tool != "" || !f.Query.Empty() || f.Age != "" }

// url is the address of a tab with the same filter.
func (p TriagePage) url(t TriageTab) string {
	tab := string(t)
	if t == TriagePerson {
		tab = ""
	}
	return urlWith("/triage", "tab", tab, "tool", p.Filter.Tool, "q", p.Filter.Query.s, "age", string(p.Filter.Age))
}

// CaseGroup is cases with one cause: the same tool failed in the same way
// within 15 minutes. Its bulk forms work on exactly the rows it shows.
type CaseGroup struct {
	System Text   // the business system; empty is "the system"
	Title  Text   // of the tool
	Why    string // why the cases were opened: unknown-receipt, lease-lapsed, deadline, mismatch, …
	From   time.Time
	To     time.Time
	Money  []Money // one sum per currency, never across; amounts as decimals
	Rows   []CaseRow
	Op     string // makes a repeated bulk post the same one
}

// CaseItem is a case as a person saw it: what a bulk form posts and an import
// is bound to.
type CaseItem struct {
	ID           string
	Version      int64  // of the action
	SnapshotHash string // of what the page showed; see CasePage
}

// String is the form in which an item is posted: id:version:hash.
func (i CaseItem) String() string {
	return fmt.Sprintf("%s:%d:%s", i.ID, i.Version, i.SnapshotHash)
}

// ParseCaseItem reads what String wrote; false for anything else.
func ParseCaseItem(s string) (CaseItem, bool) {
	id, rest, _ := strings.Cut(s, ":")
	number, hash, found := strings.Cut(rest, ":")
	version, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil || id == "" || version < 1 {
		return CaseItem{}, false
	}
	return CaseItem{id, version, hash}, true
}

// CaseRow is one case in the queue.
type CaseRow struct {
	Item    CaseItem
	Effect  Effect // what may or may not have happened
	Measure *Measure
	Key     KeyLife
	Why     string
	Asked   Asked
	Holder  Text // who has it; empty is nobody
	Mine    bool // the viewer has it
	Needs   bool // asking is over: a person has to find out
	Second  Text // TriageSecond: who settled it first
	Verdict string
	By      Text      // TriageSettled: who settled it; empty when it was found out
	Found   string    // TriageSettled: how it was found out; see the Found words
	At      time.Time // TriageSettled
	Status  Status    // TriageSettled: what became of it
}

// KeyLife is how long the business system surely remembers the execution key,
// so that sending again cannot run it twice.
type KeyLife struct {
	Key    string
	Until  time.Time // zero: the contract does not say
	Used   bool      // the one safe retry was made
	System Text
}

// gone reports whether the key is forgotten as of now.
func (k KeyLife) gone(now time.Time) bool { return !k.Until.IsZero() && !now.Before(k.Until) }

// Found is what the last answer to a question by key said.
type Found string

// The answers.
const (
	FoundNothing     Found = ""             // never asked, or the contract names no query
	FoundNotFound    Found = "not_found"    // a miss, which proves nothing
	FoundNoAnswer    Found = "no_answer"    // nobody answered
	FoundUnclear     Found = "unclear"      // an answer that the contract cannot read
	FoundUntimely    Found = "untimely"     // an answer from when it proves nothing
	FoundNotExecuted Found = "not_executed" // the system says, by key, that nothing ran
	FoundHappened    Found = "happened"
	FoundFailed      Found = "failed"
	FoundDiffers     Found = "differs" // something else stands under the key than was asked for
)

// Asked is how often the business system was asked by key, and with what end.
type Asked struct {
	Possible bool // the contract names a query
	Over     bool // nobody asks any more
	Times    int  // in all
	Round    int  // of them since the latest request, or since a person asked for more
	Budget   int  // how often it is asked by itself in a round; 0 when it is not
	Last     time.Time
	Found    Found
	Next     time.Time // zero when it is not asked again by itself
}

// BulkPage says what became of every item of a bulk action: POST /triage/bulk
// with do=ask|take, op and item (id:version:hash) repeated, or a confirmed
// import.
type BulkPage struct {
	Do      string // ask, take or import
	Results []BulkResult
	Back    string // where the person came from
}

// BulkResult is one item of a bulk action: done, or refused and why.
type BulkResult struct {
	CaseID  string
	Effect  Effect
	Refused *Refusal // nil when it was done
	Second  bool     // import: recorded, another person has to confirm it
}

// ImportPage takes a file of the provider: first the upload, then a dry run,
// then the confirmation. Both forms post to /triage/import as multipart with
// op and item (id:version:hash) repeated; the upload has file, the confirmation
// has step=confirm, content, file_name and note.
type ImportPage struct {
	Op      string
	Items   []CaseItem // the frozen list that a file is matched with
	Refused *Refusal
	Preview *ImportPreview // nil before a file was read
	Back    string
	Max     int // bytes that a file may have
}

// ImportPreview is what a file would record, before anything is recorded.
type ImportPreview struct {
	FileName Text
	FileHash string // sha256:…; the evidence of what is recorded
	Content  string // base64 of the file's bytes, which the confirmation posts back
	Rows     []ImportRow
	Note     Own
}

// ImportMatch is what a file says of one key.
type ImportMatch string

// The matches, those that record something first.
const (
	MatchHappened     ImportMatch = "happened"
	MatchDidNotHappen ImportMatch = "did_not_happen"
	MatchPartly       ImportMatch = "partly"     // of the steps, some happened and some did not
	MatchUnclear      ImportMatch = "unclear"    // a status that nobody can read
	MatchDiffers      ImportMatch = "differs"    // another amount or currency than was sent
	MatchTwice        ImportMatch = "twice"      // the key stands in the file more than once
	MatchAbsent       ImportMatch = "absent"     // not in the file, which proves nothing
	MatchIncomplete   ImportMatch = "incomplete" // of a step it is neither known nor in the file
	MatchStranger     ImportMatch = "stranger"   // in the file, but no case of the list
	MatchStale        ImportMatch = "stale"      // changed since the list was shown
	MatchImpossible   ImportMatch = "impossible" // the verdict cannot be recorded now, see Refused
)

// records reports whether confirming records something for the row.
func (m ImportMatch) records() bool {
	return m == MatchHappened || m == MatchDidNotHappen || m == MatchPartly
}

// ImportRow is one case of the list, or one key of the file.
type ImportRow struct {
	CaseID  string // "" for a key that is no case of the list
	Effect  Effect
	Key     Text
	Lines   []ImportLine // none when it is not in the file
	Measure *Measure
	Match   ImportMatch
	Refused *Refusal // MatchImpossible
}

// ImportLine is a line of the file.
type ImportLine struct {
	Number int
	Step   Text // whose key it names; empty without steps
	Says   Text
	Ref    Text // the provider's reference
}
