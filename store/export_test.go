package store

import "countersign/action"

// CreateSQL is the statement that proposing runs, and its arguments, for a
// reference that runs the same without us.
func CreateSQL(t action.Transition) (string, []any) { return createSQL, createArgs(t) }
