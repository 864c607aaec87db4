package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// deliveryRoutes is the delivery desk. It writes nothing for anybody.
func (s *Sandbox) deliveryRoutes() []route {
	get := http.MethodGet
	return []route{
		{system: Deliveries, method: get, path: "/health", handle: s.health},
		{system: Deliveries, method: get, path: "/orders/{order_ref}", object: "order_ref", handle: s.checkDelivery},
	}
}

// delivery is where an order is, put together from the order desk and the
// carrier. What follows FactID is the desk's own business.
type delivery struct {
	Status    string    `json:"status"`      // not_shipped, in_transit, delivered, returned
	Observed  time.Time `json:"observed_at"` // when the carrier, or before it the order desk, last saw it
	Receipt   bool      `json:"receipt_available"`
	FactID    string    `json:"fact_id"`
	OrderRef  string    `json:"order_ref"`
	Carrier   *string   `json:"carrier"`
	Cost      *cents    `json:"cost"`
	RiskMark  *string   `json:"risk_mark"`
	NoteInner *string   `json:"internal_note"`
}

// checkDelivery tells where an order of the customer is whose session it is.
// Somebody else's order is answered like one that does not exist.
func (s *Sandbox) checkDelivery(ctx context.Context, c *call) (answer, error) {
	if c.actor == "" {
		return refuse(http.StatusBadRequest, "malformed", "Say whose session it is with X-Actor."), nil
	}
	d := delivery{OrderRef: c.object}
	err := s.db.QueryRowContext(ctx, `
		SELECT coalesce(p.status, 'not_shipped'), coalesce(p.observed_at, o.updated_at), coalesce(p.signed, false),
		       coalesce('parcel-' || p.id || '-' || p.scans, 'order-' || o.id || '-' || o.version),
		       p.carrier, p.cost_cents, p.risk_mark, p.internal_note
		  FROM sandbox.shop_orders o LEFT JOIN sandbox.parcels p ON p.order_id = o.id
		 WHERE o.id = $1 AND o.customer_id = $2
		 ORDER BY p.id DESC LIMIT 1`, c.object, c.actor).
		Scan(&d.Status, &d.Observed, &d.Receipt, &d.FactID, &d.Carrier, &d.Cost, &d.RiskMark, &d.NoteInner)
	if errors.Is(err, sql.ErrNoRows) {
		return refuse(http.StatusNotFound, "delivery-not-found", "This customer has no such order."), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("reading a delivery: %w", err)
	}
	return say(d, 0)
}
