package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/execution"
	"countersign/execution/api"
	"countersign/handlers"
)

// Try implements handlers.Demo. Nothing is stored before definition and payload
// were judged.
func (g *guide) Try(ctx context.Context, asked handlers.DemoTrial) (actionID string, among []string, err error) {
	definition, among, err := chosen(asked)
	if err != nil {
		return "", among, err
	}
	c, rules, err := compiled(definition)
	if err != nil {
		return "", among, err
	}
	unfit := fits(ctx, c, rules, asked.Payload)
	leave, err := g.enter() // only now: nobody waits for what is judged before
	if err != nil {
		return "", among, err
	}
	defer leave()
	if _, err := g.admin.Tool(ctx, c.Name, 0); err == nil && !slices.Contains(g.tried, c.Name) {
		return "", among, action.Refuse(action.InvalidArgument, "The demo has a tool of this name.").
			At("/definition", "Give your tool another name.")
	}
	if unfit != nil {
		return "", among, under(unfit, "/payload")
	}
	id, err := g.try(ctx, c, definition, asked)
	return id, among, err
}

// chosen is the definition to try, and the names to choose from when several
// were pasted.
func chosen(asked handlers.DemoTrial) (definition []byte, among []string, err error) {
	all := contract.Split(asked.Definition)
	switch len(all) {
	case 0:
		return nil, nil, action.Refuse(action.InvalidArgument, "The form was not taken.").
			At("/definition", "This list holds no tool. Paste one definition, {\"name\": …, \"input_schema\": {…}}, or a list that holds some.")
	case 1:
		return all[0], nil, nil
	}
	for _, one := range all {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(one, &named) == nil && named.Name != "" {
			among = append(among, named.Name)
			if named.Name == asked.Tool && definition == nil {
				definition = one
			}
		}
	}
	if definition == nil {
		return nil, among, action.Refuse(action.InvalidArgument, "The form was not taken.").
			At("/tool", fmt.Sprintf("There are %d tools in what you pasted. Choose the one to try, with a payload for it.", len(all)))
	}
	return definition, among, nil
}

// compiled tells what the console would say of a definition.
func compiled(definition []byte) (*contract.Contract, *rule.Rules, error) {
	c, err := contract.Parse(definition)
	if err != nil {
		return nil, nil, under(err, "/definition")
	}
	rules, err := rule.Compile(c)
	return c, rules, under(err, "/definition")
}

// fits tells what the console would say of a payload.
func fits(ctx context.Context, c *contract.Contract, rules *rule.Rules, payload []byte) error {
	if !json.Valid(payload) {
		return action.Refuse(action.InvalidArgument, "This is no JSON.")
	}
	canonical, err := action.Canonical(payload)
	if err == nil {
		err = c.ValidateInput(canonical)
	}
	if err == nil {
		err = rules.Validate(ctx, canonical)
	}
	if err == nil {
		_, err = c.ScopeOf(canonical)
	}
	if err == nil {
		_, _, _, err = c.TargetOf(canonical)
	}
	return err
}

// try stores a tool and proposes an action of it.
func (g *guide) try(ctx context.Context, c *contract.Contract, definition []byte, asked handlers.DemoTrial) (string, error) {
	if _, err := g.admin.PutTool(ctx, c.Name, definition); err != nil {
		return "", under(toldBy(err), "/definition")
	}
	if !slices.Contains(g.tried, c.Name) {
		g.tried = append(g.tried, c.Name)
		if err := g.save(); err != nil {
			return "", err
		}
	}
	p := api.Propose{Tool: c.Name, Actor: &api.Actor{ID: "u-li-na"}, Reason: "A first try.", Payload: asked.Payload}
	if len(c.Entries) > 0 {
		p.Entry = c.Entries[0]
	}
	if c.ObjectVersion == contract.VersionRequired {
		p.ObjectVersion = new("1") // as good as any: nothing here reads the object
	}
	a, err := g.agent.client.Propose(ctx, p, "try-"+asked.Op)
	if problem, ok := execution.AsProblem(err); ok && problem.Has(action.DuplicateOpenAction) && problem.Args["action"] != "" {
		return problem.Args["action"], nil // it waits already
	}
	if err != nil {
		return "", under(toldBy(err), "/payload")
	}
	return a.ID, nil
}

// under makes a refusal one of a form's field, which holds a document: what is
// wrong inside of it is told there.
func under(err error, field string) error {
	var inside *action.Refusal
	if !errors.As(err, &inside) {
		return err
	}
	detail := inside.Detail
	for _, e := range inside.Errors {
		detail += " " + e.Pointer + ": " + e.Detail
	}
	return action.Refuse(action.InvalidArgument, "The form was not taken.").At(field, strings.TrimSpace(detail)).From(err)
}
