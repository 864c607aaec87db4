package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// code is the text of a block that is there to be copied, as a person copies it.
func (a answer) code(id string) string {
	a.t.Helper()
	_, rest, found := strings.Cut(string(a.body), `id="`+id+`">`)
	text, _, ended := strings.Cut(rest, "</pre>")
	if !found || !ended {
		a.t.Fatalf("no block %s: %s", id, a.text())
	}
	return html.UnescapeString(elements.ReplaceAllString(text, ""))
}

func TestToolsList(t *testing.T) {
	e := newEnv(t)
	if err := e.Catalogue.Retire(context.Background(), stage.Small, "keep", e.Admin.As("admin", "")); err != nil {
		t.Fatal(err)
	}
	e.proposed(stage.BigPrice)
	mia := e.as(e.Mia)
	page := mia.open("/tools").want(http.StatusOK)
	for _, name := range []string{stage.SetPrice, stage.BigPrice, stage.ReadPrice, stage.Small} {
		page.holds(`href="/tools/`+name+`"`, "<code>")
	}
	page.says("Retired", "only reads").holds(`href="/approvals?tab=all&amp;tool=shop.big_price">1</a>`)
	found := mia.open("/tools?q=BIG_").want(http.StatusOK)
	found.holds(`href="/tools/shop.big_price"`, `value="BIG_"`).lacks("/tools/shop.set_price")
	mia.open("/tools?q=Set+price").holds(`href="/tools/shop.set_price"`).lacks("/tools/shop.big_price") // by its title
	mia.open("/tools?q=set&kind=write").holds(`href="/tools/shop.set_price"`, `value="write" selected`).lacks("/tools/shop.read_price")
	mia.open("/tools?kind=read").holds(`href="/tools/shop.read_price"`).lacks("/tools/shop.set_price")
	mia.open("/tools?q=%3Cb%3E%00%FF").want(http.StatusOK).says("No tool fits").lacks("<b>\x00")
	e.newBrowser().open("/tools?q=x").leads("/login?next=%2Ftools%3Fq%3Dx")
}

func TestToolsPageByPage(t *testing.T) {
	e := newEnv(t)
	for i := range listPage {
		e.Tool(fmt.Sprintf("name: bulk.tool_%03d\nmode: read\ninput_schema: { type: object }\n", i))
	}
	mia := e.as(e.Mia)
	seen := map[string]int{}
	pages := 0
	for path := "/tools?q=o"; path != ""; pages++ {
		page := mia.open(path).want(http.StatusOK)
		for _, part := range strings.Split(string(page.body), `<a href="/tools/`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			seen[name]++
		}
		path = nextPage(page)
	}
	if pages != 2 || len(seen) != listPage+len(stage.Tools()) {
		t.Errorf("%d tools on %d pages, want %d on 2", len(seen), pages, listPage+len(stage.Tools()))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s stands %d times", name, n)
		}
	}
}

func TestToolPage(t *testing.T) {
	e := newEnv(t)
	by := e.Admin.As("admin", people.ByPassword)
	changed := strings.Replace(stage.Contract(stage.SetPrice, `{ when: "true", role: finance, approvals: 2 }`, ""), "lease: 10m", "lease: 7m", 1)
	if _, _, err := e.Catalogue.Save(context.Background(), stage.SetPrice, []byte(changed), by); err != nil {
		t.Fatal(err)
	}
	mia := e.as(e.Mia)
	path := "/tools/" + stage.SetPrice
	mia.open(path).want(http.StatusOK).says("version 2", "finance", "Version 1", "Admin", "Compare", "product_id").lacks("From version")
	mia.open(path+"?version=2&against=1").want(http.StatusOK).says("From version 1 to 2", "7m", "10m")
	mia.open(path+"?version=1").want(http.StatusOK).says("version 1").lacks("Compare", "Retired", "7m")
	for query, status := range map[string]int{"version=3": 404, "version=0": 422, "version=x": 422, "version=2&against=9": 404, "against=-1": 422, "version=99999999999999999999": 422} {
		mia.open(path + "?" + query).want(status)
	}
	for _, name := range []string{"shop.nothing", "%00", "a%20b", "%FF", strings.Repeat("x", 200)} {
		mia.open("/tools/" + name).want(http.StatusNotFound)
	}
	if err := e.Catalogue.Retire(context.Background(), stage.SetPrice, "keep", by); err != nil {
		t.Fatal(err)
	}
	mia.open(path).says("Retired")
	mia.open(path + "?version=1").says("Retired")
}

// What a tool's page offers to paste is pasted into a shell.
func TestPasteAProposal(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	e := newEnv(t)
	quoting := `name: notes.write
title: "It's a note"
entries: [chat]
object_version: required
input_schema:
  type: object
  required: [text, "it's", tags, when, lines]
  properties:
    text: { type: string, minLength: 30, maxLength: 31 }
    "it's": { enum: ["a 'quoted' $HOME", b] }
    tags: { type: array, minItems: 2, items: { type: string } }
    when: { type: string, format: date-time }
    lines: { type: array, minItems: 1, items: { $ref: "#/$defs/line" } }
    note_id: { type: integer, minimum: 7 }
  $defs:
    line: { type: object, required: [amount], properties: { amount: { type: number, multipleOf: 0.05, minimum: 1.01 } } }
target: { type: note, id: /note_id }
`
	e.Tool(quoting)
	mia := e.as(e.Mia)
	for _, name := range []string{"notes.write", stage.SetPrice, stage.ReadPrice} {
		script := mia.open("/tools/" + name).want(http.StatusOK).code("curl")
		run := exec.Command("sh", "-c", script+" --silent --show-error")
		run.Env = append(os.Environ(), "KEY="+e.keys[people.RoleProposer])
		out, err := run.CombinedOutput()
		var made api.Action
		if err != nil || json.Unmarshal(out, &made) != nil || !action.ValidID("act", made.ID) || made.Tool != name {
			t.Errorf("%s: %v: %s\n%s", name, err, script, out)
		}
	}
}

// Every tool of a real agent gets a payload that its own schema takes.
func TestTrialsFitTheirSchemas(t *testing.T) {
	files, err := filepath.Glob("../../shared/data/tools*/*.json")
	if err != nil || len(files) == 0 {
		t.Skip("the test data is not on this machine")
	}
	tools, fit := 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, definition := range definitionsIn(raw) {
			c, err := contract.Parse(definition)
			if err != nil {
				continue
			}
			tools++
			canonical, err := action.Canonical(trialPayload(c))
			if err == nil {
				err = c.ValidateInput(canonical)
			}
			if err != nil {
				t.Logf("%s: %v: %s", c.Name, action.AsRefusal(err).Errors, trialPayload(c))
				continue
			}
			fit++
		}
	}
	t.Logf("%d of %d fit", fit, tools)
	if tools == 0 || fit*100 < tools*95 {
		t.Errorf("%d of %d payloads fit, want 95 %%", fit, tools)
	}
}

// A schema that refers to itself many times over ends.
func TestTrialsEnd(t *testing.T) {
	c, err := contract.Parse([]byte(`{"name": "a.b", "input_schema": {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/x"}},
		"$defs": {"x": {"type": "array", "minItems": 50, "items": {"type": "object", "required": ["a", "b", "c"],
			"properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}, "c": {"$ref": "#/$defs/x"}}}}}}}`))
	if err != nil {
		t.Fatal(action.AsRefusal(err).Errors)
	}
	if raw := trialPayload(c); len(raw) > 1<<20 || !json.Valid(raw) {
		t.Errorf("%d bytes", len(raw))
	}
}

// definitionsIn are the tool definitions of a file: one, a list, or a member
// "tools".
func definitionsIn(raw []byte) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	var holder struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(raw, &holder) == nil && len(holder.Tools) > 0 {
		return holder.Tools
	}
	return []json.RawMessage{raw}
}

func TestFirstSteps(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	page := admin.open("/approvals").want(http.StatusOK).says("Four steps to the first approval", "2 so far", "7 so far", "4 so far")
	page.holds(`href="/people">Add people</a>`, `href="/clients">Add clients</a>`)
	if curl := page.code("try"); !strings.Contains(curl, "POST "+e.server.URL+"/v1/actions") || strings.Contains(curl, stage.ReadPrice) {
		t.Errorf("the proposal to try: %s", curl)
	}
	e.as(e.Mia).open("/approvals").says("Four steps").lacks(`href="/people">`)
	e.proposed(stage.SetPrice)
	admin.open("/approvals").lacks("Four steps")
}
