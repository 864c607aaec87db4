package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"
)

// call is one run of a command: its flags, its environment, its streams.
type call struct {
	cmd   command
	args  []string
	env   func(string) string
	in    io.Reader
	out   io.Writer
	errs  io.Writer
	flags *flag.FlagSet
	names map[string]string // flag → environment variable
	extra []string          // environment variables that are no flags, with what they are
}

func newCall(cmd command, args []string, env func(string) string, in io.Reader, out, errs io.Writer) *call {
	c := &call{cmd: cmd, args: args, env: env, in: in, out: out, errs: errs, names: map[string]string{}}
	c.flags = flag.NewFlagSet("console "+cmd.name, flag.ContinueOnError)
	c.flags.SetOutput(io.Discard)
	return c
}

// text declares a flag whose value may also come from an environment variable.
// The help shows the standard only: what the environment holds may be a secret.
func (c *call) text(name, variable, standard, about string) *string {
	value := c.flags.String(name, standard, about)
	if variable != "" {
		c.names[name] = variable
		if v := c.env(variable); v != "" {
			*value = v
		}
	}
	return value
}

func (c *call) on(name, about string) *bool { return c.flags.Bool(name, false, about) }

func (c *call) span(name string, standard time.Duration, about string) *time.Duration {
	return c.flags.Duration(name, standard, about)
}

// list declares a flag that takes several values, by commas or by repetition.
func (c *call) list(name, about string) *[]string {
	var values []string
	c.flags.Func(name, about, func(s string) error {
		for _, v := range strings.Split(s, ",") {
			if v = strings.TrimSpace(v); v != "" {
				values = append(values, v)
			}
		}
		return nil
	})
	return &values
}

// environment tells, in the help, of a variable that is no flag.
func (c *call) environment(variable, about string) {
	c.extra = append(c.extra, fmt.Sprintf("  %s\n    \t%s", variable, about))
}

// parse reads the flags and returns the arguments between and after them, of
// which the command wants as many as its args name.
func (c *call) parse() ([]string, error) {
	var given []string
	for rest := c.args; ; {
		err := c.flags.Parse(rest)
		if errors.Is(err, flag.ErrHelp) {
			c.help()
			return nil, err
		}
		if err != nil {
			return nil, usage("%v", err)
		}
		if rest = c.flags.Args(); len(rest) == 0 {
			break
		}
		given, rest = append(given, rest[0]), rest[1:]
	}
	switch wanted := strings.Fields(c.cmd.args); {
	case len(given) < len(wanted):
		return nil, usage("%s is missing", wanted[len(given)])
	case len(given) > len(wanted):
		return nil, usage("%q is one word too many", given[len(wanted)])
	}
	return given, nil
}

func (c *call) help() {
	fmt.Fprintf(c.out, "console %s", c.cmd.name)
	hasFlags := false
	c.flags.VisitAll(func(*flag.Flag) { hasFlags = true })
	if hasFlags {
		fmt.Fprint(c.out, " [flags]")
	}
	if c.cmd.args != "" {
		fmt.Fprint(c.out, " ", c.cmd.args)
	}
	fmt.Fprintf(c.out, "\n\n%s\n", c.cmd.about)
	if hasFlags {
		fmt.Fprintln(c.out, "\nFlags:")
	}
	c.flags.VisitAll(func(f *flag.Flag) {
		kind, about := flag.UnquoteUsage(f)
		fmt.Fprintf(c.out, "  --%s %s\n    \t%s", f.Name, kind, about)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0s" {
			fmt.Fprintf(c.out, " (%s)", f.DefValue)
		}
		if v := c.names[f.Name]; v != "" {
			fmt.Fprintf(c.out, "; or %s", v)
		}
		fmt.Fprintln(c.out)
	})
	if len(c.extra) > 0 {
		fmt.Fprintf(c.out, "\nEnvironment:\n%s\n", strings.Join(c.extra, "\n"))
	}
}

// setting is one line of the printed configuration. Values are shown: secrets
// are told apart before they get here.
type setting struct{ name, value string }

func (c *call) summary(settings []setting) {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "console %s\n", c.cmd.name)
	for _, s := range settings {
		fmt.Fprintf(w, "  %s\t%s\n", s.name, s.value)
	}
	w.Flush() // the terminal may be gone; nothing depends on it
}

// table prints rows in columns.
func (c *call) table(rows [][]string) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

// logFlag declares --log; the logger is made after parsing.
func (c *call) logFlag() func() (*slog.Logger, error) {
	format := c.text("log", "COUNTERSIGN_LOG", "text", "log as `FORMAT`: text or json, to standard error")
	return func() (*slog.Logger, error) {
		switch *format {
		case "text":
			return slog.New(slog.NewTextHandler(c.errs, nil)), nil
		case "json":
			return slog.New(slog.NewJSONHandler(c.errs, nil)), nil
		}
		return nil, usage("--log is text or json, not %q", *format)
	}
}

// quiet is the logger of commands whose output is for people: warnings only.
func (c *call) quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
