package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// row is a line of the page's table.
type row struct{ id, system string }

// test is a test function that is named after rows.
type test struct{ dir, name string }

func (t test) String() string { return t.dir + "." + t.name }

// rows are the rows that the test's name says it shows.
func (t test) rows() []string {
	said := rowNames.FindStringSubmatch(t.name)[1]
	return strings.Split(strings.TrimSuffix(said, "_"), "_")
}

var (
	rowNames = regexp.MustCompile(`^Test((?:[A-E][0-9]+_)+)`)
	testFunc = regexp.MustCompile(`(?m)^func (Test(?:[A-E][0-9]+_)+\w*)\(t \*testing\.T\)`)
	rowLine  = regexp.MustCompile(`^\| ([A-E][0-9]+) \| ([^|]+) \| ([^|]+) \|.*\|$`)
)

// namedTests finds the tests below root that are named after rows, sorted.
func namedTests(root string) ([]test, error) {
	var found []test
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, match := range testFunc.FindAllSubmatch(source, -1) {
			found = append(found, test{dir: filepath.ToSlash(dir), name: string(match[1])})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for tests: %w", err)
	}
	slices.SortFunc(found, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// rows reads the rows of the page's table.
func rows(page string) []row {
	var found []row
	for line := range strings.Lines(page) {
		if cells := rowLine.FindStringSubmatch(strings.TrimSpace(line)); cells != nil {
			found = append(found, row{id: cells[1], system: cells[2]})
		}
	}
	return found
}

// showing are the tests named after a row.
func showing(r row, tests []test) []test {
	var shown []test
	for _, t := range tests {
		if slices.Contains(t.rows(), r.id) {
			shown = append(shown, t)
		}
	}
	return shown
}

// withTests is the page with the last column written anew.
func withTests(page string, tests []test) string {
	var out strings.Builder
	for line := range strings.Lines(page) {
		cells := rowLine.FindStringSubmatch(strings.TrimSpace(line))
		if cells == nil {
			out.WriteString(line)
			continue
		}
		var names []string
		for _, t := range showing(row{id: cells[1]}, tests) {
			names = append(names, "`"+t.String()+"`")
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", cells[1], cells[2], cells[3], strings.Join(names, " "))
	}
	return out.String()
}

// readResults reads what `go test -json` prints: the result of each test, by
// package directory and name. What a failed test printed goes to failures.
func readResults(printed io.Reader, failures io.Writer) (map[test]string, error) {
	results := map[test]string{}
	output := map[test][]string{}
	lines := bufio.NewReader(printed)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return results, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the results: %w", err)
		}
		var event struct{ Action, Package, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			fmt.Fprintf(failures, "%s", line)
			continue
		}
		name, _, _ := strings.Cut(event.Test, "/")
		t := test{dir: strings.TrimPrefix(event.Package, "countersign/"), name: name}
		switch event.Action {
		case "output":
			output[t] = append(output[t], event.Output)
		case "pass", "fail", "skip":
			if name == event.Test {
				results[t] = event.Action
			}
			if event.Action == "fail" && name == event.Test {
				fmt.Fprint(failures, strings.Join(output[t], ""))
			}
		}
	}
}
