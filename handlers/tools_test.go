package handlers

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

func (e *env) putTool(name, mediaType, source string) answer {
	e.T.Helper()
	return e.do(request{method: put, path: "/v1/tools/" + name, key: e.keys[people.RoleAdmin], body: source, header: pairs([]string{"Content-Type", mediaType})})
}

func TestPutTool(t *testing.T) {
	e := newEnv(t)
	const yaml = "name: notes.add\ndescription: Adds a note.\ninput_schema: { type: object, properties: { text: { type: string } } }\n"
	made := e.putTool("notes.add", "application/yaml", yaml).want(201)
	if made.header.Get("Location") != "/v1/tools/notes.add?version=1" {
		t.Errorf("headers %v", made.header)
	}
	tool := into[api.Tool](made)
	parsed, err := contract.Parse(tool.Contract)
	if err != nil || tool.Version != 1 || !tool.Active || parsed.Mode != contract.Write || parsed.Execution.Proves != action.ProvesAccepted || len(tool.Assumed) == 0 {
		t.Errorf("%s, %v", made.body, err)
	}
	same := `{"description": "Adds a note.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}, "name": "notes.add"}`
	for media, text := range map[string]string{"application/yaml": yaml, "application/json": same} {
		if again := into[api.Tool](e.putTool("notes.add", media, text).want(200)); again.Version != 1 {
			t.Errorf("the same made version %d", again.Version)
		}
	}
	if next := into[api.Tool](e.putTool("notes.add", "", strings.Replace(yaml, "a note", "one note", 1)).want(201)); next.Version != 2 {
		t.Errorf("another made version %d", next.Version)
	}
	old := into[api.Tool](e.get(people.RoleReader, "/v1/tools/notes.add?version=1").want(200))
	if old.Version != 1 || old.Active || !bytes.Contains(old.Contract, []byte("a note")) {
		t.Errorf("version 1 is %+v", old)
	}
	if newest := into[api.Tool](e.get(people.RoleReader, "/v1/tools/notes.add").want(200)); newest.Version != 2 || !newest.Active {
		t.Errorf("the newest is %+v", newest)
	}
	e.get(people.RoleReader, "/v1/tools/notes.add?version=3").refused(action.UnknownTool)
	e.get(people.RoleReader, "/v1/tools/notes.add?version=0").refused(action.InvalidArgument)
	e.get(people.RoleReader, "/v1/tools/nothing").refused(action.UnknownTool)
	e.get(people.RoleReader, "/v1/tools/%00").refused(action.UnknownTool)
}

func TestToolsThatAreRefused(t *testing.T) {
	e := newEnv(t)
	for name, c := range map[string]struct {
		media, source string
		code          action.Code
		pointer       string
	}{
		"nothing":         {"application/yaml", "", action.Malformed, ""},
		"broken YAML":     {"application/yaml", "name: [", action.Malformed, ""},
		"YAML as JSON":    {"application/json", "name: t", action.Malformed, ""},
		"another name":    {"application/yaml", "name: u\ninput_schema: { type: object }", action.InvalidArgument, "/name"},
		"no schema":       {"application/yaml", "name: t", action.InvalidArgument, "/input_schema"},
		"unknown key":     {"application/yaml", "name: t\nmode: write\nfancy: 1\ninput_schema: { type: object }", action.InvalidArgument, "/fancy"},
		"broken schema":   {"application/yaml", "name: t\ninput_schema: { type: nothing }", action.InvalidArgument, "/input_schema/type"},
		"broken rule":     {"application/yaml", "name: t\nmode: write\ninput_schema: { type: object }\napproval: { rules: [ { when: 'payload.', role: support, approvals: 1 } ] }", action.InvalidArgument, "/approval/rules/0/when"},
		"over a megabyte": {"application/yaml", "name: t\ndescription: " + strings.Repeat("x", 1<<20), action.TooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := e.putTool("t", c.media, c.source)
			a.t = t
			if p := a.refused(c.code); c.pointer != "" {
				at(t, p, c.pointer)
			}
		})
	}
	e.get(people.RoleAdmin, "/v1/tools/t").refused(action.UnknownTool)
}

func TestListTools(t *testing.T) {
	e := newEnv(t)
	e.Tool("name: shop.chat_only\nentries: [chat]\ninput_schema: { type: object }\n")
	e.post(people.RoleAdmin, "/v1/tools/"+stage.Small+"/retire", api.Retire{OpenActions: "keep"}).want(200)
	list := func(key, query string) map[string]bool {
		found := map[string]bool{}
		for cursor := ""; ; {
			page := into[api.List[api.Tool]](e.do(request{method: get, path: "/v1/tools?limit=3&cursor=" + cursor + query, key: key}).want(200))
			for _, tool := range page.Items {
				found[tool.Name] = tool.Active
			}
			if page.NextCursor == nil {
				return found
			}
			cursor = *page.NextCursor
		}
	}
	all := list(e.keys[people.RoleReader], "")
	if len(all) != len(stage.Tools())+1 || all[stage.Small] || !all[stage.SetPrice] {
		t.Errorf("all are %v", all)
	}
	chat, background := list(e.keys[people.RoleReader], "&entry=chat"), list(e.keys[people.RoleReader], "&entry=background")
	if _, retired := chat[stage.Small]; retired || !chat["shop.chat_only"] || background["shop.chat_only"] || !background[stage.SetPrice] {
		t.Errorf("chat loads %v, background %v", chat, background)
	}
	e.get(people.RoleReader, "/v1/tools?entry=cellar").refused(action.InvalidArgument)
	e.get(people.RoleReader, "/v1/tools?cursor=*").refused(action.InvalidArgument)
}

// Whoever executes one tool needs the contracts of those that it reads with.
func TestLimitedKeysReadWhatTheirToolsReadWith(t *testing.T) {
	e := newEnv(t)
	key := e.limited(people.RoleExecutor, stage.ReadBack)
	e.do(request{method: get, path: "/v1/tools/" + stage.ReadPrice, key: key}).want(200)
	e.do(request{method: get, path: "/v1/tools/" + stage.SetPrice, key: key}).refused(action.UnknownTool)
}

// A contract that was read says the same when it is put again.
func TestShownContractsMeanTheSame(t *testing.T) {
	e := newEnv(t)
	for _, tool := range into[api.List[api.Tool]](e.get(people.RoleReader, "/v1/tools").want(200)).Items {
		parsed, err := contract.Parse(tool.Contract)
		if err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		again, err := parsed.Effective()
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(again, &a) != nil || json.Unmarshal(tool.Contract, &b) != nil || !bytes.Equal(again, tool.Contract) {
			t.Errorf("%s became\n%s\n%s", tool.Name, tool.Contract, again)
		}
	}
}
