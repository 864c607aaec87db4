package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/action"
)

// Reconcile says how the business system's own list of its operations is read,
// window by window, and held against what is known here.
type Reconcile struct {
	List     string            `json:"list"`               // read tool that lists the operations of a window, a page at a time
	Input    ListInput         `json:"input"`              // how its input names what it is asked
	Page     int               `json:"page"`               // operations per page, where it takes a limit
	Items    string            `json:"items"`              // JSON Pointer to the operations in a page
	Next     string            `json:"next"`               // JSON Pointer to where the next page starts; absent or null on the last
	Key      string            `json:"key"`                // JSON Pointer into an operation: its execution key
	At       string            `json:"at"`                 // JSON Pointer into an operation: when its key was decided, RFC 3339
	Outcome  Readings          `json:"outcome"`            // what became of it
	Fields   map[string]string `json:"fields"`             // what must be the same: JSON Pointer into the payload → into an operation
	Currency string            `json:"currency,omitempty"` // JSON Pointer into an operation: the currency of its amount
	Settle   Duration          `json:"settle"`             // how long either side may lag behind the other before it is missing
	Every    Duration          `json:"every,omitzero"`     // how often it is done by itself; zero: only when asked for
	Window   Duration          `json:"window,omitzero"`    // how far each sweep looks back
}

// ListInput are the fields of a list tool's input. Those that the tool does not
// have are left out.
type ListInput struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Cursor string `json:"cursor"`
	Limit  string `json:"limit"`
}

// Listed is one operation as the business system lists it, cut down to what is
// compared. Values are as they were written.
type Listed struct {
	Key      string                     `json:"key"`
	At       string                     `json:"at"`
	Outcome  string                     `json:"outcome"`
	Fields   map[string]json.RawMessage `json:"fields,omitempty"` // by the place in the payload that each belongs to; what is not there is left out
	Currency string                     `json:"currency,omitempty"`
}

// Moment is when the operation's key was decided.
func (l Listed) Moment() (time.Time, error) { return time.Parse(time.RFC3339Nano, l.At) }

// Query builds the input of the list tool for one page of a window.
func (r *Reconcile) Query(list *Contract, from, to time.Time, cursor string) ([]byte, error) {
	input := &node{kind: objectKind}
	for _, f := range []struct {
		name  string
		value *node
	}{
		{r.Input.From, stringNode(from.UTC().Format(time.RFC3339))}, {r.Input.To, stringNode(to.UTC().Format(time.RFC3339))},
		{r.Input.Cursor, stringNode(cursor)}, {r.Input.Limit, number(fmt.Sprint(r.Page))},
	} {
		has := slices.ContainsFunc(list.fields, func(known field) bool { return known.name == f.name })
		if f.value.text != "" && has {
			input.set(f.name, f.value)
		}
	}
	canonical, err := action.Canonical(input.json())
	if err != nil {
		return nil, fmt.Errorf("building the input of %s: %w", list.Name, err)
	}
	if err := list.ValidateInput(canonical); err != nil {
		return nil, fmt.Errorf("building the input of %s: %w", list.Name, err)
	}
	return canonical, nil
}

// ReadPage cuts a page of the list down to what is compared, and tells where
// the next one starts: "" on the last. It fails when the page is not as the
// contract says, because what cannot be read would look as if it were missing.
func (r *Reconcile) ReadPage(body []byte) (items []Listed, next string, err error) {
	doc, err := parseJSON(body, maxDepth)
	if err != nil {
		return nil, "", fmt.Errorf("the page is not JSON: %w", err)
	}
	list := doc.at(r.Items)
	if list == nil || list.kind != listKind {
		return nil, "", fmt.Errorf("the page has no list at %q", r.Items)
	}
	for i, n := range list.items {
		l := Listed{}
		var ok bool
		if l.Key, ok = idText(n.at(r.Key)); !ok || l.Key == "" {
			return nil, "", fmt.Errorf("operation %d of the page has no key at %q", i, r.Key)
		}
		if at := n.at(r.At); at != nil {
			l.At = at.text
		}
		if _, err := l.Moment(); err != nil {
			return nil, "", fmt.Errorf("operation %d of the page has no time at %q", i, r.At)
		}
		if outcome := n.at(r.Outcome.Field); outcome != nil && outcome.scalar() {
			l.Outcome = outcome.text
		}
		if r.Currency != "" {
			l.Currency, _ = idText(n.at(r.Currency))
		}
		for ours, theirs := range r.Fields {
			if value := n.at(theirs); value != nil {
				if l.Fields == nil {
					l.Fields = map[string]json.RawMessage{}
				}
				l.Fields[ours] = value.json()
			}
		}
		items = append(items, l)
	}
	if cursor := doc.at(r.Next); cursor != nil && cursor.kind != nullKind {
		var ok bool
		if next, ok = idText(cursor); !ok {
			return nil, "", fmt.Errorf("the page's next cursor at %q is neither text nor a number", r.Next)
		}
	}
	return items, next, nil
}

// Comparing is how r reads a list, with the fields and the currency that another
// version of the contract compares and that r reads. Nil when the other version's
// operations are not listed.
func (r *Reconcile) Comparing(other *Reconcile) *Reconcile {
	if other == nil || other == r {
		return other
	}
	both := *r
	both.Fields = map[string]string{}
	for ours, place := range other.Fields {
		if r.fieldAt(place) != "" {
			both.Fields[ours] = place
		}
	}
	if other.Currency != r.Currency {
		both.Currency = ""
	}
	return &both
}

// Renamed is an operation that r has read, with its fields named as in other,
// which Comparing made of it.
func (r *Reconcile) Renamed(l Listed, other *Reconcile) Listed {
	if other == r {
		return l
	}
	named := l
	named.Fields = map[string]json.RawMessage{}
	for ours, place := range other.Fields {
		if value, there := l.Fields[r.fieldAt(place)]; there {
			named.Fields[ours] = value
		}
	}
	return named
}

// fieldAt is the place in the payload that is held against one of the operation,
// or "".
func (r *Reconcile) fieldAt(place string) string {
	for ours, theirs := range r.Fields {
		if theirs == place {
			return ours
		}
	}
	return ""
}

// Pageful writes operations the way their list has them, with nothing but what
// was compared. It is what evidence from a list holds.
func (r *Reconcile) Pageful(items ...Listed) json.RawMessage {
	list := &node{kind: listKind}
	for _, l := range items {
		item := &node{kind: objectKind}
		put := (&filler{full: item}).put
		put(r.Key, stringNode(l.Key))
		put(r.At, stringNode(l.At))
		put(r.Outcome.Field, stringNode(l.Outcome))
		if r.Currency != "" && l.Currency != "" {
			put(r.Currency, stringNode(l.Currency))
		}
		for _, ours := range slices.Sorted(maps.Keys(l.Fields)) {
			if value, err := parseJSON(l.Fields[ours], maxDepth); err == nil {
				put(r.Fields[ours], value)
			}
		}
		list.items = append(list.items, item)
	}
	page := &node{kind: objectKind}
	(&filler{full: page}).put(r.Items, list)
	return page.json()
}

// ReadListed is what became of an operation, as its list says.
func (c *Contract) ReadListed(l Listed) Reading {
	if c.Execution.Reconcile == nil {
		return Reading{Outcome: action.Unknown}
	}
	return c.word(c.Execution.Reconcile.Outcome, l.Outcome)
}

func (c *Contract) checkReconcile(add adder) {
	const base = "/execution/reconcile"
	r := c.Execution.Reconcile
	if r == nil {
		return
	}
	if c.Mode == Read {
		add(base, "a tool that only reads leaves nothing to compare")
	}
	if len(c.Execution.Steps) > 0 {
		add(base, "is not there for tools with steps: their requests have keys of their own")
	}
	for ours := range r.Fields {
		c.needPlace(join(base+"/fields", ours), ours, add)
	}
	if r.Currency != "" && len(c.Display.Money) == 0 {
		add(base+"/currency", "needs display.money, which says the currency of this side")
	}
	if r.Every.Duration > 0 && r.Window.Duration < r.Every.Duration {
		add(base+"/window", "must be at least as long as every, or something is never looked at")
	}
	places := slices.Concat([]string{r.Key, r.At, r.Outcome.Field}, slices.Sorted(maps.Values(r.Fields)))
	if r.Currency != "" {
		places = append(places, r.Currency)
	}
	for i, place := range places {
		for _, other := range places[:i] {
			if strings.HasPrefix(place+"/", other+"/") || strings.HasPrefix(other+"/", place+"/") {
				add(base, "%q and %q are one place of an operation, or one is within the other", other, place)
			}
		}
	}
}
