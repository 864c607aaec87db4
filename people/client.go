package people

import (
	"context"
	"slices"
	"time"

	"countersign/action"
)

// The roles of a client. RoleAdmin is the fourth.
const (
	RoleProposer = "proposer" // proposes, and sees its own actions
	RoleExecutor = "executor" // claims, executes and reports within its limits
	RoleReader   = "reader"   // reads within its limits
)

// Client is a program that calls the API.
type Client struct {
	ID        string // "cli_…"
	Name      string // unique
	Owner     string // id of the person who answers for it, for life: see RolesOn
	Roles     []string
	Tools     []string   // limits of the roles; empty for all
	Scopes    []string   // limits of the roles; empty for all
	Entries   []string   // entry points it may propose from; empty for all
	Disabled  *time.Time // since when; nil for one whose keys work
	CreatedAt time.Time
	Version   int64 // one more with every event
	Keys      []Key // newest first; read with one client, not in an authenticated call
}

// Has reports whether the client holds a role.
func (c Client) Has(role string) bool { return slices.Contains(c.Roles, role) }

// From are the entry points that a proposal may come from: the one it names, or,
// when it names none, any that the client may use; "" stands for every one.
func (c Client) From(entry string) []string {
	if entry == "" && len(c.Entries) > 0 {
		return c.Entries
	}
	return []string{entry}
}

// Subject is what the client's events are filed under.
func (c Client) Subject() string { return "client:" + c.ID }

// EachTry returns what gives the client for each try of a command: the first time
// as it was when its key was checked, then as read says that it is. What is written
// has to rest on the version given.
func (c Client) EachTry(ctx context.Context, read func(context.Context, string) (Client, error)) func() (Client, error) {
	tried := false
	return func() (Client, error) {
		if !tried {
			tried = true
			return c, nil
		}
		return read(ctx, c.ID)
	}
}

// By is the client as the cause of an event.
func (c Client) By() action.By {
	return action.By{Kind: action.ByClient, ID: c.ID, Name: c.Name}
}

// ClientGrants are what a client is trusted with.
type ClientGrants struct {
	Roles   []string `json:"roles"`
	Tools   []string `json:"tools"`
	Scopes  []string `json:"scopes"`
	Entries []string `json:"entries"`
}

// Grants returns what the client is trusted with.
func (c Client) Grants() ClientGrants {
	return ClientGrants{Roles: c.Roles, Tools: c.Tools, Scopes: c.Scopes, Entries: c.Entries}
}

func (c *Client) setGrants(g ClientGrants) {
	c.Roles, c.Tools, c.Scopes, c.Entries = tidy(g.Roles), tidy(g.Tools), tidy(g.Scopes), tidy(g.Entries)
}
