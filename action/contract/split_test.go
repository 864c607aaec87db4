package contract

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever tool definitions are wrapped in where people copy them, each is found.
func TestWhatPeopleCopyIsTakenApart(t *testing.T) {
	const bare = `{"name":"room.book","description":"Book it.","inputSchema":{"type":"object","required":["room"],"properties":{"room":{"type":"string"}}}}`
	schema := `{"type":"object","required":["room"],"properties":{"room":{"type":"string"}}}`
	function := `{"name":"room.book","description":"Book it.","strict":true,"parameters":` + schema + `}`
	for what, c := range map[string]struct {
		text string
		n    int
	}{
		"one of MCP":                 {bare, 1},
		"one of Anthropic":           {`{"name":"room.book","description":"Book it.","input_schema":` + schema + `}`, 1},
		"a list":                     {"[" + bare + ",\n" + strings.Replace(bare, "room.book", "room.free", 1) + "]", 2},
		"tools/list":                 {`{"tools":[` + bare + `]}`, 1},
		"tools/list in its envelope": {`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + bare + `],"nextCursor":"2"}}`, 1},
		"chat completions":           {`[{"type":"function","function":` + function + `}]`, 1},
		"responses":                  {`{"tools":[{"type":"function",` + function[1:] + `]}`, 1},
		"function declarations":      {`{"tools":[{"functionDeclarations":[` + function + `]}]}`, 1},
	} {
		all := Split([]byte(c.text))
		if len(all) != c.n {
			t.Errorf("%s: %d definitions", what, len(all))
			continue
		}
		for _, one := range all {
			parsed, err := Parse(one)
			if err != nil || !strings.HasPrefix(parsed.Name, "room.") || !parsed.Bare() {
				t.Errorf("%s: %v", what, err)
			} else if err := parsed.ValidateInput([]byte(`{"chair":1}`)); err == nil {
				t.Errorf("%s: its schema is lost: %s", what, one)
			}
		}
	}
	for _, whole := range []string{"", "name: room.book", "7", `{"name":"a","name":"b"}`, `{"name":"t","tools":[{"name":"u"}]}`, `{"name":"t","function":{"name":"u"}}`} {
		if all := Split([]byte(whole)); len(all) != 1 || string(all[0]) != whole {
			t.Errorf("%q is taken apart: %s", whole, all)
		}
	}
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	if all := Split([]byte(deep)); len(all) != 1 {
		t.Errorf("what is nested without end is %d definitions", len(all))
	}
	if all := Split([]byte(fmt.Sprintf("[%s]", strings.Repeat(bare+",", 199)+bare))); len(all) != 200 {
		t.Errorf("of 200 definitions there are %d", len(all))
	}
}
