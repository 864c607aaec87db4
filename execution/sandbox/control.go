package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
)

// controlHandler answers a request that bears the control token; body is its.
type controlHandler func(ctx context.Context, r *http.Request, body []byte) (answer, error)

// controlRoutes arm faults and tell what came in. They need the control token.
func (s *Sandbox) controlRoutes() map[string]controlHandler {
	return map[string]controlHandler{
		"POST /faults":            s.armFault,
		"GET /faults":             s.listFaults,
		"DELETE /faults":          s.clearFaults,
		"GET /faults/log":         s.listCalls,
		"GET /faults/counts":      s.countKey,
		"POST /faults/orders":     s.makeOrders,
		"POST /faults/refunds":    s.makeRefunds,
		"POST /faults/divergence": s.diverge,
		"GET /faults/callbacks":   s.listCallbacks,
	}
}

func (s *Sandbox) control(handle controlHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !bears(r, s.tokens.Control) {
			refuse(http.StatusUnauthorized, "unauthorized", "Send the control token.").write(w)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			refuse(http.StatusRequestEntityTooLarge, "too-large", "The body could not be read, or is over 64 KiB.").write(w)
			return
		}
		a, err := handle(r.Context(), r, body)
		if err != nil {
			slog.Error("sandbox control request failed", "path", r.URL.Path, "error", err)
			a = refuse(http.StatusInternalServerError, "internal", "Something went wrong here.")
		}
		a.write(w)
	}
}

// armed is a fault and the requests that it waits for.
type armed struct {
	ID     int64   `json:"id"`
	System string  `json:"system"` // one of Systems; empty: any
	Method string  `json:"method"` // POST when not given, so that reads pass; "*": any
	Path   string  `json:"path"`   // what the path starts with, such as /refunds/orders/
	Key    string  `json:"key"`    // the idempotency key, or the message id
	Object string  `json:"object"` // the product, order or conversation id
	Count  *int    `json:"count"`  // how many requests; 1 when not given, 0: until cleared
	Rate   float64 `json:"rate"`   // the share of matching requests that it hits; 1 when not given
	Fault
}

// armFault arms a fault; the oldest one that matches a request takes it.
func (s *Sandbox) armFault(ctx context.Context, _ *http.Request, body []byte) (answer, error) {
	a := armed{Method: http.MethodPost, Rate: 1}
	if err := strictJSON(body, &a); err != nil {
		return refuse(http.StatusBadRequest, "malformed", "The body is a fault: "+err.Error()), nil
	}
	if err := a.check(); err != nil {
		return refuse(http.StatusBadRequest, "malformed", err.Error()), nil
	}
	one := 1
	if a.Count == nil {
		a.Count = &one
	}
	if *a.Count < 0 || a.Rate <= 0 || a.Rate > 1 || !clean(a.System, a.Method, a.Path, a.Key, a.Object) {
		return refuse(http.StatusBadRequest, "malformed", "count is 0 or more, rate is above 0 and up to 1."), nil
	}
	if a.Method == "*" {
		a.Method = ""
	}
	fault, err := json.Marshal(a.Fault)
	if err != nil {
		return answer{}, fmt.Errorf("writing a fault: %w", err)
	}
	err = s.alone(ctx, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, `
			INSERT INTO sandbox.faults (system, method, path, key, object, rate, remaining, fault)
			VALUES ($1, $2, $3, $4, $5, $6, nullif($7, 0), $8) RETURNING id`,
			a.System, a.Method, a.Path, a.Key, a.Object, a.Rate, *a.Count, string(fault)).Scan(&a.ID)
	})
	if err != nil {
		return answer{}, fmt.Errorf("arming a fault: %w", err)
	}
	return say(a, 0)
}

// alone uses one connection, on which database/sql never silently repeats a
// statement whose answer was lost.
func (s *Sandbox) alone(ctx context.Context, use func(*sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(use(conn), conn.Close())
}

// listFaults tells the faults that still wait, in the order they were armed.
func (s *Sandbox) listFaults(ctx context.Context, _ *http.Request, _ []byte) (answer, error) {
	return listing[armed]{
		what: "faults", limit: 500, scan: (*armed).scan,
		cursor: func(a armed) string { return strconv.FormatInt(a.ID, 10) },
		query: `
			SELECT id, system, method, path, key, object, rate, coalesce(remaining, 0), fault
			  FROM sandbox.faults WHERE remaining IS NULL OR remaining > 0 ORDER BY id LIMIT $1`,
	}.read(ctx, s.db)
}

func (a *armed) scan(r row) error {
	var fault []byte
	if err := r.Scan(&a.ID, &a.System, &a.Method, &a.Path, &a.Key, &a.Object, &a.Rate, &a.Count, &fault); err != nil {
		return err
	}
	return json.Unmarshal(fault, &a.Fault)
}

func (s *Sandbox) clearFaults(ctx context.Context, _ *http.Request, _ []byte) (answer, error) {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM sandbox.faults`); err != nil {
		return answer{}, fmt.Errorf("clearing faults: %w", err)
	}
	return say(map[string]bool{"cleared": true}, 0)
}
