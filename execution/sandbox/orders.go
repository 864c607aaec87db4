package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// How an order's cancelling, or the restoring of its coupon, ends: some orders
// in every real shop do not do what they answer.
const (
	properly   = "properly"
	inWord     = "in_word"     // answers that it was done, and writes nothing anywhere
	couponOnly = "coupon_only" // answers that it was done, voids the coupon and leaves the order as it was
)

// shopOrderRoutes is the order desk: orders, which may carry a coupon, and
// their cancelling. What it says of a key that it does not know proves nothing.
func (s *Sandbox) shopOrderRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return append([]route{
		{system: Orders, method: get, path: "/health", handle: s.health},
		{system: Orders, method: get, path: "/orders", handle: s.listShopOrders},
		{system: Orders, method: get, path: "/orders/{order_id}", object: "order_id", handle: s.getShopOrder},
		{system: Orders, method: get, path: "/orders/{order_id}/coupon", object: "order_id", handle: s.getCoupon},
		{system: Orders, method: post, path: "/orders/{order_id}/cancel", object: "order_id", write: true, handle: s.cancelOrder},
		{system: Orders, method: post, path: "/orders/{order_id}/coupon/restore", object: "order_id", write: true, handle: s.restoreCoupon},
	}, s.operationRoutes(Orders, "order_changes", words{undecided: "NOT_FOUND", working: "IN_PROGRESS"})...)
}

// shopOrder is an order as it is served. Its ETag is its version, which also
// counts what happens to its coupon.
type shopOrder struct {
	ID              string     `json:"order_id"`
	Status          string     `json:"status"` // paid, cancelled, shipped, settled
	CancelledAt     *time.Time `json:"cancelled_at"`
	CancelReason    *string    `json:"cancel_reason"`
	CustomerID      string     `json:"customer_id"`
	CustomerName    string     `json:"customer_name"`
	PlacedAt        time.Time  `json:"placed_at"`
	Total           cents      `json:"total"`
	Currency        string     `json:"currency"`
	CouponCode      *string    `json:"coupon_code"`
	CouponStatus    *string    `json:"coupon_status"` // valid, void
	couponValue     cents
	couponChangedAt *time.Time
	Version         int64     `json:"version"`
	UpdatedAt       time.Time `json:"updated_at"`
	cancels         string
	restores        string
}

const shopOrderColumns = `id, status, cancelled_at, cancel_reason, customer_id, customer_name, placed_at, total_cents, currency,
	coupon_code, coupon_status, coupon_cents, coupon_changed_at, version, updated_at, cancels, restores`

func (o *shopOrder) scan(r row) error {
	return r.Scan(&o.ID, &o.Status, &o.CancelledAt, &o.CancelReason, &o.CustomerID, &o.CustomerName, &o.PlacedAt, &o.Total, &o.Currency,
		&o.CouponCode, &o.CouponStatus, &o.couponValue, &o.couponChangedAt, &o.Version, &o.UpdatedAt, &o.cancels, &o.restores)
}

func findShopOrder(ctx context.Context, q querier, id, lock string) (shopOrder, bool, error) {
	var o shopOrder
	err := o.scan(q.QueryRowContext(ctx, `SELECT `+shopOrderColumns+` FROM sandbox.shop_orders WHERE id = $1 `+lock, id))
	if errors.Is(err, sql.ErrNoRows) {
		return shopOrder{}, false, nil
	}
	if err != nil {
		return shopOrder{}, false, fmt.Errorf("reading an order: %w", err)
	}
	return o, true, nil
}

func (s *Sandbox) getShopOrder(ctx context.Context, c *call) (answer, error) {
	o, found, err := findShopOrder(ctx, s.db, c.object, "")
	if err != nil {
		return answer{}, err
	}
	if !found {
		return unknownOrder(c.object), nil
	}
	return say(o, o.Version)
}

func (s *Sandbox) listShopOrders(ctx context.Context, c *call) (answer, error) {
	return byID[shopOrder]{what: "orders", columns: shopOrderColumns, table: "shop_orders",
		scan: (*shopOrder).scan, id: func(o shopOrder) string { return o.ID }}.page(ctx, s.db, c)
}

// wanted is the order a write is about, locked, or why the write is refused.
func wanted(ctx context.Context, tx *sql.Tx, c *call, id string, version int64) (shopOrder, *answer, error) {
	o, found, err := findShopOrder(ctx, tx, id, "FOR UPDATE")
	var refusal answer
	switch {
	case err != nil:
		return shopOrder{}, nil, err
	case !found:
		refusal = unknownOrder(id)
	case version != 0 && version != o.Version && !c.unkeyed:
		refusal = moved("order", o.Version)
	default:
		return o, nil, nil
	}
	return shopOrder{}, &refusal, nil
}

// noteChange writes what really happened to an order.
func noteChange(ctx context.Context, tx *sql.Tx, c *call, o shopOrder, change string) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO sandbox.order_changes (key, order_id, change, version, actor)
		VALUES ($1, $2, $3, $4, nullif($5, ''))`, c.key, o.ID, change, o.Version, c.actor)
	if err != nil {
		return fmt.Errorf("writing the history of an order: %w", err)
	}
	return nil
}
