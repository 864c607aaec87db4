package execution

import (
	"context"
	"errors"
	"fmt"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

// list reads a window of operations page by page, one page in hand at a time,
// and reports each. When it is interrupted, whoever takes the work up next goes
// on where it ended.
func (e *Executor) list(ctx, stopping context.Context, c *contract.Contract, w api.Work) error {
	by := c.Execution.Reconcile
	if by == nil || w.List == nil {
		return fmt.Errorf("%w: its contract does not say how operations are listed", errUnserved)
	}
	known, err := e.contracts.now(ctx, by.List)
	if err != nil {
		return err
	}
	system, served := e.config.serving(by.List)
	if !served || known.contract.HTTP == nil || known.contract.Mode != contract.Read {
		return fmt.Errorf("%w: nothing here serves %s", errUnserved, by.List)
	}
	for cursor := w.List.Cursor; ; {
		if stopping.Err() != nil {
			return errStopping
		}
		page := e.readPage(ctx, by, known.contract, system, *w.List, cursor)
		if _, err := e.client.ReportPage(ctx, w.List.RunID, page); HasCode(err, action.WrongState, action.IdempotencyKeyInUse) {
			return errOvertaken
		} else if err != nil {
			return fmt.Errorf("reporting a page: %w", err)
		}
		switch {
		case page.Error != "":
			return errors.New("listing with " + by.List + ": " + page.Error)
		case page.Next == nil:
			return nil
		}
		cursor = page.Next
	}
}

// readPage reads one page and cuts it down to what is compared.
func (e *Executor) readPage(ctx context.Context, by *contract.Reconcile, list *contract.Contract, system System, window api.ListWork, cursor *string) api.ListedPage {
	page := api.ListedPage{PageID: action.NewSecret(16), Cursor: cursor}
	start := ""
	if cursor != nil {
		start = *cursor
	}
	body, failure := e.fetchPage(ctx, by, list, system, window, start)
	if failure != "" {
		page.Error = failure
		return page
	}
	items, next, err := by.ReadPage(body)
	if err != nil {
		page.Error = err.Error()
		return page
	}
	for _, l := range items {
		page.Items = append(page.Items, api.ListedOperation{Key: l.Key, At: l.At, Outcome: l.Outcome, Fields: l.Fields, Currency: l.Currency})
	}
	if next != "" {
		page.Next = &next
	}
	return page
}

// fetchPage sends the query for one page, with the credentials for reading.
func (e *Executor) fetchPage(ctx context.Context, by *contract.Reconcile, list *contract.Contract, system System, window api.ListWork, cursor string) (body []byte, failure string) {
	input, err := by.Query(list, window.From, window.To, cursor)
	if err != nil {
		return nil, "its input cannot be made from the window"
	}
	wire, err := list.Request(system.BaseURL, input, "", "")
	if err != nil {
		return nil, "its request cannot be made from the window"
	}
	req, err := wireRequest(wire, system.ReadToken)
	if err != nil {
		return nil, "its request cannot be made"
	}
	got := e.readOnce(ctx, system, req, list.Execution.Timeout.Duration)
	switch outcome := list.Classify(got.answer(1)); {
	case errors.Is(got.err, errAway):
		return nil, "its business system does not answer; it is left alone for a while"
	case outcome.Result != action.Success:
		return nil, outcome.Reason
	}
	return got.body, ""
}
