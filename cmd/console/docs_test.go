package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"countersign/execution/api"
)

// documents tell of commands and link to each other.
func documents() []string {
	return []string{"README.md", "docs/running.md", "docs/plug-in.md", "docs/http-api.md"}
}

// blocks are the fenced examples of a document, in a language.
func blocks(t *testing.T, file, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	inside, wanted, example := false, false, ""
	for line := range strings.Lines(string(text)) {
		fence, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case ok && inside && wanted:
			found = append(found, example)
			fallthrough
		case ok:
			inside, wanted, example = !inside, fence == language, ""
		default:
			example += line
		}
	}
	return found
}

// reader pastes examples into a shell in the root of the module. The shell's
// variables last from one paste to the next.
type reader struct{ dir, state string }

func (r reader) paste(t *testing.T, example string) string {
	t.Helper()
	script := "set -e\n[ ! -e " + r.state + " ] || . " + r.state + "\n" + example + "\n{ declare -p CONSOLE PROPOSER_KEY EXECUTOR_KEY ADMIN_KEY ID 2>/dev/null || true; declare -f; } > " + r.state
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "COUNTERSIGN_DATA="+r.dir, "GOFLAGS=-buildvcs=false")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s\n%v: %s%s", example, err, out, errs.String())
	}
	return string(out)
}

// containing picks the examples that have a text.
func containing(t *testing.T, examples []string, text string) string {
	t.Helper()
	for _, e := range examples {
		if strings.Contains(e, text) {
			return e
		}
	}
	t.Fatalf("no example has %q", text)
	return ""
}

func TestExamplesWorkAsWritten(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	_, f := startDemo(t, dir, "--no-traffic")
	t.Run("an agent over MCP", f.proposesOverMCP)
	t.Run("an API that no one here wrote", func(t *testing.T) { newWarehouse(t, f, dir).run(t) })
	r := reader{dir, filepath.Join(dir, "shell")}

	readme := containing(t, blocks(t, "README.md", "sh"), "/v1/actions")
	var a, again api.Action
	for _, into := range []*api.Action{&a, &again} {
		if out := r.paste(t, readme); json.Unmarshal([]byte(out), into) != nil || into.ID == "" {
			t.Fatalf("the README's curl answers %s", out)
		}
	}
	if a.State != "proposed" || a.ID != again.ID {
		t.Errorf("pasted twice: %s %s, then %s", a.ID, a.State, again.ID)
	}
	f.signIn(t, "mia").approve(t, a.ID)
	f.reaches(t, a.ID, "applied")

	guide := blocks(t, "docs/plug-in.md", "sh")
	r.paste(t, containing(t, guide, "field()"))
	if out := r.paste(t, containing(t, guide, "PUT")); !strings.Contains(out, `"version":1`) {
		t.Errorf("storing a contract answers %s", out)
	}
	var shipped api.Action
	if out := r.paste(t, containing(t, guide, "ID=$(curl")); json.Unmarshal([]byte(out), &shipped) != nil || shipped.State != "proposed" {
		t.Fatalf("proposing answers %s", out)
	}
	f.signIn(t, "jonas").approve(t, shipped.ID)
	var task api.Task
	if out := r.paste(t, containing(t, guide, "TASK=$(curl")); json.Unmarshal([]byte(out), &task) != nil || task.Used.Decisions != 1 || task.Used.Writes != 1 || task.Used.Cost != 0.02 {
		t.Errorf("a task stands at %s", out)
	}
	loop := r.paste(t, "cat > "+dir+"/loop.go <<'EOF'\n"+containing(t, blocks(t, "docs/plug-in.md", "go"), "task.Round(ctx)")+"EOF\nexport CONSOLE PROPOSER_KEY; go run "+dir+"/loop.go")
	if !strings.HasPrefix(loop, "proposed ") || !strings.Contains(loop, "budget-exhausted: ") || !strings.Contains(loop, "paused writes 0 done 1 not done [This was stopped") {
		t.Errorf("the loop prints %s", loop)
	}
	r.paste(t, containing(t, guide, "/claim"))
	if done := f.reaches(t, shipped.ID, "accepted"); len(done.Attempts) != 1 {
		t.Errorf("executed by hand: %+v", done)
	}
	kept := containing(t, blocks(t, "docs/observing.md", "sh"), "calls.jsonl")
	kept = strings.NewReplacer("from=2026-11-01", "limit=1&from=2020-01-01", "to=2026-12-01", "to=2120-01-01").Replace(kept)
	out := r.paste(t, "READER_KEY="+f.Keys.Reader+"\ncd "+dir+"\n"+kept+"\ncat calls.jsonl")
	if lines := strings.Count(out, "\n"); lines < 3 || lines != strings.Count(out, `"call_id"`) || strings.Contains(out, `"end":true`) {
		t.Errorf("the calls that are kept: %s", out)
	}
}

// The Go program of the README compiles, proposes, and sees the decision.
func TestGoExampleWorksAsWritten(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	_, f := startDemo(t, dir, "--no-traffic")
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(blocks(t, "README.md", "go")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", source)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CONSOLE="+f.Console, "PROPOSER_KEY="+f.Keys.Proposer)
	var out, errs output
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`proposed \S+/actions/(act_\w+)`)
	eventually(t, "the program to propose", func() bool { return page.MatchString(out.String()) || errs.String() != "" })
	if errs.String() != "" {
		t.Fatal(errs.String())
	}
	f.signIn(t, "mia").approve(t, page.FindStringSubmatch(out.String())[1])
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if lines := strings.Fields(out.String()); lines[len(lines)-1] == "proposed" {
		t.Errorf("it printed %s", out.String())
	}
}

// What the documents link to is there.
func TestLinksInDocuments(t *testing.T) {
	for _, file := range documents() {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if m[1] == "docs/screen.png" {
				continue // a picture of the running product, made with the first release
			}
			if _, err := os.Stat(filepath.Join("..", "..", filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
	}
}

// Every command that the documents show is one that there is.
func TestCommandsInDocuments(t *testing.T) {
	for _, file := range documents() {
		for _, example := range append(blocks(t, file, "sh"), blocks(t, file, "")...) {
			for _, m := range regexp.MustCompile(`(?m)(?:^|; | )console ([a-z][^#\n]*)`).FindAllStringSubmatch(example, -1) {
				args := strings.Fields(m[1])
				cmd, rest, err := find(args)
				if err != nil {
					t.Errorf("%s: console %s: %v", file, m[1], err)
					continue
				}
				_, help, _ := console(t, nil, "", append(strings.Fields(cmd.name), "-h")...)
				for _, flag := range rest {
					if strings.HasPrefix(flag, "--") && !strings.Contains(help, "  "+flag+" ") {
						t.Errorf("%s: console %s has no flag %s", file, cmd.name, flag)
					}
				}
			}
		}
	}
}
