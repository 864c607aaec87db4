package people

// Viewer says which actions somebody may see. Every read takes one and filters
// by it. The zero Viewer sees nothing.
type Viewer struct {
	All      bool     // sees everything
	Limited  bool     // sees what is within Tools and Scopes
	Tools    []string // empty for all
	Scopes   []string // empty for all
	ClientID string   // also sees what this client proposed; "" for none
}

// PersonViewer returns what a person may see.
func PersonViewer(p Person) Viewer {
	switch {
	case p.Disabled != nil || len(p.Roles) == 0:
		return Viewer{}
	case p.Has(RoleAuditor) || p.Has(RoleAdmin):
		return Viewer{All: true}
	}
	return Viewer{Limited: true, Tools: p.Tools, Scopes: p.Scopes}
}

// ClientViewer returns what a client may see: a proposer its own actions, an
// executor and a reader what is within their limits, an admin everything.
func ClientViewer(c Client) Viewer {
	switch {
	case c.Disabled != nil:
		return Viewer{}
	case c.Has(RoleAdmin):
		return Viewer{All: true}
	}
	var v Viewer
	if c.Has(RoleProposer) {
		v.ClientID = c.ID
	}
	if c.Has(RoleExecutor) || c.Has(RoleReader) {
		v.Limited, v.Tools, v.Scopes = true, c.Tools, c.Scopes
	}
	return v
}

// Sees reports whether the viewer may see an action.
func (v Viewer) Sees(s Subject) bool {
	return v.All ||
		v.Limited && covers(v.Tools, s.Tool) && covers(v.Scopes, s.Scope) ||
		v.ClientID != "" && v.ClientID == s.ClientID
}
