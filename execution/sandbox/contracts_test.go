package sandbox_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"countersign/execution/sandbox"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

type document struct {
	Name  string
	Mode  string
	Title map[string]string
	HTTP  struct{ Method, Path string }
	// The rest is only handed on.
	InputSchema  map[string]any `yaml:"input_schema"`
	OutputSchema map[string]any `yaml:"output_schema"`
	Execution    struct {
		Permission     string
		Preconditions  []condition
		Postconditions []condition
		StatusQuery    struct{ Tool string } `yaml:"status_query"`
		Compensation   string
	}
	Approval struct{ Before string }
	Display  struct {
		AllowOutput []string `yaml:"allow_output"`
	}
}

type condition struct{ Read, Field string }

func documents(t *testing.T) map[string]document {
	t.Helper()
	files, err := fs.Glob(sandbox.Contracts(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]document{}
	for _, file := range files {
		data, err := fs.ReadFile(sandbox.Contracts(), file)
		if err != nil {
			t.Fatal(err)
		}
		var doc document
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if doc.Name+".yaml" != file || doc.Title["en"] == "" || doc.Title["zh"] == "" {
			t.Errorf("%s: name %q, title %v", file, doc.Name, doc.Title)
		}
		docs[doc.Name] = doc
	}
	return docs
}

func schema(t *testing.T, doc map[string]any) *jsonschema.Schema {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", value); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func valid(t *testing.T, s *jsonschema.Schema, raw []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(value); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
}

// TestContractsDescribeWhatIsServed calls every tool the way its contract
// says and holds the answers to what it promises.
func TestContractsDescribeWhatIsServed(t *testing.T) {
	s := open(t)
	docs := documents(t)
	if len(docs) != 7 {
		t.Errorf("%d contracts, want 7", len(docs))
	}
	fill := strings.NewReplacer("{product_id}", "SKU-4411", "{order_id}", "10086", "{execution_key}", "k", "{actor_id}", "u-li-na")
	tokens := map[string][2]string{
		"catalog": {s.Tokens().CatalogRead, s.Tokens().CatalogWrite},
		"refunds": {s.Tokens().RefundsRead, s.Tokens().RefundsWrite},
	}
	call := func(doc document) {
		system, _, _ := strings.Cut(doc.Name, ".")
		token, body, input := tokens[system][0], "", `{"product_id":"SKU-4411","order_id":"10086","execution_key":"k","actor_id":"u-li-na"}`
		if doc.Mode == "write" {
			token, body = tokens[system][1], map[string]string{"catalog": to105, "refunds": back20}[system]
			input = body
		}
		valid(t, schema(t, doc.InputSchema), []byte(input))
		r := s.send(t.Context(), once, doc.HTTP.Method, "/"+system+fill.Replace(doc.HTTP.Path), token, body,
			"Idempotency-Key", "k", "If-Match", map[string]string{"catalog": "8", "refunds": "1"}[system])
		r.want(t, http.StatusOK)
		valid(t, schema(t, doc.OutputSchema), r.raw)
		for _, pointer := range doc.Display.AllowOutput {
			if _, ok := r.body[strings.TrimPrefix(pointer, "/")]; !ok {
				t.Errorf("%s allows %s, which is not in %s", doc.Name, pointer, r.raw)
			}
		}
	}
	for _, mode := range []string{"read", "write", "read"} { // also before anything was done under the key
		for _, doc := range docs {
			if doc.Mode == mode {
				call(doc)
			}
		}
	}
}

func TestContractsNameToolsThatExist(t *testing.T) {
	docs := documents(t)
	for _, doc := range docs {
		e := doc.Execution
		for _, tool := range []string{doc.Approval.Before, e.Permission, e.StatusQuery.Tool} {
			if tool != "" && docs[tool].Mode != "read" {
				t.Errorf("%s asks %q, which is no read tool here", doc.Name, tool)
			}
		}
		for _, c := range append(e.Preconditions, e.Postconditions...) {
			properties, _ := docs[c.Read].OutputSchema["properties"].(map[string]any)
			if docs[c.Read].Mode != "read" || properties[strings.TrimPrefix(c.Field, "/")] == nil {
				t.Errorf("%s reads %s of %s, which promises no such field", doc.Name, c.Field, c.Read)
			}
		}
		if e.Compensation != "" && docs[e.Compensation].Mode != "write" {
			t.Errorf("%s is compensated by %q, which is no write tool here", doc.Name, e.Compensation)
		}
	}
}
