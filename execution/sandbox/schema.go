package sandbox

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
)

//go:embed schema.sql
var schemaSQL string

//go:embed seed.sql
var seedSQL string

// createSchema is safe to run again, and by several processes at once.
func createSchema(ctx context.Context, db *sql.DB) error {
	if err := runAlone(ctx, db, schemaSQL); err != nil {
		return fmt.Errorf("creating the sandbox schema: %w", err)
	}
	return nil
}

// Seed fills the shop with a dozen products, two dozen orders to refund, a dozen
// that were ordered, some of them on their way, customers and talks with them,
// three conversations, a month's entries and the people who work there. What is
// there already stays as it is.
func (s *Sandbox) Seed(ctx context.Context) error {
	if err := runAlone(ctx, s.db, seedSQL); err != nil {
		return fmt.Errorf("seeding the sandbox: %w", err)
	}
	return nil
}

// runAlone runs a script in one transaction, one process at a time.
func runAlone(ctx context.Context, db *sql.DB, script string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // a no-op after the commit
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('sandbox schema', 0))`); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return err
	}
	return tx.Commit()
}
