package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/people"
)

// Receipt is what an executor reports of an attempt.
type Receipt struct {
	ID                 string
	AttemptID          string
	ClaimID            string
	Outcome            string
	Proves             string
	Code               string
	HTTPStatus         int
	ProviderRef        string
	ObjectVersionAfter string
	TookMillis         int64 // until it was answered; 0 when not told
	Body               json.RawMessage
}

// Report takes a receipt as evidence, even when the lease is lost, and judges
// it by the action's contract: what it claims is not what it proves.
func (s *Service) Report(ctx context.Context, client people.Client, id string, r Receipt) (action.Snapshot, error) {
	if err := r.check(); err != nil {
		return action.Snapshot{}, err
	}
	return s.change(ctx, client, id, func(snap action.Snapshot) (action.Command, error) {
		a := snap.Action
		if receiptsFull(a, r) {
			return nil, full("receipts")
		}
		tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
		if err != nil {
			return nil, err
		}
		number, k := 0, tool.Contract
		for _, t := range a.Attempts {
			if t.ID != r.AttemptID {
				continue
			}
			if t.ClaimID != r.ClaimID {
				return nil, action.Refuse(action.InvalidArgument, "The receipt is not from whoever made this attempt.").
					At("/claim_id", "must be the claim_id of the attempt")
			}
			number = t.Number
			if k, err = k.ForStep(t.Step); err != nil {
				return nil, err
			}
		}
		judged := k.Judge(contract.Claimed{Result: action.Outcome(r.Outcome), Proves: action.Proof(r.Proves),
			Status: r.HTTPStatus, Code: r.Code, Attempt: number, Body: r.Body})
		code := judged.Code
		if code == "" {
			code = r.Code
		}
		undone, err := undoneBy(ctx, s.ledger, a)
		if err != nil {
			return nil, err
		}
		return action.AddReceipt{UndoneBy: undone, By: client.By(), CaseID: action.NewID("cas"), Receipt: action.Receipt{ID: r.ID, AttemptID: r.AttemptID,
			Claimed: action.Outcome(r.Outcome), ClaimedProves: action.Proof(r.Proves), ClaimedCode: r.Code, Outcome: action.Outcome(judged.Result), Proves: action.Proof(judged.Proves), Code: code,
			HTTPStatus: r.HTTPStatus, Conflict: judged.Conflict, ProviderRef: r.ProviderRef,
			ObjectVersionAfter: r.ObjectVersionAfter, Wire: action.Wire{TookMillis: r.TookMillis}, Body: r.Body}}, nil
	})
}

func (r Receipt) check() error {
	if err := ids("/receipt_id", r.ID, "/attempt_id", r.AttemptID); err != nil {
		return err
	}
	if err := oneOf("/outcome", r.Outcome, string(action.Success), string(action.Failure), string(action.Unknown)); err != nil {
		return err
	}
	if err := oneOf("/proves", r.Proves, "", string(action.ProvesAccepted), string(action.ProvesQueued), string(action.ProvesCompleted)); err != nil {
		return err
	}
	if len(r.ProviderRef) > 256 || len(r.ObjectVersionAfter) > 256 || len(r.Code) > 64 {
		return action.Refuse(action.InvalidArgument, "A member of the receipt is too long.").At("/provider_ref", "at most 256 bytes").
			At("/object_version_after", "at most 256 bytes").At("/code", "at most 64 bytes")
	}
	return nil
}

// Observation is a read-only query's answer, or why it failed.
type Observation struct {
	ID         string
	Tool       string
	Step       string // whose key was asked about, or whose post-conditions were read; "" of the whole
	Snapshot   json.RawMessage
	Error      string
	ObservedAt time.Time
	Wire       action.Wire
}

// maxKept bounds how many readings of one action are kept, how many answers by key
// of executors that say nothing, and how many receipts that say the same: every
// command on it reads them all.
const maxKept = 200

// full refuses one more of what maxKept are there of already.
func full(what string) error {
	return action.Refuse(action.RateLimited, fmt.Sprintf("This action has %d %s already, which is the limit.", maxKept, what)).Because(what)
}

// receiptsFull reports whether a receipt is one too many: there is no end to
// them, and it claims what another one of its attempt does. The same again is none.
func receiptsFull(a action.Action, r Receipt) bool {
	told := false
	for _, q := range a.Receipts {
		if q.ID == r.ID {
			return false
		}
		told = told || q.AttemptID == r.AttemptID && string(q.Claimed) == r.Outcome && string(q.ClaimedProves) == r.Proves
	}
	return told && len(a.Receipts) >= maxKept
}

// answersFull reports the same of an executor's answer by key that says nothing.
// One that says something is always taken: what it is worth may depend on when it
// was observed.
func answersFull(a action.Action, f action.Found) bool {
	n := 0
	for _, q := range a.Asks {
		if q.Found.ID == f.ID {
			return false
		}
		if q.By.Kind == action.ByClient {
			n++
		}
	}
	return f.Outcome == action.FoundUnknown && n >= maxKept
}

// Observe takes a reading. Before people decide it is what rules see of the
// object; before a claim runs it can show that the object moved; afterwards it
// is held against the post-conditions.
func (s *Service) Observe(ctx context.Context, client people.Client, id string, o Observation) (action.Snapshot, error) {
	if err := o.check(); err != nil {
		return action.Snapshot{}, err
	}
	return s.change(ctx, client, id, func(snap action.Snapshot) (action.Command, error) {
		a := snap.Action
		tool, err := s.catalogue.Version(ctx, a.Tool, a.ToolVersion)
		if err != nil {
			return nil, err
		}
		read, err := s.followed(ctx, o)
		if err != nil {
			return nil, err
		}
		other := aboutOther(read, a, o)
		if c, asks := asksByKey(tool.Contract, o); asks && len(a.Attempts) > 0 {
			undone, err := undoneBy(ctx, s.ledger, a)
			if err != nil {
				return nil, err
			}
			f := found(c, o, other)
			if answersFull(a, f) {
				return nil, full("answers")
			}
			return action.AddEvidence{UndoneBy: undone, By: client.By(), CaseID: action.NewID("cas"), Snapshot: o.Snapshot, Found: f}, nil
		}
		if len(a.Observations) >= maxKept && !slices.ContainsFunc(a.Observations, func(was action.Observation) bool { return was.ID == o.ID }) {
			return nil, full("observations")
		}
		cmd := action.AddObservation{By: client.By(), CaseID: action.NewID("cas"), Observation: action.Observation{ID: o.ID, Tool: o.Tool, Step: o.Step,
			Failed: o.Error != "" || other, Other: other, ObservedAt: o.ObservedAt.UTC(), Snapshot: o.Snapshot, Error: o.Error, Wire: o.Wire}}
		object := ofObject(read, tool.Contract, a)
		if cmd.Observation.Failed {
			cmd.Observation.Absent = object && !other && read.Absent(o.Wire.Status)
			return cmd, nil
		}
		if object {
			cmd.Observation.Version = versionIn(o.Snapshot)
		}
		err = judge(ctx, tool, a, &cmd)
		return cmd, err
	})
}

// asksByKey reports whether an answer is about the operation itself, by its key
// or that of one of its steps, and returns the contract that reads it.
func asksByKey(c *contract.Contract, o Observation) (*contract.Contract, bool) {
	one, err := c.ForStep(o.Step)
	if err != nil { // a step has to be named then: its key was asked about
		one = c
	}
	q := one.Execution.StatusQuery
	return one, q != nil && o.Tool == q.Tool
}

// found is what an answer about the operation, by its key, says. A query that
// failed, an answer about something else, and one that the contract cannot read, say
// nothing, unless it was answered that there is no such operation, and the contract
// takes that for a no.
func found(c *contract.Contract, o Observation, other bool) action.Found {
	f := action.Found{ID: o.ID, Source: o.Tool, Step: o.Step, Outcome: action.FoundUnknown, Wire: o.Wire, ObservedAt: o.ObservedAt.UTC(), Other: other}
	switch {
	case other:
		return f
	case o.Error != "":
		if c.Execution.StatusQuery.Missed(o.Wire.Status) {
			f.Outcome = action.FoundNotExecuted
		}
		return f
	}
	switch reading := c.ReadStatus(o.Snapshot); {
	case reading.Outcome == action.Success:
		f.Outcome, f.Proves = action.FoundSucceeded, reading.Proves
	case reading.NotExecuted:
		f.Outcome = action.FoundNotExecuted
	case reading.Outcome == action.Failure:
		f.Outcome = action.FoundFailed
	}
	return f
}

// judge lets the rules look at a reading: at the needs while people decide, at
// the preconditions once it is claimed, at the post-conditions once something
// was sent.
func judge(ctx context.Context, tool *rule.Tool, a action.Action, cmd *action.AddObservation) error {
	facts := rule.Facts{Payload: a.Payload, Actor: a.Actor, Target: a.Target}
	if before, ok := a.Before(); ok {
		facts.Before = before.Snapshot
	}
	if cmd.Observation.Tool == tool.Contract.Approval.Before && len(a.Attempts) == 0 {
		fresh := facts
		fresh.Before = cmd.Observation.Snapshot
		demand, err := tool.Rules.Needs(ctx, fresh)
		if err != nil {
			return err
		}
		cmd.Needs = demand.Needs
	}
	conditions := tool.Rules.Postconditions
	if step := cmd.Observation.Step; step != "" {
		conditions = func(ctx context.Context, f rule.Facts, snapshots map[string]json.RawMessage) ([]rule.Finding, error) {
			return tool.Rules.StepPostconditions(ctx, step, f, snapshots)
		}
	}
	switch {
	case len(a.Attempts) == 0 && a.State != action.Executing:
		return nil
	case len(a.Attempts) == 0:
		conditions = tool.Rules.Preconditions
	}
	findings, err := conditions(ctx, facts, readings(a, cmd.Observation))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f rule.Finding) bool { return f.Read == cmd.Observation.Tool }) {
		cmd.Observation.Holds = rule.All(findings)
		cmd.Observation.Final = len(a.Attempts) > 0 && tool.Rules.TerminalWhen(ctx, facts, cmd.Observation.Snapshot) == action.HoldsTrue
	}
	return nil
}

// readings are the latest snapshots of each tool: those that arrived since the
// claim, and once something was sent those that were observed after it.
func readings(a action.Action, latest action.Observation) map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
	since, when := a.UpdatedAt, func(o action.Observation) time.Time { return o.At }
	if a.Claim != nil {
		since = a.Claim.TakenAt
	}
	if n := len(a.Attempts); n > 0 {
		since, when = a.Attempts[n-1].At, action.Observation.Seen
	}
	for _, o := range a.Observations {
		if !o.Failed && when(o).After(since) {
			found[o.Tool] = o.Snapshot
		}
	}
	found[latest.Tool] = latest.Snapshot
	return found
}

func (o Observation) check() error {
	if err := ids("/observation_id", o.ID, "/tool", o.Tool); err != nil {
		return err
	}
	r := action.Refuse(action.InvalidArgument, "The observation is incomplete.")
	if strings.HasPrefix(o.ID, fromWebhook) || strings.HasPrefix(o.ID, FromList) {
		r.At("/observation_id", "must not begin as the ids of callbacks and lists do: "+fromWebhook+" and "+FromList)
	}
	if (len(o.Snapshot) > 0 && string(o.Snapshot) != "null") == (o.Error != "") {
		r.At("/snapshot", "send either a snapshot, or an error that says why there is none")
	}
	if year := o.ObservedAt.UTC().Year(); year < 2000 || year > 2200 {
		r.At("/observed_at", "is required: when it was asked, as RFC 3339")
	}
	if len(o.Error) > 1000 {
		r.At("/error", "must have at most 1000 bytes")
	}
	if len(r.Errors) > 0 {
		return r
	}
	return nil
}

// ids checks pairs of pointer and id from outside.
func ids(pairs ...string) error {
	r := action.Refuse(action.InvalidArgument, "An id is missing or not usable.")
	for i := 0; i < len(pairs); i += 2 {
		ok := pairs[i+1] != "" && len(pairs[i+1]) <= 128
		for _, c := range pairs[i+1] {
			ok = ok && c > ' ' && c < 0x7f
		}
		if !ok {
			r.At(pairs[i], "must be 1 to 128 printable ASCII characters without spaces")
		}
	}
	if len(r.Errors) > 0 {
		return r
	}
	return nil
}

func oneOf(pointer, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	names := []string{}
	for _, a := range allowed {
		if a != "" {
			names = append(names, a)
		}
	}
	return action.Refuse(action.InvalidArgument, "A member has a value that means nothing here.").
		At(pointer, fmt.Sprintf("must be one of %s", strings.Join(names, ", ")))
}
