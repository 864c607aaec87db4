package people

import (
	"slices"
	"time"

	"countersign/action"
)

// The roles that every installation has. Contracts may name more, such as
// "finance": whoever holds such a role decides where a rule asks for it.
const (
	RoleSupport = "support" // decides on actions
	RoleOps     = "ops"     // settles unknown outcomes, and decides where a rule asks for it
	RoleAuditor = "auditor" // reads everything and decides nothing
	RoleAdmin   = "admin"   // administers; decides only with another role beside it
)

// Person is somebody who signs in.
type Person struct {
	ID          string // "per_…"
	Username    string // lower case, for life
	Name        string
	Roles       []string
	Tools       []string   // the roles hold for these tools only; empty for all
	Scopes      []string   // the roles hold for these scopes only; empty for all
	Actors      []string   // ids of the business system's users that are this person
	Lang        string     // "en" or "zh"
	Zone        string     // IANA name, such as "Asia/Shanghai"
	HasPassword bool       // false: signs in with one-time links only
	Disabled    *time.Time // since when; nil for who may sign in
	CreatedAt   time.Time
	Version     int64 // one more with every event
	Epoch       int   // one more when all sessions and links end at once
}

// Has reports whether the person holds a role.
func (p Person) Has(role string) bool { return slices.Contains(p.Roles, role) }

// Subject is what the person's events are filed under.
func (p Person) Subject() string { return "person:" + p.ID }

// As is the person as the cause of an event. role is the one they act in, ""
// when none matters; method is how they had signed in.
func (p Person) As(role, method string) action.By {
	return action.By{Kind: action.ByPerson, ID: p.ID, Name: p.Name, Role: role, Method: method}
}

// Grants are what a person is trusted with.
type Grants struct {
	Roles  []string `json:"roles"`
	Tools  []string `json:"tools"`
	Scopes []string `json:"scopes"`
	Actors []string `json:"actors"`
}

// Grants returns what the person is trusted with.
func (p Person) Grants() Grants {
	return Grants{Roles: p.Roles, Tools: p.Tools, Scopes: p.Scopes, Actors: p.Actors}
}

func (p *Person) setGrants(g Grants) {
	p.Roles, p.Tools, p.Scopes, p.Actors = tidy(g.Roles), tidy(g.Tools), tidy(g.Scopes), tidy(g.Actors)
}

// endSessions makes every session and every unused link of the person void.
func (p *Person) endSessions() { p.Epoch++ }
