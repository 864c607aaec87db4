package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestPausesFromTheCommandLine(t *testing.T) {
	env := onDatabase(t)
	works(t, env, "", "user", "add", "admin", "--role", "admin", "--public-url", "https://countersign.example/")
	works(t, env, "", "client", "add", "agent", "--role", "proposer", "--owner", "admin")
	works(t, env, "", "pause", "add", "--client", "agent", "--reason", "it asks for nonsense")
	works(t, env, "", "pause", "add", "--scope", "shop", "--reason", "stock taking")
	if said := fails(t, env, "", "pause", "add", "--client", "agent", "--reason", "again"); !strings.Contains(said, "paused already") {
		t.Errorf("paused twice: %s", said)
	}
	if said := fails(t, env, "", "pause", "add", "--tool", "no.such", "--reason", "why"); !strings.Contains(said, "no tool no.such") {
		t.Errorf("an unknown tool: %s", said)
	}
	if said := fails(t, env, "", "pause", "add", "--scope", "other"); !strings.Contains(said, "Say why") {
		t.Errorf("without a reason: %s", said)
	}
	works(t, env, "", "pause", "end", "--scope", "shop")
	list := works(t, env, "", "pause", "list")
	if !regexp.MustCompile(`(?m)^client +cli_\S+ +\S+ \S+ UTC +now +command line.* it asks for nonsense$`).MatchString(list) ||
		!regexp.MustCompile(`(?m)^scope +shop +\S+ \S+ UTC +\S+ \S+ UTC +command line.* stock taking$`).MatchString(list) {
		t.Errorf("the list says\n%s", list)
	}
	if out := works(t, env, "", "client", "cancel-open", "agent"); !strings.Contains(out, "agent: 0 cancelled") {
		t.Errorf("cancel-open says %s", out)
	}
}
