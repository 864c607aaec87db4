package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// byHand is the key of changes that people make in the back office.
const byHand = "back-office"

// backOfficeRoutes stand in for people who change things by hand, past every
// program. They need the control token, and honour no keys and no versions.
func (s *Sandbox) backOfficeRoutes() map[string]controlHandler {
	return map[string]controlHandler{
		"PUT /catalog/people/{person_id}":    s.setPermission,
		"PUT /catalog/products/{product_id}": s.changeProduct,
		"PUT /orders/orders/{order_id}":      s.changeShopOrder,
		"PUT /refunds/orders/{order_id}":     s.changeRefundOrder,
		"PUT /refunds/callback":              s.setCallback(Refunds),
		"PUT /service/callback":              s.setCallback(Service),
		"PUT /notes/customers/{customer_id}": s.setKeeper,
		"PUT /ledger/people/{person_id}":     s.setLedgerRights,
		"PUT /messages/rules/{document_id}":  s.proposeRule,
		"DELETE /messages/memory":            s.forget,

		"PUT /messages/conversations/{conversation_id}/members/{person_id}": s.setMember,
	}
}

func badChange(detail string) (answer, error) {
	return refuse(http.StatusBadRequest, "malformed", detail), nil
}

// setPermission gives or takes the right to set prices.
func (s *Sandbox) setPermission(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var person struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		May  *bool  `json:"may_set_price"`
	}
	person.ID = r.PathValue("person_id")
	if err := strictJSON(body, &person); err != nil || person.May == nil || person.ID != r.PathValue("person_id") {
		return badChange("The body is {may_set_price: true or false}, and name for somebody new.")
	}
	if !clean(person.ID, person.Name) {
		return unclean(), nil
	}
	err := s.db.QueryRowContext(ctx, `
		INSERT INTO sandbox.people (id, name, may_set_price) VALUES ($1, coalesce(nullif($2, ''), $1), $3)
		ON CONFLICT (id) DO UPDATE SET may_set_price = excluded.may_set_price, name = coalesce(nullif($2, ''), people.name)
		RETURNING name`, person.ID, person.Name, *person.May).Scan(&person.Name)
	if err != nil {
		return answer{}, fmt.Errorf("changing a permission: %w", err)
	}
	return say(person, 0)
}

// changeProduct sets a price or a status. The version moves on, and a new price
// is in the product's history.
func (s *Sandbox) changeProduct(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var change struct {
		Price  json.RawMessage `json:"price"`
		Status string          `json:"status"`
	}
	err := strictJSON(body, &change)
	if err != nil || (change.Price == nil) == (change.Status == "") || !slices.Contains([]string{"", "on_sale", "discontinued"}, change.Status) {
		return badChange("The body is {price} or {status: on_sale or discontinued}.")
	}
	var price sql.NullInt64
	if change.Price != nil {
		amount, err := parseCents(change.Price)
		if err != nil {
			return badChange("price: " + err.Error())
		}
		price = sql.NullInt64{Int64: int64(amount), Valid: true}
	}
	id := r.PathValue("product_id")
	if !clean(id) {
		return unclean(), nil
	}
	var p product
	err = s.alone(ctx, func(conn *sql.Conn) error {
		return p.scan(conn.QueryRowContext(ctx, `
			WITH old AS (
				SELECT id, price_cents FROM sandbox.products WHERE id = $1 FOR UPDATE
			), changed AS (
				UPDATE sandbox.products p SET price_cents = coalesce($2, p.price_cents), status = coalesce(nullif($3, ''), p.status),
				       version = p.version + 1, updated_at = clock_timestamp()
				  FROM old WHERE p.id = old.id
				RETURNING p.id, p.name, p.price_cents, p.currency, p.price_list, p.status, p.version, p.updated_at, old.price_cents AS old_cents
			), noted AS (
				INSERT INTO sandbox.price_changes (key, product_id, old_cents, new_cents, version)
				SELECT $4, id, old_cents, price_cents, version FROM changed WHERE old_cents <> price_cents
			)
			SELECT `+productColumns+` FROM changed`, id, price, change.Status, byHand))
	})
	if errors.Is(err, sql.ErrNoRows) {
		return unknownProduct(id), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("changing a product by hand: %w", err)
	}
	return say(p, p.Version)
}

// changeShopOrder sets a status, which moves the version on, or how cancelling
// the order and restoring its coupon end, which is no change of the order.
func (s *Sandbox) changeShopOrder(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var change struct {
		Status   string `json:"status"`
		Cancels  string `json:"cancels"`
		Restores string `json:"restores"`
	}
	err := strictJSON(body, &change)
	if err != nil || !slices.Contains([]string{"", "paid", "cancelled", "shipped", "settled"}, change.Status) ||
		!slices.Contains([]string{"", properly, inWord, couponOnly}, change.Cancels) ||
		!slices.Contains([]string{"", properly, inWord}, change.Restores) {
		return badChange("The body is {status?: paid, cancelled, shipped or settled, cancels?: properly, in_word or coupon_only, restores?: properly or in_word}.")
	}
	id := r.PathValue("order_id")
	if !clean(id) {
		return unclean(), nil
	}
	var o shopOrder
	err = s.alone(ctx, func(conn *sql.Conn) error {
		return o.scan(conn.QueryRowContext(ctx, `
			UPDATE sandbox.shop_orders
			   SET status = coalesce(nullif($2, ''), status),
			       cancelled_at = CASE coalesce(nullif($2, ''), status) WHEN 'cancelled' THEN coalesce(cancelled_at, clock_timestamp()) END,
			       version = version + CASE WHEN $2 = '' THEN 0 ELSE 1 END,
			       updated_at = CASE WHEN $2 = '' THEN updated_at ELSE clock_timestamp() END,
			       cancels = coalesce(nullif($3, ''), cancels), restores = coalesce(nullif($4, ''), restores)
			 WHERE id = $1 RETURNING `+shopOrderColumns, id, change.Status, change.Cancels, change.Restores))
	})
	if errors.Is(err, sql.ErrNoRows) {
		return unknownOrder(id), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("changing an order by hand: %w", err)
	}
	return say(o, o.Version)
}

// changeRefundOrder sets a status, which moves the version on, or how long the
// order's refunds take, which is no change of the order.
func (s *Sandbox) changeRefundOrder(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var change struct {
		Status  string `json:"status"`
		Settles *int   `json:"settles_after_ms"`
	}
	err := strictJSON(body, &change)
	if err != nil || (change.Status == "") == (change.Settles == nil) || !slices.Contains([]string{"", "paid", "closed"}, change.Status) ||
		change.Settles != nil && (*change.Settles < 0 || *change.Settles > maxCallbackMS) {
		return badChange("The body is {status: paid or closed} or {settles_after_ms: 0 to 3600000}.")
	}
	id := r.PathValue("order_id")
	if !clean(id) {
		return unclean(), nil
	}
	var o order
	err = s.alone(ctx, func(conn *sql.Conn) error {
		return o.scan(conn.QueryRowContext(ctx, `
			UPDATE sandbox.orders
			   SET status = CASE WHEN $2 = 'closed' THEN 'closed' WHEN $2 = '' THEN status WHEN refunded_cents = 0 THEN 'paid'
			                     WHEN refunded_cents < paid_cents THEN 'partly_refunded' ELSE 'refunded' END,
			       version = version + CASE WHEN $2 = '' THEN 0 ELSE 1 END,
			       settles_after_ms = CASE WHEN $2 = '' THEN nullif($3::integer, 0) ELSE settles_after_ms END
			 WHERE id = $1 RETURNING `+orderColumns, id, change.Status, change.Settles))
	})
	if errors.Is(err, sql.ErrNoRows) {
		return unknownOrder(id), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("changing an order by hand: %w", err)
	}
	return say(o, o.Version)
}
