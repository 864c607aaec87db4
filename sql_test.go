package countersign_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// An action changes in one place, so that no state is ever written without
	// its event and its guard.
	writesActions = regexp.MustCompile(`(?i)\b(insert\s+into|update(\s+only)?|delete\s+from(\s+only)?|merge\s+into|copy|truncate(\s+table)?)\s+(only\s+)?("?public"?\.)?"?actions\b`)
	statement     = regexp.MustCompile(`(?i:\b(insert\s+into\s+\w+|delete\s+from\s+\w+|update\s+\w+\s+set|create\s+table)\b)|(?s:\bSELECT\b.*\bFROM\b)`)
	drivers       = regexp.MustCompile(`^(database/sql(/.*)?|github\.com/lib/pq(/.*)?|github\.com/jmoiron/sqlx(/.*)?)$`)
)

const actionsWriter = "store/change.go"

// forTests is what only tests use: it fills databases, and no program has it.
const forTests = "store/storetest/"

// holdsSQL are the folders whose business SQL is.
func holdsSQL(file string) bool {
	return slices.ContainsFunc([]string{"store/", "migrations/", "execution/sandbox/"},
		func(dir string) bool { return strings.HasPrefix(file, dir) })
}

func TestOnlyChangeWritesActions(t *testing.T) {
	for _, file := range sources(t, ".go", ".sql") {
		if file == actionsWriter || strings.HasPrefix(file, forTests) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if hit := writesActions.Find(text); hit != nil {
			t.Errorf("%s has %q: only %s writes actions", file, hit, actionsWriter)
		}
	}
}

func TestSQLStaysInTheStore(t *testing.T) {
	for _, file := range sources(t, ".go") {
		if holdsSQL(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, spec := range parsed.Imports {
			// Wiring opens and closes the database.
			if imported, err := strconv.Unquote(spec.Path.Value); err == nil && drivers.MatchString(imported) && !strings.HasPrefix(file, "cmd/") {
				t.Errorf("%s imports %s: the database is the store's", file, imported)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if ok && literal.Kind == token.STRING && statement.MatchString(literal.Value) {
				t.Errorf("%s has SQL: %.60s", file, literal.Value)
			}
			return true
		})
	}
}

func TestStatementsAreRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO actions (id)":                 true,
		"insert  into\n\tactions":                  true,
		"WITH moved AS (UPDATE actions SET":        true,
		`UPDATE "public"."actions" SET`:            true,
		"UPDATE ONLY actions SET":                  true,
		"DELETE FROM actions":                      true,
		"TRUNCATE actions":                         true,
		"INSERT INTO actions_seen":                 false,
		"SELECT id FROM actions FOR UPDATE":        false,
		"an update of actions":                     false,
		"FOR UPDATE OF actions":                    false,
		"INSERT INTO events SELECT 1 FROM actions": false,
	} {
		if got := writesActions.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	for text, want := range map[string]bool{
		"SELECT 1\nFROM things":            true,
		"UPDATE things SET n = 1":          true,
		"delete from things":               true,
		"Select one from the list":         false,
		"Update the page and set it aside": false,
	} {
		if got := statement.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// sources lists this module's files with one of the endings, tests aside.
func sources(t *testing.T, endings ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if slices.Contains(endings, filepath.Ext(path)) && !strings.HasSuffix(path, "_test.go") {
			files = append(files, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no files were looked at")
	}
	return files
}
