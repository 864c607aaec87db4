package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
)

// Listed is a page of operations that an executor has read, or why it could not.
type Listed struct {
	PageID string
	Cursor string // that it was read with; "" for the first page
	Next   string // of the page after it; "" on the last
	Items  []contract.Listed
	Error  string
}

// Bounds of a page, and of all pages of a run.
const (
	maxPageItems = 500
	maxCursor    = 2048
	maxListed    = 5_000_000 // operations
	maxPages     = 50_000    // a list without an end has no operations to count, either

	firstRetry = 5 * time.Second
	mostRetry  = 5 * time.Minute
)

// oversized reports whether a run was given up because its list is too long. No
// page that was counted may have been the one too many.
func (r Run) oversized() bool {
	return r.State == RunGivenUp && (r.Listed > maxListed-maxPageItems || r.Pages >= maxPages)
}

// maxOffered is how many runs are offered at a time.
const maxOffered = 100

// Offered returns the oldest runs that wait for an executor now, and that this one
// wants; at most a hundred.
func (r *Reconciler) Offered(ctx context.Context, wanted func(Run) bool) (due []Run, err error) {
	var now time.Time
	err = action.Each(ctx, func(after Run) (runs []Run, err error) {
		if len(due) == maxOffered {
			return nil, nil
		}
		runs, now, err = r.runs.OpenRuns(ctx, after, openBatch)
		return runs, err
	}, func(run Run) error {
		if run.State.Listing() && !now.Before(run.OfferAt) && len(due) < maxOffered && wanted(run) {
			due = append(due, run)
		}
		return nil
	})
	return due, err
}

// MayList tells whether a program may list a run. A list is of a whole tool:
// who is limited to scopes reads none. The error is a *action.Refusal.
func MayList(client people.Client, run Run) error {
	subject := people.Subject{Tool: run.Tool}
	if !people.ClientViewer(client).Sees(subject) {
		return NoRun()
	}
	return people.ClientMay(client, people.ToExecute, subject)
}

// ListedWindow is what an executor asks the business system for: the run's
// window, wider by how far the two sides may lag behind each other, so that
// each operation near its ends finds its counterpart.
func (r *Reconciler) ListedWindow(ctx context.Context, run Run) (from, to time.Time, err error) {
	tool, err := r.catalogue.Version(ctx, run.Tool, run.ToolVersion)
	if err != nil {
		return from, to, err
	}
	lag := tool.Contract.Execution.Reconcile.Settle.Duration
	return run.From.Add(-lag), run.To.Add(lag), nil
}

// TakePage takes a page of a run from an executor. The same page again changes
// nothing: IdempotencyKeyInUse when it has other content. WrongState when the
// run does not wait for this page, because another executor was faster.
func (r *Reconciler) TakePage(ctx context.Context, client people.Client, runID string, p Listed) (Run, error) {
	run, now, err := r.runs.Run(ctx, runID)
	if err != nil {
		return Run{}, err
	}
	if err := MayList(client, run); err != nil {
		return Run{}, err
	}
	tool, err := r.catalogue.Version(ctx, run.Tool, run.ToolVersion)
	if err != nil {
		return Run{}, err
	}
	if err := p.check(tool.Contract.Execution.Reconcile); err != nil {
		return Run{}, err
	}
	content, err := json.Marshal([]any{client.ID, p})
	if err != nil {
		return Run{}, fmt.Errorf("encoding a page: %w", err)
	}
	page := StoredPage{RunID: runID, PageID: p.PageID, Hash: action.ContentHash(content), Cursor: p.Cursor, Next: p.Next, By: client.By(), Items: p.Items}
	if done, err := r.tookPage(ctx, page); done || err != nil {
		return run, err
	}
	if !run.State.Listing() || run.Cursor != p.Cursor {
		return Run{}, overtaken()
	}
	var added bool
	if stop := run.ends(p); p.Error != "" || stop != "" {
		added, err = r.runs.SaveRun(ctx, run.without(p, stop, now), nil, page)
	} else {
		added, err = r.staging.AddPage(ctx, page)
	}
	if err != nil {
		return Run{}, err
	}
	if !added { // somebody else has moved the run, or this very request has before its answer was lost
		done, err := r.tookPage(ctx, page)
		if err == nil && !done {
			err = overtaken()
		}
		if err != nil {
			return Run{}, err
		}
	}
	run, _, err = r.runs.Run(ctx, runID)
	return run, err
}

func overtaken() error {
	return action.Refuse(action.WrongState, "The run does not wait for this page: another executor has reported it, or the run is over.").Because("page")
}

// tookPage reports whether a run has this very page, from the same client.
func (r *Reconciler) tookPage(ctx context.Context, p StoredPage) (bool, error) {
	known, err := r.staging.Page(ctx, p.RunID, p.PageID)
	if err == nil && known != "" && known != p.Hash {
		err = action.Refuse(action.IdempotencyKeyInUse, "This page_id was another page's.").At("/page_id", "was sent with other content")
	}
	return known != "", err
}

func (p Listed) check(by *contract.Reconcile) error {
	if err := ids("/page_id", p.PageID); err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "The page is refused. The errors say where.")
	if len(p.Items) > maxPageItems {
		refusal.At("/items", fmt.Sprintf("must have at most %d operations", maxPageItems))
	}
	if len(p.Cursor) > maxCursor || len(p.Next) > maxCursor {
		refusal.At("/next", fmt.Sprintf("must have at most %d bytes", maxCursor))
	}
	if len(p.Error) > 1000 || p.Error != "" && (len(p.Items) > 0 || p.Next != "") {
		refusal.At("/error", "must have at most 1000 bytes, and nothing beside it")
	}
	for i, l := range p.Items {
		at := fmt.Sprintf("/items/%d", i)
		if _, err := l.Moment(); err != nil {
			refusal.At(at+"/at", "must be a time, as RFC 3339")
		}
		if l.Key == "" || len(l.Key) > 512 || len(l.Outcome) > 200 || len(l.Currency) > 64 {
			refusal.At(at, "must have a key of at most 512 bytes, an outcome of at most 200 and a currency of at most 64")
		}
		for field, value := range l.Fields {
			if _, known := by.Fields[field]; !known || len(value) > 4096 {
				refusal.At(at+"/fields", "must be the fields that the contract compares, each of at most 4096 bytes")
			}
		}
		if len(refusal.Errors) > 20 {
			break
		}
	}
	if len(refusal.Errors) > 0 {
		return refusal
	}
	return nil
}

// ends says why no page of the list can be counted any more, or "".
func (r Run) ends(p Listed) string {
	switch {
	case p.Error != "":
	case p.Next != "" && p.Next == p.Cursor:
		return "The list goes in a circle: a page names itself as the next."
	case r.Listed+int64(len(p.Items)) > maxListed:
		return fmt.Sprintf("The list has more than %d operations. Compare shorter windows.", maxListed)
	case r.Pages >= maxPages:
		return fmt.Sprintf("The list has more than %d pages. If it does not go in a circle, compare shorter windows.", maxPages)
	}
	return ""
}

// without is the run after a page that does not count: given up, or tried again
// later when the page could not be read.
func (r Run) without(p Listed, stop string, now time.Time) Run {
	if stop != "" {
		r.State, r.Problem = RunGivenUp, stop
		return r
	}
	r.Tries, r.Problem = r.Tries+1, p.Error
	r.OfferAt = now.Add(min(mostRetry, firstRetry<<min(r.Tries-1, 10)))
	return r
}
