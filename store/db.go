// Package store holds all runtime SQL, a file per topic. It implements the
// small interfaces that the domain packages and the handlers declare.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"countersign/action"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// DB is a pool of connections that work as the application's role, with every
// statement prepared once per connection.
type DB struct {
	pool       *sqlx.DB
	locks      *sql.DB  // connections that only hold a lock, so that work finds its own
	statements sync.Map // SQL text → *sqlx.Stmt
	patience   time.Duration
	pulse      pulse
}

// Options bound what the pool and the server may take for us.
type Options struct {
	MaxConns         int           // default 12: on few cores more only wait for each other
	StatementTimeout time.Duration // enforced by the server; default 10 s
}

// Open connects to the database that dsn names (URL form). Every connection
// takes the role countersign_app, so that the running console cannot change
// events whoever the URL's user is.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if o.MaxConns == 0 {
		o.MaxConns = 12
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 10 * time.Second
	}
	dsn, err := withOptions(dsn, fmt.Sprintf("-c role=countersign_app -c statement_timeout=%d -c idle_in_transaction_session_timeout=%d",
		o.StatementTimeout.Milliseconds(), o.StatementTimeout.Milliseconds()))
	if err != nil {
		return nil, err
	}
	pool, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	locks, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	pool.SetMaxOpenConns(o.MaxConns)
	pool.SetMaxIdleConns(o.MaxConns)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reaching the database: %w", err), pool.Close())
	}
	// Longer than any statement: it only ends a wait for a connection, or for a
	// server that is gone.
	return &DB{pool: pool, locks: locks, patience: 2 * o.StatementTimeout}, nil
}

// withOptions adds server settings to a URL, keeping those it has.
func withOptions(dsn, options string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return "", errors.New("the database URL is not a URL such as postgres://user:password@host:5432/countersign?sslmode=verify-full")
	}
	q := u.Query()
	if !q.Has("sslmode") {
		return "", errors.New("the database URL does not say sslmode: add sslmode=verify-full, or sslmode=disable on a unix socket")
	}
	q.Set("options", strings.TrimSpace(options+" "+q.Get("options")))
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Close ends all connections.
func (db *DB) Close() error { return errors.Join(db.pool.Close(), db.locks.Close()) }

// Ready reports whether the database answers and takes changes: a standby, and one
// that is set to be read only, does not. Whether it has room is only known by writing.
func (db *DB) Ready(ctx context.Context) error {
	var changes bool
	err := db.pool.GetContext(ctx, &changes, `SELECT current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery() AS changes`)
	if err == nil && !changes {
		return errReadOnly(nil)
	}
	return mapError(err)
}

// Pool is the pool itself, for checks such as migrations.Current.
func (db *DB) Pool() *sql.DB { return db.pool.DB }

// prepared returns the statement for a query, prepared on first use.
func (db *DB) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if s, ok := db.statements.Load(query); ok {
		return s.(*sqlx.Stmt), nil
	}
	s, err := db.pool.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if kept, raced := db.statements.LoadOrStore(query, s); raced {
		return kept.(*sqlx.Stmt), s.Close()
	}
	return s, nil
}

// get reads one row; sql.ErrNoRows when there is none.
func (db *DB) get(ctx context.Context, into any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, db.patience)
	defer cancel()
	s, err := db.prepared(ctx, query)
	if err != nil {
		return mapError(err)
	}
	return mapError(s.GetContext(ctx, into, args...))
}

// selectAll reads all rows into a slice.
func (db *DB) selectAll(ctx context.Context, into any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, db.patience)
	defer cancel()
	s, err := db.prepared(ctx, query)
	if err != nil {
		return mapError(err)
	}
	return mapError(s.SelectContext(ctx, into, args...))
}

// write runs a writing statement that returns one row into a struct, on a
// context that the caller's client cannot cancel. The driver may repeat it when
// an answer is lost: every statement here is guarded by an op or a version.
func (db *DB) write(ctx context.Context, into any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.patience)
	defer cancel()
	s, err := db.prepared(ctx, query)
	if err != nil {
		return mapError(err)
	}
	return lost(s.GetContext(ctx, into, args...))
}

// lost tells the errors after which nobody knows whether a write committed.
func lost(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var pe *pq.Error
	if errors.As(err, &pe) {
		if class := string(pe.Code.Class()); class == "08" || class == "57" && pe.Code != "57014" {
			return fmt.Errorf("%w: %w", action.ErrLost, err)
		}
		return mapError(err)
	}
	return fmt.Errorf("%w: %w", action.ErrLost, err)
}

// mapError turns what the database says into what a user can use, by code.
func mapError(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var pe *pq.Error
	if errors.As(err, &pe) {
		switch class := string(pe.Code.Class()); {
		case pe.Code == "22021", pe.Code == "54000":
			return action.Refuse(action.InvalidArgument, "A text is too long, or holds a character that cannot be stored.").Because("text").From(err)
		case class == "53":
			return action.Refuse(action.OutcomeUnknown, "The database has no room for more right now. Nothing was recorded: repeat the request with the same key later.").Because("database-full").From(err)
		case pe.Code == "25006":
			return errReadOnly(err)
		case class == "08", class == "57", class == "25":
			return unreachable(err)
		}
		return fmt.Errorf("database: %w", err)
	}
	var ne net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &ne) || errors.Is(err, context.DeadlineExceeded) {
		return unreachable(err)
	}
	return fmt.Errorf("database: %w", err)
}

func errReadOnly(err error) error {
	return action.Refuse(action.OutcomeUnknown, "The database takes no changes right now. Nothing was recorded: repeat the request with the same key later.").Because("database-read-only").From(err)
}

func unreachable(err error) error {
	return action.Refuse(action.OutcomeUnknown, "The database cannot be reached right now. Repeat the request with the same key: it takes effect once.").Because("database").From(err)
}

// constraint returns the name of the constraint that err violated, or "".
func constraint(err error) string {
	var pe *pq.Error
	if errors.As(err, &pe) && pe.Code.Class() == "23" {
		return pe.Constraint
	}
	return ""
}
