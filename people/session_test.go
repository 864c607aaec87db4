package people_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/people"
)

func TestSession(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia", "support")
	w := newBrowser(t, b, false)
	if _, in := w.me(); in {
		t.Fatal("signed in before signing in")
	}
	w.signIn("mia", goodPassword)
	s, in := w.me()
	if !in || s.Person.ID != mia.ID || s.Method != people.ByPassword || s.StepUpAt != nil || s.SteppedUp {
		t.Errorf("session %+v", s)
	}
	// The person is who they are now, not who they were.
	_, err := b.SetGrants(b.ctx, b.cmd(), mia.ID, people.Grants{Roles: []string{"ops"}})
	b.ok(err)
	if s, _ = w.me(); !s.Person.Has("ops") || s.Person.Has("support") {
		t.Errorf("roles %q, want ops alone", s.Person.Roles)
	}
	stolen := w.cookie().Value
	if refused := w.post("/out"); refused != "" {
		t.Errorf("signing out: %s", refused)
	}
	if w.cookie().Value != "" {
		t.Error("the cookie is still there")
	}
	w.use(stolen)
	if _, in := w.me(); in {
		t.Error("the session works after signing out")
	}
	if refused := w.post("/out"); refused != "" {
		t.Errorf("signing out twice: %s", refused)
	}
}

func TestSessionCookie(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	for _, tls := range []bool{false, true} {
		w := newBrowser(t, b, tls)
		answer, err := w.client.PostForm(w.site.URL+"/in", url.Values{"username": {"mia"}, "password": {goodPassword}})
		b.ok(err)
		answer.Body.Close()
		name := map[bool]string{false: "countersign", true: "__Host-countersign"}[tls]
		cookies := answer.Cookies()
		if len(cookies) != 1 {
			t.Fatalf("%d cookies, want 1", len(cookies))
		}
		c := cookies[0]
		if c.Name != name || !c.HttpOnly || c.Secure != tls || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
			t.Errorf("tls %v: cookie %s", tls, c)
		}
		if answer.Header.Get("Cache-Control") != "no-store" {
			t.Error("the answer with the cookie may be stored")
		}
		if _, in := w.me(); !in {
			t.Errorf("tls %v: not signed in", tls)
		}
	}
}

// TestSessionIDChanges: an id known before signing in or stepping up is worth nothing after.
func TestSessionIDChanges(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	w := newBrowser(t, b, false)
	planted := strings.Repeat("A", 43)
	w.use(planted)
	w.signIn("mia", goodPassword)
	first := w.cookie().Value
	w.signIn("mia", goodPassword)
	second := w.cookie().Value
	if refused := w.post("/step-up", "password", "a wrong password"); refused != "forbidden password" {
		t.Errorf("step-up with a wrong password: %q", refused)
	}
	if s, _ := w.me(); s.SteppedUp || w.cookie().Value != second {
		t.Error("a refused step-up changed the session")
	}
	if refused := w.post("/step-up", "password", goodPassword); refused != "" {
		t.Fatalf("step-up: %s", refused)
	}
	s, _ := w.me()
	third := w.cookie().Value
	if !s.SteppedUp || s.StepUpAt == nil {
		t.Errorf("session %+v is not stepped up", s)
	}
	for _, old := range []string{planted, first, second} {
		w.use(old)
		if _, in := w.me(); in || old == third {
			t.Error("an earlier id opens the session")
		}
	}
	late := newBrowser(t, b.later(people.StepUpLifetime), false)
	late.use(third)
	if s, in := late.me(); !in || s.SteppedUp {
		t.Errorf("later: signed in %v, stepped up %v; want in, not stepped up", in, s.SteppedUp)
	}
}

func TestSessionTimeouts(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	w := newBrowser(t, b, false)
	w.signIn("mia", goodPassword)
	inAfter := func(d time.Duration) bool {
		t.Helper()
		late := newBrowser(t, b.later(d), false)
		late.use(w.cookie().Value)
		_, in := late.me()
		return in
	}
	if inAfter(people.IdleTimeout + time.Minute) {
		t.Error("the session outlives two idle hours")
	}
	for d := time.Hour; d < people.AbsoluteTimeout; d += time.Hour + 30*time.Minute {
		if !inAfter(d) {
			t.Fatalf("the session in use ends after %v", d)
		}
	}
	if inAfter(people.AbsoluteTimeout) {
		t.Error("the session in use outlives twelve hours")
	}
}

func TestDisabledPersonLosesSessions(t *testing.T) {
	b := newBench(t)
	b.person("root", "admin")
	mia := b.person("mia", "support")
	w := newBrowser(t, b, false)
	w.signIn("mia", goodPassword)
	_, err := b.DisablePerson(b.ctx, b.cmd(), mia.ID)
	b.ok(err)
	if _, in := w.me(); in {
		t.Error("a disabled person is signed in")
	}
	var left int
	b.ok(b.db.Pool().QueryRowContext(b.ctx, `SELECT count(*) FROM sessions WHERE person_id = $1`, mia.ID).Scan(&left))
	if left != 0 {
		t.Errorf("%d sessions are left", left)
	}
	_, err = b.EnablePerson(b.ctx, b.cmd(), mia.ID)
	b.ok(err)
	if _, in := w.me(); in {
		t.Error("a session of before came back to life")
	}
}

// TestSignInLosesToDisable: somebody who proved who they are just before they
// were disabled, or their password was changed, gets no session after.
func TestSignInLosesToDisable(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia", "support")
	proved, err := b.SignIn(b.ctx, "mia", goodPassword, "a")
	b.ok(err)
	_, err = b.SetPassword(b.ctx, b.cmd(), mia.ID, "another good one")
	b.ok(err)
	s := people.NewSessions(b.db, false)
	err = s.SignIn(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), proved, people.ByPassword)
	b.refused(err, action.Unauthorized, "signed-out")
}

func TestOwnSessions(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	b.person("leo")
	one, two, other := newBrowser(t, b, false), newBrowser(t, b, false), newBrowser(t, b, false)
	one.signIn("mia", goodPassword)
	two.signIn("mia", goodPassword)
	other.signIn("leo", goodPassword)
	mine, _ := one.me()
	hers, _ := two.me()
	theirs, _ := other.me()
	var list []people.Session
	if !one.get("/list", &list) || len(list) != 2 {
		t.Fatalf("list %+v, want two", list)
	}
	for _, s := range list {
		if s.ID != mine.ID && s.ID != hers.ID || s.Agent == "" || s.Address != "127.0.0.1" {
			t.Errorf("session %+v", s)
		}
	}
	if refused := one.post("/end", "id", theirs.ID); refused != "not-found" {
		t.Errorf("ending somebody else's session: %q", refused)
	}
	if refused := one.post("/end", "id", hers.ID); refused != "" {
		t.Errorf("ending one's other session: %q", refused)
	}
	if _, in := two.me(); in {
		t.Error("the ended session works")
	}
	if _, in := other.me(); !in {
		t.Error("somebody else's session ended")
	}
}

func TestFlash(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	w := newBrowser(t, b, false)
	w.signIn("mia", goodPassword)
	if refused := w.post("/flash", "text", "已批准 <b>"); refused != "" {
		t.Fatal(refused)
	}
	for _, want := range []string{`["已批准 \u003cb\u003e"]`, `null`} {
		answer, err := w.client.Post(w.site.URL+"/flashes", "", nil)
		b.ok(err)
		var got json.RawMessage
		b.ok(json.NewDecoder(answer.Body).Decode(&got))
		answer.Body.Close()
		if string(got) != want {
			t.Errorf("flashes %s, want %s", got, want)
		}
	}
}
