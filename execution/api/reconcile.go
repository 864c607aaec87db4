package api

import (
	"encoding/json"
	"time"
)

// ListWork is what work of the kind list asks for: the operations of a window,
// read page by page with the tool that Work.Read names, each page reported to
// POST /v1/reconciliations/{run_id}/pages.
type ListWork struct {
	RunID  string    `json:"run_id"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`     // not in the window
	Cursor *string   `json:"cursor"` // of the page to begin with; null is the first
}

// ListedPage is the body of POST /v1/reconciliations/{run}/pages: one page of
// operations, cut down to what the contract's reconcile part names, or why it
// could not be read.
type ListedPage struct {
	PageID string            `json:"page_id"`
	Cursor *string           `json:"cursor,omitempty"` // that it was read with; null is the first page
	Next   *string           `json:"next,omitempty"`   // of the page after it; null on the last
	Items  []ListedOperation `json:"items,omitempty"`
	Error  string            `json:"error,omitempty"`
}

// ListedOperation is one operation as the business system lists it. Values are
// as they were written there.
type ListedOperation struct {
	Key      string                     `json:"key"`
	At       string                     `json:"at"`
	Outcome  string                     `json:"outcome"`
	Fields   map[string]json.RawMessage `json:"fields,omitempty"` // by the JSON Pointer into the payload that each belongs to
	Currency string                     `json:"currency,omitempty"`
}

// Reconciliation is how far a reconciliation is.
type Reconciliation struct {
	ID     string    `json:"id"`
	Tool   string    `json:"tool"`
	State  string    `json:"state"` // waiting, listing, joining, comparing, done or given_up
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Cursor *string   `json:"cursor"` // of the page that it waits for; null for the first, and once all were read
	Pages  int64     `json:"pages"`
	Listed int64     `json:"listed"`
}
