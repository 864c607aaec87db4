package handlers

import (
	"context"
	"encoding/json"
	"regexp"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/people"
	"countersign/triage"
	"countersign/web"
)

// caseView is everything that the page of a case is made from.
type caseView struct {
	actionView
	server  *server
	c       action.Case
	snap    action.Snapshot
	viewer  people.Person
	persons []people.Person // who may settle it
}

func (v caseView) page(ctx context.Context) (web.CasePage, error) {
	k, a := v.tool.Contract, v.a
	p := web.CasePage{ID: v.c.ID, ActionID: a.ID, Status: v.status(), Why: v.c.Why, OpenedAt: v.c.OpenedAt, Effect: effectOf(k, v.lang, a.Payload),
		Measure: stakeOf(ctx, v.lang, v.tool, a), For: actorText(a.Actor), Title: web.Outside(titleOf(k, v.lang)), Tool: web.Outside(a.Tool), ToolVersion: a.ToolVersion,
		Target: targetOf(a), System: systemOf(a.Tool), Sent: v.sent(), Answers: v.answers(), Asked: askedOf(a), Key: keyLifeOf(a), Statement: v.statement(a),
		Support: v.support(), Story: storyOf(a, v.events), Record: v.caseRecord(), Paused: v.paused, Links: v.links, RunSteps: runStepsOf(a)}
	if until, late := a.LateUntil(); late {
		p.LateUntil = until
	}
	p.Asked.Over = !v.c.Open
	if h, held := a.HeldBy(v.now); held && v.c.Open {
		p.Holder = &web.Holder{Name: web.Outside(h.Name), Mine: h.ID == v.viewer.ID, Since: h.Since, Until: h.Until}
	}
	if v.c.Open && v.blocks() {
		p.Block = &web.TargetBlock{Scope: a.Terms.Block}
	}
	if v.c.Kind == action.CaseContradiction {
		p.Contradiction = &web.Contradiction{Recorded: v.recorded(), Later: v.side(v.c.News)}
		for _, l := range v.links {
			if l.ID == v.c.Other {
				p.Contradiction.Undone = &l
			}
		}
	}
	v.verdicts(&p)
	var err error
	if p.Object, err = v.comparison(ctx, v.outputs); err != nil {
		return p, err
	}
	if p.Snapshots, err = v.readings(ctx); err != nil {
		return p, err
	}
	if v.c.Open {
		p.Steps = v.steps(ctx, &p)
	}
	return p, nil
}

func (v caseView) blocks() bool {
	return v.a.Terms.Write && v.a.Terms.Block != action.BlockNone && v.a.Target != nil
}

func (v caseView) statement(a action.Action) *web.Statement {
	level, waiting := a.Statement(v.now)
	return &web.Statement{Level: string(level), Waiting: waiting, Later: tellsMore(a.StateAt(v.now), v.tool.Contract), AsOf: v.now}
}

func (v caseView) sent() (all []web.Sending) {
	for _, t := range v.a.Attempts {
		e, _ := v.a.Done("attempt:" + t.ID)
		all = append(all, web.Sending{Number: t.Number, At: t.At, By: web.Outside(e.By.Name), NotSent: t.NotSent})
	}
	return all
}

func (v caseView) answers() (all []web.Answer) {
	sent := map[string]action.Attempt{}
	for _, t := range v.a.Attempts {
		sent[t.ID] = t
	}
	for _, r := range v.a.Receipts {
		answer := web.Answer{Step: web.Outside(sent[r.AttemptID].Step), At: r.At, Outcome: string(r.Outcome), Claimed: string(r.Claimed), HTTPStatus: r.HTTPStatus, Ref: web.Outside(r.ProviderRef)}
		if r.Outcome == action.Unknown && r.HTTPStatus == 0 {
			answer.Waited = r.At.Sub(sent[r.AttemptID].At)
		}
		all = append(all, answer)
	}
	return all
}

// support is what the provider's support needs to find the operation.
func (v caseView) support() *web.SupportBlock {
	a := v.a
	if len(a.Attempts) == 0 {
		return nil
	}
	b := &web.SupportBlock{Key: action.StepKey(a.ExecutionKey, a.CurrentStep()), Target: targetOf(a), From: a.Attempts[0].At, To: a.Attempts[len(a.Attempts)-1].SendBy}
	if m := firstAmount(v.tool.Contract, a.Payload); len(m) > 0 {
		b.Measure = web.MeasureMoney(moneyOf(v.tool.Contract, m[0]))
	}
	for _, r := range a.Receipts {
		if r.ProviderRef != "" {
			b.Ref = web.Outside(r.ProviderRef)
		}
	}
	return b
}

func (v caseView) caseRecord() web.CaseRecord {
	return web.CaseRecord{RequestID: v.a.RequestID, SnapshotHash: v.a.SnapshotHash(), Version: v.a.Version, ExecutionKey: v.a.ExecutionKey, PayloadHash: v.a.PayloadHash}
}

// recorded is what was known before a contradiction.
func (v caseView) recorded() web.Side {
	s := v.side(v.c.Ground)
	switch v.c.Believed {
	case action.Executing, action.ResultUnknown:
		return s
	}
	s.Status = web.Status{State: web.State(v.c.Believed), System: systemOf(v.a.Tool)}
	if e, _ := v.a.Done(v.c.Ground); e.Kind == action.KindVerdict {
		s.Status.How, s.Status.Person = web.HowSettled, web.Outside(e.By.Name)
		for _, past := range v.a.PastCases {
			if found := past.Verdict; found != nil && (found.At.Equal(e.At) || found.Second != nil && found.Second.At.Equal(e.At)) {
				s.Status = settledBy(s.Status, *found)
			}
		}
	}
	s.Outcome = ""
	return s
}

// side is what one event says of the operation.
func (v caseView) side(op string) web.Side {
	e, _ := v.a.Done(op)
	s := web.Side{Source: web.Outside(e.By.Name), At: e.At}
	if s.Source.Empty() {
		s.Source = systemOf(v.a.Tool)
	}
	for _, r := range v.a.Receipts {
		if op == "receipt:"+r.ID {
			s.Outcome, s.Ref, s.Proves = string(r.Outcome), web.Outside(r.ProviderRef), string(r.Proves)
		}
	}
	for _, q := range v.a.Asks {
		if op == "observe:"+q.Found.ID {
			s.Outcome, s.Ref, s.Proves = outcomeFound(q.Found.Outcome), web.Outside(q.Found.ProviderRef), string(q.Found.Proves)
		}
	}
	for _, past := range append(v.a.PastCases, v.c) {
		if found := past.Verdict; found != nil && found.At.Equal(e.At) {
			s.Note, s.Ref = web.Outside(found.Note), web.Outside(found.EvidenceRef)
		}
	}
	return s
}

// verdicts fills in what people found: what stands, what waits, what does not
// count any more.
func (v caseView) verdicts(p *web.CasePage) {
	for _, e := range v.c.Earlier {
		p.Earlier = append(p.Earlier, settlementOf(e))
	}
	found := v.c.Verdict
	switch {
	case !v.c.Open:
		s := v.closing()
		p.Settled = &s
	case found != nil:
		s := settlementOf(*found)
		if found.Verdict == action.DidNotHappen {
			s.Waits = v.a.FencedAt()
		}
		p.Stands = &s
	}
	if first := v.c.Pending; v.c.Open && first != nil {
		p.Second = &web.SecondPerson{First: settlementOf(*first), Outcome: v.outcome(first.Verdict, first.By.Name), Op: action.NewSecret(10), Mine: first.By.ID == v.viewer.ID}
		for _, other := range v.persons {
			if other.ID == v.viewer.ID && !p.Second.Mine && (p.Holder == nil || p.Holder.Mine) {
				p.Second.May, p.Second.Outcome.Status.Second = true, web.Outside(v.viewer.Name)
			} else if other.ID != first.By.ID && other.ID != v.viewer.ID {
				p.Second.Can = append(p.Second.Can, web.Outside(other.Name))
			}
		}
	}
}

// closing is how a closed case was settled: by people, or by what was found out.
func (v caseView) closing() web.Settlement {
	found, linked := foundBy(v.a, v.c)
	s := web.Settlement{At: v.c.ClosedAt}
	if v.c.Verdict != nil {
		s = settlementOf(*v.c.Verdict)
	}
	if s.Found = found; found != "" {
		s.FoundAt = v.c.ClosedAt
	}
	for _, l := range v.links {
		if l.ID == linked {
			s.Linked = &l
		}
	}
	return s
}

// expectsSome matches a post-condition that wants only something to be there.
var expectsSome = regexp.MustCompile(`^\s*value\s*!=\s*null(\s*&&\s*value\s*!=\s*(''|""))?\s*$`)

// comparison is the object now against what was promised.
func (v caseView) comparison(ctx context.Context, o outputs) (*web.Comparison, error) {
	compared, err := triage.Compare(ctx, v.tool, v.a)
	if err != nil {
		return nil, err
	}
	var out *web.Comparison
	for _, f := range compared {
		if f.At.IsZero() || f.Why == rule.Errored {
			continue
		}
		if out == nil {
			out = &web.Comparison{Source: systemOf(f.Source), At: f.At, Version: web.Outside(f.ObjectAt)}
		}
		k, err := o.contract(ctx, f.Source)
		if err != nil {
			return nil, err
		}
		out.Compared++
		label, raw := labelOf(k, v.lang, f.Field)
		var forms []string
		for _, form := range f.Forms {
			forms = append(forms, string(form))
		}
		switch {
		case f.Holds == action.HoldsTrue && len(forms) > 0:
			out.Same = append(out.Same, web.Normalised{Label: label, Forms: forms})
		case f.Holds == action.HoldsTrue:
		default:
			money := moneyRead(v.tool.Contract, v.a.Payload, f.Source, k, f.Snapshot)[f.Field]
			value := func(found json.RawMessage) web.Value { return shownValue(k, f.Field, found, money).InWords(!raw) }
			m := web.Mismatch{Label: label, Raw: raw, Expected: web.TextValue(web.Outside(f.Expect)), Observed: value(f.Observed)}
			if f.Expected != nil {
				m.Expected = value(f.Expected)
			} else if expectsSome.MatchString(f.Expect) {
				m.Expected = web.SomeValue()
			}
			if f.Before != nil {
				before := value(f.Before)
				m.Before = &before
			}
			out.Differ = append(out.Differ, m)
		}
	}
	return out, nil
}

// labelOf names a field of what a tool reads; raw when it is the field's own name.
func labelOf(k *contract.Contract, lang, pointer string) (label web.Text, raw bool) {
	if k != nil {
		if text := k.Label(lang, pointer); text != "" {
			return web.Outside(text), false
		}
	}
	return web.FieldName(pointer), true
}

// shownValue is a value that a post-condition names, unless the contract of
// what was read hides it.
func shownValue(k *contract.Contract, pointer string, raw json.RawMessage, money web.Money) web.Value {
	switch {
	case k != nil && k.Masked(pointer):
		return web.HiddenValue()
	case raw == nil:
		return web.AbsentValue()
	}
	return web.AmountValue(raw, money)
}
