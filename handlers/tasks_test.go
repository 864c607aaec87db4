package handlers

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

func budget(l api.TaskLimits) api.OpenTask {
	return api.OpenTask{Title: "Answer chat 8841", Limits: l, CostUnit: "EUR"}
}

// task opens a task with these limits.
func (e *env) task(l api.TaskLimits) api.Task {
	e.T.Helper()
	return into[api.Task](e.post(people.RoleProposer, "/v1/tasks", budget(l), "Idempotency-Key", action.NewID("key")).want(201))
}

// under proposes something under a task.
func (e *env) under(k api.Task, tool string) answer {
	e.T.Helper()
	return e.propose(with(proposal(tool, stage.Product(), 105), "task_id", k.ID))
}

// spend asks for something under a task.
func (e *env) spend(k api.Task, s api.Spend) answer {
	e.T.Helper()
	if s.SpendID == "" {
		s.SpendID = action.NewID("req")
	}
	return e.post(people.RoleProposer, "/v1/tasks/"+k.ID+"/spend", s)
}

// look reads a task.
func (e *env) look(k api.Task) api.Task {
	e.T.Helper()
	return into[api.Task](e.get(people.RoleProposer, "/v1/tasks/"+k.ID).want(200))
}

// stopped checks that a task's budget refuses, and for which limit.
func (a answer) stopped(k api.Task, limit string) {
	a.t.Helper()
	if p := a.refused(action.BudgetExhausted); p.Reason != limit || p.Args["limit"] != limit || p.Args["task"] != k.ID {
		a.t.Errorf("refused for %q %v, want %s", p.Reason, p.Args, limit)
	}
}

func TestOpeningTasks(t *testing.T) {
	e := newEnv(t)
	key := action.NewID("key")
	limits := api.TaskLimits{Decisions: new(5), Reads: new(3), Writes: new(1), Elapsed: new(api.Duration(30 * time.Second)), Cost: new(0.5)}
	made := e.post(people.RoleProposer, "/v1/tasks", budget(limits), "Idempotency-Key", key).want(201)
	k := into[api.Task](made)
	if k.State != "open" || k.Exit != nil || k.Client != e.Agent.ID || *k.Limits.Decisions != 5 || *k.Limits.Cost != 0.5 || *k.CostUnit != "EUR" ||
		k.EndsAt.Sub(k.CreatedAt) != 30*time.Second || made.header.Get("Location") != "/v1/tasks/"+k.ID {
		t.Errorf("%+v", k)
	}
	again := e.post(people.RoleProposer, "/v1/tasks", budget(limits), "Idempotency-Key", key).want(201)
	if into[api.Task](again).ID != k.ID || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("opened twice: %s", again.body)
	}
	limits.Writes = new(2)
	e.post(people.RoleProposer, "/v1/tasks", budget(limits), "Idempotency-Key", key).refused(action.IdempotencyKeyReused)

	for pointer, body := range map[string]api.OpenTask{
		"/title":            {Limits: limits},
		"/limits":           {Title: "x"},
		"/limits/decisions": budget(api.TaskLimits{Decisions: new(-1)}),
		"/limits/elapsed":   budget(api.TaskLimits{Elapsed: new(api.Duration(time.Millisecond))}),
		"/limits/cost":      budget(api.TaskLimits{Cost: new(1e300)}),
	} {
		at(t, e.post(people.RoleProposer, "/v1/tasks", body, "Idempotency-Key", action.NewID("key")).refused(action.InvalidArgument), pointer)
	}
	e.post(people.RoleProposer, "/v1/tasks", budget(limits)).refused(action.MissingIdempotencyKey)

	other := e.Client("other agent", e.Admin, people.RoleProposer)
	key = e.key(other, 0)
	theirs := with(proposal(stage.SetPrice, stage.Product(), 105), "task_id", k.ID)
	for name, task := range map[string]string{"another's": k.ID, "none": action.NewID("tsk"), "misspelt": "task-1"} {
		p := e.do(request{method: post, path: "/v1/actions", key: key, body: with(theirs, "task_id", task), header: pairs([]string{"Idempotency-Key", action.NewID("key")})})
		t.Log(name)
		at(t, p.refused(action.InvalidArgument), "/task_id")
	}
	e.do(request{method: get, path: "/v1/tasks/" + k.ID, key: key}).refused(action.NotFound)
	e.do(request{method: post, path: "/v1/tasks/" + k.ID + "/spend", key: key, body: api.Spend{SpendID: "s", Decisions: 1}}).refused(action.NotFound)
}

// Every limit stops the loop, says which it was, and leaves nothing open: not
// for what else the loop might try.
func TestA11_EveryLimitStopsTheLoopAndReports(t *testing.T) {
	e := newEnv(t)
	later := e.later(11 * time.Minute)
	for limit, c := range map[string]struct {
		limits api.TaskLimits
		more   func(k api.Task) answer
		times  int
	}{
		"decisions": {api.TaskLimits{Decisions: new(5)}, func(k api.Task) answer { return e.spend(k, api.Spend{Decisions: 1, Cost: 0.01}) }, 5},
		"reads":     {api.TaskLimits{Reads: new(3)}, func(k api.Task) answer { return e.under(k, stage.ReadPrice) }, 3},
		"writes":    {api.TaskLimits{Writes: new(1)}, func(k api.Task) answer { return e.under(k, stage.SetPrice) }, 1},
		"cost":      {api.TaskLimits{Cost: new(0.3)}, func(k api.Task) answer { return e.spend(k, api.Spend{Decisions: 1, Cost: 0.1}) }, 2},
		"elapsed": {api.TaskLimits{Elapsed: new(api.Duration(10 * time.Minute))}, func(k api.Task) answer {
			return send1(t, http.DefaultClient, later.URL, request{method: post, path: "/v1/tasks/" + k.ID + "/spend", key: e.keys[people.RoleProposer],
				body: api.Spend{SpendID: action.NewID("req"), Decisions: 1}})
		}, 0},
	} {
		k := e.task(c.limits)
		first := with(proposal(stage.SetPrice, stage.Product(), 105), "task_id", k.ID)
		if limit != "writes" {
			e.post(people.RoleProposer, "/v1/actions", first, "Idempotency-Key", "first-"+limit).want(201)
		}
		for range c.times {
			c.more(k).want(201)
		}
		if now := e.look(k); now.State != "open" || now.Exit != nil {
			t.Errorf("%s: stopped before it was asked for too much: %+v", limit, now)
		}
		c.more(k).stopped(k, limit)
		version := e.look(k).Version
		c.more(k).stopped(k, limit)
		e.under(k, stage.SetPrice).stopped(k, limit)
		e.under(k, stage.ReadPrice).stopped(k, limit)
		e.propose(with(with(first, "draft", true), "payload", map[string]any{"product_id": stage.Product()})).stopped(k, limit)
		e.spend(k, api.Spend{Reads: 1}).stopped(k, limit)
		if limit != "writes" { // what was proposed before is answered as before
			e.post(people.RoleProposer, "/v1/actions", first, "Idempotency-Key", "first-"+limit).want(201)
		}
		stopped := e.look(k)
		if stopped.State != "paused" || stopped.Exit == nil || stopped.Exit.Limit != limit || len(stopped.Exit.MaySay) == 0 || len(stopped.Exit.MustNotSay) == 0 {
			t.Errorf("%s: %+v", limit, stopped)
		}
		if limit != "cost" && limit != "decisions" && stopped.Version != version {
			t.Errorf("%s: a loop that goes on being refused writes on: version %d, then %d", limit, version, stopped.Version)
		}
	}
}

// What was spent is told once, however often; and what it cost is never lost.
func TestSpendingIsToldOnce(t *testing.T) {
	e := newEnv(t)
	k := e.task(api.TaskLimits{Decisions: new(2), Cost: new(1.0)})
	s := api.Spend{SpendID: "round-1", Decisions: 1, Cost: 0.25}
	for range 3 {
		e.spend(k, s).want(201)
	}
	e.spend(k, api.Spend{SpendID: "round-1", Decisions: 2}).refused(action.IdempotencyKeyInUse)
	e.spend(k, api.Spend{SpendID: "nothing"}).refused(action.InvalidArgument)
	e.spend(k, api.Spend{SpendID: "less", Cost: -1}).refused(action.InvalidArgument)
	e.spend(k, api.Spend{SpendID: "told", Cost: 0.25}).want(201)
	e.spend(k, api.Spend{SpendID: "round-2", Decisions: 1}).want(201)
	for range 2 {
		e.spend(k, api.Spend{SpendID: "round-3", Decisions: 1, Cost: 0.3}).stopped(k, "decisions")
	}
	e.spend(k, api.Spend{SpendID: "late", Cost: 0.4}).want(201) // tells, and asks for nothing
	e.spend(k, s).want(201)
	if k := e.look(k); k.State != "paused" || k.Used.Decisions != 2 || k.Used.Cost != 1.2 {
		t.Errorf("%+v", k)
	}
}

// However many ask at once, what is left is given once.
func TestABudgetHoldsWhenManyAskAtOnce(t *testing.T) {
	e := newEnv(t)
	k := e.task(api.TaskLimits{Writes: new(1), Reads: new(2), Decisions: new(3)})
	race := func(ask func() answer) (given int) {
		answers := make(chan answer, 20)
		var group sync.WaitGroup
		for range cap(answers) {
			group.Go(func() { answers <- ask() })
		}
		group.Wait()
		close(answers)
		for a := range answers {
			if a.status == http.StatusCreated {
				given++
				continue
			}
			a.refused(action.BudgetExhausted)
		}
		return given
	}
	if n := race(func() answer { return e.spend(k, api.Spend{Decisions: 1}) }); n != 3 {
		t.Errorf("%d of 3 rounds", n)
	}
	k = e.task(api.TaskLimits{Reads: new(2)})
	i := 0
	var mu sync.Mutex
	if n := race(func() answer {
		mu.Lock()
		i++
		own := i%2 == 0
		mu.Unlock()
		if own {
			return e.spend(k, api.Spend{Reads: 1})
		}
		return e.under(k, stage.ReadPrice)
	}); n != 2 {
		t.Errorf("%d of 2 reads", n)
	}
	k = e.task(api.TaskLimits{Writes: new(1)})
	if n := race(func() answer { return e.under(k, stage.SetPrice) }); n != 1 {
		t.Errorf("%d of 1 write", n)
	}
	if now := e.look(k); now.Used.Writes != 1 || now.State != "paused" {
		t.Errorf("%+v", now)
	}
	k = e.task(api.TaskLimits{Writes: new(1)}) // the same wish, sent many times, is one
	same := with(proposal(stage.SetPrice, stage.Product(), 105), "task_id", k.ID)
	if n := race(func() answer {
		return e.post(people.RoleProposer, "/v1/actions", same, "Idempotency-Key", "same")
	}); n != 20 {
		t.Errorf("%d of 20 repetitions", n)
	}
	if now := e.look(k); now.Used.Writes != 1 || now.State != "open" {
		t.Errorf("repetitions used up the budget: %+v", now)
	}
}

// A budget that is used up stops what was not sent, and nothing of what finds out
// what became of the rest.
func TestABudgetStopsBeforeSendingNeverAfter(t *testing.T) {
	e := newEnv(t)
	k := e.task(api.TaskLimits{Writes: new(4)})
	approved := func() api.Action {
		a := into[api.Action](e.under(k, stage.SetPrice).want(201))
		e.Approve(e.Read(a.ID), e.Mia)
		return into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200))
	}
	claim := func(a api.Action, id string) answer {
		return e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, id))
	}
	attempt := func(a api.Action, id string) answer {
		return e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: id + "-1", ClaimID: id, Fingerprint: "f"})
	}
	waiting, claimed, sent, open := approved(), approved(), approved(), into[api.Action](e.under(k, stage.SetPrice).want(201))
	claim(claimed, "c-claimed").want(200)
	claim(sent, "c-sent").want(200)
	attempt(sent, "c-sent").want(201)
	if sent.TaskID == nil || *sent.TaskID != k.ID || sent.Links.Task == nil || *sent.Links.Task != k.Links.Page {
		t.Errorf("an action without its task: %v %v", sent.TaskID, sent.Links.Task)
	}
	offered := func() (ids []string) {
		for _, w := range into[api.WorkList](e.get(people.RoleExecutor, "/v1/work").want(200)).Items {
			ids = append(ids, w.ActionID)
		}
		return ids
	}
	if !slices.Contains(offered(), waiting.ID) {
		t.Error("what is approved is not offered")
	}
	e.under(k, stage.SetPrice).stopped(k, "writes")

	claim(waiting, "c-waiting").stopped(k, "writes")
	attempt(claimed, "c-claimed").stopped(k, "writes")
	if slices.Contains(offered(), waiting.ID) {
		t.Error("what no budget lets run is offered")
	}
	e.post(people.RoleProposer, "/v1/actions/"+open.ID+"/revisions", api.Revise{Payload: open.Payload}, "If-Match", quotedVersion(open.Version)).stopped(k, "writes")
	claim(sent, "c-sent").want(200) // answered as before
	attempt(sent, "c-sent").want(201)
	e.post(people.RoleExecutor, "/v1/actions/"+sent.ID+"/receipts", receipt("c-sent-1", "c-sent", action.Unknown)).want(201)
	e.post(people.RoleExecutor, "/v1/actions/"+sent.ID+"/observations", api.Observation{ObservationID: "o", Tool: stage.ReadPrice,
		Snapshot: []byte(`{"price":105}`), ObservedAt: time.Now()}).want(201)
	e.post(people.RoleExecutor, "/v1/actions/"+claimed.ID+"/release", api.Release{ClaimID: "c-claimed"}).want(200)

	exit := e.look(k)
	if exit.Used.Writes != 4 || exit.Used.Checks != 1 || len(exit.Exit.Unknown) != 1 || exit.Exit.Unknown[0].ActionID != sent.ID || exit.Exit.Unknown[0].CaseID == nil ||
		len(exit.Exit.Undone) != 3 || len(exit.Exit.Done) != 0 {
		t.Errorf("%+v", exit)
	}
	page := e.as(e.Mia).open("/actions/" + waiting.ID).want(200)
	page.says("Answer chat 8841", "does not run until somebody extends").holds(`href="/tasks/` + k.ID + `"`)

	b := e.as(e.Mia)
	b.send("/tasks/"+k.ID+"/extend", formOf("op", b.open("/tasks/"+k.ID).op(), "writes", "1", "reason", "One more price")).leads("/tasks/" + k.ID + "?done=task_extended")
	claim(waiting, "c-again").want(200)
	attempt(waiting, "c-again").want(201)
}

// The one retry is a write too.
func TestARetryIsAWrite(t *testing.T) {
	e := newEnv(t)
	e.Tool(stage.Contract("shop.asked", "", "status_query: { tool: shop.read_price }"))
	for writes, stopped := range map[int]bool{1: true, 2: false} {
		k := e.task(api.TaskLimits{Writes: new(writes)})
		a := into[api.Action](e.under(k, "shop.asked").want(201))
		e.Approve(e.Read(a.ID), e.Mia)
		a = into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200))
		ref := "/v1/confirmations/" + a.Confirmation.Ref + "/claim"
		e.post(people.RoleExecutor, ref, bound(a, "c1")).want(200)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: "a1", ClaimID: "c1", Fingerprint: "f"}).want(201)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt("a1", "c1", action.Unknown)).want(201)
		e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice,
			Snapshot: []byte(`{"status":"NOT_EXECUTED"}`), ObservedAt: time.Now()}).want(201)
		if now := e.Read(a.ID); !now.NotExecuted() {
			t.Fatalf("the query says nothing: %+v", now.Asks)
		}
		again := e.post(people.RoleExecutor, ref, bound(a, "c2"))
		if stopped {
			again.stopped(k, "writes")
			e.as(e.Person("ops", people.RoleOps)).open("/triage/" + e.Read(a.ID).CaseID()).want(200).says("the budget of its task is used up")
		} else {
			again.want(200)
			e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: "a2", ClaimID: "c2", Fingerprint: "f"}).want(201)
		}
		if k := e.look(k); (k.State == "paused") != stopped || k.Used.Writes != writes {
			t.Errorf("with %d writes: %s, %d used", writes, k.State, k.Used.Writes)
		}
	}
}

// People extend and end budgets, with a reason; never who answers for the program.
func TestPeopleTendTasks(t *testing.T) {
	e := newEnv(t)
	owner := e.Person("owner", people.RoleSupport)
	agent := e.Client("owned agent", owner, people.RoleProposer)
	e.keys[people.RoleProposer], e.Agent = e.key(agent, 0), agent
	ops, auditor := e.Person("ops", people.RoleOps), e.Person("auditor", people.RoleAuditor)
	limited := e.PersonWith("limited", people.Grants{Roles: []string{people.RoleSupport}, Tools: []string{stage.BigPrice}})
	k := e.task(api.TaskLimits{Writes: new(1), Cost: new(2.0), Elapsed: new(api.Duration(time.Hour))})
	a := into[api.Action](e.under(k, stage.SetPrice).want(201))
	e.under(k, stage.SetPrice).stopped(k, "writes")
	path := "/tasks/" + k.ID

	e.as(limited).open(path).want(404)
	e.as(owner).open(path).want(200).says("Paused: writes used up", "Not run yet: 1 action", "Waiting for approval, not submitted yet", "somebody else decides").lacks("/extend", "/end\"")
	e.as(auditor).open(path).want(200).lacks("/extend")
	e.as(owner).send(path+"/extend", formOf("op", "x1", "writes", "1", "reason", "mine")).want(403)
	e.as(auditor).send(path+"/extend", formOf("op", "x1", "writes", "1", "reason", "look")).want(403)
	e.as(limited).send(path+"/extend", formOf("op", "x1", "writes", "1", "reason", "look")).want(404)

	b := e.as(ops)
	op := b.open(path).says("1 of 1 used up", "of 1 h").op()
	b.send(path+"/extend", formOf("op", op, "writes", "1")).wrong(422, "reason")
	b.send(path+"/extend", formOf("op", op, "writes", "many", "reason", "More to do")).wrong(422, "writes").holds("More to do", `value="many"`)
	b.send(path+"/extend", formOf("op", op, "decisions", "4", "reason", "More to do")).want(422)
	b.send(path+"/extend", formOf("op", op, "reason", "More to do")).want(422)
	for range 2 { // sent twice, it adds once
		b.send(path+"/extend", formOf("op", op, "writes", "1", "elapsed", "30", "cost", "0.5", "reason", "One more price")).leads(path + "?done=task_extended")
	}
	// Whoever may not, may not repeat what somebody did who may, either.
	e.as(owner).send(path+"/extend", formOf("op", op, "writes", "1", "elapsed", "30", "cost", "0.5", "reason", "One more price")).want(403)
	now := e.look(k)
	if now.State != "open" || *now.Limits.Writes != 2 || *now.Limits.Cost != 2.5 || time.Duration(*now.Limits.Elapsed) != 90*time.Minute {
		t.Errorf("%+v", now.Limits)
	}
	e.under(k, stage.SetPrice).want(201)
	b.open(path).says("Running", "Ops extended the budget", "writes +1", "One more price", "2 of 2")
	extended := e.events(k.ID)
	last := extended[len(extended)-1]
	if last.Kind != "task_extended" || last.By.ID != ops.ID || last.By.Role != people.RoleOps || !strings.Contains(string(last.Body), "One more price") {
		t.Errorf("%+v", last)
	}

	op = b.open(path).op()
	b.send(path+"/end", formOf("op", op)).wrong(422, "end_reason")
	for range 2 {
		b.send(path+"/end", formOf("op", op, "end_reason", "The customer called it off")).leads(path + "?done=task_ended")
	}
	e.under(k, stage.SetPrice).stopped(k, "ended")
	e.spend(k, api.Spend{Decisions: 1}).stopped(k, "ended")
	if now := e.Read(a.ID); now.State != action.Cancelled {
		t.Errorf("what had not run is %s", now.State)
	}
	if now := e.look(k); now.State != "ended" || *now.Exit.By != "Ops" || *now.Exit.Reason != "The customer called it off" || len(now.Exit.Undone) != 2 {
		t.Errorf("%+v", now.Exit)
	}
	b.send(path+"/extend", formOf("op", "later", "writes", "1", "reason", "again")).want(409)
	b.open(path).says("Ended by Ops", "The customer called it off").lacks("/extend")
	b.open("/tasks").says("Answer chat 8841", "Ended by Ops")
	if zh := into[api.Task](e.get(people.RoleProposer, "/v1/tasks/"+k.ID+"?lang=zh").want(200)); !strings.Contains(zh.Exit.MaySay[0], "停止") {
		t.Errorf("%v", zh.Exit.MaySay)
	}
}
