package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/lib/pq"
)

// Divergence is a way for a refund in the desk's books to differ from what was
// answered at the time, without anybody being told.
type Divergence string

// Differences in fact, and differences in form only.
const (
	DivergeAmount  Divergence = "amount"  // a cent more was paid
	DivergeStatus  Divergence = "status"  // it FAILED after all, nothing was paid
	DivergeMissing Divergence = "missing" // nobody knows the key
	DivergeExtra   Divergence = "extra"   // it was paid again, under the key with -extra at its end

	FormTimeZone   Divergence = "time-zone"   // times are written in UTC+8
	FormDecimals   Divergence = "decimals"    // amounts are 42.0 instead of 42
	FormAmountText Divergence = "amount-text" // amounts are "42.0" instead of 42
	FormNull       Divergence = "null"        // what was left out is null
)

// divergences are the statements of each; the first hits one operation per key.
func divergences() map[Divergence][]string {
	const paid = `UPDATE sandbox.operations o SET body = `
	const which = ` WHERE o.system = 'refunds' AND o.key = ANY($1) AND o.status = 'SUCCEEDED'`
	rewrite := func(form string) []string {
		return []string{paid + `(o.body::jsonb || jsonb_build_object(` + form + `))::text` + which}
	}
	amount := func(as string) []string {
		return rewrite(`'amount', ` + fmt.Sprintf(as, "amount") + `, 'refunded', ` + fmt.Sprintf(as, "refunded"))
	}
	// one decimal at least: 42.0, 42.5, 42.05
	const decimal = `round((o.body::jsonb ->> '%[1]s')::numeric, greatest(1, scale(trim_scale((o.body::jsonb ->> '%[1]s')::numeric))))`
	const unpay = `
		WITH gone AS (DELETE FROM sandbox.refunds WHERE key = ANY($1) RETURNING order_id, amount_cents),
		     sums AS (SELECT order_id, sum(amount_cents) AS cents FROM gone GROUP BY order_id)
		UPDATE sandbox.orders SET refunded_cents = refunded_cents - cents,
		       status = CASE WHEN refunded_cents = cents THEN 'paid' ELSE 'partly_refunded' END
		  FROM sums WHERE id = order_id`
	return map[Divergence][]string{
		DivergeAmount: {
			rewrite(`'amount', (o.body::jsonb ->> 'amount')::numeric + 0.01, 'refunded', (o.body::jsonb ->> 'refunded')::numeric + 0.01`)[0],
			`WITH more AS (UPDATE sandbox.refunds SET amount_cents = amount_cents + 1 WHERE key = ANY($1) RETURNING order_id),
			      sums AS (SELECT order_id, count(*) AS cents FROM more GROUP BY order_id)
			 UPDATE sandbox.orders SET paid_cents = paid_cents + cents, refunded_cents = refunded_cents + cents FROM sums WHERE id = order_id`,
		},
		DivergeStatus: {
			paid + `'{"code":"bank-refused","detail":"The bank took the payment back."}', status = 'FAILED', http_status = 422, etag = ''` + which,
			unpay,
		},
		DivergeMissing: {`DELETE FROM sandbox.operations o` + which, unpay},
		DivergeExtra: {
			`INSERT INTO sandbox.operations (system, key, name, fingerprint, status, object, actor, http_status, etag, body, at)
			 SELECT system, key || '-extra', name, fingerprint, status, object, actor, http_status, etag,
			        (body::jsonb || jsonb_build_object('operation_id', key || '-extra'))::text, at FROM sandbox.operations o` + which,
			`WITH again AS (
			     INSERT INTO sandbox.refunds (key, order_id, amount_cents, reason, actor, at)
			     SELECT key || '-extra', order_id, amount_cents, reason, actor, at FROM sandbox.refunds WHERE key = ANY($1)
			     RETURNING order_id, amount_cents),
			      sums AS (SELECT order_id, sum(amount_cents) AS cents FROM again GROUP BY order_id)
			 UPDATE sandbox.orders SET paid_cents = paid_cents + cents, refunded_cents = refunded_cents + cents FROM sums WHERE id = order_id`,
		},
		FormTimeZone: {paid + `(o.body::jsonb || jsonb_build_object('refunded_at',
			to_char(o.at AT TIME ZONE 'UTC' + interval '8 hours', 'YYYY-MM-DD"T"HH24:MI:SS.US"+08:00"')))::text, utc_offset = 480` + which},
		FormDecimals:   amount(decimal),
		FormAmountText: amount(decimal + `::text`),
		FormNull:       rewrite(`'note', NULL, 'receipt', NULL`),
	}
}

// Diverge changes what the refund desk has on paid refunds, silently: no
// version moves and no callback tells. It fails, and changes nothing, unless
// there is a paid refund under every key.
func (s *Sandbox) Diverge(ctx context.Context, kind Divergence, keys ...string) error {
	statements, known := divergences()[kind]
	if !known {
		return fmt.Errorf("unknown divergence %q; there are %v", kind, slices.Sorted(maps.Keys(divergences())))
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("starting to diverge: %w", err)
	}
	defer tx.Rollback() // a no-op after the commit
	for i, statement := range statements {
		result, err := tx.ExecContext(ctx, statement, pq.Array(keys))
		if err != nil {
			return fmt.Errorf("diverging: %w", err)
		}
		if hit, err := result.RowsAffected(); i == 0 && (err != nil || int(hit) != len(keys)) {
			return errors.Join(errNotPaid, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing a divergence: %w", err)
	}
	return nil
}

var errNotPaid = errors.New("there is not one paid refund under every one of these keys; nothing was changed")

// diverge is Diverge over HTTP.
func (s *Sandbox) diverge(ctx context.Context, _ *http.Request, body []byte) (answer, error) {
	var how struct {
		Kind Divergence `json:"kind"`
		Keys []string   `json:"keys"`
	}
	if err := strictJSON(body, &how); err != nil || !clean(how.Keys...) {
		return badChange("The body is {kind, keys}.")
	}
	if divergences()[how.Kind] == nil || len(how.Keys) == 0 {
		return badChange(fmt.Sprintf("Name keys, and a kind of %v.", slices.Sorted(maps.Keys(divergences()))))
	}
	err := s.Diverge(ctx, how.Kind, how.Keys...)
	if errors.Is(err, errNotPaid) {
		return refuse(http.StatusConflict, "not-paid", "There is not one paid refund under every one of these keys; nothing was changed."), nil
	}
	if err != nil {
		return answer{}, err
	}
	return say(map[string]int{"diverged": len(how.Keys)}, 0)
}
