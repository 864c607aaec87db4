package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// steps are what the viewer can do about an open case, the safest first.
func (v caseView) steps(ctx context.Context, p *web.CasePage) web.Steps {
	may := slices.ContainsFunc(v.persons, func(other people.Person) bool { return other.ID == v.viewer.ID })
	running := v.a.State != action.ResultUnknown
	held := p.Holder != nil && !p.Holder.Mine
	s := web.Steps{Ask: &web.Step{WhyNot: v.whyNotAsk(may, running)}, Again: &web.Step{WhyNot: v.whyNotAgain(may, running, held)}, Resume: v.resumption(), Reverse: v.reversal(ctx)}
	for _, step := range []*web.Step{s.Ask, s.Again} {
		if step.WhyNot == "" {
			step.Op = action.NewSecret(10)
		}
	}
	switch {
	case !may:
		s.WhyNot = "role"
		return s
	case running:
		s.WhyNot = "running"
		return s
	case held:
		s.WhyNot = "held"
		return s
	}
	if p.Holder == nil {
		s.Take = &web.Step{Op: action.NewSecret(10)}
	} else {
		s.HandOver = &web.HandOver{Op: action.NewSecret(10)}
		for _, other := range v.persons {
			if other.ID != v.viewer.ID {
				s.HandOver.People = append(s.HandOver.People, web.Option{Value: other.ID, Label: web.Outside(other.Name)})
			}
		}
	}
	s.Settle = &web.SettleForm{Op: action.NewSecret(10), TwoPeople: v.a.Terms.SecondPerson}
	for _, verdict := range web.Verdicts() {
		s.Settle.Outcomes = append(s.Settle.Outcomes, v.outcome(verdict, v.viewer.Name))
	}
	return s
}

func (v caseView) whyNotAsk(may, running bool) string {
	switch {
	case !may:
		return "role"
	case running:
		return "running"
	case v.a.Terms.StatusQuery == "":
		return "no-query"
	case v.c.Again >= action.MaxAskAgain:
		return "asked-enough"
	}
	return ""
}

// whyNotAgain says why a person cannot have the same sent once more now, or "".
func (v caseView) whyNotAgain(may, running, held bool) string {
	err := v.snap.MaySendAgain()
	reason := strings.TrimPrefix(action.AsRefusal(err).Reason, "retry-")
	switch {
	case running:
		return "running"
	case reason == "soon" && v.task != nil && v.task.Status.State != string(approvals.TaskOpen):
		return "budget"
	case reason == "soon" && !v.a.NotExecuted():
		return "wanted"
	case reason == "key":
		return "key-gone"
	case err != nil:
		return reason
	case !may:
		return "role"
	case held:
		return "held"
	}
	return ""
}

// outcome is what a verdict of a person would change.
func (v caseView) outcome(verdict, by string) web.VerdictOutcome {
	after := v.snap.Settled(verdict)
	o := web.VerdictOutcome{Verdict: verdict, Status: web.Status{State: web.State(after.State), System: systemOf(after.Tool)}, Statement: *v.statement(after), Block: "lifted"}
	if after.State.In(action.Applied, action.Failed) {
		o.Status.How, o.Status.Person = web.HowSettled, web.Outside(by)
	}
	switch {
	case verdict == action.DidNotHappen && after.State == action.ResultUnknown:
		o.Until = v.a.FencedAt()
		o.Status = web.Status{State: web.Failed, How: web.HowSettled, Person: web.Outside(by)}
		after.State = action.Failed
		o.Statement = *v.statement(after)
		o.Block = "until"
	case verdict == action.Partly:
		o.Block = "linked"
	}
	if !v.blocks() {
		o.Block = "none"
	}
	if err := v.snap.Speaks(verdict); err != nil {
		o.Refused = refusalOf(err)
	}
	return o
}

// reversal is how a linked action that takes it back is proposed.
func (v caseView) reversal(ctx context.Context) *web.Reversal {
	r := &web.Reversal{}
	for _, l := range v.links {
		if l.How == action.LinkCompensates+"_by" {
			r.Linked = append(r.Linked, l)
		}
	}
	tool, err := v.server.catalogue.Latest(ctx, v.tool.Contract.Execution.Compensation)
	if err != nil {
		r.WhyNot = "no-tool"
		return r
	}
	payload, ok := v.undoing(tool.Contract)
	if !ok {
		r.WhyNot = "no-before"
		return r
	}
	version := v.left(tool.Contract)
	if tool.Contract.ObjectVersion == contract.VersionRequired && version == nil {
		r.WhyNot = "no-version"
		return r
	}
	if r.Curl, ok = v.proposing(tool.Contract, action.LinkCompensates, payload, version); !ok {
		r.WhyNot = "no-tool"
	}
	return r
}

// left is the version of the object that a reversal takes back: what the action
// left behind, or, where no answer told that, what was read last. nil where the
// object has none, or nobody read it.
func (v caseView) left(k *contract.Contract) *string {
	version := v.a.Produced()
	if version == "" {
		version = v.versionSeen()
	}
	if k.ObjectVersion == contract.VersionNone || version == "" {
		return nil
	}
	return &version
}

// resumption is how a linked action that takes the missing steps is proposed; nil
// unless it is known which they are.
func (v caseView) resumption() *web.Reversal {
	missing, known := v.a.Missing()
	if len(missing) == 0 || len(missing) == len(v.a.Steps) || !known {
		return nil
	}
	if len(v.tool.Contract.MaskedPlaces(v.a.Payload)) > 0 {
		return &web.Reversal{WhyNot: "masked"}
	}
	version := v.a.StepVersion(missing[0].Name)
	if v.tool.Contract.ObjectVersion == contract.VersionNone {
		version = nil
	}
	curl, ok := v.proposing(v.tool.Contract, action.LinkResumes, json.RawMessage(v.a.Payload), version)
	if !ok {
		return nil
	}
	return &web.Reversal{Curl: curl}
}

// proposing is a request that proposes an action linked to this one, with all that
// the contract of its tool leaves to the request.
func (v caseView) proposing(k *contract.Contract, how string, payload json.RawMessage, version *string) (web.Text, bool) {
	request := map[string]any{"tool": k.Name, "actor": map[string]string{"id": v.a.Actor.ID}, how: v.a.ID, "payload": payload}
	if version != nil {
		request["object_version"] = *version
	}
	if k.Target == nil && v.a.Target != nil {
		request["target"] = map[string]string{"type": v.a.Target.Type, "id": v.a.Target.ID}
	}
	switch {
	case len(k.Entries) == 0:
	case slices.Contains(k.Entries, v.a.Entry):
		request["entry"] = v.a.Entry
	default:
		request["entry"] = k.Entries[0]
	}
	body, err := json.Marshal(request)
	if err != nil {
		return web.Text{}, false
	}
	return web.Outside(fmt.Sprintf("curl -X POST %s/v1/actions \\\n  -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' \\\n  -H 'Idempotency-Key: %s-%s' \\\n  -d @- <<'EOF'\n%s\nEOF",
		v.server.PublicURL, how, v.a.ID, body)), true
}

// undoing is the payload of the action that takes this one back. The same tool
// sets again what stood before, where somebody read that; another one gets the
// fields that it has in common.
func (v caseView) undoing(k *contract.Contract) (json.RawMessage, bool) {
	if len(v.tool.Contract.MaskedPlaces(v.a.Payload)) > 0 {
		return nil, false // it is not for a page to show what the contract hides
	}
	if k.Name != v.a.Tool {
		facts := contract.Facts{Payload: v.a.Payload, ActorID: v.a.Actor.ID, ExecutionKey: v.a.ExecutionKey}
		if v.a.Target != nil {
			facts.TargetType, facts.TargetID = v.a.Target.Type, v.a.Target.ID
		}
		input, err := k.InputFor(facts)
		return input, err == nil
	}
	if v.before == nil {
		return nil, false
	}
	var payload map[string]json.RawMessage
	if json.Unmarshal(v.a.Payload, &payload) != nil {
		return nil, false
	}
	now, _, _ := comparable(k, k.Approval.Before, v.a.Payload, v.before)
	changed := false
	for pointer, value := range now {
		if _, there := payload[pointer[1:]]; there {
			payload[pointer[1:]], changed = value, true
		}
	}
	raw, err := json.Marshal(payload)
	return raw, err == nil && changed
}
