package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/people"
)

// Proposal is what a program asks for.
type Proposal struct {
	Key           string // the caller's Idempotency-Key
	Tool          string
	Actor         action.Actor
	Target        *action.Target
	ObjectVersion *string
	Payload       json.RawMessage // as sent
	Reason        string
	ExpiresIn     *time.Duration
	TaskID        string
	Entry         string
	Draft         bool
	Links         action.Links
	RequestID     string
	Trace         string `json:"-"` // W3C traceparent of the request; no part of what is wanted

	canonical json.RawMessage // of Payload, or why there is none
	unfit     error
}

// How long a proposal may wait for people.
const (
	minExpiry = time.Second
	maxExpiry = 30 * 24 * time.Hour
)

// Propose starts an action. replayed says that this key made it before.
// IdempotencyKeyReused when the key was used for another request.
func (s *Service) Propose(ctx context.Context, client people.Client, p Proposal) (snap action.Snapshot, replayed bool, err error) {
	op := "propose:" + client.ID + ":" + p.Key
	p.canonical, p.unfit = action.Canonical(p.Payload)
	digest := p.digest()
	var t action.Transition
	for try := range maxMoved {
		var now time.Time
		t, now, err = s.prepare(ctx, client, p, op, digest)
		refusedByOld := err != nil && try == 0 // perhaps only by a contract that was in use a moment ago
		if err == nil {
			var made bool
			if made, err = s.create(ctx, t); made {
				return action.Snapshot{Action: t.Next, Now: now}, false, nil
			}
		}
		if !refusedByOld && (err == nil || action.AsRefusal(err).Reason != ToolMoved) {
			break
		}
		s.catalogue.Forget(p.Tool)
	}
	// Whatever was refused: a key that was used before is answered as then.
	id, findErr := s.ledger.Find(ctx, op)
	if findErr != nil || id == "" {
		return action.Snapshot{}, false, errors.Join(s.pauseTask(ctx, client.ID, err), findErr)
	}
	snap, err = s.ledger.Snapshot(ctx, id)
	if err == nil && snap.Action.Digest != digest {
		err = action.Refuse(action.IdempotencyKeyReused, "This Idempotency-Key was used for another request. Use a new key for a new request.").With("action", id)
	}
	return snap, id != t.Next.ID, err // it is ours when only the answer was lost
}

// ToolMoved is the reason for not writing a proposal whose contract was not the
// one in use any more; it is decided anew then, at most maxMoved times.
const (
	ToolMoved = "tool-moved"
	maxMoved  = 3
)

// maxLost bounds how often a lost answer is asked for again.
const maxLost = 5

// create writes the first event, again when the answer was lost.
func (s *Service) create(ctx context.Context, t action.Transition) (bool, error) {
	for range maxLost {
		made, err := s.ledger.Create(ctx, t)
		if !errors.Is(err, action.ErrLost) {
			return made, err
		}
	}
	return false, action.Refuse(action.OutcomeUnknown, "We cannot tell whether this was recorded. Repeat the request with the same key: it takes effect once.").From(action.ErrLost)
}

// prepare checks a proposal against its contract and the client's limits, and
// decides its first event.
func (s *Service) prepare(ctx context.Context, client people.Client, p Proposal, op, digest string) (action.Transition, time.Time, error) {
	var none action.Transition
	tool, err := s.catalogue.Lately(ctx, p.Tool, client.From(p.Entry))
	if err != nil {
		return none, time.Time{}, err
	}
	if p.unfit != nil {
		return none, time.Time{}, action.Under("/payload", p.unfit)
	}
	p.Payload = p.canonical
	c, err := check(ctx, tool, p)
	if err != nil {
		return none, time.Time{}, err
	}
	if err := people.ClientMay(client, people.ToPropose, people.Subject{Tool: p.Tool, Scope: c.Scope, Entry: p.Entry}); err != nil {
		return none, time.Time{}, err
	}
	if !p.Draft {
		if err := s.underCap(ctx, client.ID); err != nil {
			return none, time.Time{}, err
		}
		if err := s.follows(ctx, p.Links, tool.Contract, c.Target, c.ObjectVersion); err != nil {
			return none, time.Time{}, err
		}
		if c.Terms, err = s.resumed(ctx, p.Links.Resumes, tool.Name, c.Terms); err != nil {
			return none, time.Time{}, err
		}
	}
	cmd := action.Propose{Op: op, By: client.By(), ID: action.NewID("act"), Draft: p.Draft, Tool: tool.Name, Actor: p.Actor,
		Entry: p.Entry, TaskID: p.TaskID, RequestID: p.RequestID, Trace: p.Trace, Links: p.Links, Key: action.NewID("exk"), Ref: action.NewRef(),
		Digest: digest, Content: c}
	t, err := action.Decide(action.Snapshot{Now: tool.Now.UTC()}, cmd)
	return t, tool.Now.UTC(), err
}

// check turns a proposal with a canonical payload into content: target, scope,
// expiry, and what the contract asks of people.
func check(ctx context.Context, tool *rule.Tool, p Proposal) (action.Content, error) {
	var none action.Content
	canonical := p.Payload
	if err := tool.Contract.ValidateInput(canonical); err != nil {
		return none, action.Under("/payload", err)
	}
	if err := tool.Rules.Validate(ctx, canonical); err != nil {
		return none, action.Under("/payload", err)
	}
	target, scope, err := bearings(tool.Contract, canonical, p.Target)
	if err != nil {
		return none, err
	}
	if err := versionUse(tool.Contract, p.ObjectVersion); err != nil {
		return none, err
	}
	expires, err := expiry(tool.Contract, p.ExpiresIn)
	if err != nil {
		return none, err
	}
	demand, err := tool.Rules.Needs(ctx, rule.Facts{Payload: canonical, Actor: p.Actor, Target: target})
	if err != nil {
		return none, err
	}
	terms := termsOf(tool.Contract)
	if terms.SecondPerson, err = tool.Rules.SecondPerson(ctx, canonical); err != nil {
		return none, err
	}
	if p.Links.Compensates != "" { // what undoes something is tried once
		terms.RetrySameKey = false
	}
	return action.Content{ToolVersion: tool.Version, Scope: scope, Target: target, ObjectVersion: p.ObjectVersion, Payload: canonical,
		Reason: p.Reason, ExpiresIn: expires, Terms: terms, Needs: demand.Needs}, nil
}

// bearings finds target and scope. A contract that names its target wins; a
// request that names another one is refused.
func bearings(c *contract.Contract, payload []byte, asked *action.Target) (*action.Target, string, error) {
	scope, err := c.ScopeOf(payload)
	if err != nil {
		return nil, "", action.Under("/payload", err)
	}
	typ, id, ok, err := c.TargetOf(payload)
	if err != nil {
		return nil, "", action.Under("/payload", err)
	}
	if !ok {
		return asked, scope, nil
	}
	if asked != nil && (asked.Type != typ || asked.ID != id) {
		return nil, "", action.Refuse(action.InvalidArgument, "The payload is about another target than the request names.").
			At("/target", fmt.Sprintf("must be left out, or be type %q and id %q", typ, id))
	}
	return &action.Target{Type: typ, ID: id}, scope, nil
}

func versionUse(c *contract.Contract, version *string) error {
	switch {
	case c.ObjectVersion == contract.VersionRequired && version == nil:
		return action.Refuse(action.InvalidArgument, "This tool needs the version of the object that the proposal is based on.").
			At("/object_version", "is required: send the version that you read")
	case c.ObjectVersion == contract.VersionNone && version != nil:
		return action.Refuse(action.InvalidArgument, "This tool knows no object versions.").At("/object_version", "must be left out")
	}
	return nil
}

func expiry(c *contract.Contract, asked *time.Duration) (time.Duration, error) {
	if asked == nil {
		return c.Approval.TTL.Duration, nil
	}
	if *asked < minExpiry || *asked > maxExpiry || *asked%time.Second != 0 {
		return 0, action.Refuse(action.InvalidArgument, "The proposal's life is out of range.").
			At("/expires_in", "must be whole seconds, from 1s to 720h")
	}
	return *asked, nil
}

// termsOf is what the life of an action needs of its contract.
func termsOf(c *contract.Contract) action.Terms {
	e := c.Execution
	t := action.Terms{Write: c.Mode == contract.Write, ConfirmationTTL: c.Approval.ConfirmationTTL.Duration,
		Lease: e.Lease.Duration, SendWithin: sendWithin, Proves: action.Proof(e.Proves), RetrySameKey: e.Retry == contract.RetrySameKey,
		KeyLifetime: e.KeyLifetime.Duration, FenceAfter: e.FenceAfter.Duration, Deadline: e.Deadline.Duration,
		Before: c.Approval.Before, Verify: len(e.Postconditions) > 0, VerifyTries: e.Verify.Tries,
		VerifyWindow: e.Verify.Window.Duration, Block: action.BlockTarget}
	switch {
	case !t.Write: // what only reads holds nothing up
		t.Block = action.BlockNone
	case c.Target != nil:
		t.Block = string(c.Target.Block)
	}
	if q := e.StatusQuery; q != nil {
		t.StatusQuery, t.MaxPolls = q.Tool, q.MaxPolls
	}
	for _, s := range e.Steps {
		step := action.StepTerms{Name: s.Name, Proves: s.Proves, StatusQuery: t.StatusQuery, Verify: len(s.Postconditions) > 0}
		if s.StatusQuery != nil {
			step.StatusQuery = s.StatusQuery.Tool
		}
		t.Steps = append(t.Steps, step)
	}
	return t
}

// sendWithin is how long after its attempt was recorded a request may leave.
const sendWithin = 5 * time.Second

// digest tells one request from another.
func (p Proposal) digest() string {
	payload := p.canonical
	if p.unfit != nil {
		payload = p.Payload
	}
	p.Payload, p.RequestID, p.Key = nil, "", ""
	head, _ := json.Marshal(p) // plain strings and numbers: cannot fail
	sum := sha256.New()
	sum.Write(head)
	sum.Write(payload)
	return hex.EncodeToString(sum.Sum(nil))
}

// Submit proposes a draft. ifMatch is the version that the caller saw.
func (s *Service) Submit(ctx context.Context, client people.Client, id string, ifMatch int64) (action.Snapshot, error) {
	snap, err := s.change(ctx, client, id, func(client people.Client, snap action.Snapshot) (action.Command, error) {
		op := fmt.Sprintf("submit:%s:%d", client.ID, ifMatch)
		a := snap.Action
		if err := current(snap, op, ifMatch); err != nil {
			return nil, err
		}
		if _, done := a.Done(op); done { // whatever the contract says by now
			return action.Submit{Op: op}, nil
		}
		if err := s.underCap(ctx, client.ID); err != nil {
			return nil, err
		}
		tool, err := s.catalogue.Active(ctx, a.Tool, client.From(a.Entry))
		if err != nil {
			return nil, err
		}
		life := a.ExpiresIn
		c, err := check(ctx, tool, Proposal{Actor: a.Actor, Target: a.Target, ObjectVersion: a.ObjectVersion, Payload: a.Payload, ExpiresIn: &life, Links: a.Links})
		if err != nil {
			return nil, err
		}
		if err := s.follows(ctx, a.Links, tool.Contract, c.Target, c.ObjectVersion); err != nil {
			return nil, err
		}
		if c.Terms, err = s.resumed(ctx, a.Links.Resumes, a.Tool, c.Terms); err != nil {
			return nil, err
		}
		if err := people.ClientMay(client, people.ToPropose, people.Subject{Tool: a.Tool, Scope: c.Scope, Entry: a.Entry}); err != nil {
			return nil, err
		}
		return action.Submit{Op: op, By: client.By(), ToolVersion: c.ToolVersion, Scope: c.Scope, Target: c.Target,
			Terms: c.Terms, Needs: c.Needs, Ref: action.NewRef()}, nil
	})
	return snap, s.pauseTask(ctx, client.ID, err)
}

// Revision is new content for an action. Tool, actor and target stay.
type Revision struct {
	Payload       json.RawMessage
	ObjectVersion *string
	Reason        string
	ExpiresIn     *time.Duration
}

// Revise replaces the content. ifMatch is the version that the caller saw.
func (s *Service) Revise(ctx context.Context, client people.Client, id string, ifMatch int64, r Revision) (action.Snapshot, error) {
	return s.change(ctx, client, id, func(client people.Client, snap action.Snapshot) (action.Command, error) {
		op := fmt.Sprintf("revise:%s:%d", client.ID, ifMatch)
		a := snap.Action
		if err := current(snap, op, ifMatch); err != nil {
			return nil, err
		}
		tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
		if err != nil {
			return nil, err
		}
		if r.ExpiresIn == nil {
			life := a.ExpiresIn
			r.ExpiresIn = &life
		}
		canonical, err := action.Canonical(r.Payload)
		if err != nil {
			return nil, action.Under("/payload", err)
		}
		c, err := check(ctx, tool, Proposal{Actor: a.Actor, Target: a.Target, ObjectVersion: r.ObjectVersion, Payload: canonical, Reason: r.Reason, ExpiresIn: r.ExpiresIn, Links: a.Links})
		if err != nil {
			return nil, err
		}
		if a.State == action.Proposed {
			if err := s.follows(ctx, a.Links, tool.Contract, c.Target, c.ObjectVersion); err != nil {
				return nil, err
			}
		}
		if err := people.ClientMay(client, people.ToPropose, people.Subject{Tool: a.Tool, Scope: c.Scope, Entry: a.Entry}); err != nil {
			return nil, err
		}
		return action.Revise{Op: op, By: client.By(), Scope: c.Scope, ObjectVersion: c.ObjectVersion, Payload: c.Payload,
			Reason: c.Reason, ExpiresIn: c.ExpiresIn, Needs: c.Needs, SecondPerson: c.Terms.SecondPerson, Ref: action.NewRef()}, nil
	})
}

// Cancel ends an action that has not run. ifMatch is the version that the
// caller saw.
func (s *Service) Cancel(ctx context.Context, client people.Client, id string, ifMatch int64, reason string) (action.Snapshot, error) {
	return s.change(ctx, client, id, func(client people.Client, snap action.Snapshot) (action.Command, error) {
		op := fmt.Sprintf("cancel:%s:%d", client.ID, ifMatch)
		if err := current(snap, op, ifMatch); err != nil {
			return nil, err
		}
		return action.Cancel{Op: op, By: client.By(), Reason: reason}, nil
	})
}

// current refuses a command on another version than its caller saw, unless
// the command was run on that version before.
func current(snap action.Snapshot, op string, ifMatch int64) error {
	if _, done := snap.Action.Done(op); done || snap.Action.Version == ifMatch {
		return nil
	}
	if snap.Action.State == action.Expired { // which may have been written just now
		return action.Refuse(action.ExpiredCode, "The time for this is over. Propose it again if it is still wanted.").With("state", string(action.Expired))
	}
	return action.Refuse(action.StaleRevision, fmt.Sprintf("The action is at version %d, not %d. Read it again.", snap.Action.Version, ifMatch)).
		With("version", fmt.Sprint(snap.Action.Version))
}
