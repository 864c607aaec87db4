package execution_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// knows is a client of the console for a program that may propose from entry
// points; all of them when none is named.
func (b *bench) knows(name string, entries ...string) (people.Client, *execution.Client) {
	b.T.Helper()
	program := b.ClientWith(name, b.Admin, people.ClientGrants{Roles: []string{people.RoleProposer}, Entries: entries})
	_, key, err := b.People.CreateKey(b.T.Context(), stage.System(action.NewID("req")), program.ID, 0)
	b.must(err)
	client, err := execution.NewClient(b.console.URL, execution.NewSecret(key), execution.Options{})
	b.must(err)
	return program, client
}

// names are those of the tools that an entry point may load.
func names(t *testing.T, c *execution.Client, entry string) (all []string) {
	t.Helper()
	tools, err := c.Tools(t.Context(), entry)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		all = append(all, tool.Name)
	}
	return all
}

// An entry point sees and reaches what it loads, and nothing else: not by name,
// not by leaving the entry point out. Who tries is in the record.
func TestB2_HiddenToolsAreRefusedByNameToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	b.Tool("name: notes.purge\nentries: [background]\ninput_schema: { type: object }\napproval: { rules: [ { when: 'true', role: support, approvals: 0 } ] }\n" +
		"http: { method: POST, path: /purge, body: payload, idempotency: header }\n")
	free, any := b.knows("any")
	chatty, chat := b.knows("chatty", "chat")
	_, both := b.knows("both", "chat", "workflow")
	if shown := names(t, chat, "chat"); slices.Contains(shown, "notes.purge") || slices.Contains(shown, "catalog.get_operation") || !slices.Contains(shown, setPrice) {
		t.Errorf("chat may load %v", shown)
	}
	if shown := names(t, any, "background"); !slices.Contains(shown, "notes.purge") || slices.Contains(shown, setPrice) {
		t.Errorf("background may load %v", shown)
	}

	ask := func(c *execution.Client, tool, entry string) error {
		payload, version := `{}`, (*string)(nil)
		if tool == setPrice {
			payload, version = to105, new("8")
		}
		_, err := c.Propose(t.Context(), api.Propose{Tool: tool, Entry: entry, Actor: &api.Actor{ID: actor}, ObjectVersion: version, Payload: []byte(payload)}, "")
		return err
	}
	b.start(b.config())
	for _, c := range []struct {
		who         *execution.Client
		tool, entry string
		code        action.Code // "" when it may
	}{
		{any, "notes.purge", "chat", action.UnknownTool},
		{any, "notes.purge", "", action.InvalidArgument}, // to be named
		{chat, "notes.purge", "chat", action.UnknownTool},
		{chat, "notes.purge", "", action.UnknownTool}, // from chat, as its key says
		{chat, "notes.purge", "background", action.Forbidden},
		{both, "notes.purge", "", action.UnknownTool},
		{any, setPrice, "background", action.UnknownTool},
		{any, setPrice, "", action.InvalidArgument},
		{chat, setPrice, "workflow", action.Forbidden},
		{both, setPrice, "", ""},
	} {
		if err := ask(c.who, c.tool, c.entry); c.code == "" && err != nil || c.code != "" && !execution.HasCode(err, c.code) {
			t.Errorf("%s from %q: %v, want %q", c.tool, c.entry, err, c.code)
		}
	}
	var e *execution.ToolError
	for _, entry := range []string{"chat", ""} {
		if _, err := b.ask(execution.Question{Tool: "catalog.get_operation", Entry: entry, Payload: []byte(`{"execution_key":"k"}`)}); !errors.As(err, &e) || e.Code != execution.UnknownTool {
			t.Errorf("read from %q: %v", entry, err)
		}
	}
	if calls := b.calls("system=notes"); len(calls) != 0 {
		t.Errorf("the customer file was reached: %+v", calls)
	}

	s.signIn(b.Admin)
	if page := s.page("/clients/" + free.ID); !strings.Contains(page, "Called notes.purge from chat, which does not load it") ||
		!strings.Contains(page, "Called catalog.set_price without naming an entry point that loads it") {
		t.Errorf("the record of %s: %s", free.Name, page)
	}
	for range 2 * 20 { // one a day for each, and no more than 20
		b.must(b.People.NoteRefused(t.Context(), chatty, people.Refused{Tool: action.NewID("t"), Entry: "chat", Reason: "entry"}))
		_ = ask(chat, "notes.purge", "chat")
	}
	events, _, err := b.DB.Events(t.Context(), chatty.Subject())
	b.must(err)
	refused := slices.DeleteFunc(events, func(e action.Event) bool { return e.Kind != people.ToolRefused })
	if len(refused) < 20 || len(refused) > 40 || refused[0].By.ID != chatty.ID || !strings.Contains(string(refused[0].Data), `"tool":"notes.purge"`) {
		t.Errorf("%d refusals in the record: %+v", len(refused), refused)
	}
}
