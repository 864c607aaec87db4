package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

// Try implements handlers.Demo.
func (g *guide) Try(ctx context.Context, definition, payload []byte, op string) (string, error) {
	leave, err := g.enter()
	if err != nil {
		return "", err
	}
	defer leave()
	c, err := contract.Parse(definition)
	if err != nil {
		return "", under(err, "/definition")
	}
	if _, err := g.admin.Tool(ctx, c.Name, 0); err == nil && !slices.Contains(g.tried, c.Name) {
		return "", action.Refuse(action.InvalidArgument, "The demo has a tool of this name.").
			At("/definition", "Give your tool another name.")
	}
	if !json.Valid(payload) {
		return "", action.Refuse(action.InvalidArgument, "The form was not taken.").At("/payload", "This is no JSON.")
	}
	if _, err := g.admin.PutTool(ctx, c.Name, definition); err != nil {
		return "", under(toldBy(err), "/definition")
	}
	g.tried = append(g.tried, c.Name)
	asked := api.Propose{Tool: c.Name, Actor: &api.Actor{ID: "u-li-na"}, Reason: "A first try.", Payload: payload}
	if len(c.Entries) > 0 {
		asked.Entry = c.Entries[0]
	}
	a, err := g.agent.client.Propose(ctx, asked, "try-"+op)
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
