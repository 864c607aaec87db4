package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// What lies in a data folder, beside the database.
const (
	clusterDir  = "postgresql"   // the cluster's own folder
	secretFile  = "secret"       // generated where none was given
	runningFile = "database-url" // while a process runs the cluster: how to reach it
)

// dataHome is where data is kept when nobody says: never in a cache, which
// others may clear, and for root not below /root, where PostgreSQL's account
// cannot reach it.
func dataHome(env func(string) string) string {
	switch home := env("HOME"); {
	case os.Geteuid() == 0:
		return "/var/lib/countersign"
	case env("XDG_DATA_HOME") != "":
		return filepath.Join(env("XDG_DATA_HOME"), "countersign")
	case home == "":
		return "countersign-data"
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "countersign")
	default:
		return filepath.Join(home, ".local", "share", "countersign")
	}
}

// makeFolder makes a data folder. For root others may pass through it, not
// look: PostgreSQL runs as another account.
func makeFolder(dir string) error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("making the data folder: %w; choose another with --data", err)
	}
	return nil
}

// writePrivately replaces a file at once, readable by us alone.
func writePrivately(path string, content []byte) error {
	draft, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = draft.Write(content)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(draft.Name()))
	}
	return nil
}

// minSecret is how many bytes the console's secret has at least.
const minSecret = 32

const secretHint = "make one with: openssl rand -base64 32"

// secret is the console's secret and where it came from. It seals the keys
// that sign confirmations.
type secret struct {
	bytes  []byte
	source string
}

// readSecret takes the secret from COUNTERSIGN_SECRET, or from a file in the
// data folder, which it makes when there is none. dir is "" where the console
// has no folder of its own: then it must be given.
func readSecret(env func(string) string, dir string) (secret, error) {
	const variable = "COUNTERSIGN_SECRET"
	if text := env(variable); text != "" {
		b, err := decodeSecret(text)
		if err != nil {
			return secret{}, fmt.Errorf("%s %w", variable, err)
		}
		return secret{b, variable}, nil
	}
	if dir == "" {
		return secret{}, fmt.Errorf("%s is not set; it has to be the same for every console on this database; %s", variable, secretHint)
	}
	path := filepath.Join(dir, secretFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := make([]byte, minSecret)
		rand.Read(fresh) // never fails: crypto/rand ends the program instead
		if err := writePrivately(path, []byte(base64.StdEncoding.EncodeToString(fresh)+"\n")); err != nil {
			return secret{}, err
		}
		return secret{fresh, path + ", just made"}, nil
	}
	if err != nil {
		return secret{}, fmt.Errorf("reading the secret: %w", err)
	}
	b, err := decodeSecret(string(text))
	if err != nil {
		return secret{}, fmt.Errorf("the secret in %s %w", path, err)
	}
	return secret{b, path}, nil
}

func decodeSecret(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("is not base64; " + secretHint)
	}
	if len(b) < minSecret {
		return nil, fmt.Errorf("has %d bytes, at least %d are needed; %s", len(b), minSecret, secretHint)
	}
	return b, nil
}
