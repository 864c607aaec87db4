package execution

import (
	"context"
	"net/http"
	"slices"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// tellEvery is how often an executor tells the console that it is at work.
const tellEvery = 15 * time.Second

// NoteExecutor tells the console what an executor process does and which
// business systems do not answer it, for people to see.
func (c *Client) NoteExecutor(ctx context.Context, e api.Executor) error {
	return c.do(ctx, request{method: http.MethodPost, path: []string{"v1", "executors"}, body: e}, nil)
}

// Systems tells of each business system whether it is left alone because it
// does not answer, in the order of their addresses.
func (t *Tools) Systems() []api.SystemHealth {
	all := make([]api.SystemHealth, 0, len(t.breakers))
	for system, b := range t.breakers {
		all = append(all, b.health(system))
	}
	slices.SortFunc(all, func(a, b api.SystemHealth) int {
		if a.System < b.System {
			return -1
		}
		return 1
	})
	return all
}

// tell says what this executor is about, now and then, and as soon as a breaker
// changes. Nothing depends on it, so what cannot be told is left untold.
func (e *Executor) tell(ctx context.Context) {
	said := api.Executor{Instance: action.NewSecret(10), Name: e.config.Name, Tools: e.config.patterns()}
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		said.Systems = e.Systems()
		if err := e.client.NoteExecutor(ctx, said); err != nil && ctx.Err() == nil {
			e.opt.Logger.Debug("the console was not told how the business systems answer", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.moved:
		case <-ticker.C:
		}
	}
}
