package web

import (
	"fmt"
	"net/url"
	"time"
)

// ReconcilePage lists what was compared with business systems. Its form posts to
// /reconciliation: op, tool, from and to (2026-11-30T14:00, in the viewer's zone).
type ReconcilePage struct {
	Runs    []Run
	NextURL string
	Start   *RunForm // nil for whoever only looks
}

// RunForm asks for a run.
type RunForm struct {
	Op       string
	Tools    []string // whose contracts say how their operations are listed
	Tool     string
	From, To Own
	Refused  *Refusal
}

// RunState is how far a run is.
type RunState string

// The states of a run.
const (
	RunWaiting   RunState = "waiting"
	RunListing   RunState = "listing"
	RunJoining   RunState = "joining"
	RunComparing RunState = "comparing"
	RunDone      RunState = "done"
	RunGivenUp   RunState = "given_up"
)

// open reports whether a run goes on.
func (s RunState) open() bool { return s != RunDone && s != RunGivenUp }

// sign is the shape beside the state's word.
func (s RunState) sign(differ bool) string {
	switch {
	case s == RunGivenUp:
		return "failed"
	case s == RunDone && differ:
		return "warn"
	case s == RunDone:
		return "confirmed"
	case s == RunWaiting:
		return "proposed"
	}
	return "executing"
}

// Run is one comparison of a window.
type Run struct {
	ID       string
	Title    Text // of the tool
	Tool     Text
	From, To time.Time
	State    RunState
	Problem  Text // why it was given up, or why the last try failed
	AskedAt  time.Time
	By       Text // empty: nobody, it is a sweep
	EndedAt  time.Time
	Pages    int
	Listed   int
	Totals   RunTotals
}

// RunTotals counts a run's operations by class.
type RunTotals struct {
	Matched    int
	Awaiting   int
	Mismatch   int
	OursOnly   int
	TheirsOnly int
	Others     int
	Forms      []FormCount // among the matched: written apart, by how
}

// Differ counts what has to be accounted for. What is awaited is not.
func (t RunTotals) Differ() int { return t.Mismatch + t.OursOnly + t.TheirsOnly }

// FormCount is how many operations are the same though written apart in a way:
// zone, decimals, exponent or absent.
type FormCount struct {
	Form string
	N    int
}

// RunClass is a part of what a run found.
type RunClass string

// The classes. The first is all that has to be accounted for.
const (
	ClassDiffer     RunClass = ""
	ClassMismatch   RunClass = "mismatch"
	ClassOursOnly   RunClass = "ours_only"
	ClassTheirsOnly RunClass = "theirs_only"
	ClassAwaiting   RunClass = "awaiting"
)

// classes are the tabs of a run.
func classes() []RunClass {
	return []RunClass{ClassDiffer, ClassMismatch, ClassOursOnly, ClassTheirsOnly, ClassAwaiting}
}

func (c RunClass) key() string {
	if c == ClassDiffer {
		return "reconcile.tab.differ"
	}
	return "reconcile.tab." + string(c)
}

func (t RunTotals) of(c RunClass) int {
	return map[RunClass]int{ClassDiffer: t.Differ(), ClassMismatch: t.Mismatch, ClassOursOnly: t.OursOnly, ClassTheirsOnly: t.TheirsOnly, ClassAwaiting: t.Awaiting}[c]
}

// RunPage is what one run found. The form of each difference posts to
// /reconciliation/{id}/explanations: op, key, class and note.
type RunPage struct {
	Run
	Class    RunClass
	Rows     []Difference
	NextURL  string
	CSVURL   string
	Explains bool // the viewer may explain differences
	Op       string
	Refused  *Refusal
}

func (p RunPage) url(c RunClass) string {
	return urlWith("/reconciliation/"+url.PathEscape(p.ID), "class", string(c))
}

// Difference is one operation that is not simply matched.
type Difference struct {
	Key       Text
	Class     RunClass
	Why       string // outcome, fields, twice, missing, unknown, unsent, unclear, not_final, young or untold
	Untold    Text   // why its action does not say the same; empty when it does
	ActionID  string // "" when nothing here knows the key
	Effect    Effect
	Ours      State // "" when nothing here knows the key
	Theirs    Text  // the business system's own word; empty when it does not list it
	At        time.Time
	Fields    []FieldPair
	CaseID    string
	CaseOpen  bool
	Explained *Explained
	Note      Own // as typed, when it was refused
}

// FieldPair is one field of both sides.
type FieldPair struct {
	Label  Text
	Other  string // instead of a label: currency or at, which are no fields of the payload
	Ours   Value
	Theirs Value
	Same   bool
	Forms  []string // how they are written apart
}

// words says how the two sides of a field stand to each other.
func (f FieldPair) words() Msg {
	label := soft{f.Label}
	switch f.Other {
	case "currency":
		label = soft{msg("reconcile.currency")}
	case "at":
		label = soft{msg("reconcile.at")}
	}
	switch {
	case f.Same && len(f.Forms) > 0:
		return msg("reconcile.field_form", "field", label, "ours", f.Ours, "theirs", f.Theirs, "forms", formWords(f.Forms))
	case f.Same:
		return msg("reconcile.field_same", "field", label, "ours", f.Ours)
	}
	return msg("reconcile.field_differs", "field", label, "ours", bold{f.Ours}, "theirs", bold{f.Theirs})
}

// Explained is what somebody found out about a difference.
type Explained struct {
	By   Text
	At   time.Time
	Note Text
}

// forms says what of the matched was written apart.
func (t RunTotals) forms() Msg {
	var parts []any
	for _, f := range t.Forms {
		parts = append(parts, msg("reconcile.form", "n", f.N, "form", named("form_of", f.Form)))
	}
	return list("list.comma", parts)
}

// noteID names the input for the explanation of a row.
func noteID(row int) string { return fmt.Sprintf("note-%d", row) }
