package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// oldReading is the age from which people are told that a reading is one.
const oldReading = 5 * time.Minute

// headFields is how many fields of a payload over the limit the shorter page shows.
const headFields = 100

// actionView is everything that the page of one action is made from.
type actionView struct {
	a        action.Action
	events   []action.Event
	now      time.Time
	tool     *rule.Tool
	standing approvals.Standing
	viewer   people.Person
	proved   bool // the viewer has just proved again who they are
	lang     string
	onTarget []action.Action // since 30 days
	rejected []action.Action // the same content
	caseID   string          // of another action, that blocks the target
	paused   []web.Pause
	links    []web.LinkedAction
	task     *web.PartOfTask
	earlier  []web.RunStep // done by the actions that this one goes on with
	full     bool          // asked to show everything
	curl     string
	outputs  outputs
	before   json.RawMessage    // what was read before people decide, as far as it may be seen
	readBy   *contract.Contract // of the tool that read it; nil when it is not here
	later    laterReading       // what was read after something was sent, likewise
	reads    []web.Snapshot     // everything that was read, likewise
}

// page makes the view model. It decides nothing: what the viewer may do is in
// the standing.
func (v actionView) page(ctx context.Context) web.ActionPage {
	c := v.tool.Contract
	p := web.ActionPage{ID: v.a.ID, Status: v.status(), At: v.a.UpdatedAt, Effect: effectOf(c, v.lang, v.a.Payload),
		Measure: measureOf(ctx, v.lang, v.tool, v.a), Title: web.Outside(titleOf(c, v.lang)), Tool: web.Outside(v.a.Tool),
		ToolVersion: v.a.ToolVersion, Target: targetOf(v.a), Fields: v.fields(ctx), RunSteps: append(v.earlier, runStepsOf(v.a)...),
		Who: v.who(), Why: v.why(ctx), Checks: v.checks(), Success: v.success(), Story: storyOf(v.a, v.events), Record: v.record(), Calls: shownCalls(v.a),
		Paused: v.paused, Wait: stallOf(v.a, v.now), Links: v.links}
	if until, ok := v.a.DueAt(); ok && v.state().In(action.Proposed, action.Confirmed) {
		p.ExpiresAt = until
	}
	if level, waiting := v.a.Statement(v.now); v.state() != action.Draft {
		p.Statement = &web.Statement{Level: string(level), Waiting: waiting, AsOf: v.now}
	}
	if len(v.a.Receipts) > 0 || len(v.a.Attempts) > 0 {
		p.Proof = v.proof(ctx)
	}
	p.Answer, p.Snapshots = v.answer(), v.reads
	hidden, bidi := p.Fields.Hidden()
	p.Warnings = v.warnings(p, hidden, bidi)
	if len(v.a.Payload) > web.PayloadLimit && !v.full {
		p.Fields = p.Fields.Head(headFields, "/actions/"+v.a.ID+"?view=full")
	}
	p.Bar = v.bar()
	return p
}

func (v actionView) state() action.State { return v.a.StateAt(v.now) }

func (v actionView) status() web.Status {
	s := web.Status{State: web.State(v.state()), System: systemOf(v.a.Tool)}
	settled := v.a.Case != nil && v.a.Case.Verdict != nil
	switch back, read := readBack(v.a); {
	case v.a.Concluded != "" && v.a.State.In(action.Applied, action.Failed):
		s.How = web.HowLinked
	case settled && v.a.State == action.ResultUnknown && v.a.Case.Verdict.Verdict == action.Partly:
		s.How = web.HowFinding
	case v.a.Partly():
		s.How = web.HowInPart
	case settled && v.a.State.In(action.Applied, action.Failed):
		s = settledBy(s, *v.a.Case.Verdict)
	case v.a.State == action.Failed && v.a.FailureCode == "" && v.a.NotExecuted():
		s.How = web.HowUnrun
	case v.a.State == action.Applied && read:
		s.How, s.At = web.HowReadBack, back.ObservedAt
	case v.a.State == action.Applied:
		s.How = web.HowReported
	case v.a.Gone():
		s.How = web.HowGone
	case v.a.Short():
		s.How = web.HowShort
	case v.state() == action.Confirmed && v.unasked() != "":
		s.How = web.HowUnasked
	case s.State == web.Expired && v.a.Confirmation != nil:
		s.How = web.HowLapsed
	}
	return s
}

func (v actionView) who() web.Who {
	w := web.Who{For: actorText(v.a.Actor), AskedBy: web.Outside(v.a.Client.Name), Reason: web.Outside(v.a.Reason), Task: v.task, Unasked: v.unasked()}
	for _, d := range v.a.Decisions {
		w.Decisions = append(w.Decisions, web.Decision{By: web.Outside(d.By.Name), Approve: d.Approve, Role: d.By.Role, Method: d.By.Method,
			ReasonCode: d.ReasonCode, Note: web.Outside(d.Note), At: d.At, Void: d.Revision != v.a.Revision, Lost: d.Approve && v.lost(d)})
	}
	return w
}

// lost reports whether an approval does not count: now, while more are asked for,
// and after that when it was confirmed.
func (v actionView) lost(d action.Decision) bool {
	if v.a.Confirmation != nil {
		return v.a.Confirmation.Voters[d.By.ID] == nil
	}
	return v.standing.Counting != nil && !v.standing.Counting[d.By.ID]
}

// unasked is why nobody was asked for this content, "" when somebody had to be.
func (v actionView) unasked() web.Unasked {
	asked := slices.ContainsFunc(v.a.Needs, func(n action.Need) bool { return n.Approvals > 0 })
	switch {
	case asked || v.state() == action.Draft:
		return ""
	case v.tool.Contract.Mode != contract.Read:
		return web.UnaskedRules
	case v.tool.Contract.Bare():
		return web.UnaskedClaim
	}
	return web.UnaskedReads
}

func (v actionView) why(ctx context.Context) web.Why {
	w := web.Why{Required: v.standing.Required, Given: v.standing.Given, Roles: v.viewer.Roles, You: v.stand()}
	for _, n := range v.a.Needs {
		if n.Approvals > 0 {
			w.Rules = append(w.Rules, web.Rule{Role: n.Role, Count: n.Approvals, StepUp: n.StepUp, Assumed: v.assumed(ctx)})
		}
	}
	for _, p := range v.standing.Eligible {
		if p.ID != v.viewer.ID {
			w.Can = append(w.Can, web.Outside(p.Name))
		}
	}
	return w
}

// assumed reports whether no rule of the contract asks for the approval.
func (v actionView) assumed(ctx context.Context) bool {
	d, err := v.tool.Rules.Needs(ctx, factsOf(v.a))
	return err == nil && d.Default
}

func (v actionView) stand() web.Standing {
	if v.state() != action.Proposed {
		return web.StandTooLate
	}
	if v.standing.May == nil {
		if v.standing.Missing <= 1 {
			return web.StandEnough
		}
		return web.StandCounts
	}
	var r *action.Refusal
	if !errors.As(v.standing.May, &r) {
		return web.StandNotAnything
	}
	switch r.Reason {
	case "by-you":
		return web.StandApproved
	case "self-approval-actor":
		return web.StandActor
	case "self-approval-client":
		return web.StandOwner
	}
	if slices.ContainsFunc(v.viewer.Roles, func(role string) bool { return role != people.RoleAuditor && role != people.RoleAdmin }) {
		return web.StandWrongRole
	}
	return web.StandNotAnything
}

// stepUp reports whether an approval needs the viewer to prove anew who they are.
func (v actionView) stepUp() bool {
	return slices.ContainsFunc(v.a.Needs, func(n action.Need) bool { return n.StepUp })
}

func (v actionView) proof(ctx context.Context) *web.Proof {
	p := &web.Proof{Executions: v.a.Executions(), Attempts: len(v.a.Attempts), Retried: v.a.Retried(), FailedCode: v.a.FailureCode, OpenCase: v.a.CaseID()}
	if p.OpenCase != "" {
		p.CaseURL = "/triage/" + p.OpenCase
	}
	steps := map[string]string{}
	for _, t := range v.a.Attempts {
		steps[t.ID] = t.Step
	}
	for _, r := range v.a.Receipts {
		p.Receipts = append(p.Receipts, web.Receipt{Step: web.Outside(steps[r.AttemptID]), Outcome: string(r.Outcome), Proves: string(r.Proves), HTTPStatus: r.HTTPStatus,
			Ref: web.Outside(r.ProviderRef), At: r.At})
	}
	snapshots, at := v.snapshots()
	findings, err := v.tool.Rules.Postconditions(ctx, factsOf(v.a), snapshots)
	if err != nil {
		return p
	}
	for _, f := range findings {
		if _, read := snapshots[f.Read]; read {
			k, err := v.outputs.contract(ctx, f.Read)
			if err != nil {
				return p
			}
			money := moneyRead(v.tool.Contract, v.a.Payload, f.Read, k, snapshots[f.Read])
			label, raw := labelOf(k, v.lang, f.Field)
			p.ReadBack = append(p.ReadBack, web.ReadBack{Field: label, Value: web.AmountValue(f.Observed, money[f.Field]).InWords(!raw), Holds: holdsWord(f.Holds), At: at[f.Read]})
		}
	}
	p.NotProven = v.a.Terms.Verify && len(p.ReadBack) == 0 && v.a.State == action.Accepted
	return p
}

// snapshots are the latest readings since something was sent.
func (v actionView) snapshots() (map[string]json.RawMessage, map[string]time.Time) {
	found, at := map[string]json.RawMessage{}, map[string]time.Time{}
	for _, o := range v.a.Observations {
		if len(v.a.Attempts) > 0 && !o.Failed && !o.Seen().Before(v.a.Attempts[0].At) {
			found[o.Tool], at[o.Tool] = o.Snapshot, o.ObservedAt
		}
	}
	return found, at
}

func (v actionView) record() web.Record {
	r := web.Record{PayloadHash: v.a.PayloadHash, Revision: v.a.Revision, Version: v.a.Version, ExecutionKey: v.a.ExecutionKey,
		ClientID: v.a.Client.ID, RequestID: v.a.RequestID, Curl: web.Outside(v.curl),
		Payload: web.Payload{Canonical: v.a.Payload, Mask: v.tool.Contract.Display.Mask}}
	if v.a.State != action.Draft {
		r.ProposalHash = v.a.ProposalHash
	}
	if len(v.tool.Contract.MaskedPlaces(v.a.Payload)) == 0 {
		r.Payload.Download = "/actions/" + v.a.ID + "/payload"
	}
	if !v.full {
		r.Payload.Full = "/actions/" + v.a.ID + "?view=full"
	}
	if v.a.Confirmation != nil {
		r.Confirmation = v.a.Confirmation.Ref
	}
	if rules := v.tool.Contract.Approval.Rules; len(rules) > 0 {
		var text strings.Builder
		for _, rule := range rules {
			fmt.Fprintf(&text, "- when: %q\n  role: %s\n  approvals: %d\n", rule.When, rule.Role, rule.Approvals)
			if rule.StepUp {
				text.WriteString("  step_up: true\n")
			}
		}
		r.RuleSource = web.Outside(strings.TrimSuffix(text.String(), "\n"))
	}
	return r
}

// warnings are what to know before deciding.
func (v actionView) warnings(p web.ActionPage, hidden int, bidi bool) []web.Warning {
	if v.state() != action.Proposed {
		return nil
	}
	var ws []web.Warning
	for _, name := range v.lookAlikes() {
		ws = append(ws, web.WarningLookAlike(name))
	}
	if hidden > 0 {
		ws = append(ws, web.WarningHiddenIn(hidden, bidi))
	}
	if last, n := v.a.InVain(v.a.Terms.Before); n > 0 && last.Absent {
		ws = append(ws, web.WarningNotThere(missedOf(last, n)))
	}
	if v.elsewhere() {
		ws = append(ws, web.WarningElsewhere(targetOf(v.a)))
	}
	if seen := v.versionSeen(); v.a.ObjectVersion != nil && seen != "" && seen != *v.a.ObjectVersion {
		ws = append(ws, web.WarningChangedSince(p.Checks.VersionProposed, p.Checks.VersionSeen))
	}
	if before, read := v.a.Before(); read && v.now.Sub(before.ObservedAt) > oldReading {
		ws = append(ws, web.WarningOld(before.ObservedAt))
	}
	if len(p.Checks.Rejections) > 0 {
		ws = append(ws, web.WarningRejected(p.Checks.Rejections[0]))
	}
	if v.standing.Stuck {
		ws = append(ws, web.WarningNobodyCan(p.Why.Rules))
	}
	for _, f := range p.Fields.Fields {
		if f.Claim == web.ClaimDiffers {
			ws = append(ws, web.WarningClaim(f.Label))
			break
		}
	}
	for _, amount := range v.tool.Contract.Amounts(v.a.Payload) {
		if amount.Currency == "" {
			ws = append(ws, web.WarningNoCurrency(web.Outside(amount.Text)))
			break
		}
	}
	return ws
}

// lookAlikes are the actor, target and named values that only look like
// something else.
func (v actionView) lookAlikes() []web.Text {
	candidates := []string{v.a.Actor.ID, v.a.Actor.Name}
	if v.a.Target != nil {
		candidates = append(candidates, v.a.Target.ID)
	}
	for pointer, raw := range web.Leaves(v.a.Payload) {
		var text string
		if namesSomething(pointer) && !v.tool.Contract.Masked(pointer) && json.Unmarshal(raw, &text) == nil {
			candidates = append(candidates, text)
		}
	}
	slices.Sort(candidates)
	var found []web.Text
	for _, c := range slices.Compact(candidates) {
		if t := web.OutsideName(c); t.Flags().LookAlike {
			found = append(found, t)
		}
	}
	return found[:min(1, len(found))]
}

// bar says what the viewer can do at the end of the fields.
func (v actionView) bar() web.Bar {
	switch {
	case v.state() == action.Expired && v.a.Confirmation == nil && v.a.ExpiresAt != nil:
		return web.Bar{Kind: web.BarExpired, At: *v.a.ExpiresAt}
	case v.state() != action.Proposed:
		return web.Bar{}
	case v.caseID != "":
		b := web.Bar{Kind: web.BarBlocked, CaseID: v.caseID, CaseURL: "/triage/" + v.caseID}
		if v.standing.May == nil {
			b.Form = v.form()
		}
		return b
	case v.standing.May == nil && v.stepUp() && !v.proved:
		return web.Bar{Kind: web.BarStepUp, StepUp: "/account/prove?next=/actions/" + v.a.ID, Form: v.form()}
	case v.standing.May == nil:
		return web.Bar{Kind: web.BarDecide, Form: v.form()}
	case v.stand() == web.StandApproved:
		return web.Bar{Kind: web.BarApproved, At: v.a.UpdatedAt}
	case v.standing.Stuck:
		return web.Bar{Kind: web.BarNobody}
	}
	return web.Bar{Kind: web.BarCannot}
}

func (v actionView) form() *web.DecideForm {
	f := &web.DecideForm{ProposalHash: v.a.ProposalHash, Revision: v.a.Revision, Op: action.NewSecret(10)}
	if len(v.a.Payload) > web.PayloadLimit && !v.full {
		f.FullURL = "/actions/" + v.a.ID + "?view=full"
	}
	return f
}
