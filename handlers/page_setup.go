package handlers

import (
	"net/http"

	"countersign/action/contract"
	"countersign/people"
	"countersign/web"
)

// firstSteps says what an empty console needs before something can be
// approved: somebody who may decide, a tool, a program, and a
// proposal. tools is how many there are.
func (s *server) firstSteps(r *http.Request, c caller, tools int) (*web.Checklist, error) {
	persons, err := s.Directory.Persons(r.Context())
	if err != nil {
		return nil, err
	}
	clients, err := s.Directory.Clients(r.Context())
	if err != nil {
		return nil, err
	}
	steps := web.Checklist{Tools: tools, Admin: c.session.Person.Has(people.RoleAdmin)}
	for _, p := range persons {
		if p.Disabled == nil && len(p.Decides()) > 0 {
			steps.People++
		}
	}
	for _, client := range clients {
		if client.Disabled == nil {
			steps.Clients++
		}
	}
	err = s.eachTool(r.Context(), "", func(t listedTool) bool {
		if !t.Active {
			return true
		}
		write := t.Contract.Mode == contract.Write
		if steps.Curl.Empty() || write {
			steps.Curl = web.Outside(s.trial(t.Contract))
		}
		return !write
	})
	return &steps, err
}
