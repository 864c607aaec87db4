package store

import (
	"context"
	"fmt"
	"time"

	"countersign/action"
	"countersign/approvals"
)

// taskRow is a whole row of tasks as it is read, with what its events say of who
// opened it.
type taskRow struct {
	ID        string     `db:"id"`
	Version   int64      `db:"version"`
	State     string     `db:"state"`
	CreateOp  string     `db:"create_op"`
	ClientID  string     `db:"client_id"`
	CreatedAt time.Time  `db:"created_at"`
	Reached   string     `db:"reached"`
	EndsAt    *time.Time `db:"ends_at"`
	MaxReads  *int       `db:"max_reads"`
	MaxWrites *int       `db:"max_writes"`
	Reads     int        `db:"reads"`
}

// foldTasks recomputes every task from its events, or the one with an id, and
// returns how many it compared.
func (db *DB) foldTasks(ctx context.Context, id string, note func(Difference)) (compared int, err error) {
	for after := ""; ; {
		var rows []taskRow
		err := db.selectAll(ctx, &rows, `
SELECT id, version, state, create_op, client_id, created_at, reached, ends_at, max_reads, max_writes, reads
FROM tasks WHERE id > $1 AND ($2 = '' OR id = $2) ORDER BY id LIMIT $3`, after, id, foldBatch)
		if err != nil {
			return compared, fmt.Errorf("reading tasks: %w", err)
		}
		if len(rows) == 0 {
			return compared, nil
		}
		for _, row := range rows {
			if err := db.foldTask(ctx, row, note); err != nil {
				return compared, err
			}
			compared++
			after = row.ID
		}
	}
}

// foldTask compares one task, with the events up to the version that its row has.
func (db *DB) foldTask(ctx context.Context, row taskRow, note func(Difference)) error {
	events, _, err := db.Events(ctx, row.ID)
	if err != nil {
		return fmt.Errorf("reading the events of %s: %w", row.ID, err)
	}
	if int64(len(events)) > row.Version { // it moved on meanwhile
		events = events[:row.Version]
	}
	k, err := approvals.FoldTask(events)
	if err != nil {
		note(Difference{Action: row.ID, Column: "events", Row: "there", Events: err.Error()})
		return nil
	}
	compareColumns(row.ID, row, foldedTask(k, events[0]), note)
	return nil
}

// foldedTask is the row that a task should have.
func foldedTask(k approvals.Task, opened action.Event) taskRow {
	return taskRow{ID: k.ID, Version: k.Version, State: string(k.State), CreateOp: opened.Op, ClientID: k.Client.ID, CreatedAt: k.CreatedAt,
		Reached: string(k.Reached), EndsAt: k.EndsAt, MaxReads: k.Limits.Reads, MaxWrites: k.Limits.Writes, Reads: k.Spent.Reads}
}
