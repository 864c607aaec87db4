package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// arrive writes the request to the log before anything else happens, and takes
// an armed fault when the request passed the checks and brought none itself.
func (s *Sandbox) arrive(ctx context.Context, c *call, admitted bool) error {
	var taken sql.NullString
	err := s.alone(ctx, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, `
			WITH hit AS (
				UPDATE sandbox.faults SET remaining = remaining - 1
				 WHERE id = (SELECT id FROM sandbox.faults
				              WHERE $8 AND $9 = '' AND (remaining IS NULL OR remaining > 0)
				                AND system IN ('', $1) AND method IN ('', $2) AND starts_with($3, path)
				                AND key IN ('', $4) AND object IN ('', $5) AND random() < rate
				              ORDER BY id LIMIT 1 FOR UPDATE)
				RETURNING fault
			)
			INSERT INTO sandbox.calls (system, method, path, key, object, actor, credential, fault)
			VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce((SELECT fault::jsonb ->> 'fault' FROM hit), $9))
			RETURNING id, (SELECT fault FROM hit)`,
			c.system, c.Method, c.path, c.key, c.object, c.actor, string(c.credential), admitted, string(c.fault.Kind)).
			Scan(&c.id, &taken)
	})
	if err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	if taken.Valid {
		if err := json.Unmarshal([]byte(taken.String), &c.fault); err != nil {
			return fmt.Errorf("reading an armed fault: %w", err)
		}
	}
	return nil
}

// answered notes what was answered; 0 is a connection that was dropped.
func (s *Sandbox) answered(ctx context.Context, c *call, status int) error {
	_, err := s.db.ExecContext(ctx, `UPDATE sandbox.calls SET status = $2 WHERE id = $1`, c.id, status)
	return err
}

// logged is one request in the log.
type logged struct {
	ID         int64     `json:"id"`
	RequestID  string    `json:"request_id"` // the Request-Id of the answer
	At         time.Time `json:"at"`
	System     string    `json:"system"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	Key        string    `json:"key"`
	Object     string    `json:"object"`
	Actor      string    `json:"actor"`
	Credential string    `json:"credential"`
	Fault      string    `json:"fault"`
	Status     *int      `json:"status"` // null: not answered yet; 0: the connection was dropped
}

// requestID is how a request is named to its caller and to the desk's support.
func requestID(id int64) string { return "rq-" + strconv.FormatInt(id, 10) }

// listCalls pages through the log, oldest first; the cursor is the last id.
func (s *Sandbox) listCalls(ctx context.Context, r *http.Request, _ []byte) (answer, error) {
	q := r.URL.Query()
	limit, err := parseLimit(q.Get("limit"))
	after, cursorErr := strconv.ParseInt("0"+q.Get("cursor"), 10, 64)
	if err != nil || cursorErr != nil || !clean(q.Get("system"), q.Get("key"), q.Get("object")) {
		return refuse(http.StatusBadRequest, "malformed", "limit is 1 to 500, cursor is the one you were given."), nil
	}
	return listing[logged]{
		what: "the log", limit: limit, scan: (*logged).scan,
		cursor: func(l logged) string { return strconv.FormatInt(l.ID, 10) },
		query: `
			SELECT id, at, system, method, path, key, object, actor, credential, fault, status
			  FROM sandbox.calls
			 WHERE id > $1 AND ($2 = '' OR system = $2) AND ($3 = '' OR key = $3) AND ($4 = '' OR object = $4)
			 ORDER BY id LIMIT $5`,
		args: []any{after, q.Get("system"), q.Get("key"), q.Get("object")},
	}.read(ctx, s.db)
}

func (l *logged) scan(r row) error {
	err := r.Scan(&l.ID, &l.At, &l.System, &l.Method, &l.Path, &l.Key, &l.Object, &l.Actor, &l.Credential, &l.Fault, &l.Status)
	l.RequestID = requestID(l.ID)
	return err
}

// countKey tells how many write requests came in under a key, and how often the
// business effect really happened.
func (s *Sandbox) countKey(ctx context.Context, r *http.Request, _ []byte) (answer, error) {
	system, key := r.URL.Query().Get("system"), r.URL.Query().Get("key")
	effects := map[string]string{Catalog: "catalog_effects", Refunds: "refunds", Orders: "order_changes",
		Notes: "customer_notes", Service: "service_effects", Messages: "message_effects"}[system]
	if effects == "" || key == "" || !clean(key) {
		return refuse(http.StatusBadRequest, "malformed", "Name a system and a key: ?system=refunds&key=…"), nil
	}
	var counts struct {
		Received   int `json:"received"`
		Executions int `json:"executions"`
	}
	err := s.db.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM sandbox.calls WHERE system = $1 AND key = $2 AND method = 'POST' AND path NOT LIKE '%/fence'),
		       (SELECT count(*) FROM sandbox.`+effects+` WHERE key = $2)`, system, key).Scan(&counts.Received, &counts.Executions)
	if err != nil {
		return answer{}, fmt.Errorf("counting a key: %w", err)
	}
	return say(counts, 0)
}

// posted is one callback in the outbox.
type posted struct {
	ID         int64           `json:"id"`
	System     string          `json:"system"`
	Key        string          `json:"key"`
	MessageID  string          `json:"message_id"` // its webhook-id
	Forged     string          `json:"forged"`     // why it is false; empty: it is true
	Body       json.RawMessage `json:"body"`
	Remaining  int             `json:"remaining"`   // deliveries still to be made
	Delivered  int             `json:"delivered"`   // deliveries that were answered with 2xx
	Tries      int             `json:"tries"`       // failures since the last of them
	LastStatus *int            `json:"last_status"` // 0: there was no answer
	DueAt      time.Time       `json:"due_at"`
}

// listCallbacks pages through the outbox, oldest first; the cursor is the last id.
func (s *Sandbox) listCallbacks(ctx context.Context, r *http.Request, _ []byte) (answer, error) {
	q := r.URL.Query()
	limit, err := parseLimit(q.Get("limit"))
	after, cursorErr := strconv.ParseInt("0"+q.Get("cursor"), 10, 64)
	if err != nil || cursorErr != nil || !clean(q.Get("system"), q.Get("key")) {
		return refuse(http.StatusBadRequest, "malformed", "limit is 1 to 500, cursor is the one you were given."), nil
	}
	return listing[posted]{
		what: "callbacks", limit: limit,
		scan: func(p *posted, r row) error {
			var body []byte
			err := r.Scan(&p.ID, &p.System, &p.Key, &p.MessageID, &p.Forged, &body, &p.Remaining, &p.Delivered, &p.Tries, &p.LastStatus, &p.DueAt)
			p.Body = body
			return err
		},
		cursor: func(p posted) string { return strconv.FormatInt(p.ID, 10) },
		query: `
			SELECT id, system, key, message_id, forged, body, remaining, delivered, tries, last_status, due_at
			  FROM sandbox.callbacks
			 WHERE id > $1 AND ($2 = '' OR system = $2) AND ($3 = '' OR key = $3) ORDER BY id LIMIT $4`,
		args: []any{after, q.Get("system"), q.Get("key")},
	}.read(ctx, s.db)
}
