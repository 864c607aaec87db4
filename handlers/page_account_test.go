package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/people"
)

const nextPassword = "another horse battery"

func TestChangeOnesPassword(t *testing.T) {
	e := newEnv(t)
	elsewhere := e.as(e.Mia)
	mia := e.withPassword(e.Mia) // which ends the session elsewhere
	elsewhere.open("/account").leads("/login?next=%2Faccount")
	elsewhere = e.as(e.Mia)
	cookie := mia.session()

	page := mia.open("/account").want(http.StatusOK).holds(`name="current"`)
	form := formOf("op", page.op(), "current", goodPassword, "password", nextPassword, "again", nextPassword)
	mia.send("/account/password", form).leads("/account?done=password_changed")
	if mia.session() == cookie {
		t.Error("the session keeps its secret")
	}
	mia.open("/account?done=password_changed").want(http.StatusOK).says("Your password is changed.", "this one").lacks(goodPassword, nextPassword)
	elsewhere.open("/account").leads("/login?next=%2Faccount")
	before := len(e.events(e.Mia.Subject()))
	mia.send("/account/password", form).leads("/account?done=password_changed")
	if n := len(e.events(e.Mia.Subject())); n != before {
		t.Errorf("sent twice: %d events, want %d", n, before)
	}
	e.newBrowser().send("/login", formOf("username", "mia", "password", goodPassword)).want(http.StatusUnauthorized)
	e.newBrowser().send("/login", formOf("username", "mia", "password", nextPassword)).leads("/approvals")
	if log := e.log.String(); strings.Contains(log, goodPassword) || strings.Contains(log, nextPassword) {
		t.Error("the log holds a password")
	}
	for _, event := range e.events(e.Mia.Subject()) {
		if text := event.Op + string(event.Data); strings.Contains(text, "horse") {
			t.Errorf("the event %s holds a password: %s", event.Kind, text)
		}
	}
}

// session is the secret of a browser's session.
func (b *browser) session() string {
	b.T.Helper()
	u, err := url.Parse(b.server.URL)
	if err != nil {
		b.T.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == "countersign" {
			return c.Value
		}
	}
	b.T.Fatal("no session")
	return ""
}

func TestAPasswordThatIsRefused(t *testing.T) {
	e := newEnv(t)
	mia := e.withPassword(e.Mia)
	before := e.person(e.Mia.ID)
	for _, tt := range []struct {
		current, password, again, input string
		status                          int
		words                           string
	}{
		{"wrong", nextPassword, nextPassword, "current", http.StatusForbidden, "The password is wrong."},
		{"", nextPassword, nextPassword, "current", http.StatusForbidden, "The password is wrong."},
		{goodPassword, nextPassword, nextPassword + " ", "again", http.StatusUnprocessableEntity, "The two passwords differ."},
		{goodPassword, "short", "short", "password", http.StatusUnprocessableEntity, "A password needs at least 12 characters."},
	} {
		form := formOf("op", newOp(), "current", tt.current, "password", tt.password, "again", tt.again)
		mia.send("/account/password", form).wrong(tt.status, tt.input).says(tt.words).lacks(nextPassword, goodPassword)
	}
	mia.send("/account/password", formOf("current", goodPassword, "password", nextPassword, "again", nextPassword)).want(http.StatusUnprocessableEntity)
	if after := e.person(e.Mia.ID); after.Version != before.Version {
		t.Error("a refused password changed something")
	}
	mia.open("/account").want(http.StatusOK)
}

func TestTooManyTriesOfOnesPassword(t *testing.T) {
	e := newEnv(t)
	mia := e.withPassword(e.Mia)
	form := formOf("op", newOp(), "current", "wrong", "password", nextPassword, "again", nextPassword)
	last := mia.send("/account/password", form)
	for range 20 {
		if last.status != http.StatusForbidden {
			break
		}
		last = mia.send("/account/password", form)
	}
	if last.want(http.StatusTooManyRequests).header.Get("Retry-After") == "" {
		t.Error("nobody says when to try again")
	}
}

func TestAfterALinkThePasswordIsChosen(t *testing.T) {
	e := newEnv(t)
	if e.person(e.Mia.ID).HasPassword {
		t.Fatal("she has a password already")
	}
	mia := e.as(e.Mia)
	mia.open("/account").says("You came in with a link").lacks(`name="current"`)
	mia.send("/account/password", formOf("op", newOp(), "password", "short", "again", "short")).wrong(http.StatusUnprocessableEntity, "password")
	form := formOf("op", newOp(), "password", nextPassword, "again", nextPassword)
	mia.send("/account/password", form).leads("/account?done=password_changed")
	mia.send("/account/password", form).leads("/account?done=password_changed")
	e.newBrowser().send("/login", formOf("username", "mia", "password", nextPassword)).leads("/approvals")

	late := e.as(e.Ken)
	late.server = e.later(people.ChooseTime)
	late.open("/account").want(http.StatusOK).holds(`name="current"`)
	late.send("/account/password", form).wrong(http.StatusForbidden, "current")
}

func TestPreferences(t *testing.T) {
	e := newEnv(t)
	mia := e.as(e.Mia)
	mia.send("/language", formOf("lang", "en", "next", "/account")).leads("/account")
	form := formOf("op", mia.open("/account").op(), "lang", "zh", "zone", "Asia/Shanghai")
	mia.send("/account/preferences", form).leads("/account?done=preferences_saved")
	mia.open("/account?done=preferences_saved").want(http.StatusOK).says("密码", "已保存").holds(`value="Asia/Shanghai" selected`, `value="zh" selected`, `lang="zh-Hans"`)
	before := e.person(e.Mia.ID)
	if before.Lang != "zh" || before.Zone != "Asia/Shanghai" || before.Name != "Mia" {
		t.Errorf("saved %+v", before)
	}
	mia.send("/account/preferences", form).leads("/account?done=preferences_saved")
	if after := e.person(e.Mia.ID); after.Version != before.Version {
		t.Error("sending the form twice changed something")
	}
	mia.send("/account/preferences", formOf("op", newOp(), "lang", "en", "zone", "Mars/Base")).
		wrong(http.StatusUnprocessableEntity, "zone").holds(`value="Mars/Base" selected`)
	mia.send("/account/preferences", formOf("op", newOp(), "lang", "fr", "zone", "UTC")).wrong(http.StatusUnprocessableEntity, "lang").holds(`value="UTC" selected`)
	mia.send("/account/preferences", formOf("op", newOp(), "lang", "en", "zone", "Pacific/Chatham")).leads("/account?done=preferences_saved")
	mia.open("/account").holds(`value="Pacific/Chatham" selected`)
}

func TestOnesSessions(t *testing.T) {
	e := newEnv(t)
	here, there, third, ken := e.as(e.Mia), e.as(e.Mia), e.as(e.Mia), e.as(e.Ken)
	kens := e.sessionOf(ken)
	mine := e.sessionOf(there)
	here.open("/account").says("this one").holds("/account/sessions/" + mine + "/end").lacks(kens)
	here.send("/account/sessions/"+mine+"/end", formOf("op", newOp())).leads("/account?done=session_ended")
	there.open("/account").leads("/login?next=%2Faccount")
	here.send("/account/sessions/"+mine+"/end", formOf("op", newOp())).leads("/account")
	here.send("/account/sessions/"+kens+"/end", formOf("op", newOp())).leads("/account")
	here.send("/account/sessions/%00/end", formOf("op", newOp())).want(http.StatusNotFound)
	ken.open("/account").want(http.StatusOK)

	here.send("/account/sessions/end-others", formOf("op", newOp())).leads("/account?done=sessions_ended")
	third.open("/account").leads("/login?next=%2Faccount")
	here.send("/account/sessions/end-others", formOf("op", newOp())).leads("/account?done=sessions_ended")
	here.open("/account?done=sessions_ended").want(http.StatusOK).says("Your other sessions are over.").lacks("End all others")
	ken.open("/account").want(http.StatusOK)
}

// sessionOf is the id of a browser's session, which opens nothing.
func (e *env) sessionOf(b *browser) string {
	e.T.Helper()
	r, err := http.NewRequest(http.MethodGet, b.server.URL, nil)
	if err != nil {
		e.T.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "countersign", Value: b.session()})
	held, err := people.NewSessions(e.DB, false).Current(r)
	if err != nil {
		e.T.Fatal(err)
	}
	return held.ID
}

func TestTheAccountIsOnesOwn(t *testing.T) {
	e := newEnv(t)
	nobody, mia := e.newBrowser(), e.as(e.Mia)
	before := e.person(e.Mia.ID)
	for _, rt := range accountRoutes() {
		path := strings.ReplaceAll(rt.pattern, "{session}", e.sessionOf(mia))
		if rt.method == http.MethodGet {
			nobody.open(path).leads("/login?" + url.Values{"next": {path}}.Encode())
			continue
		}
		nobody.send(path, formOf("op", newOp())).leads("/login?next=%2Fapprovals")
		mia.sendFrom("https://evil.example", path, formOf("op", newOp(), "lang", "zh", "zone", "UTC", "password", nextPassword, "again", nextPassword)).
			want(http.StatusForbidden)
	}
	if after := e.person(e.Mia.ID); after.Version != before.Version {
		t.Error("the account was changed from elsewhere")
	}
	mia.open("/account").want(http.StatusOK)
}
