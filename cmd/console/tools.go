package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/people"
)

func toolsApply(ctx context.Context, c *call) error {
	return c.withDatabase(ctx, func(ctx context.Context, args []string, db *database) error {
		files, names, err := contractFiles(args[0])
		if err != nil {
			return err
		}
		definitions, err := readDefinitions(files, names)
		if err != nil {
			return err
		}
		results := applyTools(ctx, rule.NewCatalogue(db), definitions, byCommandLine())
		persons, err := db.Persons(ctx)
		if err != nil {
			return err
		}
		return errors.Join(c.printApplied(results), c.printUndecided(results, persons))
	})
}

// contractFiles names the YAML and JSON files of a folder, not of those below
// it; or the one file that was named.
func contractFiles(name string) (fs.FS, []string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the contracts: %w", err)
	}
	if !info.IsDir() {
		return os.DirFS(filepath.Dir(name)), []string{filepath.Base(name)}, nil
	}
	files := os.DirFS(name)
	names, err := inFolder(files)
	return files, names, err
}

func inFolder(files fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("listing the contracts: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(e.Name())) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, errors.New("there are no contracts here: *.yaml, *.yml or *.json")
	}
	return names, nil
}

// definition is one contract as it was found.
type definition struct {
	where string // file, and its place in a list
	raw   []byte
}

// readDefinitions reads files. A JSON file holds one contract, an array of
// them or an MCP list.
func readDefinitions(files fs.FS, names []string) ([]definition, error) {
	var all []definition
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the contracts: %w", err)
		}
		all = append(all, split(name, raw)...)
	}
	return all, nil
}

// split takes a list of definitions apart. What is no list stays whole.
func split(name string, raw []byte) []definition {
	parts := contract.Split(raw)
	if len(parts) == 1 {
		return []definition{{name, parts[0]}}
	}
	all := make([]definition, len(parts))
	for i, one := range parts {
		all[i] = definition{fmt.Sprintf("%s[%d]", name, i), one}
	}
	return all
}

// applied is what became of a definition.
type applied struct {
	where   string
	name    string // "" when it cannot be read
	version int
	made    bool     // a new version, not the same as before
	roles   []string // whose approval its rules ask for
	err     error
}

// applyTools stores definitions. One that is refused does not keep back others.
func applyTools(ctx context.Context, catalogue *rule.Catalogue, definitions []definition, by action.By) []applied {
	results := make([]applied, len(definitions))
	for i, d := range definitions {
		results[i] = applyTool(ctx, catalogue, d, by)
	}
	return results
}

func applyTool(ctx context.Context, catalogue *rule.Catalogue, d definition, by action.By) applied {
	result := applied{where: d.where}
	parsed, err := contract.Parse(d.raw)
	if err != nil {
		result.err = err
		return result
	}
	result.name = parsed.Name
	if len(parsed.Approval.Rules) == 0 && parsed.Mode == contract.Write {
		result.roles = []string{action.DefaultRole}
	}
	for _, r := range parsed.Approval.Rules {
		if r.Approvals > 0 {
			result.roles = append(result.roles, r.Role)
		}
	}
	tool, made, err := catalogue.Save(ctx, parsed.Name, d.raw, by)
	if err != nil {
		result.err = err
		return result
	}
	result.version, result.made = tool.Version, made
	return result
}

// printApplied prints a table, then why what was refused was refused. It fails
// when anything was.
func (c *call) printApplied(results []applied) error {
	rows := [][]string{{"TOOL", "VERSION", "RESULT"}}
	refused := 0
	for _, r := range results {
		switch {
		case r.err != nil:
			refused++
			rows = append(rows, []string{firstOf(r.name, r.where), "-", "refused"})
		case r.made:
			rows = append(rows, []string{r.name, fmt.Sprint(r.version), "new"})
		default:
			rows = append(rows, []string{r.name, fmt.Sprint(r.version), "same"})
		}
	}
	if err := c.table(rows); err != nil {
		return err
	}
	for _, r := range results {
		if r.err != nil {
			c.explain(r)
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d were refused", refused, len(results))
	}
	return nil
}

// printUndecided names the roles that rules ask for and in which nobody can decide
// now: what is proposed would wait until somebody gets them.
func (c *call) printUndecided(results []applied, persons []people.Person) error {
	asking := map[string]string{} // role → a tool that asks for it
	for _, r := range results {
		for _, role := range r.roles {
			decides := func(p people.Person) bool { return p.Disabled == nil && slices.Contains(p.Decides(), role) }
			if r.err == nil && !slices.ContainsFunc(persons, decides) {
				asking[role] = firstOf(asking[role], r.name)
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(asking)) {
		if _, err := fmt.Fprintf(c.errs, "Nobody can decide as %s yet, which %s asks for: what is proposed waits until somebody has that role.\n", role, asking[role]); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) explain(r applied) {
	var refusal *action.Refusal
	if !errors.As(r.err, &refusal) {
		fmt.Fprintf(c.errs, "%s: %v\n", r.where, r.err)
		return
	}
	fmt.Fprintf(c.errs, "%s: %s\n", r.where, refusal.Detail)
	printFieldErrors(c.errs, refusal)
}

func firstOf(texts ...string) string {
	i := slices.IndexFunc(texts, func(s string) bool { return strings.TrimSpace(s) != "" })
	if i < 0 {
		return ""
	}
	return texts[i]
}
