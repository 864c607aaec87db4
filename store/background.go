package store

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"sync"
	"time"

	"countersign/approvals"
)

// pulse tells waiting readers of this process that something was written.
// Writes of other processes are found by asking again.
type pulse struct {
	mu   sync.Mutex
	next chan struct{}
}

func (p *pulse) ring() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// Changes returns a channel that closes when this process writes the next
// change of any action. It is a hint: read again after it.
func (db *DB) Changes() <-chan struct{} {
	db.pulse.mu.Lock()
	defer db.pulse.mu.Unlock()
	if db.pulse.next == nil {
		db.pulse.next = make(chan struct{})
	}
	return db.pulse.next
}

// Loop runs work every interval until the context ends, in one process at a
// time: whoever holds the advisory lock of that name. Another process takes
// over when its holder is gone.
func (db *DB) Loop(ctx context.Context, log *slog.Logger, name string, every time.Duration, work func(context.Context) error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := db.held(ctx, name, ticker, work); err != nil && ctx.Err() == nil {
			log.Warn("background work failed", "name", name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// held runs work at every tick as long as this connection holds the lock.
func (db *DB) held(ctx context.Context, name string, ticker *time.Ticker, work func(context.Context) error) error {
	conn, err := db.locks.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var got bool
	if err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock(hashtextextended($1, 4803))`, name).Scan(&got); err != nil || !got {
		return err
	}
	defer func() {
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if _, err := conn.ExecContext(free, `SELECT pg_advisory_unlock_all()`); err != nil {
			conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool must not keep a connection that may hold the lock
		}
	}()
	for {
		if err := conn.PingContext(ctx); err != nil {
			return err
		}
		if err := work(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Recounts returns proposals whose approvals may be enough since somebody who
// decided on them was changed, by serial after one.
func (db *DB) Recounts(ctx context.Context, after int64, limit int) ([]approvals.Recount, error) {
	var found []approvals.Recount
	err := db.selectAll(ctx, &found, `
SELECT action_id, serial FROM recounts WHERE serial > $1 ORDER BY serial LIMIT $2`, after, limit)
	return found, err
}

// Recounted removes what was counted, unless somebody was changed since.
func (db *DB) Recounted(ctx context.Context, r approvals.Recount) error {
	_, err := db.saved(ctx, `DELETE FROM recounts WHERE action_id = $1 AND serial = $2 RETURNING action_id`, r.ActionID, r.Serial)
	return err
}
