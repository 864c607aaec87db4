//go:build unix

package embedded_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"countersign/store/embedded"
)

// repository serves this machine's own PostgreSQL the way the Maven repository
// serves one, and counts the archives it hands out.
func repository(t *testing.T) (url string, served *atomic.Int32) {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		t.Skip("this machine has no PostgreSQL that could be served")
	}
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("xz is needed to pack an archive")
	}
	root := filepath.Dir(filepath.Dir(found[0]))
	tar := exec.Command("tar", "-C", root, "--exclude", "bitcode", "-cJf", "-", "bin/postgres", "bin/initdb", "lib")
	tar.Env = append(os.Environ(), "XZ_OPT=-0")
	packed, err := tar.Output()
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	entry, err := z.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(entry, bytes.NewReader(packed)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(jar.Bytes())
	served = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			io.WriteString(w, hex.EncodeToString(sum[:]))
			return
		}
		served.Add(1)
		w.Write(jar.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL, served
}

func TestMachineWithoutPostgreSQL(t *testing.T) {
	url, served := repository(t)
	top := tempDir(t)
	options := embedded.Options{
		Dir:      filepath.Join(top, "db"),
		Settings: fast,
		Binaries: embedded.Binaries{Dirs: []string{}, Cache: filepath.Join(top, "cache"), Repository: url},
	}
	// The archive is of this machine's version, whatever was asked for. So the
	// second start asks again, for that one, and the third finds it.
	for i := range 3 {
		c, err := embedded.Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Kill() })
		if i == 0 {
			write(t, c, 12)
		}
		expectKept(t, c, 12)
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if n := served.Load(); n != 2 {
		t.Errorf("downloaded %d times", n)
	}
	left, err := os.ReadDir(options.Binaries.Cache)
	if err != nil || len(left) != 2 {
		t.Errorf("the cache holds %v, %v", left, err)
	}
}

func TestDownloadNeverReachesDataOfAnotherVersion(t *testing.T) {
	url, served := repository(t)
	dir := tempDir(t)
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"lock": "", "data/PG_VERSION": "9.6\n", "data/precious": "yes"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := picture(t, dir)
	_, err := embedded.Start(t.Context(), embedded.Options{
		Dir:      dir,
		Binaries: embedded.Binaries{Dirs: []string{}, Cache: filepath.Join(tempDir(t), "cache"), Repository: url},
	})
	if !errors.Is(err, embedded.ErrVersion) {
		t.Errorf("got %v", err)
	}
	if after := picture(t, dir); after != before {
		t.Errorf("it was changed from\n%s\nto\n%s", before, after)
	}
	if n := served.Load(); n != 0 {
		t.Errorf("downloaded %d times", n)
	}
}

func TestDownloadThatFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := embedded.Start(t.Context(), embedded.Options{
		Dir:      tempDir(t),
		Binaries: embedded.Binaries{Dirs: []string{}, Cache: tempDir(t), Repository: server.URL},
	})
	if err == nil || !strings.Contains(err.Error(), "apt-get install postgresql") || !strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("got %v, want the way out", err)
	}
}
