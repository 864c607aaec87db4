package sandbox

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"time"
)

// orderRequest is a change of an order whose form is right.
type orderRequest struct {
	OrderID string
	Coupon  string // only for what is about a coupon
	Reason  string
	Version int64 // 0: whatever version
}

// readOrderRequest reads the body of a write on an order. coupon says that it
// names a coupon and no reason; otherwise it is the other way round.
func readOrderRequest(c *call, coupon bool) (orderRequest, *answer) {
	if refusal := c.required(); refusal != nil {
		return orderRequest{}, refusal
	}
	version, refusal := c.ifMatch()
	if refusal != nil {
		return orderRequest{}, refusal
	}
	var body struct {
		OrderID string  `json:"order_id"`
		Coupon  *string `json:"coupon_code"`
		Reason  *string `json:"reason"`
	}
	bad := func(detail string) (orderRequest, *answer) {
		a := refuse(http.StatusBadRequest, "malformed", detail)
		return orderRequest{}, &a
	}
	if err := strictJSON(c.body, &body); err != nil {
		return bad("The body could not be read: " + err.Error())
	}
	req := orderRequest{OrderID: body.OrderID, Version: version}
	switch {
	case body.OrderID != c.object:
		return bad("order_id differs from the one in the path.")
	case coupon && (body.Coupon == nil || body.Reason != nil || !clean(*body.Coupon)):
		return bad("The body is {order_id, coupon_code}.")
	case coupon:
		req.Coupon = *body.Coupon
	case body.Reason == nil || body.Coupon != nil:
		return bad("The body is {order_id, reason}.")
	case !readable(*body.Reason):
		return bad("reason is 1 to 500 bytes of text.")
	default:
		req.Reason = *body.Reason
	}
	return req, nil
}

// cancelOrder cancels an order that is paid and was not sent yet. The coupon
// that it was bought with is void from then on.
func (s *Sandbox) cancelOrder(ctx context.Context, c *call) (answer, error) {
	req, refusal := readOrderRequest(c, false)
	if refusal != nil {
		return *refusal, nil
	}
	bound := fingerprint("cancel_order", req.OrderID, req.Reason, c.actor)
	return s.once(ctx, c, "cancel_order", bound, func(ctx context.Context, tx *sql.Tx) (answer, error) {
		return applyCancel(ctx, tx, c, req)
	})
}

func applyCancel(ctx context.Context, tx *sql.Tx, c *call, req orderRequest) (answer, error) {
	o, refusal, err := wanted(ctx, tx, c, req.OrderID, req.Version)
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	if o.Status != "paid" {
		return refuse(http.StatusUnprocessableEntity, "order-"+o.Status, fmt.Sprintf("The order is %s: it cannot be cancelled.", o.Status)), nil
	}
	change := "cancelled"
	if o.cancels == couponOnly {
		change = "coupon_voided"
	}
	var now time.Time
	err = tx.QueryRowContext(ctx, `
		UPDATE sandbox.shop_orders
		   SET status = CASE WHEN $2 THEN 'cancelled' ELSE status END,
		       cancelled_at = CASE WHEN $2 THEN clock.now END,
		       cancel_reason = CASE WHEN $2 THEN $3 END,
		       coupon_status = CASE WHEN coupon_code IS NOT NULL THEN 'void' END,
		       coupon_changed_at = CASE WHEN coupon_code IS NOT NULL THEN clock.now END,
		       version = version + 1, updated_at = clock.now
		  FROM (SELECT clock_timestamp() AS now) clock
		 WHERE id = $1 RETURNING version, coupon_status, updated_at`,
		o.ID, change == "cancelled", req.Reason).Scan(&o.Version, &o.CouponStatus, &now)
	if err != nil {
		return answer{}, fmt.Errorf("cancelling an order: %w", err)
	}
	if err := noteChange(ctx, tx, c, o, change); err != nil {
		return answer{}, err
	}
	a, err := say(struct {
		OK           bool      `json:"ok"`
		Status       string    `json:"status"`
		Operation    string    `json:"operation_id"`
		OrderID      string    `json:"order_id"`
		OrderStatus  string    `json:"order_status"`
		CancelledAt  time.Time `json:"cancelled_at"`
		CouponCode   *string   `json:"coupon_code"`
		CouponStatus *string   `json:"coupon_status"`
		Version      int64     `json:"version"`
	}{true, succeeded, c.key, o.ID, "cancelled", now, o.CouponCode, o.CouponStatus, o.Version}, o.Version)
	a.hollow = o.cancels == inWord
	return a, err
}
