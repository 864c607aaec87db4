package handlers

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"countersign/people"
	"countersign/store/stage"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openapiDoc is as much of the document as is looked at here.
type openapiDoc struct {
	OpenAPI string
	Info    struct{ Title, Version string }
	Servers []struct{ URL string }
	Paths   map[string]map[string]struct {
		OperationID string
		Parameters  []struct {
			Name, In string
			Required bool
			Schema   map[string]any
		}
		RequestBody *struct {
			Required bool
			Content  map[string]any
		}
		Responses map[string]struct {
			Description string
			Content     map[string]any
		}
		Security []map[string][]string
	}
	Components struct {
		Schemas         map[string]any
		SecuritySchemes map[string]struct{ Type, Scheme string }
	}
}

func TestOpenAPI(t *testing.T) {
	e := newEnv(t)
	doc := into[openapiDoc](e.get("", "/v1/openapi.json").want(200))
	if doc.OpenAPI != "3.1.0" || doc.Info.Title == "" || doc.Info.Version == "" || len(doc.Servers) != 1 || doc.Components.SecuritySchemes["key"].Scheme != "bearer" {
		t.Errorf("%+v", doc)
	}
	described := 0
	for _, operations := range doc.Paths {
		described += len(operations)
	}
	for _, rt := range routes() {
		if rt.call == nil {
			continue
		}
		described--
		op, ok := doc.Paths[rt.pattern][strings.ToLower(rt.method)]
		if !ok || op.OperationID != rt.name {
			t.Errorf("%s %s is not described", rt.method, rt.pattern)
			continue
		}
		if (len(op.Security) > 0) != (len(rt.who.keys) > 0) {
			t.Errorf("%s: security %v", rt.name, op.Security)
		}
		if (op.RequestBody != nil) != (rt.call.body != nil) {
			t.Errorf("%s: a body of %+v", rt.name, op.RequestBody)
		}
		inPath := map[string]bool{}
		for _, p := range op.Parameters {
			if p.In == "path" {
				inPath[p.Name] = p.Required
			}
		}
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(rt.pattern, -1) {
			if !inPath[name[1]] {
				t.Errorf("%s does not describe {%s}", rt.name, name[1])
			}
		}
		if op.Responses[strconv.Itoa(rt.call.status)].Content[cmp.Or(rt.call.media, "application/json")] == nil {
			t.Errorf("%s does not describe its success", rt.name)
		}
		for _, code := range rt.call.refuses {
			refused := op.Responses[strconv.Itoa(kindOf(code).status)]
			if refused.Content["application/problem+json"] == nil || !strings.Contains(refused.Description, string(code)) {
				t.Errorf("%s does not describe %s", rt.name, code)
			}
		}
	}
	if described != 0 {
		t.Errorf("%d operations more are described than there are", described)
	}
}

// What is described is what is answered: schemas accept real bodies.
func TestOpenAPISchemas(t *testing.T) {
	e := newEnv(t)
	raw := e.get("", "/v1/openapi.json").want(200).body
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("https://console.example/openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	schema := func(name string) *jsonschema.Schema {
		t.Helper()
		s, err := compiler.Compile("https://console.example/openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatalf("%s is no schema: %v", name, err)
		}
		return s
	}
	for name := range into[openapiDoc](answer{t: t, body: raw}).Components.Schemas {
		schema(name)
	}
	accepts := func(name string, body []byte) bool {
		t.Helper()
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		err = schema(name).Validate(value)
		if err != nil {
			t.Logf("%s: %v", name, err)
		}
		return err == nil
	}
	a, claim, attempt := e.attempted(stage.SetPrice)
	proposal, err := json.Marshal(proposal(stage.SetPrice, stage.Product(), 105))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"Action":     e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, "SUCCESS")).want(201).body,
		"ListAction": e.get(people.RoleReader, "/v1/actions").want(200).body,
		"ListTool":   e.get(people.RoleReader, "/v1/tools").want(200).body,
		"WorkList":   e.get(people.RoleExecutor, "/v1/work").want(200).body,
		"Statement":  e.get(people.RoleReader, "/v1/actions/"+a.ID+"/statement").want(200).body,
		"Problem":    e.get(people.RoleReader, "/v1/actions/none").body,
		"Propose":    proposal,
	} {
		if !accepts(name, body) {
			t.Errorf("%s does not accept %s", name, body)
		}
	}
	for name, body := range map[string]string{"Propose": `{"tool":"t","payload":{}}`, "Claim": `{"claim_id":1}`, "Action": `{}`} {
		if accepts(name, []byte(body)) {
			t.Errorf("%s accepts %s", name, body)
		}
	}
}
