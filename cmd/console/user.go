package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/people"
)

// linkLife is how long a sign-in link from the command line works.
const linkLife = 24 * time.Hour

// grantFlags declares what a person may do.
func (c *call) grantFlags() func() people.Grants {
	roles := c.list("role", "`ROLES`: support, ops, auditor, admin, or one that your contracts name; by commas or repeated")
	tools := c.list("tool", "the roles hold for these `TOOLS` only")
	scopes := c.list("scope", "the roles hold for these `SCOPES` only")
	actors := c.list("actor", "`IDS` of the business system's users that are this person, whose actions they do not decide")
	return func() people.Grants {
		return people.Grants{Roles: *roles, Tools: *tools, Scopes: *scopes, Actors: *actors}
	}
}

func userAdd(ctx context.Context, c *call) error {
	grants := c.grantFlags()
	name := c.flags.String("name", "", "`NAME` to show; the username when left out")
	lang := c.flags.String("lang", "en", "`LANGUAGE` of the pages: en or zh")
	zone := c.flags.String("zone", "UTC", "time `ZONE`, as Europe/Berlin")
	withPassword := c.on("password-stdin", "read a password from standard input, and print no link")
	console := c.publicURLFlag()
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		n := people.NewPerson{Username: args[0], Name: *name, Grants: grants(), Lang: *lang, Zone: *zone}
		if n.Name == "" {
			n.Name = n.Username
		}
		if len(n.Roles) == 0 {
			return usage("--role is missing: without one a person sees nothing")
		}
		if *withPassword {
			var err error
			if n.Password, err = c.readLine("the password"); err != nil {
				return err
			}
		}
		service := people.New(db)
		p, err := service.CreatePerson(ctx, administer("add"), n)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s (%s): %s\n", p.Username, p.Name, strings.Join(p.Roles, ", "))
		if *withPassword {
			return nil
		}
		return c.printLink(ctx, service, p, *console, linkLife)
	})
}

func userList(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, _ []string, db *database) error {
		persons, err := db.Persons(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"USERNAME", "NAME", "ROLES", "ONLY", "SIGNS IN WITH", "STATE"}}
		for _, p := range persons {
			state, with := "enabled", "links"
			if p.Disabled != nil {
				state = "disabled since " + p.Disabled.Format(time.DateOnly)
			}
			if p.HasPassword {
				with = "password"
			}
			rows = append(rows, []string{p.Username, p.Name, strings.Join(p.Roles, ","), only(p.Tools, p.Scopes), with, state})
		}
		return c.table(rows)
	})
}

// only tells limits, "-" for none.
func only(tools, scopes []string) string {
	limits := append(append([]string{}, tools...), scopes...)
	if len(limits) == 0 {
		return "-"
	}
	return strings.Join(limits, ",")
}

func userRoles(ctx context.Context, c *call) error {
	grants := c.grantFlags()
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		p, err := people.New(db).SetGrants(ctx, administer("roles"), args[0], grants())
		if err != nil {
			return err
		}
		roles := strings.Join(p.Roles, ", ")
		if roles == "" {
			roles = "no role"
		}
		fmt.Fprintf(c.out, "%s: %s; limits: %s\n", p.Username, roles, only(p.Tools, p.Scopes))
		return nil
	})
}

func userPassword(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		password, err := c.readLine("the new password")
		if err != nil {
			return err
		}
		p, err := people.New(db).SetPassword(ctx, administer("passwd"), args[0], password)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s: password changed, all sessions ended\n", p.Username)
		return nil
	})
}

func userLink(ctx context.Context, c *call) error {
	console := c.publicURLFlag()
	life := c.span("life", linkLife, "how long the link works, up to 168h")
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		p, err := db.Person(ctx, args[0])
		if err != nil {
			return err
		}
		return c.printLink(ctx, people.New(db), p, *console, *life)
	})
}

func (c *call) printLink(ctx context.Context, service *people.Service, p people.Person, console string, life time.Duration) error {
	assumed := console == ""
	if assumed {
		console = "http://127.0.0.1:8080"
	}
	console, err := checkPublicURL(console)
	if err != nil {
		return err
	}
	text, err := service.NewLink(ctx, administer("link"), p.ID, life)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Signs %s in once, within %s: %s\n", p.Username, life, signInLink(console, text))
	if assumed {
		fmt.Fprintf(c.out, "Where your console is elsewhere than at %s, put its address there; --public-url prints it so.\n", console)
	}
	return nil
}

func userDisable(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		p, err := people.New(db).DisablePerson(ctx, administer("disable"), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s: disabled, all sessions ended\n", p.Username)
		return nil
	})
}

func userEnable(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		p, err := people.New(db).EnablePerson(ctx, administer("enable"), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s: enabled\n", p.Username)
		return nil
	})
}
