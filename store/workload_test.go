package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/migrations"
	"countersign/people"
	"countersign/store"
	"countersign/store/embedded"
	"countersign/store/stage"
)

// workload is many callers who do anything at all to the same actions.
type workload struct {
	s        *stage.Stage
	voters   []people.Person
	products []string

	mu     sync.Mutex
	ids    []string
	acked  map[string]bool // "action op" of what was acknowledged
	counts map[string]int
}

func newWorkload(s *stage.Stage) *workload {
	w := &workload{s: s, voters: []people.Person{s.Mia, s.Ken, s.Person("fin", "finance")}, acked: map[string]bool{}, counts: map[string]int{}}
	for range 20 {
		w.products = append(w.products, stage.Product())
	}
	return w
}

// note writes down what came of a command. What was acknowledged must be there
// for ever.
func (w *workload) note(what, op, id string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.counts[what+" "+string(action.AsRefusal(err).Code)]++
		return
	}
	w.counts[what]++
	w.acked[id+" "+op] = true
}

func (w *workload) pick(rnd *rand.Rand) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ids) == 0 {
		return ""
	}
	return w.ids[max(0, len(w.ids)-1-rnd.IntN(20))] // the newest are busy
}

// step does one thing. It returns an error only for what must not happen.
func (w *workload) step(c *stage.Console, rnd *rand.Rand) error {
	id := w.pick(rnd)
	if id == "" || rnd.IntN(9) == 0 {
		return w.propose(c, rnd)
	}
	snap, err := c.DB.Snapshot(background(), id)
	if err != nil {
		return err
	}
	a := snap.Action
	switch n := rnd.IntN(30); {
	case n < 9:
		p := w.voters[rnd.IntN(len(w.voters))]
		b := stage.Ballot(a)
		if rnd.IntN(9) == 0 {
			b = stage.Rejection(a)
		}
		_, err = c.Approvals.Decide(background(), p.ID, a.ID, b)
		w.note("decide", fmt.Sprintf("decide:%d:%s", a.Revision, p.ID), id, err)
	case n < 10:
		_, err = c.Approvals.Cancel(background(), w.s.Agent, id, a.Version, "any")
		w.note("cancel", fmt.Sprintf("cancel:%s:%d", w.s.Agent.ID, a.Version), id, err)
	case n < 12:
		r := approvals.Revision{Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":%d}`, a.Target.ID, rnd.IntN(1000))}
		_, err = c.Approvals.Revise(background(), w.s.Agent, id, a.Version, r)
		w.note("revise", fmt.Sprintf("revise:%s:%d", w.s.Agent.ID, a.Version), id, err)
	case n < 14:
		_, err = c.Approvals.Submit(background(), w.s.Agent, id, a.Version)
		w.note("submit", fmt.Sprintf("submit:%s:%d", w.s.Agent.ID, a.Version), id, err)
	case n < 15:
		o := observation()
		_, err = c.Triage.Observe(background(), w.s.Executor, id, o)
		w.note("observe", "observe:"+o.ID, id, err)
	default:
		err = w.execute(c, rnd, a)
	}
	if action.AsRefusal(err).Code != action.Internal {
		err = nil
	}
	return err
}

func (w *workload) propose(c *stage.Console, rnd *rand.Rand) error {
	tools := []string{stage.SetPrice, stage.BigPrice, stage.TwoRoles, stage.Small, stage.AskOther, stage.ReadBack}
	p := stage.Proposal(tools[rnd.IntN(len(tools))], w.products[rnd.IntN(len(w.products))], float64(rnd.IntN(1000)))
	p.Draft = rnd.IntN(4) == 0
	snap, _, err := c.Approvals.Propose(background(), w.s.Agent, p)
	w.note("propose", "propose:"+w.s.Agent.ID+":"+p.Key, snap.Action.ID, err)
	if err == nil {
		w.mu.Lock()
		w.ids = append(w.ids, snap.Action.ID)
		w.mu.Unlock()
	} else if action.AsRefusal(err).Code == action.Internal {
		return err
	}
	return nil
}

func (w *workload) execute(c *stage.Console, rnd *rand.Rand, a action.Action) error {
	switch {
	case a.State == action.Executing && len(a.Attempts) > 0:
		o := []action.Outcome{action.Success, action.Success, action.Failure, action.Unknown}[rnd.IntN(4)]
		r := stage.Receipt(a.Attempts[len(a.Attempts)-1].ID, a.Claim.ID, o)
		_, err := c.Triage.Report(background(), w.s.Executor, a.ID, r)
		w.note("report", "receipt:"+r.ID, a.ID, err)
		return err
	case a.State == action.Executing && rnd.IntN(4) == 0:
		_, err := c.Triage.Release(background(), w.s.Executor, a.ID, a.Claim.ID, "", "")
		w.note("release", "release:"+a.Claim.ID, a.ID, err)
		return err
	case a.State == action.Executing:
		t := stage.Attempt(a.Claim.ID)
		_, _, err := c.Triage.Start(background(), w.s.Executor, a.ID, t)
		w.note("start", "attempt:"+t.ID, a.ID, err)
		return err
	case a.State == action.ResultUnknown:
		r := stage.Receipt(a.Attempts[0].ID, "late", action.Success)
		_, err := c.Triage.Report(background(), w.s.Executor, a.ID, r)
		w.note("late report", "receipt:"+r.ID, a.ID, err)
		return err
	case a.Confirmation != nil:
		claim := action.NewID("clm")
		_, err := c.Approvals.Claim(background(), w.s.Executor, a.Confirmation.Ref, claim, stage.Bound(a))
		w.note("claim", "claim:"+claim, a.ID, err)
		return err
	}
	return nil
}

// holds looks at what is left of a workload.
func (w *workload) holds(t *testing.T, db *store.DB) {
	t.Helper()
	result, found := checked(t, db, "")
	if len(found) > 0 {
		t.Errorf("differences between row and events: %q", found)
	}
	there := map[string]bool{}
	states := map[action.State]int{}
	for _, id := range w.ids {
		events, _, err := db.Events(background(), id)
		must(t, err)
		a, err := action.Fold(events)
		must(t, err)
		states[a.State]++
		if int64(len(events)) != a.Version {
			t.Errorf("%s: %d events, version %d", id, len(events), a.Version)
		}
		for _, e := range events {
			there[id+" "+e.Op] = true
		}
		if n := len(a.Attempts); n > 1 && a.Resumed == 0 {
			t.Errorf("%s: %d attempts", id, n)
		}
	}
	for what := range w.acked {
		if !there[what] {
			t.Errorf("%s was acknowledged and is gone", what)
		}
	}
	t.Logf("%+v, %v, %v", result, states, w.counts)
	if len(states) < 6 || len(w.acked) < 300 {
		t.Errorf("little happened: %d acknowledged, states %v", len(w.acked), states)
	}
	open := map[string]string{}
	for _, id := range w.ids {
		a := w.s.Read(id)
		if _, attempt := a.OpenAttempt(); attempt && a.State.In(action.Executing, action.ResultUnknown) {
			if other := open[a.Target.ID]; other != "" {
				t.Errorf("%s and %s both have an open attempt on %s", other, id, a.Target.ID)
			}
			open[a.Target.ID] = id
		}
	}
}

// A10: whatever happens in whatever order, the row is what the events say.
func TestA10_RowsEqualTheirEventsAfterAnything(t *testing.T) {
	s := set(t)
	w := newWorkload(s)
	var wait sync.WaitGroup
	for i := range 8 {
		c := s.Open(s.DSN, store.Options{MaxConns: 2})
		wait.Go(func() {
			rnd := rand.New(rand.NewPCG(42, uint64(i)))
			for range 200 {
				if err := w.step(c, rnd); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	w.holds(t, s.DB)
}

// The server dies in the middle, as in a power cut, and comes back: nothing
// that was acknowledged is lost, and everything goes on.
func TestAKilledServerLosesNothingAcknowledged(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "killed-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	start := func() *embedded.Cluster {
		t.Helper()
		ctx, cancel := context.WithTimeout(background(), 2*patience)
		defer cancel()
		c, err := embedded.Start(ctx, embedded.Options{Dir: dir}) // durable, as it is in use
		must(t, err)
		return c
	}
	cluster := start()
	t.Cleanup(func() { cluster.Kill() })
	db, err := sql.Open("postgres", cluster.DSN(embedded.Database))
	must(t, err)
	must(t, migrations.Up(background(), db))
	must(t, db.Close())
	s := stage.New(t, cluster.DSN(embedded.Database, "role=countersign_app"))
	w := newWorkload(s)
	var stop atomic.Bool
	var wait sync.WaitGroup
	for i := range 8 {
		c := s.Open(s.DSN, store.Options{MaxConns: 2})
		wait.Go(func() {
			rnd := rand.New(rand.NewPCG(99, uint64(i)))
			for !stop.Load() {
				if c.DB.Ready(background()) != nil {
					<-time.After(20 * time.Millisecond) // leave the machine to the server that starts
				}
				if err := w.step(c, rnd); err != nil && action.AsRefusal(err).Code == action.Internal {
					t.Error(err)
					return
				}
			}
		})
	}
	done := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.acked)
	}
	for reached := range 3 {
		until(t, "work", func() bool { return done() > 200*(reached+1) })
		if reached < 2 {
			must(t, cluster.Kill())
			cluster = start()
		}
	}
	stop.Store(true)
	wait.Wait()
	w.holds(t, s.DB)
	if w.counts["propose outcome-unknown"] == 0 {
		t.Errorf("nobody noticed that the server was gone: %v", w.counts)
	}
}
