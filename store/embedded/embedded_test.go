//go:build unix

package embedded_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign/store/embedded"

	_ "github.com/lib/pq"
)

// fast makes tests quick. What a killed server had committed is still in the
// operating system's hands, so nothing is lost by it here.
var fast = map[string]string{"fsync": "off", "autovacuum": "off"}

// tempDir is a folder that everybody may reach, unlike t.TempDir's.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "countersign-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string) *embedded.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := embedded.Start(ctx, embedded.Options{Dir: dir, Settings: fast})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill() })
	return c
}

func query[T any](t *testing.T, dsn, text string) (v T) {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(text).Scan(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func write(t *testing.T, c *embedded.Cluster, n int) {
	t.Helper()
	query[int](t, c.DSN(embedded.Database), fmt.Sprintf(`CREATE TABLE kept AS SELECT %d AS n; SELECT n FROM kept`, n))
}

func expectKept(t *testing.T, c *embedded.Cluster, want int) {
	t.Helper()
	if got := query[int](t, c.DSN(embedded.Database), `SELECT n FROM kept`); got != want {
		t.Errorf("kept %d, want %d", got, want)
	}
}

func TestFreshStartThenAgain(t *testing.T) {
	dir := filepath.Join(tempDir(t), "not", "there", "yet")
	c := start(t, dir)
	if got := query[string](t, c.DSN(embedded.Database), `SELECT current_user || ' ' || current_database()`); got != "countersign countersign" {
		t.Errorf("connected as %s", got)
	}
	if got := query[string](t, c.DSN("postgres"), `SHOW listen_addresses`); got != "" {
		t.Errorf("it listens on the network: %q", got)
	}
	write(t, c, 1)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	default:
		t.Error("Stop returned before the server ended")
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
	expectKept(t, start(t, dir), 1)
}

func TestSettingsOfAConnection(t *testing.T) {
	c := start(t, tempDir(t))
	dsn := c.DSN("postgres", "timezone=Asia/Shanghai", `application_name=a b\c`)
	if got := query[string](t, dsn, `SELECT current_setting('timezone') || '|' || current_setting('application_name')`); got != `Asia/Shanghai|a b\c` {
		t.Errorf("got %s", got)
	}
}

func TestUncleanStop(t *testing.T) {
	dir := tempDir(t)
	c := start(t, dir)
	write(t, c, 2)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	expectKept(t, start(t, dir), 2)
}

// After a reboot the process id in the lock file may belong to anything.
func TestStaleLockFileNamesALivingProcess(t *testing.T) {
	dir := tempDir(t)
	c := start(t, dir)
	write(t, c, 3)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	path := filepath.Join(dir, "data", "postmaster.pid")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(path, []byte(strconv.Itoa(other.Process.Pid)+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	expectKept(t, start(t, dir), 3)
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the innocent process was hit: %v", err)
	}
}

func TestServerThatDiesIsNoticed(t *testing.T) {
	c := start(t, tempDir(t))
	query[bool](t, c.DSN("postgres"), `SELECT true`)
	pid := query[int](t, c.DSN("postgres"), `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int`)
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("Done stays open")
	}
}

func TestInterruptedInitialization(t *testing.T) {
	dir := tempDir(t)
	half := filepath.Join(dir, "data.new", "base")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, start(t, dir), 4)
}

func TestRefusedFoldersStayAsTheyWere(t *testing.T) {
	for _, c := range []struct {
		name string
		want error
		path string // of the one file in it
	}{
		{"another version", embedded.ErrVersion, "data/PG_VERSION"},
		{"another version, data kept elsewhere", embedded.ErrVersion, "away/data/PG_VERSION"},
		{"a data folder itself", embedded.ErrForeign, "PG_VERSION"},
		{"other files", embedded.ErrForeign, "photos/holiday.jpg"},
		{"data that is no data", embedded.ErrForeign, "data/notes.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tempDir(t)
			path := filepath.Join(dir, c.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("9.6\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.want == embedded.ErrVersion || strings.HasPrefix(c.path, "data") {
				if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("1\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(c.path, "away") {
				if err := os.Symlink(filepath.Join(dir, "away"), filepath.Join(dir, "elsewhere")); err != nil {
					t.Fatal(err)
				}
			}
			before := picture(t, dir)
			_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "--data") {
				t.Errorf("got %v, want %v and the way out", err, c.want)
			}
			if after := picture(t, dir); after != before {
				t.Errorf("it was changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// A real cluster, marked as another version's.
func TestAnotherVersionIsRefusedUntouched(t *testing.T) {
	dir := tempDir(t)
	c := start(t, dir)
	write(t, c, 5)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(dir, "data", "PG_VERSION")
	right, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mark, []byte("11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := picture(t, dir)
	_, err = embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if !errors.Is(err, embedded.ErrVersion) {
		t.Errorf("got %v", err)
	}
	if after := picture(t, dir); after != before {
		t.Error("the folder was changed")
	}
	if err := os.WriteFile(mark, right, 0o600); err != nil {
		t.Fatal(err)
	}
	expectKept(t, start(t, dir), 5)
}

// picture is everything about a folder: names, modes, owners, times, contents.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var out bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%x\n", sha256.Sum256(content))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestOddFolderNames(t *testing.T) {
	for _, name := range []string{
		"two words",
		`comma, 'quote" and %41`,
		"数据",
		strings.Repeat("long", 40),
	} {
		t.Run(name[:min(len(name), 20)], func(t *testing.T) {
			dir := filepath.Join(tempDir(t), name)
			c := start(t, dir)
			write(t, c, 6)
			if err := c.Stop(); err != nil {
				t.Fatal(err)
			}
			expectKept(t, start(t, dir), 6)
		})
	}
}

func TestTwoStartersRace(t *testing.T) {
	dir := tempDir(t)
	clusters := make([]*embedded.Cluster, 6)
	errs := make([]error, len(clusters))
	var wg sync.WaitGroup
	for i := range clusters {
		wg.Go(func() {
			clusters[i], errs[i] = embedded.Start(t.Context(), embedded.Options{Dir: dir, Settings: fast})
		})
	}
	wg.Wait()
	won := 0
	for i, c := range clusters {
		if c != nil {
			won++
			write(t, c, 7)
			t.Cleanup(func() { c.Kill() })
		} else if !errors.Is(errs[i], embedded.ErrInUse) {
			t.Errorf("a loser got %v", errs[i])
		}
	}
	if won != 1 {
		t.Errorf("%d starters won", won)
	}
}

func TestCancelledStartLeavesNothingRunning(t *testing.T) {
	dir := tempDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := embedded.Start(ctx, embedded.Options{Dir: dir, Settings: fast}); err == nil {
		c.Kill()
		t.Fatal("it started all the same")
	}
	write(t, start(t, dir), 8)
}
