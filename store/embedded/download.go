//go:build unix

package embedded

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloadable are the versions that can be downloaded, by major version.
func downloadable(major string) (embeddedpostgres.PostgresVersion, bool) {
	switch major {
	case "14":
		return embeddedpostgres.V14, true
	case "15":
		return embeddedpostgres.V15, true
	case "16":
		return embeddedpostgres.V16, true
	case "", "17":
		return embeddedpostgres.V17, true
	case "18":
		return embeddedpostgres.V18, true
	}
	return "", false
}

// download fetches PostgreSQL into the cache, or finds it there.
//
// The library that does it also wants to make and run a cluster, wiping a data
// folder of another version on the way. It is only let as far as unpacking: it
// works in an empty folder of ours, and is given a data folder whose name ends
// in ".", which it refuses to clear before it would touch anything.
func (b Binaries) download(ctx context.Context, major string, log *slog.Logger) (install, error) {
	version, ok := downloadable(major)
	if !ok {
		return install{}, fmt.Errorf("%w: it holds data of PostgreSQL %s, which this machine does not have and which cannot be downloaded; nothing was changed; install it, or %s",
			ErrVersion, major, wayOut)
	}
	cache, err := b.cacheDir()
	if err != nil {
		return install{}, err
	}
	target := filepath.Join(cache, "postgresql-"+string(version))
	if _, err := versionIn(ctx, filepath.Join(target, "bin")); err != nil {
		if err := b.fetch(version, cache, target, log); err != nil {
			return install{}, fmt.Errorf("this machine has no PostgreSQL and downloading it failed; install it (Debian: apt-get install postgresql), or set DATABASE_URL: %w", err)
		}
	}
	dir := filepath.Join(target, "bin")
	got, err := versionIn(ctx, dir)
	if err != nil {
		return install{}, fmt.Errorf("the downloaded PostgreSQL does not run: %w", err)
	}
	return install{dir, got}, nil
}

func (b Binaries) fetch(version embeddedpostgres.PostgresVersion, cache, target string, log *slog.Logger) error {
	log.Info("no PostgreSQL on this machine: downloading it", "version", string(version), "into", target)
	scratch, err := os.MkdirTemp(cache, "download-")
	if err != nil {
		return fmt.Errorf("making a folder for the download: %w", err)
	}
	defer os.RemoveAll(scratch)
	port, err := freePort() // the library insists on one, though nothing will listen
	if err != nil {
		return err
	}
	unpacked := filepath.Join(scratch, "unpacked")
	config := embeddedpostgres.DefaultConfig().Version(version).Port(port).Logger(io.Discard).
		CachePath(scratch).RuntimePath(unpacked).DataPath(filepath.Join(scratch, "none") + "/.")
	if b.Repository != "" {
		config = config.BinaryRepositoryURL(b.Repository)
	}
	stopped := embeddedpostgres.NewDatabase(config).Start()
	if _, err := os.Stat(filepath.Join(unpacked, "bin", "postgres")); err != nil {
		return fmt.Errorf("unpacking PostgreSQL %s: %w", version, stopped)
	}
	// Another process may have been faster; its copy is as good.
	if err := os.Rename(unpacked, target); err != nil && !isFull(target) {
		return fmt.Errorf("keeping the downloaded PostgreSQL: %w", err)
	}
	return nil
}

func isFull(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "bin", "postgres"))
	return err == nil
}

// cacheDir makes the folder for binaries. The server's account must be able to
// reach it, so root does not use its own home.
func (b Binaries) cacheDir() (string, error) {
	dir := b.Cache
	if dir == "" && os.Geteuid() == 0 {
		dir = "/var/cache/countersign"
	}
	if dir == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a cache folder: %w", err)
		}
		dir = filepath.Join(home, "countersign")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding a cache folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	return dir, nil
}

func freePort() (uint32, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("finding a free port: strange address %s", strings.TrimSpace(l.Addr().String()))
	}
	return uint32(tcp.Port), nil
}
