package execution

import (
	"context"
	"fmt"
	"sync"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

const (
	currentFor   = 30 * time.Second // how old the current version of a contract may be
	maxContracts = 2000             // kept in memory
)

// contracts keeps the contracts that the console handed out. A version never
// changes; which one is current does.
type contracts struct {
	client *Client
	clock  Clock

	mu      sync.Mutex
	pinned  map[pin]*contract.Contract
	current map[string]currentTool
}

type pin struct {
	name    string
	version int
}

type currentTool struct {
	contract *contract.Contract
	version  int
	active   bool
	at       time.Time
}

func newContracts(client *Client, clock Clock) *contracts {
	return &contracts{client: client, clock: clock, pinned: map[pin]*contract.Contract{}, current: map[string]currentTool{}}
}

// version returns the version that an action is pinned to.
func (c *contracts) version(ctx context.Context, name string, version int) (*contract.Contract, error) {
	c.mu.Lock()
	known := c.pinned[pin{name, version}]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	_, parsed, err := c.fetch(ctx, name, version)
	return parsed, err
}

// now returns the current version and whether the tool is active.
func (c *contracts) now(ctx context.Context, name string) (currentTool, error) {
	c.mu.Lock()
	known, found := c.current[name]
	c.mu.Unlock()
	if found && c.clock.Now().Sub(known.at) < currentFor {
		return known, nil
	}
	tool, parsed, err := c.fetch(ctx, name, 0)
	if err != nil {
		return currentTool{}, err
	}
	fresh := currentTool{parsed, tool.Version, tool.Active, c.clock.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.current) >= maxContracts {
		clear(c.current)
	}
	c.current[name] = fresh
	return fresh, nil
}

func (c *contracts) fetch(ctx context.Context, name string, version int) (api.Tool, *contract.Contract, error) {
	tool, err := c.client.Tool(ctx, name, version)
	if HasCode(err, action.NotFound, action.UnknownTool) {
		return tool, nil, toolError(UnknownTool, name, "There is no tool of this name.", err)
	}
	if err != nil {
		return tool, nil, err
	}
	parsed, err := contract.Parse(tool.Contract)
	if err != nil {
		return tool, nil, fmt.Errorf("reading the contract of %s: %w", name, err)
	}
	if parsed.Name != name {
		return tool, nil, fmt.Errorf("the console answered with the contract of %s for %s", parsed.Name, name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pinned) >= maxContracts {
		clear(c.pinned)
	}
	c.pinned[pin{name, tool.Version}] = parsed
	return tool, parsed, nil
}
