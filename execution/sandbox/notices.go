package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// notice is one message to the people who watch a product's price.
type notice struct {
	ID      string    `json:"notice_id"`
	Price   cents     `json:"price"`
	Version int64     `json:"version"` // of the product that was announced
	Key     string    `json:"key"`
	At      time.Time `json:"at"`
}

func (n *notice) scan(r row) error {
	var id int64
	err := r.Scan(&id, &n.Price, &n.Version, &n.Key, &n.At)
	n.ID = noticeID(id)
	return err
}

func noticeID(id int64) string { return "PN-" + strconv.FormatInt(id, 10) }

// notified is what was announced about a product, and what one key announced.
// A key also stands for those derived from it, key:anything.
type notified struct {
	ProductID   string     `json:"product_id"`
	Price       cents      `json:"price"`
	Currency    string     `json:"currency"`
	Version     int64      `json:"version"`
	Key         *string    `json:"key"`
	Found       bool       `json:"found"`           // something was announced, under the key if one is named
	Sent        int        `json:"sent"`            // how many times
	Announced   *cents     `json:"announced_price"` // the last time
	AnnouncedAt *time.Time `json:"announced_at"`
	Notices     []notice   `json:"notices"` // newest first, 100 at most
}

// getNotices tells what was announced of a product's price.
func (s *Sandbox) getNotices(ctx context.Context, c *call) (answer, error) {
	var p product
	err := p.scan(s.db.QueryRowContext(ctx, `SELECT `+productColumns+` FROM sandbox.products WHERE id = $1`, c.object))
	if errors.Is(err, sql.ErrNoRows) {
		return unknownProduct(c.object), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("reading a product: %w", err)
	}
	n := notified{ProductID: p.ID, Price: p.Price, Currency: p.Currency, Version: p.Version}
	if c.key != "" {
		n.Key = &c.key
	}
	if n.Notices, err = noticesOf(ctx, s.db, c); err != nil {
		return answer{}, err
	}
	if n.Sent = len(n.Notices); n.Sent > 0 {
		n.Found, n.Announced, n.AnnouncedAt = true, &n.Notices[0].Price, &n.Notices[0].At
	}
	return say(n, p.Version)
}

func noticesOf(ctx context.Context, q querier, c *call) ([]notice, error) {
	rows, err := q.QueryContext(ctx, `
		SELECT id, price_cents, version, key, at FROM sandbox.price_notices
		 WHERE product_id = $1 AND ($2 = '' OR key = $2 OR starts_with(key, $2 || ':'))
		 ORDER BY id DESC LIMIT 100`, c.object, c.key)
	if err != nil {
		return nil, fmt.Errorf("listing price notices: %w", err)
	}
	defer rows.Close()
	notices := []notice{}
	for rows.Next() {
		var n notice
		if err := n.scan(rows); err != nil {
			return nil, fmt.Errorf("listing price notices: %w", err)
		}
		notices = append(notices, n)
	}
	return notices, rows.Err()
}

// notifyPrice announces a price that a product has. If-Match is not looked at:
// the price itself says what is announced.
func (s *Sandbox) notifyPrice(ctx context.Context, c *call) (answer, error) {
	req, refusal := readPriceRequest(c)
	if refusal != nil {
		return *refusal, nil
	}
	bound := fingerprint("notify_price", req.ProductID, int64(req.New), c.actor)
	return s.once(ctx, c, "notify_price", bound, func(ctx context.Context, tx *sql.Tx) (answer, error) {
		return applyNotice(ctx, tx, c, req)
	})
}

func applyNotice(ctx context.Context, tx *sql.Tx, c *call, req priceRequest) (answer, error) {
	var p product
	// Shared, so that the price stays what is announced until it is recorded.
	err := p.scan(tx.QueryRowContext(ctx, `SELECT `+productColumns+` FROM sandbox.products WHERE id = $1 FOR SHARE`, req.ProductID))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return unknownProduct(req.ProductID), nil
	case err != nil:
		return answer{}, fmt.Errorf("reading a product: %w", err)
	case p.Price != req.New:
		return refuse(http.StatusUnprocessableEntity, "price-differs", "The product does not have this price: nothing was announced."), nil
	}
	var id int64
	var at time.Time
	err = tx.QueryRowContext(ctx, `
		INSERT INTO sandbox.price_notices (key, product_id, price_cents, version, actor)
		VALUES ($1, $2, $3, $4, nullif($5, '')) RETURNING id, at`, c.key, p.ID, int64(p.Price), p.Version, c.actor).Scan(&id, &at)
	if err != nil {
		return answer{}, fmt.Errorf("writing a price notice: %w", err)
	}
	return say(struct {
		Status    string    `json:"status"`
		Operation string    `json:"operation_id"`
		NoticeID  string    `json:"notice_id"`
		ProductID string    `json:"product_id"`
		NewPrice  cents     `json:"new_price"`
		Currency  string    `json:"currency"`
		Version   int64     `json:"version"`
		SentAt    time.Time `json:"sent_at"`
	}{succeeded, c.key, noticeID(id), p.ID, p.Price, p.Currency, p.Version, at}, p.Version)
}
