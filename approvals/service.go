// Package approvals is all that starts while an action is a draft, proposed or
// confirmed: proposing, revising, deciding, cancelling, and the confirmation
// that an executor claims; and tasks, which group actions under one budget.
package approvals

import (
	"context"
	"fmt"
	"sync"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/people"
)

// Ledger is where actions are kept, with what only this package needs of it.
type Ledger interface {
	action.Ledger
	// Create writes a first event. False means that its op has made an action before.
	Create(ctx context.Context, t action.Transition) (bool, error)
	// Find returns the id of the action that a propose op made, or that a
	// confirmation_ref belongs to, or "".
	Find(ctx context.Context, opOrRef string) (string, error)
	// OpenOf returns actions of a tool that have not run, by id after one.
	OpenOf(ctx context.Context, tool, after string, limit int) ([]string, error)
	// OpenProposals counts a client's proposals that wait for a decision.
	OpenProposals(ctx context.Context, client string) (int, error)
}

// Recount is a proposal whose approvals may be enough since somebody who decided
// on it was changed. Serial is one more with every such change.
type Recount struct {
	ActionID string `db:"action_id"`
	Serial   int64  `db:"serial"`
}

// Directory knows the people, by id and all of them.
type Directory interface {
	Person(ctx context.Context, id string) (people.Person, error)
	Persons(ctx context.Context) ([]people.Person, error)
	Client(ctx context.Context, id string) (people.Client, error)
	// Recounts returns what is to be counted anew, by serial after one.
	Recounts(ctx context.Context, after int64, limit int) ([]Recount, error)
	// Recounted removes one, unless it has another serial by now.
	Recounted(ctx context.Context, r Recount) error
}

// Service runs the commands of this package.
type Service struct {
	ledger    Ledger
	tasks     TaskStore
	catalogue *rule.Catalogue
	directory Directory
	signer    *Signer
	maxOpen   int

	owners sync.Map // client id → person id, which is for life

	mu      sync.Mutex
	open    map[string]counted
	persons []people.Person // as of readAt
	readAt  time.Time
}

// counted is a count that is allowed to be a second old.
type counted struct {
	n  int
	at time.Time
}

// DefaultMaxOpen is how many proposals of one client may wait at a time.
const DefaultMaxOpen = 10_000

// New makes the service. maxOpen bounds how many proposals of one client may
// wait at a time.
func New(l Ledger, k TaskStore, c *rule.Catalogue, d Directory, s *Signer, maxOpen int) *Service {
	return &Service{ledger: l, tasks: k, catalogue: c, directory: d, signer: s, maxOpen: maxOpen, open: map[string]counted{}}
}

// Catalogue returns the contracts.
func (s *Service) Catalogue() *rule.Catalogue { return s.catalogue }

// Signer returns what signs confirmations.
func (s *Service) Signer() *Signer { return s.signer }

// fresh is how old what is only shown may be.
const fresh = time.Second

// everybody returns all people as they were at most a second ago: for numbers
// that inform, never for what somebody may do.
func (s *Service) everybody(ctx context.Context) ([]people.Person, error) {
	s.mu.Lock()
	persons, age := s.persons, time.Since(s.readAt)
	s.mu.Unlock()
	if age < fresh {
		return persons, nil
	}
	persons, err := s.directory.Persons(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.persons, s.readAt = persons, time.Now()
	s.mu.Unlock()
	return persons, nil
}

// underCap refuses when too many of a client's proposals wait.
func (s *Service) underCap(ctx context.Context, client string) error {
	s.mu.Lock()
	c := s.open[client]
	s.mu.Unlock()
	if time.Since(c.at) > fresh {
		n, err := s.ledger.OpenProposals(ctx, client)
		if err != nil {
			return err
		}
		c = counted{n: n, at: time.Now()}
		s.mu.Lock()
		s.open[client] = c
		s.mu.Unlock()
	}
	if c.n >= s.maxOpen {
		return action.Refuse(action.RateLimited, fmt.Sprintf("%d proposals of this client wait for a decision, which is the limit. Wait, or cancel some.", c.n)).
			Because("open-proposals").With("limit", fmt.Sprint(s.maxOpen))
	}
	return nil
}

// change runs a command of the client that proposed the action, which gets the
// client as it is for each try. Another one, whoever answers for it, would put its
// content under this one's name.
func (s *Service) change(ctx context.Context, client people.Client, id string, make func(people.Client, action.Snapshot) (action.Command, error)) (action.Snapshot, error) {
	each := client.EachTry(ctx, s.directory.Client)
	return action.Change(ctx, s.ledger, id, func(snap action.Snapshot) (action.Command, error) {
		client, err := each()
		if err != nil {
			return nil, err
		}
		snap.Rests[client.Subject()] = client.Version
		a := snap.Action
		if !people.ClientViewer(client).Sees(SubjectOf(a, "")) {
			return nil, action.Refuse(action.NotFound, "There is no such action, or you may not see it.")
		}
		if err := people.ClientMay(client, people.ToPropose, SubjectOf(a, "")); err != nil {
			return nil, err
		}
		if a.Client.ID != client.ID {
			return nil, action.Refuse(action.Forbidden, "Only the program that proposed this may change it.").Because("proposer")
		}
		return make(client, snap)
	})
}

// SubjectOf is what authority over an action depends on. owner is the person
// who answers for the client that proposed it, where that matters.
func SubjectOf(a action.Action, owner string) people.Subject {
	return people.Subject{Tool: a.Tool, Scope: a.Scope, Entry: a.Entry, ActorID: a.Actor.ID, ClientID: a.Client.ID, ClientOwner: owner}
}
