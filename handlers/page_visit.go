package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/people"
	"countersign/triage"
	"countersign/web"

	"github.com/a-h/templ"
)

// PageReads is what pages read past the domain, beside Reads.
type PageReads interface {
	// Queue lists what waits in a person's approvals queue, by time left.
	Queue(ctx context.Context, f approvals.QueueFilter) ([]action.Action, time.Time, error)
	// QueueCount counts a tab of the queue, up to most; of those after an id, if one is given.
	// It is -1 when that would take too long to know.
	QueueCount(ctx context.Context, f approvals.QueueFilter, after string, most int) (int, error)
	// Newest returns the id of the newest action there is, or "".
	Newest(ctx context.Context) (string, error)
	// Past returns what a decider should know of the past of an action's target and content.
	Past(ctx context.Context, a action.Action, since time.Time) (approvals.Past, error)
	// Blocked returns which of these actions' targets an open case holds up, with the case.
	Blocked(ctx context.Context, ids []string) (map[string]string, error)
	// Rejected returns which of these contents were rejected before.
	Rejected(ctx context.Context, payloadHashes []string) (map[string]bool, error)
	// Events returns everything that happened to a subject, in order, and the clock.
	Events(ctx context.Context, subject string) ([]action.Event, time.Time, error)
}

// DirectoryReads is what the pages about people and programs read.
type DirectoryReads interface {
	Person(ctx context.Context, ref string) (people.Person, error)
	Persons(ctx context.Context) ([]people.Person, error)
	Client(ctx context.Context, ref string) (people.Client, error)
	Clients(ctx context.Context) ([]people.Client, error)
	// SignedIn returns when each person who is signed in was last seen, by id.
	SignedIn(ctx context.Context) (map[string]time.Time, error)
	// ToolVersions returns all versions of a tool, newest first.
	ToolVersions(ctx context.Context, name string) ([]rule.ToolVersion, error)
}

// langCookie keeps the language of somebody who is not signed in, or who chose
// another than their own for this browser.
const langCookie = "lang"

// langOf is the language a request's pages speak.
func langOf(r *http.Request, c caller) web.Lang {
	if cookie, err := r.Cookie(langCookie); err == nil {
		if l, ok := web.ParseLang(cookie.Value); ok {
			return l
		}
	}
	if c.session != nil {
		if l, ok := web.ParseLang(c.session.Person.Lang); ok {
			return l
		}
	}
	return web.MatchLang(r.Header.Get("Accept-Language"))
}

// speaking returns the request's context with the viewer's language, zone and
// the database's clock.
func speaking(r *http.Request, c caller, now time.Time) context.Context {
	l := web.Locale{Lang: langOf(r, c), Now: now}
	if c.session != nil && c.session.Person.Zone != "" {
		if zone, err := time.LoadLocation(c.session.Person.Zone); err == nil {
			l.Zone = zone
		}
	}
	return web.WithLocale(r.Context(), l)
}

// frame is what stands around a page.
func (s *server) frame(r *http.Request, c caller, section web.Section) web.Frame {
	f := web.Frame{Section: section, Path: r.URL.RequestURI(), Flash: flashOf(r), Demo: s.Demo != nil}
	if c.session == nil {
		return f
	}
	f.Person = &web.Person{Name: web.Outside(c.session.Person.Name), Roles: c.session.Person.Roles}
	f.Back = s.guideBack(r, r.URL.Query().Get("decided"), parameter(r, "id"))
	if n, err := s.Pages.QueueCount(r.Context(), queueOf(c.session.Person, approvals.NeedsMe), "", countMost); err == nil && n >= 0 {
		f.Waiting = count(n)
	}
	if n, err := s.CaseReads.CaseCount(r.Context(), triage.CaseFilter{Viewer: c.viewer(), Tab: triage.TabPerson}, countMost); err == nil {
		f.Unknown = count(n)
	}
	return f
}

// countMost is how far counts on pages go: "99+".
const countMost = 100

func count(n int) web.Count {
	if n >= countMost {
		return web.Count{N: countMost - 1, More: true}
	}
	return web.Count{N: n}
}

// doneWords are what a page may say after a redirect.
func doneWords() []web.Done {
	return []web.Done{web.DonePasswordChanged, web.DonePreferencesSaved, web.DoneSessionEnded, web.DoneSessionsEnded, web.DonePersonCreated,
		web.DonePersonSaved, web.DonePersonDisabled, web.DonePersonEnabled, web.DoneClientRevoked, web.DoneKeyRevoked, web.DonePaused, web.DoneGoesOn,
		web.DoneOpenCancelled, web.DoneTaskExtended, web.DoneTaskEnded, web.DoneSignedOut}
}

func flashOf(r *http.Request) *web.Flash {
	done := web.Done(r.URL.Query().Get("done"))
	if slices.Contains(doneWords(), done) {
		return web.FlashDone(done)
	}
	return nil
}

// show renders a page.
func (s *server) show(ctx context.Context, w http.ResponseWriter, status int, page templ.Component) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	var text jsonText // rendered first: a page that fails must not be half sent
	if err := page.Render(ctx, &text); err != nil {
		return err
	}
	w.WriteHeader(status)
	_, err := w.Write(text)
	return err
}

// seeOther sends the browser to a page of ours after a form was taken.
func seeOther(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// ownPath returns path if it is one of ours, else the approvals.
func ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") ||
		strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return "/approvals"
	}
	return path
}

// maxFormBytes bounds a form.
const maxFormBytes = 64 << 10

// form reads a form's fields. Fields of the address do not count.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		return nil, action.Refuse(action.Malformed, "The form cannot be read, or is too large.").From(err)
	}
	return r.PostForm, nil
}

// refusalOf is a refusal as pages tell it.
func refusalOf(err error) *web.Refusal {
	refusal := action.AsRefusal(err)
	out := web.NewRefusal(string(refusal.Code), refusal.Reason, refusal.Detail, refusal.Args)
	for _, e := range refusal.Errors {
		out.At(e.Pointer, e.Detail)
	}
	return out
}

// refusePage answers a request for a page with what went wrong. Somebody who is
// not signed in is sent to sign in and comes back.
func (s *server) refusePage(w http.ResponseWriter, r *http.Request, c caller, status int, refusal *action.Refusal) {
	if refusal.Code == action.Unauthorized {
		next := "/approvals"
		if safe(r.Method) {
			next = r.URL.RequestURI()
		}
		http.Redirect(w, r, "/login?"+url.Values{"next": {next}}.Encode(), http.StatusSeeOther)
		return
	}
	p := web.ErrorPage{Status: status, Refusal: refusalOf(refusal), RequestID: requestID(r)}
	if wait, err := time.ParseDuration(refusal.Args["retry_after"] + "s"); err == nil {
		p.RetryIn = wait
	}
	frame := web.Frame{Path: "/approvals", Demo: s.Demo != nil}
	if c.session != nil {
		frame.Person = &web.Person{Name: web.Outside(c.session.Person.Name), Roles: c.session.Person.Roles}
	}
	if err := s.show(speaking(r, c, time.Time{}), w, status, web.ErrorView(frame, p)); err != nil {
		exchangeOf(r).cause = err
	}
}
