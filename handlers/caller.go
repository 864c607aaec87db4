package handlers

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"

	"github.com/go-chi/httprate"
)

// caller is who asks: a program with an API key, a person who is signed in, or
// somebody unknown.
type caller struct {
	client  *people.Client  // nil unless a program
	session *people.Session // nil unless a person
}

// viewer is what the caller may see.
func (c caller) viewer() people.Viewer {
	switch {
	case c.client != nil:
		return people.ClientViewer(*c.client)
	case c.session != nil:
		return people.PersonViewer(c.session.Person)
	}
	return people.Viewer{}
}

// by is the caller as the cause of an event.
func (c caller) by() action.By {
	switch {
	case c.client != nil:
		return c.client.By()
	case c.session != nil:
		return c.session.By("")
	}
	return action.By{}
}

// id names the caller in the log.
func (c caller) id() string { return c.by().ID }

// readsAll reports whether the caller gets the whole content of an action: the
// program that sent it and whoever may execute it do, others get what the
// contract does not hide.
func (c caller) readsAll(a action.Action) bool {
	if c.client == nil {
		return false
	}
	return c.client.ID == a.Client.ID || people.ClientMay(*c.client, people.ToExecute, approvals.SubjectOf(a, "")) == nil
}

// access says who may use a route.
type access struct {
	keys     []string // roles of API keys, one of which is needed
	signedIn bool     // people with a session
	persons  []string // roles, one of which is needed of them; empty for everybody signed in
	visits   bool     // anybody; a session is read where there is one
}

// anyone lets everybody in and does not look who it is.
func anyone() access { return access{} }

// visitor lets everybody in; the handler is told who is signed in.
func visitor() access { return access{visits: true} }

// signedIn lets people in who have a session, and one of the roles if any are named.
func signedIn(roles ...string) access { return access{signedIn: true, persons: roles} }

// keys lets API keys in that have one of the roles.
func keys(roles ...string) access { return access{keys: roles} }

// everyKey is all roles that an API key can have.
func everyKey() access {
	return keys(people.RoleProposer, people.RoleExecutor, people.RoleReader, people.RoleAdmin)
}

// admit finds out who asks and refuses whoever may not use the route.
func (s *server) admit(w http.ResponseWriter, r *http.Request, rt route) (caller, error) {
	if rt.page() && rt.name != "static" {
		if err := s.ownName(r); err != nil {
			return caller{}, err
		}
	}
	c, err := s.identify(w, r, rt)
	exchangeOf(r).who = c.id()
	if err != nil {
		return c, err
	}
	if rt.page() {
		if err := s.sameOrigin(r); err != nil {
			return c, err
		}
	}
	return c, checkAddress(r, rt)
}

func (s *server) identify(w http.ResponseWriter, r *http.Request, rt route) (caller, error) {
	switch who := rt.who; {
	case len(who.keys) > 0:
		c, err := s.authenticate(w, r)
		if err == nil && !slices.ContainsFunc(who.keys, c.client.Has) {
			err = action.Refuse(action.Forbidden, "This API key has none of the roles that may do this: "+strings.Join(who.keys, ", ")+".").Because("role")
		}
		return c, err
	case who.signedIn:
		return s.person(r, who.persons)
	case who.visits:
		c, err := s.person(r, nil)
		if action.IsCode(err, action.Unauthorized) {
			err = nil
		}
		return c, err
	}
	return caller{}, nil
}

func (s *server) person(r *http.Request, roles []string) (caller, error) {
	session, err := s.Sessions.Current(r)
	if err != nil {
		return caller{}, err
	}
	c := caller{session: &session}
	if len(roles) > 0 && !slices.ContainsFunc(roles, session.Person.Has) {
		return c, action.Refuse(action.Forbidden, "This is for people with another role: "+strings.Join(roles, ", ")+".").Because("role").
			With("roles", strings.Join(roles, ", "))
	}
	return c, nil
}

// authenticate finds the client of a request's API key. Keys that work are
// never held up by those that do not, even from the same address.
func (s *server) authenticate(w http.ResponseWriter, r *http.Request) (caller, error) {
	var client people.Client
	key, err := bearer(r)
	if err == nil {
		client, _, err = s.People.Authenticate(r.Context(), key)
	}
	if err == nil {
		return caller{client: &client}, nil
	}
	if action.IsCode(err, action.Unauthorized) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign"`)
		if s.failures.OnLimit(w, r, httprate.CanonicalizeIP(host(r.RemoteAddr))) {
			return caller{}, busy("Too many requests without a key that is known here came from this address. Wait a minute.", "unknown-keys", time.Minute)
		}
	}
	return caller{}, err
}

// bearer returns the key in the Authorization header (RFC 6750).
func bearer(r *http.Request) (string, error) {
	sent := r.Header.Values("Authorization")
	if len(sent) == 1 {
		scheme, key, _ := strings.Cut(sent[0], " ")
		if strings.EqualFold(scheme, "Bearer") && key != "" {
			return strings.TrimSpace(key), nil
		}
	}
	return "", action.Refuse(action.Unauthorized, "Send one API key as Authorization: Bearer ck_…").Because("key-missing")
}

func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

// sameOrigin refuses a request that changes something and that another site may
// have made a browser send.
func (s *server) sameOrigin(r *http.Request) error {
	if safe(r.Method) {
		return nil
	}
	err := s.origins.Check(r)
	unsaid := r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == ""
	if err == nil && !unsaid {
		return nil
	}
	return action.Refuse(action.Forbidden, "This form was not sent from a page of this console. Open the page again and send it from there.").
		Because("cross-origin").From(err)
}

// safe reports whether a method changes nothing.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// busy refuses for now.
func busy(detail, reason string, wait time.Duration) *action.Refusal {
	return action.Refuse(action.RateLimited, detail).Because(reason).With("retry_after", strconv.Itoa(int(wait/time.Second)))
}
