package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/action"
	"countersign/people"
	"countersign/store/stage"
)

// adminPlaces are the routes about people and programs, with ids that exist.
func adminPlaces(e *env) []request {
	key := e.client(e.Agent.ID).Keys[0].ID
	places := []request{}
	for _, rt := range adminRoutes() {
		path := strings.NewReplacer("{person}", e.Ken.ID, "{client}", e.Agent.ID, "{key}", key).Replace(rt.pattern)
		places = append(places, request{method: rt.method, path: path})
	}
	return places
}

func (e *env) client(id string) people.Client {
	e.T.Helper()
	c, err := e.DB.Client(context.Background(), id)
	if err != nil {
		e.T.Fatal(err)
	}
	return c
}

func TestAdminPagesAreForAdmins(t *testing.T) {
	e := newEnv(t)
	nobody, support, auditor, admin := e.newBrowser(), e.as(e.Mia), e.as(e.Person("ada", people.RoleAuditor)), e.as(e.Admin)
	form := formOf("op", newOp(), "name", "Eve", "username", "eve", "roles", "admin")
	before := fmt.Sprint(e.events(e.Ken.Subject()), e.events(e.Agent.Subject()))
	for _, place := range adminPlaces(e) {
		if place.method == http.MethodPost {
			nobody.send(place.path, form).leads("/login?next=%2Fapprovals")
			support.send(place.path, form).want(http.StatusForbidden)
			auditor.send(place.path, form).want(http.StatusForbidden)
			continue
		}
		nobody.open(place.path).leads("/login?" + url.Values{"next": {place.path}}.Encode())
		support.open(place.path).want(http.StatusForbidden)
		admin.open(place.path).want(http.StatusOK)
		if strings.HasSuffix(place.path, "/new") {
			auditor.open(place.path).want(http.StatusForbidden)
			continue
		}
		auditor.open(place.path).want(http.StatusOK).lacks(`name="op"`)
	}
	if after := fmt.Sprint(e.events(e.Ken.Subject()), e.events(e.Agent.Subject())); after != before {
		t.Errorf("something was changed by who may not: %s", after)
	}
	if _, err := e.DB.Person(context.Background(), "eve"); !action.IsCode(err, action.NotFound) {
		t.Errorf("somebody was made by who may not: %v", err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	form := formOf("op", newOp(), "roles", "support")
	for _, id := range []string{action.NewID("per"), e.Agent.ID, "mia", "%00", "%FF", "a%2Fb"} {
		admin.open("/people/" + id).want(http.StatusNotFound)
		for _, change := range []string{"/roles", "/password", "/disable", "/enable"} {
			admin.send("/people/"+id+change, form).want(http.StatusNotFound)
		}
	}
	for _, id := range []string{action.NewID("cli"), e.Mia.ID, "agent", "%00", "%FF"} {
		admin.open("/clients/" + id).want(http.StatusNotFound)
		for _, change := range []string{"/keys", "/revoke", "/keys/" + action.NewID("key") + "/revoke"} {
			admin.send("/clients/"+id+change, form).want(http.StatusNotFound)
		}
	}
	for _, key := range []string{action.NewID("key"), "%00", "x"} {
		admin.send("/clients/"+e.Agent.ID+"/keys/"+key+"/revoke", form).want(http.StatusNotFound)
	}
}

func TestAddAPerson(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	form := formOf("op", admin.open("/people/new").op(), "name", "Lin Wei", "username", "Lin", "roles", "support", "roles", "ops", "password", goodPassword)
	first := admin.send("/people", form)
	made := e.person("lin")
	first.leads("/people/" + made.ID + "?done=person_created")
	admin.open(first.header.Get("Location")).says("The person can sign in now.", "Lin Wei", "lin", "Added by Admin").lacks(goodPassword)
	if !slices.Equal(made.Roles, []string{"ops", "support"}) || !made.HasPassword {
		t.Errorf("made %+v", made)
	}
	admin.send("/people", form).leads("/people/" + made.ID + "?done=person_created")
	if n := len(e.events(made.Subject())); n != 1 {
		t.Errorf("%d events after sending the form twice, want 1", n)
	}
	e.newBrowser().send("/login", url.Values{"username": {"lin"}, "password": {goodPassword}}).leads("/approvals")
}

func TestAPersonWithoutAPasswordGetsALinkOnce(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	form := formOf("op", newOp(), "name", "Lin", "username", "lin", "roles", "support")
	link := admin.send("/people", form).want(http.StatusOK).says("It is shown only now", "It works until").secret()
	made := e.person("lin")
	if !strings.HasPrefix(link, e.server.URL+"/login/") || made.HasPassword {
		t.Fatalf("the link %q for %+v", link, made)
	}
	admin.send("/people", form).want(http.StatusOK).says("It cannot be shown again").lacks(e.server.URL + "/login/")
	admin.open("/people/"+made.ID).want(http.StatusOK).says("Admin made a sign-in link").lacks(link, lastPart(link))
	if n := len(e.events(made.Subject())); n != 2 {
		t.Errorf("%d events, want one for the person and one for the link", n)
	}
	for _, event := range e.events(made.Subject()) {
		if strings.Contains(string(event.Data), lastPart(link)) {
			t.Errorf("the event %s holds the link", event.Kind)
		}
	}
	if strings.Contains(e.log.String(), lastPart(link)) {
		t.Error("the log holds the link")
	}
	lin := e.newBrowser()
	lin.send("/login/"+lastPart(link), nil).leads("/approvals")
	lin.open("/account").want(http.StatusOK).says("You came in with a link").lacks(`name="current"`)
	e.newBrowser().send("/login/"+lastPart(link), nil).want(http.StatusUnauthorized)
}

func TestAPersonThatIsRefused(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	good := map[string]string{"op": newOp(), "name": `A "quoted" <b>name</b>`, "username": "lin", "roles": "ops", "password": goodPassword}
	for _, tt := range []struct{ input, value, words string }{
		{"username", "not one", "A user name is 2 to 64 of the characters"},
		{"username", "mia", "Somebody has this user name already."},
		{"name", " ", "A name is 1 to 80 characters"},
		{"name", "Lin\u200b", "none of them invisible"},
		{"roles", "Not a role", "There is no such role."},
		{"password", "short", "A password needs at least 12 characters."},
		{"password", strings.Repeat("x", 20), "more than one character"},
	} {
		form := url.Values{}
		for name, value := range good {
			form.Set(name, value)
		}
		form.Set(tt.input, tt.value)
		page := admin.send("/people", form).wrong(http.StatusUnprocessableEntity, tt.input).says(tt.words)
		page.lacks(form.Get("password"), "<b>name</b>")
		if tt.input != "name" {
			page.holds(`value="A &#34;quoted&#34; &lt;b&gt;name&lt;/b&gt;"`)
		}
		if tt.input != "roles" {
			page.holds(`value="ops" checked`)
		}
		if op := page.op(); op == good["op"] {
			t.Error("a form that was refused keeps its name")
		}
	}
	form := formOf("op", newOp(), "name", "A", "username", "lin", "roles", "auditor", "roles", "support")
	admin.send("/people", form).wrong(http.StatusUnprocessableEntity, "roles").says("An auditor decides nothing.").holds(`value="auditor" checked`, `value="support" checked`)
	form.Del("op")
	admin.send("/people", form).want(http.StatusUnprocessableEntity)
	if all, err := e.DB.Persons(context.Background()); err != nil || len(all) != 3 {
		t.Errorf("%d persons, want the cast alone (%v)", len(all), err)
	}
}

func TestRefusalsInChinese(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	admin.send("/language", formOf("lang", "zh", "next", "/people/new")).leads("/people/new")
	admin.send("/people", formOf("op", newOp(), "name", "林伟", "username", "mia", "roles", "support")).
		wrong(http.StatusUnprocessableEntity, "username").says("该用户名已被占用。").holds(`value="林伟"`).lacks("Somebody has this")
}

func TestRolesOfAPerson(t *testing.T) {
	e := newEnv(t)
	e.PersonWith("lim", people.Grants{Roles: []string{"support"}, Tools: []string{"shop.set_price"}, Scopes: []string{"shop"}, Actors: []string{"u-9"}})
	lim := e.person("lim")
	admin := e.as(e.Admin)
	path := "/people/" + lim.ID
	page := admin.open(path).want(http.StatusOK).holds(`value="support" checked`, `value="finance"`) // a contract asks for it
	form := formOf("op", page.op(), "roles", "ops", "roles", "finance")
	admin.send(path+"/roles", form).leads(path + "?done=person_saved")
	after := e.person(lim.ID)
	if !slices.Equal(after.Roles, []string{"finance", "ops"}) || !slices.Equal(after.Tools, lim.Tools) || !slices.Equal(after.Scopes, lim.Scopes) || !slices.Equal(after.Actors, lim.Actors) {
		t.Errorf("after: %+v", after)
	}
	admin.open(path+"?done=person_saved").says("The roles are saved", "Admin changed the roles to finance, ops").holds(`value="finance" checked`)
	admin.send(path+"/roles", form).leads(path + "?done=person_saved")
	if again := e.person(lim.ID); again.Version != after.Version {
		t.Errorf("sent twice: version %d, want %d", again.Version, after.Version)
	}

	// Back, other boxes, and sent again: the same page asks for something else.
	form["roles"] = []string{"support"}
	admin.send(path+"/roles", form).leads(path + "?done=person_saved")
	if roles := e.person(lim.ID).Roles; !slices.Equal(roles, []string{"support"}) {
		t.Errorf("roles %v, want support", roles)
	}
	// The first form once more changes nothing now, and does not say that it holds.
	form["roles"] = []string{"ops", "finance"}
	admin.send(path+"/roles", form).leads(path)
	if roles := e.person(lim.ID).Roles; !slices.Equal(roles, []string{"support"}) {
		t.Errorf("roles %v, want support", roles)
	}

	admin.send(path+"/roles", formOf("op", newOp(), "roles", "auditor", "roles", "ops")).
		wrong(http.StatusUnprocessableEntity, "roles").holds(`value="auditor" checked`, `value="ops" checked`)
	admin.send("/people/"+e.Admin.ID+"/roles", formOf("op", newOp(), "roles", "admin", "roles", "support")).
		want(http.StatusForbidden).says("You cannot change what you may do yourself.")
	if roles := e.person(e.Admin.ID).Roles; !slices.Equal(roles, []string{"admin"}) {
		t.Errorf("the admin's own roles are %v", roles)
	}
}

func TestLimitsOfAPerson(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	path := "/people/" + e.Mia.ID
	form := formOf("op", admin.open(path).op(), "roles", "support", "tools", "shop.set_price\r\nshop.big_price\r\n", "scopes", " shop ", "actors", "u-17")
	admin.send(path+"/roles", form).leads(path + "?done=person_saved")
	mia := e.person(e.Mia.ID)
	if !slices.Equal(mia.Tools, []string{"shop.big_price", "shop.set_price"}) || !slices.Equal(mia.Scopes, []string{"shop"}) || !slices.Equal(mia.Actors, []string{"u-17"}) {
		t.Errorf("saved %+v", mia.Grants())
	}
	admin.open(path).holds(">shop.big_price\nshop.set_price</textarea>", ">u-17</textarea>").
		says("Admin changed the roles to support; tools: shop.big_price, shop.set_price; scopes: shop; actors: u-17")
	e.as(e.Person("ada", people.RoleAuditor)).open(path).says("shop.big_price, shop.set_price", "u-17").lacks("<textarea")
	admin.send(path+"/roles", formOf("op", newOp(), "roles", "support", "tools", "a\u202eb", "scopes", "shop", "actors", "u-17 and more")).
		wrong(http.StatusUnprocessableEntity, "tools").holds(">u-17 and more</textarea>")
	admin.send(path+"/roles", formOf("op", newOp(), "roles", "support", "tools", "", "scopes", "", "actors", "")).leads(path + "?done=person_saved")
	if g := e.person(e.Mia.ID).Grants(); len(g.Tools)+len(g.Scopes)+len(g.Actors) != 0 {
		t.Errorf("limits stay: %+v", g)
	}
	made := admin.send("/people", formOf("op", newOp(), "name", "Lin", "username", "lin", "roles", "support", "actors", "u-4\nu-5", "password", goodPassword))
	if lin := e.person("lin"); made.status != http.StatusSeeOther || !slices.Equal(lin.Actors, []string{"u-4", "u-5"}) {
		t.Errorf("made %+v", lin)
	}
}

func TestResetAPassword(t *testing.T) {
	e := newEnv(t)
	mia, admin := e.withPassword(e.Mia), e.as(e.Admin)
	path := "/people/" + e.Mia.ID
	form := formOf("op", admin.open(path).op())
	link := admin.send(path+"/password", form).want(http.StatusOK).says("It works until", "Admin reset the password").secret()
	mia.open("/approvals").leads("/login?next=%2Fapprovals")
	e.newBrowser().send("/login", formOf("username", "mia", "password", goodPassword)).want(http.StatusUnauthorized)
	before := len(e.events(e.Mia.Subject()))
	admin.send(path+"/password", form).want(http.StatusOK).says("It cannot be shown again").lacks(e.server.URL + "/login/")
	if n := len(e.events(e.Mia.Subject())); n != before {
		t.Errorf("sent twice: %d events, want %d", n, before)
	}

	mia.send("/login/"+lastPart(link), nil).leads("/approvals")
	const chosen = "a password of her own"
	mia.send("/account/password", formOf("op", newOp(), "password", chosen, "again", chosen)).leads("/account?done=password_changed")
	e.newBrowser().send("/login", formOf("username", "mia", "password", chosen)).leads("/approvals")

	e.disable(e.Ken)
	admin.send("/people/"+e.Ken.ID+"/password", formOf("op", newOp())).want(http.StatusConflict).lacks("/login/")
	admin.send(path+"/password", url.Values{}).want(http.StatusUnprocessableEntity)
}

func (e *env) disable(p people.Person) {
	e.T.Helper()
	if _, err := e.People.DisablePerson(context.Background(), stage.System(action.NewID("req")), p.ID); err != nil {
		e.T.Fatal(err)
	}
}

func TestDisableAndEnable(t *testing.T) {
	e := newEnv(t)
	mia, admin := e.as(e.Mia), e.as(e.Admin)
	path := "/people/" + e.Mia.ID
	form := formOf("op", admin.open(path).says("Last seen").lacks("not signed in").op())
	admin.send(path+"/disable", form).leads(path + "?done=person_disabled")
	mia.open("/approvals").leads("/login?next=%2Fapprovals")
	admin.send(path+"/disable", form).leads(path + "?done=person_disabled")
	admin.send(path+"/disable", formOf("op", newOp())).want(http.StatusConflict).says("It is disabled already.")
	admin.open(path).says("Disabled by Admin", "not signed in", "Enable again")
	admin.send(path+"/enable", formOf("op", newOp())).leads(path + "?done=person_enabled")
	admin.send(path+"/enable", formOf("op", newOp())).want(http.StatusConflict).says("It is enabled already.")

	// The old form once more: she stays enabled, and the page says nothing else.
	admin.send(path+"/disable", form).leads(path)
	admin.send(path+"/enable", form).want(http.StatusUnprocessableEntity) // the form was for something else
	if p := e.person(e.Mia.ID); p.Disabled != nil {
		t.Error("an old form disabled somebody again")
	}
}

func TestTheLastAdminStays(t *testing.T) {
	e := newEnv(t)
	admin := e.as(e.Admin)
	own := "/people/" + e.Admin.ID
	admin.open(own).says("You cannot disable yourself.").lacks(own + "/disable")
	admin.send(own+"/disable", formOf("op", newOp())).want(http.StatusConflict).says("Somebody has to stay admin")
	second := e.Person("second", people.RoleAdmin)
	admin.send("/people/"+second.ID+"/disable", formOf("op", newOp())).leads("/people/" + second.ID + "?done=person_disabled")
	admin.send(own+"/disable", formOf("op", newOp())).want(http.StatusConflict)
	if e.person(e.Admin.ID).Disabled != nil {
		t.Error("nobody can administer any more")
	}
}

func TestPeoplePageByPage(t *testing.T) {
	e := newEnv(t)
	for i := range listPage + 5 {
		e.Person(fmt.Sprintf("user.%03d_x", i), "support")
	}
	admin := e.as(e.Admin)
	seen := map[string]int{}
	pages := 0
	for path := "/people"; path != ""; pages++ {
		page := admin.open(path).want(http.StatusOK)
		for _, m := range regexp.MustCompile(`href="/people/(per_\w+)"`).FindAllSubmatch(page.body, -1) {
			seen[string(m[1])]++
		}
		path = nextPage(page)
	}
	if pages != 2 || len(seen) != listPage+8 {
		t.Errorf("%d people on %d pages, want %d on 2", len(seen), pages, listPage+8)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s stands %d times", id, n)
		}
	}
}

// nextPage is where a page's list goes on, or "".
func nextPage(a answer) string {
	m := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindSubmatch(a.body)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(string(m[1]), "&amp;", "&")
}
