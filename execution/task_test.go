package execution_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
)

// agent is the program that proposes.
func (b *bench) agent() *execution.Client {
	b.T.Helper()
	_, key, err := b.People.CreateKey(b.T.Context(), stage.System(action.NewID("req")), b.Agent.ID, 0)
	b.must(err)
	client, err := execution.NewClient(b.console.URL, execution.NewSecret(key), execution.Options{})
	b.must(err)
	return client
}

// loop opens a task.
func (b *bench) loop(client *execution.Client, l api.TaskLimits) *execution.Task {
	b.T.Helper()
	task, err := client.OpenTask(b.T.Context(), api.OpenTask{Title: "Tell the members of c-a", Limits: l, CostUnit: "EUR"}, action.NewSecret(8))
	b.must(err)
	return task
}

func letter(id string) api.Propose {
	return api.Propose{Tool: sendTool, Actor: &api.Actor{ID: "u-a"}, Payload: json.RawMessage(note(id, "公告")), Entry: "chat"}
}

// stand reads where a task stands.
func (b *bench) stand(k *execution.Task) api.Task {
	b.T.Helper()
	s, err := k.Stand(b.T.Context(), "en")
	b.must(err)
	return s
}

func listed(items []api.TaskItem) (ids []string) {
	for _, i := range items {
		ids = append(ids, i.ActionID)
	}
	return ids
}

// The budget of the handbook: 5 decisions, 3 reads, 1 write, 30 s of waiting. What
// comes first stops the loop; what is done and what is not is listed, and nobody
// may say that what was not sent was sent.
func TestC6_TheBudgetOfTheHandbook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(b.config())
	tools, err := execution.NewTools(b.config(), execution.Options{})
	b.must(err)
	ctx := t.Context()
	limits := func(elapsed time.Duration) api.TaskLimits {
		return api.TaskLimits{Decisions: new(5), Reads: new(3), Writes: new(1), Elapsed: new(api.Duration(elapsed))}
	}
	const plenty = time.Hour // where it is not the time that stops the loop, on however slow a machine

	// A loop that finds no end: it looks up the rule, sends, and wants to send again.
	client := b.agent()
	task := b.loop(client, limits(plenty))
	rounds, reads := 0, 0
	var first, second string
	for task.Round(ctx) {
		rounds++
		if rounds <= 2 && task.Read(ctx) {
			_, err := tools.Ask(ctx, execution.Question{Tool: ruleTool, ActorID: "u-a", Payload: []byte(`{}`)})
			b.must(err)
			reads++
		}
		switch a, err := task.Propose(ctx, letter(fmt.Sprintf("m-%d", rounds)), ""); {
		case err == nil:
			first = a.ID
			b.approve(b.get(a.ID))
			b.awaitState(a.ID, action.Accepted)
		case !execution.HasCode(err, action.BudgetExhausted):
			t.Fatal(err)
		}
	}
	stand := b.stand(task)
	if rounds != 2 || reads != 2 || task.Err() != nil || stand.State != "paused" || stand.Exit.Limit != "writes" {
		t.Fatalf("%d rounds, %d reads, %v, %+v", rounds, reads, task.Err(), stand)
	}
	if u := stand.Used; u.Decisions != 2 || u.Reads != 2 || u.Writes != 1 || u.Checks == 0 {
		t.Errorf("used %+v", u)
	}
	if !slices.Equal(listed(stand.Exit.Accepted), []string{first}) || len(stand.Exit.Done)+len(stand.Exit.Undone)+len(stand.Exit.Unknown) != 0 ||
		!strings.Contains(strings.Join(stand.Exit.MaySay, " "), "not proven") || !slices.Contains(stand.Exit.MustNotSay, "done") {
		t.Errorf("%+v", stand.Exit)
	}
	b.wrote("m-1", 1, 1)
	b.wrote("m-2", 0, 0)

	// Five rounds and no more; three reads and no more.
	task = b.loop(client, limits(plenty))
	for rounds = 0; task.Round(ctx); rounds++ {
	}
	if s := b.stand(task); rounds != 5 || s.Exit.Limit != "decisions" || len(s.Exit.MaySay) == 0 {
		t.Errorf("%d rounds, %+v", rounds, s)
	}
	task = b.loop(client, limits(plenty))
	for reads = 0; task.Read(ctx); reads++ {
	}
	if s := b.stand(task); reads != 3 || s.Exit.Limit != "reads" || task.Round(ctx) {
		t.Errorf("%d reads, %+v", reads, s)
	}

	// Half a minute in which nobody decides: later, an approval runs nothing.
	task = b.loop(client, limits(30*time.Second))
	a, err := task.Propose(ctx, letter("m-9"), "")
	b.must(err)
	second = a.ID
	late := b.Open(storetest.Skewed(b.DSN, time.Minute), store.Options{MaxConns: 2})
	b.must(late.Approvals.SweepTasks(ctx, late.DB.DueTasks, 10))
	b.approve(b.get(second))
	waiting, err := client.Get(ctx, second)
	b.must(err)
	executor, err := execution.NewClient(b.console.URL, execution.NewSecret(b.key), execution.Options{})
	b.must(err)
	_, err = executor.Claim(ctx, waiting.Confirmation.Ref, api.Claim{ClaimID: "late", ProposalHash: waiting.ProposalHash})
	if p, ok := execution.AsProblem(err); !ok || p.Reason != "elapsed" || p.Status != 429 {
		t.Errorf("claimed after the time was up: %v", err)
	}
	stand = b.stand(task)
	if stand.State != "paused" || stand.Exit.Limit != "elapsed" || !slices.Equal(listed(stand.Exit.Undone), []string{second}) ||
		stand.Exit.Undone[0].Statement.Level != "not_submitted" || !slices.Contains(stand.Exit.MustNotSay, "done") {
		t.Errorf("%+v", stand)
	}
	b.wrote("m-9", 0, 0)
	if a := b.get(second); a.State != action.Confirmed || len(a.Attempts) != 0 {
		t.Errorf("%s", story(a))
	}
}

// A loop obeys: it stops at its cost too, and tells what it cost to the end. What
// stops it besides is no budget.
func TestA11_TheLibraryObeys(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.agent()
	task := b.loop(client, api.TaskLimits{Cost: new(0.1)})
	b.fail("spend", once(2, answerLost)) // told again, with the same id
	rounds := 0
	for ; task.Round(t.Context()); rounds++ {
		task.Cost(0.04)
	}
	stand := b.stand(task)
	if rounds != 3 || task.Err() != nil || stand.Exit.Limit != "cost" || stand.Used.Cost != 0.12 || stand.Used.Decisions != 3 {
		t.Errorf("%d rounds, %v, %+v", rounds, task.Err(), stand)
	}
	if _, err := task.Propose(t.Context(), letter("m-1"), ""); !execution.HasCode(err, action.BudgetExhausted) {
		t.Errorf("proposed all the same: %v", err)
	}
	other := b.loop(client, api.TaskLimits{Decisions: new(1)})
	again := client.Task(other.ID) // as after a restart
	if !other.Round(t.Context()) || again.Round(t.Context()) || again.Err() != nil {
		t.Error("a restart has the rounds anew")
	}
	lost := client.Task(action.NewID("tsk"))
	if lost.Round(t.Context()) || !execution.HasCode(lost.Err(), action.NotFound) || lost.Round(t.Context()) {
		t.Errorf("goes on without a task: %v", lost.Err())
	}
	var p *execution.Problem
	if _, err := lost.Stand(t.Context(), "en"); !errors.As(err, &p) {
		t.Errorf("%v", err)
	}
}
