//go:build unix

package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// pollEvery is how often we look whether a process has done what we wait for.
const pollEvery = 10 * time.Millisecond

// process is a child that runs until it ends or is stopped.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; set before done is closed
}

// run starts cmd.
func run(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux tells a child that its parent died when the *thread* that made
		// it ends, so this one is kept for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// stop sends sig and waits for the end, sending harder signals when it takes
// too long.
func (p *process) stop(sig syscall.Signal) {
	for _, s := range []syscall.Signal{sig, syscall.SIGQUIT, syscall.SIGKILL} {
		select {
		case <-p.done:
			return
		default:
		}
		// The process may end right now; then there is nothing to signal.
		_ = p.cmd.Process.Signal(s)
		select {
		case <-p.done:
			return
		case <-time.After(shutdownPatience):
		}
	}
	<-p.done
}

// ready waits until the server answers and the database exists.
func (c *Cluster) ready(ctx context.Context) error {
	db, err := sql.Open("postgres", c.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer db.Close()
	if err := c.answers(ctx, db); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+pq.QuoteIdentifier(Database))
	if err != nil && pq.As(err, pqerror.DuplicateDatabase) == nil {
		return fmt.Errorf("making the database %s: %w", Database, err)
	}
	return nil
}

func (c *Cluster) answers(ctx context.Context, db *sql.DB) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	news := time.NewTicker(10 * time.Second)
	defer news.Stop()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.server.done:
			return fmt.Errorf("PostgreSQL ended while starting (%v); its log %s ends:\n%s", c.server.err, c.folder.log(), logTail(c.folder.log()))
		case <-ctx.Done():
			return fmt.Errorf("waiting for PostgreSQL: %w (last answer: %v)", ctx.Err(), err)
		case <-news.C:
			c.log.Info("still waiting for PostgreSQL", "answer", err)
		case <-poll.C:
		}
	}
}

// endOrphans waits for the server of a process that died without stopping it,
// and for its helpers. We hold the folder's lock, so nobody else uses them.
func endOrphans(ctx context.Context, data string, log *slog.Logger) error {
	main := postmaster(data)
	for i, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		pids := processesIn(data)
		if len(pids) == 0 {
			return forgetStale(data, main, log)
		}
		log.Info("an earlier server is still ending", "processes", len(pids))
		for _, pid := range pids {
			// Helpers end with the server; alone they understand harder signals.
			if i > 0 || pid == main {
				_ = syscall.Kill(pid, signal) // it may be gone by now
			}
		}
		if err := gone(ctx, data, shutdownPatience/2); err != nil {
			return err
		}
	}
	if pids := processesIn(data); len(pids) > 0 {
		return fmt.Errorf("%w: processes %v in %s do not end; %s", ErrInUse, pids, data, wayOut)
	}
	return forgetStale(data, main, log)
}

// gone waits until no process works in data, at most for the given time.
func gone(ctx context.Context, data string, atMost time.Duration) error {
	deadline := time.After(atMost)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for len(processesIn(data)) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for an earlier server to end: %w", ctx.Err())
		case <-deadline:
			return nil
		case <-poll.C:
		}
	}
	return nil
}

// postmaster reads the server's process id from its own lock file, 0 if none.
func postmaster(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0
	}
	return pid
}

// forgetStale removes the lock file of a server that is gone when its process
// id now belongs to something else, as after a reboot: PostgreSQL would take
// that for the server. Every other stale lock file it recognizes itself.
func forgetStale(data string, pid int, log *slog.Logger) error {
	if pid <= 0 || !canSeeProcesses() || slices.Contains(processesIn(data), pid) {
		return nil
	}
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return nil
	}
	log.Info("forgetting a server that did not stop in order", "pid", pid)
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a stale lock file: %w", err)
	}
	return nil
}
