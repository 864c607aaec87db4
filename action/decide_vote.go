package action

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// DefaultRole decides where a contract says nothing.
const DefaultRole = "support"

// Confirmation is what enough decisions become: a reference that an executor
// may claim once before it expires.
type Confirmation struct {
	Ref       string    `json:"ref"`
	Revision  int       `json:"revision"`
	At        time.Time `json:"at"`
	ExpiresAt time.Time `json:"expires_at"`
	// Voters are the people whose approval counted when it was given, each with
	// every role that it could count for then. None where nobody had to approve.
	Voters map[string][]string `json:"voters,omitempty"`
}

func (c Vote) op() string { return c.Op }

func (c Vote) again(_ Snapshot, left Event) error {
	var was decided
	var b textBody
	if err := unmarshalBoth(left, &was, &b); err != nil {
		return err
	}
	if d := was.Decision; c.By.same(left) && d.Approve == c.Approve && d.ProposalHash == c.ProposalHash && d.ReasonCode == c.ReasonCode && b.Note == c.Note {
		return nil
	}
	return c.twice()
}

func (c Vote) twice() error {
	return Refuse(AlreadyDecided, "You have decided on this revision already.").Because("by-you").With("by", c.By.Name)
}

func (c Vote) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if a.State.In(Proposed) {
		if c.Revision != a.Revision || c.ProposalHash != a.ProposalHash {
			return Transition{}, Refuse(StaleRevision, "Not recorded. The content changed after you opened it. Review the new version.")
		}
	} else if err := s.tooLate(c); err != nil {
		return Transition{}, err
	}
	if a.decidedBy(c.By.ID) {
		return Transition{}, c.twice()
	}
	roles := s.Authority[c.By.ID]
	if len(roles) == 0 {
		return Transition{}, Refuse(Forbidden, "You may not decide on this.").Because("role")
	}
	d := decided{Decision: Decision{Approve: c.Approve, Revision: c.Revision, ProposalHash: c.ProposalHash,
		ReasonCode: c.ReasonCode, StepUp: c.StepUp}}
	to := Rejected
	if c.Approve {
		if stepUp(a.Needs) && !c.StepUp {
			return Transition{}, Refuse(Forbidden, "This approval needs you to prove again who you are.").Because("step-up")
		}
		to = Proposed
		voters := s.Approvals()
		voters[c.By.ID] = roles
		if Met(a.Needs, voters) {
			to = Confirmed
			d.Confirmation = confirm(s, c.Ref, a.Revision, a.Terms, *a.ExpiresAt, asked(a.Needs, voters))
		}
	}
	return s.step(c.Op, c.By, KindDecided, to, d, textBody{Note: c.Note})
}

func (c Count) op() string                  { return "" }
func (c Count) again(Snapshot, Event) error { return nil }

func (c Count) decide(s Snapshot) (Transition, error) {
	a := s.Action
	voters := s.Approvals()
	if a.State != Proposed || !Met(a.Needs, voters) {
		return Transition{Next: a}, nil
	}
	d := counted{Confirmation: confirm(s, c.Ref, a.Revision, a.Terms, *a.ExpiresAt, asked(a.Needs, voters))}
	return s.step("count:"+strconv.FormatInt(a.Version, 10), By{Kind: BySystem}, KindCounted, Confirmed, d, nil)
}

func (a Action) decidedBy(person string) bool {
	return slices.ContainsFunc(a.Decisions, func(d Decision) bool { return d.Revision == a.Revision && d.By.ID == person })
}

// tooLate says why a decision is no longer wanted, and who decided.
func (s Snapshot) tooLate(c Vote) error {
	a := s.Action
	if n := len(a.Decisions); n > 0 && a.Decisions[n-1].Revision == c.Revision && !a.State.In(Expired, Cancelled, Draft) {
		last := a.Decisions[n-1]
		outcome := "approved"
		if !last.Approve {
			outcome = "rejected"
		}
		return Refuse(AlreadyDecided, "Not recorded. "+last.By.Name+" has "+outcome+" it already.").
			Because(outcome).With("by", last.By.Name).With("at", last.At.UTC().Format(time.RFC3339))
	}
	return s.need("decided", Proposed)
}

func stepUp(needs []Need) bool {
	return slices.ContainsFunc(needs, func(n Need) bool { return n.StepUp })
}

// Approvals returns the people whose approval of the current revision counts
// now, with the roles it may count for. Somebody who lost their authority
// since is not among them.
func (s Snapshot) Approvals() map[string][]string {
	voters := map[string][]string{}
	for _, d := range s.Action.Decisions {
		if d.Approve && d.Revision == s.Action.Revision && d.ProposalHash == s.Action.ProposalHash {
			if roles := s.Authority[d.By.ID]; len(roles) > 0 {
				voters[d.By.ID] = roles
			}
		}
	}
	return voters
}

// Met reports whether the voters can meet all needs when every person counts
// once, for one role.
func Met(needs []Need, voters map[string][]string) bool { return Missing(needs, voters) == 0 }

// Missing returns how many more approvals are needed at least, when every
// person counts once: needs and people are matched one to one.
func Missing(needs []Need, voters map[string][]string) int {
	_, missing := seat(needs, voters)
	return missing
}

// seat gives as many of the needed approvals as can be each a voter of its role:
// by person the role they are counted for, and how many are left.
func seat(needs []Need, voters map[string][]string) (roles map[string]string, missing int) {
	var seats []string
	for _, n := range needs {
		for range n.Approvals {
			seats = append(seats, n.Role)
		}
	}
	taken := make([]string, len(seats))
	var place func(person string, tried map[int]bool) bool
	place = func(person string, tried map[int]bool) bool {
		for i, role := range seats {
			if tried[i] || !slices.Contains(voters[person], role) {
				continue
			}
			tried[i] = true
			if taken[i] == "" || place(taken[i], tried) {
				taken[i] = person
				return true
			}
		}
		return false
	}
	for _, person := range slices.Sorted(maps.Keys(voters)) {
		place(person, map[int]bool{})
	}
	roles = map[string]string{}
	for i, person := range taken {
		if person == "" {
			missing++
		} else {
			roles[person] = seats[i]
		}
	}
	return roles, missing
}

// Counted returns the approvals that the confirmation rests on, in the order
// they were given: of each who gave it, in the role that it was counted for.
// None before there is a confirmation, or where nobody had to approve.
func (a Action) Counted() []Decision {
	if a.Confirmation == nil {
		return nil
	}
	roles, _ := seat(a.Needs, a.Confirmation.Voters)
	var found []Decision
	for _, d := range a.Decisions {
		if a.Confirmation.Voters[d.By.ID] == nil || d.Revision != a.Confirmation.Revision {
			continue
		}
		if role, seated := roles[d.By.ID]; seated {
			d.By.Role = role
		}
		found = append(found, d)
	}
	return found
}

// asked leaves out who has no role by now that is asked for.
func asked(needs []Need, voters map[string][]string) map[string][]string {
	voters = maps.Clone(voters)
	maps.DeleteFunc(voters, func(_ string, roles []string) bool {
		return !slices.ContainsFunc(needs, func(n Need) bool { return n.Approvals > 0 && slices.Contains(roles, n.Role) })
	})
	return voters
}

func confirm(s Snapshot, ref string, revision int, terms Terms, expires time.Time, voters map[string][]string) *Confirmation {
	until := clip(s.Now.Add(terms.ConfirmationTTL))
	if expires.Before(until) {
		until = expires
	}
	return &Confirmation{Ref: ref, Revision: revision, At: s.Now, ExpiresAt: until, Voters: voters}
}
