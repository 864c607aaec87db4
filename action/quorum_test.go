package action

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestReport12_OnePersonCountsOnce(t *testing.T) {
	both := []Need{{Role: "support", Approvals: 1}, {Role: "manager", Approvals: 1}}
	for name, c := range map[string]struct {
		needs   []Need
		voters  map[string][]string
		missing int
	}{
		"nobody asked":          {nil, nil, 0},
		"nobody came":           {both, nil, 2},
		"one in two roles":      {both, map[string][]string{"mia": {"support", "manager"}}, 1},
		"one in a role twice":   {[]Need{{Role: "support", Approvals: 2}}, map[string][]string{"mia": {"support", "support"}}, 1},
		"two, one in both":      {both, map[string][]string{"mia": {"support", "manager"}, "ben": {"support"}}, 0},
		"the other way round":   {both, map[string][]string{"ben": {"support", "manager"}, "mia": {"support"}}, 0},
		"two of the same role":  {both, map[string][]string{"mia": {"support"}, "ben": {"support"}}, 1},
		"no role that counts":   {both, map[string][]string{"mia": {"auditor"}, "ben": nil}, 2},
		"a chain of exchanges":  {append(both, Need{Role: "ops", Approvals: 1}), map[string][]string{"a": {"support", "manager"}, "b": {"support", "ops"}, "c": {"support"}}, 0},
		"the same role, in two": {[]Need{{Role: "support", Approvals: 1}, {Role: "support", Approvals: 1}}, map[string][]string{"mia": {"support"}}, 1},
	} {
		if got := Missing(c.needs, c.voters); got != c.missing {
			t.Errorf("%s: %d missing, want %d", name, got, c.missing)
		}
		if Met(c.needs, c.voters) != (c.missing == 0) {
			t.Errorf("%s: met %v", name, c.missing != 0)
		}
	}
}

// mostSeats tries every way to seat everybody, at most once each.
func mostSeats(people [][]string, seats map[string]int) int {
	if len(people) == 0 {
		return 0
	}
	best := mostSeats(people[1:], seats) // the first one stands
	for _, role := range people[0] {
		if seats[role] > 0 {
			seats[role]--
			best = max(best, 1+mostSeats(people[1:], seats))
			seats[role]++
		}
	}
	return best
}

func TestMissingIsTheBestThatCanBeDone(t *testing.T) {
	role := rapid.SampledFrom([]string{"support", "manager", "ops", "legal"})
	rapid.Check(t, func(r *rapid.T) {
		needs := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) Need {
			return Need{Role: role.Draw(r, "role"), Approvals: rapid.IntRange(0, 2).Draw(r, "approvals")}
		}), 0, 4).Draw(r, "needs")
		voters := rapid.MapOfN(rapid.StringMatching("[a-f]"), rapid.SliceOfN(role, 0, 3), 0, 6).Draw(r, "voters")
		seats, all := map[string]int{}, 0
		for _, n := range needs {
			seats[n.Role] += n.Approvals
			all += n.Approvals
		}
		want := all - mostSeats(slices.Collect(maps.Values(voters)), seats)
		if got := Missing(needs, voters); got != want {
			r.Fatalf("%d missing, want %d", got, want)
		}
	})
}

func TestReport13_ARevokedApproverDoesNotCount(t *testing.T) {
	l := newLife(t)
	l.needs = []Need{{Role: "support", Approvals: 2}}
	l.proposed().do(l.vote(mia, true), Proposed)
	l.authority = map[string][]string{ben.ID: {"support"}, ops.ID: {"support"}}
	l.do(l.vote(ben, true), Proposed)
	if counts := l.snap().Approvals(); len(counts) != 1 || counts[ben.ID] == nil {
		t.Errorf("counted are %v", counts)
	}
	l.do(l.vote(ops, true), Confirmed)
	l.check()
	no := newLife(t).proposed()
	no.do(no.vote(mia, false), Rejected)
	if counts := no.snap().Approvals(); len(counts) != 0 {
		t.Errorf("a no counts as a yes: %v", counts)
	}
}

// What is read before the run is held against those whose approvals were counted,
// in every role that they could count for, and against nobody else.
func TestReport12_TheApprovalsThatCountedStandBeforeTheRun(t *testing.T) {
	one := func(role string) Need { return Need{Role: role, Approvals: 1} }
	lea := By{Kind: ByPerson, ID: "per_lea", Name: "Lea", Role: "support"}
	for name, c := range map[string]struct {
		asked, read []Need
		roles       map[string][]string // at the last approval
		given       []By
		to          State
		counted     []string
	}{
		"the same, one of them in another role": {[]Need{one("support"), one("manager")}, []Need{one("support"), one("manager")},
			map[string][]string{mia.ID: {"support", "manager"}, ben.ID: {"support"}}, []By{mia, ben}, Executing, []string{"Mia as manager", "Ben as support"}},
		"one of them in her other role": {[]Need{one("support")}, []Need{one("manager")},
			map[string][]string{mia.ID: {"support", "manager"}}, []By{mia}, Executing, []string{"Mia as support"}},
		"a role that nobody had": {[]Need{one("support")}, []Need{one("manager")},
			map[string][]string{mia.ID: {"support"}}, []By{mia}, Conflict, []string{"Mia as support"}},
		"one more, and one who had lost it": {[]Need{{Role: "support", Approvals: 2}}, []Need{{Role: "support", Approvals: 3}},
			map[string][]string{ben.ID: {"support"}, lea.ID: {"support"}}, []By{mia, ben, lea}, Conflict, []string{"Ben as support", "Lea as support"}},
		"a role that one who had lost it has since": {[]Need{{Role: "support", Approvals: 2}}, []Need{{Role: "support", Approvals: 2}, one("manager")},
			map[string][]string{mia.ID: {"manager"}, ben.ID: {"support"}, lea.ID: {"support"}}, []By{lea, mia, ben}, Conflict, []string{"Lea as support", "Ben as support"}},
		"the same, and one who had lost it": {[]Need{{Role: "support", Approvals: 2}}, []Need{{Role: "support", Approvals: 2}},
			map[string][]string{ben.ID: {"support"}, lea.ID: {"support"}}, []By{mia, ben, lea}, Executing, []string{"Ben as support", "Lea as support"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.needs, l.terms.Before = c.asked, "catalog.get_product"
			l.proposed()
			if len(l.a.Counted()) != 0 {
				t.Errorf("counted before anybody was asked: %v", l.a.Counted())
			}
			for i, by := range c.given {
				if l.authority = c.roles; !slices.Contains(c.roles[by.ID], by.Role) { // lost it after this
					l.authority = map[string][]string{by.ID: {by.Role}}
				}
				to := Proposed
				if i == len(c.given)-1 {
					to = Confirmed
				}
				l.do(l.vote(by, true), to)
			}
			var counted []string
			for _, d := range l.a.Counted() {
				counted = append(counted, d.By.Name+" as "+d.By.Role)
			}
			if !slices.Equal(counted, c.counted) {
				t.Errorf("counted are %q", counted)
			}
			l.do(l.claim(executor, "c1"), Executing)
			l.needs = c.read
			l.do(l.reading("", HoldsUnknown), c.to)
			if l.a.Short() != (c.to == Conflict) || c.to == Conflict && !reflect.DeepEqual(l.a.Wanted, c.read) {
				t.Errorf("it wanted %v", l.a.Wanted)
			}
			l.check()
		})
	}
}

func TestWhoMayDecide(t *testing.T) {
	l := newLife(t).proposed()
	for name, authority := range map[string]map[string][]string{"nobody": nil, "no role": {mia.ID: {}}, "somebody else": {ben.ID: {"support"}}} {
		l.authority = authority
		for _, yes := range []bool{true, false} {
			if r := l.refuse(l.vote(mia, yes), Forbidden); r.Reason != "role" {
				t.Errorf("%s: reason %q", name, r.Reason)
			}
		}
	}
}

func TestOnePersonDecidesOnceOnARevision(t *testing.T) {
	l := newLife(t)
	l.needs = []Need{{Role: "support", Approvals: 2}}
	l.proposed().do(l.vote(mia, true), Proposed)
	for _, yes := range []bool{true, false} {
		c := l.vote(mia, yes)
		c.Op = l.op() // another tab, another form
		if r := l.refuse(c, AlreadyDecided); r.Reason != "by-you" {
			t.Errorf("reason %q", r.Reason)
		}
	}
	l.do(l.revise(), Proposed)
	l.do(l.vote(mia, true), Proposed)
	l.do(l.vote(ben, true), Confirmed)
}

func TestReport03_ARevisionVoidsWhatWasApproved(t *testing.T) {
	l := newLife(t)
	l.needs = []Need{{Role: "support", Approvals: 2}}
	l.proposed().do(l.vote(mia, true), Proposed)
	stale := l.vote(ben, true)
	l.do(l.revise(), Proposed)
	if n := len(l.snap().Approvals()); n != 0 {
		t.Errorf("%d approvals outlived the revision", n)
	}
	l.refuse(stale, StaleRevision)
	half := stale
	half.Revision = 2
	l.refuse(half, StaleRevision)
	half = l.vote(ben, true)
	half.Revision = 1
	l.refuse(half, StaleRevision)
	l.do(l.vote(ben, true), Proposed)
	if len(l.a.Decisions) != 2 || l.a.Decisions[0].Revision != 1 {
		t.Errorf("decisions %+v", l.a.Decisions)
	}
}

func TestStepUp(t *testing.T) {
	l := newLife(t)
	l.needs = []Need{{Role: "support", Approvals: 1}, {Role: "manager", Approvals: 0, StepUp: true}}
	l.proposed()
	if r := l.refuse(l.vote(mia, true), Forbidden); r.Reason != "step-up" {
		t.Errorf("reason %q", r.Reason)
	}
	c := l.vote(mia, true)
	c.StepUp = true
	l.do(c, Confirmed)
	l = newLife(t)
	l.needs = []Need{{Role: "support", Approvals: 1, StepUp: true}}
	l.proposed().do(l.vote(mia, false), Rejected) // a no needs no proof
}

// Whoever comes too late is told who decided, and what.
func TestReport16_TooLate(t *testing.T) {
	for _, c := range []struct {
		yes    bool
		to     State
		reason string
	}{{true, Confirmed, "approved"}, {false, Rejected, "rejected"}} {
		l := newLife(t).proposed()
		late := l.vote(ben, true)
		l.do(l.vote(mia, c.yes), c.to)
		r := l.refuse(late, AlreadyDecided)
		if r.Reason != c.reason || r.Args["by"] != "Mia" || r.Args["at"] != "2026-03-01T12:00:00Z" {
			t.Errorf("reason %q, args %v", r.Reason, r.Args)
		}
	}
	l := newLife(t)
	l.needs = nil
	l.do(l.propose(), Confirmed)
	l.refuse(l.vote(ben, true), WrongState) // nobody decided
}
