package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shared is a folder of real tool definitions, which a user's clone lacks.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the shared test data is not on this machine: %v", err)
	}
	return dir
}

func TestRealDefinitionsImport(t *testing.T) {
	env := onDatabase(t)
	total := 0
	for _, folder := range []string{"tools", "tools_extra"} {
		dir := shared(t, folder)
		out := works(t, env, "", "tools", "apply", dir)
		made := regexp.MustCompile(`(?m)^\S+ +1 +new$`).FindAllString(out, -1)
		total += len(made)
		again := works(t, env, "", "tools", "apply", dir)
		if same := regexp.MustCompile(`(?m)^\S+ +1 +same$`).FindAllString(again, -1); len(same) != len(made) {
			t.Errorf("%s again: %d the same of %d", folder, len(same), len(made))
		}
	}
	if total != 436 {
		t.Errorf("imported %d definitions, want 436", total)
	}
}

func TestContractsFromAFolder(t *testing.T) {
	env := onDatabase(t)
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"description":"d","inputSchema":{"type":"object"}}`, name)
	}
	put("one.json", tool("a.one"))
	put("list.json", "["+tool("b.one")+","+tool("b.two")+"]")
	put("mcp.json", `{"tools":[`+tool("c.one")+`],"nextCursor":null}`)
	put("full.yaml", "name: d.one\nmode: read\ninput_schema: { type: object }\n")
	put("README.md", "not a contract")
	out := works(t, env, "", "tools", "apply", dir)
	for _, name := range []string{"a.one", "b.one", "b.two", "c.one", "d.one"} {
		if !regexp.MustCompile(`(?m)^` + name + ` +1 +new$`).MatchString(out) {
			t.Errorf("%s is missing in\n%s", name, out)
		}
	}

	put("one.json", `{"name":"a.one","description":"changed","inputSchema":{"type":"object"}}`)
	put("bad.yaml", "name: e.one\nmode: write\ninput_schema: { type: object }\ntarget: { type: order, id: order_id }\n")
	put("broken.json", `{"name":`)
	code, out, errs := console(t, env, "", "tools", "apply", dir)
	if code != exitFailed || !strings.Contains(errs, "2 of 7 were refused") {
		t.Errorf("ended with %d: %s", code, errs)
	}
	if !regexp.MustCompile(`(?m)^a\.one +2 +new$`).MatchString(out) || !regexp.MustCompile(`(?m)^bad\.yaml +- +refused$`).MatchString(out) {
		t.Errorf("printed\n%s", out)
	}
	if !strings.Contains(errs, "/target/id: ") || !strings.Contains(errs, "broken.json: ") {
		t.Errorf("the reasons: %s", errs)
	}

	if !strings.Contains(errs, "Nobody can decide as support yet, which ") {
		t.Errorf("nobody can decide: %s", errs)
	}
	works(t, env, "", "user", "add", "mia", "--role", "support")
	if _, _, errs := console(t, env, "", "tools", "apply", dir); strings.Contains(errs, "Nobody can decide") {
		t.Errorf("mia can decide: %s", errs)
	}

	if out := works(t, env, "", "tools", "apply", filepath.Join(dir, "list.json")); !strings.Contains(out, "b.two") {
		t.Errorf("a single file: %s", out)
	}
	if errs := fails(t, env, "", "tools", "apply", t.TempDir()); !strings.Contains(errs, "no contracts here") {
		t.Errorf("an empty folder: %s", errs)
	}
	if errs := fails(t, env, "", "tools", "apply", filepath.Join(dir, "nosuch")); !strings.Contains(errs, "nosuch") {
		t.Errorf("no folder: %s", errs)
	}
}

func TestDemoContractsAreTaken(t *testing.T) {
	served, bare, err := demoDefinitions()
	if err != nil || len(served) == 0 || len(bare) != 2 {
		t.Errorf("%d served, %d bare, %v", len(served), len(bare), err)
	}
}
