// Package triage is all that starts once an action is executing: attempts,
// receipts, readings, and what becomes of them.
package triage

import (
	"context"
	"fmt"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/people"
)

// Ledger is where actions are kept, with what only this package needs of it.
type Ledger interface {
	action.Ledger
	// Linked returns the actions that compensate, resume or replace any of these.
	Linked(ctx context.Context, ids ...string) ([]action.Action, error)
	// Concluded returns actions that were done in part, each with one that is
	// linked to it and has taken effect, after a pair of them.
	Concluded(ctx context.Context, after Conclusion, limit int) ([]Conclusion, error)
	// Client returns a program as it is now; NotFound when there is none.
	Client(ctx context.Context, id string) (people.Client, error)
}

// Service runs the commands of this package.
type Service struct {
	ledger    Ledger
	catalogue *rule.Catalogue
}

// New makes the service.
func New(l Ledger, c *rule.Catalogue) *Service { return &Service{ledger: l, catalogue: c} }

// change runs an executor's command on an action that its client may execute,
// judged anew for every try.
func (s *Service) change(ctx context.Context, client people.Client, id string, make func(action.Snapshot) (action.Command, error)) (action.Snapshot, error) {
	each := client.EachTry(ctx, s.ledger.Client)
	return action.Change(ctx, s.ledger, id, func(snap action.Snapshot) (action.Command, error) {
		client, err := each()
		if err != nil {
			return nil, err
		}
		snap.Rests[client.Subject()] = client.Version
		a := snap.Action
		subject := people.Subject{Tool: a.Tool, Scope: a.Scope, Entry: a.Entry, ActorID: a.Actor.ID, ClientID: a.Client.ID}
		if !people.ClientViewer(client).Sees(subject) {
			return nil, action.Refuse(action.NotFound, "There is no such action, or you may not see it.")
		}
		if err := people.ClientMay(client, people.ToExecute, subject); err != nil {
			return nil, err
		}
		return make(snap)
	})
}

// Renew extends a live claim's lease. leaseID makes a repetition recognisable.
func (s *Service) Renew(ctx context.Context, client people.Client, id, claimID, leaseID string) (action.Snapshot, error) {
	if leaseID == "" {
		leaseID = action.NewID("lea")
	}
	if err := ids("/claim_id", claimID, "/lease_id", leaseID); err != nil {
		return action.Snapshot{}, err
	}
	return s.change(ctx, client, id, func(action.Snapshot) (action.Command, error) {
		return action.Renew{Op: "renew:" + leaseID, By: client.By(), ClaimID: claimID}, nil
	})
}

// The codes with which an executor says that an action cannot run at all.
func releaseCodes() []string {
	return []string{"FORBIDDEN", "PRECONDITION_FAILED", "TOOL_UNAVAILABLE", "INVALID_ARGUMENT", "UNKNOWN_TOOL"}
}

// Release gives a claim back before any attempt, the retry or the next step.
// With a code the action fails when nothing was sent so far. why says what keeps
// it from running now, "" when nothing does.
func (s *Service) Release(ctx context.Context, client people.Client, id, claimID, code, why string) (action.Snapshot, error) {
	if err := ids("/claim_id", claimID); err != nil {
		return action.Snapshot{}, err
	}
	if code != "" {
		if err := oneOf("/code", code, releaseCodes()...); err != nil {
			return action.Snapshot{}, err
		}
	}
	return s.change(ctx, client, id, func(action.Snapshot) (action.Command, error) {
		return action.Release{Op: "release:" + claimID, By: client.By(), ClaimID: claimID, Code: code, Why: why, CaseID: action.NewID("cas")}, nil
	})
}

// Attempt is a wire request that an executor wants to send.
type Attempt struct {
	ID          string
	ClaimID     string
	Step        string
	Fingerprint string
}

// Start records an attempt: the leave to send one request until SendBy.
// LeaseLost and AttemptOpen say why not.
func (s *Service) Start(ctx context.Context, client people.Client, id string, t Attempt) (action.Attempt, time.Time, error) {
	if err := ids("/attempt_id", t.ID, "/claim_id", t.ClaimID, "/fingerprint", t.Fingerprint); err != nil {
		return action.Attempt{}, time.Time{}, err
	}
	snap, err := s.change(ctx, client, id, func(action.Snapshot) (action.Command, error) {
		return action.StartAttempt{By: client.By(), AttemptID: t.ID, ClaimID: t.ClaimID, Step: t.Step, Fingerprint: t.Fingerprint}, nil
	})
	if err != nil {
		return action.Attempt{}, time.Time{}, err
	}
	for _, started := range snap.Action.Attempts {
		if started.ID == t.ID {
			return started, snap.Now, nil
		}
	}
	return action.Attempt{}, time.Time{}, fmt.Errorf("attempt %s is not in %s", t.ID, id)
}
