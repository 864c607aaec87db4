package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"countersign/action"
)

// command is one thing the program can do.
type command struct {
	name  string // one or two words
	args  string // what follows the flags
	about string // one sentence
	run   func(context.Context, *call) error
}

func commands() []command {
	return []command{
		{"demo", "", "Runs everything on this machine: database, console, a sandbox shop, an executor and a scripted agent.", demo},
		{"serve", "", "Runs the console, on DATABASE_URL or a PostgreSQL of its own.", serve},
		{"executor", "", "Runs the reference execution layer against a console.", runExecutor},
		{"mcp", "", "Lets an agent propose over MCP: list_tools, propose_action, get_action, what_may_i_say.", runMCP},
		{"migrate", "", "Brings the database to this program's schema.", migrate},
		{"user add", "USERNAME", "Makes an account and prints a one-time sign-in link.", userAdd},
		{"user list", "", "Lists the accounts.", userList},
		{"user roles", "USERNAME", "Replaces what a person may do.", userRoles},
		{"user passwd", "USERNAME", "Sets a password, read from standard input.", userPassword},
		{"user link", "USERNAME", "Prints a new one-time sign-in link.", userLink},
		{"user disable", "USERNAME", "Ends a person's sessions and lets them in no more.", userDisable},
		{"user enable", "USERNAME", "Lets a disabled person in again.", userEnable},
		{"client add", "NAME", "Makes an API client and prints its key, once.", clientAdd},
		{"client list", "", "Lists the API clients and their keys.", clientList},
		{"client rotate", "NAME", "Makes a new key that replaces the present one, and prints it, once.", clientRotate},
		{"client revoke", "NAME KEY-ID", "Refuses a key from now on.", clientRevoke},
		{"client disable", "NAME", "Refuses all keys of a client.", clientDisable},
		{"client enable", "NAME", "Takes the keys of a disabled client again.", clientEnable},
		{"client cancel-open", "NAME", "Cancels every action of a client that has not run. Pause the client first.", clientCancelOpen},
		{"pause add", "", "Stops proposing, claiming and attempting, of a tool, a client or a scope.", pauseAdd},
		{"pause end", "", "Lets a tool, a client or a scope go on.", pauseEnd},
		{"pause list", "", "Lists what is paused, and what was.", pauseList},
		{"tools apply", "DIR", "Stores every contract in a folder: YAML, JSON, MCP tool lists.", toolsApply},
		{"tools import-mcp", "", "Makes contracts of the tools of an MCP server, and shows what they assume.", toolsImportMCP},
		{"callbacks add", "TOOL", "Accepts callbacks about a tool, and prints the secret to sign them with, once.", callbacksAdd},
		{"callbacks rotate", "TOOL", "Makes a new secret for callbacks about a tool; earlier ones work a while longer.", callbacksRotate},
		{"callbacks list", "", "Lists the secrets that callbacks are signed with, without telling them.", callbacksList},
		{"callbacks parked", "", "Lists callbacks that came before the attempt that they are about.", callbacksParked},
		{"keys rotate", "", "Makes a new key that signs confirmations, in force within a minute.", keysRotate},
		{"fold", "", "Recomputes every action from its events and compares (--check).", foldCheck},
		{"version", "", "Prints the version.", version},
	}
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// run does what the arguments say and returns the exit code. ctx ends when the
// program is asked to stop.
func run(ctx context.Context, args []string, env func(string) string, in io.Reader, out, errs io.Writer) int {
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		overview(out)
		if len(args) == 0 {
			return exitUsage
		}
		return exitOK
	}
	cmd, rest, err := find(args)
	if err != nil {
		fmt.Fprintln(errs, "console:", err)
		return exitUsage
	}
	return exitCode(cmd.run(ctx, newCall(cmd, rest, env, in, out, errs)), cmd, errs)
}

// find tells which command the first one or two words name.
func find(args []string) (command, []string, error) {
	all := commands()
	for words := min(2, len(args)); words > 0; words-- {
		name := strings.Join(args[:words], " ")
		if i := slices.IndexFunc(all, func(c command) bool { return c.name == name }); i >= 0 {
			return all[i], args[words:], nil
		}
	}
	var family []string
	for _, c := range all {
		if strings.HasPrefix(c.name, args[0]+" ") {
			family = append(family, c.name)
		}
	}
	if len(family) > 0 {
		return command{}, nil, fmt.Errorf("%s what? One of: %s", args[0], strings.Join(family, ", "))
	}
	return command{}, nil, fmt.Errorf("there is no command %q; console -h lists them", args[0])
}

func overview(w io.Writer) {
	fmt.Fprint(w, "Countersign: people say yes or no to the exact thing software is about to do.\n\n")
	widest := 0
	for _, c := range commands() {
		widest = max(widest, len(c.name))
	}
	for _, c := range commands() {
		fmt.Fprintf(w, "  console %-*s  %s\n", widest, c.name, c.about)
	}
	fmt.Fprint(w, "\nconsole COMMAND -h tells a command's flags and environment.\n")
}

// usageError is a mistake in the command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// exitCode reports an error as people can use it.
func exitCode(err error, cmd command, errs io.Writer) int {
	var wrong usageError
	var refusal *action.Refusal
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &wrong):
		fmt.Fprintf(errs, "console %s: %v\n\nconsole %s -h tells the flags.\n", cmd.name, err, cmd.name)
		return exitUsage
	case errors.As(err, &refusal):
		fmt.Fprintf(errs, "console %s: %s\n", cmd.name, refusal.Detail)
		printFieldErrors(errs, refusal)
		if cause := refusal.Unwrap(); cause != nil {
			fmt.Fprintf(errs, "  cause: %v\n", cause)
		}
		return exitFailed
	}
	fmt.Fprintf(errs, "console %s: %v\n", cmd.name, err)
	return exitFailed
}

func printFieldErrors(w io.Writer, r *action.Refusal) {
	for _, e := range r.Errors {
		if e.Pointer == "" {
			fmt.Fprintf(w, "  %s\n", e.Detail)
			continue
		}
		fmt.Fprintf(w, "  %s: %s\n", e.Pointer, e.Detail)
	}
}
