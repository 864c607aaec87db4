package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// The states of a key between a 202 and its end.
const (
	accepted = "ACCEPTED"
	queued   = "QUEUED"
)

// Delivery says how a request goes on that was answered with 202. All of it
// belongs to the fault Accept; the refund desk and the service desk accept.
type Delivery struct {
	Outcome    string `json:"outcome,omitempty"`     // OutcomePaid when empty
	Queued     bool   `json:"queued,omitempty"`      // after the delay it is QUEUED, and done after the delay again; each has a callback
	Early      bool   `json:"early,omitempty"`       // done at once, and the 202 waits up to 15 s for the callback to be delivered
	CallbackMS int    `json:"callback_ms,omitempty"` // milliseconds from the end to the callback, up to 3600000
	Deliveries int    `json:"deliveries,omitempty"`  // how often the callback is delivered, up to 20; 0: once
	Silent     bool   `json:"silent,omitempty"`      // no callback
	Forged     string `json:"forged,omitempty"`      // a false callback first, that says SUCCEEDED: wrong, stale or unsigned
}

// What becomes of an accepted request.
const (
	OutcomePaid    = "paid"    // or done, whatever it is
	OutcomeRefused = "refused" // the bank, or the desk, refuses it: FAILED
	OutcomeInWord  = "in_word" // recorded and called back as SUCCEEDED, and nothing is paid or done
)

const (
	maxCallbackMS = 3_600_000
	maxDeliveries = 20
	earlyWait     = 15 * time.Second
)

func (d Delivery) check(kind Kind) error {
	switch {
	case d != Delivery{} && kind != Accept:
		return fmt.Errorf("outcome, queued, early, callback_ms, deliveries, silent and forged belong to the fault %s", Accept)
	case !slices.Contains([]string{"", OutcomePaid, OutcomeRefused, OutcomeInWord}, d.Outcome):
		return errors.New("outcome is paid, refused or in_word")
	case !slices.Contains([]string{"", forgedWrong, forgedStale, forgedUnsigned}, d.Forged):
		return errors.New("forged is wrong, stale or unsigned")
	case d.CallbackMS < 0 || d.CallbackMS > maxCallbackMS:
		return fmt.Errorf("callback_ms is 0 to %d", maxCallbackMS)
	case d.Deliveries < 0 || d.Deliveries > maxDeliveries:
		return fmt.Errorf("deliveries is 0 to %d", maxDeliveries)
	}
	return nil
}

// later tells whether a refund is accepted now and paid later, and after how
// long: because a fault says so, or because the order's bank takes its time.
func (c *call) later(o order) (time.Duration, Delivery, bool) {
	switch {
	case c.fault.Kind == Accept && c.fault.Early:
		return 0, c.fault.Delivery, true
	case c.fault.Kind == Accept:
		return c.fault.delay(), c.fault.Delivery, true
	case o.settlesAfter.Valid:
		return time.Duration(o.settlesAfter.Int64) * time.Millisecond, Delivery{}, true
	}
	return 0, Delivery{}, false
}

// acceptRefund promises a refund that could be paid now.
func acceptRefund(ctx context.Context, tx *sql.Tx, c *call, o order, req refundRequest) (answer, error) {
	delay, how, _ := c.later(o)
	delivery, err := json.Marshal(how)
	if err != nil {
		return answer{}, fmt.Errorf("writing how a refund goes on: %w", err)
	}
	var at time.Time
	err = tx.QueryRowContext(ctx, `
		INSERT INTO sandbox.accepted_refunds (key, order_id, amount_cents, reason, actor, delivery, delay_ms, trace, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7::integer, $8, clock_timestamp() + $7::integer * interval '1 millisecond') RETURNING at`,
		c.key, o.ID, int64(req.Amount), req.Reason, c.actor, string(delivery), delay.Milliseconds(), c.trace).Scan(&at)
	if err != nil {
		return answer{}, fmt.Errorf("accepting a refund: %w", err)
	}
	a, err := say(struct {
		Status     string    `json:"status"`
		Operation  string    `json:"operation_id"`
		OrderID    string    `json:"order_id"`
		Amount     cents     `json:"amount"`
		Currency   string    `json:"currency"`
		AcceptedAt time.Time `json:"accepted_at"`
	}{accepted, c.key, o.ID, req.Amount, o.Currency, at}, 0)
	a.status = http.StatusAccepted
	return a, err
}

// promised is a refund that was accepted and is still to be paid.
type promised struct {
	id        int64
	key       string
	req       refundRequest
	actor     string
	how       Delivery
	wasQueued bool
	currency  string
	trace     string
}

// settleNext takes the next refund that is due one step on. found: there was one.
func (s *Sandbox) settleNext(ctx context.Context) (found bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("starting to settle: %w", err)
	}
	defer tx.Rollback() // a no-op after the commit
	var p promised
	var how []byte
	err = tx.QueryRowContext(ctx, `
		SELECT a.id, a.key, a.order_id, a.amount_cents, a.reason, a.actor, a.delivery, a.queued, o.currency, a.trace
		  FROM sandbox.accepted_refunds a JOIN sandbox.orders o ON o.id = a.order_id
		 WHERE a.due_at <= clock_timestamp() ORDER BY a.due_at, a.id LIMIT 1 FOR UPDATE OF a SKIP LOCKED`).
		Scan(&p.id, &p.key, &p.req.OrderID, &p.req.Amount, &p.req.Reason, &p.actor, &how, &p.wasQueued, &p.currency, &p.trace)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding a refund to settle: %w", err)
	}
	if err := json.Unmarshal(how, &p.how); err != nil {
		return false, fmt.Errorf("reading how a refund goes on: %w", err)
	}
	if p.how.Queued && !p.wasQueued {
		err = p.queue(ctx, tx)
	} else {
		err = p.settle(ctx, tx)
	}
	if err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("committing a settlement: %w", err)
	}
	return true, nil
}

// news is what is told about the refund.
func (p promised) news() news {
	return news{system: Refunds, key: p.key, about: "refund", how: p.how, trace: p.trace,
		asked: map[string]any{"order_id": p.req.OrderID, "amount": p.req.Amount, "currency": p.currency}}
}

// queue says that the refund is waiting its turn.
func (p promised) queue(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
		WITH operation AS (
			UPDATE sandbox.operations SET status = 'QUEUED' WHERE system = 'refunds' AND key = $2 AND status = 'ACCEPTED'
		)
		UPDATE sandbox.accepted_refunds SET queued = true, due_at = clock_timestamp() + delay_ms * interval '1 millisecond' WHERE id = $1`,
		p.id, p.key)
	if err != nil {
		return fmt.Errorf("queueing a refund: %w", err)
	}
	return p.news().callBack(ctx, tx, queued, answer{})
}

// settle pays the refund, or not, and says so under its key and by callback.
func (p promised) settle(ctx context.Context, tx *sql.Tx) error {
	a, err := p.pay(ctx, tx)
	if err != nil {
		return err
	}
	status := outcomeOf(a)
	_, err = tx.ExecContext(ctx, `
		WITH operation AS (
			UPDATE sandbox.operations SET status = $3, http_status = $4, etag = $5, body = $6
			 WHERE system = 'refunds' AND key = $2 AND status IN ('ACCEPTED', 'QUEUED')
		)
		DELETE FROM sandbox.accepted_refunds WHERE id = $1`, p.id, p.key, status, a.status, a.etag, string(a.body))
	if err != nil {
		return fmt.Errorf("settling a refund: %w", err)
	}
	return p.news().callBack(ctx, tx, status, a)
}

func (p promised) pay(ctx context.Context, tx *sql.Tx) (answer, error) {
	c := &call{key: p.key, actor: p.actor}
	act := func(ctx context.Context, tx *sql.Tx) (answer, error) {
		o, refusal, err := refundable(ctx, tx, c, p.req)
		if err != nil || refusal != nil {
			return orRefuse(refusal), err
		}
		return payRefund(ctx, tx, c, o, p.req)
	}
	switch p.how.Outcome {
	case OutcomeRefused:
		return refuse(http.StatusUnprocessableEntity, "bank-refused", "The bank refused the payment."), nil
	case OutcomeInWord:
		return takenBack(ctx, tx, act)
	}
	return act(ctx, tx)
}

// awaitCallback waits until the callbacks about a key are out of the house.
func (s *Sandbox) awaitCallback(ctx context.Context, system, key string) {
	ctx, cancel := context.WithTimeout(ctx, earlyWait)
	defer cancel()
	for open := true; open; {
		err := s.db.QueryRowContext(ctx, `
			SELECT EXISTS (SELECT 1 FROM sandbox.operations WHERE system = $1 AND key = $2 AND status IN ('ACCEPTED', 'QUEUED'))
			    OR EXISTS (SELECT 1 FROM sandbox.callbacks WHERE system = $1 AND key = $2 AND remaining > 0)`, system, key).Scan(&open)
		if err != nil || open && wait(ctx, workPause) != nil {
			return
		}
	}
}
