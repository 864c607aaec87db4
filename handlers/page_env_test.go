package handlers

import (
	"context"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"countersign/action"
	"countersign/people"
	"countersign/store/stage"
)

// goodPassword is one that the console takes.
const goodPassword = "correct horse battery"

// browser is one person's browser. It does not follow redirects.
type browser struct {
	*env
	client *http.Client
}

// newBrowser is a browser in which nobody is signed in.
func (e *env) newBrowser() *browser {
	e.T.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		e.T.Fatal(err)
	}
	return &browser{e, &http.Client{Transport: e.server.Client().Transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as is a browser in which somebody has signed in with a one-time link.
func (e *env) as(p people.Person) *browser {
	e.T.Helper()
	secret, err := e.People.NewLink(context.Background(), stage.System(action.NewID("req")), p.ID, linkLife)
	if err != nil {
		e.T.Fatal(err)
	}
	b := e.newBrowser()
	b.send("/login/"+secret, nil).leads("/approvals")
	return b
}

// withPassword is a browser in which somebody has signed in with goodPassword.
func (e *env) withPassword(p people.Person) *browser {
	e.T.Helper()
	if _, err := e.People.SetPassword(context.Background(), stage.System(action.NewID("req")), p.ID, goodPassword); err != nil {
		e.T.Fatal(err)
	}
	b := e.newBrowser()
	b.send("/login", url.Values{"username": {p.Username}, "password": {goodPassword}}).leads("/approvals")
	return b
}

// open gets a page.
func (b *browser) open(path string) answer {
	b.T.Helper()
	return send1(b.T, b.client, b.server.URL, request{method: get, path: path})
}

// send posts a form as a page of the console does.
func (b *browser) send(path string, fields url.Values) answer {
	b.T.Helper()
	return b.sendFrom(b.server.URL, path, fields)
}

// sendFrom posts a form from a page of a site.
func (b *browser) sendFrom(origin, path string, fields url.Values) answer {
	b.T.Helper()
	return send1(b.T, b.client, b.server.URL, request{method: post, path: path, body: fields.Encode(), header: map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}})
}

// leads checks that the answer redirects to a page.
func (a answer) leads(path string) {
	a.t.Helper()
	if to := a.header.Get("Location"); a.status != http.StatusSeeOther || to != path {
		a.t.Fatalf("status %d to %q, want 303 to %q: %s", a.status, to, path, a.text())
	}
}

var (
	elements = regexp.MustCompile(`<[^>]*>`)
	blanks   = regexp.MustCompile(`\s+`)
	opField  = regexp.MustCompile(`name="op" value="([^"]+)"`)
)

// text is what a page says, without its elements.
func (a answer) text() string {
	return strings.TrimSpace(blanks.ReplaceAllString(html.UnescapeString(elements.ReplaceAllString(string(a.body), "")), " "))
}

// says checks that a page says all of this.
func (a answer) says(parts ...string) answer {
	a.t.Helper()
	for _, part := range parts {
		if !strings.Contains(a.text(), part) {
			a.t.Fatalf("the page does not say %q: %s", part, a.text())
		}
	}
	return a
}

// lacks checks that a page holds none of this anywhere.
func (a answer) lacks(parts ...string) answer {
	a.t.Helper()
	for _, part := range parts {
		if strings.Contains(string(a.body), part) || strings.Contains(a.text(), part) {
			a.t.Fatalf("the page holds %q: %s", part, a.text())
		}
	}
	return a
}

// holds checks that a page's source has all of this.
func (a answer) holds(parts ...string) answer {
	a.t.Helper()
	for _, part := range parts {
		if !strings.Contains(string(a.body), part) {
			a.t.Fatalf("the page does not hold %q: %s", part, a.body)
		}
	}
	return a
}

// op is the name of a page's forms.
func (a answer) op() string {
	a.t.Helper()
	m := opField.FindSubmatch(a.body)
	if m == nil {
		a.t.Fatalf("no form with an op: %s", a.text())
	}
	return string(m[1])
}

// secret is what a page shows once.
func (a answer) secret() string {
	a.t.Helper()
	_, rest, found := strings.Cut(string(a.body), `<pre id="secret">`)
	text, _, ended := strings.Cut(rest, "</pre>")
	if !found || !ended || a.header.Get("Cache-Control") != "no-store" {
		a.t.Fatalf("no secret, or one that may be kept (%s): %s", a.header.Get("Cache-Control"), a.text())
	}
	return html.UnescapeString(text)
}

// wrong checks that a form came back with a status, and marks exactly this
// input as wrong.
func (a answer) wrong(status int, input string) answer {
	a.t.Helper()
	a.want(status)
	marks := regexp.MustCompile(`id="([a-z_]+)-wrong"`).FindAllSubmatch(a.body, -1)
	if len(marks) != 1 || string(marks[0][1]) != input {
		a.t.Fatalf("wrong inputs %q, want %s: %s", marks, input, a.text())
	}
	return a
}

// person reads somebody.
func (e *env) person(id string) people.Person {
	e.T.Helper()
	p, err := e.DB.Person(context.Background(), id)
	if err != nil {
		e.T.Fatal(err)
	}
	return p
}

// events are the kinds of what happened to a subject.
func (e *env) events(subject string) []action.Event {
	e.T.Helper()
	events, _, err := e.DB.Events(context.Background(), subject)
	if err != nil {
		e.T.Fatal(err)
	}
	return events
}

// form builds a form's fields from names and values in turn; a name may repeat.
func formOf(pairs ...string) url.Values {
	fields := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		fields.Add(pairs[i], pairs[i+1])
	}
	return fields
}

// after is the part of an address after the last slash.
func lastPart(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Path[strings.LastIndex(u.Path, "/")+1:]
}

func TestFormsComeFromOurOwnPages(t *testing.T) {
	e := newEnv(t)
	admin, mia := e.as(e.Admin), e.person(e.Mia.ID)
	for _, origin := range []string{"https://evil.example", "null", ""} {
		admin.sendFrom(origin, "/people/"+mia.ID+"/disable", formOf("op", newOp())).want(http.StatusForbidden)
	}
	if after := e.person(mia.ID); after.Version != mia.Version || after.Disabled != nil {
		t.Errorf("changed from elsewhere: %+v", after)
	}
}
