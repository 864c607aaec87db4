// Package sandbox is a small company to try things on: a catalogue whose prices
// can be changed, a desk that refunds orders and a desk that cancels them, a file
// of customers, a ledger, a desk for service requests, a message service and a
// delivery desk. They are real HTTP servers with their own schema in PostgreSQL,
// their own credentials for reading and for writing, idempotency records (the
// ledger and the message service have none), and faults that can be switched on
// per request. They know nothing of the program that calls them.
//
// What every system but the message service promises a caller:
//
//   - A write names an Idempotency-Key. The first request with a key decides;
//     the same request again gets the stored answer with the header
//     Idempotent-Replayed: true; the same key with other content is 422. Answers
//     that refuse for a business reason are stored too, so they stay true.
//   - 409 means that a request with the same key is being worked on right now.
//   - A key can be fenced: a later write with it is refused with 410.
//   - Requests that miss a header, a credential or a readable body (400, 401,
//     403, 413, 428) leave no trace under the key.
//   - Nothing acts later than 50 seconds after its request came in, unless it
//     was accepted: then its key is ACCEPTED or QUEUED until it is done.
//   - Every answer names its request: Request-Id, which the log has too.
//
// The catalogue, under /catalog:
//
//	GET  /health
//	GET  /products?limit=&cursor=
//	GET  /products/{product_id}                           ETag: "version"
//	POST /products/{product_id}/price                     Idempotency-Key, If-Match, optional X-Actor
//	GET  /people/{person_id}/may_set_price?product_id=
//	GET  /products/{product_id}/notices?execution_key=
//	POST /products/{product_id}/notices                   Idempotency-Key, optional X-Actor
//
// The refund desk, under /refunds:
//
//	GET  /health
//	GET  /orders?limit=&cursor=
//	GET  /orders/{order_id}                               ETag: "version"
//	GET  /orders/{order_id}/refunds?execution_key=
//	GET  /keys/{key}/refund
//	POST /orders/{order_id}/refunds                       Idempotency-Key, optional If-Match and X-Actor
//
// It may answer 202 and pay later, then send a callback in the form of Standard
// Webhooks: {type, timestamp, data}, where data has operation_id (the key),
// status (QUEUED, SUCCEEDED or FAILED) and what the operation answers. Order
// 10094 is always refunded that way; the fault "accept" does it to any. A
// callback that is not answered with 2xx is sent again, under the same
// webhook-id; it may come twice, and those about one key come in their order.
//
// The order desk, under /orders, with orders and versions of its own:
//
//	GET  /health
//	GET  /orders?limit=&cursor=
//	GET  /orders/{order_id}                               ETag: "version"
//	GET  /orders/{order_id}/coupon                        ETag: "version" of the order
//	POST /orders/{order_id}/cancel                        Idempotency-Key, optional If-Match and X-Actor
//	POST /orders/{order_id}/coupon/restore                Idempotency-Key, optional If-Match and X-Actor
//
// It cancels order 10087 and means it. Cancelling 10086 answers ok and writes
// nothing; cancelling 10088 and 10089 answers ok, voids the coupon and leaves
// the order paid; restoring the coupon of 10089 answers ok and writes nothing.
//
// The customer file, under /notes. Only who looks after a customer may write, and
// only about conversations with that customer:
//
//	GET  /health
//	GET  /customers?limit=&cursor=
//	GET  /conversations/{conversation_id}
//	GET  /people/{person_id}/may_save_minutes?customer_id=
//	GET  /customers/{customer_id}/notes?execution_key=
//	POST /customers/{customer_id}/notes                   Idempotency-Key, optional X-Actor
//
// The service desk, under /service. A request is answered with 202, is queued
// after a while and done after another; a callback tells each:
//
//	GET  /health
//	GET  /customers/{customer_id}/requests?execution_key=
//	POST /customers/{customer_id}/requests                Idempotency-Key, optional X-Actor
//
// The ledger, under /ledger, which keeps no record of keys: it refuses by the
// version of a reconciliation (412) and by ids that are taken (409):
//
//	GET  /health
//	GET  /reconciliations?limit=&cursor=
//	GET  /reconciliations/{reconciliation_id}             ETag: "version"
//	GET  /reconciliations/{reconciliation_id}/comparison  ETag: "version"
//	GET  /reconciliations/{reconciliation_id}/adjustments?reference=
//	GET  /reconciliations/{reconciliation_id}/reports/{report_id}
//	GET  /vouchers/{voucher}
//	GET  /people/{person_id}/rights/{right}               sign_off, report or post
//	POST /reconciliations/{reconciliation_id}/sign_off    optional If-Match and X-Actor
//	POST /reconciliations/{reconciliation_id}/reports     optional If-Match and X-Actor
//	POST /reconciliations/{reconciliation_id}/adjustments optional If-Match and X-Actor
//
// The message service, under /messages, which keeps what it takes in memory only
// and has no records of keys:
//
//	GET  /health
//	GET  /rules/lookup?question=                                   the rule in force, or the document that is asked about
//	GET  /people/{person_id}/may_send?conversation_id=
//	GET  /conversations/{conversation_id}/messages/{message_id}    X-Actor; ?body= to compare with
//	POST /conversations/{conversation_id}/messages/{message_id}    X-Actor; {body}
//
// 200 accepted_in_memory says that this process took the message, no more. An id
// that it holds is 409, also for the same body from the same person. Who does
// not belong to a conversation is answered 404, as if there were none. A body has
// 1 to 6 bytes of UTF-8, a request 4096 at most; a rule that is only proposed
// changes neither. Of the faults inside the work it knows only lie.
//
// The delivery desk, under /deliveries, which nobody writes to:
//
//	GET  /health
//	GET  /orders/{order_ref}                              X-Actor: the customer whose session it is
//
// An order of somebody else is answered 404, as if there were none.
//
// All of them but the last three, for finding out:
//
//	GET  /operations/{key}
//	POST /operations/{key}/fence                          write token
//	GET  /operations?from=&to=&limit=&cursor=
//
// What people change by hand, with the control token; no key, no version:
//
//	PUT    /catalog/people/{person_id}       {may_set_price, name?}
//	PUT    /catalog/products/{product_id}    {price} or {status}
//	PUT    /orders/orders/{order_id}         {status?, cancels?, restores?}
//	PUT    /refunds/orders/{order_id}        {status} or {settles_after_ms}; 0: paid at once
//	PUT    /refunds/callback                 {url, signing?: current, both, next}
//	PUT    /service/callback                 the same
//	PUT    /notes/customers/{customer_id}    {keeper_id}
//	PUT    /ledger/people/{person_id}        {rights}
//	PUT    /messages/conversations/{conversation_id}/members/{person_id}   {member}
//	PUT    /messages/rules/{document_id}     {rule, body_limit_bytes}, only ever proposed
//	DELETE /messages/memory                  what a restart of the service does
//
// Under /faults, with the control token:
//
//	POST   /faults           arm one
//	GET    /faults           what still waits
//	DELETE /faults           clear all
//	GET    /faults/log?system=&key=&object=&limit=&cursor=
//	GET    /faults/counts?system=&key=                    {received, executions}
//	GET    /faults/callbacks?system=&key=&limit=&cursor=  the outbox: what was and will be delivered
//	POST   /faults/orders      {prefix, count, amount}                 orders to refund: prefix-000001 and on
//	POST   /faults/refunds     {prefix, count, amount, from, step_ms}  paid refunds, as SeedRefunds writes them
//	POST   /faults/divergence  {kind, keys}                            what the desk has differs from what it answered
package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	_ "github.com/lib/pq" // the driver named "postgres"
)

// The systems, as they appear in paths, logs and fault rules.
const (
	Catalog    = "catalog"
	Refunds    = "refunds"
	Orders     = "orders"
	Notes      = "notes"
	Ledger     = "ledger"
	Service    = "service"
	Messages   = "messages"
	Deliveries = "deliveries"
)

// Systems lists them.
func Systems() []string {
	return []string{Catalog, Refunds, Orders, Notes, Ledger, Service, Messages, Deliveries}
}

// maxConnections keeps two cores busy without queueing inside PostgreSQL.
const maxConnections = 16

// Sandbox is the set of business systems over one database. Any number of
// them may share that database; nothing that matters lives in the process.
type Sandbox struct {
	db     *sql.DB
	tokens Tokens
	life   context.Context // ends with Close; requests that are being delayed end with it
	end    context.CancelFunc

	caller  *http.Client   // delivers callbacks
	start   sync.Once      // of the workers
	workers sync.WaitGroup // settle and call back
}

// Open connects to PostgreSQL and creates the schema "sandbox" where it is
// missing, so the role in dsn must be allowed to create one. Tokens that are
// left empty are made up; Tokens tells them. The caller closes the sandbox.
func Open(ctx context.Context, dsn string, tokens Tokens) (*Sandbox, error) {
	tokens, err := tokens.complete()
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox database: %w", err)
	}
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	if err := createSchema(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	life, end := context.WithCancel(context.Background())
	return &Sandbox{db: db, tokens: tokens, life: life, end: end, caller: newCaller()}, nil
}

// Close drops what is being delayed and the connections. A request whose
// effect has not been committed by then has not happened.
func (s *Sandbox) Close() error {
	s.end()
	s.workers.Wait()
	return s.db.Close()
}

// Tokens returns the credentials in force, made-up ones included.
func (s *Sandbox) Tokens() Tokens { return s.tokens }

// wait pauses for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Handler serves every system under its name, and /faults, where the
// faults are armed and everything that was received can be read.
//
// A process that serves also settles what was accepted and delivers callbacks,
// until Close.
func (s *Sandbox) Handler() http.Handler {
	s.start.Do(s.work)
	mux := http.NewServeMux()
	for _, system := range [][]route{s.catalogRoutes(), s.refundRoutes(), s.shopOrderRoutes(), s.noteRoutes(), s.ledgerRoutes(), s.serviceRoutes(), s.messageRoutes(), s.deliveryRoutes()} {
		for _, rt := range system {
			mux.Handle(rt.method+" /"+rt.system+rt.path, s.serve(rt))
		}
	}
	for _, routes := range []map[string]controlHandler{s.controlRoutes(), s.backOfficeRoutes()} {
		for pattern, handle := range routes {
			mux.Handle(pattern, s.control(handle))
		}
	}
	return mux
}
