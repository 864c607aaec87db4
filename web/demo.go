package web

import "context"

// FaultsPage is the switchboard of what goes wrong in the demo's company.
type FaultsPage struct {
	Op      string
	On      []Fault
	Refused *Refusal
}

// Fault is a way in which requests to a system go wrong.
type Fault struct {
	System string
	Kind   string
	Left   int // how many requests; 0: until it is mended
}

// FaultSystems are the demo's systems that can be broken.
func FaultSystems() []string {
	return []string{"catalog", "refunds", "orders", "notes", "ledger", "service", "messages"}
}

// FaultKinds are the ways to break one, from the harmless to the treacherous.
func FaultKinds() []string {
	return []string{"lost-request", "error-before", "too-many", "slow", "act-then-delay", "act-then-reset", "error-after", "malformed", "record-only", "lie"}
}

// TryPage takes a tool definition and a payload of one's own.
type TryPage struct {
	Op         string
	Definition Own
	Payload    Own
	Among      []Option // the tools to choose from, when several were pasted
	Chosen     string
	Refused    *Refusal
}

// What the form to try a tool begins with.
const (
	TryDefinition Own = `{
  "name": "calendar.book_room",
  "description": "Book a meeting room for one hour.",
  "input_schema": {
    "type": "object",
    "required": ["room", "starts_at"],
    "properties": {
      "room": {"type": "string"},
      "starts_at": {"type": "string", "format": "date-time"},
      "guests": {"type": "integer", "minimum": 1}
    }
  }
}`
	TryPayload Own = `{"room": "Jasmine", "starts_at": "2027-01-15T14:00:00+01:00", "guests": 4}`
)

// faultWord is the word for a system or for what goes wrong in it, or the code
// as written.
func faultWord(table, code string) any { return named("faults."+table, code) }

// faultOptions are the choices of a table of words.
func faultOptions(ctx context.Context, table string, codes []string) []Option {
	all := make([]Option, len(codes))
	for i, code := range codes {
		all[i] = Option{Value: code, Label: Outside(T(ctx, "faults."+table+"."+code))}
	}
	return all
}
