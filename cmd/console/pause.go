package main

import (
	"context"
	"fmt"

	"countersign/action"
	"countersign/approvals"
)

// pausable are the flags that say what to pause.
type pausable struct{ tool, client, scope *string }

func (c *call) pausable() pausable {
	return pausable{c.flags.String("tool", "", "`NAME` of a tool"),
		c.flags.String("client", "", "`NAME` of an API client, as proposer and as executor"),
		c.flags.String("scope", "", "`SCOPE` of actions")}
}

// find says what exactly is meant.
func (p pausable) find(ctx context.Context, db *database) (kind, value string, err error) {
	given := 0
	for _, one := range []*string{p.tool, p.client, p.scope} {
		if *one != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return "", "", usage("give one of --tool, --client and --scope")
	case *p.tool != "":
		_, known, err := db.ActiveTool(ctx, *p.tool)
		if err == nil && !known {
			err = action.Refuse(action.UnknownTool, "There is no tool "+*p.tool+".")
		}
		return approvals.PauseTool, *p.tool, err
	case *p.client != "":
		client, err := db.Client(ctx, *p.client)
		return approvals.PauseClient, client.ID, err
	}
	return approvals.PauseScope, *p.scope, nil
}

func pauseAdd(ctx context.Context, c *call) error {
	what := c.pausable()
	reason := c.flags.String("reason", "", "`WHY`; whoever is refused is told")
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		kind, value, err := what.find(ctx, db)
		if err != nil {
			return err
		}
		if _, err := approvals.StartPause(ctx, db, action.NewID("pau"), kind, value, *reason, byCommandLine()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "%s %s is paused: nothing is proposed, claimed or attempted until \"pause end\".\n", kind, value)
		return err
	})
}

func pauseEnd(ctx context.Context, c *call) error {
	what := c.pausable()
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		kind, value, err := what.find(ctx, db)
		if err != nil {
			return err
		}
		if err := approvals.EndPause(ctx, db, kind, value, byCommandLine()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "%s %s goes on.\n", kind, value)
		return err
	})
}

// listedPauses is how many pauses are listed.
const listedPauses = 200

func pauseList(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		pauses, err := db.Pauses(ctx, listedPauses)
		if err != nil {
			return err
		}
		rows := [][]string{{"WHAT", "NAME", "SINCE", "UNTIL", "BY", "REASON"}}
		for _, p := range pauses {
			until := "now"
			if p.EndedAt != nil {
				until = seen(p.EndedAt)
			}
			rows = append(rows, []string{p.Kind, p.Value, seen(&p.StartedAt), until, p.By, p.Reason})
		}
		return c.table(rows)
	})
}

func clientCancelOpen(ctx context.Context, c *call) error {
	reason := c.flags.String("reason", "The program that proposed it was stopped.", "`WHY`, as the actions' pages tell")
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		client, err := db.Client(ctx, args[0])
		if err != nil {
			return err
		}
		n, err := approvals.CancelOpenOf(ctx, db, action.NewSecret(8), client.ID, *reason, byCommandLine())
		if _, printed := fmt.Fprintf(c.out, "%s: %d cancelled\n", client.Name, n); err == nil {
			err = printed
		}
		return err
	})
}
