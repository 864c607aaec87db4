package main

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// answer sends a form, from a page of the console or of somewhere else, and
// returns what comes back.
func (b browser) answer(t *testing.T, origin, path string, form url.Values) (status int, to, page string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.console+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", origin)
	resp, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(text)
}

// checkGuide plays, breaks and tries what the demo's own pages offer. The steps
// themselves are walked through in a browser, elsewhere.
func checkGuide(t *testing.T, f demoFile) {
	t.Helper()
	step := url.Values{"step": {"price"}, "move": {"begin"}, "op": {"once"}}
	if status, to, _ := f.browser(t).answer(t, f.Console, "/demo/steps", step); status != http.StatusSeeOther || !strings.HasPrefix(to, "/login") {
		t.Errorf("nobody plays a step: %d to %q", status, to)
	}
	b := f.signIn(t, "mia")
	if status, _, _ := b.answer(t, "https://elsewhere.example", "/demo/steps", step); status != http.StatusForbidden {
		t.Errorf("a page of somewhere else plays a step: %d", status)
	}
	_, first, _ := b.answer(t, f.Console, "/demo/steps", step)
	_, again, _ := b.answer(t, f.Console, "/demo/steps", step)
	if !strings.HasPrefix(first, "/actions/act_") || again != first {
		t.Errorf("one form sent twice leads to %q and %q", first, again)
	}
	page := b.get(t, "/demo")
	if !strings.Contains(page, first) {
		t.Error("the guide does not lead to what was played")
	}
	for _, u := range f.Users {
		if slices.Contains(u.Roles, "support") && !strings.Contains(page, " "+u.Username) {
			t.Errorf("the guide does not say that %s is the other person who can approve", u.Username)
		}
	}
	for _, unknown := range []url.Values{{"step": {"theft"}}, {"step": {"price"}, "move": {"turn"}}} {
		if status, _, _ := b.answer(t, f.Console, "/demo/steps", unknown); status != http.StatusNotFound {
			t.Errorf("%v answers %d", unknown, status)
		}
	}
	checkFaults(t, f, b)
	checkTry(t, f, b)
}

func checkFaults(t *testing.T, f demoFile, b browser) {
	t.Helper()
	broken := url.Values{"system": {"orders"}, "kind": {"lie"}, "count": {"5"}, "op": {"once"}}
	for range 2 {
		b.post(t, "/demo/faults", broken)
	}
	if page := b.get(t, "/demo/faults"); strings.Count(page, "Order desk: it answers ok") != 1 {
		t.Errorf("one form sent twice breaks it twice, or not at all:\n%s", page)
	}
	if status, _, page := b.answer(t, f.Console, "/demo/faults", url.Values{"system": {"bank"}, "kind": {"lie"}}); status != http.StatusUnprocessableEntity || !strings.Contains(page, "Choose a system") {
		t.Errorf("a system that is none: %d", status)
	}
	b.post(t, "/demo/faults/mend", url.Values{"op": {"mend"}})
	if page := b.get(t, "/demo/faults"); !strings.Contains(page, "The company works.") {
		t.Error("it is not mended")
	}
}

func checkTry(t *testing.T, f demoFile, b browser) {
	t.Helper()
	try := func(definition, payload string) (int, string, string) {
		return b.answer(t, f.Console, "/demo/try", url.Values{"definition": {definition}, "payload": {payload}, "op": {newPassword()}})
	}
	bare := `{"name":"calendar.book_room","description":"Book a room.","input_schema":{"type":"object","required":["room"],"properties":{"room":{"type":"string"}}}}`
	status, to, page := try(bare, `{"room":"Jasmine"}`)
	if status != http.StatusSeeOther || !regexp.MustCompile(`^/actions/act_\w+$`).MatchString(to) {
		t.Fatalf("a bare definition: %d to %q\n%s", status, to, page)
	}
	if page := b.get(t, to); !strings.Contains(page, "Jasmine") {
		t.Error("its page does not show the payload")
	}
	if status, again, _ := try(bare, `{"room":"Jasmine"}`); status != http.StatusSeeOther || again != to {
		t.Errorf("the same once more: %d to %q, not %q", status, again, to)
	}
	// Nothing is stored of what is refused, and a whole list leads to a choice.
	named := func(name string) string { return strings.Replace(bare, "calendar.book_room", name, 1) }
	try(named("calendar.refused"), `{"room":7}`)
	reads := strings.Replace(named("calendar.see_room"), `{"name"`, `{"annotations":{"readOnlyHint":true},"name"`, 1)
	list := `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + named("calendar.free_room") + "," + reads + `]}}`
	if status, _, page := try(list, `{"room":"Jasmine"}`); status != http.StatusUnprocessableEntity || !strings.Contains(page, `<option value="calendar.see_room">`) || !strings.Contains(page, "There are 2 tools") {
		t.Errorf("a whole list: %d\n%s", status, page)
	}
	form := url.Values{"definition": {list}, "payload": {`{"room":"Jasmine"}`}, "tool": {"calendar.see_room"}, "op": {newPassword()}}
	if _, to, _ := b.answer(t, f.Console, "/demo/try", form); to == "" || !strings.Contains(b.get(t, to), "No approval: the tool says of itself that it only reads.") {
		t.Errorf("one that reads leads to %q", to)
	}
	if page := b.get(t, "/tools"); strings.Contains(page, "calendar.refused") || strings.Contains(page, "calendar.free_room") || !strings.Contains(page, "calendar.see_room") {
		t.Error("what is refused or not chosen is stored, or what is tried is not")
	}
	for what, c := range map[string]struct{ definition, payload, says string }{
		"no definition":      {`{"name":`, `{}`, `id="definition-wrong"`},
		"an empty list":      {`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, `{}`, "This list holds no tool."},
		"a tool of the shop": {strings.Replace(bare, "calendar.book_room", "catalog.set_price", 1), `{}`, "Give your tool another name."},
		"not what it takes":  {bare, `{"room":7}`, `id="payload-wrong"`},
		"not JSON":           {bare, `room`, `id="payload-wrong"`},
		"a name twice":       {bare, `{"room":"a","room":"b"}`, `id="payload-wrong"`},
	} {
		status, _, page := try(c.definition, c.payload)
		if status != http.StatusUnprocessableEntity || !strings.Contains(page, c.says) || !strings.Contains(page, "What you typed is kept.") {
			t.Errorf("%s: %d\n%s", what, status, page)
		}
	}
}
