package sandbox

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// listing is one page of a list in key order.
type listing[T any] struct {
	what   string // for errors: "products"
	limit  int
	query  string // its last parameter is the limit
	args   []any
	scan   func(*T, row) error
	cursor func(T) string // where the next page starts, after this item
}

// row is what can be scanned: one row, or the present one of several.
type row interface{ Scan(...any) error }

// read asks for one row more than the page holds, to know whether there is
// another page without counting.
func (l listing[T]) read(ctx context.Context, q querier) (answer, error) {
	rows, err := q.QueryContext(ctx, l.query, append(l.args, l.limit+1)...)
	if err != nil {
		return answer{}, fmt.Errorf("listing %s: %w", l.what, err)
	}
	defer rows.Close()
	page := struct {
		Items []T     `json:"items"`
		Next  *string `json:"next_cursor"`
	}{Items: []T{}}
	for rows.Next() {
		if len(page.Items) == l.limit {
			next := l.cursor(page.Items[l.limit-1])
			page.Next = &next
			break
		}
		var item T
		if err := l.scan(&item, rows); err != nil {
			return answer{}, fmt.Errorf("listing %s: %w", l.what, err)
		}
		page.Items = append(page.Items, item)
	}
	if err := rows.Err(); err != nil {
		return answer{}, fmt.Errorf("listing %s: %w", l.what, err)
	}
	return say(page, 0)
}

// byID is a whole list in the order of its ids, a page at a time: ?limit= and
// ?cursor=, the last id of the page before.
type byID[T any] struct {
	what, columns, table string
	scan                 func(*T, row) error
	id                   func(T) string
}

func (l byID[T]) page(ctx context.Context, q querier, c *call) (answer, error) {
	limit, err := parseLimit(c.URL.Query().Get("limit"))
	after := c.URL.Query().Get("cursor")
	if err != nil || !clean(after) {
		return refuse(http.StatusBadRequest, "malformed", "limit is 1 to 500, cursor is the one you were given."), nil
	}
	return listing[T]{
		what: l.what, limit: limit, scan: l.scan, cursor: l.id,
		query: `SELECT ` + l.columns + ` FROM sandbox.` + l.table + ` WHERE id > $1 ORDER BY id LIMIT $2`,
		args:  []any{after},
	}.read(ctx, q)
}

// querier is what reads need: a pool, a connection or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// parseLimit reads a page size: 1 to 500, 100 when it is not given.
func parseLimit(text string) (int, error) {
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 500 {
		return 0, errors.New("limit is 1 to 500")
	}
	return n, nil
}

// window is a span of time, and where a page of it starts.
type window struct {
	from, to, afterAt time.Time
	afterKey          string
}

func parseWindow(query func(string) string) (window, error) {
	w := window{to: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err error
	for name, into := range map[string]*time.Time{"from": &w.from, "to": &w.to} {
		if text := query(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return w, fmt.Errorf("%s is a time like 2026-10-07T09:00:00Z", name)
			}
		}
	}
	if text := query("cursor"); text != "" {
		data, _ := base64.RawURLEncoding.DecodeString(text)
		at, key, ok := strings.Cut(string(data), " ")
		if w.afterAt, err = time.Parse(time.RFC3339Nano, at); err != nil || !ok || !clean(key) {
			return w, errors.New("cursor is not one of ours")
		}
		w.afterKey = key
	}
	return w, nil
}

func timeCursor(at time.Time, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + " " + key))
}
