package main

import (
	"context"
	"fmt"

	"countersign/approvals"
)

// audience is whom confirmations are for: whoever executes.
const audience = "countersign-executor"

func keysRotate(ctx context.Context, c *call) error {
	c.environment("COUNTERSIGN_SECRET", "the console's secret, base64; not needed with our own PostgreSQL")
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		s, err := readSecret(c.env, db.folder)
		if err != nil {
			return err
		}
		// Adding a key signs nothing, so the issuer does not matter here.
		signer, err := approvals.NewSigner(ctx, db, s.bytes, "", audience)
		if err != nil {
			return err
		}
		if err := signer.Rotate(ctx); err != nil {
			return err
		}
		fmt.Fprintln(c.out, "A new signing key takes over within a minute. Tokens of earlier keys stay checkable.")
		return nil
	})
}
