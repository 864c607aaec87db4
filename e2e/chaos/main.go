//go:build unix

// Chaos runs refunds through a real console, real executors and a real
// business system while requests and answers are lost, late, doubled or
// garbled, and while processes are paused and killed. Then it compares what
// the business system did with what the console says:
//
//	go run ./e2e/chaos [-n 10000] [-seed 1]
//
// The last line counts what must not be: refunds that nobody knows of, orders
// that were refunded twice, actions without an end or an open case, and
// statements that say more than what happened. Any of them is exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options is what a run was told.
type options struct {
	refunds   int
	executors int
	seed      uint64
	program   string        // the console, built; "": build it
	every     time.Duration // between two blows against processes
	rounds    int           // of blows, each of them once a round; 0: until everything was executed
	atMost    time.Duration // for everything
	keep      bool          // the folder, for looking at logs
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == shopCommand {
		if err := runShop(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "sandbox:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.IntVar(&o.refunds, "n", 10_000, "refunds")
	flag.IntVar(&o.executors, "executors", 3, "executor processes")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of what goes wrong when")
	flag.StringVar(&o.program, "console", os.Getenv("COUNTERSIGN_E2E_PROGRAM"), "the console's program; built when not given")
	flag.DurationVar(&o.every, "every", 3*time.Second, "time between two blows against processes")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds of blows, every kind once in each; 0: as many as it takes")
	flag.DurationVar(&o.atMost, "timeout", 30*time.Minute, "for the whole run")
	flag.BoolVar(&o.keep, "keep", false, "leave the folder with the logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	clean, err := run(ctx, o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if err != nil || !clean {
		os.Exit(1)
	}
}

// run makes everything, lets it go wrong, and tells what came of it. clean
// says that nothing is there that must not be.
func run(ctx context.Context, o options, out io.Writer) (clean bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.atMost)
	defer cancel()
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(out, "%7.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	dir, err := os.MkdirTemp("/tmp", "countersign-chaos-")
	if err != nil {
		return false, fmt.Errorf("making a folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL's account passes through
		return false, err
	}
	defer func() {
		if o.keep {
			fmt.Fprintln(out, "logs are in", filepath.Join(dir, "logs"))
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	s := &stack{options: o, dir: dir, random: rand.New(rand.NewPCG(o.seed, 1))}
	defer func() { err = errors.Join(err, s.stop()) }()
	say("%d refunds, %d executors, seed %d", o.refunds, o.executors, o.seed)
	if err := s.start(ctx); err != nil {
		return false, err
	}
	say("console %s, refund desk %s", s.console, s.shop.url)
	if err := s.shop.arm(ctx); err != nil {
		return false, err
	}
	blows := s.strike(ctx)
	known, err := s.traffic(ctx, say)
	if err == nil {
		say("all proposed and approved")
		err = s.begun(ctx)
	}
	struck := blows()
	if err != nil {
		return false, err
	}
	say("all executed or under way; no more blows")
	actions, err := s.settle(ctx, say)
	if err != nil {
		return false, err
	}
	return s.report(ctx, out, time.Since(began), known, actions, struck)
}
