package triage

import (
	"context"
	"encoding/json"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
)

// followed returns the contract that a reading followed, nil when there is none.
// Without a version of the contract the one in use is meant.
func (s *Service) followed(ctx context.Context, o Observation) (*contract.Contract, error) {
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
	return read.Contract, nil
}

// ofObject reports whether a reading is one of the object that the action changes:
// what is read before people decide, and whatever else reads the action's own
// target. Any other may be gone or have any version.
func ofObject(read, c *contract.Contract, a action.Action) bool {
	return read != nil && (read.Name == c.Approval.Before || readsTarget(read, a))
}

// aboutOther reports whether what was read names another object, or another
// operation, than the tool has to be asked about for this action, or this step.
func aboutOther(read *contract.Contract, a action.Action, o Observation) bool {
	if read == nil || o.Error != "" {
		return false
	}
	input, err := read.InputFor(factsOf(a, o.Step))
	return err == nil && read.AboutOther(input, o.Snapshot)
}

// factsOf is what read tools may know of an action, or of one of its steps.
func factsOf(a action.Action, step string) contract.Facts {
	f := contract.Facts{Payload: a.Payload, ActorID: a.Actor.ID, ExecutionKey: action.StepKey(a.ExecutionKey, step)}
	if a.Target != nil {
		f.TargetType, f.TargetID = a.Target.Type, a.Target.ID
	}
	return f
}

// readsTarget reports whether a read tool, called for an action, reads the action's
// own target.
func readsTarget(read *contract.Contract, a action.Action) bool {
	if a.Target == nil {
		return false
	}
	input, err := read.InputFor(factsOf(a, ""))
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
