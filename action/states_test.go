package action

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packageFiles parses this package's files, without tests.
func packageFiles(t *testing.T) []*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// commandTypes are the types that have a decide method.
func commandTypes(t *testing.T) []string {
	t.Helper()
	var types []string
	for _, f := range packageFiles(t) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Name.Name == "decide" && fn.Recv != nil {
				types = append(types, fmt.Sprint(fn.Recv.List[0].Type))
			}
		}
	}
	return types
}

// constantsOf are the values of a type's string constants.
func constantsOf(t *testing.T, typ string) []string {
	t.Helper()
	var values []string
	for _, f := range packageFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if ok && v.Type != nil && fmt.Sprint(v.Type) == typ {
				for _, x := range v.Values {
					values = append(values, strings.Trim(x.(*ast.BasicLit).Value, `"`))
				}
			}
			return true
		})
	}
	return values
}

func TestStatesListsEveryConstant(t *testing.T) {
	if got := constantsOf(t, "State"); !sameSet(got, texts(States())) {
		t.Errorf("constants %v, States() %v", got, States())
	}
}

// reached are the edges that the table found, each with the commands that
// take it. The start is "[*]".
func reached(t *testing.T) map[string][]string {
	t.Helper()
	edges := map[string][]string{}
	for _, c := range readTable(t) {
		if strings.ContainsAny(c.want, "!=-") {
			continue
		}
		_, from, to := c.play(t)
		if from == "" {
			from = "[*]"
		}
		edge := string(from) + " --> " + string(to)
		name, _, _ := strings.Cut(c.command, " ")
		if !slices.Contains(edges[edge], name) {
			edges[edge] = append(edges[edge], name)
		}
	}
	for _, commands := range edges {
		slices.Sort(commands)
	}
	return edges
}

var diagramEdge = regexp.MustCompile(`^\s*(\[\*\]|\w+) --> (\w+) *: *(.+)$`)

func TestDiagramIsWhatTheTableReaches(t *testing.T) {
	text, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```mermaid\nstateDiagram-v2\n")
	diagram, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/states.md has no state diagram")
	}
	drawn := map[string]bool{}
	want := reached(t)
	for line := range strings.Lines(diagram) {
		m := diagramEdge.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			if strings.Contains(line, "-->") && !strings.HasSuffix(strings.TrimSpace(line), "--> [*]") {
				t.Errorf("cannot read the line %q", line)
			}
			continue
		}
		edge := m[1] + " --> " + m[2]
		if drawn[edge] {
			t.Errorf("%s is drawn twice", edge)
		}
		drawn[edge] = true
		if label := strings.Join(want[edge], ", "); label != m[3] {
			t.Errorf("%s is drawn for %q, the table takes it on %q", edge, m[3], label)
		}
	}
	for edge, commands := range want {
		if !drawn[edge] {
			t.Errorf("the diagram lacks %s: %s", edge, strings.Join(commands, ", "))
		}
	}
}

// The database refuses a state that the code does not have, and the other way
// round nothing that the code has is refused.
func TestMigrationListsEveryState(t *testing.T) {
	text, err := os.ReadFile("../migrations/00002_actions.sql")
	if err != nil {
		t.Fatal(err)
	}
	check := regexp.MustCompile(`(?s)state\s+text\s+NOT NULL CHECK \(state IN \(([^)]*)\)\)`).FindSubmatch(text)
	if check == nil {
		t.Fatal("found no CHECK of the states")
	}
	var listed []string
	for _, m := range regexp.MustCompile(`'([^']*)'`).FindAllSubmatch(check[1], -1) {
		listed = append(listed, string(m[1]))
	}
	if !sameSet(listed, texts(States())) {
		t.Errorf("the CHECK lists %v, States() %v", listed, States())
	}
}

// The database looks for open actions with the same content by state.
func TestMigrationKnowsTheOpenStates(t *testing.T) {
	text, err := os.ReadFile("../migrations/00002_actions.sql")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`AND a\.state IN \(('proposed'[^)]*)\)`).FindSubmatch(text)
	if m == nil {
		t.Fatal("found no look for open states")
	}
	var open []string
	for _, s := range States() {
		if s.Open() {
			open = append(open, "'"+string(s)+"'")
		}
	}
	if got := strings.Split(string(m[1]), ", "); !sameSet(got, open) {
		t.Errorf("the migration looks for %v, Open() says %v", got, open)
	}
}

func texts(states []State) []string {
	var out []string
	for _, s := range states {
		out = append(out, string(s))
	}
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
