//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// port only names the socket's file.
const port = "5432"

// elsewhereBase is where root puts clusters whose own folder the server's
// account cannot reach, as below /root.
const elsewhereBase = "/var/lib/countersign"

// folder is a cluster's folder while this process holds it.
type folder struct {
	dir     string // as asked for, absolute
	home    string // where run/ and data/ are: dir, or elsewhere
	lock    *os.File
	bin     install
	account account
}

func (f *folder) data() string { return filepath.Join(f.home, "data") }
func (f *folder) run() string  { return filepath.Join(f.home, "run") }
func (f *folder) log() string  { return filepath.Join(f.dir, "server.log") }

// openFolder checks the folder, takes it for this process and settles where the
// files are. Up to the lock it only reads, so a folder that is refused stays as
// it was.
func openFolder(ctx context.Context, o Options, log *slog.Logger) (*folder, error) {
	if o.Dir == "" {
		return nil, errors.New("no folder given for the database")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the database folder: %w", err)
	}
	f := &folder{dir: dir}
	if err := f.recognize(ctx, o.Binaries, log); err != nil {
		return nil, err
	}
	if err := f.take(); err != nil {
		return nil, err
	}
	if err := f.settle(ctx, o.Binaries, log); err != nil {
		return nil, errors.Join(err, f.unlock())
	}
	return f, nil
}

// settle is what happens under the lock before the server can run.
func (f *folder) settle(ctx context.Context, b Binaries, log *slog.Logger) error {
	// Again: another process may have made the cluster since.
	if err := f.recognize(ctx, b, log); err != nil {
		return err
	}
	if err := f.lock.Truncate(0); err != nil {
		return fmt.Errorf("writing the lock: %w", err)
	}
	if _, err := fmt.Fprintln(f.lock, os.Getpid()); err != nil {
		return fmt.Errorf("writing the lock: %w", err)
	}
	var err error
	if f.account, err = accountFor(f.data()); err != nil {
		return err
	}
	return f.place(log)
}

// recognize reads what is in the folder and finds the PostgreSQL for it.
func (f *folder) recognize(ctx context.Context, b Binaries, log *slog.Logger) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the database folder: %w; %s", err, wayOut)
	}
	ours := len(entries) == 0
	for _, e := range entries {
		ours = ours || e.Name() == "lock"
	}
	if !ours {
		return fmt.Errorf("%w: %s holds other files; %s", ErrForeign, f.dir, wayOut)
	}
	f.home = f.dir
	if away, err := os.Readlink(filepath.Join(f.dir, "elsewhere")); err == nil {
		f.home = away
		if _, err := os.Stat(away); err != nil {
			return fmt.Errorf("the files of the database in %s were kept in %s: %w", f.dir, away, err)
		}
	}
	major, err := readMajor(f.data())
	if err != nil {
		return err
	}
	f.bin, err = b.find(ctx, major, log)
	return err
}

// readMajor returns the version that wrote the data, or "" when there is none.
func readMajor(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the database's version: %w", err)
	}
	if _, err := os.Lstat(data); err == nil {
		return "", fmt.Errorf("%w: %s is there but holds no PostgreSQL data; %s", ErrForeign, data, wayOut)
	}
	return "", nil
}

// take makes the folder when it is absent, and locks it.
func (f *folder) take() error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755 // the server's account has to pass through; see place
	}
	if err := os.MkdirAll(f.dir, mode); err != nil {
		return fmt.Errorf("making the database folder: %w; %s", err, wayOut)
	}
	lock, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the database folder: %w; %s", err, wayOut)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("locking the database folder: %w", err)
		}
		holder, _ := io.ReadAll(lock) // a help in the message, no more
		who := strings.TrimSpace("process " + strings.TrimSpace(string(holder)))
		return fmt.Errorf("%w: another %s is using %s; stop it, or %s", ErrInUse, who, f.dir, wayOut)
	}
	f.lock = lock
	return nil
}

// unlock lets others use the folder.
func (f *folder) unlock() error {
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("unlocking the database folder: %w", err)
	}
	return nil
}

// place makes sure that the server's account can reach its files, moving to a
// place elsewhere if the cluster does not exist yet.
func (f *folder) place(log *slog.Logger) error {
	if !f.account.other() {
		return nil
	}
	// Others may pass through, not look: run/ and data/ are the account's alone.
	if err := os.Chmod(f.home, 0o711); err != nil {
		return fmt.Errorf("opening the database folder to %s: %w", f.account.name, err)
	}
	err := f.reachable()
	if err == nil {
		return nil
	}
	if _, statErr := os.Stat(f.data()); statErr == nil || f.home != f.dir {
		return fmt.Errorf("the account %s, which has to run PostgreSQL for root, cannot work in %s: %w; move it to a folder that everybody may pass through, or %s",
			f.account.name, f.home, err, wayOut)
	}
	if err := os.MkdirAll(elsewhereBase, 0o755); err != nil {
		return fmt.Errorf("making a place for the database: %w; %s", err, wayOut)
	}
	away, err := os.MkdirTemp(elsewhereBase, "cluster-")
	if err != nil {
		return fmt.Errorf("making a place for the database: %w; %s", err, wayOut)
	}
	if err := os.Symlink(away, filepath.Join(f.dir, "elsewhere")); err != nil {
		return errors.Join(fmt.Errorf("noting where the database is: %w", err), os.Remove(away))
	}
	f.home = away
	log.Warn("root's folder is closed to the account that runs PostgreSQL: the data is kept elsewhere",
		"folder", f.dir, "account", f.account.name, "data", away, "hint", wayOut)
	return f.place(log)
}

// reachable runs the server's binary in the folder as the server's account.
func (f *folder) reachable() error {
	cmd := f.command("postgres", "--version")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s in %s: %w", cmd.Path, f.home, err)
	}
	return nil
}

// command prepares one of PostgreSQL's programs to run as the server's account.
func (f *folder) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(f.bin.Dir, program), args...)
	cmd.Dir = f.home
	cmd.Env = []string{"LC_ALL=C"}
	for _, kv := range os.Environ() {
		// The caller's PGDATA, PGOPTIONS or locale are not meant for this server.
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Setpgid = true // the terminal's interrupt is for us; we stop the server in order
	cmd.SysProcAttr.Credential = f.account.credential
	return cmd
}

// initialize makes the data folder if there is none. It appears under its name
// only when it is complete, so an interrupted attempt is simply repeated.
func (f *folder) initialize(ctx context.Context, log *slog.Logger) error {
	if _, err := os.Stat(f.data()); err == nil {
		return f.account.own(f.data())
	}
	log.Info("making a new database", "folder", f.home)
	fresh := filepath.Join(f.home, "data.new")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("removing an unfinished database: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("making the data folder: %w", err)
	}
	if err := f.account.own(fresh); err != nil {
		return err
	}
	// Locale C: the order of text never changes under an index when the
	// operating system's tables do.
	cmd := f.command("initdb", "-D", fresh, "-U", User, "-E", "UTF8", "--locale=C",
		"--auth-local=trust", "--auth-host=reject", "--data-checksums", "--no-instructions")
	output := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = output, output
	initdb, err := run(cmd)
	if err != nil {
		return fmt.Errorf("running initdb: %w", err)
	}
	select {
	case <-initdb.done:
	case <-ctx.Done():
		initdb.stop(syscall.SIGTERM)
		return fmt.Errorf("making the database: %w", ctx.Err())
	}
	if initdb.err != nil {
		return fmt.Errorf("making the database: %w: %s; %s", initdb.err, strings.TrimSpace(output.String()), wayOut)
	}
	if err := os.Rename(fresh, f.data()); err != nil {
		return fmt.Errorf("naming the data folder: %w", err)
	}
	return syncDir(f.home)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return nil
}

// plainPath is what both PostgreSQL's setting and a connection string take as
// one folder without any quoting.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._ -]+$`)

// socketDir makes the folder of the socket: run/, or a private temporary one
// when that path is longer than a socket's may be (107 bytes on Linux, 103 on
// others), or one of its characters has a meaning of its own.
func (f *folder) socketDir() (string, error) {
	dir := f.run()
	if len(filepath.Join(dir, ".s.PGSQL."+port)) > 103 || !plainPath.MatchString(dir) {
		temp, err := os.MkdirTemp("/tmp", "countersign-")
		if err != nil {
			return "", fmt.Errorf("making the socket folder: %w", err)
		}
		return temp, f.account.own(temp)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("making the socket folder: %w", err)
	}
	return dir, f.account.own(dir)
}
