package approvals

import (
	"context"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/people"
)

// Bound is what an executor says it is about to run.
type Bound struct {
	ProposalHash  string
	ObjectVersion *string
}

// Claimed is everything that an executor needs to run an action.
type Claimed struct {
	Action action.Action
	Tool   *rule.Tool
	Token  string
	Now    time.Time
}

// byRef finds the action of a confirmation that the client may execute.
func (s *Service) byRef(ctx context.Context, client people.Client, ref string) (string, error) {
	gone := action.Refuse(action.NotFound, "There is no such confirmation, or you may not see it.")
	if !action.ValidID("cnf", ref) {
		return "", gone
	}
	id, err := s.ledger.Find(ctx, ref)
	if err != nil {
		return "", err
	}
	if id == "" {
		return "", gone
	}
	return id, nil
}

// visible refuses when the confirmation is not the current one, or not for
// this client's eyes.
func visible(client people.Client, ref string, snap action.Snapshot) error {
	a := snap.Action
	if a.Confirmation == nil || a.Confirmation.Ref != ref || !people.ClientViewer(client).Sees(SubjectOf(a, "")) {
		return action.Refuse(action.NotFound, "There is no such confirmation, or you may not see it.")
	}
	return nil
}

// Confirmation returns the action that a confirmation belongs to.
func (s *Service) Confirmation(ctx context.Context, client people.Client, ref string) (action.Snapshot, error) {
	id, err := s.byRef(ctx, client, ref)
	if err != nil {
		return action.Snapshot{}, err
	}
	snap, err := s.ledger.Snapshot(ctx, id)
	if err != nil {
		return action.Snapshot{}, err
	}
	return snap, visible(client, ref, snap)
}

// Verify reports whether a confirmation stands for exactly this, now. It
// changes nothing. The refusal says why not.
func (s *Service) Verify(ctx context.Context, client people.Client, ref string, b Bound) error {
	snap, err := s.Confirmation(ctx, client, ref)
	if err != nil {
		return err
	}
	return snap.Verify(b.ProposalHash, b.ObjectVersion)
}

// Claim takes a confirmation for one executor process, to run it or to send
// the one safe retry of an unknown outcome. At most one claim is
// live. AlreadyClaimed, StaleRevision, VersionConflict, TargetBlocked,
// BudgetExhausted, Expired or LeaseLost say why not; they consume nothing.
func (s *Service) Claim(ctx context.Context, client people.Client, ref, claimID string, b Bound) (Claimed, error) {
	if err := checkID("/claim_id", claimID); err != nil {
		return Claimed{}, err
	}
	id, err := s.byRef(ctx, client, ref)
	if err != nil {
		return Claimed{}, err
	}
	each := client.EachTry(ctx, s.directory.Client)
	snap, err := action.Change(ctx, s.ledger, id, func(snap action.Snapshot) (action.Command, error) {
		client, err := each()
		if err != nil {
			return nil, err
		}
		snap.Rests[client.Subject()] = client.Version
		if err := visible(client, ref, snap); err != nil {
			return nil, err
		}
		if err := people.ClientMay(client, people.ToExecute, SubjectOf(snap.Action, "")); err != nil {
			return nil, err
		}
		_, again := snap.Action.Done("retry:" + claimID)
		_, claimed := snap.Action.Done("claim:" + claimID)
		if !again && !claimed && snap.Action.State.In(action.Confirmed, action.ResultUnknown) {
			if err := s.stillFollows(ctx, snap); err != nil {
				return nil, err
			}
		}
		if again || snap.Action.State == action.ResultUnknown {
			return action.StartRetry{By: client.By(), ClaimID: claimID, ProposalHash: b.ProposalHash, ObjectVersion: b.ObjectVersion}, nil
		}
		return action.TakeClaim{By: client.By(), ClaimID: claimID, ProposalHash: b.ProposalHash, ObjectVersion: b.ObjectVersion}, nil
	})
	if err != nil {
		return Claimed{}, s.pauseTask(ctx, snap.Action.Client.ID, err)
	}
	tool, err := s.catalogue.Version(ctx, snap.Action.Tool, snap.Action.ToolVersion)
	if err != nil {
		return Claimed{}, err
	}
	token, err := s.signer.Token(ctx, snap.Action)
	if err != nil {
		return Claimed{}, err
	}
	return Claimed{Action: snap.Action, Tool: tool, Token: token, Now: snap.Now}, nil
}

// checkID refuses an id from outside that is empty, long or not printable.
func checkID(pointer, id string) error {
	ok := id != "" && len(id) <= 128
	for _, r := range id {
		ok = ok && r > ' ' && r < 0x7f
	}
	if ok {
		return nil
	}
	return action.Refuse(action.InvalidArgument, "An id is missing or not usable.").At(pointer, "must be 1 to 128 printable ASCII characters without spaces")
}
