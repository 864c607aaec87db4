package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"countersign/action"
)

// Reference is a place where a contract names another tool.
type Reference struct {
	Pointer string
	Tool    string
	Reads   bool // the other tool must only read
}

// References lists the other tools that the contract needs.
func (c *Contract) References() []Reference {
	var refs []Reference
	add := func(pointer, tool string, reads bool) {
		if tool != "" {
			refs = append(refs, Reference{pointer, tool, reads})
		}
	}
	e := c.Execution
	add("/approval/before", c.Approval.Before, true)
	add("/execution/permission", e.Permission, true)
	for i, p := range e.Preconditions {
		add("/execution/preconditions/"+strconv.Itoa(i)+"/read", p.Read, true)
	}
	if e.StatusQuery != nil {
		add("/execution/status_query/tool", e.StatusQuery.Tool, true)
	}
	if e.Reconcile != nil {
		add("/execution/reconcile/list", e.Reconcile.List, true)
	}
	for i, p := range e.Postconditions {
		add("/execution/postconditions/"+strconv.Itoa(i)+"/read", p.Read, true)
	}
	refs = append(refs, c.stepReferences()...)
	add("/execution/compensation", e.Compensation, false)
	return refs
}

// PreconditionReads lists the tools to read before the call, without repeats.
func (c *Contract) PreconditionReads() []string { return conditionReads(c.Execution.Preconditions) }

// PostconditionReads lists the tools to read back after it, without repeats.
func (c *Contract) PostconditionReads() []string { return conditionReads(c.Execution.Postconditions) }

func conditionReads(conditions []Condition) []string {
	var tools []string
	for _, condition := range conditions {
		if !slices.Contains(tools, condition.Read) {
			tools = append(tools, condition.Read)
		}
	}
	return tools
}

// Facts is what is known of an action when something is read for it.
type Facts struct {
	Payload      []byte // canonical
	ActorID      string
	TargetType   string
	TargetID     string
	ExecutionKey string
}

// InputFor builds the input of a read tool for an action. A field named
// actor_id, execution_key (or idempotency_key), target_type or target_id is
// what Countersign knows, whatever the payload says, and left out when it knows
// nothing; only a key is then taken from the payload, because it is no identity.
// Another field is the payload's of the same name; the field that names the read
// tool's own target is the action's target when the payload has none.
func (c *Contract) InputFor(f Facts) ([]byte, error) {
	payload, err := parsePayload(f.Payload)
	if err != nil {
		return nil, err
	}
	input := &node{kind: objectKind}
	for _, field := range c.fields {
		if value := c.inputValue(field.name, f, payload); value != nil {
			input.set(field.name, value)
		}
	}
	canonical, err := action.Canonical(input.json())
	if err != nil {
		return nil, fmt.Errorf("building the input of %s: %w", c.Name, err)
	}
	if err := c.ValidateInput(canonical); err != nil {
		return nil, fmt.Errorf("building the input of %s: %w", c.Name, err)
	}
	return canonical, nil
}

func (c *Contract) inputValue(name string, f Facts, payload *node) *node {
	switch name {
	case "actor_id":
		return knownText(f.ActorID)
	case "execution_key", "idempotency_key":
		if f.ExecutionKey != "" {
			return stringNode(f.ExecutionKey)
		}
	case "target_type":
		return knownText(f.TargetType)
	case "target_id":
		return knownText(f.TargetID)
	}
	if value := payload.get(name); value != nil {
		return value
	}
	own := c.Target != nil && len(c.Target.ID) == 1 && c.Target.ID[0] == join("", name)
	if own && f.TargetID != "" {
		return stringNode(f.TargetID)
	}
	return nil
}

func knownText(text string) *node {
	if text == "" {
		return nil
	}
	return stringNode(text)
}

// Reading is what a status query or a callback says of an operation.
type Reading struct {
	Outcome     action.Outcome
	Proves      action.Proof // of a success, at most what the contract lets it prove
	NotExecuted bool         // of a failure: it was never executed
}

// ReadStatus reads the answer of the status query. An answer that it cannot
// read says nothing.
func (c *Contract) ReadStatus(body []byte) Reading {
	if c.Execution.StatusQuery == nil {
		return Reading{Outcome: action.Unknown}
	}
	return c.reading(c.Execution.StatusQuery.Outcome, body)
}

// ReadCallback reads an asynchronous receipt: the key of the operation, "" when
// there is none, and what became of it.
func (c *Contract) ReadCallback(body []byte) (key string, reading Reading) {
	if c.Execution.Callback == nil {
		return "", Reading{Outcome: action.Unknown}
	}
	doc, err := parseJSON(body, maxDepth)
	if err != nil {
		return "", Reading{Outcome: action.Unknown}
	}
	key, _ = idText(doc.at(c.Execution.Callback.Key))
	return key, c.reading(c.Execution.Callback.Outcome, body)
}

func (c *Contract) reading(r Readings, body []byte) Reading {
	doc, err := parseJSON(body, maxDepth)
	if err != nil {
		return Reading{Outcome: action.Unknown}
	}
	if value := doc.at(r.Field); value != nil && value.scalar() {
		return c.word(r, value.text)
	}
	return Reading{Outcome: action.Unknown}
}

// word is what a business system's own word for an outcome means.
func (c *Contract) word(r Readings, text string) Reading {
	success := func(p action.Proof) Reading {
		return Reading{Outcome: action.Success, Proves: weaker(p, c.Execution.Proves)}
	}
	switch {
	case slices.Contains(r.Succeeded, text):
		return success(action.ProvesCompleted)
	case slices.Contains(r.Queued, text):
		return success(action.ProvesQueued)
	case slices.Contains(r.Accepted, text):
		return success(action.ProvesAccepted)
	case slices.Contains(r.NotExecuted, text):
		return Reading{Outcome: action.Failure, NotExecuted: true}
	case slices.Contains(r.Failed, text):
		return Reading{Outcome: action.Failure}
	}
	return Reading{Outcome: action.Unknown}
}

// SamePlace reports whether two tools read the same field of the same object: their
// targets are alike, and their output schemas list the same values for it. Equal names
// alone do not tell: an order and its coupon each have a status.
func SamePlace(a, b *Contract, pointer string) bool {
	if a == nil || b == nil || a.Target == nil || b.Target == nil || a.Target.Type != b.Target.Type || !slices.Equal(a.Target.ID, b.Target.ID) {
		return false
	}
	listed := a.listedValues(pointer)
	return listed != "" && listed == b.listedValues(pointer)
}

// listedValues are the values that the output schema lists for a field of the
// object, as JSON; "" when it lists none.
func (c *Contract) listedValues(pointer string) string {
	var schema struct {
		Properties map[string]struct {
			Enum json.RawMessage `json:"enum"`
		} `json:"properties"`
	}
	at := splitPointer(pointer)
	if len(at) != 1 || json.Unmarshal(c.OutputSchema, &schema) != nil {
		return ""
	}
	return string(schema.Properties[at[0]].Enum)
}
