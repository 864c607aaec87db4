//go:build unix

package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"countersign/store/embedded"
)

// folderEnv turns the test binary into a program that runs a cluster in the
// named folder, prints its DSN and waits for its standard input to end.
const folderEnv = "COUNTERSIGN_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(folderEnv); dir != "" {
		os.Exit(serve(dir))
	}
	os.Exit(m.Run())
}

func serve(dir string) int {
	c, err := embedded.Start(context.Background(), embedded.Options{Dir: dir, Settings: fast})
	if err != nil {
		os.Stdout.WriteString("refused: " + strings.ReplaceAll(err.Error(), "\n", " ") + "\n")
		return 1
	}
	os.Stdout.WriteString(c.DSN(embedded.Database) + "\n")
	io.Copy(io.Discard, os.Stdin)
	if err := c.Stop(); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		return 1
	}
	return 0
}

// program is another process with a cluster.
type program struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	line  string // the first it printed: its DSN, or why it was refused
}

func launch(t *testing.T, binary, dir string, credential *syscall.Credential) *program {
	t.Helper()
	p := &program{cmd: exec.Command(binary)}
	p.cmd.Env = append(os.Environ(), folderEnv+"="+dir)
	p.cmd.Dir = "/"
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	p.line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the program said nothing: %v", err)
	}
	p.line = strings.TrimSpace(p.line)
	return p
}

func self(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func TestFolderInUseByAnotherProcess(t *testing.T) {
	dir := tempDir(t)
	p := launch(t, self(t), dir, nil)
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if !errors.Is(err, embedded.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(p.cmd.Process.Pid)) {
		t.Errorf("got %v, want who uses it (%d)", err, p.cmd.Process.Pid)
	}
	query[bool](t, p.line, `SELECT true`) // unharmed
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the other process ended with %v", err)
	}
	write(t, start(t, dir), 1)
}

func TestKilledProcessTakesItsServerAlong(t *testing.T) {
	dir := tempDir(t)
	p := launch(t, self(t), dir, nil)
	query[int](t, p.line, `CREATE TABLE kept AS SELECT 9 AS n; SELECT n FROM kept`)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()
	// At once: the old server may still be ending.
	expectKept(t, start(t, dir), 9)
}

func TestOrdinaryAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("every other test runs as an ordinary account already")
	}
	nobody := credential(t, "nobody")
	dir := tempDir(t)
	if err := os.Chown(dir, int(nobody.Uid), int(nobody.Gid)); err != nil {
		t.Fatal(err)
	}
	// The test binary is in a folder of root's.
	binary := filepath.Join(tempDir(t), "program")
	content, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, content, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "mine")
	p := launch(t, binary, home, nobody)
	query[int](t, p.line, `CREATE TABLE kept AS SELECT 10 AS n; SELECT n FROM kept`)
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// Root goes on with it as its owner, and that owner after root.
	c := start(t, home)
	expectKept(t, c, 10)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	p = launch(t, binary, home, nobody)
	if strings.HasPrefix(p.line, "refused") {
		t.Error(p.line)
	}
}

func TestFolderThatOnlyRootCanReach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	closed := filepath.Join(tempDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "db")
	c := start(t, dir)
	away, err := os.Readlink(filepath.Join(dir, "elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill(); os.RemoveAll(away) })
	write(t, c, 11)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the closed folder was opened: %v, %v", info.Mode(), err)
	}
	c = start(t, dir)
	t.Cleanup(func() { c.Kill() })
	expectKept(t, c, 11)
}

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Skipf("this machine has no account %s", name)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
