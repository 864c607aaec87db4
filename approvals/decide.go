package approvals

import (
	"context"
	"fmt"
	"slices"
	"time"

	"countersign/action"
	"countersign/people"
)

// ReasonCodes are why somebody rejects, in the order they are offered.
func ReasonCodes() []string {
	return []string{"wrong_target", "wrong_amount", "not_allowed", "duplicate", "not_needed", "need_information", "suspicious"}
}

// Ballot is what a person sends back: the yes or no, and exactly what the page
// showed them.
type Ballot struct {
	Approve      bool
	Revision     int
	ProposalHash string
	ReasonCode   string
	Note         string
	Method       string // how the person had signed in
	StepUp       bool   // the person proved anew who they are
	// Shown is when the page of a proposal that followed right upon another
	// decision was served; zero for any other page.
	Shown time.Time
}

// LookFirst is for how long what follows right upon another decision cannot be
// approved: the click may have been meant for the one before.
const LookFirst = 800 * time.Millisecond

// maxNote bounds a note, in bytes.
const maxNote = 2000

// Decide records one person's decision on exactly what they were shown.
// StaleRevision when that changed since, AlreadyDecided when somebody was
// faster, Forbidden with the reason when they may not.
func (s *Service) Decide(ctx context.Context, personID, id string, b Ballot) (action.Snapshot, error) {
	if err := b.check(); err != nil {
		return action.Snapshot{}, err
	}
	return action.Change(ctx, s.ledger, id, func(snap action.Snapshot) (action.Command, error) {
		person, err := s.directory.Person(ctx, personID)
		if err != nil {
			return nil, err
		}
		if !people.PersonViewer(person).Sees(SubjectOf(snap.Action, "")) {
			return nil, action.Refuse(action.NotFound, "There is no such action, or you may not see it.")
		}
		roles, err := s.authorize(ctx, &snap, person)
		if err != nil {
			return nil, err
		}
		op := fmt.Sprintf("decide:%d:%s", b.Revision, person.ID)
		if err := b.looked(snap, op); err != nil {
			return nil, err
		}
		return action.Vote{Op: op, By: person.As(roles[0], b.Method),
			Approve: b.Approve, Revision: b.Revision, ProposalHash: b.ProposalHash, ReasonCode: b.ReasonCode, Note: b.Note,
			StepUp: b.StepUp, Ref: action.NewRef()}, nil
	})
}

func (b Ballot) check() error {
	if len(b.Note) > maxNote {
		return action.Refuse(action.InvalidArgument, "The note is too long.").At("/reason", fmt.Sprintf("must have at most %d bytes", maxNote))
	}
	if b.Approve {
		return nil
	}
	if !slices.Contains(ReasonCodes(), b.ReasonCode) {
		return action.Refuse(action.InvalidArgument, "Say why you reject it.").Because("reason-code").At("/reason_code", "must be one of the reasons offered")
	}
	return nil
}

// looked refuses an approval that came before its page could be looked at.
func (b Ballot) looked(snap action.Snapshot, op string) error {
	_, done := snap.Action.Done(op)
	if done || !b.Approve || b.Shown.IsZero() || snap.Action.State != action.Proposed || snap.Now.Sub(b.Shown) >= LookFirst {
		return nil
	}
	return action.Refuse(action.RateLimited, "Not recorded. This is another proposal than the one before. Look at it, then decide.").Because("look-first")
}

// authorize fills in whose approvals count now, and returns the roles in which
// this person decides: those that are asked for, first.
func (s *Service) authorize(ctx context.Context, snap *action.Snapshot, person people.Person) ([]string, error) {
	owner, err := s.owner(ctx, snap.Action.Client.ID)
	if err != nil {
		return nil, err
	}
	subject := SubjectOf(snap.Action, owner)
	roles, refusal := people.RolesOn(person, subject)
	if refusal != nil {
		return nil, refusal
	}
	asked := asked(snap.Action, roles)
	if len(asked) == 0 && snap.Action.State == action.Proposed {
		return nil, action.Refuse(action.Forbidden, "This needs somebody in another role.").Because("role").With("roles", wanted(snap.Action))
	}
	if err := s.voters(ctx, snap, subject, person.ID); err != nil {
		return nil, err
	}
	snap.Authority[person.ID], snap.Rests[person.Subject()] = roles, person.Version
	return append(asked, roles...), nil
}

// voters fills in the authority that those have now who decided on the current
// content, but for one.
func (s *Service) voters(ctx context.Context, snap *action.Snapshot, subject people.Subject, but string) error {
	voters := []people.Person{}
	for _, d := range snap.Action.Decisions {
		if d.Revision == snap.Action.Revision && d.By.ID != but {
			p, err := s.directory.Person(ctx, d.By.ID)
			if err != nil {
				return err
			}
			voters, snap.Rests[p.Subject()] = append(voters, p), p.Version
		}
	}
	for id, roles := range people.Authority(voters, subject) {
		snap.Authority[id] = roles
	}
	return nil
}

// Recount confirms proposals whose approvals are enough without another one:
// somebody who had approved lost their authority, and has it back. It looks at
// all that are to be counted anew, batch at a time. One that cannot be counted
// keeps no other waiting, and is looked at again.
func (s *Service) Recount(ctx context.Context, batch int) error {
	return action.Each(ctx, func(after Recount) ([]Recount, error) { return s.directory.Recounts(ctx, after.Serial, batch) }, func(r Recount) error {
		if err := s.recount(ctx, r); err != nil {
			return fmt.Errorf("counting the approvals of %s: %w", r.ActionID, err)
		}
		return nil
	})
}

func (s *Service) recount(ctx context.Context, r Recount) error {
	_, err := action.Change(ctx, s.ledger, r.ActionID, func(snap action.Snapshot) (action.Command, error) {
		owner, err := s.owner(ctx, snap.Action.Client.ID)
		if err != nil {
			return nil, err
		}
		return action.Count{Ref: action.NewRef()}, s.voters(ctx, &snap, SubjectOf(snap.Action, owner), "")
	})
	if err != nil {
		return err
	}
	return s.directory.Recounted(ctx, r)
}

// asked returns those of the roles that the action asks approvals of.
func asked(a action.Action, roles []string) []string {
	var found []string
	for _, n := range a.Needs {
		if n.Approvals > 0 && slices.Contains(roles, n.Role) {
			found = append(found, n.Role)
		}
	}
	return found
}

func wanted(a action.Action) string {
	text := ""
	for _, n := range a.Needs {
		if n.Approvals > 0 {
			if text != "" {
				text += ", "
			}
			text += n.Role
		}
	}
	return text
}

// owner is the person who answers for a client.
func (s *Service) owner(ctx context.Context, client string) (string, error) {
	if known, ok := s.owners.Load(client); ok {
		return known.(string), nil
	}
	c, err := s.directory.Client(ctx, client)
	if err != nil {
		return "", err
	}
	s.owners.Store(client, c.Owner)
	return c.Owner, nil
}

// Standing is how far the decisions on an action are.
type Standing struct {
	Required int             // approvals in all
	Given    int             // that count now
	Missing  int             // people needed still
	Counting map[string]bool // by person: their approval counts
	Eligible []people.Person // who could still approve; nobody once it is decided
	Stuck    bool            // all of them together are not enough
	May      error           // why the viewer may not decide; nil when they may
	Roles    []string        // in which the viewer would decide
}

// Standing says who has decided, whose approval counts now, and who could
// still approve. viewer is the person who asks, or nil.
func (s *Service) Standing(ctx context.Context, a action.Action, viewer *people.Person) (Standing, error) {
	all, err := s.Standings(ctx, []action.Action{a}, viewer)
	if err != nil {
		return Standing{}, err
	}
	return all[0], nil
}

// Standings is Standing for a list, in its order: people are read once, and
// without a viewer they are as they were at most a second ago.
func (s *Service) Standings(ctx context.Context, actions []action.Action, viewer *people.Person) ([]Standing, error) {
	read := s.directory.Persons
	if viewer == nil {
		read = s.everybody
	}
	persons, err := read(ctx)
	if err != nil {
		return nil, err
	}
	standings := make([]Standing, len(actions))
	for i, a := range actions {
		owner, err := s.owner(ctx, a.Client.ID)
		if err != nil {
			return nil, err
		}
		standings[i] = standing(a, persons, SubjectOf(a, owner), viewer)
	}
	return standings, nil
}

func standing(a action.Action, persons []people.Person, subject people.Subject, viewer *people.Person) Standing {
	var st Standing
	for _, n := range a.Needs {
		st.Required += n.Approvals
	}
	if viewer != nil {
		st.Roles, st.May = mayDecide(a, *viewer, subject)
	}
	if a.Confirmation != nil { // it was enough when it was given
		st.Given, st.Counting = st.Required, approvers(a)
		return st
	}
	authority := people.Authority(persons, subject)
	voters := action.Snapshot{Action: a, Authority: authority}.Approvals()
	st.Missing, st.Counting = action.Missing(a.Needs, voters), map[string]bool{}
	st.Given = st.Required - st.Missing
	for id, roles := range voters {
		st.Counting[id] = len(asked(a, roles)) > 0
	}
	if a.State != action.Proposed {
		return st
	}
	for _, p := range persons {
		if len(asked(a, authority[p.ID])) > 0 && !decided(a, p.ID) {
			st.Eligible = append(st.Eligible, p)
			voters[p.ID] = authority[p.ID]
		}
	}
	st.Stuck = action.Missing(a.Needs, voters) > 0
	return st
}

// approvers are those on whose approval the confirmation rests.
func approvers(a action.Action) map[string]bool {
	found := map[string]bool{}
	for _, d := range a.Counted() {
		found[d.By.ID] = true
	}
	return found
}

func mayDecide(a action.Action, p people.Person, subject people.Subject) ([]string, error) {
	roles, refusal := people.RolesOn(p, subject)
	if refusal != nil {
		return nil, refusal
	}
	found := asked(a, roles)
	switch {
	case len(found) == 0:
		return nil, action.Refuse(action.Forbidden, "This needs somebody in another role.").Because("role").With("roles", wanted(a))
	case decided(a, p.ID):
		return nil, action.Refuse(action.AlreadyDecided, "You have decided on this revision already.").Because("by-you")
	}
	return found, nil
}

func decided(a action.Action, person string) bool {
	return slices.ContainsFunc(a.Decisions, func(d action.Decision) bool {
		return d.Revision == a.Revision && d.By.ID == person
	})
}
