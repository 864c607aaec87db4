package people_test

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"countersign/action"
	"countersign/people"
)

// browser talks to a small site that uses sessions as the console does.
type browser struct {
	t      *testing.T
	b      *bench
	client *http.Client
	site   *httptest.Server
	name   string
}

func newBrowser(t *testing.T, b *bench, tls bool) *browser {
	t.Helper()
	s := people.NewSessions(b.db, tls)
	site := httptest.NewUnstartedServer(siteHandler(b, s))
	if tls {
		site.StartTLS()
	} else {
		site.Start()
	}
	t.Cleanup(site.Close)
	client := site.Client()
	client.Jar, _ = cookiejar.New(nil)
	return &browser{t: t, b: b, client: client, site: site, name: s.CookieName()}
}

func siteHandler(b *bench, s *people.Sessions) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				refusal := action.AsRefusal(err)
				if refusal.Code == action.Internal {
					b.t.Errorf("%s: %v", pattern, err)
				}
				http.Error(w, string(refusal.Code)+" "+refusal.Reason, http.StatusForbidden)
			}
		})
	}
	handle("POST /in", func(w http.ResponseWriter, r *http.Request) error {
		p, err := b.SignIn(r.Context(), r.FormValue("username"), r.FormValue("password"), r.RemoteAddr)
		if err != nil {
			return err
		}
		return s.SignIn(w, r, p, people.ByPassword)
	})
	handle("POST /step-up", func(w http.ResponseWriter, r *http.Request) error {
		now, err := s.Current(r)
		if err != nil {
			return err
		}
		if err := b.Prove(r.Context(), now.Person, r.FormValue("password"), r.RemoteAddr); err != nil {
			return err
		}
		if err := s.StepUp(w, r); err != nil {
			return err
		}
		if now, err = s.Current(r); err == nil && !now.SteppedUp {
			b.t.Error("the session is not stepped up in the request that did it")
		}
		return err
	})
	handle("POST /out", func(w http.ResponseWriter, r *http.Request) error { return s.SignOut(w, r) })
	handle("POST /end", func(_ http.ResponseWriter, r *http.Request) error { return s.End(r, r.FormValue("id")) })
	handle("POST /flash", func(w http.ResponseWriter, r *http.Request) error {
		g, err := s.Get(r, s.CookieName())
		if err != nil {
			return err
		}
		g.AddFlash(r.FormValue("text"))
		return g.Save(r, w)
	})
	handle("POST /flashes", func(w http.ResponseWriter, r *http.Request) error {
		g, err := s.Get(r, s.CookieName())
		if err != nil {
			return err
		}
		flashes := g.Flashes()
		if err := g.Save(r, w); err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(flashes)
	})
	handle("GET /me", func(w http.ResponseWriter, r *http.Request) error {
		now, err := s.Current(r)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(now)
	})
	handle("GET /list", func(w http.ResponseWriter, r *http.Request) error {
		list, err := s.List(r)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(list)
	})
	return mux
}

// post sends a form and returns "" or what was refused.
func (w *browser) post(path string, fields ...string) string {
	w.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	answer, err := w.client.PostForm(w.site.URL+path, form)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return ""
	}
	var text [200]byte
	n, _ := answer.Body.Read(text[:])
	return strings.TrimSpace(string(text[:n]))
}

func (w *browser) signIn(username, password string) {
	w.t.Helper()
	if refused := w.post("/in", "username", username, "password", password); refused != "" {
		w.t.Fatalf("signing in: %s", refused)
	}
}

func (w *browser) get(path string, into any) bool {
	w.t.Helper()
	answer, err := w.client.Get(w.site.URL + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return false
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		w.t.Fatal(err)
	}
	return true
}

// me is the session as the site sees it, and whether there is one.
func (w *browser) me() (s people.Session, in bool) {
	w.t.Helper()
	in = w.get("/me", &s)
	return s, in
}

func (w *browser) cookie() *http.Cookie {
	w.t.Helper()
	site, err := url.Parse(w.site.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range w.client.Jar.Cookies(site) {
		if c.Name == w.name {
			return c
		}
	}
	return &http.Cookie{}
}

// use sets the session's cookie, as somebody who has stolen it would.
func (w *browser) use(value string) {
	w.t.Helper()
	site, err := url.Parse(w.site.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	w.client.Jar.SetCookies(site, []*http.Cookie{{Name: w.name, Value: value, Path: "/", Secure: site.Scheme == "https"}})
}
