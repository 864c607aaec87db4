// Package e2e walks through the console in a real browser, against the program
// as it is built and started: what a person sees and does, from signing in to
// "done, read back".
package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/store/storetest"

	"github.com/chromedp/chromedp"
)

// patience bounds what a test waits for.
const patience = 3 * time.Minute

// shared is what every test uses: one browser, one demo. Each is started by the
// first test that needs it, and ended by TestMain.
type shared struct {
	axe     func() (string, error)
	browser func() (context.Context, error)
	program func() (string, error)
	demo    func() (*console, error)

	mu   sync.Mutex
	ends []func()
}

var here = func() *shared {
	s := &shared{}
	s.axe = sync.OnceValues(readAxe)
	s.browser = sync.OnceValues(s.startBrowser)
	s.program = sync.OnceValues(s.build)
	s.demo = sync.OnceValues(s.startDemo)
	return s
}()

func TestMain(m *testing.M) {
	code := storetest.Run(m)
	here.end()
	os.Exit(code)
}

func (s *shared) atEnd(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, f)
}

func (s *shared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range slices.Backward(s.ends) {
		f()
	}
}

// folder makes a folder that PostgreSQL's account may pass through, which those
// of t.TempDir are not.
func (s *shared) folder() (string, error) {
	dir, err := os.MkdirTemp("/tmp", "countersign-e2e-")
	if err != nil {
		return "", err
	}
	s.atEnd(func() { os.RemoveAll(dir) })
	return dir, os.Chmod(dir, 0o755)
}

// programEnv names a program that is built already, to walk through that one.
const programEnv = "COUNTERSIGN_E2E_PROGRAM"

// build builds the program. It looks at every folder of the sources first: a
// cached test result must not outlive a change of the program.
func (s *shared) build() (string, error) {
	if built := os.Getenv(programEnv); built != "" {
		return built, nil
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".git", "node_modules", ".cache"}, d.Name()) {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		return "", err
	}
	dir, err := s.folder()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "console")
	if out, err := exec.Command("go", "build", "-o", program, "countersign/cmd/console").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the console: %w\n%s", err, out)
	}
	return program, nil
}

// errMissing tells that this machine lacks something; the message says what.
var errMissing = errors.New("missing here, and make check installs it")

func browserPath() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("chromium: %w", errMissing)
}

func readAxe() (string, error) {
	text, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		return "", fmt.Errorf("axe-core: %w", errMissing)
	}
	return string(text), nil
}

func (s *shared) startBrowser() (context.Context, error) {
	path, err := browserPath()
	if err != nil {
		return nil, err
	}
	dir, err := s.folder()
	if err != nil {
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.WSURLReadTimeout(patience), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en-US"))
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("starting the browser: %w", err)
	}
	s.atEnd(func() { chromedp.Cancel(ctx) }) // it ends with us in any case
	return ctx, nil
}

// orSkip ends the test when something could not be started. On a machine of
// one's own, a missing browser is a reason to skip; where CI is set it is not.
func orSkip[T any](t *testing.T, start func() (T, error)) T {
	t.Helper()
	v, err := start()
	switch {
	case errors.Is(err, errMissing) && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return v
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// short is a text of a few lines, for messages.
func short(text string) string {
	if lines := strings.Split(text, "\n"); len(lines) > 120 {
		text = strings.Join(lines[:120], "\n") + "\n…"
	}
	return text
}
