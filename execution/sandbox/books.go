package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lib/pq"
)

// ledgerRoutes is the ledger: accounts with two sides, our books and what a
// provider states. Comparing, signing off, reporting and posting are four things,
// and none of them does another. The ledger keeps no record of keys: it refuses
// a repetition by the version of a reconciliation, or by an id that is taken.
func (s *Sandbox) ledgerRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	const one = "/reconciliations/{reconciliation_id}"
	return []route{
		{system: Ledger, method: get, path: "/health", handle: s.health},
		{system: Ledger, method: get, path: "/reconciliations", handle: s.listReconciliations},
		{system: Ledger, method: get, path: one, object: "reconciliation_id", handle: s.getReconciliation},
		{system: Ledger, method: get, path: one + "/comparison", object: "reconciliation_id", handle: s.compareSides},
		{system: Ledger, method: get, path: one + "/adjustments", object: "reconciliation_id", handle: s.getAdjustment},
		{system: Ledger, method: get, path: one + "/reports/{report_id}", object: "reconciliation_id", handle: s.getReport},
		{system: Ledger, method: get, path: "/vouchers/{voucher}", object: "voucher", handle: s.getVoucher},
		{system: Ledger, method: get, path: "/people/{person_id}/rights/{right}", object: "right", handle: s.mayLedger},
		{system: Ledger, method: post, path: one + "/sign_off", object: "reconciliation_id", write: true, handle: s.signOff},
		{system: Ledger, method: post, path: one + "/reports", object: "reconciliation_id", write: true, handle: s.makeReport},
		{system: Ledger, method: post, path: one + "/adjustments", object: "reconciliation_id", write: true, handle: s.postAdjustment},
	}
}

// reconciliation is an account and a period whose sides are to agree. Its ETag
// is its version.
type reconciliation struct {
	ID          string     `json:"reconciliation_id"`
	Account     string     `json:"account"`
	From        string     `json:"period_from"` // the first day, UTC
	To          string     `json:"period_to"`   // the day after the last
	Currency    string     `json:"currency"`    // in which both sides are compared
	Status      string     `json:"status"`      // open, signed_off
	SignedBy    *string    `json:"signed_by"`
	SignedAt    *time.Time `json:"signed_at"`
	Adjustments int        `json:"adjustments"` // posted so far
	Reports     int        `json:"reports"`     // made so far
	Version     int64      `json:"version"`
}

const reconciliationColumns = `id, account, period_from::text, period_to::text, currency, status, signed_by, signed_at,
	(SELECT count(*) FROM sandbox.ledger_adjustments a WHERE a.reconciliation_id = reconciliations.id),
	(SELECT count(*) FROM sandbox.ledger_reports r WHERE r.reconciliation_id = reconciliations.id), version`

func (r *reconciliation) scan(from row) error {
	return from.Scan(&r.ID, &r.Account, &r.From, &r.To, &r.Currency, &r.Status, &r.SignedBy, &r.SignedAt, &r.Adjustments, &r.Reports, &r.Version)
}

func findReconciliation(ctx context.Context, q querier, id, lock string) (reconciliation, *answer, error) {
	var r reconciliation
	err := r.scan(q.QueryRowContext(ctx, `SELECT `+reconciliationColumns+` FROM sandbox.reconciliations WHERE id = $1 `+lock, id))
	if errors.Is(err, sql.ErrNoRows) {
		refusal := refuse(http.StatusNotFound, "reconciliation-not-found", fmt.Sprintf("There is no reconciliation %q.", id))
		return reconciliation{}, &refusal, nil
	}
	if err != nil {
		return reconciliation{}, nil, fmt.Errorf("reading a reconciliation: %w", err)
	}
	return r, nil, nil
}

func (s *Sandbox) listReconciliations(ctx context.Context, c *call) (answer, error) {
	return byID[reconciliation]{what: "reconciliations", columns: reconciliationColumns, table: "reconciliations",
		scan: (*reconciliation).scan, id: func(r reconciliation) string { return r.ID }}.page(ctx, s.db, c)
}

func (s *Sandbox) getReconciliation(ctx context.Context, c *call) (answer, error) {
	r, refusal, err := findReconciliation(ctx, s.db, c.object, "")
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	return say(r, r.Version)
}

// The classes of a line of a comparison.
const (
	lineMatched   = "matched"
	lineDiffers   = "differs"
	lineBooks     = "books_only"
	lineStatement = "statement_only"
)

// line is one reference of either side, normalised. A side that does not have it
// is null, which is not the same as zero.
type line struct {
	Reference        string   `json:"reference"`
	Class            string   `json:"class"`
	Books            *cents   `json:"books"`
	Statement        *cents   `json:"statement"`
	Difference       cents    `json:"difference"` // statement less books
	BooksEntries     int      `json:"books_entries"`
	StatementEntries int      `json:"statement_entries"`
	Vouchers         []string `json:"vouchers"` // of both sides: what explains a difference is looked up there
	Explanation      *string  `json:"explanation"`
}

// comparison is both sides on one scale. Differences are facts that somebody
// has to explain; they say nothing of who is right.
type comparison struct {
	reconciliation
	Grain       string    `json:"grain"`
	Matched     int       `json:"matched"`
	Differences int       `json:"differences"`
	Unexplained int       `json:"unexplained"`
	Lines       []line    `json:"lines"` // differences first
	ObservedAt  time.Time `json:"observed_at"`
}

// compareSides brings both sides to one grain (the reference), one period (UTC
// days) and one currency (minor units by currency, the period's rate, rounded
// once per reference), joins them in full, and writes nothing.
func (s *Sandbox) compareSides(ctx context.Context, c *call) (answer, error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return answer{}, fmt.Errorf("starting to compare: %w", err)
	}
	defer tx.Rollback() // read only
	r, refusal, err := findReconciliation(ctx, tx, c.object, "")
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	compared, err := compare(ctx, tx, r)
	if err != nil {
		return answer{}, err
	}
	return say(compared, r.Version)
}

func compare(ctx context.Context, q querier, r reconciliation) (comparison, error) {
	out := comparison{reconciliation: r, Grain: "reference", Lines: []line{}}
	rows, err := q.QueryContext(ctx, `
		WITH entry AS (
			SELECT e.side, e.reference, e.voucher, e.amount_minor::numeric / 10::numeric ^ m.minor_units * m.rate AS amount
			  FROM sandbox.ledger_entries e JOIN sandbox.ledger_currencies m USING (currency)
			 WHERE e.account = $2 AND e.at >= $3::date::timestamp AT TIME ZONE 'UTC' AND e.at < $4::date::timestamp AT TIME ZONE 'UTC'
		), side AS (
			SELECT side, reference, round(sum(amount) * 100)::bigint AS cents, count(*) AS entries, array_agg(voucher ORDER BY voucher) AS vouchers
			  FROM entry GROUP BY side, reference
		)
		SELECT coalesce(b.reference, s.reference), b.cents, s.cents, coalesce(b.entries, 0), coalesce(s.entries, 0), coalesce(b.vouchers, '{}') || coalesce(s.vouchers, '{}'),
		       x.explanation, clock_timestamp()
		  FROM (SELECT * FROM side WHERE side = 'books') b FULL JOIN (SELECT * FROM side WHERE side = 'statement') s ON s.reference = b.reference
		  LEFT JOIN sandbox.ledger_explanations x ON x.reconciliation_id = $1 AND x.reference = coalesce(b.reference, s.reference)
		 ORDER BY b.cents IS NOT DISTINCT FROM s.cents, 1`, r.ID, r.Account, r.From, r.To)
	if err != nil {
		return comparison{}, fmt.Errorf("comparing two sides: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var l line
		err := rows.Scan(&l.Reference, &l.Books, &l.Statement, &l.BooksEntries, &l.StatementEntries, pq.Array(&l.Vouchers), &l.Explanation, &out.ObservedAt)
		if err != nil {
			return comparison{}, fmt.Errorf("comparing two sides: %w", err)
		}
		out.add(l)
	}
	return out, rows.Err()
}

func (c *comparison) add(l line) {
	switch {
	case l.Books == nil:
		l.Class, l.Difference = lineStatement, *l.Statement
	case l.Statement == nil:
		l.Class, l.Difference = lineBooks, -*l.Books
	case *l.Books != *l.Statement:
		l.Class, l.Difference = lineDiffers, *l.Statement-*l.Books
	default:
		l.Class = lineMatched
		c.Matched++
	}
	if l.Class != lineMatched {
		c.Differences++
		if l.Explanation == nil {
			c.Unexplained++
		}
	}
	c.Lines = append(c.Lines, l)
}

// getVoucher is the evidence behind one entry, as its side wrote it.
func (s *Sandbox) getVoucher(ctx context.Context, c *call) (answer, error) {
	var v struct {
		Voucher   string    `json:"voucher"`
		Account   string    `json:"account"`
		Side      string    `json:"side"`
		Reference string    `json:"reference"`
		Minor     int64     `json:"amount_minor"` // in the smallest unit of the currency
		Currency  string    `json:"currency"`
		Text      string    `json:"text"`
		At        time.Time `json:"at"`
	}
	err := s.db.QueryRowContext(ctx, `
		SELECT voucher, account, side, reference, amount_minor, currency, text, at FROM sandbox.ledger_entries WHERE voucher = $1`, c.object).
		Scan(&v.Voucher, &v.Account, &v.Side, &v.Reference, &v.Minor, &v.Currency, &v.Text, &v.At)
	if errors.Is(err, sql.ErrNoRows) {
		return refuse(http.StatusNotFound, "voucher-not-found", fmt.Sprintf("There is no voucher %q.", c.object)), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("reading a voucher: %w", err)
	}
	return say(v, 0)
}

// The rights on the ledger. Nobody gets one by having another.
const (
	rightSignOff = "sign_off"
	rightReport  = "report"
	rightPost    = "post"
)

func hasRight(ctx context.Context, q querier, person, right string) (bool, error) {
	var has bool
	err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sandbox.ledger_rights WHERE person_id = $1 AND "right" = $2)`, person, right).Scan(&has)
	if err != nil {
		return false, fmt.Errorf("looking up a right: %w", err)
	}
	return has, nil
}

// mayLedger says whether a person has a right now.
func (s *Sandbox) mayLedger(ctx context.Context, c *call) (answer, error) {
	p := permission{Actor: c.PathValue("person_id"), Object: c.object}
	var err error
	if p.Allowed, err = hasRight(ctx, s.db, p.Actor, c.object); err != nil {
		return answer{}, err
	}
	if !p.Allowed {
		p.Reason = "does not have this right"
	}
	return say(p, 0)
}

// setLedgerRights gives a person exactly these rights.
func (s *Sandbox) setLedgerRights(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var change struct {
		Rights []string `json:"rights"`
	}
	id := r.PathValue("person_id")
	if err := strictJSON(body, &change); err != nil || change.Rights == nil {
		return badChange("The body is {rights: some of sign_off, report and post}.")
	}
	if !clean(append(change.Rights, id)...) {
		return unclean(), nil
	}
	_, err := s.db.ExecContext(ctx, `
		WITH gone AS (DELETE FROM sandbox.ledger_rights WHERE person_id = $1 AND "right" <> ALL ($2))
		INSERT INTO sandbox.ledger_rights (person_id, "right") SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING`, id, pq.Array(change.Rights))
	if err != nil {
		return answer{}, fmt.Errorf("changing rights: %w", err)
	}
	return say(change, 0)
}
