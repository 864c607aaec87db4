package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/web"
)

// personView is everything that the page of one person is made from.
type personView struct {
	person people.Person
	events []action.Event
	now    time.Time
	page   web.PersonPage
}

// lookAtPerson reads a person with their programs and their record.
func (s *server) lookAtPerson(ctx context.Context, c caller, id string) (v personView, err error) {
	if !action.ValidID("per", id) {
		return v, noPerson()
	}
	if v.person, err = s.Directory.Person(ctx, id); err != nil {
		return v, err
	}
	if v.events, v.now, err = s.Pages.Events(ctx, v.person.Subject()); err != nil {
		return v, err
	}
	seen, err := s.Directory.SignedIn(ctx)
	if err != nil {
		return v, err
	}
	clients, err := s.Directory.Clients(ctx)
	if err != nil {
		return v, err
	}
	v.page = web.PersonPage{Person: personRow(v.person, seen[id]), Created: v.person.CreatedAt, Op: newOp(),
		Self: c.session.Person.ID == id, Events: adminRecord(v.events), Limits: limitsOf(v.person)}
	for _, owned := range clients {
		if owned.Owner == id {
			v.page.Clients = append(v.page.Clients, clientRow(owned, v.person.Name, v.now))
		}
	}
	v.page.Others, err = s.otherRoles(ctx, v.person.Roles)
	return v, err
}

// limitsOf puts stored limits into the boxes that they came from. They were
// checked to be visible characters.
func limitsOf(p people.Person) web.PersonLimits {
	box := func(list []string) web.Own { return web.Own(strings.Join(list, "\n")) }
	return web.PersonLimits{Tools: box(p.Tools), Scopes: box(p.Scopes), Actors: box(p.Actors)}
}

func (s *server) renderPerson(w http.ResponseWriter, r *http.Request, c caller, v personView, status int, flash *web.Flash) error {
	frame := s.formFrame(r, c, web.People, "/people/"+v.person.ID)
	frame.Flash = flash
	return s.show(speaking(r, c, v.now), w, status, web.PersonView(frame, v.page))
}

// showPerson is one person, with the forms that change them.
func (s *server) showPerson(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := s.lookAtPerson(r.Context(), c, parameter(r, "person"))
	if err != nil {
		return err
	}
	return s.renderPerson(w, r, c, v, http.StatusOK, flashOf(r))
}

// showSecret is the page of a person with a link that is shown this once.
func (s *server) showSecret(w http.ResponseWriter, r *http.Request, c caller, id string, link oneTimeLink, flash *web.Flash) error {
	v, err := s.lookAtPerson(r.Context(), c, id)
	if err != nil {
		return err
	}
	v.page.Secret = &web.Secret{Value: link.url}
	for _, e := range v.events {
		var made struct {
			ExpiresAt time.Time `json:"expires_at"`
		}
		if e.Op == link.op && json.Unmarshal(e.Data, &made) == nil {
			v.page.Secret.Expires = made.ExpiresAt
		}
	}
	return s.renderPerson(w, r, c, v, http.StatusOK, flash)
}

// personChange is what a form about a person asks for.
type personChange struct {
	fields url.Values
	done   web.Done
	change func(ctx context.Context, p people.Person) (people.Person, error)
	holds  func(p people.Person) bool // it is as asked for
}

// changePerson does what a form asks for and goes on to the person's page,
// which says so as long as it holds: a form that is sent again later must not
// claim what somebody has changed since.
func (s *server) changePerson(w http.ResponseWriter, r *http.Request, c caller, ask personChange) error {
	id := parameter(r, "person")
	if !action.ValidID("per", id) {
		return noPerson()
	}
	p, err := s.Directory.Person(r.Context(), id)
	if err == nil {
		p, err = ask.change(r.Context(), p)
	}
	switch {
	case err == nil && ask.holds(p):
		return seeOther(w, r, sent("/people/"+id, ask.done))
	case err == nil:
		return seeOther(w, r, "/people/"+id)
	case !onForm(err):
		return err
	}
	return s.refusePerson(w, r, c, id, ask.fields, err)
}

// refusePerson shows a person's page with what was refused, and keeps the roles
// that were chosen.
func (s *server) refusePerson(w http.ResponseWriter, r *http.Request, c caller, id string, fields url.Values, refused error) error {
	v, err := s.lookAtPerson(r.Context(), c, id)
	if err != nil {
		return err
	}
	v.page.Refused, v.page.Op = refusalOf(refused), opAfter(refused, fields)
	if fields.Has("roles") {
		v.page.Person.Roles = cleaned(fields["roles"])
	}
	if fields.Has("tools") {
		v.page.Limits = limitsTyped(fields)
	}
	return s.renderPerson(w, r, c, v, refusedStatus(w, r, refused), nil)
}

// setRoles replaces a person's roles and limits.
func (s *server) setRoles(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	cmd := commandOf(c, fields, "roles", grantsText(grantsOf(fields, people.Grants{})))
	return s.changePerson(w, r, c, personChange{fields, web.DonePersonSaved,
		func(ctx context.Context, p people.Person) (people.Person, error) {
			return s.People.SetGrants(ctx, cmd, p.ID, grantsOf(fields, p.Grants()))
		},
		func(p people.Person) bool {
			g := grantsOf(fields, p.Grants())
			return sameSet(p.Roles, g.Roles) && sameSet(p.Tools, g.Tools) && sameSet(p.Scopes, g.Scopes) && sameSet(p.Actors, g.Actors)
		}})
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// disablePerson lets somebody in no more.
func (s *server) disablePerson(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	cmd := commandOf(c, fields)
	return s.changePerson(w, r, c, personChange{fields, web.DonePersonDisabled,
		func(ctx context.Context, p people.Person) (people.Person, error) {
			return s.People.DisablePerson(ctx, cmd, p.ID)
		},
		func(p people.Person) bool { return p.Disabled != nil }})
}

// enablePerson lets somebody in again.
func (s *server) enablePerson(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	cmd := commandOf(c, fields)
	return s.changePerson(w, r, c, personChange{fields, web.DonePersonEnabled,
		func(ctx context.Context, p people.Person) (people.Person, error) {
			return s.People.EnablePerson(ctx, cmd, p.ID)
		},
		func(p people.Person) bool { return p.Disabled == nil }})
}

// resetPassword makes a person's password and sessions void and shows, once, a
// link with which they sign in and choose a new one. No admin ever knows it.
func (s *server) resetPassword(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id := parameter(r, "person")
	if !action.ValidID("per", id) {
		return noPerson()
	}
	p, err := s.Directory.Person(r.Context(), id)
	if err == nil && p.Disabled != nil {
		err = action.Refuse(action.WrongState, "This account is disabled. Enable it first.").Because("disabled")
	}
	cmd := commandOf(c, fields)
	if err == nil {
		_, err = s.People.SetPassword(r.Context(), cmd, id, action.NewSecret(20))
	}
	var link oneTimeLink
	if err == nil {
		link, err = s.newLink(r.Context(), cmd, id)
	}
	switch {
	case err == nil:
		return s.showSecret(w, r, c, id, link, nil)
	case !onForm(err):
		return err
	}
	return s.refusePerson(w, r, c, id, fields, err)
}
