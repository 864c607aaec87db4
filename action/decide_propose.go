package action

import (
	"bytes"
	"slices"
)

func (c Propose) op() string                  { return c.Op }
func (c Propose) again(Snapshot, Event) error { return nil }

func (c Propose) decide(s Snapshot) (Transition, error) {
	if s.Action.Version != 0 {
		return Transition{}, Refuse(WrongState, "This action exists already.")
	}
	s.Action.ID = c.ID
	d := content{Client: c.By, Entry: c.Entry, Scope: c.Scope, TaskID: c.TaskID, RequestID: c.RequestID, Trace: c.Trace, Digest: c.Digest, Links: c.Links,
		Revision: 1, Tool: c.Tool, ToolVersion: c.ToolVersion, ActorID: c.Actor.ID, Target: c.Target,
		ObjectVersion: c.ObjectVersion, PayloadHash: PayloadHash(c.Payload), ExecutionKey: c.Key,
		ExpiresIn: c.ExpiresIn, Terms: c.Terms, Needs: c.Needs}
	body := contentBody{Payload: c.Payload, Reason: c.Reason, ActorName: c.Actor.Name}
	if c.Draft {
		d.ProposalHash = d.binding(c.ID).Hash()
		return s.step(c.Op, c.By, KindDrafted, Draft, d, body)
	}
	to := d.enter(s, c.ID, c.Ref)
	t, err := s.step(c.Op, c.By, KindProposed, to, d, body)
	t.Hold = HoldContent
	return t, err
}

// enter fills in what being proposed adds: expiry, the hash that is approved
// and, where nobody has to approve, the confirmation.
func (d *content) enter(s Snapshot, id, ref string) State {
	expires := clip(s.Now.Add(d.ExpiresIn))
	d.ExpiresAt = &expires
	d.ProposalHash = d.binding(id).Hash()
	if !needsPeople(d.Needs) {
		d.Confirmation = confirm(s, ref, d.Revision, d.Terms, expires, nil)
		return Confirmed
	}
	return Proposed
}

func (d content) binding(id string) Binding {
	return Action{ID: id, Revision: d.Revision, Tool: d.Tool, ToolVersion: d.ToolVersion, Actor: Actor{ID: d.ActorID},
		Target: d.Target, ObjectVersion: d.ObjectVersion, PayloadHash: d.PayloadHash,
		ExecutionKey: d.ExecutionKey, ExpiresAt: d.ExpiresAt}.Binding()
}

func needsPeople(needs []Need) bool {
	return slices.ContainsFunc(needs, func(n Need) bool { return n.Approvals > 0 })
}

// contentOf is the content that an action has now, as the next event would record it.
func contentOf(a Action) content {
	return content{Entry: a.Entry, Scope: a.Scope, Revision: a.Revision, Tool: a.Tool, ToolVersion: a.ToolVersion,
		ActorID: a.Actor.ID, Target: a.Target, ObjectVersion: a.ObjectVersion, PayloadHash: a.PayloadHash,
		ExecutionKey: a.ExecutionKey, ExpiresIn: a.ExpiresIn, Terms: a.Terms, Needs: a.Needs}
}

func (c Submit) op() string                  { return c.Op }
func (c Submit) again(Snapshot, Event) error { return nil }

func (c Submit) decide(s Snapshot) (Transition, error) {
	if err := s.need("submitted", Draft); err != nil {
		return Transition{}, err
	}
	d := contentOf(s.Action)
	d.ToolVersion, d.Scope, d.Target, d.Terms, d.Needs = c.ToolVersion, c.Scope, c.Target, c.Terms, c.Needs
	to := d.enter(s, s.Action.ID, c.Ref)
	t, err := s.step(c.Op, c.By, KindSubmitted, to, d, nil)
	t.Hold = HoldContent
	return t, err
}

func (c Revise) op() string { return c.Op }

func (c Revise) again(_ Snapshot, left Event) error {
	var b contentBody
	var d content
	if unmarshalBoth(left, &d, &b) == nil && left.Kind == KindRevised && bytes.Equal(b.Payload, c.Payload) &&
		equalPtr(d.ObjectVersion, c.ObjectVersion) && b.Reason == c.Reason && d.ExpiresIn == c.ExpiresIn {
		return nil
	}
	return Refuse(StaleRevision, "The content changed after the version you named. Read it again.")
}

func (c Revise) decide(s Snapshot) (Transition, error) {
	a := s.Action
	if err := s.need("revised", Draft, Proposed); err != nil {
		return Transition{}, err
	}
	d := contentOf(a)
	d.Revision++
	d.Scope, d.ObjectVersion, d.ExpiresIn, d.Needs = c.Scope, c.ObjectVersion, c.ExpiresIn, c.Needs
	d.Terms.SecondPerson = c.SecondPerson
	d.PayloadHash = PayloadHash(c.Payload)
	body := contentBody{Payload: c.Payload, Reason: c.Reason}
	if a.State == Draft {
		d.ProposalHash = d.binding(a.ID).Hash()
		return s.step(c.Op, c.By, KindRevised, Draft, d, body)
	}
	expires := clip(s.Now.Add(c.ExpiresIn))
	d.ExpiresAt = &expires
	if !needsPeople(d.Needs) { // what people were asked about once stays theirs to decide
		d.Needs = []Need{{Role: DefaultRole, Approvals: 1}}
	}
	d.ProposalHash = d.binding(a.ID).Hash()
	t, err := s.step(c.Op, c.By, KindRevised, Proposed, d, body)
	t.Hold = HoldContent
	return t, err
}

func (c Cancel) op() string { return c.Op }

func (c Cancel) again(_ Snapshot, left Event) error {
	var was textBody
	if err := unmarshalBoth(left, &ended{}, &was); err != nil {
		return err
	}
	return reused(was.Note == c.Reason)
}

func (c Cancel) decide(s Snapshot) (Transition, error) {
	if err := s.need("cancelled", Draft, Proposed, Confirmed); err != nil {
		return Transition{}, err
	}
	return s.step(c.Op, c.By, KindCancelled, Cancelled, ended{}, textBody{Note: c.Reason})
}

func equalPtr(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
