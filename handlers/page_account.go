package handlers

import (
	"net/http"
	"net/url"
	"slices"

	"countersign/action"
	"countersign/people"
	"countersign/web"
)

// showAccount is the viewer's own page.
func (s *server) showAccount(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.account(w, r, c, http.StatusOK, flashOf(r), func(*web.AccountPage) {})
}

// account shows the viewer's own page after alter has had its way with it.
func (s *server) account(w http.ResponseWriter, r *http.Request, c caller, status int, flash *web.Flash, alter func(*web.AccountPage)) error {
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	sessions, err := s.Sessions.List(r)
	if err != nil {
		return err
	}
	me := c.session.Person
	page := web.AccountPage{Name: web.Outside(me.Name), Username: web.Outside(me.Username), Roles: me.Roles, Lang: langOf(r, c),
		Zone: me.Zone, Op: newOp(), NoCurrent: c.session.Fresh(now)}
	for _, held := range sessions {
		page.Sessions = append(page.Sessions, web.Session{ID: held.ID, Current: held.ID == c.session.ID, Method: held.Method,
			Agent: web.Outside(held.Agent), Address: web.Outside(held.Address), Started: held.StartedAt, LastSeen: held.SeenAt})
	}
	alter(&page)
	page.Zones = zonesWith(page.Zone)
	frame := s.formFrame(r, c, web.Account, "/account")
	frame.Flash = flash
	return s.show(speaking(r, c, now), w, status, web.AccountView(frame, page))
}

// refuseAccount shows the viewer's own page with what was refused.
func (s *server) refuseAccount(w http.ResponseWriter, r *http.Request, c caller, fields url.Values, refused error) error {
	if !onForm(refused) {
		return refused
	}
	return s.account(w, r, c, refusedStatus(w, r, refused), nil, func(p *web.AccountPage) {
		p.Refused, p.Op = refusalOf(refused), opAfter(refused, fields)
		if lang, ok := web.ParseLang(fields.Get("lang")); ok {
			p.Lang = lang
		}
		if fields.Has("zone") {
			p.Zone = clean(fields.Get("zone"))
		}
	})
}

// changePassword replaces the viewer's password, ends all their sessions and
// signs this browser in anew.
func (s *server) changePassword(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	person, method, err := s.newPassword(r, c, fields)
	if err == nil {
		err = s.Sessions.SignIn(w, r, person, method)
	}
	if err == nil {
		return seeOther(w, r, sent("/account", web.DonePasswordChanged))
	}
	return s.refuseAccount(w, r, c, fields, err)
}

// newPassword changes the password after the old one was proved, or without it
// for somebody who has just come in with a one-time link.
func (s *server) newPassword(r *http.Request, c caller, fields url.Values) (people.Person, string, error) {
	password := fields.Get("password")
	if password != fields.Get("again") {
		return people.Person{}, "", action.Refuse(action.InvalidArgument, "The two passwords differ.").Because("mismatch").
			At("/again", "type the new password again, exactly")
	}
	cmd := people.Command{Op: clean(fields.Get("op")), By: c.session.By("")}
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return people.Person{}, "", err
	}
	if fields.Get("current") == "" && c.session.Fresh(now) {
		person, err := s.People.ChoosePassword(r.Context(), cmd, *c.session, password)
		return person, c.session.Method, err
	}
	person, err := s.People.ChangePassword(r.Context(), cmd, c.session.Person, fields.Get("current"), password, r.RemoteAddr)
	if refusal := action.AsRefusal(err); err != nil && refusal.Code == action.Forbidden && refusal.Reason == "password" {
		err = refusal.At("/current", refusal.Detail)
	}
	return person, people.ByPassword, err
}

// savePreferences sets the viewer's language and time zone. What was chosen for
// this browser alone gives way.
func (s *server) savePreferences(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	lang, zone := clean(fields.Get("lang")), clean(fields.Get("zone"))
	cmd := commandOf(c, fields, "preferences", lang, zone)
	cmd.By = c.session.By("")
	_, err = s.People.SetProfile(r.Context(), cmd, c.session.Person.ID, people.Profile{Name: c.session.Person.Name, Lang: lang, Zone: zone})
	if err != nil {
		return s.refuseAccount(w, r, c, fields, err)
	}
	http.SetCookie(w, &http.Cookie{Name: langCookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode})
	return seeOther(w, r, sent("/account", web.DonePreferencesSaved))
}

// endSession ends one of the viewer's sessions. Of one that is over already,
// or was never theirs, the page just does not show it.
func (s *server) endSession(w http.ResponseWriter, r *http.Request, _ caller) error {
	id := parameter(r, "session")
	if !action.ValidID("ses", id) {
		return action.Refuse(action.NotFound, "There is no such session.")
	}
	err := s.Sessions.End(r, id)
	switch {
	case action.IsCode(err, action.NotFound):
		return seeOther(w, r, "/account")
	case err != nil:
		return err
	}
	return seeOther(w, r, sent("/account", web.DoneSessionEnded))
}

// endOtherSessions ends the viewer's sessions except this one.
func (s *server) endOtherSessions(w http.ResponseWriter, r *http.Request, c caller) error {
	sessions, err := s.Sessions.List(r)
	if err != nil {
		return err
	}
	for _, held := range sessions {
		if held.ID == c.session.ID {
			continue
		}
		if err := s.Sessions.End(r, held.ID); err != nil && !action.IsCode(err, action.NotFound) { // over already is as well
			return err
		}
	}
	return seeOther(w, r, sent("/account", web.DoneSessionsEnded))
}

// zonesWith are the time zones to choose from, with the one that is chosen.
func zonesWith(zone string) []string {
	zones := []string{"UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi", "America/Anchorage", "America/Argentina/Buenos_Aires",
		"America/Bogota", "America/Chicago", "America/Denver", "America/Halifax", "America/Lima", "America/Los_Angeles", "America/Mexico_City",
		"America/New_York", "America/Phoenix", "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "America/Toronto", "America/Vancouver",
		"Asia/Bangkok", "Asia/Colombo", "Asia/Dhaka", "Asia/Dubai", "Asia/Ho_Chi_Minh", "Asia/Hong_Kong", "Asia/Jakarta", "Asia/Jerusalem", "Asia/Karachi",
		"Asia/Kathmandu", "Asia/Kolkata", "Asia/Kuala_Lumpur", "Asia/Manila", "Asia/Riyadh", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Taipei",
		"Asia/Tashkent", "Asia/Tehran", "Asia/Tokyo", "Asia/Urumqi", "Asia/Yangon", "Atlantic/Azores", "Atlantic/Reykjavik", "Australia/Adelaide",
		"Australia/Brisbane", "Australia/Darwin", "Australia/Perth", "Australia/Sydney", "Europe/Amsterdam", "Europe/Athens", "Europe/Berlin", "Europe/Brussels",
		"Europe/Bucharest", "Europe/Copenhagen", "Europe/Dublin", "Europe/Helsinki", "Europe/Istanbul", "Europe/Kyiv", "Europe/Lisbon", "Europe/London",
		"Europe/Madrid", "Europe/Moscow", "Europe/Oslo", "Europe/Paris", "Europe/Prague", "Europe/Rome", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw",
		"Europe/Zurich", "Pacific/Auckland", "Pacific/Fiji", "Pacific/Honolulu"}
	if zone != "" && !slices.Contains(zones, zone) {
		zones = append(zones, zone)
		slices.Sort(zones[1:])
	}
	return zones
}
