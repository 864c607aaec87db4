package web

import "time"

// ToolsPage lists the contracts.
type ToolsPage struct {
	Tools   []ToolRow
	Query   Text
	Kind    string // KindReads, KindWrites, or both when empty
	NextURL string
	Manage  bool // the viewer may put contracts
}

// What tools do, to filter by.
const (
	KindWrites = "write"
	KindReads  = "read"
)

// ToolRow is one tool in the list.
type ToolRow struct {
	Name    string
	Title   Text
	Version int
	Read    bool // changes nothing
	Retired bool
	Bare    bool // came from a bare definition
	Rules   []Rule
	Entries []Text // empty: every one
	Changed time.Time
	Open    Count // actions that wait
}

// unasked says why nobody approves what the tool does, of one that reads.
func (t ToolRow) unasked() string {
	if t.Bare {
		return "unasked." + string(UnaskedClaim)
	}
	return "unasked." + string(UnaskedReads)
}

// ToolPage is one version of a contract.
type ToolPage struct {
	Tool        ToolRow
	Manage      bool // the viewer may pause it
	Description Text
	Versions    []ToolVersion
	Assumed     []Assumption
	Target      Text // type; empty: named by each request
	Before      Text // tool that is read before people decide
	TTL         time.Duration
	ConfirmTTL  time.Duration
	Schema      []SchemaField
	Proves      string
	Retry       bool
	KeyLifetime time.Duration // 0: unknown
	Timeout     time.Duration
	FenceAfter  time.Duration
	Permission  Text
	Checks      []Text // post-conditions
	Mask        []Text
	Definition  Payload
	Diff        *FieldTable // against Against
	Against     int
	Curl        Text // a proposal of it, ready to paste
}

// ToolVersion is one version in the list of a tool's page.
type ToolVersion struct {
	Version int
	At      time.Time
	By      Text
	Shown   bool
}

// Assumption is a default that the contract's author did not state.
type Assumption struct {
	Pointer Text
	Value   Text
}

// SchemaField is one field that a tool takes.
type SchemaField struct {
	Path        Text
	Type        Text
	Required    bool
	Description Text
	Limits      Text // "1 to 60 characters", as the schema says
}
