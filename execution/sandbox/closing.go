package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// toClose is the reconciliation that a write is about, locked, or why the write
// is refused: by form, by right, or because it was looked at as it is not any more.
func toClose(ctx context.Context, tx *sql.Tx, c *call, right string) (reconciliation, *answer, error) {
	version, refusal := c.ifMatch()
	if refusal != nil {
		return reconciliation{}, refusal, nil
	}
	r, refusal, err := findReconciliation(ctx, tx, c.object, "FOR UPDATE")
	if err != nil || refusal != nil {
		return reconciliation{}, refusal, err
	}
	if c.actor != "" {
		has, err := hasRight(ctx, tx, c.actor, right)
		if err != nil {
			return reconciliation{}, nil, err
		}
		if !has {
			no := refuse(http.StatusUnprocessableEntity, "no-right", fmt.Sprintf("%q has not the right %s; nothing was done.", c.actor, right))
			return reconciliation{}, &no, nil
		}
	}
	if version != 0 && version != r.Version {
		no := moved("reconciliation", r.Version)
		return reconciliation{}, &no, nil
	}
	return r, nil, nil
}

// step moves a reconciliation on by one version.
func (r *reconciliation) step(ctx context.Context, tx *sql.Tx) error {
	err := tx.QueryRowContext(ctx, `UPDATE sandbox.reconciliations SET version = version + 1 WHERE id = $1 RETURNING version`, r.ID).Scan(&r.Version)
	if err != nil {
		return fmt.Errorf("moving a reconciliation on: %w", err)
	}
	return nil
}

// explanation says why the sides differ on one reference, with the voucher that
// shows it.
type explanation struct {
	Reference string `json:"reference"`
	Voucher   string `json:"voucher"`
	Text      string `json:"text"`
}

// signOff takes responsibility for a reconciliation whose differences are all
// explained. It makes no report and posts nothing.
func (s *Sandbox) signOff(ctx context.Context, c *call) (answer, error) {
	var body struct {
		ID           string        `json:"reconciliation_id"`
		Explanations []explanation `json:"explanations"`
	}
	if err := strictJSON(c.body, &body); err != nil || body.ID != c.object {
		return refuse(http.StatusBadRequest, "malformed", "The body is {reconciliation_id, explanations: [{reference, voucher, text}]}, about the reconciliation in the path."), nil
	}
	for _, x := range body.Explanations {
		if !clean(x.Reference, x.Voucher) || !readable(x.Text) {
			return refuse(http.StatusBadRequest, "malformed", "An explanation names a reference and a voucher, and says why in 1 to 500 bytes."), nil
		}
	}
	return s.each(ctx, c, "sign_off", func(ctx context.Context, tx *sql.Tx) (answer, error) {
		r, refusal, err := toClose(ctx, tx, c, rightSignOff)
		if err != nil || refusal != nil {
			return orRefuse(refusal), err
		}
		if r.Status != "open" {
			return refuse(http.StatusUnprocessableEntity, "signed-off", "It is signed off already."), nil
		}
		if refusal, err = explain(ctx, tx, r, body.Explanations); err != nil || refusal != nil {
			return orRefuse(refusal), err
		}
		_, err = tx.ExecContext(ctx, `UPDATE sandbox.reconciliations SET status = 'signed_off', signed_by = nullif($2, ''), signed_at = clock_timestamp() WHERE id = $1`, r.ID, c.actor)
		if err != nil {
			return answer{}, fmt.Errorf("signing off: %w", err)
		}
		if err := r.step(ctx, tx); err != nil {
			return answer{}, err
		}
		return say(map[string]any{"status": "signed_off", "reconciliation_id": r.ID, "version": r.Version, "adjustments": r.Adjustments, "reports": r.Reports}, r.Version)
	})
}

// explain writes down why the sides differ. Every difference needs a reason, and
// every reason a voucher of that very difference, looked up now.
func explain(ctx context.Context, tx *sql.Tx, r reconciliation, given []explanation) (*answer, error) {
	compared, err := compare(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	no := func(code, detail string) (*answer, error) {
		refusal := refuse(http.StatusUnprocessableEntity, code, detail)
		return &refusal, nil
	}
	open := map[string]line{}
	for _, l := range compared.Lines {
		if l.Class != lineMatched {
			open[l.Reference] = l
		}
	}
	for _, x := range given {
		l, differs := open[x.Reference]
		if !differs {
			return no("no-difference", fmt.Sprintf("The sides do not differ on %q.", x.Reference))
		}
		if !slices.Contains(l.Vouchers, x.Voucher) {
			return no("voucher-of-something-else", fmt.Sprintf("Voucher %q is not about %q.", x.Voucher, x.Reference))
		}
		delete(open, x.Reference)
		_, err := tx.ExecContext(ctx, `
			INSERT INTO sandbox.ledger_explanations (reconciliation_id, reference, voucher, explanation) VALUES ($1, $2, $3, $4)
			ON CONFLICT (reconciliation_id, reference) DO UPDATE SET voucher = excluded.voucher, explanation = excluded.explanation`,
			r.ID, x.Reference, x.Voucher, x.Text)
		if err != nil {
			return nil, fmt.Errorf("explaining a difference: %w", err)
		}
	}
	if len(open) > 0 {
		return no("unexplained", fmt.Sprintf("%d differences are not explained.", len(open)))
	}
	return nil, nil
}

// makeReport writes down what the comparison shows now. It takes responsibility
// for nothing and posts nothing.
func (s *Sandbox) makeReport(ctx context.Context, c *call) (answer, error) {
	var body struct {
		ID       string `json:"reconciliation_id"`
		ReportID string `json:"report_id"`
	}
	if err := strictJSON(c.body, &body); err != nil || body.ID != c.object || body.ReportID == "" || !clean(body.ReportID) {
		return refuse(http.StatusBadRequest, "malformed", "The body is {reconciliation_id, report_id}, about the reconciliation in the path."), nil
	}
	return s.each(ctx, c, "make_report", func(ctx context.Context, tx *sql.Tx) (answer, error) {
		r, refusal, err := toClose(ctx, tx, c, rightReport)
		if err != nil || refusal != nil {
			return orRefuse(refusal), err
		}
		compared, err := compare(ctx, tx, r)
		if err != nil {
			return answer{}, err
		}
		done, err := tx.ExecContext(ctx, `
			INSERT INTO sandbox.ledger_reports (id, reconciliation_id, version, signed_off, differences, actor)
			VALUES ($1, $2, $3, $4, $5, nullif($6, '')) ON CONFLICT (id) DO NOTHING`,
			body.ReportID, r.ID, r.Version, r.Status == "signed_off", compared.Differences, c.actor)
		if err != nil {
			return answer{}, fmt.Errorf("making a report: %w", err)
		}
		if taken(done) {
			return refuse(http.StatusConflict, "report-exists", "There is a report of this id."), nil
		}
		return say(map[string]any{"status": "made", "report_id": body.ReportID, "reconciliation_id": r.ID, "version": r.Version,
			"differences": compared.Differences, "signed_off": r.Status == "signed_off"}, r.Version)
	})
}

// taken reports whether an insert found its place taken.
func taken(done sql.Result) bool {
	n, err := done.RowsAffected()
	return err == nil && n == 0
}

func (s *Sandbox) getReport(ctx context.Context, c *call) (answer, error) {
	var report struct {
		ID          string    `json:"report_id"`
		Of          string    `json:"reconciliation_id"`
		Version     int64     `json:"version"`    // of the reconciliation that it is about
		SignedOff   bool      `json:"signed_off"` // whether that one was
		Differences int       `json:"differences"`
		At          time.Time `json:"at"`
	}
	err := s.db.QueryRowContext(ctx, `SELECT id, reconciliation_id, version, signed_off, differences, at FROM sandbox.ledger_reports WHERE id = $1 AND reconciliation_id = $2`,
		c.PathValue("report_id"), c.object).Scan(&report.ID, &report.Of, &report.Version, &report.SignedOff, &report.Differences, &report.At)
	if errors.Is(err, sql.ErrNoRows) {
		return refuse(http.StatusNotFound, "report-not-found", "There is no such report."), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("reading a report: %w", err)
	}
	return say(report, 0)
}

// adjustment is an entry in our books that makes one reference agree.
type adjustment struct {
	ID        string          `json:"reconciliation_id"`
	Reference string          `json:"reference"`
	Amount    json.RawMessage `json:"amount"`
	Text      string          `json:"text"`
}

// signedCents reads an amount that may be negative.
func signedCents(n json.RawMessage) (cents, error) {
	text, negative := strings.CutPrefix(string(n), "-")
	amount, err := parseCents(json.RawMessage(text))
	if negative {
		amount = -amount
	}
	return amount, err
}

// postAdjustment changes our books. Only what was signed off is posted, only the
// difference that was signed off, and only once.
func (s *Sandbox) postAdjustment(ctx context.Context, c *call) (answer, error) {
	var body adjustment
	err := strictJSON(c.body, &body)
	amount, amountErr := signedCents(body.Amount)
	if err := errors.Join(err, amountErr); err != nil || body.ID != c.object || !clean(body.Reference) || !readable(body.Text) {
		return refuse(http.StatusBadRequest, "malformed", "The body is {reconciliation_id, reference, amount, text}, about the reconciliation in the path."), nil
	}
	return s.each(ctx, c, "post_adjustment", func(ctx context.Context, tx *sql.Tx) (answer, error) {
		r, refusal, err := toClose(ctx, tx, c, rightPost)
		if err != nil || refusal != nil {
			return orRefuse(refusal), err
		}
		if r.Status != "signed_off" {
			return refuse(http.StatusUnprocessableEntity, "not-signed-off", "Nothing is posted that nobody signed off."), nil
		}
		return post(ctx, tx, c, r, body, amount)
	})
}

func post(ctx context.Context, tx *sql.Tx, c *call, r reconciliation, body adjustment, amount cents) (answer, error) {
	var posted bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sandbox.ledger_adjustments WHERE reconciliation_id = $1 AND reference = $2)`, r.ID, body.Reference).Scan(&posted)
	if err != nil {
		return answer{}, fmt.Errorf("looking for an adjustment: %w", err)
	}
	if posted {
		return refuse(http.StatusConflict, "already-posted", "An adjustment of this reference was posted; a second one is not."), nil
	}
	compared, err := compare(ctx, tx, r)
	if err != nil {
		return answer{}, err
	}
	differs := false
	for _, l := range compared.Lines {
		differs = differs || l.Reference == body.Reference && l.Class != lineMatched && l.Difference == amount
	}
	if !differs {
		return refuse(http.StatusUnprocessableEntity, "other-difference", "This is not the difference that the sides have."), nil
	}
	voucher := "ADJ-" + r.ID + "-" + body.Reference
	_, err = tx.ExecContext(ctx, `
		WITH entry AS (
			INSERT INTO sandbox.ledger_entries (voucher, account, side, reference, at, amount_minor, currency, text)
			SELECT $3, account, 'books', $2, (period_to::timestamp AT TIME ZONE 'UTC') - interval '1 second', $4, currency, $5 FROM sandbox.reconciliations WHERE id = $1
		)
		INSERT INTO sandbox.ledger_adjustments (reconciliation_id, reference, voucher, amount_cents, actor) VALUES ($1, $2, $3, $4, nullif($6, ''))`,
		r.ID, body.Reference, voucher, int64(amount), body.Text, c.actor)
	if err != nil {
		return answer{}, fmt.Errorf("posting an adjustment: %w", err)
	}
	if err := r.step(ctx, tx); err != nil {
		return answer{}, err
	}
	return say(map[string]any{"status": "posted", "reconciliation_id": r.ID, "reference": body.Reference, "voucher": voucher,
		"amount": amount, "currency": r.Currency, "version": r.Version}, r.Version)
}

// getAdjustment says whether an adjustment of a reference was posted.
func (s *Sandbox) getAdjustment(ctx context.Context, c *call) (answer, error) {
	a := struct {
		ID        string     `json:"reconciliation_id"`
		Reference string     `json:"reference"`
		Found     bool       `json:"found"`
		Voucher   *string    `json:"voucher"`
		Amount    *cents     `json:"amount"`
		PostedBy  *string    `json:"posted_by"`
		PostedAt  *time.Time `json:"posted_at"`
	}{ID: c.object, Reference: c.URL.Query().Get("reference")}
	if !clean(a.Reference) {
		return unclean(), nil
	}
	err := s.db.QueryRowContext(ctx, `SELECT true, voucher, amount_cents, actor, at FROM sandbox.ledger_adjustments WHERE reconciliation_id = $1 AND reference = $2`,
		a.ID, a.Reference).Scan(&a.Found, &a.Voucher, &a.Amount, &a.PostedBy, &a.PostedAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return answer{}, fmt.Errorf("reading an adjustment: %w", err)
	}
	return say(a, 0)
}
