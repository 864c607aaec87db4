package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/web"
)

// maxKeyDays bounds how long a key may live when it shall end at all.
const maxKeyDays = 3650

// showClients lists the programs that have keys.
func (s *server) showClients(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := s.Directory.Clients(r.Context())
	if err != nil {
		return err
	}
	owners, err := s.owners(r.Context())
	if err != nil {
		return err
	}
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	clients, next := pageByName(all, func(c people.Client) string { return c.Name }, r.URL)
	page := web.ClientsPage{NextURL: next}
	for _, client := range clients {
		page.Clients = append(page.Clients, clientRow(client, owners[client.Owner], now))
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.ClientsView(s.frame(r, c, web.Clients), page))
}

// owners are the names of all persons, by id.
func (s *server) owners(ctx context.Context) (map[string]string, error) {
	persons, err := s.Directory.Persons(ctx)
	names := make(map[string]string, len(persons))
	for _, p := range persons {
		names[p.ID] = p.Name
	}
	return names, err
}

func clientRow(c people.Client, owner string, now time.Time) web.ClientRow {
	row := web.ClientRow{ID: c.ID, Name: web.Outside(c.Name), Roles: c.Roles, Owner: web.Outside(owner), Tools: outside(c.Tools),
		Scopes: outside(c.Scopes), Entries: outside(c.Entries), Revoked: c.Disabled != nil}
	for _, k := range c.Keys {
		key := web.Key{ID: k.ID, Prefix: keyStart(k.Prefix), Created: k.CreatedAt, Expires: orZero(k.ExpiresAt), LastSeen: orZero(k.LastSeen),
			Revoked: k.Revoked != nil, Over: !k.Live(now)}
		row.Keys = append(row.Keys, key)
		if key.LastSeen.After(row.LastSeen) {
			row.LastSeen = key.LastSeen
		}
	}
	return row
}

// showClientForm is the form for a new program.
func (s *server) showClientForm(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.clientForm(w, r, c, web.ClientForm{Op: newOp(), Owner: c.session.Person.ID}, http.StatusOK)
}

func (s *server) clientForm(w http.ResponseWriter, r *http.Request, c caller, p web.ClientForm, status int) error {
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	persons, err := s.Directory.Persons(r.Context())
	if err != nil {
		return err
	}
	for _, person := range persons {
		if person.Disabled == nil {
			p.Owners = append(p.Owners, web.Option{Value: person.ID, Label: web.Outside(person.Name + " (" + person.Username + ")")})
		}
	}
	return s.show(speaking(r, c, now), w, status, web.ClientNewView(s.formFrame(r, c, web.Clients, "/clients/new"), p))
}

// createClient makes a program and its first key, which is shown this once.
func (s *server) createClient(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	asked := people.NewClient{Name: clean(fields.Get("name")), Owner: clean(fields.Get("owner")), ClientGrants: people.ClientGrants{
		Roles: cleaned(fields["roles"]), Tools: lines(fields.Get("tools")), Scopes: lines(fields.Get("scopes")), Entries: lines(fields.Get("entries"))}}
	life, err := keyLife(fields)
	var made people.Client
	cmd := commandOf(c, fields, aboutClient(fields)...)
	if err == nil {
		made, err = s.People.CreateClient(r.Context(), cmd, asked)
	}
	if err == nil {
		cmd.Op += ":key"
		return s.makeKey(w, r, c, cmd, made.ID, life, fields)
	}
	if !onForm(err) {
		return err
	}
	again := web.ClientForm{Op: opAfter(err, fields), Name: own(fields, "name"), Owner: asked.Owner, Roles: asked.Roles, Tools: own(fields, "tools"),
		Scopes: own(fields, "scopes"), Entries: own(fields, "entries"), Days: own(fields, "expires_in_days"), Refused: refusalOf(err)}
	return s.clientForm(w, r, c, again, refusedStatus(w, r, err))
}

// aboutClient is everything that the form for a new program holds.
func aboutClient(fields url.Values) []string {
	about := []string{strings.Join(fields["roles"], "\n")}
	for _, name := range []string{"name", "owner", "tools", "scopes", "entries", "expires_in_days"} {
		about = append(about, fields.Get(name))
	}
	return about
}

// keyLife reads for how many days a key shall work; 0 is for ever.
func keyLife(fields url.Values) (time.Duration, error) {
	text := strings.TrimSpace(fields.Get("expires_in_days"))
	if text == "" {
		return 0, nil
	}
	days, err := strconv.Atoi(text)
	if err != nil || days < 1 || days > maxKeyDays {
		return 0, action.Refuse(action.InvalidArgument, "Some fields cannot be taken. Nothing was changed.").Because("days").
			At("/expires_in_days", "use a whole number of days, 1 to "+strconv.Itoa(maxKeyDays)+", or leave it empty")
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

func noClient() error { return action.Refuse(action.NotFound, "There is no such client.") }
