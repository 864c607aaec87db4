package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// clientView is everything that the page of one program is made from.
type clientView struct {
	client people.Client
	now    time.Time
	page   web.ClientPage
}

// lookAtClient reads a program with its keys and its record.
func (s *server) lookAtClient(ctx context.Context, c caller, id string) (v clientView, err error) {
	if !action.ValidID("cli", id) {
		return v, noClient()
	}
	if v.client, err = s.Directory.Client(ctx, id); err != nil {
		return v, err
	}
	owner, err := s.Directory.Person(ctx, v.client.Owner)
	if err != nil {
		return v, err
	}
	events, now, err := s.Pages.Events(ctx, v.client.Subject())
	if err != nil {
		return v, err
	}
	v.now = now
	v.page = web.ClientPage{Client: clientRow(v.client, owner.Name, now), Created: v.client.CreatedAt, Op: newOp(),
		Manage: c.session.Person.Has(people.RoleAdmin)}
	around := func(e action.Event) bool { return e.Kind == people.ToolRefused }
	v.page.Around = adminRecord(slices.DeleteFunc(slices.Clone(events), func(e action.Event) bool { return !around(e) }))
	v.page.Events = adminRecord(slices.DeleteFunc(events, around))
	v.page.Open, err = s.waitingOf(ctx, id, now)
	return v, err
}

// waitingOf counts the proposals of a program that wait for people.
func (s *server) waitingOf(ctx context.Context, client string, now time.Time) (web.Count, error) {
	f := approvals.Filter{Viewer: people.Viewer{ClientID: client}, State: action.Proposed, Limit: countMost}
	open, _, err := s.Reads.Actions(ctx, f)
	open = slices.DeleteFunc(open, func(a action.Action) bool { return a.StateAt(now) != action.Proposed })
	return count(len(open)), err
}

func (s *server) renderClient(w http.ResponseWriter, r *http.Request, c caller, v clientView, status int, flash *web.Flash) error {
	frame := s.formFrame(r, c, web.Clients, "/clients/"+v.client.ID)
	frame.Flash = flash
	return s.show(speaking(r, c, v.now), w, status, web.ClientView(frame, v.page))
}

// showClient is one program with its keys.
func (s *server) showClient(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := s.lookAtClient(r.Context(), c, parameter(r, "client"))
	if err != nil {
		return err
	}
	return s.renderClient(w, r, c, v, http.StatusOK, flashOf(r))
}

// refuseClient shows a program's page with what was refused.
func (s *server) refuseClient(w http.ResponseWriter, r *http.Request, c caller, id string, fields url.Values, refused error) error {
	if !onForm(refused) {
		return refused
	}
	v, err := s.lookAtClient(r.Context(), c, id)
	if err != nil {
		return err
	}
	v.page.Refused, v.page.Op, v.page.Days = refusalOf(refused), opAfter(refused, fields), own(fields, "expires_in_days")
	return s.renderClient(w, r, c, v, refusedStatus(w, r, refused), nil)
}

// createKey makes another key of a program, to take the place of the first.
func (s *server) createKey(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id := parameter(r, "client")
	if !action.ValidID("cli", id) {
		return noClient()
	}
	life, err := keyLife(fields)
	if err != nil {
		return s.refuseClient(w, r, c, id, fields, err)
	}
	return s.makeKey(w, r, c, commandOf(c, fields, "key", fields.Get("expires_in_days")), id, life, fields)
}

// makeKey makes a key and shows it this once. Sent again, the form shows that
// the key cannot be shown again.
func (s *server) makeKey(w http.ResponseWriter, r *http.Request, c caller, cmd people.Command, id string, life time.Duration, fields url.Values) error {
	key, text, err := s.People.CreateKey(r.Context(), cmd, id, life)
	if err != nil {
		return s.refuseClient(w, r, c, id, fields, err)
	}
	v, err := s.lookAtClient(r.Context(), c, id)
	if err != nil {
		return err
	}
	v.page.NewKey = &web.Secret{Value: text, Expires: orZero(key.ExpiresAt)}
	return s.renderClient(w, r, c, v, http.StatusOK, nil)
}

// changeClient does what a form about a program asks for and goes on to the
// program's page, which says so as long as it holds.
func (s *server) changeClient(w http.ResponseWriter, r *http.Request, c caller, done web.Done,
	change func(id string, fields url.Values) (people.Client, error), holds func(people.Client) bool) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id := parameter(r, "client")
	if !action.ValidID("cli", id) {
		return noClient()
	}
	client, err := change(id, fields)
	switch {
	case err == nil && holds(client):
		return seeOther(w, r, sent("/clients/"+id, done))
	case err == nil:
		return seeOther(w, r, "/clients/"+id)
	}
	return s.refuseClient(w, r, c, id, fields, err)
}

// revokeKey refuses a key from now on.
func (s *server) revokeKey(w http.ResponseWriter, r *http.Request, c caller) error {
	key := parameter(r, "key")
	return s.changeClient(w, r, c, web.DoneKeyRevoked, func(id string, fields url.Values) (people.Client, error) {
		return s.People.RevokeKey(r.Context(), commandOf(c, fields, key), id, key)
	}, func(client people.Client) bool {
		return slices.ContainsFunc(client.Keys, func(k people.Key) bool { return k.ID == key && k.Revoked != nil })
	})
}

// revokeClient refuses all keys of a program from now on.
func (s *server) revokeClient(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.changeClient(w, r, c, web.DoneClientRevoked, func(id string, fields url.Values) (people.Client, error) {
		return s.People.DisableClient(r.Context(), commandOf(c, fields), id)
	}, func(client people.Client) bool { return client.Disabled != nil })
}
