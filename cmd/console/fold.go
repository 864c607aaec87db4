package main

import (
	"context"
	"fmt"

	"countersign/store"
)

func foldCheck(ctx context.Context, c *call) error {
	check := c.on("check", "compare every action's row with its events")
	id := c.flags.String("id", "", "compare this `ACTION` only")
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		if !*check {
			return usage("--check is missing: it is the only thing to do with a fold here")
		}
		result, err := db.FoldCheck(ctx, *id, func(d store.Difference) {
			fmt.Fprintf(c.out, "%s %s: the row says %s, the events say %s\n", d.Action, d.Column, d.Row, d.Events)
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%d actions, %d events, %d differences\n", result.Actions, result.Events, result.Differences)
		if *id != "" && result.Actions+result.Tasks == 0 {
			return fmt.Errorf("there is no action %s", *id)
		}
		if result.Differences > 0 {
			return fmt.Errorf("%d differences between rows and events", result.Differences)
		}
		return nil
	})
}
