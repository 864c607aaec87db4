package approvals_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
)

func TestToolsSavedAtOnceGetAVersionEach(t *testing.T) {
	s := set(t)
	const n = 8
	consoles := make([]*stage.Console, n)
	for i := range consoles {
		consoles[i] = s.Open(s.DSN, store.Options{MaxConns: 1})
	}
	save := func(source func(i int) string) (versions map[int]int, made int) {
		t.Helper()
		got, was, errs := make([]int, n), make([]bool, n), make([]error, n)
		atOnce(n, func(i int) {
			tool, m, err := consoles[i].Catalogue.Save(background(), "shop.many", []byte(source(i)), action.By{Kind: action.BySystem})
			if errs[i] = err; err == nil {
				got[i], was[i] = tool.Version, m
			}
		})
		versions = map[int]int{}
		for i := range n {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			versions[got[i]]++
			if was[i] {
				made++
			}
		}
		return versions, made
	}
	if versions, made := save(func(int) string { return stage.Contract("shop.many", "", "") }); len(versions) != 1 || versions[1] != n || made != 1 {
		t.Errorf("the same contract, %d times: versions %v, made %d times", n, versions, made)
	}
	versions, made := save(func(i int) string { return stage.Contract("shop.many", "", fmt.Sprintf("timeout: %ds", i+2)) })
	if len(versions) != n || made != n || versions[2] != 1 || versions[n+1] != 1 {
		t.Errorf("%d contracts: versions %v, made %d", n, versions, made)
	}
	if events := s.Kinds("tool:shop.many"); len(events) != n+1 {
		t.Errorf("%d events for %d versions", len(events), n+1)
	}
}

func TestAnActionStaysWithItsContract(t *testing.T) {
	s := set(t)
	a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	s.Tool(stage.Contract(stage.SetPrice, `{ when: "true", role: finance, approvals: 3 }`, ""))
	a = s.Approve(a, s.Mia)
	if a.State != action.Confirmed || a.ToolVersion != 1 {
		t.Fatalf("%s under version %d", a.State, a.ToolVersion)
	}
	c, err := s.Approvals.Claim(background(), s.Executor, a.Confirmation.Ref, action.NewID("clm"), stage.Bound(a))
	if err != nil || c.Tool.Version != 1 {
		t.Errorf("claimed with version %d, %v", c.Tool.Version, err)
	}
	if b := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105)); b.ToolVersion != 2 || b.Needs[0].Approvals != 3 {
		t.Errorf("a new one is under version %d and needs %v", b.ToolVersion, b.Needs)
	}
}

func TestRetiringAToolKeepsOrCancelsWhatIsOpen(t *testing.T) {
	for open, cancelled := range map[string]bool{approvals.KeepOpen: false, approvals.CancelOpen: true} {
		s := set(t)
		waiting := []action.Action{s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 1)), s.Confirmed(stage.SetPrice, stage.Product())}
		p := stage.Proposal(stage.SetPrice, stage.Product(), 1)
		p.Draft = true
		waiting = append(waiting, s.Propose(p))
		running, _ := s.Claim(s.Confirmed(stage.SetPrice, stage.Product()))
		other := s.Propose(stage.Proposal(stage.BigPrice, stage.Product(), 1))
		by := s.Admin.As(people.RoleAdmin, "password")
		if err := s.Approvals.Retire(background(), stage.SetPrice, open, by); err != nil {
			t.Fatal(err)
		}
		for _, a := range waiting {
			got := s.Read(a.ID)
			if (got.State == action.Cancelled) != cancelled || !cancelled && got.Version != a.Version {
				t.Errorf("%s: what was %s is %s", open, a.State, got.State)
			}
		}
		if s.Read(running.ID).State != action.Executing || s.Read(other.ID).State != action.Proposed {
			t.Errorf("%s: what runs, or is another tool's, changed", open)
		}
		_, _, err := s.Approvals.Propose(background(), s.Agent, stage.Proposal(stage.SetPrice, stage.Product(), 1))
		s.Refused(err, action.ToolUnavailable)
		s.Tool(stage.Contract(stage.SetPrice, "", "")) // the same contract again takes it back into use
		s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 1))
	}
	s := set(t)
	s.Refused(s.Approvals.Retire(background(), stage.SetPrice, "burn", action.By{Kind: action.BySystem}), action.InvalidArgument)
}

// A client's waiting proposals have a limit, which may be noticed a second late.
func TestALoopingClientIsHeldBack(t *testing.T) {
	s := set(t)
	narrow := approvals.New(s.DB, s.DB, s.Catalogue, s.DB, s.Approvals.Signer(), 5)
	var err error
	for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); {
		_, _, err = narrow.Propose(background(), s.Agent, stage.Proposal(stage.SetPrice, stage.Product(), 1))
	}
	if r := s.Refused(err, action.RateLimited, "open-proposals"); r.Args["limit"] != "5" {
		t.Errorf("told the limit %q", r.Args["limit"])
	}
	draft := stage.Proposal(stage.SetPrice, stage.Product(), 1)
	draft.Draft = true
	if _, _, err := narrow.Propose(background(), s.Agent, draft); err != nil {
		t.Errorf("a draft waits for nobody: %v", err)
	}
	other := s.Client("other", s.Admin, people.RoleProposer)
	if _, _, err := narrow.Propose(background(), other, stage.Proposal(stage.SetPrice, stage.Product(), 1)); err != nil {
		t.Errorf("another client: %v", err)
	}
}
