package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/lib/pq"
)

const maxBulk = 200_000 // records per request; SeedRefunds and SeedOrders have no limit

// PaidRefund is a refund that was paid earlier.
type PaidRefund struct {
	Key         string // idempotency key
	OrderID     string
	AmountCents int64
	Reason      string
	Actor       string // empty: not told
	At          time.Time
}

// SeedRefunds writes refunds as if each had been asked for and paid at its
// time: the operation, the refund and what it changed on the order. Orders that
// are missing are made, paid with exactly what is refunded. All are written or,
// when a key is taken or an order would be refunded beyond what was paid, none.
// It takes seconds for 100,000.
func (s *Sandbox) SeedRefunds(ctx context.Context, refunds iter.Seq[PaidRefund]) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("starting to seed refunds: %w", err)
	}
	defer tx.Rollback() // a no-op after the commit
	_, err = tx.ExecContext(ctx, `
		CREATE TEMPORARY TABLE bulk (
			id bigint NOT NULL DEFAULT nextval(pg_get_serial_sequence('sandbox.refunds', 'id')),
			key text NOT NULL, order_id text NOT NULL, amount_cents bigint NOT NULL, reason text NOT NULL,
			actor text NOT NULL, at timestamptz NOT NULL, fingerprint text NOT NULL
		) ON COMMIT DROP`)
	if err != nil {
		return fmt.Errorf("preparing to seed refunds: %w", err)
	}
	if err := copyRefunds(ctx, tx, refunds); err != nil {
		return err
	}
	for _, statement := range []string{bulkOperations, bulkOrders, bulkRefunds} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("seeding refunds: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing seeded refunds: %w", err)
	}
	return nil
}

func copyRefunds(ctx context.Context, tx *sql.Tx, refunds iter.Seq[PaidRefund]) error {
	into, err := tx.PrepareContext(ctx, `COPY bulk (key, order_id, amount_cents, reason, actor, at, fingerprint) FROM STDIN`)
	if err != nil {
		return fmt.Errorf("starting to copy refunds: %w", err)
	}
	for r := range refunds {
		if !clean(r.Key, r.OrderID, r.Actor) || r.Key == "" || r.OrderID == "" || !readable(r.Reason) {
			return errors.Join(fmt.Errorf("seeding refunds: %q on %q is no refund", r.Key, r.OrderID), into.Close())
		}
		bound := fingerprint("refund_order", r.OrderID, r.AmountCents, r.Reason, r.Actor)
		if _, err := into.ExecContext(ctx, r.Key, r.OrderID, r.AmountCents, r.Reason, r.Actor, r.At, bound); err != nil {
			return errors.Join(fmt.Errorf("copying refunds: %w", err), into.Close())
		}
	}
	_, err = into.ExecContext(ctx) // without a row: the end
	if err := errors.Join(err, into.Close()); err != nil {
		return fmt.Errorf("copying refunds: %w", err)
	}
	return nil
}

// What was copied becomes what the desk would have written itself, one refund
// after the other on each order.
const (
	bulkOperations = `
		WITH booked AS (
			SELECT b.*, coalesce(o.currency, 'EUR') AS currency, coalesce(o.version, 1) + row_number() OVER earlier AS version,
			       coalesce(o.refunded_cents, 0) + sum(b.amount_cents) OVER earlier AS refunded_cents
			  FROM bulk b LEFT JOIN sandbox.orders o ON o.id = b.order_id
			WINDOW earlier AS (PARTITION BY b.order_id ORDER BY b.at, b.key ROWS UNBOUNDED PRECEDING)
		)
		INSERT INTO sandbox.operations (system, key, name, fingerprint, status, object, actor, http_status, etag, body, at)
		SELECT 'refunds', key, 'refund_order', fingerprint, 'SUCCEEDED', order_id, nullif(actor, ''), 200, version::text,
		       json_build_object('status', 'SUCCEEDED', 'operation_id', key, 'refund_id', 'RF-' || id, 'order_id', order_id,
		           'amount', trim_scale(amount_cents / 100.0), 'currency', currency, 'refunded', trim_scale(refunded_cents / 100.0),
		           'version', version, 'refunded_at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text, at
		  FROM booked`
	bulkOrders = `
		INSERT INTO sandbox.orders AS o (id, customer_id, customer_name, placed_at, paid_cents, refunded_cents, status, version)
		SELECT order_id, 'c-bulk', 'Customer of ' || order_id, min(at) - interval '1 day', sum(amount_cents), sum(amount_cents), 'refunded', 1 + count(*)
		  FROM bulk GROUP BY order_id
		ON CONFLICT (id) DO UPDATE SET refunded_cents = o.refunded_cents + excluded.refunded_cents, version = o.version + excluded.version - 1,
		       status = CASE WHEN o.refunded_cents + excluded.refunded_cents = o.paid_cents THEN 'refunded' ELSE 'partly_refunded' END`
	bulkRefunds = `
		INSERT INTO sandbox.refunds (id, key, order_id, amount_cents, reason, actor, at) OVERRIDING SYSTEM VALUE
		SELECT id, key, order_id, amount_cents, reason, nullif(actor, ''), at FROM bulk`
)

// SeedOrders makes n orders to refund, prefix-000001 and on, each paid with
// paidCents. Those that are there already stay as they are.
func (s *Sandbox) SeedOrders(ctx context.Context, prefix string, n int, paidCents int64) error {
	_, err := s.db.ExecContext(ctx, `
		INSERT INTO sandbox.orders (id, customer_id, customer_name, placed_at, paid_cents)
		SELECT $1 || '-' || lpad(i::text, 6, '0'), 'c-bulk', 'Customer of ' || $1 || '-' || lpad(i::text, 6, '0'), clock_timestamp(), $3
		  FROM generate_series(1, $2::integer) i
		ON CONFLICT (id) DO NOTHING`, prefix, n, paidCents)
	if err != nil {
		return fmt.Errorf("seeding orders: %w", err)
	}
	return nil
}

// SeedShopOrder makes one order, paid and to be cancelled, of a total in cents.
// One that is there already stays as it is.
func (s *Sandbox) SeedShopOrder(ctx context.Context, id, customer string, totalCents int64) error {
	_, err := s.db.ExecContext(ctx, `
		INSERT INTO sandbox.shop_orders (id, customer_id, customer_name, placed_at, total_cents)
		VALUES ($1, 'c-bulk', $2, clock_timestamp(), $3) ON CONFLICT (id) DO NOTHING`, id, customer, totalCents)
	if err != nil {
		return fmt.Errorf("seeding an order: %w", err)
	}
	return nil
}

// bulk is a request for many records: prefix-000001 and on.
type bulk struct {
	Prefix string          `json:"prefix"`
	Count  int             `json:"count"`
	Amount json.RawMessage `json:"amount"`
	From   time.Time       `json:"from"`    // refunds: when the first was paid
	StepMS int             `json:"step_ms"` // refunds: milliseconds from one to the next
	cents  cents
}

func readBulk(body []byte) (b bulk, refusal *answer) {
	err := strictJSON(body, &b)
	if err == nil {
		b.cents, err = parseCents(b.Amount)
	}
	if err != nil || b.Prefix == "" || len(b.Prefix) > 100 || !clean(b.Prefix) || b.Count < 1 || b.Count > maxBulk || b.StepMS < 0 {
		a := refuse(http.StatusBadRequest, "malformed", "The body is {prefix, count: 1 to 200000, amount}, and {from, step_ms} for refunds.")
		return bulk{}, &a
	}
	return b, nil
}

// makeOrders is SeedOrders over HTTP.
func (s *Sandbox) makeOrders(ctx context.Context, _ *http.Request, body []byte) (answer, error) {
	b, refusal := readBulk(body)
	if refusal != nil {
		return *refusal, nil
	}
	if err := s.SeedOrders(ctx, b.Prefix, b.Count, int64(b.cents)); err != nil {
		return answer{}, err
	}
	return say(map[string]int{"made": b.Count}, 0)
}

// makeRefunds is SeedRefunds over HTTP, with an order of its own for each.
func (s *Sandbox) makeRefunds(ctx context.Context, _ *http.Request, body []byte) (answer, error) {
	b, refusal := readBulk(body)
	if refusal != nil {
		return *refusal, nil
	}
	err := s.SeedRefunds(ctx, func(yield func(PaidRefund) bool) {
		for i := range b.Count {
			id := fmt.Sprintf("%s-%06d", b.Prefix, i+1)
			at := b.From.Add(time.Duration(i*b.StepMS) * time.Millisecond)
			if !yield(PaidRefund{Key: id, OrderID: id, AmountCents: int64(b.cents), Reason: "seeded", At: at}) {
				return
			}
		}
	})
	var taken *pq.Error
	if errors.As(err, &taken) && taken.Code == "23505" { // unique_violation
		return refuse(http.StatusConflict, "key-taken", "One of these keys is there already; nothing was written."), nil
	}
	if err != nil {
		return answer{}, err
	}
	return say(map[string]int{"made": b.Count}, 0)
}
