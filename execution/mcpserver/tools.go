package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

// tool is one thing that an agent can do here.
type tool struct {
	name, title, about string
	reads              bool
	input              string // JSON Schema
	run                func(context.Context, json.RawMessage) (any, error)
}

// tools is all that can be reached over the protocol.
func (a *agent) tools() []tool {
	return []tool{
		{"list_tools", "List what can be proposed", "The tools that you may propose actions of. With a name: everything needed to propose it.", true, listInput, a.list},
		{"propose_action", "Propose an action", "Ask people to approve one action. Nothing is done by this. The answer names the page on which a person decides.", false, proposeInput, a.propose},
		{"get_action", "Look at an action", "What became of an action so far. With wait_seconds: as soon as something changes.", true, getInput, a.get},
		{"what_may_i_say", "What may be said about an action", "The sentences that may, and that must not, be said to a customer about an action now.", true, sayInput, a.say},
	}
}

const listInput = `{"type": "object", "additionalProperties": false, "properties": {
	"tool": {"type": "string", "description": "Name of a tool, for all about this one"}}}`

const proposeInput = `{"type": "object", "additionalProperties": false, "required": ["tool", "payload"], "properties": {
	"tool": {"type": "string", "description": "Name of the tool, as list_tools has it"},
	"actor": {"type": "object", "description": "On whose behalf: a user of the business system", "additionalProperties": false, "required": ["id"],
		"properties": {"id": {"type": "string"}, "name": {"type": "string"}}},
	"target": {"type": "object", "description": "The one object this is about, where the payload does not name it", "additionalProperties": false,
		"required": ["type", "id"], "properties": {"type": {"type": "string"}, "id": {"type": "string"}}},
	"object_version": {"type": "string", "description": "The version of the object that you looked at"},
	"payload": {"type": "object", "description": "What the tool's input_schema describes"},
	"reason": {"type": "string", "description": "Why, for the people who decide"},
	"expires_in": {"type": "string", "description": "How long people may take, such as 15m"},
	"task_id": {"type": "string", "description": "The task whose budget this counts on"},
	"compensates": {"type": "string", "description": "The action that this undoes"},
	"resumes": {"type": "string", "description": "The action whose rest this does"},
	"replaces": {"type": "string", "description": "The action in whose stead this is wanted"},
	"idempotency_key": {"type": "string", "description": "Names the wish, such as a message or ticket id. Left out, the same content is the same wish. Give another one only when the same is wanted once more"}}}`

const getInput = `{"type": "object", "additionalProperties": false, "required": ["action_id"], "properties": {
	"action_id": {"type": "string"},
	"wait_seconds": {"type": "integer", "minimum": 0, "maximum": 60, "description": "How long to wait for a change"},
	"known_version": {"type": "integer", "minimum": 0, "description": "The version that you know already"}}}`

const sayInput = `{"type": "object", "additionalProperties": false, "required": ["action_id"], "properties": {
	"action_id": {"type": "string"},
	"language": {"enum": ["en", "zh"], "description": "en when left out"}}}`

// offer is a tool as an agent sees it.
type offer struct {
	Tool          string          `json:"tool"`
	Title         string          `json:"title"`
	Description   string          `json:"description,omitempty"`
	Writes        bool            `json:"writes"`
	InputSchema   json.RawMessage `json:"input_schema,omitempty"`
	Target        string          `json:"target,omitempty"`
	ObjectVersion string          `json:"object_version,omitempty"`
}

// offers answers list_tools.
type offers struct {
	Entry string  `json:"entry,omitempty"`
	Tools []offer `json:"tools"`
}

func (a *agent) list(ctx context.Context, raw json.RawMessage) (any, error) {
	args, err := arguments[struct {
		Tool string `json:"tool"`
	}](raw)
	if err != nil {
		return nil, err
	}
	if args.Tool != "" {
		return a.one(ctx, args.Tool)
	}
	found, err := a.console.Tools(ctx, a.options.Entry)
	if err != nil {
		return nil, err
	}
	all := offers{Entry: a.options.Entry, Tools: []offer{}}
	for _, t := range found {
		c, err := contract.Parse(t.Contract)
		if err != nil {
			return nil, err
		}
		if t.Active {
			all.Tools = append(all.Tools, offerOf(c))
		}
	}
	return all, nil
}

func offerOf(c *contract.Contract) offer {
	return offer{Tool: c.Name, Title: c.Heading("en"), Description: c.Description.In("en"), Writes: c.Mode == contract.Write}
}

// one tells all about a tool that the entry point loads. Of any other it knows
// nothing.
func (a *agent) one(ctx context.Context, name string) (any, error) {
	t, err := a.console.Tool(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	c, err := contract.Parse(t.Contract)
	if err != nil {
		return nil, err
	}
	if !t.Active || a.options.Entry != "" && !c.Loads(a.options.Entry) {
		return nil, action.Refuse(action.UnknownTool, "There is no tool of this name here.")
	}
	o := offerOf(c)
	o.InputSchema, o.ObjectVersion = c.InputSchema, string(c.ObjectVersion)
	o.Target = "give target with type and id"
	if c.Target != nil {
		o.Target = "named by the payload; leave target out"
	}
	return offers{Entry: a.options.Entry, Tools: []offer{o}}, nil
}

func (a *agent) get(ctx context.Context, raw json.RawMessage) (any, error) {
	args, err := arguments[struct {
		ActionID     string `json:"action_id"`
		WaitSeconds  int    `json:"wait_seconds"`
		KnownVersion int64  `json:"known_version"`
	}](raw)
	if err != nil {
		return nil, err
	}
	refusal := checkID(args.ActionID)
	if args.WaitSeconds < 0 || args.WaitSeconds > 60 {
		refusal.At("/wait_seconds", "must be from 0 to 60")
	}
	if args.KnownVersion < 0 {
		refusal.At("/known_version", "must be a version of the action")
	}
	if len(refusal.Errors) > 0 {
		return nil, refusal
	}
	var found api.Action
	if args.WaitSeconds == 0 {
		found, err = a.console.Get(ctx, args.ActionID)
	} else {
		found, err = a.await(ctx, args.ActionID, args.KnownVersion, time.Duration(args.WaitSeconds)*time.Second)
	}
	if err != nil {
		return nil, err
	}
	return viewOf(found), nil
}

// await waits for a change, but not longer than the program lives.
func (a *agent) await(ctx context.Context, id string, since int64, wait time.Duration) (api.Action, error) {
	waiting, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		select {
		case <-a.options.Stopping:
			leave()
		case <-waiting.Done():
		}
	}()
	found, err := a.console.Await(waiting, id, since, wait)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return a.console.Get(ctx, id)
	}
	return found, err
}

func (a *agent) say(ctx context.Context, raw json.RawMessage) (any, error) {
	args, err := arguments[struct {
		ActionID string `json:"action_id"`
		Language string `json:"language"`
	}](raw)
	if err != nil {
		return nil, err
	}
	if refusal := checkID(args.ActionID); len(refusal.Errors) > 0 {
		return nil, refusal
	}
	return a.console.Statement(ctx, args.ActionID, cmp.Or(args.Language, "en"))
}

// checkID refuses an id that names no action, before an address is made of it.
func checkID(id string) *action.Refusal {
	refusal := action.Refuse(action.InvalidArgument, "The call is refused. The errors say where.")
	if !action.ValidID("act", id) {
		refusal.At("/action_id", "must be the id of an action, as propose_action answered")
	}
	return refusal
}
