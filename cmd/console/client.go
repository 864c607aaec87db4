package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/people"
)

const once = "This is the only time the key is shown."

func clientAdd(ctx context.Context, c *call) error {
	roles := c.list("role", "`ROLES`: proposer, executor, reader, admin; by commas or repeated")
	owner := c.flags.String("owner", "", "`USERNAME` of the person who answers for it, and does not decide what it proposes")
	tools := c.list("tool", "it may use these `TOOLS` only")
	scopes := c.list("scope", "it may use these `SCOPES` only")
	entries := c.list("entry", "it proposes from these `ENTRIES` only: chat, background, workflow")
	life := c.span("life", 0, "how long the key works; 0s: until it is revoked")
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		if *owner == "" {
			return usage("--owner is missing: somebody has to answer for a program")
		}
		service := people.New(db)
		n := people.NewClient{Name: args[0], Owner: *owner,
			ClientGrants: people.ClientGrants{Roles: *roles, Tools: *tools, Scopes: *scopes, Entries: *entries}}
		client, err := service.CreateClient(ctx, administer("add"), n)
		if err != nil {
			return err
		}
		_, text, err := service.CreateKey(ctx, administer("key"), client.ID, *life)
		if err != nil {
			return fmt.Errorf("%s was made, its key was not; make one with \"client rotate\": %w", client.Name, err)
		}
		fmt.Fprintf(c.out, "%s (%s): %s\n%s\n%s\n", client.Name, client.ID, strings.Join(client.Roles, ", "), text, once)
		return nil
	})
}

func clientList(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		clients, err := db.Clients(ctx)
		if err != nil {
			return err
		}
		now, err := db.Now(ctx)
		if err != nil {
			return err
		}
		owners, err := usernames(ctx, db)
		if err != nil {
			return err
		}
		rows := [][]string{{"NAME", "ROLES", "OWNER", "ONLY", "STATE", "KEY", "PREFIX", "LAST SEEN"}}
		for _, l := range clients {
			state := "enabled"
			if l.Disabled != nil {
				state = "disabled"
			}
			row := []string{l.Name, strings.Join(l.Roles, ","), owners[l.Owner], only(append(l.Tools, l.Entries...), l.Scopes), state}
			live := 0
			for _, k := range l.Keys {
				if k.Live(now) {
					rows = append(rows, append(row[:5:5], k.ID, k.Prefix, seen(k.LastSeen)))
					live++
				}
			}
			if live == 0 {
				rows = append(rows, append(row, "none", "", ""))
			}
		}
		return c.table(rows)
	})
}

func usernames(ctx context.Context, db *database) (map[string]string, error) {
	persons, err := db.Persons(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, p := range persons {
		names[p.ID] = p.Username
	}
	return names, nil
}

func seen(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

func clientRotate(ctx context.Context, c *call) error {
	grace := c.span("grace", time.Hour, "how long the old key still works; 0s: not at all")
	life := c.span("life", 0, "how long the new key works; 0s: until it is revoked")
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		client, err := db.Client(ctx, args[0])
		if err != nil {
			return err
		}
		now, err := db.Now(ctx)
		if err != nil {
			return err
		}
		service, old := people.New(db), newestLive(client.Keys, now)
		var text string
		if old == "" {
			_, text, err = service.CreateKey(ctx, administer("key"), client.ID, *life)
		} else {
			_, text, err = service.RotateKey(ctx, administer("rotate"), client.ID, old, *life, *grace)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s\n%s\n", text, once)
		if old != "" && *grace > 0 {
			fmt.Fprintf(c.out, "The old key, %s, works for %s longer.\n", old, *grace)
		}
		return nil
	})
}

// newestLive is the id of the key to replace, "" for none. Keys come newest first.
func newestLive(keys []people.Key, now time.Time) string {
	for _, k := range keys {
		if k.Live(now) {
			return k.ID
		}
	}
	return ""
}

func clientRevoke(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		client, err := people.New(db).RevokeKey(ctx, administer("revoke"), args[0], args[1])
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s: key %s is refused from now on\n", client.Name, args[1])
		return nil
	})
}

func clientDisable(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		client, err := people.New(db).DisableClient(ctx, administer("disable"), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s: disabled, no key of it works\n", client.Name)
		return nil
	})
}

func clientEnable(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		client, err := people.New(db).EnableClient(ctx, administer("enable"), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s: enabled\n", client.Name)
		return nil
	})
}
