package store_test

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
)

func TestExpiryIsWholeSeconds(t *testing.T) {
	s := set(t)
	whole := func(what string, at *time.Time) {
		t.Helper()
		if at == nil || at.Nanosecond() != 0 || at.Location() != time.UTC {
			t.Errorf("%s expires at %v", what, at)
		}
	}
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.Draft = true
	a := s.Propose(p)
	if a.ExpiresAt != nil {
		t.Errorf("a draft expires at %v", a.ExpiresAt)
	}
	snap, err := s.Approvals.Submit(background(), s.Agent, a.ID, a.Version)
	must(t, err)
	a = snap.Action
	whole("a submitted draft", a.ExpiresAt)
	snap, err = s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, approvals.Revision{Payload: a.Payload, ExpiresIn: stage.Seconds(90)})
	must(t, err)
	a = s.Read(snap.Action.ID)
	whole("a revision", a.ExpiresAt)
	if life := a.ExpiresAt.Sub(a.UpdatedAt); life <= 89*time.Second || life > 90*time.Second {
		t.Errorf("90s asked for, %s given", life)
	}
	a = s.Approve(a, s.Mia)
	whole("a confirmation", &a.Confirmation.ExpiresAt)
	if a.Confirmation.ExpiresAt.After(*a.ExpiresAt) {
		t.Errorf("the confirmation outlives the proposal: %s, %s", a.Confirmation.ExpiresAt, a.ExpiresAt)
	}
	long := s.Confirmed(stage.SetPrice, stage.Product())
	if ttl := long.Confirmation.ExpiresAt.Sub(long.Confirmation.At); ttl <= 30*time.Minute-time.Second || ttl > 30*time.Minute {
		t.Errorf("a confirmation of 30 minutes lasts %s", ttl)
	}
	for _, life := range []time.Duration{0, -time.Second, 1500 * time.Millisecond, 721 * time.Hour} {
		p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
		p.ExpiresIn = &life
		_, _, err := s.Approvals.Propose(background(), s.Agent, p)
		s.Refused(err, action.InvalidArgument)
	}
}

// Report 10: it is over when its time is over, not when somebody notices.
func TestReport10_ReadsSayExpiredBeforeAnythingIsWritten(t *testing.T) {
	s := set(t)
	proposed := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	confirmed := s.Confirmed(stage.SetPrice, stage.Product())
	later := s.Later(2*time.Hour, storetest.Skewed)
	for _, a := range []action.Action{proposed, confirmed} {
		snap, err := later.DB.Snapshot(background(), a.ID)
		must(t, err)
		if got := snap.Action.StateAt(snap.Now); got != action.Expired {
			t.Errorf("%s reads as %s", a.State, got)
		}
	}
	list := func(c *stage.Console, state action.State) []string {
		t.Helper()
		found, now, err := c.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, State: state, Limit: 9})
		must(t, err)
		var ids []string
		for _, a := range found {
			if got := a.StateAt(now); got != state {
				t.Errorf("a list of %s shows one that is %s", state, got)
			}
			ids = append(ids, a.ID)
		}
		return ids
	}
	for state, want := range map[action.State]int{action.Proposed: 0, action.Confirmed: 0, action.Expired: 2} {
		if got := list(later, state); len(got) != want {
			t.Errorf("later, %d are %s, want %d", len(got), state, want)
		}
	}
	for state, want := range map[action.State]int{action.Proposed: 1, action.Confirmed: 1, action.Expired: 0} {
		if got := list(s.Console, state); len(got) != want {
			t.Errorf("now, %d are %s, want %d", len(got), state, want)
		}
	}
	queue, _, err := later.DB.Queue(background(), approvals.QueueFilter{Person: s.Mia, Roles: s.Mia.Roles, Tab: approvals.Everybody, Limit: 9})
	if err != nil || len(queue) != 0 {
		t.Errorf("the queue shows %d, %v", len(queue), err)
	}
	work, _, err := later.DB.Work(background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Limit: 9})
	if err != nil || len(work) != 0 {
		t.Errorf("the work is %d, %v", len(work), err)
	}
	_, err = later.Approvals.Decide(background(), s.Mia.ID, proposed.ID, stage.Ballot(proposed))
	s.Refused(err, action.ExpiredCode)
	// What is over does not stand in the way of the same again.
	if _, _, err := later.Approvals.Propose(background(), s.Agent, stage.Proposal(stage.SetPrice, confirmed.Target.ID, 105)); err != nil {
		t.Errorf("the same again: %v", err)
	}
}

func TestSweepersWriteOneEvent(t *testing.T) {
	s := set(t)
	ids := map[string]action.Kind{}
	for range 5 {
		ids[s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105)).ID] = action.KindExpired
		ids[s.Confirmed(stage.SetPrice, stage.Product()).ID] = action.KindExpired
		a, _ := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
		ids[a.ID] = action.KindLapsed
		a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
		s.Start(a, claim)
		ids[a.ID] = action.KindOverdue
	}
	var consoles []*stage.Console
	for range 4 {
		consoles = append(consoles, s.Open(storetest.Skewed(s.DSN, 3*time.Hour), store.Options{MaxConns: 2}))
	}
	var wait sync.WaitGroup
	for _, c := range consoles {
		wait.Go(func() {
			for range 2 {
				if err := action.Sweep(background(), c.DB, c.DB.Due, 100); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for id, kind := range ids {
		if n := s.Count(id, kind); n != 1 {
			t.Errorf("%d events of the kind %s: %v", n, kind, s.Kinds(id))
		}
		if a := s.Read(id); !a.State.In(action.Expired, action.ResultUnknown) {
			t.Errorf("swept to %s: %v", a.State, s.Kinds(id))
		}
	}
	if due, err := consoles[0].DB.Due(background(), action.Due{}, 100); err != nil || len(due) != 0 {
		t.Errorf("still due: %v, %v", due, err)
	}
	if result, found := checked(t, s.DB, ""); len(found) > 0 {
		t.Errorf("%+v, differences: %q", result, found)
	}
}

// What time has changed is written however much cannot be read stands before it,
// of actions and of tasks.
func TestSweepingGoesOnBehindWhatCannotBeRead(t *testing.T) {
	s := set(t)
	damage := func(subject string) {
		t.Helper()
		_, err := owner(t, s).Exec(`UPDATE events SET kind = 'of-tomorrow' WHERE subject = $1 AND version = 1`, subject)
		must(t, err)
	}
	var waiting []action.Action
	var tasks []approvals.Task
	for i := range 3 {
		p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
		p.ExpiresIn = stage.Seconds(60 + i)
		waiting = append(waiting, s.Propose(p))
		tasks = append(tasks, s.Task(approvals.Limits{Elapsed: new(time.Minute + time.Duration(i)*time.Second)}))
	}
	for i := range 2 {
		damage(waiting[i].ID)
		damage(tasks[i].ID)
	}
	later := s.Later(3*time.Hour, storetest.Skewed)
	if err := action.Sweep(background(), later.DB, later.DB.Due, 1); err == nil || !strings.Contains(err.Error(), waiting[0].ID) || !strings.Contains(err.Error(), waiting[1].ID) {
		t.Errorf("what cannot be swept is not told: %v", err)
	}
	if a := s.Read(waiting[2].ID); s.Count(a.ID, action.KindExpired) != 1 {
		t.Errorf("behind what cannot be read, one is %s: %v", a.State, s.Kinds(a.ID))
	}
	if err := later.Approvals.SweepTasks(background(), later.DB.DueTasks, 1); err == nil || strings.Contains(err.Error(), tasks[2].ID) {
		t.Errorf("what cannot be paused is not told: %v", err)
	}
	if k, _, err := s.Approvals.Task(background(), tasks[2].ID); err != nil || k.State != approvals.TaskPaused {
		t.Errorf("behind what cannot be read, a task is %s: %v", k.State, err)
	}
}

// Loops of one name run in one process at a time, and in the next when its
// connection is gone.
func TestALoopIsTakenOverWhenItsHolderIsGone(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	holders := `SELECT coalesce(min(l.pid), 0), count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE l.locktype = 'advisory' AND d.datname = current_database() AND l.granted`
	holder := func() (pid, n int) {
		t.Helper()
		must(t, db.QueryRow(holders).Scan(&pid, &n))
		return pid, n
	}
	var running, most, runs, last atomic.Int64
	var between sync.RWMutex // held while a connection is cut, so that no work is under way
	var cut [3]atomic.Bool   // a loop that was just about to work cannot know yet
	work := func(i int) error {
		between.RLock()
		defer between.RUnlock()
		runs.Add(1)
		if cut[i].CompareAndSwap(true, false) {
			return nil
		}
		last.Store(int64(i))
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		return nil
	}
	ctx, stop := context.WithCancel(background())
	defer stop()
	var loops sync.WaitGroup
	for i := range cut {
		c := s.Open(s.DSN, store.Options{MaxConns: 2})
		loops.Go(func() {
			c.DB.Loop(ctx, slog.New(slog.DiscardHandler), "test", 5*time.Millisecond, func(context.Context) error { return work(i) })
		})
	}
	until(t, "a first holder", func() bool { _, n := holder(); return n == 1 && runs.Load() > 0 })
	for range 3 {
		first, _ := holder()
		between.Lock()
		cut[last.Load()].Store(true)
		one[bool](t, db, `SELECT pg_terminate_backend($1)`, first)
		between.Unlock()
		until(t, "another holder", func() bool { pid, n := holder(); return n == 1 && pid != first })
		before := runs.Load()
		until(t, "its work", func() bool { return runs.Load() > before })
	}
	if most.Load() != 1 {
		t.Errorf("%d processes worked at once", most.Load())
	}
	stop()
	loops.Wait()
	until(t, "an end without locks left behind", func() bool { _, n := holder(); return n == 0 })
}

// A loop's work may fail, or be cut off, without ending the loop.
func TestALoopGoesOnAfterAFailure(t *testing.T) {
	s := set(t)
	ctx, stop := context.WithCancel(background())
	var runs atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.DB.Loop(ctx, slog.New(slog.DiscardHandler), "test", time.Millisecond, func(context.Context) error {
			if runs.Add(1)%2 == 1 {
				return sql.ErrConnDone
			}
			return nil
		})
	}()
	until(t, "work after failures", func() bool { return runs.Load() > 6 })
	stop()
	<-done
}
