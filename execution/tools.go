package execution

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"time"

	"countersign/action"
	"countersign/action/contract"
)

// Tools calls tools that change nothing, as their contracts say. What changes
// something is proposed instead: see Client.Propose.
type Tools struct {
	config    Config
	client    *Client
	contracts *contracts
	breakers  breakers
	moved     chan struct{} // gets something when a breaker has changed
	reads     *http.Client
	opt       Options
}

// NewTools makes the tools of a configuration callable.
func NewTools(config Config, options Options) (*Tools, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if options.Agent == "" {
		options.Agent = "countersign (" + config.Name + ")"
	}
	options = options.complete()
	client, err := NewClient(config.Console, config.Key, options)
	if err != nil {
		return nil, err
	}
	moved := make(chan struct{}, 1)
	return &Tools{
		moved:     moved,
		config:    config,
		client:    client,
		contracts: newContracts(client, options.Clock),
		breakers:  newBreakers(config, options, moved),
		reads:     &http.Client{CheckRedirect: notFollowed, Transport: readTransport(options.SystemTLS)},
		opt:       options,
	}, nil
}

func readTransport(secure *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:        secure,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        time.Minute,
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true, // the bound on an answer holds as it is sent
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Client returns the client of the console.
func (t *Tools) Client() *Client { return t.client }

// Question is a direct call of a read tool.
type Question struct {
	Tool    string
	Entry   string // the entry point that asks; only what it loads can be called
	ActorID string // on whose behalf, from the session and never from a model
	Payload json.RawMessage
}

// Ask calls a read tool and returns what its contract allows to be seen of the
// answer. Errors are *ToolError.
func (t *Tools) Ask(ctx context.Context, q Question) (json.RawMessage, error) {
	known, err := t.contracts.now(ctx, q.Tool)
	if e, ok := AsToolError(err, q.Tool); ok {
		return nil, e
	}
	if err != nil {
		return nil, toolError(ToolUnavailable, q.Tool, "The console cannot be asked for the tool's contract.", err)
	}
	c := known.contract
	system, served := t.config.serving(q.Tool)
	switch {
	case !c.Loads(q.Entry):
		return nil, toolError(UnknownTool, q.Tool, "There is no tool of this name here.", nil)
	case !known.active:
		return nil, toolError(ToolUnavailable, q.Tool, "The tool was retired.", nil)
	case c.Mode != contract.Read:
		return nil, toolError(ToolUnavailable, q.Tool, "The tool changes something: propose it instead of calling it.", nil)
	case c.HTTP == nil || !served:
		return nil, toolError(ToolUnavailable, q.Tool, "No business system is configured for the tool.", nil)
	}
	wire, err := inquiry(c, system, q)
	if err != nil {
		if e, ok := AsToolError(err, q.Tool); ok {
			return nil, e
		}
		return nil, toolError(ToolUnavailable, q.Tool, "The tool cannot be called as it is configured.", err)
	}
	got := t.fetch(ctx, c, system, wire)
	if got.failure != "" {
		return nil, toolError(ExecutionError, q.Tool, "The business system could not be read: "+got.failure+".", nil)
	}
	return c.FilterOutput(got.snapshot), nil
}

// inquiry checks a question and builds its request.
func inquiry(c *contract.Contract, system System, q Question) (*contract.Request, error) {
	payload, err := action.Canonical(q.Payload)
	if err != nil {
		return nil, err
	}
	input, err := c.InputFor(contract.Facts{Payload: payload, ActorID: q.ActorID})
	if err != nil {
		return nil, err
	}
	wire, err := c.Request(system.BaseURL, input, "", "")
	if err != nil {
		return nil, err
	}
	system.nameActor(wire, q.ActorID)
	return wire, nil
}
