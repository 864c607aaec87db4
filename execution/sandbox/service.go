package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// serviceStep is how long a service request stays received, and then queued,
// unless a fault says otherwise.
const serviceStep = 1500 * time.Millisecond

// serviceRoutes is the service desk. It never does at once what it is asked for:
// a request is received, then queued, then done, and callbacks tell.
func (s *Sandbox) serviceRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return append([]route{
		{system: Service, method: get, path: "/health", handle: s.health},
		{system: Service, method: get, path: "/customers/{customer_id}/requests", object: "customer_id", handle: s.getServiceRequest},
		{system: Service, method: post, path: "/customers/{customer_id}/requests", object: "customer_id", write: true, handle: s.submitServiceRequest},
	}, s.operationRoutes(Service, "service_effects", words{undecided: "NOT_EXECUTED", working: "UNKNOWN"})...)
}

// requestTopics are what the desk helps with.
var requestTopics = []string{"delivery", "repair", "invoice", "call_back"}

func serviceID(id int64) string { return "SR-" + strconv.FormatInt(id, 10) }

// requested is how many requests a customer has, and what one key asked for.
type requested struct {
	CustomerID  string     `json:"customer_id"`
	Requests    int        `json:"requests"`
	Open        int        `json:"open"` // of them, not done and not refused
	Key         *string    `json:"key"`
	Found       bool       `json:"found"` // there is a request under the key
	RequestID   *string    `json:"request_id"`
	Status      *string    `json:"request_status"` // received, queued, done or refused
	Topic       *string    `json:"topic"`
	ReceivedAt  *time.Time `json:"received_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

func (s *Sandbox) getServiceRequest(ctx context.Context, c *call) (answer, error) {
	r := requested{CustomerID: c.object}
	if c.key != "" {
		r.Key = &c.key
	}
	var id sql.NullInt64
	err := s.db.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM sandbox.service_requests WHERE customer_id = $1),
		       (SELECT count(*) FROM sandbox.service_requests WHERE customer_id = $1 AND status IN ('received', 'queued')),
		       q.id, q.status, q.topic, q.at, q.done_at
		  FROM (VALUES (1)) one LEFT JOIN sandbox.service_requests q ON q.customer_id = $1 AND q.key = $2
		 ORDER BY q.id LIMIT 1`, c.object, c.key).
		Scan(&r.Requests, &r.Open, &id, &r.Status, &r.Topic, &r.ReceivedAt, &r.CompletedAt)
	if err != nil {
		return answer{}, fmt.Errorf("reading service requests: %w", err)
	}
	if r.Found = id.Valid; r.Found {
		name := serviceID(id.Int64)
		r.RequestID = &name
	}
	return say(r, 0)
}

// serviceRequest is a request whose form is right.
type serviceRequest struct {
	CustomerID string `json:"customer_id"`
	Topic      string `json:"topic"`
	Wish       string `json:"wish"` // what is wanted, in the customer's words
}

// submitServiceRequest receives a request, which proves that it was received.
func (s *Sandbox) submitServiceRequest(ctx context.Context, c *call) (answer, error) {
	if refusal := c.required(); refusal != nil {
		return *refusal, nil
	}
	var req serviceRequest
	if err := strictJSON(c.body, &req); err != nil || req.CustomerID == "" || req.CustomerID != c.object ||
		!slices.Contains(requestTopics, req.Topic) || !readable(req.Wish) {
		return refuse(http.StatusBadRequest, "malformed",
			fmt.Sprintf("The body is {customer_id, topic: one of %v, wish: 1 to %d bytes}, about the customer in the path.", requestTopics, maxReason)), nil
	}
	bound := fingerprint("submit_request", req.CustomerID, req.Topic, req.Wish, c.actor)
	return s.once(ctx, c, "submit_request", bound, func(ctx context.Context, tx *sql.Tx) (answer, error) {
		return receive(ctx, tx, c, req)
	})
}

// goesOn tells how long each step of a request takes, and how it goes on.
func (c *call) goesOn() (time.Duration, Delivery) {
	switch {
	case c.fault.Kind != Accept:
		return serviceStep, Delivery{Queued: true}
	case c.fault.Early:
		return 0, c.fault.Delivery
	}
	return c.fault.delay(), c.fault.Delivery
}

func receive(ctx context.Context, tx *sql.Tx, c *call, req serviceRequest) (answer, error) {
	step, how := c.goesOn()
	delivery, err := json.Marshal(how)
	if err != nil {
		return answer{}, fmt.Errorf("writing how a request goes on: %w", err)
	}
	var id int64
	var at time.Time
	err = tx.QueryRowContext(ctx, `
		INSERT INTO sandbox.service_requests (key, customer_id, topic, wish, actor, delivery, step_ms, trace, due_at)
		VALUES ($1, $2, $3, $4, nullif($5, ''), $6, $7::integer, $8, clock_timestamp() + $7::integer * interval '1 millisecond') RETURNING id, at`,
		c.key, req.CustomerID, req.Topic, req.Wish, c.actor, string(delivery), step.Milliseconds(), c.trace).Scan(&id, &at)
	if err != nil {
		return answer{}, fmt.Errorf("receiving a service request: %w", err)
	}
	a, err := say(struct {
		Status     string    `json:"status"`
		Operation  string    `json:"operation_id"`
		RequestID  string    `json:"request_id"`
		CustomerID string    `json:"customer_id"`
		Topic      string    `json:"topic"`
		ReceivedAt time.Time `json:"received_at"`
	}{accepted, c.key, serviceID(id), req.CustomerID, req.Topic, at}, 0)
	a.status = http.StatusAccepted
	return a, err
}

// received is a request that is still to be done.
type received struct {
	id                   int64
	key, customer, topic string
	status, trace        string
	how                  Delivery
}

// serveNext takes the next request that is due one step on. found: there was one.
func (s *Sandbox) serveNext(ctx context.Context) (found bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("starting to serve: %w", err)
	}
	defer tx.Rollback() // a no-op after the commit
	var r received
	var how []byte
	err = tx.QueryRowContext(ctx, `
		SELECT id, key, customer_id, topic, status, delivery, trace FROM sandbox.service_requests
		 WHERE due_at <= clock_timestamp() ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED`).
		Scan(&r.id, &r.key, &r.customer, &r.topic, &r.status, &how, &r.trace)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding a request to serve: %w", err)
	}
	if err := json.Unmarshal(how, &r.how); err != nil {
		return false, fmt.Errorf("reading how a request goes on: %w", err)
	}
	if r.how.Queued && r.status == "received" {
		err = r.queue(ctx, tx)
	} else {
		err = r.finish(ctx, tx)
	}
	if err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("committing a step of a request: %w", err)
	}
	return true, nil
}

func (r received) news() news {
	return news{system: Service, key: r.key, about: "service_request", how: r.how, trace: r.trace,
		asked: map[string]any{"request_id": serviceID(r.id), "customer_id": r.customer, "topic": r.topic}}
}

// queue says that the request is waiting its turn.
func (r received) queue(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
		WITH operation AS (
			UPDATE sandbox.operations SET status = 'QUEUED' WHERE system = 'service' AND key = $2 AND status = 'ACCEPTED'
		)
		UPDATE sandbox.service_requests SET status = 'queued', due_at = clock_timestamp() + step_ms * interval '1 millisecond' WHERE id = $1`, r.id, r.key)
	if err != nil {
		return fmt.Errorf("queueing a request: %w", err)
	}
	return r.news().callBack(ctx, tx, queued, answer{})
}

// finish does what was asked for, or refuses it, and says so under the key and
// by callback. What is done in word only stays as it was.
func (r received) finish(ctx context.Context, tx *sql.Tx) error {
	status, result := "done", answer{}
	var err error
	switch r.how.Outcome {
	case OutcomeRefused:
		status, result = "refused", refuse(http.StatusUnprocessableEntity, "desk-refused", "The desk cannot help with this.")
	case OutcomeInWord:
		status = r.status
	}
	if result.status == 0 {
		result, err = say(map[string]string{"status": succeeded, "operation_id": r.key, "request_id": serviceID(r.id), "customer_id": r.customer, "topic": r.topic}, 0)
		if err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `
		WITH operation AS (
			UPDATE sandbox.operations SET status = $4, http_status = $5, body = $6
			 WHERE system = 'service' AND key = $2 AND status IN ('ACCEPTED', 'QUEUED')
		)
		UPDATE sandbox.service_requests SET status = $3, due_at = NULL, done_at = CASE WHEN $3 = 'done' THEN clock_timestamp() END WHERE id = $1`,
		r.id, r.key, status, outcomeOf(result), result.status, string(result.body))
	if err != nil {
		return fmt.Errorf("finishing a request: %w", err)
	}
	return r.news().callBack(ctx, tx, outcomeOf(result), result)
}
