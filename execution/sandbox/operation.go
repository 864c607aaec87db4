package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// words are the states of a key that systems name differently. A decided key
// is SUCCEEDED, or FAILED: nothing was done under it and nothing will be. One
// that was promised something is ACCEPTED, then perhaps QUEUED, until then.
type words struct {
	undecided string // nobody asked for anything under the key, or it is still to arrive
	working   string // a request holds the key right now
}

// operationView is an operation as it is served.
type operationView struct {
	Key        string          `json:"key"`
	Status     string          `json:"status"`
	Fenced     bool            `json:"fenced"` // nothing more can happen under this key
	Operation  *string         `json:"operation"`
	ObjectID   *string         `json:"object_id"`
	Actor      *string         `json:"actor"`
	Executions int             `json:"executions"` // how often the business effect really happened
	HTTPStatus *int            `json:"http_status"`
	Answer     json.RawMessage `json:"answer"` // as it was given, or would be now that it is done
	At         *time.Time      `json:"at"`
}

func (o operation) view(executions int) operationView {
	at := o.at.UTC()
	if o.utcOffset != 0 {
		at = at.In(time.FixedZone("", o.utcOffset*60))
	}
	v := operationView{Key: o.key, Status: o.status, Executions: executions, At: &at}
	v.Fenced = o.status != accepted && o.status != queued
	if o.status == fenced {
		v.Status = failed
		return v
	}
	v.Operation, v.ObjectID, v.HTTPStatus, v.Answer = &o.name, &o.object, &o.httpStatus, o.body
	if o.actor != "" {
		v.Actor = &o.actor
	}
	return v
}

// operationRoutes are the same in every system: ask by key, fence a key, list
// a window. effects names the table of real effects.
func (s *Sandbox) operationRoutes(system, effects string, w words) []route {
	l := ledger{db: s.db, system: system, effects: effects, words: w}
	return []route{
		{system: system, method: http.MethodGet, path: "/operations", handle: l.list},
		{system: system, method: http.MethodGet, path: "/operations/{key}", handle: l.get},
		{system: system, method: http.MethodPost, path: "/operations/{key}/fence", write: true, handle: l.fence},
	}
}

type ledger struct {
	db              *sql.DB
	system, effects string
	words           words
}

// get says what is known of a key. A key that nobody holds and nobody decided
// may still be named by a request that has not arrived.
func (l ledger) get(ctx context.Context, c *call) (answer, error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return answer{}, fmt.Errorf("starting to read an operation: %w", err)
	}
	defer tx.Rollback() // read only
	key := c.PathValue("key")
	var free bool
	// Shared, so that two readers do not see each other as work in progress.
	err = tx.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock_shared(hashtextextended($1, 0))`, l.system+" "+key).Scan(&free)
	if err != nil {
		return answer{}, fmt.Errorf("looking whether a key is held: %w", err)
	}
	return l.say(ctx, tx, key, free)
}

// fence makes sure that nothing more happens under a key. A key that was
// decided stays as it is: the answer says how.
func (l ledger) fence(ctx context.Context, c *call) (answer, error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return answer{}, fmt.Errorf("starting to fence a key: %w", err)
	}
	defer tx.Rollback() // a no-op after the commit
	key := c.PathValue("key")
	if err := holdKey(ctx, tx, l.system, key); err != nil {
		return answer{}, err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO sandbox.operations (system, key, name, fingerprint, status)
		VALUES ($1, $2, 'fence', '', 'FENCED') ON CONFLICT (system, key) DO NOTHING`, l.system, key)
	if err != nil {
		return answer{}, fmt.Errorf("fencing a key: %w", err)
	}
	a, err := l.say(ctx, tx, key, true)
	if err != nil {
		return answer{}, err
	}
	if err := tx.Commit(); err != nil {
		return answer{}, fmt.Errorf("committing a fence: %w", err)
	}
	return a, nil
}

// say answers with the state of a key. free: no request holds it.
func (l ledger) say(ctx context.Context, tx *sql.Tx, key string, free bool) (answer, error) {
	o, found, err := findOperation(ctx, tx, l.system, key)
	if err != nil {
		return answer{}, err
	}
	if !found {
		v := operationView{Key: key, Status: l.words.undecided}
		if !free {
			v.Status = l.words.working
		}
		return say(v, 0)
	}
	var executions int
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM sandbox.`+l.effects+` WHERE key = $1`, key).Scan(&executions)
	if err != nil {
		return answer{}, fmt.Errorf("counting executions: %w", err)
	}
	return say(o.view(executions), 0)
}

// list serves the operations decided in [from, to), oldest first, a page at a
// time. A window that ends in the past does not change any more.
func (l ledger) list(ctx context.Context, c *call) (answer, error) {
	query := c.URL.Query()
	limit, err := parseLimit(query.Get("limit"))
	win, windowErr := parseWindow(query.Get)
	if err := errors.Join(err, windowErr); err != nil {
		return refuse(http.StatusBadRequest, "malformed", err.Error()), nil
	}
	return listing[operationView]{
		what: "operations", limit: limit, scan: l.scan,
		cursor: func(v operationView) string { return timeCursor(*v.At, v.Key) },
		query: `
			SELECT o.key, o.name, o.status, coalesce(o.object, ''), coalesce(o.actor, ''),
			       coalesce(o.http_status, 0), coalesce(o.body, ''), o.at, o.utc_offset,
			       (SELECT count(*) FROM sandbox.` + l.effects + ` e WHERE e.key = o.key)
			  FROM sandbox.operations o
			 WHERE o.system = $1 AND o.at >= $2 AND o.at < $3 AND (o.at, o.key) > ($4, $5)
			 ORDER BY o.at, o.key LIMIT $6`,
		args: []any{l.system, win.from, win.to, win.afterAt, win.afterKey},
	}.read(ctx, l.db)
}

func (l ledger) scan(v *operationView, r row) error {
	var o operation
	var executions int
	err := r.Scan(&o.key, &o.name, &o.status, &o.object, &o.actor, &o.httpStatus, &o.body, &o.at, &o.utcOffset, &executions)
	*v = o.view(executions)
	return err
}
