package handlers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/web"
)

// decide records what a person decided, on exactly what their page showed.
func (s *server) decide(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id := parameter(r, "id")
	ballot, err := ballotOf(fields)
	if err == nil {
		ballot.Method, ballot.StepUp = c.session.Method, c.session.SteppedUp
		var snap action.Snapshot
		if snap, err = s.Approvals.Decide(r.Context(), c.session.Person.ID, id, ballot); err == nil {
			s.meters.decided(snap.Action)
		}
	}
	switch {
	case err == nil:
		return seeOther(w, r, s.next(r, c, id))
	case action.IsCode(err, action.NotFound), action.IsCode(err, action.Internal), action.IsCode(err, action.OutcomeUnknown):
		return err
	case action.IsCode(err, action.StaleRevision):
		return s.showStale(w, r, c, ballot, err)
	}
	return s.showAgain(w, r, c, fields, err)
}

// ballotOf reads the form.
func ballotOf(fields url.Values) (approvals.Ballot, error) {
	b := approvals.Ballot{ProposalHash: fields.Get("proposal_hash"), ReasonCode: fields.Get("reason_code"),
		Note: strings.TrimSpace(strings.ReplaceAll(fields.Get("reason"), "\r\n", "\n"))}
	var refusal *action.Refusal
	wrong := func(pointer, detail string) {
		if refusal == nil {
			refusal = action.Refuse(action.InvalidArgument, "The form is incomplete. Open the page again.")
		}
		refusal.At(pointer, detail)
	}
	for _, once := range []string{"decision", "revision", "proposal_hash"} {
		if len(fields[once]) > 1 {
			wrong("/"+once, "is there more than once")
		}
	}
	switch fields.Get("decision") {
	case "approve":
		b.Approve, b.ReasonCode = true, ""
	case "reject":
	default:
		wrong("/decision", "must be approve or reject")
	}
	revision, err := strconv.Atoi(fields.Get("revision"))
	if err != nil || revision < 1 {
		wrong("/revision", "must be the revision that the page showed")
	}
	if shown := fields.Get("shown"); shown != "" {
		if b.Shown, err = time.Parse(time.RFC3339Nano, shown); err != nil {
			wrong("/shown", "must be when the page was shown")
		}
	}
	if b.ProposalHash == "" {
		wrong("/proposal_hash", "must be the hash that the page showed")
	}
	if !validText(b.Note) {
		wrong("/reason", "must be text")
	}
	b.Revision = revision
	if refusal != nil {
		return b, refusal
	}
	return b, nil
}

func validText(s string) bool {
	return s == strings.ToValidUTF8(s, "") && !strings.Contains(s, "\x00")
}

// showAgain shows the action as it is now, says what was not recorded and why,
// and keeps what was typed.
func (s *server) showAgain(w http.ResponseWriter, r *http.Request, c caller, fields url.Values, refused error) error {
	v, err := s.look(r, c)
	if err != nil {
		return err
	}
	ctx := speaking(r, c, v.now)
	p := v.page(ctx)
	p.Refused = refusalOf(refused)
	if p.Bar.Form != nil {
		p.Bar.Form.Note = web.Own(strings.ToValidUTF8(fields.Get("reason"), ""))
		p.Bar.Form.ReasonCode = fields.Get("reason_code")
		if action.IsCode(refused, action.RateLimited) {
			p.Bar.Form.Shown = v.now
		}
	}
	return s.show(ctx, w, kindOf(action.AsRefusal(refused).Code).status, web.ActionView(s.formFrame(r, c, web.Approvals, "/actions/"+v.a.ID), p))
}

// showStale says that nothing was recorded because the content changed, with
// what was seen beside what is there now.
func (s *server) showStale(w http.ResponseWriter, r *http.Request, c caller, b approvals.Ballot, refused error) error {
	v, err := s.look(r, c)
	if err != nil {
		return err
	}
	seen, ok := contentAt(v.events, b.Revision)
	if !ok || b.Revision == v.a.Revision {
		return s.showAgain(w, r, c, url.Values{"reason": {b.Note}, "reason_code": {b.ReasonCode}}, refused)
	}
	revised := lastContent(v.events)
	table := fieldSource(v.tool.Contract, v.lang, v.a.Payload)
	table.Kind, table.Now = web.TableStale, web.Leaves(seen)
	table.Left, table.Right = web.Source{Revision: b.Revision}, web.Source{Revision: v.a.Revision}
	ctx := speaking(r, c, v.now)
	p := web.StalePage{ActionID: v.a.ID, Status: v.status(), Title: web.Outside(titleOf(v.tool.Contract, v.lang)), Tool: web.Outside(v.a.Tool),
		Version: v.a.ToolVersion, Target: targetOf(v.a), Fields: web.NewFields(table), Approve: b.Approve, SentAt: v.now, Note: web.Own(b.Note),
		SawRev: b.Revision, NowRev: v.a.Revision, RevisedBy: web.Outside(revised.By.Name), RevisedAt: revised.At, Rules: v.why(ctx).Rules}
	if v.state() == action.Proposed {
		p.ExpiresAt = expiryOf(v.a)
	}
	return s.show(ctx, w, http.StatusConflict, web.StaleView(s.formFrame(r, c, web.Approvals, "/actions/"+v.a.ID), p))
}

func expiryOf(a action.Action) time.Time {
	due, _ := a.DueAt()
	return due
}

// contentAt returns the payload that a revision had.
func contentAt(events []action.Event, revision int) (json.RawMessage, bool) {
	at := 0
	for _, e := range events {
		var body struct {
			Payload json.RawMessage `json:"payload"`
		}
		switch e.Kind {
		case action.KindDrafted, action.KindRevised:
			at++
		case action.KindProposed:
			at = 1
		default:
			continue
		}
		if at == revision && json.Unmarshal(e.Body, &body) == nil && len(body.Payload) > 0 {
			return body.Payload, true
		}
	}
	return nil, false
}

func lastContent(events []action.Event) action.Event {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Kind == action.KindRevised || events[i].Kind == action.KindProposed {
			return events[i]
		}
	}
	return action.Event{}
}
