package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"countersign/execution/api"
)

// An empty console of one's own: the first admin follows the steps until
// something waits, with what the pages show and nothing else.
func TestFirstStepsOnAnEmptyConsole(t *testing.T) {
	t.Parallel()
	orSkip(t, here.browser)
	c := serve(t)
	_, link := c.person(t, "admin")
	admin := c.browser(t).enter(link).says("Four steps to the first approval", "People", "Tools", "Clients", "Test proposal", "to do")
	if admin.count(".steps li.did") != 0 {
		t.Error("a step is done before anybody did it")
	}

	// People: a name, a role, a link that is shown once.
	admin.follow(`.steps a[href="/people"]`).follow(`a[href="/people/new"]`)
	admin.fill("#name", "Mia Koch").fill("#username", "mia koch").click("input[value=support]").follow("main button.go")
	admin.want(http.StatusUnprocessableEntity).says("A user name is 2 to 64 of the characters").has("#username-wrong").has("input[value=support]:checked")
	if admin.value("#name") != "Mia Koch" || admin.value("#username") != "mia koch" {
		t.Error("what was typed is gone")
	}
	admin.fill("#username", "mia").follow("main button.go").want(http.StatusOK)
	invitation := strings.TrimPrefix(admin.secret(), c.url)
	admin.open("/people").followText("Mia Koch").hasNo("#secret").says("Added by")

	// A tool is put with an admin key, made by the same form as all others.
	key := admin.newClient("deployer", "admin")
	c.Keys.Admin = key
	c.call(t, http.StatusCreated, key, http.MethodPut, "/v1/tools/mail.send_message", json.RawMessage(`{"name":"mail.send_message",
		"description":"Sends a message.","inputSchema":{"type":"object","required":["to"],"properties":{"to":{"type":"string"},"body":{"type":"string"}}}}`), nil)
	admin.open("/approvals").says("Idempotency-Key")
	if admin.count(".steps li.did") != 3 {
		t.Errorf("%d steps are done", admin.count(".steps li.did"))
	}
	if c.Keys.Proposer = admin.newClient("agent", "proposer"); c.Keys.Proposer == key {
		t.Error("two clients have one key")
	}

	// The proposal that the page offers to paste works as it stands there.
	c.paste(t, eval[string](admin.open("/approvals"), `document.querySelector("#try").innerText`))
	admin.open("/approvals?tab=all").hasNo(".steps").has(".row")

	// Whoever was invited signs in, chooses a password, and finds it waiting.
	mia := c.browser(t).enter(invitation)
	mia.open("/account").fill("#password", "a long pass phrase").fill("#again", "a long pass phrase").follow("main button").says("Your password is changed.")
	mia.open("/approvals").follow(".row a").says("The tool states no summary").approve().says("Recorded: you approved")
	mia.open("/approvals").says("Nothing needs you").hasNo(".steps")
	c.browser(t).open(invitation).want(http.StatusUnauthorized)
	c.browser(t).open("/login").fill("#username", "mia").fill("#password", "a long pass phrase").follow("main button").at("/approvals")
}

// newClient adds a program by the pages and returns its key, which is shown
// once.
func (p *tab) newClient(name, role string) string {
	p.t.Helper()
	p.open("/clients/new").fill("#name", name).click("input[name=roles][value=" + role + "]").follow("main button.go").want(http.StatusOK).says("It is shown only now.")
	key := p.secret()
	if !strings.HasPrefix(key, "ck_") {
		p.t.Fatalf("the key is %q", key)
	}
	p.open("/clients").followText(name).lacks(key).hasNo("#secret").says("Revoke the client")
	return key
}

// secret is what the page shows this once.
func (p *tab) secret() string {
	p.t.Helper()
	p.has("#secret")
	return eval[string](p, `document.querySelector("#secret").innerText.trim()`)
}

// paste does what a pasted curl command does, with the proposer's key.
func (c *console) paste(t *testing.T, command string) {
	t.Helper()
	_, body, found := strings.Cut(command, "-d '")
	if !found || !strings.Contains(command, c.url+"/v1/actions") {
		t.Fatalf("the page offers %s", command)
	}
	var a api.Action
	c.call(t, http.StatusCreated, c.Keys.Proposer, http.MethodPost, "/v1/actions", json.RawMessage(strings.TrimSuffix(strings.TrimSpace(body), "'")), &a)
}

// Keys are made, doubled and revoked by the pages, and work until then.
func TestClientsAndTheirKeys(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	admin := c.as(t, "admin")
	name := unique("shop-")
	first := admin.newClient(name, "reader")
	opens := func(key string, want int) {
		t.Helper()
		c.call(t, want, key, http.MethodGet, "/v1/tools", nil, nil)
	}
	opens(first, http.StatusOK)
	admin.fill("#expires_in_days", "soon").follow(`form[action$="/keys"] button`).want(http.StatusUnprocessableEntity).has("#expires_in_days-wrong")
	if admin.value("#expires_in_days") != "soon" {
		t.Error("what was typed is gone")
	}
	second := admin.fill("#expires_in_days", "30").follow(`form[action$="/keys"] button`).want(http.StatusOK).secret()
	opens(second, http.StatusOK)
	admin.open("/clients").followText(name).says("Two", "Revoke one before making another.")
	admin.follow(`tr:has(code) form button`).says("The key no longer works.").hasNo("#secret")
	admin.says("Revoked").follow(`form[action$="/revoke"] button.final`).says("Revoked. None of its keys works any more.")
	opens(first, http.StatusUnauthorized)
	opens(second, http.StatusUnauthorized)
	admin.open("/clients/new").fill("#name", name).click("input[value=reader]").follow("main button.go").says("Another client has this name already.")
	if admin.value("#name") != name {
		t.Error("what was typed is gone")
	}
}
