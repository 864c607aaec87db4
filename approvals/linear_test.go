package approvals_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/store"
	"countersign/store/stage"
	"countersign/triage"

	"github.com/anishathalye/porcupine"
)

// asked is one thing that an executor asked about an action.
type asked struct {
	action string
	what   string // claim, release or attempt
	claim  string
	id     string // of the attempt
}

// What came back. Unknown: the executor died before it read the answer, or
// before it sent the request.
const (
	yes     = "yes"
	unknown = "unknown"
)

// claims is what is true of one action, as the model has it.
type claims struct {
	live     string // claim_id of the live claim
	used     string // every claim_id that was ever taken, in order
	released string
	attempt  string // "id by claim"
}

// model says what one action may answer, one request after the other.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, o := range history {
				id := o.Input.(asked).action
				parts[id] = append(parts[id], o)
			}
			var all [][]porcupine.Operation
			for _, p := range parts {
				all = append(all, p)
			}
			return all
		},
		Init: func() any { return claims{} },
		Step: func(state, input, output any) (bool, any) {
			want, next := state.(claims).step(input.(asked))
			return output == unknown || output == want, next
		},
	}
}

func (c claims) step(q asked) (string, claims) {
	was := func(list string) bool { return slices.Contains(strings.Fields(list), q.claim) }
	switch q.what {
	case "claim":
		switch {
		case was(c.used) && c.live == q.claim:
			return yes, c
		case was(c.used):
			return string(action.LeaseLost), c
		case c.live != "":
			return string(action.AlreadyClaimed), c
		}
		c.live, c.used = q.claim, c.used+" "+q.claim
	case "release":
		switch {
		case was(c.released):
			return yes, c
		case c.live != q.claim:
			return string(action.LeaseLost), c
		case c.attempt != "":
			return string(action.AttemptOpen), c
		}
		c.live, c.released = "", c.released+" "+q.claim
	case "attempt":
		switch {
		case c.attempt == q.id+" by "+q.claim:
			return yes, c
		case strings.HasPrefix(c.attempt, q.id+" "):
			return string(action.IdempotencyKeyInUse), c
		case c.live != q.claim:
			return string(action.LeaseLost), c
		case c.attempt != "":
			return string(action.AttemptOpen), c
		}
		c.attempt = q.id + " by " + q.claim
	}
	return yes, c
}

// executorProcess asks one thing after the other, forgets some answers, and
// writes down what it saw.
type executorProcess struct {
	*stage.Console
	s   *stage.Stage
	rnd *rand.Rand
}

func (e executorProcess) ask(a action.Action, q asked) (string, error) {
	var err error
	switch q.what {
	case "claim":
		_, err = e.Approvals.Claim(background(), e.s.Executor, a.Confirmation.Ref, q.claim, stage.Bound(a))
	case "release":
		_, err = e.Triage.Release(background(), e.s.Executor, a.ID, q.claim, "", "")
	case "attempt":
		_, _, err = e.Triage.Start(background(), e.s.Executor, a.ID, triage.Attempt{ID: q.id, ClaimID: q.claim, Fingerprint: "f"})
	}
	if err == nil {
		return yes, nil
	}
	if code := action.AsRefusal(err).Code; code != action.Internal && code != action.OutcomeUnknown {
		return string(code), nil
	}
	return "", err
}

// run works on one action: mostly with its own claims, sometimes with another's.
func (e executorProcess) run(a action.Action, others []string, each func(q asked, dead, sent bool) error) error {
	claim, attempt := action.NewID("clm"), action.NewID("att")
	for range 12 {
		q := asked{action: a.ID, claim: claim, id: attempt}
		if e.rnd.IntN(8) == 0 {
			q.claim = others[e.rnd.IntN(len(others))]
		}
		switch n := e.rnd.IntN(20); {
		case n < 11:
			q.what = "claim"
		case n < 18:
			q.what = "release"
		default:
			q.what = "attempt"
		}
		dead := e.rnd.IntN(10) == 0
		if err := each(q, dead, !dead || e.rnd.IntN(2) == 0); err != nil {
			return err
		}
		if dead || e.rnd.IntN(4) == 0 { // another process takes its place
			claim, attempt = action.NewID("clm"), action.NewID("att")
		}
	}
	return nil
}

func TestClaimsAndAttemptsAreLinearizable(t *testing.T) {
	s := set(t)
	const actions, processes = 40, 8
	var history []porcupine.Operation
	var mu sync.Mutex
	began := time.Now()
	var work []action.Action
	for range actions {
		work = append(work, s.Confirmed(stage.SetPrice, stage.Product()))
	}
	shared := map[string][]string{}
	for _, a := range work {
		shared[a.ID] = []string{action.NewID("clm"), action.NewID("clm")}
	}
	var wait sync.WaitGroup
	for p := range processes {
		e := executorProcess{s.Open(s.DSN, store.Options{MaxConns: 1}), s, rand.New(rand.NewPCG(7, uint64(p)))}
		wait.Go(func() {
			for _, a := range work {
				err := e.run(a, shared[a.ID], func(q asked, dead, sent bool) error {
					o := porcupine.Operation{ClientId: p, Input: q, Output: unknown, Call: int64(time.Since(began)), Return: math.MaxInt64}
					if sent {
						output, err := e.ask(a, q)
						if err != nil {
							return err
						}
						if !dead {
							o.Output, o.Return = output, int64(time.Since(began))
						}
					}
					mu.Lock()
					defer mu.Unlock()
					history = append(history, o)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	seen := map[string]int{}
	for _, o := range history {
		seen[o.Input.(asked).what+" "+o.Output.(string)]++
	}
	t.Logf("%d requests: %v", len(history), seen)
	for _, need := range []string{"claim yes", "claim already-claimed", "claim lease-lost", "claim unknown", "release yes", "release lease-lost", "attempt yes"} {
		if seen[need] == 0 {
			t.Errorf("no %q was seen: less is shown than meant", need)
		}
	}
	if len(history) < 3000 {
		t.Errorf("only %d requests", len(history))
	}
	if got := porcupine.CheckOperationsTimeout(model(), history, time.Minute); got != porcupine.Ok {
		t.Errorf("the answers fit no order of the requests: %s", got)
	}
	findsADoubleClaim(t, history)
	for _, a := range work {
		if got := s.Read(a.ID); len(got.Attempts) > 1 {
			t.Errorf("%d attempts at once", len(got.Attempts))
		}
	}
}

// findsADoubleClaim puts a second winner into a history: the check has to see it.
func findsADoubleClaim(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	found := 0
	for _, o := range history {
		q := o.Input.(asked)
		if q.what != "attempt" || o.Output != yes {
			continue
		}
		double := porcupine.Operation{ClientId: 99, Input: asked{action: q.action, what: "claim", claim: "clm_double"}, Output: yes,
			Call: o.Return + 1, Return: o.Return + 2} // whoever has an attempt keeps the claim
		if got := porcupine.CheckOperationsTimeout(model(), append(slices.Clone(history), double), time.Minute); got != porcupine.Illegal {
			t.Errorf("a double claim of %s passes: %s", q.action, got)
		}
		if found++; found == 3 {
			return
		}
	}
	if found == 0 {
		t.Error("there was no attempt to put a double claim beside")
	}
}
