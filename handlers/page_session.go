package handlers

import (
	"net/http"
	"strings"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/static"
	"countersign/web"
)

// staticFile serves styles, script and icons.
func (s *server) staticFile(w http.ResponseWriter, r *http.Request, _ caller) error {
	static.Handler().ServeHTTP(w, r)
	return nil
}

// home leads to the approvals, or to where one signs in.
func (s *server) home(w http.ResponseWriter, r *http.Request, c caller) error {
	if c.session == nil {
		return seeOther(w, r, "/login")
	}
	return seeOther(w, r, "/approvals")
}

// showSignIn asks for name and password. Who is signed in goes on.
func (s *server) showSignIn(w http.ResponseWriter, r *http.Request, c caller) error {
	next := ownPath(r.URL.Query().Get("next"))
	if c.session != nil {
		return seeOther(w, r, next)
	}
	_, err := r.Cookie(s.Sessions.CookieName())
	p := web.SignInPage{Next: next, Ended: err == nil}
	return s.show(speaking(r, c, time.Time{}), w, http.StatusOK, web.SignInView(s.frame(r, c, web.NoSection), p))
}

// signIn checks name and password. A refusal says the same whatever was wrong.
func (s *server) signIn(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	username, next := strings.ToValidUTF8(fields.Get("username"), ""), ownPath(fields.Get("next"))
	person, err := s.People.SignIn(r.Context(), username, fields.Get("password"), r.RemoteAddr)
	if err == nil {
		err = s.Sessions.SignIn(w, r, person, people.ByPassword)
	}
	if err == nil {
		return seeOther(w, r, next)
	}
	refusal := action.AsRefusal(err)
	if status := kindOf(refusal.Code).status; status >= http.StatusInternalServerError {
		return err
	}
	if wait := refusal.Args["retry_after"]; wait != "" {
		w.Header().Set("Retry-After", wait)
	}
	frame := s.frame(r, caller{}, web.NoSection)
	frame.Path = "/login"
	p := web.SignInPage{Username: web.Own(username), Next: next, Refused: refusalOf(err)}
	return s.show(speaking(r, c, time.Time{}), w, kindOf(refusal.Code).status, web.SignInView(frame, p))
}

// showLink shows a one-time link. It is not used up: mail scanners open links.
func (s *server) showLink(w http.ResponseWriter, r *http.Request, c caller) error {
	p := web.SignInLinkPage{Action: r.URL.Path}
	person, until, err := s.People.PeekLink(r.Context(), parameter(r, "secret"))
	status := http.StatusOK
	if err != nil {
		status = kindOf(action.AsRefusal(err).Code).status
		p.Refused = refusalOf(err)
	} else {
		p.Name, p.Username, p.Roles, p.Expires = web.Outside(person.Name), web.Outside(person.Username), person.Roles, until
	}
	frame := s.frame(r, caller{}, web.NoSection) // switching the language comes back to the link
	return s.show(speaking(r, c, time.Now()), w, status, web.SignInLinkView(frame, p))
}

// useLink signs somebody in with a one-time link.
func (s *server) useLink(w http.ResponseWriter, r *http.Request, c caller) error {
	person, err := s.People.UseLink(r.Context(), parameter(r, "secret"))
	if err == nil {
		err = s.Sessions.SignIn(w, r, person, people.ByLink)
	}
	if err == nil {
		return seeOther(w, r, "/approvals")
	}
	if !action.IsCode(err, action.Unauthorized) {
		return err
	}
	frame := s.frame(r, caller{}, web.NoSection)
	frame.Path = "/login"
	p := web.SignInLinkPage{Refused: refusalOf(err)}
	return s.show(speaking(r, c, time.Time{}), w, http.StatusUnauthorized, web.SignInLinkView(frame, p))
}

// signOut ends the session.
func (s *server) signOut(w http.ResponseWriter, r *http.Request, _ caller) error {
	if err := s.Sessions.SignOut(w, r); err != nil {
		return err
	}
	return seeOther(w, r, "/login?done="+string(web.DoneSignedOut))
}

// setLanguage keeps the language that somebody chose for this browser.
func (s *server) setLanguage(w http.ResponseWriter, r *http.Request, _ caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	lang, ok := web.ParseLang(fields.Get("lang"))
	if !ok {
		return action.Refuse(action.InvalidArgument, "There is no such language here.").At("/lang", "must be en or zh")
	}
	http.SetCookie(w, &http.Cookie{Name: langCookie, Value: string(lang), Path: "/", MaxAge: 365 * 24 * 3600,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode})
	return seeOther(w, r, ownPath(fields.Get("next")))
}

// showProve asks somebody who is signed in to prove again who they are.
func (s *server) showProve(w http.ResponseWriter, r *http.Request, c caller) error {
	p := web.ProvePage{Username: web.Outside(c.session.Person.Username), Next: ownPath(r.URL.Query().Get("next"))}
	return s.show(speaking(r, c, time.Time{}), w, http.StatusOK, web.ProveView(s.frame(r, c, web.NoSection), p))
}

// prove checks the password again, for what needs more than a session.
func (s *server) prove(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	next := ownPath(fields.Get("next"))
	if c.session.Person.HasPassword {
		err = s.People.Prove(r.Context(), c.session.Person, fields.Get("password"), r.RemoteAddr)
	} else {
		err = action.Refuse(action.Forbidden, "You have no password yet. Choose one under Account first.").Because("no-password")
	}
	if err == nil {
		err = s.Sessions.StepUp(w, r)
	}
	if err == nil {
		return seeOther(w, r, next)
	}
	status := kindOf(action.AsRefusal(err).Code).status
	if status >= http.StatusInternalServerError {
		return err
	}
	frame := s.frame(r, c, web.NoSection)
	frame.Path = "/account/prove"
	p := web.ProvePage{Username: web.Outside(c.session.Person.Username), Next: next, Refused: refusalOf(err)}
	return s.show(speaking(r, c, time.Time{}), w, status, web.ProveView(frame, p))
}
