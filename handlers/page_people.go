package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/web"
)

// linkLife is how long a link that an admin hands over may be used.
const linkLife = 24 * time.Hour

// showPeople lists everybody who can sign in.
func (s *server) showPeople(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := s.Directory.Persons(r.Context())
	if err != nil {
		return err
	}
	seen, err := s.Directory.SignedIn(r.Context())
	if err != nil {
		return err
	}
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	persons, next := pageByName(all, func(p people.Person) string { return p.Username }, r.URL)
	page := web.PeoplePage{NextURL: next}
	for _, p := range persons {
		page.People = append(page.People, personRow(p, seen[p.ID]))
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.PeopleView(s.frame(r, c, web.People), page))
}

func personRow(p people.Person, seen time.Time) web.PersonRow {
	return web.PersonRow{ID: p.ID, Name: web.Outside(p.Name), Username: web.Outside(p.Username), Roles: p.Roles,
		Disabled: p.Disabled != nil, LastSeen: seen}
}

// showPersonForm is the form for a new person.
func (s *server) showPersonForm(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.personForm(w, r, c, web.PersonForm{Op: newOp()}, http.StatusOK)
}

func (s *server) personForm(w http.ResponseWriter, r *http.Request, c caller, p web.PersonForm, status int) error {
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	if p.Others, err = s.otherRoles(r.Context(), p.Roles); err != nil {
		return err
	}
	return s.show(speaking(r, c, now), w, status, web.PersonNewView(s.formFrame(r, c, web.People, "/people/new"), p))
}

// createPerson makes an account. Without a password it shows, once, a link to
// sign in with.
func (s *server) createPerson(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	grants := grantsOf(fields, people.Grants{})
	cmd := commandOf(c, fields, fields.Get("name"), fields.Get("username"), grantsText(grants))
	made, err := s.People.CreatePerson(r.Context(), cmd, people.NewPerson{Username: clean(fields.Get("username")), Name: clean(fields.Get("name")),
		Grants: grants, Lang: c.session.Person.Lang, Zone: c.session.Person.Zone, Password: fields.Get("password")})
	if err == nil && made.HasPassword {
		return seeOther(w, r, sent("/people/"+made.ID, web.DonePersonCreated))
	}
	if err == nil {
		link, err := s.newLink(r.Context(), cmd, made.ID)
		if err != nil {
			return err
		}
		return s.showSecret(w, r, c, made.ID, link, web.FlashDone(web.DonePersonCreated))
	}
	if !onForm(err) {
		return err
	}
	again := web.PersonForm{Op: opAfter(err, fields), Name: own(fields, "name"), Username: own(fields, "username"), Roles: grants.Roles,
		Limits: limitsTyped(fields), Refused: refusalOf(err)}
	return s.personForm(w, r, c, again, refusedStatus(w, r, err))
}

// grantsOf is what a form asks to trust a person with. A box that the form does
// not have leaves its limit as it is.
func grantsOf(fields url.Values, g people.Grants) people.Grants {
	g.Roles = cleaned(fields["roles"])
	for name, limit := range map[string]*[]string{"tools": &g.Tools, "scopes": &g.Scopes, "actors": &g.Actors} {
		if fields.Has(name) {
			*limit = lines(fields.Get(name))
		}
	}
	return g
}

// grantsText tells one set of grants from another.
func grantsText(g people.Grants) string {
	return strings.Join([]string{strings.Join(g.Roles, "\n"), strings.Join(g.Tools, "\n"), strings.Join(g.Scopes, "\n"), strings.Join(g.Actors, "\n")}, "\x00")
}

// limitsTyped gives the boxes of a form back.
func limitsTyped(fields url.Values) web.PersonLimits {
	return web.PersonLimits{Tools: own(fields, "tools"), Scopes: own(fields, "scopes"), Actors: own(fields, "actors")}
}

// oneTimeLink is a link to sign in with, as the admin who made it sees it.
type oneTimeLink struct {
	op  string // of the command that made it
	url string // "" when it was shown before
}

// newLink makes a link that belongs to a command.
func (s *server) newLink(ctx context.Context, cmd people.Command, person string) (oneTimeLink, error) {
	cmd.Op += ":link"
	secret, err := s.People.NewLink(ctx, cmd, person, linkLife)
	if err != nil || secret == "" {
		return oneTimeLink{op: cmd.Op}, err
	}
	return oneTimeLink{op: cmd.Op, url: s.PublicURL + "/login/" + url.PathEscape(secret)}, nil
}

// otherRoles are the roles to choose from beside those that every console has:
// what contracts ask for, and what somebody holds already.
func (s *server) otherRoles(ctx context.Context, held []string) ([]string, error) {
	roles := slices.Clone(held)
	err := s.eachTool(ctx, "", func(t listedTool) bool {
		for _, rule := range t.Contract.Approval.Rules {
			roles = append(roles, rule.Role)
		}
		return true
	})
	slices.Sort(roles)
	usual := web.Roles()
	return slices.DeleteFunc(slices.Compact(roles), func(role string) bool { return slices.Contains(usual, role) }), err
}

func noPerson() error { return action.Refuse(action.NotFound, "There is no such person.") }
