package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"countersign/execution"

	"go.opentelemetry.io/otel/trace"
)

// demoRun is everything that runs on this machine.
type demoRun struct {
	dir    string
	file   demoFile
	fresh  bool // the first start in this folder
	log    *slog.Logger
	app    *app
	shop   *shop
	guide  *guide
	failed chan error     // of the executor
	stops  []func() error // to run in reverse
}

func demo(ctx context.Context, c *call) (err error) {
	began := time.Now()
	addr := c.text("addr", "COUNTERSIGN_ADDR", "127.0.0.1:8080", "`ADDRESS` to listen on; port 0 takes a free one")
	dir := c.text("data", "COUNTERSIGN_DATA", demoHome(c.env), "`FOLDER` of everything the demo keeps")
	quiet := c.on("no-traffic", "without the scripted agent: nothing is proposed by itself")
	lines := c.on("env", "print demo.json as shell variables, for eval, and end")
	c.tracesVariable()
	c.environment("COUNTERSIGN_SANDBOX_CONTROL", "token of at least 16 characters that opens the sandbox's /faults; made up when unset")
	if _, err := c.parse(); err != nil {
		return err
	}
	if *lines {
		return c.demoVariables(*dir)
	}
	ln, err := listen(*addr)
	if err != nil {
		return err
	}
	d := &demoRun{dir: *dir, guide: &guide{}, failed: make(chan error, 1)}
	defer func() { err = errors.Join(err, d.stop()) }()
	d.onStop(func() error { ln.Close(); return nil }) // closed already when the server was
	if err := d.start(ctx, c, ln); err != nil {
		return err
	}
	if !*quiet {
		if err := d.startAgent(ctx); err != nil {
			return err
		}
	}
	if err := d.announce(ctx, c, time.Since(began)); err != nil {
		return err
	}
	err = d.wait(ctx)
	fmt.Fprintln(c.out, "\nStopping: what runs is finished first.")
	return err
}

func (c *call) demoVariables(dir string) error {
	f, found, err := readDemoFile(dir)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("there is no %s: start the demo first, or name its folder with --data", demoPath(dir))
	}
	folder, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("naming the demo's folder: %w", err)
	}
	fmt.Fprint(c.out, f.shellLines(folder))
	return nil
}

func (d *demoRun) onStop(f func() error) { d.stops = append(d.stops, f) }

// stop ends everything, what was started last first.
func (d *demoRun) stop() error {
	var errs []error
	for i := len(d.stops) - 1; i >= 0; i-- {
		errs = append(errs, d.stops[i]())
	}
	return errors.Join(errs...)
}

// start brings everything up, from the database to the executor.
func (d *demoRun) start(ctx context.Context, c *call, ln net.Listener) error {
	if err := makeFolder(d.dir); err != nil {
		return err
	}
	var err error
	var known bool
	if d.file, known, err = readDemoFile(d.dir); err != nil {
		return err
	}
	d.fresh = !known
	if err := d.openLog(); err != nil {
		return err
	}
	db, err := place{folder: d.dir}.open(ctx, opening{log: d.log})
	if err != nil {
		return err
	}
	d.onStop(db.close)
	key, err := readSecret(func(string) string { return "" }, d.dir)
	if err != nil {
		return err
	}
	d.file.Console = localURL(ln.Addr(), false)
	traces, err := d.collect(ctx, c, "countersign-console")
	if err != nil {
		return err
	}
	if d.app, err = startApp(ctx, db, appConfig{listener: ln, publicURL: d.file.Console, secret: key, log: d.log, traces: traces, demo: d.guide}); err != nil {
		return err
	}
	d.onStop(d.app.stop)
	if traces, err = d.collect(ctx, c, "countersign-sandbox"); err != nil {
		return err
	}
	if d.shop, err = openShop(ctx, db.owner, c.env("COUNTERSIGN_SANDBOX_CONTROL"), traces, d.log); err != nil {
		return err
	}
	d.onStop(d.shop.stop)
	d.file.Sandbox = d.shop.url
	if err := ensureCast(ctx, d.app.people, db, &d.file, d.dir); err != nil {
		return err
	}
	if traces, err = d.collect(ctx, c, "countersign-executor"); err != nil {
		return err
	}
	return d.startExecutor(ctx, traces)
}

// collect begins to collect the spans of one of the demo's services.
func (d *demoRun) collect(ctx context.Context, c *call, service string) (trace.TracerProvider, error) {
	traces, flush, err := startTraces(ctx, c.env, service)
	if err == nil {
		d.onStop(flush)
	}
	return traces, err
}

// maxDemoLog is the size at which the demo's log begins anew.
const maxDemoLog = 10 << 20

// openLog keeps the log in a file: the terminal is for people.
func (d *demoRun) openLog() error {
	path := filepath.Join(d.dir, "demo.log")
	if info, err := os.Stat(path); err == nil && info.Size() > maxDemoLog {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing a long log: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	d.onStop(file.Close)
	d.log = slog.New(slog.NewTextHandler(file, nil))
	return nil
}

// startExecutor applies the contracts and runs an executor for the sandbox.
func (d *demoRun) startExecutor(ctx context.Context, traces trace.TracerProvider) error {
	served, err := applyDemoTools(ctx, d.app)
	if err != nil {
		return err
	}
	if err := d.connectCallbacks(ctx); err != nil {
		return err
	}
	if err := d.guide.open(d); err != nil {
		return err
	}
	config := d.shop.executorConfig(d.file.Console, d.file.Keys.Executor, served)
	executor, err := execution.New(config, execution.Options{Logger: d.log, Traces: traces})
	if err != nil {
		return err
	}
	d.work(ctx, executor.Run)
	return nil
}

// work runs something beside the console until the demo stops.
func (d *demoRun) work(ctx context.Context, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			select {
			case d.failed <- err:
			default: // one reason to stop is enough
			}
		}
	})
	d.onStop(func() error {
		cancel()
		running.Wait()
		return nil
	})
}

// wait returns when the demo is asked to stop, nil, or cannot go on.
func (d *demoRun) wait(ctx context.Context) error {
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { ended <- d.app.wait(ctx) }()
	select {
	case err := <-ended:
		return err
	case err := <-d.failed:
		return fmt.Errorf("the demo's executor ended: %w", err)
	case err := <-d.shop.http.failed:
		return err
	}
}

// announce tells how to get in.
func (d *demoRun) announce(ctx context.Context, c *call, took time.Duration) error {
	links, err := signInLinks(ctx, d.app.people, d.app.db, d.file.Console)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Countersign is ready: %s (after %.1f s)\n\n", d.file.Console, took.Seconds())
	fmt.Fprintln(c.out, "Sign in with a link, each works once:")
	if err := c.table(links); err != nil {
		return err
	}
	fmt.Fprintln(c.out, "\nor with a username and password:")
	if err := c.table(d.passwords()); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nNew here? Seven dangers, played one by one: %s/demo\n", d.file.Console)
	fmt.Fprintf(c.out, "\nPropose an action, as a program does:\n\n%s\n", d.curl())
	fmt.Fprintf(c.out, "Addresses and keys as shell variables, for the examples of the documents:\n\n  %s\n\n", d.variables(c))
	fmt.Fprintf(c.out, "The shop it acts on: %s\nKeys and passwords:  %s\nLog:                 %s\n\n",
		d.shop.url, demoPath(d.dir), filepath.Join(d.dir, "demo.log"))
	fmt.Fprintln(c.out, "Ctrl-C stops everything; the next start goes on. Delete the folder to begin anew.")
	return nil
}

// variables is the command, for another terminal, that sets what the examples
// of the documents use.
func (d *demoRun) variables(c *call) string {
	command := thisProgram() + " demo --env"
	if dir, err := filepath.Abs(d.dir); err == nil && d.dir != demoHome(c.env) {
		command += " --data " + shellQuoted(dir)
	}
	return `eval "$(` + command + `)"`
}

// demoHome is where the demo keeps everything when nothing else is said.
func demoHome(env func(string) string) string { return filepath.Join(dataHome(env), "demo") }

// thisProgram is how this program was called, for another terminal.
func thisProgram() string {
	called := os.Args[0]
	switch full, err := os.Executable(); {
	case strings.Contains(filepath.ToSlash(called), "/go-build"): // go run makes one that is gone afterwards
		return "go run ./cmd/console"
	case !strings.ContainsRune(called, filepath.Separator) || err != nil:
		return called
	default:
		return shellQuoted(full)
	}
}

// shellQuoted is a text as one word of a shell.
func shellQuoted(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:", r))
	}) && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func (d *demoRun) passwords() [][]string {
	var rows [][]string
	for _, u := range d.file.Users {
		rows = append(rows, []string{"  " + strings.Join(u.Roles, ","), u.Username, u.Password})
	}
	return rows
}

// pastedOrder is left to people who paste the printed command.
const pastedOrder = "10082"

// curl is a command that proposes something that nobody else proposes here.
func (d *demoRun) curl() string {
	return fmt.Sprintf(`  curl -sS %s/v1/actions \
    -H 'Authorization: Bearer %s' \
    -H "Idempotency-Key: curl-$(date +%%s)" \
    -H 'Content-Type: application/json' \
    -d '{"tool":"refunds.refund_order","entry":"chat","actor":{"id":"u-anna-schmidt"},"reason":"Customer chat 8841","payload":{"order_id":"%s","amount":12.50,"reason":"one cup arrived chipped"}}'
`, d.file.Console, d.file.Keys.Proposer, pastedOrder)
}
