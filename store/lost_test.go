package store_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// command is one thing to ask for, whose answer may be lost.
type command struct {
	name string
	kind action.Kind // of the event it leaves
	// ready makes what the command needs, and returns the id of its action and
	// the command. The command answers with everything that must be the same
	// when it is given again.
	ready func(s *stage.Stage) (id string, run func(c *stage.Console) (answer string, err error))
}

func answer(a action.Action) string {
	ref := ""
	if a.Confirmation != nil {
		ref = a.Confirmation.Ref
	}
	return fmt.Sprint(a.ID, a.State, a.Version, a.Revision, a.ExecutionKey, a.ProposalHash, a.ExpiresAt, ref)
}

func commands() []command {
	changed := func(snap action.Snapshot, err error) (string, error) { return answer(snap.Action), err }
	return []command{
		{"propose", action.KindProposed, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
			return "", func(c *stage.Console) (string, error) {
				snap, _, err := c.Approvals.Propose(background(), s.Agent, p)
				return changed(snap, err)
			}
		}},
		{"submit", action.KindSubmitted, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
			p.Draft = true
			a := s.Propose(p)
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Approvals.Submit(background(), s.Agent, a.ID, a.Version))
			}
		}},
		{"revise", action.KindRevised, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
			r := approvals.Revision{Payload: fmt.Appendf(nil, `{ "product_id": %q, "new_price": 99.0 }`, a.Target.ID)}
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Approvals.Revise(background(), s.Agent, a.ID, a.Version, r))
			}
		}},
		{"cancel", action.KindCancelled, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Approvals.Cancel(background(), s.Agent, a.ID, a.Version, "not wanted"))
			}
		}},
		{"decide", action.KindDecided, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Approvals.Decide(background(), s.Mia.ID, a.ID, stage.Ballot(a)))
			}
		}},
		{"claim", action.KindClaimed, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a, claim := s.Confirmed(stage.SetPrice, stage.Product()), action.NewID("clm")
			return a.ID, func(c *stage.Console) (string, error) {
				got, err := c.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, claim, stage.Bound(a))
				if err != nil {
					return "", err
				}
				return answer(got.Action) + got.Token + got.Action.Claim.LeaseUntil.String() + string(got.Action.Payload), nil
			}
		}},
		{"renew", action.KindRenewed, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
			lease := action.NewID("lea")
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Triage.Renew(background(), s.Executor, a.ID, claim, lease))
			}
		}},
		{"release", action.KindReleased, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Triage.Release(background(), s.Executor, a.ID, claim, "", ""))
			}
		}},
		{"attempt", action.KindAttempted, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
			attempt := stage.Attempt(claim)
			return a.ID, func(c *stage.Console) (string, error) {
				got, _, err := c.Triage.Start(background(), s.Executor, a.ID, attempt)
				return fmt.Sprint(got), err
			}
		}},
		{"receipt", action.KindReceipt, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a, claim := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
			a, attempt := s.Start(a, claim)
			r := stage.Receipt(attempt, claim, action.Success)
			r.Body = []byte("{ \"status\": \"done\",\n \"text\": \"a<b & \u2028\" }") // not as it is stored
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Triage.Report(background(), s.Executor, a.ID, r))
			}
		}},
		{"observe", action.KindObservation, func(s *stage.Stage) (string, func(*stage.Console) (string, error)) {
			a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
			o := observation()
			return a.ID, func(c *stage.Console) (string, error) {
				return changed(c.Triage.Observe(background(), s.Executor, a.ID, o))
			}
		}},
	}
}

// Report 15: what was recorded is answered, now or when it is asked again.
func TestReport15_ALostAnswerIsOneEffectAndTheSameAnswer(t *testing.T) {
	s := set(t)
	p := newProxy(t, s.DSN)
	through := s.Open(p.DSN, store.Options{MaxConns: 3})
	for _, c := range commands() {
		for cut, arm := range map[string]func(*proxy){
			"after the commit":           func(p *proxy) { p.after = 1 },
			"after the commit, twice":    func(p *proxy) { p.after = 2 },
			"before the server saw it":   func(p *proxy) { p.before = 1 },
			"before it and after it":     func(p *proxy) { p.before, p.after = 1, 1 },
			"before it, again and again": func(p *proxy) { p.before = 4 },
		} {
			t.Run(c.name+"/"+cut, func(t *testing.T) {
				s.T = t
				id, run := c.ready(s)
				p.set(arm)
				first, err := run(through)
				if err != nil {
					t.Fatalf("%v", err)
				}
				if p.done() == 0 {
					t.Fatal("nothing was cut: nothing is shown")
				}
				theSame(t, s, c, id, first, run)
			})
		}
	}
	s.T = t
	if result, found := checked(t, s.DB, ""); len(found) > 0 {
		t.Errorf("%+v, differences: %q", result, found)
	}
}

// When nobody can tell, that is the answer; asking again tells.
func TestALostDatabaseIsAnUnknownOutcome(t *testing.T) {
	s := set(t)
	p := newProxy(t, s.DSN)
	through := s.Open(p.DSN, store.Options{MaxConns: 3})
	for _, c := range commands() {
		for cut, arm := range map[string]func(*proxy){
			"after the commit": func(p *proxy) { p.after, p.dies = 1, true },
			"before":           func(p *proxy) { p.before, p.dies = 1, true },
		} {
			t.Run(c.name+"/"+cut, func(t *testing.T) {
				s.T = t
				id, run := c.ready(s)
				p.set(arm)
				_, err := run(through)
				s.Refused(err, action.OutcomeUnknown)
				_, err = run(through)
				s.Refused(err, action.OutcomeUnknown)
				if p.done() != 1 {
					t.Fatal("nothing was cut: nothing is shown")
				}
				again, err := run(through)
				if err != nil {
					t.Fatalf("asked again: %v", err)
				}
				theSame(t, s, c, id, again, run)
			})
		}
	}
}

// theSame asks for a command again, through another process, and looks at what
// it left.
func theSame(t *testing.T, s *stage.Stage, c command, id, first string, run func(*stage.Console) (string, error)) {
	t.Helper()
	if again, err := run(s.Console); err != nil || again != first {
		t.Errorf("asked again: %v\n%s\n%s", err, first, again)
	}
	if id == "" {
		id = first[:30]
	}
	if n := s.Count(id, c.kind); n != 1 {
		t.Errorf("it left %d events: %v", n, s.Kinds(id))
	}
}

// Whoever made an action is told so, even when the first answer was lost.
func TestAnActionIsMadeByWhoeverMadeIt(t *testing.T) {
	s := set(t)
	p := newProxy(t, s.DSN)
	through := s.Open(p.DSN, store.Options{MaxConns: 3})
	proposal := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.set(func(p *proxy) { p.after = 1 })
	made, replayed, err := through.Approvals.Propose(background(), s.Agent, proposal)
	if err != nil || replayed {
		t.Errorf("the call that made it is told replayed=%v, %v", replayed, err)
	}
	again, replayed, err := through.Approvals.Propose(background(), s.Agent, proposal)
	if err != nil || !replayed || again.Action.ID != made.Action.ID {
		t.Errorf("its repetition is told replayed=%v, %v", replayed, err)
	}
	source := stage.Contract("shop.new_tool", "", "")
	p.set(func(p *proxy) { p.after = 1 })
	tool, _, err := through.Catalogue.Save(background(), "shop.new_tool", []byte(source), action.By{Kind: action.BySystem})
	if err != nil || tool.Version != 1 || s.Count("tool:shop.new_tool", "tool_saved") != 1 {
		t.Errorf("saved as version %d, %v: %v", tool.Version, err, s.Kinds("tool:shop.new_tool"))
	}
}

func observation() (o triage.Observation) {
	o.ID, o.Tool, o.Snapshot = action.NewID("obs"), stage.ReadPrice, []byte("{ \"price\": 100.0,\n \"note\": \"a<b\" }")
	o.ObservedAt = time.Now()
	return o
}

// REPORTS 32: whoever crashes in the middle of a command leaves no key locked.
// Another process does what was asked for under the same key at once, and once.
func TestReport32_ACrashLeavesNoKeyLocked(t *testing.T) {
	s := set(t)
	for cut, arm := range map[string]func(*proxy){
		"before it was written": func(p *proxy) { p.before, p.dies = 1, true },
		"after it was written":  func(p *proxy) { p.after, p.dies = 1, true },
	} {
		p := newProxy(t, s.DSN)
		crashing := s.Open(p.DSN, store.Options{MaxConns: 3})
		proposal := stage.Proposal(stage.Small, stage.Product(), 105)
		p.set(arm)
		_, _, err := crashing.Approvals.Propose(background(), s.Agent, proposal)
		s.Refused(err, action.OutcomeUnknown)
		snap, _, err := s.Approvals.Propose(background(), s.Agent, proposal)
		if err != nil || s.Count(snap.Action.ID, action.KindProposed) != 1 {
			t.Fatalf("%s: %v, %v", cut, err, s.Kinds(snap.Action.ID))
		}
		again, replayed, err := s.Approvals.Propose(background(), s.Agent, proposal)
		if err != nil || !replayed || again.Action.ID != snap.Action.ID {
			t.Errorf("%s: the key is somebody else's: %v", cut, err)
		}
		// The same of the confirmation: a claim that its executor died with is free
		// again when its lease is over, and nothing of it was sent.
		a, _ := s.Claim(snap.Action)
		later := s.Later(11*time.Minute, storetest.Skewed)
		must(t, action.Sweep(background(), later.DB, later.DB.Due, 100))
		claimed, err := later.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
		if err != nil || claimed.Action.State != action.Executing {
			t.Errorf("%s: claimed again: %v", cut, err)
		}
	}
}
