//go:build unix

// Package embedded runs a private PostgreSQL cluster from the binaries on this
// machine: one folder, one server process, one unix socket, no network port.
//
// The folder looks like this, and belongs to the cluster alone:
//
//	lock        held while a process uses the folder
//	server.log  what PostgreSQL says
//	run/        the socket
//	data/       the data folder of PostgreSQL
//	elsewhere   only when data/ cannot be here: a link to where run/ and data/ are
//
// PostgreSQL refuses to run as root. When this process is root, the server runs
// as the owner of the data, at first postgres or nobody.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// User is the database superuser that owns everything in the cluster. Whoever
// can reach the socket, which only the operating system's account of the
// server and root can, is this user without a password.
const User = "countersign"

// Database is the database that every cluster has.
const Database = "countersign"

// These tell why a folder was not used. Nothing in it was touched.
var (
	// ErrInUse: another process is using the folder.
	ErrInUse = errors.New("the database folder is in use")
	// ErrVersion: the data was written by another major version of PostgreSQL.
	ErrVersion = errors.New("the database folder belongs to another version of PostgreSQL")
	// ErrForeign: the folder holds something that is not a cluster of this package.
	ErrForeign = errors.New("not a Countersign database folder")
)

// wayOut ends every message about a folder that cannot be used.
const wayOut = "choose another folder with --data, or set DATABASE_URL to a server of your own"

// Options say where the cluster lives and how it runs.
type Options struct {
	Dir      string            // the folder, made when absent; required
	Log      *slog.Logger      // nil: silent
	Settings map[string]string // server settings on top of this package's, e.g. "fsync": "off"
	Binaries Binaries          // where PostgreSQL comes from; zero: the usual places
}

// Cluster is a running cluster. Its methods may be called from any goroutine.
type Cluster struct {
	folder *folder
	socket string // folder of the socket
	server *process
	log    *slog.Logger
	end    sync.Once
	endErr error
}

// Start runs the cluster in o.Dir and returns when it answers. The first start
// makes the cluster and the database named Database; a start after a crash
// recovers what was committed, however long that takes: ctx bounds the wait.
// It fails with ErrInUse, ErrVersion or ErrForeign when the folder is not for it.
//
// When this process dies, however it dies, the server shuts down (on Linux).
func Start(ctx context.Context, o Options) (*Cluster, error) {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	folder, err := openFolder(ctx, o, log)
	if err != nil {
		return nil, err
	}
	c, err := start(ctx, folder, o.Settings, log)
	if err != nil {
		return nil, errors.Join(err, folder.unlock())
	}
	return c, nil
}

func start(ctx context.Context, f *folder, settings map[string]string, log *slog.Logger) (*Cluster, error) {
	if err := endOrphans(ctx, f.data(), log); err != nil {
		return nil, err
	}
	if err := f.initialize(ctx, log); err != nil {
		return nil, err
	}
	socket, err := f.socketDir()
	if err != nil {
		return nil, err
	}
	c := &Cluster{folder: f, socket: socket, log: log}
	if c.server, err = f.launch(socket, settings); err != nil {
		return nil, errors.Join(err, c.removeSocket())
	}
	if err := c.ready(ctx); err != nil {
		c.server.stop(syscall.SIGINT)
		return nil, errors.Join(err, c.removeSocket())
	}
	log.Info("PostgreSQL is running", "version", f.bin.Version, "data", f.data(), "account", f.account.describe())
	return c, nil
}

// DSN is the URL of a database in the cluster, as its owner. Settings such as
// "role=countersign_app" hold for every connection made with it.
func (c *Cluster) DSN(database string, settings ...string) string {
	query := url.Values{"host": {c.socket}, "port": {port}, "sslmode": {"disable"}}
	if len(settings) > 0 {
		var options []string
		for _, s := range settings {
			options = append(options, "-c "+escapeOption(s))
		}
		query.Set("options", strings.Join(options, " "))
	}
	u := url.URL{Scheme: "postgres", User: url.User(User), Path: "/" + database}
	// A plus sign means a space to Go's parser alone; libpq wants %20.
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String()
}

func escapeOption(setting string) string {
	return strings.NewReplacer(`\`, `\\`, ` `, `\ `).Replace(setting)
}

// Done is closed when the server has ended, for whatever reason.
func (c *Cluster) Done() <-chan struct{} { return c.server.done }

// Stop shuts the server down: open transactions are rolled back, everything
// committed is on disk. It returns when the server has ended and the folder is
// free. Calling it again returns the same answer.
func (c *Cluster) Stop() error {
	return c.finish(func() error {
		c.server.stop(syscall.SIGINT)
		return c.removeSocket()
	})
}

// Kill ends the server and all its helpers at once, as a power cut would, and
// frees the folder. It is for tests of what survives that.
func (c *Cluster) Kill() error {
	return c.finish(func() error {
		c.server.stop(syscall.SIGKILL)
		// Helpers lead process groups of their own and outlive the server
		// until they notice.
		for _, pid := range processesIn(c.folder.data()) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("killing PostgreSQL's process %d: %w", pid, err)
			}
		}
		if err := gone(context.Background(), c.folder.data(), shutdownPatience); err != nil {
			return err
		}
		return c.removeSocket()
	})
}

func (c *Cluster) finish(how func() error) error {
	c.end.Do(func() { c.endErr = errors.Join(how(), c.folder.unlock()) })
	return c.endErr
}

// removeSocket removes the socket's folder when it is a temporary one.
func (c *Cluster) removeSocket() error {
	if c.socket == c.folder.run() {
		return nil
	}
	if err := os.RemoveAll(c.socket); err != nil {
		return fmt.Errorf("removing the socket folder: %w", err)
	}
	return nil
}

// launch starts the server process without waiting for it to answer.
func (f *folder) launch(socket string, settings map[string]string) (*process, error) {
	merged := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": socket,
		"unix_socket_permissions": "0700",
		"port":                    port,
		"max_connections":         "200",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_checkpoints":         "off",
		"logging_collector":       "off",
		"log_destination":         "stderr",
	}
	maps.Copy(merged, settings)
	args := []string{"-D", f.data()}
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		args = append(args, "-c", name+"="+merged[name])
	}
	log, err := os.OpenFile(f.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	defer log.Close()
	cmd := f.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	server, err := run(cmd)
	if err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	return server, nil
}

// shutdownPatience is how long a server may take to do what a signal asks
// before a harder one follows.
const shutdownPatience = 60 * time.Second

func logTail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
