package people

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign/action"

	"golang.org/x/text/unicode/norm"
)

// Verb is something that authority is asked for.
type Verb string

// The verbs of persons and clients.
const (
	ToRead       Verb = "read"
	ToDecide     Verb = "decide"     // approve or reject
	ToSettle     Verb = "settle"     // an unknown outcome
	ToTend       Verb = "tend"       // extend or end a task
	ToAdminister Verb = "administer" // people, clients and contracts
	ToPropose    Verb = "propose"
	ToExecute    Verb = "execute" // claim, attempt, report, observe
)

// Subject is what authority is asked about: the parts of an action that it
// depends on. For ToAdminister it may be zero.
type Subject struct {
	Tool        string
	Scope       string // "" when the action has none: then no limit to scopes covers it
	Entry       string // the entry point that a proposal names; "" when it names none, see Client.From
	ActorID     string
	ClientID    string // the proposer
	ClientOwner string // the person who answers for the proposer
}

// May tells whether a person may do a verb. The error is a *action.Refusal
// with the reason: disabled, role, tool, scope, self-approval-actor,
// self-approval-client or own-task.
func May(p Person, verb Verb, s Subject) error { return orNil(may(p, verb, s)) }

func may(p Person, verb Verb, s Subject) *action.Refusal {
	if p.Disabled != nil {
		return disabled()
	}
	switch verb {
	case ToDecide:
		_, refusal := RolesOn(p, s)
		return refusal
	case ToRead:
		return readable(PersonViewer(p), p.Tools, p.Scopes, s)
	case ToSettle:
		return held(p.Has(RoleOps), p.Tools, p.Scopes, s)
	case ToTend:
		if s.ClientOwner != "" && s.ClientOwner == p.ID {
			return refuse("own-task", "Your own program opened this: somebody else decides on its budget.")
		}
		return held(p.Has(RoleSupport) || p.Has(RoleOps), p.Tools, p.Scopes, s)
	case ToAdminister:
		return held(p.Has(RoleAdmin), nil, nil, s)
	}
	return refuse("role", "Only programs do this, with an API key.")
}

// ClientMay tells whether a client may do a verb. The error is a
// *action.Refusal with the reason: disabled, role, tool, scope or entry.
func ClientMay(c Client, verb Verb, s Subject) error { return orNil(clientMay(c, verb, s)) }

func clientMay(c Client, verb Verb, s Subject) *action.Refusal {
	if c.Disabled != nil {
		return disabled()
	}
	switch verb {
	case ToRead:
		return readable(ClientViewer(c), c.Tools, c.Scopes, s)
	case ToAdminister:
		return held(c.Has(RoleAdmin), nil, nil, s)
	case ToExecute:
		return held(c.Has(RoleExecutor), c.Tools, c.Scopes, s)
	case ToPropose:
		refusal := held(c.Has(RoleProposer), c.Tools, c.Scopes, s)
		if refusal == nil && s.Entry != "" && !covers(c.Entries, s.Entry) {
			return refuse("entry", "This API key may not propose from the entry point "+quoted(s.Entry)+".")
		}
		return refusal
	}
	return refuse("role", "Only people do this, in the console.")
}

// RolesOn returns the roles in which a person may decide on an action now, or
// the refusal that says why there are none. Whoever the action is for, and
// whoever answers for the program that proposed it, does not decide on it,
// whatever roles they hold.
func RolesOn(p Person, s Subject) (roles []string, refusal *action.Refusal) {
	if p.Disabled != nil {
		return nil, disabled()
	}
	if s.ActorID != "" && slices.ContainsFunc(p.Actors, func(id string) bool { return sameID(id, s.ActorID) }) {
		return nil, refuse("self-approval-actor", "This is done on your own behalf: somebody else has to decide.")
	}
	if s.ClientOwner != "" && s.ClientOwner == p.ID {
		return nil, refuse("self-approval-client", "Your own program proposed this: somebody else has to decide.")
	}
	if roles = deciding(p.Roles); len(roles) == 0 {
		return nil, refuse("role", "Your roles do not include deciding on actions.")
	}
	if refusal = within(p.Tools, p.Scopes, s); refusal != nil {
		return nil, refusal
	}
	return roles, nil
}

// deciding returns the roles that decide. An auditor has none.
func deciding(roles []string) []string {
	if slices.Contains(roles, RoleAuditor) {
		return nil
	}
	var found []string
	for _, r := range roles {
		if r != RoleAdmin {
			found = append(found, r)
		}
	}
	return found
}

// Authority returns, for each person who may decide on an action now, the
// roles in which they may.
func Authority(persons []Person, s Subject) map[string][]string {
	authority := map[string][]string{}
	for _, p := range persons {
		if roles, refusal := RolesOn(p, s); refusal == nil {
			authority[p.ID] = roles
		}
	}
	return authority
}

// held refuses whoever lacks the role, or holds it elsewhere only.
func held(role bool, tools, scopes []string, s Subject) *action.Refusal {
	if !role {
		return refuse("role", "Your roles do not include this.")
	}
	return within(tools, scopes, s)
}

// readable refuses what the viewer does not see. When limits alone stand in the
// way, it names them.
func readable(v Viewer, tools, scopes []string, s Subject) *action.Refusal {
	if v.Sees(s) {
		return nil
	}
	return held(v.Limited, tools, scopes, s)
}

func within(tools, scopes []string, s Subject) *action.Refusal {
	if !covers(tools, s.Tool) {
		return refuse("tool", "Your roles do not cover the tool "+quoted(s.Tool)+".")
	}
	if !covers(scopes, s.Scope) {
		return refuse("scope", "Your roles do not cover the scope "+quoted(s.Scope)+".")
	}
	return nil
}

// covers reports whether a limit lets a value through.
func covers(limit []string, value string) bool {
	return len(limit) == 0 || slices.Contains(limit, value)
}

// sameID is generous, because it stands in the way of approving one's own
// action under another spelling of the same id.
func sameID(a, b string) bool {
	return strings.EqualFold(plain(a), plain(b))
}

// plain is an id without what nobody sees: code points that draw nothing, and
// differences of form. Cyrillic and Greek letters that look like Latin ones
// count as those.
func plain(id string) string {
	drawn := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Cc, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r),
			unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Mn, r):
			return -1
		case unicode.Is(unicode.Pd, r), r == 0x2212:
			return '-'
		}
		if i := strings.IndexRune(lookAlike, unicode.ToLower(r)); i >= 0 {
			return rune(looksLike[utf8.RuneCountInString(lookAlike[:i])])
		}
		return r
	}, norm.NFKC.String(id))
	return strings.TrimSpace(drawn)
}

// lookAlike are lower-case letters of other scripts that look like the Latin
// letter at the same place of looksLike.
const (
	lookAlike = "асԁеһіјӏорԛѕѵԝхуαινορτυχ"
	looksLike = "acdehijlopqsvwxyaivoptux"
)

func refuse(reason, detail string) *action.Refusal {
	return action.Refuse(action.Forbidden, detail).Because(reason)
}

func disabled() *action.Refusal { return refuse("disabled", "This account is disabled.") }

// orNil keeps a nil refusal from becoming an error that is not nil.
func orNil(r *action.Refusal) error {
	if r == nil {
		return nil
	}
	return r
}

func quoted(s string) string { return strconv.Quote(s) }
