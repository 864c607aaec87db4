package main

import (
	"context"
	"fmt"
	"time"

	"countersign/action/rule"
	"countersign/people"
	"countersign/triage"
)

const onceSecret = "This is the only time the secret is shown."

// withCallbacks runs an administrative command on the callbacks of a console.
func (c *call) withCallbacks(ctx context.Context, do func(context.Context, []string, *triage.Callbacks) error) error {
	c.environment("COUNTERSIGN_SECRET", "the console's secret, base64; not needed with our own PostgreSQL")
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		s, err := readSecret(c.env, db.folder)
		if err != nil {
			return err
		}
		callbacks, err := triage.NewCallbacks(db, db, rule.NewCatalogue(db), s.bytes)
		if err != nil {
			return err
		}
		return do(ctx, args, callbacks)
	})
}

// givenSecret is a secret that the business system made, or "".
func (c *call) givenSecret(given bool) (string, error) {
	if !given {
		return "", nil
	}
	return c.readLine("the secret")
}

func callbacksAdd(ctx context.Context, c *call) error {
	given := c.on("secret-stdin", "read a secret that the business system made from standard input")
	return c.withCallbacks(ctx, func(ctx context.Context, args []string, callbacks *triage.Callbacks) error {
		secret, err := c.givenSecret(*given)
		if err != nil {
			return err
		}
		text, err := callbacks.AddSecret(ctx, args[0], secret, byCommandLine())
		if err != nil {
			return err
		}
		return c.tellSecret(args[0], text, *given)
	})
}

func callbacksRotate(ctx context.Context, c *call) error {
	given := c.on("secret-stdin", "read a secret that the business system made from standard input")
	grace := c.span("grace", 24*time.Hour, "how long earlier secrets still work; 0s: not at all")
	return c.withCallbacks(ctx, func(ctx context.Context, args []string, callbacks *triage.Callbacks) error {
		secret, err := c.givenSecret(*given)
		if err != nil {
			return err
		}
		text, err := callbacks.RotateSecret(ctx, args[0], secret, *grace, byCommandLine())
		if err != nil {
			return err
		}
		if err := c.tellSecret(args[0], text, *given); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "Earlier secrets work for %s longer.\n", *grace)
		return err
	})
}

func (c *call) tellSecret(tool, secret string, given bool) error {
	if !given {
		fmt.Fprintf(c.out, "%s\n%s\n", secret, onceSecret)
	}
	_, err := fmt.Fprintf(c.out, "Callbacks go to /v1/callbacks/%s of the console.\n", tool)
	return err
}

func callbacksList(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		secrets, err := db.AllCallbackSecrets(ctx)
		if err != nil {
			return err
		}
		now, err := db.Now(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"TOOL", "SECRET", "SINCE", "STATE"}}
		for _, s := range secrets {
			state := "good"
			if s.EndsAt != nil {
				state = "good until " + seen(s.EndsAt)
				if !s.Live(now) {
					state = "ended " + seen(s.EndsAt)
				}
			}
			rows = append(rows, []string{s.Tool, s.ID, seen(&s.CreatedAt), state})
		}
		return c.table(rows)
	})
}

// listedParked is how many parked callbacks are listed.
const listedParked = 500

func callbacksParked(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		parked, now, err := db.ParkedCallbacks(ctx, people.Viewer{All: true}, listedParked)
		if err != nil {
			return err
		}
		rows := [][]string{{"TOOL", "WEBHOOK-ID", "EXECUTION KEY", "CAME", "STATE"}}
		for _, p := range parked {
			state := "waits until " + seen(&p.ExpiresAt)
			if !now.Before(p.ExpiresAt) {
				state = "waited in vain until " + seen(&p.ExpiresAt)
			}
			rows = append(rows, []string{p.Tool, p.WebhookID, p.Key, seen(&p.ReceivedAt), state})
		}
		return c.table(rows)
	})
}
