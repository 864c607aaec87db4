//go:build unix

// Withcluster runs a command with a PostgreSQL cluster for its tests, and ends
// with the command's exit code:
//
//	go run ./tools/withcluster [-durable] go test ./...
//
// The packages under test find it through storetest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"countersign/store/storetest"
)

func main() {
	durable := flag.Bool("durable", false, "write to disk as a real server does, for measurements")
	flag.Parse()
	code, err := run(*durable, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "withcluster:", err)
	}
	os.Exit(code)
}

func run(durable bool, args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New("which command?")
	}
	// The terminal interrupts the command too; its end is ours.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	end, err := storetest.StartCluster(durable)
	if err != nil {
		return 1, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), end()
	}
	if err = errors.Join(err, end()); err != nil {
		return 1, err
	}
	return 0, nil
}
