package triage

import (
	"context"
	"encoding/json"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
)

// ofObject returns the contract that a reading followed, when it is one of the
// object that the action changes: what is read before people decide, and whatever
// else reads the action's own target. It is nil of any other, which may be gone or
// have any version. Without a version of the contract the one in use is meant.
func (s *Service) ofObject(ctx context.Context, c *contract.Contract, a action.Action, o Observation) (*contract.Contract, error) {
	follow := func() (*rule.Tool, error) { return s.catalogue.Version(ctx, o.Tool, o.Wire.ToolVersion) }
	if o.Wire.ToolVersion == 0 {
		follow = func() (*rule.Tool, error) { return s.catalogue.Latest(ctx, o.Tool) }
	}
	read, err := follow()
	if action.IsCode(err, action.UnknownTool) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if o.Tool == c.Approval.Before || readsTarget(read.Contract, a) {
		return read.Contract, nil
	}
	return nil, nil
}

// readsTarget reports whether a read tool, called for an action, reads the action's
// own target.
func readsTarget(read *contract.Contract, a action.Action) bool {
	if a.Target == nil {
		return false
	}
	input, err := read.InputFor(contract.Facts{Payload: a.Payload, ActorID: a.Actor.ID, ExecutionKey: a.ExecutionKey, TargetType: a.Target.Type, TargetID: a.Target.ID})
	if err != nil {
		return false
	}
	kind, id, known, err := read.TargetOf(input)
	return err == nil && known && *a.Target == action.Target{Type: kind, ID: id}
}

// versionIn returns the object version that a snapshot shows in its member
// "version" or "object_version", or "".
func versionIn(snapshot json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(snapshot, &object) != nil {
		return ""
	}
	for _, name := range []string{"object_version", "version"} {
		var text string
		if raw, ok := object[name]; ok && json.Unmarshal(raw, &text) == nil {
			return text
		} else if number := strings.TrimSpace(string(raw)); ok && number != "" && number[0] >= '0' && number[0] <= '9' {
			return number
		}
	}
	return ""
}
