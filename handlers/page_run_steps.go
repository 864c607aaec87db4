package handlers

import (
	"countersign/action"
	"countersign/web"
)

// runStepsOf are the steps of an action as pages show them.
func runStepsOf(a action.Action) []web.RunStep {
	var all []web.RunStep
	for _, s := range a.Steps {
		all = append(all, web.RunStep{Name: web.Outside(s.Name), State: string(a.StepState(s)), Refused: a.StepExecutions(s.Name) > 0,
			Sent: a.StepExecutions(s.Name), Key: web.Outside(action.StepKey(a.ExecutionKey, s.Name))})
	}
	return all
}
