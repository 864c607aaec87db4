// Systems shows the rows of docs/systems.md: which tests are named after each,
// and, by running them, whether they pass.
//
//	go run ./tools/withcluster go run ./tools/systems
//	go run ./tools/systems -write
//
// A test is named after the rows it shows: TestB5_..., TestA3_A5_....
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
)

const page = "docs/systems.md"

func main() {
	write := flag.Bool("write", false, "write the tests of each row into "+page+" and run nothing")
	flag.Parse()
	if err := run(os.Stdout, *write); err != nil {
		fmt.Fprintln(os.Stderr, "systems:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, write bool) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	tests, err := namedTests(".")
	if err != nil {
		return err
	}
	if write {
		return os.WriteFile(page, []byte(withTests(string(text), tests)), 0o644)
	}
	results, err := runTests(tests)
	if err != nil {
		return err
	}
	return report(out, rows(string(text)), tests, results)
}

// runTests runs the tests by package and returns each one's result, by
// package directory and name: pass, fail or skip.
func runTests(tests []test) (map[test]string, error) {
	var names, dirs []string
	for _, t := range tests {
		names, dirs = append(names, t.name), append(dirs, "./"+t.dir)
	}
	slices.Sort(dirs)
	args := append([]string{"test", "-json", "-count=1", "-run", "^(" + strings.Join(names, "|") + ")$"}, slices.Compact(dirs)...)
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting go test: %w", err)
	}
	results, err := readResults(printed, os.Stderr)
	// A failed test is in the results; go test's own exit code adds nothing.
	_ = cmd.Wait()
	return results, err
}

// report prints a line for each row and test. It returns an error when a row
// has no test, or one that did not pass.
func report(out io.Writer, rows []row, tests []test, results map[test]string) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	open := 0
	for _, r := range rows {
		shown := showing(r, tests)
		passed := len(shown) > 0
		for i, t := range shown {
			result := cmp.Or(results[t], "did not run")
			passed = passed && result == "pass"
			if i > 0 {
				r = row{}
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.id, r.system, t, result)
		}
		if len(shown) == 0 {
			fmt.Fprintf(table, "%s\t%s\tno test\topen\n", r.id, r.system)
		}
		if !passed {
			open++
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d rows, %d shown, %d open\n", len(rows), len(rows)-open, open)
	if open > 0 {
		return fmt.Errorf("%d rows are not shown", open)
	}
	return nil
}
