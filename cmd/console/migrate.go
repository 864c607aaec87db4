package main

import (
	"context"
	"fmt"
)

func migrate(ctx context.Context, c *call) error {
	where := c.databaseFlags(dataHome(c.env))
	if _, err := c.parse(); err != nil {
		return err
	}
	p := where()
	if p.url == "" {
		return usage("DATABASE_URL is not set; a PostgreSQL of our own is migrated when the console starts")
	}
	if err := p.check(); err != nil {
		return err
	}
	before, want, err := schemaVersion(ctx, p.url)
	if err != nil {
		return err
	}
	if before >= want {
		fmt.Fprintf(c.out, "%s: schema %d, nothing to do\n", p.describe(), before)
		return nil
	}
	if err := bringUp(ctx, p.url); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s: schema %d → %d\n", p.describe(), before, want)
	return nil
}
