package sandbox

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"time"
)

// coupon is the coupon of an order as it is served. It changes with its order,
// so its ETag is the order's version.
type coupon struct {
	OrderID   string     `json:"order_id"`
	Code      string     `json:"coupon_code"`
	Status    string     `json:"status"` // valid, void
	Value     cents      `json:"value"`
	Currency  string     `json:"currency"`
	ChangedAt *time.Time `json:"changed_at"` // null: it is as it was issued
	Version   int64      `json:"version"`
}

func noCoupon(id string) answer {
	return refuse(http.StatusNotFound, "coupon-not-found", fmt.Sprintf("Order %q has no such coupon.", id))
}

func (s *Sandbox) getCoupon(ctx context.Context, c *call) (answer, error) {
	o, found, err := findShopOrder(ctx, s.db, c.object, "")
	switch {
	case err != nil:
		return answer{}, err
	case !found:
		return unknownOrder(c.object), nil
	case o.CouponCode == nil:
		return noCoupon(c.object), nil
	}
	return say(coupon{o.ID, *o.CouponCode, *o.CouponStatus, o.couponValue, o.Currency, o.couponChangedAt, o.Version}, o.Version)
}

// restoreCoupon makes a void coupon valid again.
func (s *Sandbox) restoreCoupon(ctx context.Context, c *call) (answer, error) {
	req, refusal := readOrderRequest(c, true)
	if refusal != nil {
		return *refusal, nil
	}
	bound := fingerprint("restore_coupon", req.OrderID, req.Coupon, c.actor)
	return s.once(ctx, c, "restore_coupon", bound, func(ctx context.Context, tx *sql.Tx) (answer, error) {
		return applyRestore(ctx, tx, c, req)
	})
}

func applyRestore(ctx context.Context, tx *sql.Tx, c *call, req orderRequest) (answer, error) {
	o, refusal, err := wanted(ctx, tx, c, req.OrderID, req.Version)
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	switch {
	case o.CouponCode == nil || *o.CouponCode != req.Coupon:
		return noCoupon(req.OrderID), nil
	case *o.CouponStatus != "void":
		return refuse(http.StatusUnprocessableEntity, "coupon-not-void", "The coupon is valid: there is nothing to restore."), nil
	}
	err = tx.QueryRowContext(ctx, `
		UPDATE sandbox.shop_orders SET coupon_status = 'valid', coupon_changed_at = clock.now,
		       version = version + 1, updated_at = clock.now
		  FROM (SELECT clock_timestamp() AS now) clock
		 WHERE id = $1 RETURNING version, coupon_status, updated_at`, o.ID).Scan(&o.Version, &o.CouponStatus, &o.UpdatedAt)
	if err != nil {
		return answer{}, fmt.Errorf("restoring a coupon: %w", err)
	}
	if err := noteChange(ctx, tx, c, o, "coupon_restored"); err != nil {
		return answer{}, err
	}
	a, err := say(struct {
		OK           bool      `json:"ok"`
		Status       string    `json:"status"`
		Operation    string    `json:"operation_id"`
		OrderID      string    `json:"order_id"`
		CouponCode   string    `json:"coupon_code"`
		CouponStatus string    `json:"coupon_status"`
		Version      int64     `json:"version"`
		RestoredAt   time.Time `json:"restored_at"`
	}{true, succeeded, c.key, o.ID, *o.CouponCode, *o.CouponStatus, o.Version, o.UpdatedAt}, o.Version)
	a.hollow = o.restores == inWord
	return a, err
}
