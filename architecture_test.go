package countersign_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "countersign"

// A rule says what a package may depend on, directly or not, tests aside.
type rule struct {
	pkg      string   // pattern as of path.Match, or a path ending in /... for all below
	ours     []string // packages of this module it may use; nil: none
	external []string // the only libraries it may use; nil: any but banned
	banned   []string // libraries it may not use
	why      string
}

// rules lists the folders from the inside out. A new folder gets a line here:
// what it may know is part of what it is. The first line that matches counts.
func rules() []rule {
	heart := []string{"action", "action/..."}
	domain := []string{"people", "people/...", "action", "action/..."}
	servers := []string{"github.com/lib/pq", "github.com/a-h/templ", "github.com/go-chi/chi", "github.com/jmoiron/sqlx"}
	return []rule{
		{pkg: "action", external: []string{"github.com/gowebpki/jcs", "golang.org/x/text"},
			why: "the heart is the standard library and canonical JSON"},
		{pkg: "action/contract", ours: []string{"action"}, banned: slices.Concat(servers, []string{"github.com/google/cel-go"}),
			why: "clients link contracts; rules stay in the console"},
		{pkg: "action/...", ours: heart, banned: servers, why: "rules know actions and contracts"},
		{pkg: "people/...", ours: domain, banned: servers, why: "the domain knows no database and no page"},
		{pkg: "approvals/...", ours: slices.Concat(domain, []string{"approvals/..."}), banned: servers,
			why: "the domain knows no database and no page, and approvals and triage not each other"},
		{pkg: "triage/...", ours: slices.Concat(domain, []string{"triage/..."}), banned: servers,
			why: "the domain knows no database and no page, and approvals and triage not each other"},
		{pkg: "audit/...", ours: slices.Concat(domain, []string{"audit/..."}), banned: servers,
			why: "an auditor checks a bundle with this alone"},
		{pkg: "execution/sandbox/...", ours: []string{"execution/sandbox/..."},
			why: "a business system knows nothing of us"},
		{pkg: "execution/...", ours: []string{"action", "action/contract", "execution", "execution/api"}, banned: slices.Concat(servers, []string{"github.com/google/cel-go"}),
			why: "programs of others link this library"},
		{pkg: "migrations", why: "the schema stands alone"},
		{pkg: "store/embedded", why: "running PostgreSQL needs nothing of ours"},
		{pkg: "store/storetest", ours: []string{"migrations", "store/embedded"}, why: "a database for every test needs no domain"},
		{pkg: "store/...", ours: slices.Concat(domain, []string{"store", "approvals", "triage", "audit"}), banned: []string{"github.com/a-h/templ", "github.com/go-chi/chi"},
			why: "the store serves the domain"},
		{pkg: "static", why: "files only"},
		{pkg: "web/...", ours: []string{"web", "web/...", "static"}, banned: []string{"github.com/lib/pq", "github.com/jmoiron/sqlx", "github.com/go-chi/chi"},
			why: "pages show view models and know no domain"},
		{pkg: "handlers/...", ours: slices.Concat(domain, []string{"handlers/...", "approvals", "triage", "audit", "execution/api", "web", "web/...", "static"}),
			banned: []string{"github.com/lib/pq", "github.com/jmoiron/sqlx"}, why: "handlers reach the store through interfaces of their own"},
		{pkg: "cmd/...", ours: []string{"..."}, why: "wiring sees everything"},
		{pkg: "e2e/...", ours: []string{"..."}, why: "journeys see everything"},
		{pkg: "tools/...", ours: []string{"..."}, why: "checks see everything"},
		{pkg: "", ours: []string{"..."}, why: "tests only"},
	}
}

// listed is one package as go list knows it.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
	Module     *struct{ Path string }
}

func TestImportDirections(t *testing.T) {
	packages := list(t)
	for _, complaint := range judge(rules(), packages) {
		t.Error(complaint)
	}
}

// list asks go for all packages here and everything below them.
func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports,Deps,Standard,Module", "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

func judge(rules []rule, packages []listed) (complaints []string) {
	modules := map[string]string{} // of every package outside the standard library
	for _, p := range packages {
		if !p.Standard && p.Module != nil {
			modules[p.ImportPath] = p.Module.Path
		}
	}
	for _, p := range packages {
		name, ours := local(p.ImportPath)
		if !ours {
			continue
		}
		i := slices.IndexFunc(rules, func(r rule) bool { return matches(r.pkg, name) })
		if i < 0 {
			complaints = append(complaints, p.ImportPath+" has no rule: say in architecture_test.go what it may know")
			continue
		}
		for _, dep := range p.Deps {
			if !rules[i].allows(dep, modules[dep]) {
				complaints = append(complaints, p.ImportPath+" depends on "+dep+": "+rules[i].why)
			}
		}
	}
	return complaints
}

func (r rule) allows(dep, inModule string) bool {
	match := func(pattern string) bool { return matches(pattern, strings.TrimPrefix(dep, module+"/")) }
	if _, ours := local(dep); ours {
		return slices.ContainsFunc(r.ours, match)
	}
	if inModule == "" {
		return true // standard library
	}
	within := func(library string) bool {
		return inModule == library || strings.HasPrefix(inModule, library+"/") || strings.HasPrefix(dep, library+"/")
	}
	if r.external != nil {
		return slices.ContainsFunc(r.external, within)
	}
	return !slices.ContainsFunc(r.banned, within)
}

// local is the path of a package within this module.
func local(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// matches reports whether name is what pattern says; "a/..." is a and all below.
func matches(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	if top, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == top || strings.HasPrefix(name, top+"/")
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// The judge itself: each of these must be seen.
func TestWrongImportsAreSeen(t *testing.T) {
	library := func(path string) *struct{ Path string } { return &struct{ Path string }{path} }
	outside := []listed{
		{ImportPath: "fmt", Standard: true},
		{ImportPath: "github.com/lib/pq", Module: library("github.com/lib/pq")},
		{ImportPath: "github.com/lib/pq/pqerror", Module: library("github.com/lib/pq")},
		{ImportPath: "github.com/go-chi/chi/v5", Module: library("github.com/go-chi/chi/v5")},
		{ImportPath: "github.com/google/cel-go/cel", Module: library("github.com/google/cel-go")},
		{ImportPath: "github.com/gowebpki/jcs", Module: library("github.com/gowebpki/jcs")},
		{ImportPath: "golang.org/x/text/unicode/norm", Module: library("golang.org/x/text")},
	}
	for _, c := range []struct {
		pkg, dep string
		allowed  bool
	}{
		{"web", "countersign/action", false},
		{"web/storybook", "countersign/people", false},
		{"web", "countersign/static", true},
		{"handlers", "countersign/store", false},
		{"handlers", "countersign/approvals", true},
		{"handlers", "github.com/lib/pq", false},
		{"approvals", "countersign/triage", false},
		{"triage", "countersign/approvals", false},
		{"triage", "countersign/people", true},
		{"people", "countersign/approvals", false},
		{"execution", "countersign/action/rule", false},
		{"execution", "countersign/action/contract", true},
		{"execution", "github.com/lib/pq/pqerror", false},
		{"execution", "github.com/go-chi/chi/v5", false},
		{"execution", "github.com/google/cel-go/cel", false},
		{"execution", "countersign/execution/sandbox", false},
		{"execution/api", "countersign/handlers", false},
		{"execution/sandbox", "countersign/action", false},
		{"execution/sandbox", "github.com/lib/pq", true},
		{"action", "github.com/gowebpki/jcs", true},
		{"action", "golang.org/x/text/unicode/norm", true},
		{"action", "github.com/google/cel-go/cel", false},
		{"action", "countersign/people", false},
		{"action", "fmt", true},
		{"store", "countersign/handlers", false},
		{"store", "countersign/triage", true},
		{"cmd/console", "countersign/store", true},
		{"somewhere/new", "fmt", false},
	} {
		packages := append(slices.Clone(outside), listed{ImportPath: module + "/" + c.pkg, Deps: []string{c.dep}})
		if complaints := judge(rules(), packages); (len(complaints) == 0) != c.allowed {
			t.Errorf("%s → %s: %q", c.pkg, c.dep, complaints)
		}
	}
}
