package handlers

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// The same command several times at the same moment, on what does not exist yet:
// it is made once, and every answer is that one.
func TestTheSameAtOnceIsMadeOnce(t *testing.T) {
	e := newEnv(t)
	e.lists()
	ops, admin := e.as(e.Ops()), e.as(e.Admin)
	for round := range 3 {
		name := fmt.Sprintf("new-%d", round)
		at := func(ago time.Duration) string { return time.Now().UTC().Add(-ago).Format(formTime) }
		run := formOf("op", newOp(), "tool", listable, "from", at(time.Hour), "to", at(-time.Hour))
		person := formOf("op", newOp(), "name", "New", "username", name, "roles", people.RoleSupport)
		client := formOf("op", newOp(), "name", name, "owner", e.Admin.ID, "roles", people.RoleReader)
		pause := formOf("op", action.NewID("pau"), "kind", "scope", "value", name, "reason", "Stop.")
		key := action.NewID("key")
		body := proposal(stage.SetPrice, stage.Product(), 7)
		tool := fmt.Sprintf("shop.at_once_%d", round)
		for what, send := range map[string]func() answer{
			"run":    func() answer { return ops.send("/reconciliation", run) },
			"person": func() answer { return admin.send("/people", person) },
			"client": func() answer { return admin.send("/clients", client) },
			"pause":  func() answer { return admin.send("/pauses", pause) },
			"task": func() answer {
				return e.post(people.RoleProposer, "/v1/tasks", budget(api.TaskLimits{Writes: new(1)}), "Idempotency-Key", key)
			},
			"action": func() answer { return e.post(people.RoleProposer, "/v1/actions", body, "Idempotency-Key", key) },
			"tool":   func() answer { return e.putTool(tool, "application/yaml", stage.Contract(tool, "", "")) },
		} {
			var answers [4]answer
			var group sync.WaitGroup
			for i := range answers {
				group.Go(func() { answers[i] = send() })
			}
			group.Wait()
			first := answers[0].header.Get("Location")
			for _, a := range answers {
				if to := a.header.Get("Location"); a.status >= 400 || a.status == http.StatusSeeOther && to != first {
					t.Errorf("%s: %d to %q, another to %q: %s", what, a.status, to, first, a.text())
				}
			}
		}
	}
}
