package handlers

import (
	"net/http"

	"countersign/action"
	"countersign/web"
)

// showGuide leads through what the console is for, a step at a time.
func (s *server) showGuide(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.guide(w, r, c, nil, http.StatusOK)
}

func (s *server) guide(w http.ResponseWriter, r *http.Request, c caller, refused *web.Refusal, status int) error {
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	steps, err := s.Demo.Steps(r.Context())
	if err != nil {
		return err
	}
	p := web.GuidePage{Op: newOp(), Refused: refused}
	for i, step := range steps {
		shown := web.GuideStep{Name: step.Name, Turns: step.Turns, InPart: step.InPart, Turned: step.Turned, Over: step.Over != nil && step.Over(r.Context())}
		if i+1 < len(steps) {
			shown.Next = steps[i+1].Name
		}
		if shown.Main, err = s.played(r, c, step.ActionID); err != nil {
			return err
		}
		if shown.Rest, err = s.played(r, c, step.RestID); err != nil {
			return err
		}
		p.Steps = append(p.Steps, shown)
	}
	return s.show(speaking(r, c, now), w, status, web.GuideView(s.formFrame(r, c, web.Guide, "/demo"), p))
}

// played is how far an action of a step is, nil when there is none. What the
// viewer may not see stays a step that was not played.
func (s *server) played(r *http.Request, c caller, id string) (*web.GuideAction, error) {
	if id == "" {
		return nil, nil
	}
	snap, err := s.see(r.Context(), c, id)
	if action.IsCode(err, action.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := actionView{a: snap.Action, now: snap.Now, lang: string(langOf(r, c))}
	if v.tool, err = s.catalogue.Version(r.Context(), v.a.Tool, v.a.ToolVersion); err != nil {
		return nil, err
	}
	most := v.tool.Contract.Execution.Proves == action.ProvesAccepted
	return &web.GuideAction{ID: id, Status: v.status(), CaseID: v.a.CaseID(), Final: most && v.a.State == action.Accepted}, nil
}

// playStep makes a step happen, and shows what came of it.
func (s *server) playStep(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	turn := fields.Get("move") == "turn"
	id, err := s.Demo.Play(r.Context(), fields.Get("step"), turn, fields.Get("op"))
	switch {
	case err == nil && turn:
		return seeOther(w, r, "/demo#"+fields.Get("step"))
	case err == nil:
		return seeOther(w, r, "/actions/"+id)
	case !onForm(err):
		return err
	}
	return s.guide(w, r, c, refusalOf(err), refusedStatus(w, r, err))
}

// guideBack is the way back to the step of the guide that one of these actions
// belongs to, the first that has any; nil for none.
func (s *server) guideBack(r *http.Request, actions ...string) *web.GuideBack {
	if s.Demo == nil {
		return nil
	}
	steps, err := s.Demo.Steps(r.Context())
	if err != nil {
		return nil
	}
	for _, id := range actions {
		for i, step := range steps {
			if id != "" && (id == step.ActionID || id == step.RestID) {
				return &web.GuideBack{Step: i + 1, Name: step.Name}
			}
		}
	}
	return nil
}
