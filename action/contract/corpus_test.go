package contract

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"countersign/action"
)

// shared returns a folder of the shared test data, or skips the test.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
	path := filepath.Join(dir, "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the shared test data is not on this machine: %v", err)
	}
	return path
}

// corpus parses every real tool definition.
func corpus(t *testing.T) map[string]*Contract {
	t.Helper()
	all := map[string]*Contract{}
	for _, folder := range []string{"tools", "tools_extra"} {
		files, err := filepath.Glob(filepath.Join(shared(t, folder), "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(raw)
			if err != nil {
				t.Fatalf("%s: %+v", filepath.Base(file), err)
			}
			all[c.Name] = c
		}
	}
	return all
}

func TestRealDefinitionsParse(t *testing.T) {
	all := corpus(t)
	if len(all) != 436 {
		t.Errorf("parsed %d definitions, want 436", len(all))
	}
	for name, c := range all {
		var original struct {
			ReadOnly bool `json:"read_only"`
		}
		if err := json.Unmarshal(c.Source(), &original); err != nil {
			t.Fatal(err)
		}
		if original.ReadOnly != (c.Mode == Read) {
			t.Errorf("%s: read_only %v became mode %s", name, original.ReadOnly, c.Mode)
		}
		if !c.Bare() || c.Execution.Proves != action.ProvesAccepted || c.Execution.Retry != RetryNever {
			t.Errorf("%s: not treated as a bare definition", name)
		}
	}
}

func TestRealPayloadsAreJudgedAsTheyShould(t *testing.T) {
	all := corpus(t)
	file, err := os.Open(filepath.Join(shared(t, "dev"), "proposals.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var p struct {
			Tool    string          `json:"tool"`
			Payload json.RawMessage `json:"payload"`
			Valid   bool            `json:"expected_schema_valid"`
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if err := all[p.Tool].ValidateInput(p.Payload); (err == nil) != p.Valid {
			t.Errorf("line %d, %s: %v, want valid %v", n+1, p.Tool, err, p.Valid)
		}
	}
	if err := lines.Err(); err != nil || n != 2158 {
		t.Errorf("read %d lines, %v", n, err)
	}
}
