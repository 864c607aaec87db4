package sandbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/lib/pq"
)

// The state of a key as it is stored. A key without a row was not decided.
const (
	succeeded = "SUCCEEDED"
	failed    = "FAILED"
	fenced    = "FENCED"
)

// busy says whether err is a wait for a key or an object that took too long.
// Nothing was done then.
func busy(err error) bool {
	var refused *pq.Error
	return errors.As(err, &refused) && refused.Code == "55P03" // lock_not_available
}

// operation is what was decided under a key.
type operation struct {
	key, name, fingerprint, status string
	object, actor                  string
	httpStatus                     int
	etag                           string
	body                           []byte
	at                             time.Time
	utcOffset                      int // minutes; how the time is written
}

// fingerprint binds a key to what it was first used for.
func fingerprint(parts ...any) string {
	data, _ := json.Marshal(parts) // strings and integers only: cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// effect does the business part inside a transaction. An answer of 400 or
// more is a refusal for a business reason: it must not have changed anything. A
// hollow answer takes back what was changed.
type effect func(context.Context, *sql.Tx) (answer, error)

// once performs an effect at most once per key. Holding the key is an advisory
// lock, so a process that dies never leaves a key locked, and the record and
// the effect are one transaction.
func (s *Sandbox) once(ctx context.Context, c *call, name, bound string, act effect) (answer, error) {
	return s.within(c, name, func(tx *sql.Tx) (answer, bool, error) {
		if err := holdKey(ctx, tx, c.system, c.key); err != nil {
			return answer{}, false, err
		}
		if !c.unkeyed {
			prior, found, err := findOperation(ctx, tx, c.system, c.key)
			if err != nil {
				return answer{}, false, err
			}
			if found {
				return prior.again(bound), false, nil
			}
		}
		a, keep, err := s.affect(ctx, tx, c, act)
		if err != nil || !keep {
			return a, false, err
		}
		return a, true, record(ctx, tx, c, name, bound, a)
	})
}

// each performs an effect every time it is asked for: what keeps no record of
// keys must refuse a repetition by what it knows of the object.
func (s *Sandbox) each(ctx context.Context, c *call, name string, act effect) (answer, error) {
	return s.within(c, name, func(tx *sql.Tx) (answer, bool, error) {
		if err := boundWait(ctx, tx); err != nil {
			return answer{}, false, err
		}
		return s.affect(ctx, tx, c, act)
	})
}

// within does work in a transaction, which is committed when work says that
// something is to be kept.
func (s *Sandbox) within(c *call, name string, work func(*sql.Tx) (a answer, keep bool, err error)) (answer, error) {
	tx, err := s.db.BeginTx(s.life, nil) // outlives the request when it lags
	if err != nil {
		return answer{}, fmt.Errorf("starting %s: %w", name, err)
	}
	lagging := false
	defer func() {
		if !lagging {
			_ = tx.Rollback() // a no-op after the commit; what makes a lie of it otherwise
		}
	}()
	a, keep, err := work(tx)
	if err != nil {
		return answer{}, err
	}
	if !keep {
		return a, nil
	}
	if c.fault.Kind == Lag {
		lagging = true
		s.workers.Go(func() { s.commitLate(tx, c.fault.delay()) })
		return a, nil
	}
	if err := tx.Commit(); err != nil {
		return answer{}, fmt.Errorf("committing %s: %w", name, err)
	}
	return a, nil
}

// commitLate makes seen what was answered before. The transaction ends with the
// sandbox if that is sooner.
func (s *Sandbox) commitLate(tx *sql.Tx, after time.Duration) {
	if wait(s.life, after) != nil {
		return
	}
	if err := tx.Commit(); err != nil {
		slog.Error("sandbox lost what it had answered", "error", err)
	}
}

// affect runs the effect; a system that only records takes it back again. keep
// is false for what was answered and is not to stay.
func (s *Sandbox) affect(ctx context.Context, tx *sql.Tx, c *call, act effect) (a answer, keep bool, err error) {
	if c.fault.Kind == Slow {
		if err := wait(ctx, c.fault.delay()); err != nil {
			return answer{}, false, err
		}
	}
	if c.fault.Kind == RecordOnly {
		a, err = takenBack(ctx, tx, act)
	} else {
		a, err = act(ctx, tx)
	}
	return a, !a.hollow && c.fault.Kind != Lie, err
}

// takenBack runs an effect, keeps what it answers and undoes what it did.
func takenBack(ctx context.Context, tx *sql.Tx, act effect) (answer, error) {
	if _, err := tx.ExecContext(ctx, `SAVEPOINT effect`); err != nil {
		return answer{}, fmt.Errorf("marking the effect: %w", err)
	}
	a, err := act(ctx, tx)
	if err != nil {
		return answer{}, err
	}
	if _, err := tx.ExecContext(ctx, `ROLLBACK TO SAVEPOINT effect`); err != nil {
		return answer{}, fmt.Errorf("taking the effect back: %w", err)
	}
	return a, nil
}

// again answers a request whose key was decided before.
func (o operation) again(bound string) answer {
	switch {
	case o.status == fenced:
		return refuse(http.StatusGone, "key-fenced", "This key was fenced; nothing will ever be done under it.")
	case o.fingerprint != bound:
		return refuse(http.StatusUnprocessableEntity, "idempotency-key-reused", "This key was used for other content; nothing was done.")
	}
	return answer{status: o.httpStatus, etag: o.etag, body: o.body, replayed: true}
}

// holdKey waits up to two seconds for the key, and later as long for an
// object, and holds the key until the transaction ends.
func holdKey(ctx context.Context, tx *sql.Tx, system, key string) error {
	if err := boundWait(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, system+" "+key); err != nil {
		return fmt.Errorf("holding a key: %w", err)
	}
	return nil
}

func boundWait(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '2s'`); err != nil {
		return fmt.Errorf("bounding the wait for a lock: %w", err)
	}
	return nil
}

// findOperation reads what was decided under a key.
func findOperation(ctx context.Context, q querier, system, key string) (operation, bool, error) {
	o := operation{key: key}
	err := q.QueryRowContext(ctx, `
		SELECT name, fingerprint, status, coalesce(object, ''), coalesce(actor, ''),
		       coalesce(http_status, 0), etag, coalesce(body, ''), at, utc_offset
		  FROM sandbox.operations WHERE system = $1 AND key = $2`, system, key).
		Scan(&o.name, &o.fingerprint, &o.status, &o.object, &o.actor, &o.httpStatus, &o.etag, &o.body, &o.at, &o.utcOffset)
	if errors.Is(err, sql.ErrNoRows) {
		return operation{}, false, nil
	}
	if err != nil {
		return operation{}, false, fmt.Errorf("reading an operation: %w", err)
	}
	return o, true, nil
}

// outcomeOf is the state of a key under which this was answered.
func outcomeOf(a answer) string {
	switch {
	case a.status >= 400:
		return failed
	case a.status == http.StatusAccepted:
		return accepted
	}
	return succeeded
}

// record stores the answer under the key. Only a delivery that did not honour
// the key finds one there; it leaves the first as it is.
func record(ctx context.Context, tx *sql.Tx, c *call, name, bound string, a answer) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO sandbox.operations (system, key, name, fingerprint, status, object, actor, http_status, etag, body)
		VALUES ($1, $2, $3, $4, $5, $6, nullif($7, ''), $8, $9, $10)
		ON CONFLICT (system, key) DO NOTHING`,
		c.system, c.key, name, bound, outcomeOf(a), c.object, c.actor, a.status, a.etag, string(a.body))
	if err != nil {
		return fmt.Errorf("recording an operation: %w", err)
	}
	return nil
}

// required checks the key of a write, which every write needs.
func (c *call) required() *answer {
	if c.Header.Get("Idempotency-Key") == "" {
		refusal := refuse(http.StatusBadRequest, "missing-idempotency-key", "Send an Idempotency-Key; the same one when you repeat the request.")
		return &refusal
	}
	return nil
}
