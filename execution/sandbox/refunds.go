package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// refundRoutes is the refund desk: orders and refunds on them. It answers
// about a key as a domain that owns the fact does: SUCCEEDED, FAILED (refused or
// fenced), NOT_EXECUTED so far, or UNKNOWN while a request is being worked on.
func (s *Sandbox) refundRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return append([]route{
		{system: Refunds, method: get, path: "/health", handle: s.health},
		{system: Refunds, method: get, path: "/orders", handle: s.listOrders},
		{system: Refunds, method: get, path: "/orders/{order_id}", object: "order_id", handle: s.getOrder},
		{system: Refunds, method: get, path: "/orders/{order_id}/refunds", object: "order_id", handle: s.getRefund},
		{system: Refunds, method: get, path: "/keys/{key}/refund", handle: s.getRefund},
		{system: Refunds, method: post, path: "/orders/{order_id}/refunds", object: "order_id", write: true, handle: s.refundOrder},
	}, s.operationRoutes(Refunds, "refunds", words{undecided: "NOT_EXECUTED", working: "UNKNOWN"})...)
}

// order is an order as it is served. Its ETag is its version.
type order struct {
	ID           string        `json:"order_id"`
	CustomerID   string        `json:"customer_id"`
	CustomerName string        `json:"customer_name"`
	PlacedAt     time.Time     `json:"placed_at"`
	Paid         cents         `json:"paid"`
	Refunded     cents         `json:"refunded"`
	Refundable   cents         `json:"refundable"`
	Currency     string        `json:"currency"`
	Status       string        `json:"status"`
	Version      int64         `json:"version"`
	settlesAfter sql.NullInt64 // milliseconds from a 202 to the payment; null: paid at once
}

const orderColumns = `id, customer_id, customer_name, placed_at, paid_cents, refunded_cents, currency, status, version, settles_after_ms`

func (o *order) scan(r row) error {
	err := r.Scan(&o.ID, &o.CustomerID, &o.CustomerName, &o.PlacedAt, &o.Paid, &o.Refunded, &o.Currency, &o.Status, &o.Version, &o.settlesAfter)
	if o.Refundable = o.Paid - o.Refunded; o.Status == "closed" {
		o.Refundable = 0
	}
	return err
}

func findOrder(ctx context.Context, q querier, id, lock string) (order, bool, error) {
	var o order
	err := o.scan(q.QueryRowContext(ctx, `SELECT `+orderColumns+` FROM sandbox.orders WHERE id = $1 `+lock, id))
	if errors.Is(err, sql.ErrNoRows) {
		return order{}, false, nil
	}
	if err != nil {
		return order{}, false, fmt.Errorf("reading an order: %w", err)
	}
	return o, true, nil
}

func unknownOrder(id string) answer {
	return refuse(http.StatusNotFound, "order-not-found", fmt.Sprintf("There is no order %q.", id))
}

func (s *Sandbox) getOrder(ctx context.Context, c *call) (answer, error) {
	o, found, err := findOrder(ctx, s.db, c.object, "")
	if err != nil {
		return answer{}, err
	}
	if !found {
		return unknownOrder(c.object), nil
	}
	return say(o, o.Version)
}

func (s *Sandbox) listOrders(ctx context.Context, c *call) (answer, error) {
	return byID[order]{what: "orders", columns: orderColumns, table: "orders",
		scan: (*order).scan, id: func(o order) string { return o.ID }}.page(ctx, s.db, c)
}

// refund is one refund that was paid out.
type refund struct {
	ID     string    `json:"refund_id"`
	Amount cents     `json:"amount"`
	Reason string    `json:"reason"`
	Key    string    `json:"key"`
	At     time.Time `json:"at"`
}

// refundPosition is an order, what was refunded on it, and what one key did.
// Nothing done under the key is found false and amount 0, so that a question
// about it has an answer.
type refundPosition struct {
	OrderID     string   `json:"order_id"`
	CustomerID  string   `json:"customer_id"`
	OrderStatus string   `json:"order_status"`
	Paid        cents    `json:"paid"`
	Refunded    cents    `json:"refunded"`
	Refundable  cents    `json:"refundable"`
	Currency    string   `json:"currency"`
	Version     int64    `json:"version"`
	Key         *string  `json:"key"`
	Found       bool     `json:"found"`     // something was refunded under the key
	RefundID    *string  `json:"refund_id"` // the first refund under the key
	Amount      cents    `json:"amount"`    // refunded under the key, all of it
	Reason      *string  `json:"reason"`    // of that refund
	Refunds     []refund `json:"refunds"`   // on the order, oldest first, 100 at most
}

// getRefund reads by order, by key, or what a key did on an order.
func (s *Sandbox) getRefund(ctx context.Context, c *call) (answer, error) {
	id := c.object
	if id == "" {
		err := s.db.QueryRowContext(ctx, `SELECT order_id FROM sandbox.refunds WHERE key = $1 LIMIT 1`, c.key).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return refuse(http.StatusNotFound, "refund-not-found", "Nothing was refunded under this key."), nil
		}
		if err != nil {
			return answer{}, fmt.Errorf("finding the order of a key: %w", err)
		}
	}
	// One snapshot, so that an order and its refunds always agree.
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return answer{}, fmt.Errorf("starting to read a refund: %w", err)
	}
	defer tx.Rollback() // read only
	o, found, err := findOrder(ctx, tx, id, "")
	if err != nil {
		return answer{}, err
	}
	if !found {
		return unknownOrder(id), nil
	}
	refunds, err := refundsOf(ctx, tx, id)
	if err != nil {
		return answer{}, err
	}
	return say(position(o, refunds, c.key), o.Version)
}

func refundsOf(ctx context.Context, q querier, orderID string) ([]refund, error) {
	rows, err := q.QueryContext(ctx, `SELECT id, amount_cents, reason, key, at FROM sandbox.refunds WHERE order_id = $1 ORDER BY id LIMIT 100`, orderID)
	if err != nil {
		return nil, fmt.Errorf("listing refunds: %w", err)
	}
	defer rows.Close()
	refunds := []refund{}
	for rows.Next() {
		var r refund
		var id int64
		if err := rows.Scan(&id, &r.Amount, &r.Reason, &r.Key, &r.At); err != nil {
			return nil, fmt.Errorf("listing refunds: %w", err)
		}
		r.ID = refundID(id)
		refunds = append(refunds, r)
	}
	return refunds, rows.Err()
}

func refundID(id int64) string { return "RF-" + strconv.FormatInt(id, 10) }

func position(o order, refunds []refund, key string) refundPosition {
	p := refundPosition{OrderID: o.ID, CustomerID: o.CustomerID, OrderStatus: o.Status, Paid: o.Paid, Refunded: o.Refunded,
		Refundable: o.Refundable, Currency: o.Currency, Version: o.Version, Refunds: refunds}
	if key == "" {
		return p
	}
	p.Key = &key
	for i, r := range refunds {
		if r.Key != key {
			continue
		}
		if !p.Found {
			p.Found, p.RefundID, p.Reason = true, &refunds[i].ID, &refunds[i].Reason
		}
		p.Amount += r.Amount
	}
	return p
}

// refundRequest is a refund whose form is right.
type refundRequest struct {
	OrderID string
	Amount  cents
	Reason  string
	Version int64 // 0: whatever version
}

func readRefundRequest(c *call) (refundRequest, *answer) {
	var body struct {
		OrderID string          `json:"order_id"`
		Amount  json.RawMessage `json:"amount"`
		Reason  string          `json:"reason"`
	}
	if refusal := c.required(); refusal != nil {
		return refundRequest{}, refusal
	}
	version, refusal := c.ifMatch()
	if refusal != nil {
		return refundRequest{}, refusal
	}
	bad := func(detail string) (refundRequest, *answer) {
		a := refuse(http.StatusBadRequest, "malformed", detail)
		return refundRequest{}, &a
	}
	if err := strictJSON(c.body, &body); err != nil {
		return bad("The body is {order_id, amount, reason}: " + err.Error())
	}
	if body.OrderID != c.object {
		return bad("order_id differs from the one in the path.")
	}
	amount, err := parseCents(body.Amount)
	if err != nil {
		return bad("amount: " + err.Error())
	}
	if !readable(body.Reason) {
		return bad("reason is 1 to 500 bytes of text.")
	}
	return refundRequest{body.OrderID, amount, body.Reason, version}, nil
}

// refundOrder pays an amount back, never more than was paid.
func (s *Sandbox) refundOrder(ctx context.Context, c *call) (answer, error) {
	req, refusal := readRefundRequest(c)
	if refusal != nil {
		return *refusal, nil
	}
	bound := fingerprint("refund_order", req.OrderID, int64(req.Amount), req.Reason, c.actor)
	return s.once(ctx, c, "refund_order", bound, func(ctx context.Context, tx *sql.Tx) (answer, error) {
		return applyRefund(ctx, tx, c, req)
	})
}

func applyRefund(ctx context.Context, tx *sql.Tx, c *call, req refundRequest) (answer, error) {
	o, refusal, err := refundable(ctx, tx, c, req)
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	if _, _, later := c.later(o); later {
		return acceptRefund(ctx, tx, c, o, req)
	}
	return payRefund(ctx, tx, c, o, req)
}

// refundable is the order of a refund, locked, or why it is not paid.
func refundable(ctx context.Context, tx *sql.Tx, c *call, req refundRequest) (order, *answer, error) {
	o, found, err := findOrder(ctx, tx, req.OrderID, "FOR UPDATE")
	var refusal answer
	switch {
	case err != nil:
		return order{}, nil, err
	case !found:
		refusal = unknownOrder(req.OrderID)
	case req.Version != 0 && req.Version != o.Version && !c.unkeyed:
		refusal = moved("order", o.Version)
	case o.Status == "closed":
		refusal = refuse(http.StatusUnprocessableEntity, "order-closed", "A closed order is not refunded here any more.")
	case o.Status == "refunded":
		refusal = refuse(http.StatusUnprocessableEntity, "already-refunded", "All that was paid has been refunded.")
	case req.Amount > o.Refundable:
		refusal = refuse(http.StatusUnprocessableEntity, "over-refund", "The amount is more than what is left to refund.")
	default:
		return o, nil, nil
	}
	return order{}, &refusal, nil
}

// payRefund pays a refund out.
func payRefund(ctx context.Context, tx *sql.Tx, c *call, o order, req refundRequest) (answer, error) {
	err := o.scan(tx.QueryRowContext(ctx, `
		UPDATE sandbox.orders SET refunded_cents = refunded_cents + $2, version = version + 1,
		       status = CASE WHEN refunded_cents + $2 = paid_cents THEN 'refunded' ELSE 'partly_refunded' END
		 WHERE id = $1 RETURNING `+orderColumns, o.ID, int64(req.Amount)))
	if err != nil {
		return answer{}, fmt.Errorf("booking a refund: %w", err)
	}
	var id int64
	var at time.Time
	err = tx.QueryRowContext(ctx, `
		INSERT INTO sandbox.refunds (key, order_id, amount_cents, reason, actor)
		VALUES ($1, $2, $3, $4, nullif($5, '')) RETURNING id, at`,
		c.key, o.ID, int64(req.Amount), req.Reason, c.actor).Scan(&id, &at)
	if err != nil {
		return answer{}, fmt.Errorf("writing a refund: %w", err)
	}
	return say(struct {
		Status     string    `json:"status"`
		Operation  string    `json:"operation_id"`
		RefundID   string    `json:"refund_id"`
		OrderID    string    `json:"order_id"`
		Amount     cents     `json:"amount"`
		Currency   string    `json:"currency"`
		Refunded   cents     `json:"refunded"`
		Version    int64     `json:"version"`
		RefundedAt time.Time `json:"refunded_at"`
	}{succeeded, c.key, refundID(id), o.ID, req.Amount, o.Currency, o.Refunded, o.Version, at}, o.Version)
}
