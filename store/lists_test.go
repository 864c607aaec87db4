package store_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
)

func ids(actions []action.Action) []string {
	found := make([]string, len(actions))
	for i, a := range actions {
		found[i] = a.ID
	}
	return found
}

func sorted(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), " ") }

// town is a queue of every kind: tools, scopes, actors, owners and decisions.
type town struct {
	*stage.Stage
	all []string
	who []people.Person
}

func newTown(t *testing.T) *town {
	s := set(t)
	s.Tool(strings.Replace(stage.Contract("bank.limit", "", ""), "scope: shop", "scope: bank", 1))
	w := &town{Stage: s}
	boss := s.Person("boss", people.RoleSupport, "finance")
	w.who = []people.Person{s.Mia, s.Admin, boss,
		s.Person("fin", "finance"), s.Person("ops", people.RoleOps), s.Person("auditor", people.RoleAuditor),
		s.PersonWith("lin", people.Grants{Roles: []string{people.RoleSupport}, Actors: []string{"u-17", " U-18"}}),
		s.PersonWith("shop", people.Grants{Roles: []string{people.RoleSupport}, Scopes: []string{"shop"}}),
		s.PersonWith("bank", people.Grants{Roles: []string{people.RoleSupport, "finance"}, Scopes: []string{"bank"}}),
		s.PersonWith("two", people.Grants{Roles: []string{people.RoleSupport}, Tools: []string{stage.SetPrice, stage.TwoRoles}}),
		s.PersonWith("none", people.Grants{Roles: []string{people.RoleSupport}, Tools: []string{stage.SetPrice}, Scopes: []string{"bank"}}),
		s.Person("both", people.RoleSupport, people.RoleAdmin),
	}
	agents := []people.Client{s.Agent, s.Client("boss's agent", boss, people.RoleProposer)}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		tools := []string{stage.SetPrice, stage.BigPrice, stage.TwoRoles, "bank.limit"}
		p := stage.Proposal(tools[i%len(tools)], stage.Product(), 105)
		p.Actor.ID = []string{"u-17", "U-18", "u-19"}[rnd.IntN(3)]
		p.ExpiresIn = stage.Seconds(60 * (1 + rnd.IntN(9))) // several expire in the same second
		snap, _, err := s.Approvals.Propose(background(), agents[rnd.IntN(2)], p)
		must(t, err)
		if p.Tool == stage.BigPrice && rnd.IntN(2) == 0 {
			s.Approve(snap.Action, []people.Person{s.Ken, s.Mia}[rnd.IntN(2)])
		}
		w.all = append(w.all, snap.Action.ID)
	}
	s.Confirmed(stage.SetPrice, stage.Product()) // waits for nobody
	return w
}

// queue reads a whole tab in pages.
func queue(t *testing.T, db *store.DB, f approvals.QueueFilter) []action.Action {
	t.Helper()
	var found []action.Action
	for {
		page, _, err := db.Queue(background(), f)
		must(t, err)
		if found = append(found, page...); len(page) < f.Limit {
			return found
		}
		last := page[len(page)-1]
		f.After = approvals.QueueCursor{ExpiresAt: *last.ExpiresAt, ID: last.ID}
	}
}

// Every waiting proposal that somebody may see is in exactly one of their tabs,
// and "needs you" holds what they may decide on now.
func TestQueueTabsPartition(t *testing.T) {
	w := newTown(t)
	sizes := map[approvals.Tab]int{}
	for _, p := range w.who {
		tabs := map[approvals.Tab][]action.Action{}
		for _, tab := range []approvals.Tab{approvals.NeedsMe, approvals.ForOthers, approvals.Everybody} {
			f := approvals.QueueFilter{Person: p, Roles: p.Decides(), Tab: tab, Limit: 7}
			tabs[tab] = queue(t, w.DB, f)
			sizes[tab] += len(tabs[tab])
			n, err := w.DB.QueueCount(background(), f, "", 1000)
			if err != nil || n != len(tabs[tab]) {
				t.Errorf("%s, %s: counted %d of %d, %v", p.Name, tab, n, len(tabs[tab]), err)
			}
		}
		if got := sorted(append(ids(tabs[approvals.NeedsMe]), ids(tabs[approvals.ForOthers])...)); got != sorted(ids(tabs[approvals.Everybody])) {
			t.Errorf("%s: %d for them and %d for others are not the %d of all", p.Name,
				len(tabs[approvals.NeedsMe]), len(tabs[approvals.ForOthers]), len(tabs[approvals.Everybody]))
		}
		w.tabsAreRight(t, p, tabs)
	}
	if sizes[approvals.NeedsMe] == 0 || sizes[approvals.ForOthers] == 0 {
		t.Errorf("nothing is shown: %v", sizes)
	}
}

func (w *town) tabsAreRight(t *testing.T, p people.Person, tabs map[approvals.Tab][]action.Action) {
	t.Helper()
	var seen []string
	for _, id := range w.all {
		if a := w.Read(id); people.PersonViewer(p).Sees(approvals.SubjectOf(a, "")) {
			seen = append(seen, id)
		}
	}
	if sorted(seen) != sorted(ids(tabs[approvals.Everybody])) {
		t.Errorf("%s may see %d and is shown %d", p.Name, len(seen), len(tabs[approvals.Everybody]))
	}
	for tab, may := range map[approvals.Tab]bool{approvals.NeedsMe: true, approvals.ForOthers: false} {
		standings, err := w.Approvals.Standings(background(), tabs[tab], &p)
		must(t, err)
		for i, a := range tabs[tab] {
			if (standings[i].May == nil) != may {
				t.Errorf("%s has %s by %s for %s under %q: %v", p.Name, a.Tool, a.Client.Name, a.Actor.ID, tab, standings[i].May)
			}
		}
	}
	for i, a := range tabs[approvals.Everybody] {
		if i > 0 && a.ExpiresAt.Before(*tabs[approvals.Everybody][i-1].ExpiresAt) {
			t.Errorf("%s: not by time left", p.Name)
		}
	}
}

func TestQueueFilters(t *testing.T) {
	w := newTown(t)
	base := approvals.QueueFilter{Person: w.Admin, Tab: approvals.Everybody, Limit: 100}
	product := w.Read(w.all[5]).Target.ID
	for name, c := range map[string]struct {
		edit func(*approvals.QueueFilter)
		fits func(action.Action) bool
	}{
		"tool":   {func(f *approvals.QueueFilter) { f.Tool = stage.BigPrice }, func(a action.Action) bool { return a.Tool == stage.BigPrice }},
		"target": {func(f *approvals.QueueFilter) { f.Target = product }, func(a action.Action) bool { return a.Target.ID == product }},
		"expiring": {func(f *approvals.QueueFilter) { f.Expiring = 150 * time.Second }, func(a action.Action) bool {
			return a.ExpiresIn <= 2*time.Minute
		}},
		"all of them": {func(f *approvals.QueueFilter) {
			f.Tool, f.Target, f.Expiring = w.Read(w.all[5]).Tool, product, time.Hour
		},
			func(a action.Action) bool { return a.Target.ID == product }},
	} {
		f := base
		c.edit(&f)
		var want []string
		for _, id := range w.all {
			if c.fits(w.Read(id)) {
				want = append(want, id)
			}
		}
		if got := queue(t, w.DB, f); len(want) == 0 || sorted(ids(got)) != sorted(want) {
			t.Errorf("%s: %d found, want %d", name, len(got), len(want))
		}
	}
	newest, err := w.DB.Newest(background())
	must(t, err)
	w.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 1))
	w.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 1))
	if n, err := w.DB.QueueCount(background(), base, newest, 1000); err != nil || n != 2 {
		t.Errorf("%d are new, want 2, %v", n, err)
	}
	if n, err := w.DB.QueueCount(background(), base, "", 10); err != nil || n != 10 {
		t.Errorf("a capped count says %d, %v", n, err)
	}
}

// Pages taken while others come in show what was there, once each.
func TestPagesAreWholeWhileOthersComeIn(t *testing.T) {
	s := set(t)
	var there []string
	for i := range 60 {
		p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
		p.ExpiresIn = stage.Seconds(600 + i/7*100) // some expire together
		there = append(there, s.Propose(p).ID)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for n := range 2 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
				p.ExpiresIn = stage.Seconds(500 + (i*37+n)%900)
				if _, _, err := s.Approvals.Propose(background(), s.Agent, p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	whole := func(what string, found []string) {
		t.Helper()
		seen := map[string]int{}
		for _, id := range found {
			if seen[id]++; seen[id] > 1 {
				t.Fatalf("%s: shown twice", what)
			}
		}
		for _, id := range there {
			if seen[id] == 0 {
				t.Fatalf("%s: left out", what)
			}
		}
	}
	for range 3 {
		whole("queue", ids(queue(t, s.DB, approvals.QueueFilter{Person: s.Mia, Roles: s.Mia.Roles, Tab: approvals.NeedsMe, Limit: 5})))
		var found []string
		f := approvals.Filter{Viewer: people.Viewer{All: true}, Limit: 9}
		for {
			page, _, err := s.DB.Actions(background(), f)
			must(t, err)
			if found = append(found, ids(page)...); len(page) < f.Limit {
				break
			}
			f.Before = page[len(page)-1].ID
		}
		whole("list", found)
	}
	close(stop)
	writers.Wait()
}

func TestViewersSeeTheirPart(t *testing.T) {
	w := newTown(t)
	owner := w.who[2]
	reader := w.ClientWith("reader", owner, people.ClientGrants{Roles: []string{people.RoleReader}, Tools: []string{stage.SetPrice, "bank.limit"}, Scopes: []string{"bank"}})
	executor := w.ClientWith("narrow", owner, people.ClientGrants{Roles: []string{people.RoleExecutor}, Scopes: []string{"shop"}})
	both := w.ClientWith("both", owner, people.ClientGrants{Roles: []string{people.RoleProposer, people.RoleReader}, Tools: []string{"bank.limit"}})
	snap, _, err := w.Approvals.Propose(background(), both, stage.Proposal("bank.limit", stage.Product(), 1))
	must(t, err)
	own := snap.Action
	disabled, err := w.People.DisableClient(background(), stage.System("off"), w.Client("off", owner, people.RoleAdmin).ID)
	must(t, err)
	viewers := map[string]people.Viewer{"nobody": {}, "all": {All: true}, "disabled": people.ClientViewer(disabled)}
	for _, c := range []people.Client{w.Agent, w.Executor, reader, executor, both} {
		viewers[c.Name] = people.ClientViewer(c)
	}
	for _, p := range w.who {
		viewers[p.Name] = people.PersonViewer(p)
	}
	everything, _, err := w.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, Limit: 1000})
	must(t, err)
	for name, v := range viewers {
		var want []string
		for _, a := range everything {
			if v.Sees(approvals.SubjectOf(a, "")) {
				want = append(want, a.ID)
			}
		}
		got, _, err := w.DB.Actions(background(), approvals.Filter{Viewer: v, Limit: 1000})
		if err != nil || sorted(ids(got)) != sorted(want) {
			t.Errorf("%s may see %d and is shown %d, %v", name, len(want), len(got), err)
		}
		direct, _, err := w.DB.Actions(background(), approvals.Filter{Viewer: v, Ref: own.PayloadHash, Limit: 9})
		if err != nil || (len(direct) == 1) != v.Sees(approvals.SubjectOf(own, "")) {
			t.Errorf("%s asks for one by its hash and is shown %d, %v", name, len(direct), err)
		}
	}
}

// Names with % and _ are names, and a prefix is a prefix.
func TestWorkIsFoundByNameAndPrefix(t *testing.T) {
	s := set(t)
	made := map[string]string{}
	for _, tool := range []string{"a_b.x", "aXb.x", "a_b.y", "a_", "b.a_b"} {
		s.Tool(stage.Contract(tool, `{ when: "true", role: support, approvals: 0 }`, ""))
		made[tool] = s.Propose(stage.Proposal(tool, stage.Product(), 1)).ID
	}
	s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 1)) // waits for people, not for executors
	for _, c := range []struct{ ask, want []string }{
		{nil, []string{"a_b.x", "aXb.x", "a_b.y", "a_", "b.a_b"}},
		{[]string{"a_b.x"}, []string{"a_b.x"}},
		{[]string{"a_b*"}, []string{"a_b.x", "a_b.y"}},
		{[]string{"a_b.x", "b*"}, []string{"a_b.x", "b.a_b"}},
		{[]string{"*"}, []string{"a_b.x", "aXb.x", "a_b.y", "a_", "b.a_b"}},
		{[]string{"%*"}, nil},
		{[]string{"a%"}, nil},
		{[]string{`a\_*`}, nil},
		{[]string{"a_b.x*", "a_*"}, []string{"a_b.x", "a_b.y", "a_"}},
		{[]string{"none"}, nil},
	} {
		got, _, err := s.DB.Work(background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Tools: c.ask, Limit: 100})
		var want []string
		for _, tool := range c.want {
			want = append(want, made[tool])
		}
		if err != nil || sorted(ids(got)) != sorted(want) {
			t.Errorf("%q: %d found, want %q, %v", c.ask, len(got), c.want, err)
		}
	}
	got, _, err := s.DB.Work(background(), approvals.WorkFilter{Viewer: people.Viewer{All: true}, Limit: 2})
	if err != nil || len(got) != 2 || got[0].ID != made["a_b.x"] {
		t.Errorf("the oldest two are %v, %v", ids(got), err)
	}
}

func TestHistoryIsFoundByAnyIDOrHash(t *testing.T) {
	s := set(t)
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	task := s.Task(approvals.Limits{Writes: new(1)}).ID
	p.Actor.ID, p.TaskID, p.RequestID = "u-history", task, "req-1"
	a, claim := s.Claim(s.Approve(s.Propose(p), s.Mia))
	a, attempt := s.Start(a, claim)
	a = s.Report(a, stage.Receipt(attempt, claim, action.Unknown))
	s.Confirmed(stage.SetPrice, stage.Product())
	list := func(what string, f approvals.Filter, want ...string) {
		t.Helper()
		f.Viewer, f.Limit = people.Viewer{All: true}, 50
		got, _, err := s.DB.Actions(background(), f)
		if err != nil || sorted(ids(got)) != sorted(want) {
			t.Errorf("by %s: %d found, want %d, %v", what, len(got), len(want), err)
		}
	}
	for what, ref := range map[string]string{"id": a.ID, "confirmation": a.Confirmation.Ref, "proposal hash": a.ProposalHash, "payload hash": a.PayloadHash,
		"execution key": a.ExecutionKey, "request": "req-1", "actor": "u-history", "target": a.Target.ID, "case": a.CaseID(), "receipt": "op-" + attempt} {
		list(what, approvals.Filter{Ref: ref}, a.ID)
	}
	list("an unknown id", approvals.Filter{Ref: "act_none"})
	list("task", approvals.Filter{TaskID: task}, a.ID)
	list("actor", approvals.Filter{ActorID: "u-history"}, a.ID)
	list("state", approvals.Filter{State: action.ResultUnknown}, a.ID)
	list("target", approvals.Filter{Target: a.Target}, a.ID)
	list("target of any type", approvals.Filter{Target: &action.Target{ID: a.Target.ID}}, a.ID)
	list("another type", approvals.Filter{Target: &action.Target{Type: "order", ID: a.Target.ID}})
	from, to := a.CreatedAt, a.CreatedAt.Add(time.Microsecond)
	list("time", approvals.Filter{From: &from, To: &to}, a.ID)
	list("a time before", approvals.Filter{To: &from})
	list("everything at once", approvals.Filter{Ref: a.ID, Approver: s.Mia.ID, Tool: a.Tool, ActorID: "u-history", TaskID: task,
		State: a.State, Target: a.Target, From: &from, To: &to}, a.ID)
	list("a claim that is over", approvals.Filter{ClaimedBy: s.Executor.ID})
	b, _ := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
	list("claimed by", approvals.Filter{ClaimedBy: s.Executor.ID}, b.ID)
}
