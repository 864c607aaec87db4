package action

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// walk is a random life. Its oracles look at the events alone, not at the code
// that made them.
type walk struct {
	*life
	r       *rapid.T
	done    []Command // written, to be repeated
	past    []Action  // as it was after each event
	reached map[string][]string
}

func newWalk(r *rapid.T, edges map[string][]string) *walk {
	l := newLife(r)
	l.terms.Verify = rapid.Bool().Draw(r, "verify")
	l.terms.RetrySameKey = rapid.Bool().Draw(r, "retry")
	l.terms.Proves = rapid.SampledFrom([]Proof{ProvesAccepted, ProvesQueued, ProvesCompleted}).Draw(r, "proves")
	l.terms.FenceAfter = rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(r, "fence")
	l.terms.Before = rapid.SampledFrom([]string{"", "catalog.get_product"}).Draw(r, "before")
	l.terms.SecondPerson = rapid.Bool().Draw(r, "second")
	if rapid.Bool().Draw(r, "query") {
		l.terms.StatusQuery, l.terms.MaxPolls = "catalog.get_operation", 2
	}
	l.needs = rapid.SampledFrom([][]Need{{}, {{Role: "support", Approvals: 1}}, {{Role: "support", Approvals: 2}},
		{{Role: "support", Approvals: 1, StepUp: true}}}).Draw(r, "needs")
	w := &walk{life: l, r: r, reached: edges}
	if rapid.Bool().Draw(r, "steps") {
		l.inSteps()
		l.terms.Steps[0].Verify = rapid.Bool().Draw(r, "read the step back")
		l.terms.Proves = rapid.SampledFrom([]Proof{ProvesAccepted, ProvesCompleted}).Draw(r, "steps prove")
		l.terms.Steps[1].Proves = l.terms.Proves
	}
	first := l.propose()
	first.Draft = rapid.Bool().Draw(r, "draft")
	w.give(first)
	return w
}

// give decides a command and holds every transition against the oracles.
func (w *walk) give(c Command) {
	before := w.a
	tr, err := w.try(c)
	if err != nil {
		if AsRefusal(err).Code == Internal {
			w.r.Fatalf("%T: %v", c, err)
		}
		return
	}
	if tr.Event.Kind == "" {
		if !reflect.DeepEqual(tr.Next, before) {
			w.r.Fatalf("%T wrote nothing and changed the action", c)
		}
		return
	}
	w.done, w.past = append(w.done, c), append(w.past, tr.Next)
	e := tr.Event
	if e.Version != before.Version+1 || e.From != before.State || e.To != tr.Next.State || tr.Next.Version != e.Version {
		w.r.Fatalf("%T: event %d %s→%s on version %d in %s", c, e.Version, e.From, e.To, before.Version, before.State)
	}
	w.knownEdge(c, e)
	w.keepsPromises(c, e, before)
}

func (w *walk) knownEdge(c Command, e Event) {
	from, name := string(e.From), strings.TrimPrefix(fmt.Sprintf("%T", c), "action.")
	if from == "" {
		from = "[*]"
	}
	if edge := from + " --> " + string(e.To); e.From != e.To && !slices.Contains(w.reached[edge], name) {
		w.r.Fatalf("%s by %s is not in the table", edge, name)
	}
}

// keepsPromises holds one transition against what the design promises.
func (w *walk) keepsPromises(c Command, e Event, before Action) {
	a, entered := w.a, e.To != e.From
	_, evidence := c.(AddEvidence)
	_, receipt := c.(AddReceipt)
	switch {
	case e.From.In(Applied, Failed, Conflict, Rejected, Cancelled, Expired) && entered && (e.To != ResultUnknown || !evidence && !receipt):
		w.r.Fatalf("%T moved a final state: %s→%s", c, e.From, e.To)
	case entered && e.To == Applied && !w.provenDone(e):
		w.r.Fatalf("applied by %T without proof or verdict", c)
	case entered && e.To == Failed && e.From != Executing && !w.nothingOnItsWay(e):
		w.r.Fatalf("failed by %T while something may be on its way", c)
	case e.Kind == KindClaimed && e.From != Confirmed, e.Kind == KindRetried && e.From != ResultUnknown:
		w.r.Fatalf("a second live claim: %s in %s", e.Kind, e.From)
	case e.Kind == KindRetried && !w.mayGoOn():
		w.r.Fatalf("a retry that nobody allowed")
	case e.Kind == KindRevised && (len(Snapshot{Action: a, Authority: w.authority}.Approvals()) > 0 || a.ProposalHash == before.ProposalHash):
		w.r.Fatalf("a decision outlived its revision")
	case !e.At.Equal(w.now):
		w.r.Fatalf("event at %v, now %v", e.At, w.now)
	}
}

// provenDone looks for what lets an action be applied: a verdict, or completion
// proven by an answer and, where the contract reads back, a reading that holds.
func (w *walk) provenDone(e Event) bool {
	if e.Kind == KindVerdict {
		return readData[judged](e).Verdict.Verdict == Happened && w.enough(e)
	}
	if e.Kind == KindConcluded {
		return readData[concluded](e).How == LinkResumes
	}
	completed := true
	for _, s := range w.stepsSeen() {
		completed = completed && s.proven == ProvesCompleted
	}
	holds := e.Kind == KindObservation && readData[observed](e).Observation.Holds == HoldsTrue
	return completed && w.terms.Proves == ProvesCompleted && (holds || !w.terms.Verify)
}

// enough looks whether as many people as the contract wants said the same of
// the case, the last of them with e.
func (w *walk) enough(e Event) bool {
	if !w.terms.SecondPerson {
		return true
	}
	for i := len(w.events) - 2; i >= 0; i-- {
		if first := w.events[i]; first.Kind == KindVerdict {
			return first.By.ID != e.By.ID && readData[judged](first).Verdict.Verdict == readData[judged](e).Verdict.Verdict
		}
	}
	return false
}

// nothingOnItsWay looks at every request that was sent: it was definitely
// refused, alone or by its key, or its time and the fence are over.
func (w *walk) nothingOnItsWay(e Event) bool {
	if e.Kind == KindEvidence && readData[evidenced](e).Found.Outcome == FoundFailed {
		return true // the key is used up
	}
	refused, fence, at := map[string]bool{}, map[string]time.Time{}, e.At
	if f := readData[evidenced](e).Found; e.Kind == KindEvidence && f.ObservedAt.Before(at) {
		at = f.ObservedAt // what was over then
	}
	for _, e := range w.events {
		switch e.Kind {
		case KindAttempted:
			t := readData[attempted](e).Attempt
			fence[t.ID] = t.SendBy.Add(w.terms.FenceAfter)
		case KindReceipt:
			r := readData[receipted](e).Receipt
			refused[r.AttemptID] = refused[r.AttemptID] || r.Outcome == Failure || r.Outcome == Success && len(w.terms.Steps) > 0
		case KindEvidence:
			if f := readData[evidenced](e).Found; f.Outcome == FoundFailed && f.Step != "" { // the step's key is used up
				for _, t := range w.a.Attempts {
					refused[t.ID] = refused[t.ID] || t.Step == f.Step
				}
			}
		}
	}
	for id, until := range fence {
		if !refused[id] && at.Before(until) {
			return false
		}
	}
	return true
}

// invariants are true between any two commands.
func (w *walk) invariants() {
	w.check()
	a := w.a
	level, _ := a.Statement(w.now)
	if a.State == ResultUnknown && a.CaseID() == "" || a.CaseID() != "" && !a.State.In(ResultUnknown, Executing) {
		w.r.Fatalf("case %q in %s", a.CaseID(), a.State)
	}
	if live := a.Claim != nil && !a.Claim.Over; live != (a.State == Executing) {
		w.r.Fatalf("live claim %v in %s", live, a.State)
	}
	if a.Executions() > 0 && level == LevelNotSubmitted || level == LevelCompleted && a.State != Applied {
		w.r.Fatalf("%d requests, statement %s in %s", a.Executions(), level, a.State)
	}
	sent, first := map[string]bool{}, map[string]string{}
	for _, t := range a.Attempts {
		if key := t.ClaimID + ":" + t.Step; sent[key] {
			w.r.Fatalf("claim %s attempted step %q twice", t.ClaimID, t.Step)
		} else {
			sent[key] = true
		}
		if first[t.Step] == "" {
			first[t.Step] = t.Fingerprint
		}
		if t.SendBy.After(t.At.Add(w.terms.SendWithin)) || t.Fingerprint != first[t.Step] {
			w.r.Fatalf("attempt %+v", t)
		}
	}
	w.stepsHold(level)
	if a.Exhausted() && (a.State != ResultUnknown || a.Case.Pending != nil) || a.CaseID() == "" && a.Case != nil && (a.Case.Holder != nil || a.Case.Pending != nil) {
		w.r.Fatalf("in %s a person is needed %v, case %+v", a.State, a.Exhausted(), a.Case)
	}
	voters := map[string]bool{}
	for _, d := range a.Decisions {
		key := fmt.Sprint(d.By.ID, d.Revision)
		if voters[key] {
			w.r.Fatalf("%s decided twice on revision %d", d.By.ID, d.Revision)
		}
		voters[key] = true
	}
}

// pastStands looks whether a later event changed an earlier action through
// something that both share.
func (w *walk) pastStands() {
	for i, was := range w.past {
		folded, err := Fold(w.events[:i+1])
		if err != nil || !reflect.DeepEqual(folded, was) {
			w.r.Fatalf("the action after event %d is not what it was: %v", i+1, err)
		}
	}
}

// passDue lets the time come at which time alone does something.
func (w *walk) passDue(*rapid.T) {
	due, ok := w.a.DueAt()
	if !ok {
		return
	}
	if w.now.Before(due) {
		w.give(Tick{CaseID: "cas_early"})
		if later, still := w.a.DueAt(); !still || !later.Equal(due) {
			w.r.Fatalf("a tick before its time changed something")
		}
		w.now = due
	}
	was := w.a
	w.give(Tick{CaseID: "cas_" + w.op()})
	next, still := w.a.DueAt()
	if w.a.State == was.State && still && !next.After(due) {
		w.r.Fatalf("time does not pass: %s is still due at %v", w.a.State, next)
	}
	if w.a.Version == was.Version {
		w.r.Fatalf("%s was due at %v and nothing was written", was.State, due)
	}
}

// onward gives the command that a life usually goes on with, so that random
// ones come far.
func (w *walk) onward(r *rapid.T) {
	n := len(w.a.Attempts)
	last := fmt.Sprint("t", n)
	switch w.a.State {
	case Draft:
		w.give(w.submit())
	case Proposed:
		c := w.vote(mia, rapid.IntRange(0, 5).Draw(r, "yes") > 0)
		if w.a.decidedBy(mia.ID) {
			c = w.vote(ben, true)
		}
		c.StepUp = true
		w.give(c)
	case Confirmed:
		if rapid.IntRange(0, 5).Draw(r, "cancel") == 0 {
			w.give(Cancel{Op: w.op(), By: proposer, Reason: "<no> & \u2028 longer"})
		}
		w.give(w.claim(executor, w.op()))
	case Executing:
		if n == 0 || w.a.Attempts[n-1].ClaimID != w.a.Claim.ID {
			w.give(w.attempt(w.a.Claim.ID, fmt.Sprint("t", n+1)))
			return
		}
		w.give(w.receipt(last, rapid.SampledFrom([]Outcome{Success, Unknown, Failure}).Draw(r, "outcome"), ProvesAccepted))
	case Accepted:
		w.give(w.receipt(last, Success, ProvesCompleted))
		w.give(w.reading("8", HoldsTrue))
	case ResultUnknown:
		w.give(w.evidence(FoundNotExecuted, ProvesNothing))
		w.give(w.retry(w.op()))
	}
}

// again repeats a command that was written: it writes nothing.
func (w *walk) again(r *rapid.T) {
	c := rapid.SampledFrom(w.done).Draw(r, "again")
	if c.op() == "" {
		return
	}
	if _, closed := w.a.Done(c.op()); !closed {
		if _, ends := c.(Conclude); ends { // it leaves a retry to people as often as one waits
			return
		}
	}
	before := w.a
	tr, err := w.try(c)
	if tr.Event.Kind != "" || !reflect.DeepEqual(w.a, before) {
		w.r.Fatalf("%T again wrote %s", c, tr.Event.Kind)
	}
	lost := []Code{LeaseLost, StaleRevision, VersionConflict}
	if _, taken := c.(TakeCase); taken {
		lost = append(lost, AlreadyClaimed) // somebody else has it by now
	}
	if err != nil && !slices.Contains(lost, AsRefusal(err).Code) {
		w.r.Fatalf("%T again: %v", c, err)
	}
}

func TestRandomLives(t *testing.T) {
	edges := reached(t)
	seen := map[State]int{}
	walkAround := func(r *rapid.T) {
		w := newWalk(r, edges)
		steps := map[string]func(*rapid.T){
			"":     func(*rapid.T) { w.invariants() },
			"wait": func(r *rapid.T) { w.wait(time.Duration(rapid.IntRange(1, 90).Draw(r, "seconds")) * time.Second) },
			"due":  w.passDue, "again": w.again,
		}
		for name, step := range w.people() {
			steps[name] = step
		}
		for i := range 12 {
			steps[fmt.Sprint("on ", i)] = w.onward
		}
		for name, step := range w.machines() {
			steps[name] = step
		}
		r.Repeat(steps)
		w.pastStands()
		for _, e := range w.events {
			seen[e.To]++
		}
	}
	for range 5 {
		rapid.Check(t, walkAround)
	}
	for _, s := range States() {
		if seen[s] == 0 {
			t.Errorf("no random life came to %s", s)
		}
	}
}
