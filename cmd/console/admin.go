package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/user"
	"strings"

	"countersign/action"
	"countersign/people"
)

// withDatabase runs an administrative command on an open database. A console
// that runs our own PostgreSQL may go on meanwhile.
func (c *call) withDatabase(ctx context.Context, do func(context.Context, []string, *database) error) (err error) {
	where := c.databaseFlags(dataHome(c.env))
	args, err := c.parse()
	if err != nil {
		return err
	}
	db, err := where().open(ctx, opening{attach: true, log: c.quiet()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	return do(ctx, args, db)
}

// byCommandLine is who administers here: whoever may start this program with
// the database's credentials.
func byCommandLine() action.By {
	name := "command line"
	if u, err := user.Current(); err == nil {
		name += " (" + u.Username + ")"
	}
	return action.By{Kind: action.BySystem, ID: "command-line", Name: name}
}

// administer is a command of its own every time it is given.
func administer(verb string) people.Command {
	return people.Command{Op: verb + ":" + action.NewSecret(10), By: byCommandLine()}
}

// publicURLFlag declares the address under which people reach the console.
func (c *call) publicURLFlag() *string {
	return c.text("public-url", "COUNTERSIGN_PUBLIC_URL", "", "`URL` under which browsers and programs reach the console, as https://countersign.example")
}

// checkPublicURL returns the URL in its one spelling, without a slash at its end.
func checkPublicURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", usage("--public-url is https://host or http://host:port, without a path, not %q", text)
	}
	return u.Scheme + "://" + u.Host, nil
}

// signInLink is the address of a one-time link.
func signInLink(console, secret string) string { return console + "/login/" + secret }

// readLine reads a secret from standard input.
func (c *call) readLine(what string) (string, error) {
	line, err := bufio.NewReader(c.in).ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", fmt.Errorf("%s is read from standard input, where there is none (%v)", what, err)
	}
	return line, nil
}
