package rule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/action"
	"countersign/action/contract"
)

// ToolVersion is one stored version of a contract.
type ToolVersion struct {
	Name      string    `db:"name"`
	Version   int       `db:"version"`
	Source    []byte    `db:"source"` // as it was put
	CreatedAt time.Time `db:"created_at"`
	Active    bool      `db:"active"`
	Now       time.Time `db:"now"` // the database clock when it was read
}

// ToolStore keeps contracts.
type ToolStore interface {
	ActiveTool(ctx context.Context, name string) (ToolVersion, bool, error)
	Tool(ctx context.Context, name string, version int) (ToolVersion, bool, error)
	SaveTool(ctx context.Context, v ToolVersion, by action.By, op string) (bool, error)
	RetireTool(ctx context.Context, name string, version int, openActions string, by action.By, op string) (bool, error)
}

// Tool is a contract version, compiled.
type Tool struct {
	ToolVersion
	Contract *contract.Contract
	Rules    *Rules
}

// Catalogue reads and compiles contracts. A version never changes, so what was
// compiled once is kept.
type Catalogue struct {
	store    ToolStore
	compiled sync.Map // "name@version" → *Tool
	lately   sync.Map // name → seen, the newest version as it was a moment ago
}

// seen is a version as it was read, and when.
type seen struct {
	ToolVersion
	at time.Time
}

// moment is how old what Lately tells may be.
const moment = time.Second

// NewCatalogue makes a catalogue over stored contracts.
func NewCatalogue(store ToolStore) *Catalogue { return &Catalogue{store: store} }

// Active returns the version that new proposals get, from whichever of the entry
// points they come; from is never empty. UnknownTool when there is no such tool
// or none of them loads it, InvalidArgument at /entry when only some do,
// ToolUnavailable when it was retired.
func (c *Catalogue) Active(ctx context.Context, name string, from []string) (*Tool, error) {
	v, ok, err := c.store.ActiveTool(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noTool(name)
	}
	c.lately.Store(name, seen{v, time.Now()})
	return c.usable(v, from)
}

// Lately is Active as it was at most a moment ago, without asking again. Who
// writes with it has to check in the same statement that the version is still
// the one in use, and to Forget it when it is not. Now is the database's clock
// as it must be by now.
func (c *Catalogue) Lately(ctx context.Context, name string, from []string) (*Tool, error) {
	if known, ok := c.lately.Load(name); ok {
		v := known.(seen)
		if age := time.Since(v.at); v.Active && age < moment {
			v.Now = v.Now.Add(age).Truncate(time.Microsecond) // as finely as the database counts
			return c.usable(v.ToolVersion, from)
		}
	}
	return c.Active(ctx, name, from)
}

// Forget makes Lately ask again.
func (c *Catalogue) Forget(name string) { c.lately.Delete(name) }

// usable returns a version for a proposal from one of these entry points.
func (c *Catalogue) usable(v ToolVersion, from []string) (*Tool, error) {
	name := v.Name
	t, err := c.Of(v)
	if err != nil {
		return nil, err
	}
	if err := loaded(t.Contract, from); err != nil {
		return nil, err
	}
	if !v.Active {
		return nil, action.Refuse(action.ToolUnavailable, "This tool was taken out of use.").Because("retired").With("tool", name)
	}
	return t, nil
}

// loaded refuses a tool that not every one of these entry points loads.
func loaded(c *contract.Contract, from []string) error {
	out := slices.DeleteFunc(slices.Clone(from), c.Loads)
	switch {
	case len(out) == 0:
		return nil
	case len(out) == len(from) && (len(from) > 1 || from[0] != ""):
		return noTool(c.Name).Because("entry").With("entry", strings.Join(from, ", "))
	}
	return action.Refuse(action.InvalidArgument, "Not every entry point loads this tool. Name the one that you ask from.").Because("entry").
		With("tool", c.Name).At("/entry", "is required: only "+strings.Join(c.Entries, ", ")+" may load this tool")
}

// Latest returns the newest version of a tool, in use or not. UnknownTool when
// there is no such tool.
func (c *Catalogue) Latest(ctx context.Context, name string) (*Tool, error) {
	v, ok, err := c.store.ActiveTool(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noTool(name)
	}
	return c.Of(v)
}

func noTool(name string) *action.Refusal {
	return action.Refuse(action.UnknownTool, "There is no such tool here. GET /v1/tools lists those that you may use.").With("tool", name)
}

// Version returns the version that an action was proposed under.
func (c *Catalogue) Version(ctx context.Context, name string, version int) (*Tool, error) {
	if t, ok := c.compiled.Load(catalogueKey(name, version)); ok {
		return t.(*Tool), nil
	}
	v, ok, err := c.store.Tool(ctx, name, version)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noTool(name)
	}
	return c.Of(v)
}

func catalogueKey(name string, version int) string { return fmt.Sprintf("%s@%d", name, version) }

// Of returns the compiled contract of a version, with the row as read now.
func (c *Catalogue) Of(v ToolVersion) (*Tool, error) {
	if known, ok := c.compiled.Load(catalogueKey(v.Name, v.Version)); ok {
		t := *known.(*Tool)
		t.ToolVersion = v
		return &t, nil
	}
	parsed, err := contract.Parse(v.Source)
	if err != nil {
		return nil, fmt.Errorf("reading contract %s version %d: %w", v.Name, v.Version, err)
	}
	rules, err := Compile(parsed)
	if err != nil {
		return nil, fmt.Errorf("compiling contract %s version %d: %w", v.Name, v.Version, err)
	}
	t := &Tool{ToolVersion: v, Contract: parsed, Rules: rules}
	c.compiled.Store(catalogueKey(v.Name, v.Version), t)
	return t, nil
}

// Save stores a contract as the next version of its tool. An identical one
// makes no version; made says whether one was made. name is the tool's name in
// the address, and must be the contract's.
func (c *Catalogue) Save(ctx context.Context, name string, raw []byte, by action.By) (t *Tool, made bool, err error) {
	parsed, err := contract.Parse(raw)
	if err != nil {
		return nil, false, err
	}
	if parsed.Name != name {
		return nil, false, action.Refuse(action.InvalidArgument, "The contract names another tool than the address.").
			At("/name", fmt.Sprintf("is %q, the address says %q", parsed.Name, name))
	}
	if _, err := Compile(parsed); err != nil {
		return nil, false, err
	}
	for range 10 {
		last, found, err := c.store.ActiveTool(ctx, name)
		if err != nil {
			return nil, false, err
		}
		if found && last.Active {
			t, err := c.Of(last)
			if err != nil || t.Contract.Digest() == parsed.Digest() {
				return t, false, err
			}
		}
		next := ToolVersion{Name: name, Version: last.Version + 1, Source: parsed.Source()}
		saved, err := c.store.SaveTool(ctx, next, by, fmt.Sprintf("save:%d", next.Version))
		if err != nil {
			return nil, false, err
		}
		if saved {
			t, err := c.Version(ctx, name, next.Version)
			return t, true, err
		}
	}
	return nil, false, action.Refuse(action.VersionConflict, "Somebody else keeps saving this tool. Try again.")
}

// Retire takes a tool out of use. UnknownTool when there is none.
func (c *Catalogue) Retire(ctx context.Context, name, openActions string, by action.By) error {
	v, found, err := c.store.ActiveTool(ctx, name)
	if err != nil {
		return err
	}
	if !found {
		return noTool(name)
	}
	if !v.Active {
		return nil
	}
	_, err = c.store.RetireTool(ctx, name, v.Version, openActions, by, fmt.Sprintf("retire:%d", v.Version))
	return err
}
