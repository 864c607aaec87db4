package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands() {
		args := append(strings.Fields(c.name), "-h")
		code, out, errs := console(t, nil, "", args...)
		if code != exitOK || errs != "" || !strings.Contains(out, "console "+c.name) || !strings.Contains(out, c.about) {
			t.Errorf("console %s -h: %d\n%s%s", c.name, code, out, errs)
		}
	}
	_, out, _ := console(t, nil, "", "-h")
	column := strings.Index(out, commands()[0].about) - strings.Index(out, "  console demo")
	for _, c := range commands() {
		at := strings.Index(out, "  console "+c.name+"  ")
		if at < 0 || strings.Index(out, c.about) != at+column {
			t.Errorf("console -h does not list %s, or not in its columns", c.name)
		}
	}
}

// The environment is where secrets stand: the help may be pasted anywhere.
func TestHelpTellsNothingOfTheEnvironment(t *testing.T) {
	secret := func(name string) string {
		if name == "HOME" {
			return "/home/ops"
		}
		return "s3cr3t"
	}
	for _, c := range commands() {
		var out, errs bytes.Buffer
		run(t.Context(), append(strings.Fields(c.name), "-h"), secret, strings.NewReader(""), &out, &errs)
		if said := out.String() + errs.String(); strings.Contains(said, "s3cr3t") || !strings.Contains(said, c.about) {
			t.Errorf("console %s -h says\n%s", c.name, said)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"", ""},
		{"serv", `there is no command "serv"`},
		{"user", "user add"},
		{"user frob", "user add"},
		{"serve --port 80", "-port"},
		{"serve extra", "one word too many"},
		{"serve --log xml", "text or json"},
		{"serve --tls-cert a.pem", "--tls-key"},
		{"serve --public-url countersign.example", "https://host"},
		{"serve --public-url https://countersign.example/path", "without a path"},
		{"user add", "USERNAME is missing"},
		{"user add --role", "needs an argument"},
		{"client revoke shop", "KEY-ID is missing"},
		{"tools apply", "DIR is missing"},
		{"executor", "--config is missing"},
		{"migrate", "DATABASE_URL is not set"},
	} {
		code, _, errs := console(t, environment{"HOME": t.TempDir()}, "", strings.Fields(c.line)...)
		if code != exitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("console %s: ended with %d, says %q", c.line, code, errs)
		}
	}
}

func TestFlagsStandAnywhere(t *testing.T) {
	cmd, rest, err := find(strings.Fields("client revoke shop --data /d key_1"))
	if err != nil {
		t.Fatal(err)
	}
	c := newCall(cmd, rest, environment{}.get, nil, nil, nil)
	where := c.databaseFlags("/standard")
	args, err := c.parse()
	if err != nil || len(args) != 2 || args[0] != "shop" || args[1] != "key_1" || where().folder != "/d" {
		t.Errorf("got %q, %v, %+v", args, err, where())
	}
}

func TestSecretsAreHidden(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://app:hunter2@db/countersign?sslmode=verify-full":             "postgres://app:xxxxx@db/countersign?sslmode=verify-full",
		"postgres://db/countersign?password=hunter2&sslmode=disable&user=app":   "postgres://db/countersign?password=xxxxx&sslmode=disable&user=app",
		"postgres://db/countersign?sslpassword=hunter2&sslmode=verify-full&a=1": "postgres://db/countersign?a=1&sslmode=verify-full&sslpassword=xxxxx",
		"host=db password=hunter2": "DATABASE_URL, which is no URL",
	} {
		if got := (place{url: dsn}).describe(); got != want {
			t.Errorf("%s is shown as %s", dsn, got)
		}
	}
}

func TestSecret(t *testing.T) {
	good := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	short := base64.StdEncoding.EncodeToString([]byte("short"))
	dir := t.TempDir()
	if s, err := readSecret(environment{"COUNTERSIGN_SECRET": good}.get, ""); err != nil || len(s.bytes) != 32 {
		t.Errorf("from the environment: %v", err)
	}
	for _, text := range []string{short, "not base64!"} {
		if _, err := readSecret(environment{"COUNTERSIGN_SECRET": text}.get, dir); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := readSecret(environment{}.get, ""); err == nil {
		t.Error("a console without a folder made up a secret")
	}
	made, err := readSecret(environment{}.get, dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, secretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v, %v", info.Mode(), err)
	}
	if again, err := readSecret(environment{}.get, dir); err != nil || string(again.bytes) != string(made.bytes) {
		t.Errorf("the second start has another secret: %v", err)
	}
}

func TestDataHome(t *testing.T) {
	if os.Geteuid() == 0 {
		if got := dataHome(environment{"HOME": "/root"}.get); got != "/var/lib/countersign" {
			t.Errorf("root's data is in %s", got)
		}
		return
	}
	if got := dataHome(environment{"XDG_DATA_HOME": "/x"}.get); got != "/x/countersign" {
		t.Errorf("data is in %s", got)
	}
}

func TestVersion(t *testing.T) {
	if out := works(t, nil, "", "version"); !strings.HasPrefix(out, "countersign ") {
		t.Errorf("printed %q", out)
	}
}
