package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"countersign/action"
	"countersign/action/contract"
	"countersign/people"
	"countersign/triage"
	"countersign/web"
)

// showCase is the page of one case, open or closed.
func (s *server) showCase(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := s.lookAtCase(r, c)
	if err != nil {
		return err
	}
	ctx := speaking(r, c, v.now)
	p, err := v.page(ctx)
	if err != nil {
		return err
	}
	frame := s.frame(r, c, web.Triage)
	frame.Back = s.guideBack(r, v.a.ID)
	return s.show(ctx, w, http.StatusOK, web.CaseView(frame, p))
}

// lookAtCase reads everything that the page of a case is made from.
func (s *server) lookAtCase(r *http.Request, c caller) (caseView, error) {
	ctx, id := r.Context(), parameter(r, "case")
	snap, err := s.Cases.Find(ctx, c.viewer(), id)
	if err != nil {
		return caseView{}, err
	}
	found, ok := snap.Action.CaseNamed(id)
	if !ok {
		return caseView{}, action.Refuse(action.NotFound, "There is no such case, or you may not see it.").Because("case")
	}
	v := caseView{server: s, c: found, snap: snap, viewer: c.session.Person}
	v.outputs = outputs{s: s, known: map[string]*contract.Contract{}}
	v.a, v.now, v.lang = snap.Action, snap.Now, string(langOf(r, c))
	if v.tool, err = s.catalogue.Version(ctx, v.a.Tool, v.a.ToolVersion); err != nil {
		return v, err
	}
	if v.events, _, err = s.Pages.Events(ctx, v.a.ID); err != nil {
		return v, err
	}
	v.events = v.events[:min(int(v.a.Version), len(v.events))] // what came after the snapshot belongs to the next look
	if v.before, v.readBy, err = v.seen(ctx); err != nil {
		return v, err
	}
	if v.persons, err = s.settlers(ctx, v.a); err != nil {
		return v, err
	}
	if v.paused, err = s.pausedOf(ctx, v.a); err != nil {
		return v, err
	}
	if v.task, err = s.partOfTask(ctx, v.a); err != nil {
		return v, err
	}
	v.links, err = s.links(ctx, c.viewer(), v.a, v.now, v.lang)
	return v, err
}

// settlers are the people who may settle an action's cases.
func (s *server) settlers(ctx context.Context, a action.Action) ([]people.Person, error) {
	persons, err := s.Directory.Persons(ctx)
	if err != nil {
		return nil, err
	}
	subject := people.Subject{Tool: a.Tool, Scope: a.Scope, Entry: a.Entry, ActorID: a.Actor.ID, ClientID: a.Client.ID}
	var found []people.Person
	for _, p := range persons {
		if people.May(p, people.ToSettle, subject) == nil {
			found = append(found, p)
		}
	}
	return found, nil
}

// caseForm reads what every form of a case page sends: what the page showed.
func caseForm(w http.ResponseWriter, r *http.Request) (url.Values, triage.Seen, error) {
	fields, err := form(w, r)
	if err != nil {
		return nil, triage.Seen{}, err
	}
	version, err := strconv.ParseInt(fields.Get("version"), 10, 64)
	if err != nil || version < 1 {
		return fields, triage.Seen{}, action.Refuse(action.InvalidArgument, "The form is incomplete. Open the page again.").At("/version", "must be the version that the page showed")
	}
	return fields, triage.Seen{CaseID: parameter(r, "case"), Version: version, SnapshotHash: fields.Get("snapshot_hash")}, nil
}

// onCase runs a command on a case and goes back to its page, which says why when
// nothing was recorded.
func (s *server) onCase(w http.ResponseWriter, r *http.Request, c caller, do func(fields url.Values, seen triage.Seen) error) error {
	fields, seen, err := caseForm(w, r)
	if err == nil {
		err = do(fields, seen)
	}
	switch {
	case err == nil:
		return seeOther(w, r, "/triage/"+parameter(r, "case"))
	case action.IsCode(err, action.NotFound), action.IsCode(err, action.Internal), action.IsCode(err, action.OutcomeUnknown), fields == nil:
		return err
	}
	return s.showCaseAgain(w, r, c, fields, seen, err)
}

// showCaseAgain shows the case as it is now, says what was not recorded and why,
// and keeps what was typed.
func (s *server) showCaseAgain(w http.ResponseWriter, r *http.Request, c caller, fields url.Values, seen triage.Seen, refused error) error {
	v, err := s.lookAtCase(r, c)
	if err != nil {
		return err
	}
	ctx := speaking(r, c, v.now)
	p, err := v.page(ctx)
	if err != nil {
		return err
	}
	p.Refused = refusalOf(refused)
	if action.IsCode(refused, action.StaleRevision) && seen.Version > 0 && seen.Version < v.a.Version {
		p.News = p.Story[min(int(seen.Version), len(p.Story)):]
	}
	own := func(name string) web.Own { return web.Own(strings.ToValidUTF8(fields.Get(name), "")) }
	if f := p.Steps.Settle; f != nil && fields.Get("second") == "" {
		f.Verdict, f.Kind, f.Ref, f.Note = fields.Get("verdict"), fields.Get("evidence_kind"), own("evidence_ref"), own("note")
		f.Reading = clean(fields.Get("evidence_reading"))
	}
	if p.Second != nil && fields.Get("second") != "" {
		p.Second.Note = own("note")
	}
	frame := s.formFrame(r, c, web.Triage, "/triage/"+v.c.ID)
	frame.Back = s.guideBack(r, v.a.ID)
	return s.show(ctx, w, kindOf(action.AsRefusal(refused).Code).status, web.CaseView(frame, p))
}

// takeCase takes a case for a while.
func (s *server) takeCase(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.onCase(w, r, c, func(_ url.Values, seen triage.Seen) error {
		_, err := s.Cases.Take(r.Context(), whoIs(c), seen)
		return err
	})
}

// handOverCase gives a case to another person, or back.
func (s *server) handOverCase(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.onCase(w, r, c, func(fields url.Values, seen triage.Seen) error {
		_, err := s.Cases.HandOver(r.Context(), whoIs(c), seen, clean(fields.Get("person")))
		return err
	})
}

// askAgain has the business system asked by key again.
func (s *server) askAgain(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.onCase(w, r, c, func(_ url.Values, seen triage.Seen) error {
		_, err := s.Cases.AskAgain(r.Context(), whoIs(c), seen)
		return err
	})
}

// sendAgain has the one retry made, under the same key.
func (s *server) sendAgain(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.onCase(w, r, c, func(_ url.Values, seen triage.Seen) error {
		_, err := s.Cases.SendAgain(r.Context(), whoIs(c), seen)
		return err
	})
}

// settleCase records a verdict, or a second person's answer to one.
func (s *server) settleCase(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.onCase(w, r, c, func(fields url.Values, seen triage.Seen) error {
		note, err := noteOf(fields)
		if err != nil {
			return err
		}
		switch second := fields.Get("second"); second {
		case "":
		case "confirm", "refuse":
			_, err = s.Cases.Confirm(r.Context(), whoIs(c), seen, second == "confirm", note)
			return err
		default:
			return action.Refuse(action.InvalidArgument, "The form is incomplete. Open the page again.").At("/second", "must be confirm or refuse")
		}
		kind, ref, err := evidenceIn(fields)
		if err != nil {
			return err
		}
		_, err = s.Cases.Settle(r.Context(), whoIs(c), seen, triage.Finding{Verdict: fields.Get("verdict"), EvidenceKind: kind, EvidenceRef: ref, Note: note})
		return err
	})
}

// evidenceIn is what a verdict rests on: the kind and the reference of the form, or
// the reading that was chosen from those of the page.
func evidenceIn(fields url.Values) (kind, ref string, err error) {
	kind, ref = fields.Get("evidence_kind"), strings.TrimSpace(fields.Get("evidence_ref"))
	if !validText(ref) {
		return "", "", action.Refuse(action.InvalidArgument, "The form is incomplete.").At("/evidence_ref", "must be text")
	}
	reading := clean(fields.Get("evidence_reading"))
	switch {
	case reading == "":
		return kind, ref, nil
	case kind != "" && kind != action.EvidenceSnapshot, ref != "" && ref != reading:
		return "", "", action.Refuse(action.InvalidArgument, "A reading is chosen, and something else is named beside it.").At("/evidence_reading", "must be the only evidence")
	}
	return action.EvidenceSnapshot, reading, nil
}

func noteOf(fields url.Values) (string, error) {
	note := strings.TrimSpace(strings.ReplaceAll(fields.Get("note"), "\r\n", "\n"))
	if !validText(note) {
		return "", action.Refuse(action.InvalidArgument, "The form is incomplete.").At("/note", "must be text")
	}
	return note, nil
}
