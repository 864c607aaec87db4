package handlers

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/people"
	"countersign/store/stage"
)

// newClientForm is a form that the console takes.
func (e *env) newClientForm(name string) url.Values {
	return formOf("op", newOp(), "name", name, "owner", e.Admin.ID, "roles", "proposer", "roles", "reader",
		"tools", "shop.set_price\r\n\r\n shop.big_price ", "scopes", "", "entries", "chat", "expires_in_days", "30")
}

// knocks reads with a key and returns the status.
func (e *env) knocks(key string) int {
	e.T.Helper()
	return e.do(request{method: get, path: "/v1/tools", key: key}).status
}

func TestAddAClient(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	admin.open("/clients/new").want(http.StatusOK).holds(`value="` + e.Admin.ID + `" selected`)
	form := e.newClientForm("Shop chat")
	page := admin.send("/clients", form).want(http.StatusOK).says("It is shown only now", "It works until", "Shop chat", "owned by Admin")
	key := page.secret()
	if status := e.knocks(key); status != http.StatusOK {
		t.Fatalf("the key opens with %d", status)
	}
	made, err := e.DB.Client(t.Context(), "Shop chat")
	if err != nil || !slices.Equal(made.Tools, []string{"shop.big_price", "shop.set_price"}) || !slices.Equal(made.Entries, []string{"chat"}) ||
		len(made.Scopes) != 0 || len(made.Keys) != 1 || !made.Keys[0].ExpiresAt.Equal(made.Keys[0].CreatedAt.Add(30*24*time.Hour)) {
		t.Errorf("made %+v, %v", made, err)
	}
	admin.send("/clients", form).want(http.StatusOK).says("It cannot be shown again").lacks(key)
	admin.open("/clients/" + made.ID).want(http.StatusOK).says("Admin made key ck_" + made.Keys[0].Prefix).lacks(key)
	admin.open("/clients").says("Shop chat", "shop.big_price, shop.set_price", "ck_"+made.Keys[0].Prefix+"…").lacks(key)
	if n := len(e.events(made.Subject())); n != 2 || len(e.client(made.ID).Keys) != 1 {
		t.Errorf("sent twice: %d events, want one for the client and one for its key", n)
	}
	if strings.Contains(e.log.String(), key) {
		t.Error("the log holds the key")
	}

	// Back, another name, and sent again: that is another client.
	form.Set("name", "Shop mail")
	if other := admin.send("/clients", form).want(http.StatusOK).says("Shop mail").secret(); other == key {
		t.Error("two clients have one key")
	}
}

func TestAClientThatIsRefused(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	e.disable(e.Ken)
	for _, tt := range []struct{ input, value, words string }{
		{"name", "agent", "Another client has this name already."},
		{"name", "", "A name is 1 to 80 characters"},
		{"owner", "", "Choose somebody who can sign in"},
		{"owner", e.Ken.ID, "Choose somebody who can sign in"},
		{"owner", "\x00", "Choose somebody who can sign in"},
		{"roles", "root", "There is no such choice."},
		{"entries", "chat\nphone", "There is no such choice."},
		{"tools", "shop.\u200bset_price", "Each line is a few visible characters."},
		{"expires_in_days", "soon", "Use a whole number of days"},
		{"expires_in_days", "0", "Use a whole number of days"},
		{"expires_in_days", "99999999999999999999", "Use a whole number of days"},
	} {
		form := e.newClientForm("Shop <chat>")
		form.Set(tt.input, tt.value)
		page := admin.send("/clients", form).wrong(http.StatusUnprocessableEntity, tt.input).says(tt.words)
		page.lacks("<chat>", `id="secret"`)
		for input, kept := range map[string]string{"name": `value="Shop &lt;chat&gt;"`, "roles": `value="reader" checked`, "expires_in_days": `value="30"`,
			"tools": "shop.set_price\r\n\r\n shop.big_price ", "owner": `value="` + e.Admin.ID + `" selected`} {
			if input != tt.input {
				page.holds(kept)
			}
		}
	}
	form := e.newClientForm("Shop chat")
	form.Del("roles")
	admin.send("/clients", form).wrong(http.StatusUnprocessableEntity, "roles").says("Choose at least one.")
	if all, err := e.DB.Clients(t.Context()); err != nil || len(all) != 4 {
		t.Errorf("%d clients, want the cast alone (%v)", len(all), err)
	}
}

func TestRotateAKey(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	path := "/clients/" + e.Agent.ID
	first := e.keys[people.RoleProposer]
	form := formOf("op", admin.open(path).op(), "expires_in_days", "")
	second := admin.send(path+"/keys", form).want(http.StatusOK).secret()
	if e.knocks(first) != http.StatusOK || e.knocks(second) != http.StatusOK {
		t.Fatal("two keys do not both work")
	}
	admin.send(path+"/keys", form).want(http.StatusOK).says("It cannot be shown again").lacks(second)
	admin.send(path+"/keys", formOf("op", newOp())).want(http.StatusConflict).says("Two keys work already: revoke one first.").lacks(`id="secret"`)
	if n := len(e.client(e.Agent.ID).Keys); n != 2 {
		t.Fatalf("%d keys, want 2", n)
	}

	// One page, one op, and two buttons: each revokes its own key.
	keys := e.client(e.Agent.ID).Keys
	revoke := formOf("op", admin.open(path).op())
	admin.send(path+"/keys/"+keys[1].ID+"/revoke", revoke).leads(path + "?done=key_revoked")
	if e.knocks(first) != http.StatusUnauthorized || e.knocks(second) != http.StatusOK {
		t.Error("the first key still works, or the second does not")
	}
	admin.send(path+"/keys/"+keys[1].ID+"/revoke", revoke).leads(path + "?done=key_revoked")
	admin.send(path+"/keys/"+keys[0].ID+"/revoke", revoke).leads(path + "?done=key_revoked")
	if e.knocks(second) != http.StatusUnauthorized {
		t.Error("the second key still works")
	}
	admin.send(path+"/keys/"+keys[0].ID+"/revoke", formOf("op", newOp())).want(http.StatusConflict).says("This key was revoked already.")
	admin.send(path+"/keys", formOf("op", newOp(), "expires_in_days", "-1")).wrong(http.StatusUnprocessableEntity, "expires_in_days").holds(`value="-1"`)
}

func TestAnExpiredKeyMakesRoom(t *testing.T) {
	e := newEnv(t)
	e.key(e.Agent, time.Hour)
	admin := e.as(e.Admin)
	path := "/clients/" + e.Agent.ID
	admin.open(path).says("Two keys live.").lacks("Make a second key")
	admin.server = e.later(2 * time.Hour)
	later := admin.env.as(e.Admin)
	later.open(path).says("Expired", "Make a second key").lacks("Two keys live.")
}

func TestRevokeAClient(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	path := "/clients/" + e.Agent.ID
	e.proposed(stage.SetPrice)
	e.confirmed(stage.SetPrice)
	form := formOf("op", admin.open(path).says("1 proposal of it waits and stays.").op())
	admin.send(path+"/revoke", form).leads(path + "?done=client_revoked")
	if e.knocks(e.keys[people.RoleProposer]) != http.StatusUnauthorized {
		t.Error("a key of a revoked client works")
	}
	admin.send(path+"/revoke", form).leads(path + "?done=client_revoked")
	admin.send(path+"/revoke", formOf("op", newOp())).want(http.StatusConflict).says("It is disabled already.")
	admin.open(path+"?done=client_revoked").says("None of its keys works any more.", "Revoked by Admin").lacks(path+"/revoke", "Make a second key")
	if n := len(e.events(e.Agent.Subject())); n != 3 {
		t.Errorf("%d events, want client, key and revocation", n)
	}
	admin.open("/people/"+e.Admin.ID).says("agent", "executor")
}

func TestAnAdminWhoIsNoneAnyMore(t *testing.T) {
	e := newEnv(t)
	second := e.Person("second", people.RoleAdmin)
	b := e.as(second)
	form := formOf("op", b.open("/clients/"+e.Agent.ID).op())
	e.Grant(second, people.Grants{Roles: []string{"support"}})
	b.send("/clients/"+e.Agent.ID+"/revoke", form).want(http.StatusForbidden)
	if e.client(e.Agent.ID).Disabled != nil {
		t.Error("an old page revoked a client")
	}
}
