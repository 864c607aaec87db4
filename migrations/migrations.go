// Package migrations holds the database schema as numbered SQL files and brings
// a database up to it. There is no way down.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Files returns the numbered SQL files, for whoever needs to tell one schema
// from another.
func Files() fs.FS { return files }

// Up brings the database behind db to the newest version. db must belong to the
// owner of the schema, not to the application's role. Processes that start at
// once wait for each other, up to five minutes. Every file runs in its own
// transaction; after an error the files before it are in place and the next
// call goes on from there.
func Up(ctx context.Context, db *sql.DB) error {
	return up(ctx, db, files)
}

func up(ctx context.Context, db *sql.DB, from fs.FS) error {
	// Tries once a second, 300 times.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return fmt.Errorf("making the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, from,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return nil
}

// Version tells the newest schema version that the database has and the one
// that this program wants. have is 0 in a database that was never migrated.
// The schema is current when have >= want: a newer program may already have
// migrated it. The application's role may ask.
func Version(ctx context.Context, db *sql.DB) (have, want int64, err error) {
	want, err = newest(files)
	if err != nil {
		return 0, 0, err
	}
	const query = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
	err = db.QueryRowContext(ctx, query).Scan(&have)
	if pq.As(err, pqerror.UndefinedTable) != nil {
		return 0, want, nil
	}
	if err != nil {
		return 0, want, fmt.Errorf("reading the schema version: %w", err)
	}
	return have, want, nil
}

func newest(from fs.FS) (int64, error) {
	names, err := fs.Glob(from, "*.sql")
	if err != nil {
		return 0, fmt.Errorf("listing the migrations: %w", err)
	}
	var last int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", name, err)
		}
		last = max(last, version)
	}
	if last == 0 {
		return 0, errors.New("no migrations are embedded")
	}
	return last, nil
}
