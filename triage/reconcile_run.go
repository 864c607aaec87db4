package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/people"
)

// How runs go on.
const (
	maxOpenRuns  = 100
	compareBatch = 500
	joinBatchOf  = 2000
	maxListed    = 5_000_000        // operations of one run
	giveUpAfter  = 30 * time.Minute // without a page
	firstRetry   = 5 * time.Second
	mostRetry    = 5 * time.Minute
)

// Sweep asks for the runs that contracts want done by themselves and that are
// due. A window that was given up is in the next one.
func (r *Reconciler) Sweep(ctx context.Context) error {
	var failed []error
	for after := ""; ; {
		tools, err := r.staging.Tools(ctx, after, 200)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		for _, v := range tools {
			after = v.Name
			if !v.Active {
				continue
			}
			if err := r.sweepTool(ctx, v); err != nil {
				failed = append(failed, fmt.Errorf("starting to reconcile %s: %w", v.Name, err))
			}
		}
		if len(tools) < 200 {
			return errors.Join(failed...)
		}
	}
}

func (r *Reconciler) sweepTool(ctx context.Context, v rule.ToolVersion) error {
	tool, err := r.catalogue.Of(v)
	if err != nil {
		return err
	}
	by := tool.Contract.Execution.Reconcile
	if by == nil || by.Every.Duration <= 0 {
		return nil
	}
	latest, done, err := r.staging.Sweeps(ctx, v.Name)
	if err != nil {
		return err
	}
	to := v.Now.UTC().Add(-by.Settle.Duration).Truncate(time.Second)
	if latest.ID != "" && (latest.State.Open() || to.Sub(latest.To) < by.Every.Duration) {
		return nil
	}
	from := to.Add(-by.Window.Duration)
	if done.ID != "" {
		from = earlier(from, done.To)
	}
	if limit := to.Add(-maxWindow); from.Before(limit) {
		from = limit
	}
	_, err = r.runs.AddRun(ctx, Run{ID: action.NewID("rec"), Op: fmt.Sprintf("sweep:%s:%d", v.Name, to.Unix()), Tool: v.Name, ToolVersion: v.Version,
		From: from, To: to, Sweep: true, By: action.By{Kind: action.BySystem, ID: "sweep", Name: "Scheduled"}})
	return err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Listed is a page of operations that an executor has read, or why it could not.
type Listed struct {
	PageID string
	Cursor string // that it was read with; "" for the first page
	Next   string // of the page after it; "" on the last
	Items  []contract.Listed
	Error  string
}

// Bounds of a page.
const (
	maxPageItems = 500
	maxCursor    = 2048
)

// Offered returns the runs that wait for an executor now, oldest first.
func (r *Reconciler) Offered(ctx context.Context) ([]Run, time.Time, error) {
	runs, now, err := r.runs.OpenRuns(ctx, maxOpenRuns)
	if err != nil {
		return nil, now, err
	}
	var due []Run
	for _, run := range runs {
		if run.State.Listing() && !now.Before(run.OfferAt) {
			due = append(due, run)
		}
	}
	return due, now, nil
}

// MayList tells whether a program may list a run. A list is of a whole tool:
// who is limited to scopes reads none. The error is a *action.Refusal.
func MayList(client people.Client, run Run) error {
	subject := people.Subject{Tool: run.Tool}
	if !people.ClientViewer(client).Sees(subject) {
		return action.Refuse(action.NotFound, "There is no such reconciliation, or you may not see it.").Because("reconciliation")
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
	content, err := json.Marshal(p)
	if err != nil {
		return Run{}, fmt.Errorf("encoding a page: %w", err)
	}
	hash := action.ContentHash(content)
	if done, err := r.tookPage(ctx, runID, p.PageID, hash); done || err != nil {
		return run, err
	}
	if !run.State.Listing() || run.Cursor != p.Cursor {
		return Run{}, overtaken()
	}
	switch {
	case p.Error != "":
		return r.failedPage(ctx, run, now, p.Error)
	case p.Next != "" && p.Next == p.Cursor:
		return r.giveUp(ctx, run, "The list goes in a circle: a page names itself as the next.")
	case run.Listed+int64(len(p.Items)) > maxListed:
		return r.giveUp(ctx, run, fmt.Sprintf("The list has more than %d operations. Compare shorter windows.", maxListed))
	}
	added, err := r.staging.AddPage(ctx, StoredPage{RunID: runID, PageID: p.PageID, Hash: hash, Cursor: p.Cursor, Next: p.Next, By: client.By(), Items: p.Items})
	if err != nil {
		return Run{}, err
	}
	if !added { // somebody else has moved the run, or this very request has before its answer was lost
		done, err := r.tookPage(ctx, runID, p.PageID, hash)
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

// tookPage reports whether a run has this very page.
func (r *Reconciler) tookPage(ctx context.Context, runID, pageID, hash string) (bool, error) {
	known, err := r.staging.Page(ctx, runID, pageID)
	if err == nil && known != "" && known != hash {
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

// failedPage notes that a page could not be read, and has it tried again later.
func (r *Reconciler) failedPage(ctx context.Context, run Run, now time.Time, why string) (Run, error) {
	run.Tries, run.Problem = run.Tries+1, why
	run.OfferAt = now.Add(min(mostRetry, firstRetry<<min(run.Tries-1, 10)))
	return r.save(ctx, run, nil)
}

func (r *Reconciler) giveUp(ctx context.Context, run Run, why string) (Run, error) {
	run.State, run.Problem = RunGivenUp, why
	return r.save(ctx, run, nil)
}

func (r *Reconciler) save(ctx context.Context, run Run, found []Difference) (Run, error) {
	saved, err := r.runs.SaveRun(ctx, run, found)
	if err == nil && !saved {
		err = overtaken()
	}
	run.Version++
	return run, err
}

// Step moves every run on that does not wait for an executor, and gives those
// up that waited too long.
func (r *Reconciler) Step(ctx context.Context) error {
	runs, now, err := r.runs.OpenRuns(ctx, maxOpenRuns)
	if err != nil {
		return err
	}
	var failed []error
	for _, run := range runs {
		err := r.stepRun(ctx, run, now)
		if err == nil || action.IsCode(err, action.WrongState) {
			continue
		}
		failed = append(failed, fmt.Errorf("reconciling %s, %s: %w", run.Tool, run.ID, err))
		if !run.State.Listing() && !now.Before(run.ProgressAt.Add(giveUpAfter)) {
			if _, err := r.giveUp(ctx, run, "It could not be compared: "+action.AsRefusal(err).Detail); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

func (r *Reconciler) stepRun(ctx context.Context, run Run, now time.Time) (err error) {
	for ctx.Err() == nil {
		switch run.State {
		case RunJoining:
			if err := r.staging.JoinOurs(ctx, run, joinBatchOf); err != nil {
				return err
			}
			if run, _, err = r.runs.Run(ctx, run.ID); err != nil {
				return err
			}
		case RunComparing:
			if run, err = r.compare(ctx, run); err != nil {
				return err
			}
		case RunWaiting, RunListing:
			if now.Before(run.ProgressAt.Add(giveUpAfter)) {
				return nil
			}
			why := "No executor has taken it up."
			if run.Problem != "" {
				why = run.Problem
			} else if run.Pages > 0 {
				why = "The executor that listed it is gone, and no other has gone on."
			}
			_, err := r.giveUp(ctx, run, why)
			return err
		default:
			return nil
		}
	}
	return ctx.Err()
}

// compare compares the next operations of a run. What speaks against an action
// is told to it first: done again after a crash, that changes nothing.
func (r *Reconciler) compare(ctx context.Context, run Run) (Run, error) {
	tool, err := r.catalogue.Version(ctx, run.Tool, run.ToolVersion)
	if err != nil {
		return run, err
	}
	s := scales{run: run, tool: tool.Contract, by: tool.Contract.Execution.Reconcile}
	rows, err := r.staging.Joined(ctx, run, compareBatch)
	if err != nil {
		return run, err
	}
	run.Totals.Forms = maps.Clone(run.Totals.Forms)
	var found []Difference
	for _, j := range rows {
		run.Compared = j.Key
		w := s.weigh(j)
		d := Difference{RunID: run.ID, Tool: run.Tool, Key: j.Key, Scope: j.Scope, ActionID: j.ActionID, Ours: j.State, Theirs: j.Theirs}
		if w.says != "" {
			if err := r.tell(ctx, s, j, &w, &d); err != nil {
				return run, fmt.Errorf("telling %s: %w", j.ActionID, err)
			}
		}
		run.Totals.count(w)
		if w.class != ClassMatched && w.class != ClassOthers && w.class != "" {
			d.Class, d.Why, d.Fields, d.Digest = w.class, w.why, w.fields, w.digest(j)
			found = append(found, d)
		}
	}
	if len(rows) < compareBatch {
		run.State = RunDone
	}
	return r.save(ctx, run, found)
}

// digest names a difference by what it is about.
func (w weighed) digest(j Joined) string {
	about, _ := json.Marshal([]any{w.class, w.why, j.State, j.Theirs}) // texts and checked JSON: cannot fail
	return action.ContentHash(about)
}

// FromList begins the ids of evidence that was read in a business system's list.
const FromList = "list:"

// errMoved ends telling an action what it does not need to know any more.
var errMoved = errors.New("the action moved on")

// tell adds what a list says of an operation to its action, as evidence. It is
// named by what it says: the same again changes nothing.
func (r *Reconciler) tell(ctx context.Context, s scales, j Joined, w *weighed, d *Difference) error {
	page := s.by.Pageful()
	if j.Theirs != nil {
		page = s.by.Pageful(*j.Theirs)
	}
	digest := strings.TrimPrefix(action.ContentHash([]byte(w.says+"\n"+string(page))), "sha256:")
	f := action.Found{ID: FromList + digest[:32], Source: s.by.List, Outcome: w.says, Proves: w.proves}
	snap, err := action.Change(ctx, r.ledger, j.ActionID, func(snap action.Snapshot) (action.Command, error) {
		a := snap.Action
		switch {
		case a.ExecutionKey != j.Key, a.State.In(action.Draft, action.Proposed):
			return nil, errMoved
		case w.says == action.FoundNotExecuted && !a.State.In(action.Accepted, action.Applied):
			return nil, errMoved // that a list lacks it settles nothing
		}
		undone, err := undoneBy(ctx, r.ledger, a)
		if err != nil {
			return nil, err
		}
		return action.AddEvidence{UndoneBy: undone, By: action.By{Kind: action.BySystem, ID: s.run.ID, Name: "Reconciliation"},
			CaseID: action.NewID("cas"), Snapshot: page, Found: f}, nil
	})
	if errors.Is(err, errMoved) {
		if snap, err = r.ledger.Snapshot(ctx, j.ActionID); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if c := snap.Action.Case; c != nil {
		d.CaseID, d.CaseOpen = c.ID, c.Open
	}
	return nil
}
