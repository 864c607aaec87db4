package store_test

import (
	"slices"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
)

func taskIDs(t *testing.T, s *stage.Stage, f approvals.TaskFilter) (ids []string) {
	t.Helper()
	tasks, _, err := s.DB.Tasks(background(), f)
	must(t, err)
	for _, k := range tasks {
		ids = append(ids, k.ID)
	}
	return ids
}

// A task's row is what its events say after everything that can happen to it, and
// what somebody with the owner's password changes is found.
func TestTasksFoldToTheirRows(t *testing.T) {
	s := stage.New(t, storetest.New(t))
	k := s.Task(approvals.Limits{Decisions: new(1), Reads: new(2), Writes: new(1), Elapsed: new(time.Hour), Cost: new(approvals.Cost(5))})
	compared := func(what string) {
		t.Helper()
		result, found := checked(t, s.DB, "")
		if len(found) > 0 || result.Tasks != 1 {
			t.Errorf("%s: %+v, %q", what, result, found)
		}
	}
	spend := func(id string, spent approvals.Spent) {
		t.Helper()
		if _, _, err := s.Approvals.Spend(background(), s.Agent, k.ID, id, spent); err != nil && !action.IsCode(err, action.BudgetExhausted) {
			t.Fatal(err)
		}
	}
	command := func(op string) approvals.TaskCommand {
		return approvals.TaskCommand{Op: op, PersonID: s.Mia.ID, By: s.Mia.As(people.RoleSupport, people.ByPassword), Reason: "because"}
	}
	compared("opened")
	spend("one", approvals.Spent{Decisions: 1, Reads: 1, Cost: 1})
	compared("spent")
	spend("two", approvals.Spent{Decisions: 1, Cost: 1})
	compared("paused")
	_, err := s.Approvals.ExtendTask(background(), command("more"), k.ID, approvals.Limits{Decisions: new(1), Writes: new(2), Elapsed: new(time.Hour), Cost: new(approvals.Cost(9))})
	must(t, err)
	compared("extended")
	later := s.Later(3*time.Hour, storetest.Skewed)
	must(t, later.Approvals.SweepTasks(background(), later.DB.DueTasks, 10))
	if due, err := later.DB.DueTasks(background(), action.Due{}, 10); err != nil || len(due) != 0 {
		t.Errorf("still due: %v, %v", due, err)
	}
	compared("out of time")
	_, err = s.Approvals.EndTask(background(), command("end"), k.ID)
	must(t, err)
	compared("ended")
	for column, query := range map[string]string{
		"max_writes": `UPDATE tasks SET max_writes = 100 WHERE id = $1`,
		"state":      `UPDATE tasks SET state = 'open' WHERE id = $1`,
		"ends_at":    `UPDATE tasks SET ends_at = NULL WHERE id = $1`,
	} {
		_, err := owner(t, s).Exec(query, k.ID)
		must(t, err)
		if _, found := checked(t, s.DB, k.ID); !slices.Contains(found, k.ID+" "+column) {
			t.Errorf("%s was changed, found %q", column, found)
		}
	}
}

// Everybody sees the tasks that they may, page by page, newest first.
func TestWhoSeesWhichTasks(t *testing.T) {
	s := stage.New(t, storetest.New(t))
	var all []string
	for range 3 {
		all = append(all, s.Task(approvals.Limits{Writes: new(5)}).ID)
	}
	slices.Sort(all)
	slices.Reverse(all)
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.TaskID = all[1]
	s.Propose(p)
	for name, c := range map[string]struct {
		viewer people.Viewer
		want   []string
	}{
		"auditor":          {people.Viewer{All: true}, all},
		"support":          {people.Viewer{Limited: true}, all},
		"limited":          {people.Viewer{Limited: true, Tools: []string{stage.SetPrice}}, all[1:2]},
		"limited to other": {people.Viewer{Limited: true, Tools: []string{stage.BigPrice}}, nil},
		"its program":      {people.Viewer{ClientID: s.Agent.ID}, all},
		"another program":  {people.Viewer{ClientID: s.Executor.ID}, nil},
		"nobody":           {people.Viewer{}, nil},
	} {
		if got := taskIDs(t, s, approvals.TaskFilter{Viewer: c.viewer, Limit: 10}); !slices.Equal(got, c.want) {
			t.Errorf("%s sees %q, want %q", name, got, c.want)
		}
	}
	if got := taskIDs(t, s, approvals.TaskFilter{Viewer: people.Viewer{All: true}, Before: all[0], Limit: 1}); !slices.Equal(got, all[1:2]) {
		t.Errorf("the second page has %q", got)
	}
}
