package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"countersign/action"
)

// demoFile is what demo.json says: where things are and how to get in.
type demoFile struct {
	Console string     `json:"console"`
	Sandbox string     `json:"sandbox"`
	Users   []demoUser `json:"users"`
	Keys    demoKeys   `json:"keys"`
}

type demoUser struct {
	Username string   `json:"username"`
	Password string   `json:"password"`
	Roles    []string `json:"roles"`
}

// demoKeys are API keys by the role they have.
type demoKeys struct {
	Proposer string `json:"proposer"`
	Executor string `json:"executor"`
	Reader   string `json:"reader"`
	Admin    string `json:"admin"`
}

func demoPath(dir string) string { return filepath.Join(dir, "demo.json") }

// readDemoFile reads what an earlier start has written; there is none at first.
func readDemoFile(dir string) (f demoFile, found bool, err error) {
	raw, err := os.ReadFile(demoPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return demoFile{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		return demoFile{}, true, fmt.Errorf("reading %s: %w; delete it to have one made anew", demoPath(dir), err)
	}
	return f, true, nil
}

func (f demoFile) write(dir string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding demo.json: %w", err)
	}
	return writePrivately(demoPath(dir), append(text, '\n'))
}

// user returns a user's line, with a password of its own when it is new.
func (f *demoFile) user(m member) demoUser {
	for i := range f.Users {
		if f.Users[i].Username == m.username {
			f.Users[i].Roles = m.roles
			return f.Users[i]
		}
	}
	u := demoUser{Username: m.username, Password: newPassword(), Roles: m.roles}
	f.Users = append(f.Users, u)
	return u
}

// newPassword makes one that can be typed: 80 random bits in groups of four.
func newPassword() string {
	text := strings.ToLower(action.NewSecret(10))
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
}

// shellLines sets variables that curl examples use, and those with which other
// commands find the demo: its address, and the folder of its database.
func (f demoFile) shellLines(dir string) string {
	return fmt.Sprintf("export CONSOLE=%s\nexport SANDBOX=%s\nexport PROPOSER_KEY=%s\nexport EXECUTOR_KEY=%s\nexport READER_KEY=%s\nexport ADMIN_KEY=%s\n",
		f.Console, f.Sandbox, f.Keys.Proposer, f.Keys.Executor, f.Keys.Reader, f.Keys.Admin) +
		fmt.Sprintf("export COUNTERSIGN_URL=%s\nexport COUNTERSIGN_DATA='%s'\n", f.Console, strings.ReplaceAll(dir, "'", `'\''`))
}
