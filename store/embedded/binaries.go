//go:build unix

package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Binaries say where PostgreSQL comes from.
type Binaries struct {
	// Dirs are the bin folders to look in, best first, in place of PATH and the
	// usual install folders. Entries may be patterns.
	Dirs []string
	// Cache is where downloaded binaries are kept, and nothing else. Empty: the
	// user's cache folder, or /var/cache/countersign for root.
	Cache string
	// Repository is the Maven repository to download from when this machine has
	// no PostgreSQL. Empty: Maven Central.
	Repository string
}

// install is one PostgreSQL on this machine.
type install struct {
	Dir     string // the folder of initdb and postgres
	Version string // as PostgreSQL says it, such as 15.14
}

// major is the part that must match the data: 15 of 15.14.
func (i install) major() string {
	major, _, _ := strings.Cut(i.Version, ".")
	return major
}

// oldest is the oldest PostgreSQL whose SQL the migrations are written in.
const oldest = 14

// find returns the PostgreSQL for data of the given major version, or the best
// one when major is empty. Only when this machine has none at all is one
// downloaded.
func (b Binaries) find(ctx context.Context, major string, log *slog.Logger) (install, error) {
	found := b.installed(ctx)
	if len(found) == 0 {
		return b.download(ctx, major, log)
	}
	if major == "" {
		if n, err := strconv.Atoi(found[0].major()); err == nil && n < oldest {
			return install{}, fmt.Errorf("PostgreSQL %s in %s is too old: %d or newer is needed", found[0].Version, found[0].Dir, oldest)
		}
		return found[0], nil
	}
	for _, candidate := range found {
		if candidate.major() == major {
			return candidate, nil
		}
	}
	var have []string
	for _, i := range found {
		have = append(have, i.Version+" in "+i.Dir)
	}
	return install{}, fmt.Errorf("%w: it holds data of PostgreSQL %s, this machine has %s; nothing was changed; install PostgreSQL %s, or %s",
		ErrVersion, major, strings.Join(have, ", "), major, wayOut)
}

// installed lists what this machine has: PATH first, then the newest.
func (b Binaries) installed(ctx context.Context) []install {
	dirs := b.Dirs
	if dirs == nil {
		dirs = usualDirs()
	}
	var found []install
	seen := map[string]bool{}
	for _, pattern := range dirs {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			continue // a strange folder in PATH
		}
		var here []install
		for _, dir := range matches {
			version, err := versionIn(ctx, dir)
			if err != nil || seen[dir] {
				continue
			}
			seen[dir] = true
			here = append(here, install{dir, version})
		}
		slices.SortStableFunc(here, func(a, b install) int { return -compareVersions(a.Version, b.Version) })
		found = append(found, here...)
	}
	return found
}

func usualDirs() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs,
		"/usr/lib/postgresql/*/bin",                               // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                        // PostgreSQL's own RPMs
		"/usr/libexec/postgresql*",                                // Alpine
		"/usr/local/pgsql/bin",                                    // from source
		"/opt/homebrew/opt/postgresql*/bin",                       // Homebrew, Apple silicon
		"/usr/local/opt/postgresql*/bin",                          // Homebrew, Intel
		"/Applications/Postgres.app/Contents/Versions/latest/bin", // Postgres.app
	)
}

// versionIn asks the server binary in dir. Both programs must be there.
func versionIn(ctx context.Context, dir string) (string, error) {
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", dir, err)
	}
	// postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)
	fields := strings.Fields(string(out))
	if len(fields) < 3 {
		return "", errors.New("unreadable version: " + string(out))
	}
	return fields[2], nil
}

func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		if errX != nil || errY != nil {
			return cmp.Compare(as[i], bs[i])
		}
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(as), len(bs))
}
