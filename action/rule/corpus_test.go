package rule

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"countersign/action"
	"countersign/action/contract"
)

func TestRealDefinitionsCompile(t *testing.T) {
	n := 0
	for _, folder := range []string{"tools", "tools_extra"} {
		dir := filepath.Join("..", "..", "..", "shared", "data", folder)
		if _, err := os.Stat(dir); err != nil {
			t.Skipf("the shared test data is not on this machine: %v", err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := contract.Parse(raw)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			r, err := Compile(c)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			got, err := r.Needs(context.Background(), Facts{Payload: []byte(`{}`)})
			want := []action.Need{{Role: "support", Approvals: 1}}
			if c.Mode == contract.Read {
				want = nil
			}
			if err != nil || !reflect.DeepEqual(got.Needs, want) {
				t.Errorf("%s: got %+v, %v", c.Name, got.Needs, err)
			}
			n++
		}
	}
	if n != 436 {
		t.Errorf("compiled %d definitions, want 436", n)
	}
}
