package handlers

import (
	"context"
	"math"
	"net/http"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/web"
)

// TaskReads is what handlers read of tasks past the domain.
type TaskReads interface {
	// Tasks lists tasks, newest first, and the database's clock.
	Tasks(ctx context.Context, f approvals.TaskFilter) ([]approvals.ListedTask, time.Time, error)
	// TaskUse returns what a task's actions count for in its budget.
	TaskUse(ctx context.Context, id string) (approvals.TaskUse, error)
}

// taskRoutes are budgets, for programs. Only people extend and end them.
func taskRoutes(proposer access) []route {
	return []route{
		{post, "/v1/tasks", "openTask", proposer, (*server).openTask, 0, &call{status: 201, body: api.OpenTask{}, answer: api.Task{}, headers: idempotencyHeader(),
			about:   "Open a task: a group of actions under one budget. Proposals name it as task_id. A limit that is reached pauses it.",
			refuses: changing(action.MissingIdempotencyKey, action.IdempotencyKeyReused)}},
		{get, "/v1/tasks/{task}", "getTask", everyKey(), (*server).getTask, 0, &call{status: 200, answer: api.Task{}, query: langParam(),
			about: "A task: what is used of its budget and, once it has stopped, what is done, what is not, what is not known, and what may be said."}},
		{post, "/v1/tasks/{task}/spend", "spend", proposer, (*server).spend, 0, &call{status: 201, body: api.Spend{}, answer: api.Task{},
			about:   "Ask for a round of the program's loop, and tell what it has cost so far. Refused when a limit is reached: then the loop stops.",
			refuses: changing(action.IdempotencyKeyInUse, action.BudgetExhausted, action.WrongState)}},
	}
}

// openTask opens a task.
func (s *server) openTask(w http.ResponseWriter, r *http.Request, c caller) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	body, err := decode[api.OpenTask](w, r)
	if err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "The task is refused. The errors say where.")
	wantText(refusal, "/title", body.Title, true)
	wantText(refusal, "/cost_unit", body.CostUnit, false)
	if len(refusal.Errors) > 0 {
		return refusal
	}
	asked := approvals.NewTask{Key: key, Title: body.Title, Unit: body.CostUnit, Limits: approvals.Limits{Decisions: body.Limits.Decisions,
		Reads: body.Limits.Reads, Writes: body.Limits.Writes, Elapsed: lifeOf(body.Limits.Elapsed)}}
	if body.Limits.Cost != nil {
		asked.Limits.Cost = new(costOf(*body.Limits.Cost))
	}
	k, now, replayed, err := s.Approvals.OpenTask(r.Context(), *c.client, asked)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/tasks/"+k.ID)
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return s.respondTask(w, r, c, http.StatusCreated, k, now, web.English)
}

// costOf is an amount as it is counted. What is too large for that is too large
// for any limit.
func costOf(amount float64) approvals.Cost {
	if math.Abs(amount) > 1e12 {
		return math.MaxInt64
	}
	return approvals.Cost(math.Round(amount * approvals.CostUnit))
}

func amountOf(c approvals.Cost) float64 { return float64(c) / approvals.CostUnit }

// getTask shows a task.
func (s *server) getTask(w http.ResponseWriter, r *http.Request, c caller) error {
	lang, err := askedLang(r)
	if err != nil {
		return err
	}
	k, now, err := s.Approvals.Task(r.Context(), parameter(r, "task"))
	if err != nil {
		return err
	}
	return s.respondTask(w, r, c, http.StatusOK, k, now, lang)
}

// spend asks for a round and tells what was spent.
func (s *server) spend(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Spend](w, r)
	if err != nil {
		return err
	}
	k, now, err := s.Approvals.Spend(r.Context(), *c.client, parameter(r, "task"), body.SpendID,
		approvals.Spent{Decisions: body.Decisions, Reads: body.Reads, Cost: costOf(body.Cost)})
	if err != nil {
		return err
	}
	return s.respondTask(w, r, c, http.StatusCreated, k, now, web.English)
}

func (s *server) respondTask(w http.ResponseWriter, r *http.Request, c caller, status int, k approvals.Task, now time.Time, lang web.Lang) error {
	v, err := s.lookAtTask(r.Context(), c, k, now)
	if err != nil {
		return err
	}
	shown, err := v.api(r.Context(), lang)
	if err != nil {
		return err
	}
	return respond(w, status, shown)
}

func (s *server) taskPage(id string) string { return s.PublicURL + "/tasks/" + id }

// maxTaskItems is how many actions of a task are looked at: the newest.
const maxTaskItems = 200

// taskView is everything that a task is shown from.
type taskView struct {
	server  *server
	k       approvals.Task
	now     time.Time
	use     approvals.TaskUse
	actions []action.Action // that the viewer may see, newest first
}

// lookAtTask reads what belongs to a task. NotFound when the viewer may not see it:
// it is theirs, or they see everything there, or an action of it.
func (s *server) lookAtTask(ctx context.Context, c caller, k approvals.Task, now time.Time) (taskView, error) {
	v := taskView{server: s, k: k, now: now}
	viewer := c.viewer()
	var err error
	if v.actions, _, err = s.Reads.Actions(ctx, approvals.Filter{Viewer: viewer, TaskID: k.ID, Limit: maxTaskItems}); err != nil {
		return v, err
	}
	everything := viewer.All || viewer.Limited && len(viewer.Tools)+len(viewer.Scopes) == 0
	if !everything && k.Client.ID != viewer.ClientID && len(v.actions) == 0 {
		return v, noTask()
	}
	v.use, err = s.TaskReads.TaskUse(ctx, k.ID)
	return v, err
}

// api is what programs are told of a task.
func (v taskView) api(ctx context.Context, lang web.Lang) (api.Task, error) {
	k := v.k
	out := api.Task{ID: k.ID, Title: k.Title, State: string(k.StateAt(v.now)), Version: k.Version, Client: k.Client.ID, CreatedAt: k.CreatedAt.UTC(),
		CostUnit: orNull(k.Unit), Limits: api.TaskLimits{Decisions: k.Limits.Decisions, Reads: k.Limits.Reads, Writes: k.Limits.Writes},
		Used: v.used(), Actions: v.use.Actions, Links: api.TaskLinks{Page: v.server.taskPage(k.ID)}}
	if k.EndsAt != nil {
		out.EndsAt = new(k.EndsAt.UTC())
		out.Limits.Elapsed = new(api.Duration(*k.Limits.Elapsed))
	}
	if k.Limits.Cost != nil {
		out.Limits.Cost = new(amountOf(*k.Limits.Cost))
	}
	if out.State == string(approvals.TaskOpen) {
		return out, nil
	}
	exit, err := v.exit(ctx, lang)
	out.Exit = &exit
	return out, err
}

func (v taskView) used() api.TaskUsed {
	used := api.TaskUsed{Decisions: v.k.Spent.Decisions, Reads: v.k.Spent.Reads + v.use.Reads, Writes: v.use.Writes,
		Elapsed: api.Duration(v.stoppedAt().Sub(v.k.CreatedAt).Truncate(time.Millisecond)), Cost: amountOf(v.k.Spent.Cost)}
	for _, a := range v.actions {
		used.Checks += len(a.Observations) + len(a.Asks)
	}
	return used
}

// stoppedAt is when the task stopped, or now.
func (v taskView) stoppedAt() time.Time {
	switch {
	case v.k.State != approvals.TaskOpen:
		return v.k.Since
	case v.k.ReachedAt(v.now) != "":
		return *v.k.EndsAt
	}
	return v.now
}

// exit is where the task stopped.
func (v taskView) exit(ctx context.Context, lang web.Lang) (api.TaskExit, error) {
	exit := api.TaskExit{Limit: string(v.k.ReachedAt(v.now)), At: v.stoppedAt().UTC(), Done: []api.TaskItem{}, Accepted: []api.TaskItem{},
		Undone: []api.TaskItem{}, Unknown: []api.TaskItem{}, More: v.use.Actions > len(v.actions), AsOf: v.now.UTC()}
	if v.k.State == approvals.TaskEnded {
		exit.By, exit.Reason = orNull(v.k.By.Name), orNull(v.k.Note)
	}
	for _, a := range v.actions {
		var k *contract.Contract
		if a.Unreadable == nil {
			tool, err := v.server.catalogue.Version(ctx, a.Tool, a.ToolVersion)
			if err != nil {
				return exit, err
			}
			k = tool.Contract
		}
		item := api.TaskItem{ActionID: a.ID, Tool: a.Tool, Target: apiTarget(a.Target), State: string(a.StateAt(v.now)), CaseID: orNull(a.CaseID()),
			Statement: statementOf(a, k, v.now, lang)}
		switch partOf(a, v.now) {
		case web.PartDone:
			exit.Done = append(exit.Done, item)
		case web.PartAccepted:
			exit.Accepted = append(exit.Accepted, item)
		case web.PartUnknown, web.PartRunning:
			exit.Unknown = append(exit.Unknown, item)
		default:
			exit.Undone = append(exit.Undone, item)
		}
	}
	said := v.statement()
	exit.MaySay, exit.MustNotSay = said.MaySay(lang), said.MustNotSay(lang)
	return exit, nil
}

// partOf says what has become of an action, for the sum of its task.
func partOf(a action.Action, now time.Time) web.TaskPart {
	if a.Unreadable != nil {
		return web.PartUnknown
	}
	switch a.StateAt(now) {
	case action.Applied:
		return web.PartDone
	case action.Accepted:
		return web.PartAccepted
	case action.Executing:
		return web.PartRunning
	case action.ResultUnknown:
		return web.PartUnknown
	case action.Draft, action.Proposed, action.Confirmed:
		return web.PartWaiting
	}
	return web.PartUndone
}

// statement is what may be said about the whole.
func (v taskView) statement() web.TaskStatement {
	said := web.TaskStatement{Limit: string(v.k.ReachedAt(v.now)), More: v.use.Actions > len(v.actions)}
	for _, a := range v.actions {
		said.Count(partOf(a, v.now))
	}
	return said
}
