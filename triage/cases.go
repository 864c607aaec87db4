package triage

import (
	"math/big"
	"slices"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
)

// CaseTab is a part of the unknown results.
type CaseTab string

// The tabs. Every open case is in one of the first three.
const (
	TabPerson  CaseTab = "person"  // nothing is left to find out without one
	TabAsking  CaseTab = "asking"  // still found out by itself
	TabSecond  CaseTab = "second"  // a verdict waits for another person
	TabSettled CaseTab = "settled" // over
	TabOpen    CaseTab = "open"    // all that are not over
)

// CaseFilter says which cases a list shows: by how long the key is still known,
// then by age; settled ones the latest first. Empty members do not filter.
type CaseFilter struct {
	Viewer people.Viewer
	Tab    CaseTab
	Tool   string
	Ref    string     // any id or hash of the action
	Keys   []string   // execution keys
	From   *time.Time // opened at or after
	To     *time.Time // opened before
	After  *CaseCursor
	Limit  int
}

// CaseCursor is where a page of cases ended.
type CaseCursor struct {
	KeyUntil *time.Time `json:"k,omitempty"`
	At       time.Time  `json:"t"` // when it was opened; when it was closed among the settled
	ID       string     `json:"i"` // of the action
}

// Looked is how many open cases an overview looks at, the oldest first.
const Looked = 1000

// CaseAge is since when a case is open, and what it waits for.
type CaseAge struct {
	ID      string    `db:"case_id"`
	Since   time.Time `db:"case_since"`
	Person  bool      `db:"needs_person"`
	Pending bool      `db:"case_pending"` // a verdict waits for a second person
}

// CursorAt is the cursor of a case in a tab.
func CursorAt(a action.Action, tab CaseTab) CaseCursor {
	c := CaseCursor{ID: a.ID}
	if a.Case == nil {
		return c
	}
	if c.At = a.Case.OpenedAt; tab == TabSettled {
		c.At = a.Case.ClosedAt
	} else if until, ok := a.KeyUntil(); ok {
		c.KeyUntil = &until
	}
	return c
}

// CaseGroup is cases with one cause: the same tool failed in the same way within
// a quarter of an hour.
type CaseGroup struct {
	Tool  string
	Why   string
	From  time.Time // the start of the quarter of an hour
	Cases []action.Action
}

type groupKey struct {
	tool, why string
	from      time.Time
	unread    string // of a case whose action cannot be read: it stands alone
}

// groupSpan is how close in time cases of one group were opened.
const groupSpan = 15 * time.Minute

// Groups puts cases with one cause together, in the order in which each group's
// first case comes. One whose action cannot be read is a group of its own.
func Groups(cases []action.Action) []CaseGroup {
	var groups []CaseGroup
	at := map[groupKey]int{}
	for _, a := range cases {
		if a.Case == nil {
			continue
		}
		key := groupKey{tool: a.Tool, why: a.Case.Why, from: a.Case.OpenedAt.UTC().Truncate(groupSpan)}
		if a.Unreadable != nil {
			key.unread = a.ID
		}
		i, known := at[key]
		if !known {
			i, at[key] = len(groups), len(groups)
			groups = append(groups, CaseGroup{Tool: key.tool, Why: key.why, From: key.from})
		}
		groups[i].Cases = append(groups[i].Cases, a)
	}
	return groups
}

// Money is an exact sum in one currency, as a decimal. Currency is "" when
// nothing states it.
type Money struct {
	Currency string
	Amount   string
}

// Total adds up the first amount of each payload, per currency and never
// across, in the order of the currencies.
func Total(amounts []contract.Amount) []Money {
	sums, decimals := map[string]*big.Rat{}, map[string]int{}
	for _, a := range amounts {
		if len(a.Text) > 40 {
			continue
		}
		value, ok := new(big.Rat).SetString(a.Text)
		if !ok {
			continue
		}
		if sums[a.Currency] == nil {
			sums[a.Currency] = new(big.Rat)
		}
		sums[a.Currency].Add(sums[a.Currency], value)
		if i := slices.Index([]byte(a.Text), '.'); i >= 0 {
			decimals[a.Currency] = max(decimals[a.Currency], len(a.Text)-i-1)
		}
	}
	var total []Money
	for currency, sum := range sums {
		total = append(total, Money{currency, sum.FloatString(decimals[currency])})
	}
	slices.SortFunc(total, func(a, b Money) int {
		if a.Currency < b.Currency {
			return -1
		}
		return 1
	})
	return total
}
