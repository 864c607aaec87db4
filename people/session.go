package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"countersign/action"

	"github.com/gorilla/sessions"
)

// How long sessions live.
const (
	IdleTimeout     = 2 * time.Hour   // without a request
	AbsoluteTimeout = 12 * time.Hour  // at all
	StepUpLifetime  = 5 * time.Minute // of having proved anew who one is
)

// How a person had signed in.
const (
	ByPassword = "password"
	ByLink     = "link"
)

// Session is one person signed in with one browser. The person is as of this
// request.
type Session struct {
	ID        string // "ses_…": names the session, opens nothing
	Person    Person
	Method    string // ByPassword or ByLink
	StartedAt time.Time
	SeenAt    time.Time // to the minute
	EndsAt    time.Time // at the latest
	StepUpAt  *time.Time
	SteppedUp bool   // StepUpAt is less than StepUpLifetime ago
	Agent     string // the browser's name for itself
	Address   string // where it signed in from
	Values    string // JSON object: what gorilla/sessions keeps
}

// By is the session's person as the cause of an event, acting in a role.
func (s Session) By(role string) action.By { return s.Person.As(role, s.Method) }

// NewSession is a session as it starts.
type NewSession struct {
	Session
	Hash     []byte
	Replaces []byte // hash of the session that this browser had before; nil for none
}

// SessionStore keeps sessions. They are known by the hash of a secret that only
// the browser has.
type SessionStore interface {
	// StartSession writes a session. False when the person was disabled, or
	// their sessions were ended, after they were read.
	StartSession(ctx context.Context, s NewSession) (bool, error)
	// Session finds a live session and notes that it was seen; NotFound when
	// there is none.
	Session(ctx context.Context, hash []byte) (Session, error)
	// ChangeSession gives a live session another hash and other values. False
	// when it is over.
	ChangeSession(ctx context.Context, c SessionChange) (bool, error)
	// EndSession ends one of a person's sessions. False when there is none.
	EndSession(ctx context.Context, person, id string) (bool, error)
	// PersonSessions returns a person's live sessions, the latest seen first.
	PersonSessions(ctx context.Context, person string) ([]Session, error)
}

// SessionChange is what changes in a session.
type SessionChange struct {
	Hash    []byte
	NewHash []byte
	Values  string
	StepUp  bool // the person proves now who they are
}

// Sessions are the browser sessions of people. It is a gorilla/sessions Store:
// Get, New and Save work as that package says. Only sessions of people who
// signed in are kept; their Values take string keys and what JSON can say.
type Sessions struct {
	store  SessionStore
	secure bool
}

// NewSessions makes sessions. secure says that browsers reach the console over
// TLS, here or at a proxy in front: the cookie is never sent without.
func NewSessions(store SessionStore, secure bool) *Sessions {
	return &Sessions{store: store, secure: secure}
}

// CookieName is the name of the session's cookie.
func (s *Sessions) CookieName() string {
	if s.secure {
		return "__Host-countersign"
	}
	return "countersign"
}

// heldKey is the key of our own Session in a gorilla session's Values.
type heldKey struct{}

// Get returns the request's session, read once per request.
func (s *Sessions) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New reads the session that the request's cookie names, or makes an empty one.
// An error means that the store could not tell.
func (s *Sessions) New(r *http.Request, name string) (*sessions.Session, error) {
	g := sessions.NewSession(s, name)
	g.IsNew = true
	g.Options = &sessions.Options{Path: "/", Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	cookie, err := r.Cookie(name)
	if err != nil || cookie.Value == "" {
		return g, nil
	}
	held, err := s.store.Session(r.Context(), digest(cookie.Value))
	if action.IsCode(err, action.NotFound) {
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("reading a session: %w", err)
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(held.Values), &values); err != nil {
		return g, fmt.Errorf("reading the values of session %s: %w", held.ID, err)
	}
	for k, v := range values {
		g.Values[k] = v
	}
	g.Values[heldKey{}] = held
	g.ID, g.IsNew = cookie.Value, false
	return g, nil
}

// Save writes a session's Values, or ends it when its MaxAge is negative.
func (s *Sessions) Save(r *http.Request, w http.ResponseWriter, g *sessions.Session) error {
	held, ok := g.Values[heldKey{}].(Session)
	if !ok || g.IsNew {
		return errors.New("saving a session: nobody has signed in with it")
	}
	if g.Options.MaxAge < 0 {
		return s.end(r, w, g, held)
	}
	return s.change(r.Context(), g, false, g.ID)
}

// SignIn starts a session for a person who has just proved who they are, under
// a new id, in place of the one that the browser had. Unauthorized when the
// person was disabled meanwhile.
func (s *Sessions) SignIn(w http.ResponseWriter, r *http.Request, p Person, method string) error {
	g, err := s.Get(r, s.CookieName())
	if err != nil {
		return err
	}
	secret := newSecret()
	held := Session{ID: action.NewID("ses"), Person: p, Method: method, Values: "{}",
		Agent: clipped(r.UserAgent(), 200), Address: network(r.RemoteAddr)}
	start := NewSession{Session: held, Hash: digest(secret)}
	if !g.IsNew {
		start.Replaces = digest(g.ID)
	}
	started, err := s.store.StartSession(r.Context(), start)
	if err != nil {
		return known(err)
	}
	if !started {
		return signedOut()
	}
	if held, err = s.store.Session(r.Context(), start.Hash); err != nil {
		return fmt.Errorf("reading a new session: %w", err)
	}
	clear(g.Values)
	g.Values[heldKey{}] = held
	g.ID, g.IsNew = secret, false
	s.setCookie(w, g, int(AbsoluteTimeout/time.Second))
	return nil
}

// Current returns the session of a request. Unauthorized, "signed-out", when
// there is none, it is over, or its person was disabled.
func (s *Sessions) Current(r *http.Request) (Session, error) {
	g, err := s.Get(r, s.CookieName())
	if err != nil {
		return Session{}, err
	}
	if held, ok := g.Values[heldKey{}].(Session); ok {
		return held, nil
	}
	return Session{}, signedOut()
}

// Lives reports whether the request's session still lives, for answers that go
// on for long: it is read anew.
func (s *Sessions) Lives(r *http.Request) (bool, error) {
	cookie, err := r.Cookie(s.CookieName())
	if err != nil {
		return false, nil
	}
	_, err = s.store.Session(r.Context(), digest(cookie.Value))
	if action.IsCode(err, action.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// StepUp notes that the person has just proved again who they are (see
// Service.Prove), and gives the session a new id.
func (s *Sessions) StepUp(w http.ResponseWriter, r *http.Request) error {
	held, err := s.Current(r)
	if err != nil {
		return err
	}
	g, err := s.Get(r, s.CookieName())
	if err != nil {
		return err
	}
	secret := newSecret()
	if err := s.change(r.Context(), g, true, secret); err != nil {
		return err
	}
	left := time.Until(held.EndsAt) // the cookie's life only: the database judges the session's
	g.ID = secret
	s.setCookie(w, g, max(1, int(left/time.Second)))
	if held, err = s.store.Session(r.Context(), digest(secret)); err != nil {
		return fmt.Errorf("reading a session after step-up: %w", err)
	}
	g.Values[heldKey{}] = held
	return nil
}

// SignOut ends the request's session. It is no error when there is none.
func (s *Sessions) SignOut(w http.ResponseWriter, r *http.Request) error {
	g, err := s.Get(r, s.CookieName())
	if err != nil {
		return err
	}
	held, ok := g.Values[heldKey{}].(Session)
	if !ok {
		return nil
	}
	return s.end(r, w, g, held)
}

// List returns the live sessions of the request's person.
func (s *Sessions) List(r *http.Request) ([]Session, error) {
	held, err := s.Current(r)
	if err != nil {
		return nil, err
	}
	return s.store.PersonSessions(r.Context(), held.Person.ID)
}

// End ends one of the request's person's own sessions, by its ID. NotFound when
// they have none such.
func (s *Sessions) End(r *http.Request, id string) error {
	held, err := s.Current(r)
	if err != nil {
		return err
	}
	ended, err := s.store.EndSession(r.Context(), held.Person.ID, id)
	if err != nil {
		return known(err)
	}
	if !ended {
		return action.Refuse(action.NotFound, "This session is over already, or it is not yours.")
	}
	return nil
}

func (s *Sessions) change(ctx context.Context, g *sessions.Session, stepUp bool, secret string) error {
	values, err := encodeValues(g)
	if err != nil {
		return err
	}
	changed, err := s.store.ChangeSession(ctx, SessionChange{Hash: digest(g.ID), NewHash: digest(secret), Values: values, StepUp: stepUp})
	if err != nil {
		return known(err)
	}
	if !changed {
		return signedOut()
	}
	return nil
}

func (s *Sessions) end(r *http.Request, w http.ResponseWriter, g *sessions.Session, held Session) error {
	if _, err := s.store.EndSession(r.Context(), held.Person.ID, held.ID); err != nil {
		return known(err)
	}
	g.ID, g.IsNew = "", true
	clear(g.Values)
	s.setCookie(w, g, -1)
	return nil
}

func (s *Sessions) setCookie(w http.ResponseWriter, g *sessions.Session, maxAge int) {
	options := *g.Options
	options.MaxAge = maxAge
	http.SetCookie(w, sessions.NewCookie(s.CookieName(), g.ID, &options))
	// What is sent once after signing in must not be replayed from a cache.
	w.Header().Set("Cache-Control", "no-store")
}

// maxValues bounds what one session may keep, in bytes.
const maxValues = 4096

func encodeValues(g *sessions.Session) (string, error) {
	values := map[string]any{}
	for k, v := range g.Values {
		if _, ours := k.(heldKey); ours {
			continue
		}
		key, ok := k.(string)
		if !ok {
			return "", fmt.Errorf("saving a session: the key %v is not a string", k)
		}
		values[key] = v
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("saving a session: %w", err)
	}
	if len(text) > maxValues {
		return "", fmt.Errorf("saving a session: %d bytes of values, at most %d are kept", len(text), maxValues)
	}
	return string(text), nil
}

func signedOut() error { return unauthorized("signed-out", "Sign in first.") }

func clipped(s string, bytes int) string {
	if len(s) > bytes {
		s = s[:bytes]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}
