package handlers

import (
	"context"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// doneBefore are the steps that the actions which this one goes on with have done,
// as far as the viewer may see those.
func (s *server) doneBefore(ctx context.Context, v people.Viewer, a action.Action) ([]web.RunStep, error) {
	var done []web.RunStep
	for id := a.Links.Resumes; id != "" && len(done) < maxDoneBefore; {
		snap, err := s.Reads.Snapshot(ctx, id)
		if err != nil {
			return nil, err
		}
		if !v.Sees(approvals.SubjectOf(snap.Action, "")) {
			break
		}
		var own []web.RunStep
		for _, step := range snap.Action.Steps {
			if step.Done() {
				own = append(own, web.RunStep{Name: web.Outside(step.Name), State: string(action.StepDone), Earlier: id, At: snap.Action.StepDoneAt(step)})
			}
		}
		done, id = append(own, done...), snap.Action.Links.Resumes
	}
	return done, nil
}

// maxDoneBefore bounds how many steps of earlier actions a page names.
const maxDoneBefore = 50

// runStepsOf are the steps of an action as pages show them.
func runStepsOf(a action.Action) []web.RunStep {
	var all []web.RunStep
	for _, s := range a.Steps {
		all = append(all, web.RunStep{Name: web.Outside(s.Name), State: string(a.StepState(s)), Refused: a.StepExecutions(s.Name) > 0,
			Sent: a.StepExecutions(s.Name), Key: web.Outside(action.StepKey(a.ExecutionKey, s.Name))})
	}
	return all
}
