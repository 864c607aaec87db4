package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"countersign/action/contract"
)

// imported is a tool of an MCP server as the contract that it makes.
type imported struct {
	definition
	contract *contract.Contract // nil when it is refused
	result   string             // what became of it; "" for nothing yet
	err      error
}

func toolsImportMCP(ctx context.Context, c *call) error {
	address := c.text("url", "", "", "`URL` of an MCP server that speaks streamable HTTP")
	command := c.text("stdio", "", "", "`COMMAND` that is an MCP server on its standard input and output, such as 'npx -y @scope/server'; a shell runs it")
	prefix := c.text("prefix", "", "", "`TEXT` before every name, such as crm.")
	into := c.text("into", "", "", "`DIR` to write a contract per tool to, for tools apply; when left out nothing is written")
	c.environment("MCP_TOKEN", "sent to --url as Authorization: Bearer")
	if _, err := c.parse(); err != nil {
		return err
	}
	if (*address == "") == (*command == "") {
		return usage("give either --url or --stdio")
	}
	where := mcpSource{address: *address, token: c.env("MCP_TOKEN"), command: *command, errs: c.errs}
	raw, err := where.tools(ctx)
	if err != nil {
		return err
	}
	all := make([]imported, len(raw))
	for i, r := range raw {
		all[i] = importOne(r, *prefix)
	}
	if *into != "" {
		if err := os.MkdirAll(*into, 0o755); err != nil {
			return fmt.Errorf("making the folder: %w", err)
		}
		for i := range all {
			all[i].write(*into)
		}
	}
	return c.printImported(all, *into)
}

// importOne makes a contract of a tool definition.
func importOne(d definition, prefix string) imported {
	one := imported{definition: d}
	named, err := renamed(d.raw, prefix)
	if err == nil {
		one.raw = named
		one.contract, err = contract.Parse(named)
	}
	one.err = err
	return one
}

// renamed puts a prefix before the name in a definition, and leaves all else as
// it is: the order of the fields is shown to people.
func renamed(raw []byte, prefix string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("reading a tool definition: %w", err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("reading a tool definition: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("reading a tool definition: %w", err)
		}
		var name string
		if key != "name" || json.Unmarshal(value, &name) != nil {
			continue
		}
		text, err := json.Marshal(prefix + name)
		if err != nil {
			return nil, fmt.Errorf("naming a tool: %w", err)
		}
		end := d.InputOffset()
		return slices.Concat(raw[:end-int64(len(value))], text, raw[end:]), nil
	}
	return raw, nil // the contract's own parser tells what is missing
}

// write writes the contract to a file of its own. A file that says something
// else is somebody's work and stays.
func (i *imported) write(dir string) {
	if i.err != nil {
		return
	}
	var text bytes.Buffer
	if err := json.Indent(&text, i.raw, "", "  "); err != nil {
		i.err = fmt.Errorf("writing a contract: %w", err)
		return
	}
	text.WriteByte('\n')
	name := filepath.Join(dir, i.contract.Name+".json")
	present, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		i.result, i.err = "written", os.WriteFile(name, text.Bytes(), 0o644)
	case err != nil:
		i.err = err
	case bytes.Equal(present, text.Bytes()):
		i.result = "same"
	default:
		i.err = fmt.Errorf("%s is there already and says something else: compare, and remove it to import again", name)
	}
}

// printImported prints what there is, what was assumed because no tool
// definition says it, and why what was refused was refused.
func (c *call) printImported(all []imported, into string) error {
	rows, refused, reads := [][]string{{"TOOL", "DOES", "RESULT"}}, 0, false
	for _, i := range all {
		name, does := i.where, "-"
		if i.contract != nil {
			name, does = i.contract.Name, string(i.contract.Mode)+"s"
			reads = reads || i.contract.Mode == contract.Read
		}
		if i.err != nil {
			refused++
			i.result = "refused"
		}
		rows = append(rows, []string{name, does, cmp.Or(i.result, "not written")})
	}
	if err := c.table(rows); err != nil {
		return err
	}
	if err := c.printAssumed(all); err != nil {
		return err
	}
	if reads {
		fmt.Fprint(c.out, "\nWhat reads runs without anybody's approval, on the server's own word (readOnlyHint). Where you do not take its word, remove it.\n")
	}
	if into == "" {
		fmt.Fprint(c.out, "\nNothing was written. --into DIR writes a contract per tool; console tools apply DIR stores them.\n")
	}
	for _, i := range all {
		if i.err != nil {
			c.explain(applied{where: i.where, err: i.err})
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d were refused", refused, len(all))
	}
	return nil
}

// printAssumed prints the defaults that the contracts get, and which get them.
func (c *call) printAssumed(all []imported) error {
	by, read := map[[2]string][]string{}, 0
	for _, i := range all {
		if i.contract == nil {
			continue
		}
		read++
		for _, a := range i.contract.Assumed() {
			by[[2]string{a.Pointer, a.Value}] = append(by[[2]string{a.Pointer, a.Value}], i.contract.Name)
		}
	}
	if read == 0 {
		return nil
	}
	fmt.Fprint(c.out, "\nAssumed, because no tool definition says it:\n")
	rows := [][]string{}
	for _, a := range slices.SortedFunc(maps.Keys(by), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		who := "all"
		if len(by[a]) < read {
			who = strings.Join(by[a], ", ")
		}
		rows = append(rows, []string{"  " + a[0], a[1], who})
	}
	return c.table(rows)
}
