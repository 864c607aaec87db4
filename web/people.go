package web

import (
	"context"
	"strings"
	"time"
)

// Roles lists the roles that people can have, in the order of the forms.
func Roles() []string { return []string{"support", "ops", "auditor", "admin"} }

// KeyRoles lists the roles that programs can have.
func KeyRoles() []string { return []string{"proposer", "executor", "reader", "admin"} }

// PeoplePage lists everybody.
type PeoplePage struct {
	People  []PersonRow
	NextURL string
}

// PersonRow is one person in the list.
type PersonRow struct {
	ID       string
	Name     Text
	Username Text
	Roles    []string
	Disabled bool
	LastSeen time.Time // zero: not signed in now
}

// PersonForm posts to /people: op, name, username, roles (repeated), tools,
// scopes, actors (one a line), password.
type PersonForm struct {
	Op       string
	Name     Own
	Username Own
	Roles    []string
	Others   []string // roles to choose from beside Roles(): those that contracts ask for
	Limits   PersonLimits
	Refused  *Refusal
}

// PersonLimits are where a person's roles hold, one a line. Empty holds
// everywhere.
type PersonLimits struct {
	Tools  Own
	Scopes Own
	Actors Own // users of the business system that are this person
}

// PersonPage is one person. Its forms post to /people/{id}/roles (op, roles,
// tools, scopes, actors),
// /people/{id}/password (op), /people/{id}/disable and /people/{id}/enable (op).
type PersonPage struct {
	Person  PersonRow
	Created time.Time
	Op      string
	Self    bool     // the viewer: cannot disable or demote themselves
	Secret  *Secret  // a link to sign in with, shown once
	Others  []string // as in PersonForm
	Limits  PersonLimits
	Clients []ClientRow
	Refused *Refusal
	Events  []Admin
}

// Secret is something that is shown once and cannot be shown again.
type Secret struct {
	Value   string    // empty: it was shown before
	Expires time.Time // zero: it does not
}

// Admin is one administrative change in a record.
type Admin struct {
	At   time.Time
	Kind string // created, roles_changed, disabled, …
	By   Text
	What Text
}

// line is the change as a sentence.
func (a Admin) line() Msg {
	by := any(a.By)
	if a.By.Empty() {
		by = msg("story.the_console")
	}
	return msg(firstKnown("admin."+a.Kind, "admin.else"), "by", by, "what", a.What, "kind", a.Kind)
}

// ClientsPage lists the programs that have keys.
type ClientsPage struct {
	Clients []ClientRow
	NextURL string
}

// ClientRow is one program in the list.
type ClientRow struct {
	ID       string
	Name     Text
	Roles    []string
	Owner    Text
	Tools    []Text // limited to these; empty: every one
	Scopes   []Text
	Entries  []Text
	Keys     []Key
	Revoked  bool
	LastSeen time.Time
}

// Key is one API key of a client. Only its beginning is known.
type Key struct {
	ID       string
	Prefix   string
	Created  time.Time
	Expires  time.Time // zero: never
	LastSeen time.Time // zero: never used
	Revoked  bool
	Over     bool // does not work any more: revoked or expired
}

// ClientForm posts to /clients: op, name, owner (person id), roles (repeated),
// tools, scopes, entries (one a line), expires_in_days.
type ClientForm struct {
	Op      string
	Name    Own
	Owner   string
	Owners  []Option
	Roles   []string
	Tools   Own
	Scopes  Own
	Entries Own
	Days    Own
	Refused *Refusal
}

// Option is one choice of a select.
type Option struct {
	Value string
	Label Text
}

// ClientPage is one program. Its forms post to /clients/{id}/keys (op,
// expires_in_days), /clients/{id}/keys/{key}/revoke (op) and
// /clients/{id}/revoke (op).
type ClientPage struct {
	Client  ClientRow
	Created time.Time
	Op      string
	NewKey  *Secret
	Days    Own   // for which a second key shall work
	Open    Count // proposals of it that wait
	Refused *Refusal
	Events  []Admin
	Around  []Admin // calls of tools that are not for it, all refused
	Manage  bool
}

// AccountPage is the viewer's own page. Its forms post to /account/password
// (op, current, password, again), /account/preferences (lang, zone) and
// /account/sessions/{id}/end, /account/sessions/end-others.
type AccountPage struct {
	Name     Text
	Username Text
	Roles    []string
	Lang     Lang
	Zone     string
	Zones    []string
	Sessions []Session
	Op       string
	Refused  *Refusal

	NoCurrent bool // just came in with a link: the old password is not asked for
}

// Session is one browser in which the viewer is signed in.
type Session struct {
	ID       string
	Current  bool
	Method   string
	Agent    Text
	Address  Text
	Started  time.Time
	LastSeen time.Time
}

// each is what stands in a box, line by line.
func (o Own) each() []Text {
	var out []Text
	for line := range strings.Lines(string(o)) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, Outside(line))
		}
	}
	return out
}

func languageOptions(ctx context.Context) []Option {
	var out []Option
	for _, l := range Langs() {
		out = append(out, Option{string(l), Outside(T(in(ctx, l), "nav.language"))})
	}
	return out
}

func plainOptions(values []string) []Option {
	out := make([]Option, len(values))
	for i, v := range values {
		out[i] = Option{v, Outside(v)}
	}
	return out
}
