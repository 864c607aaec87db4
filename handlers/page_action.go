package handlers

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// pastDays is how far back a decider is told of the same target.
const pastDays = 30 * 24 * time.Hour

// showAction is the page of one action, in every state.
func (s *server) showAction(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := s.look(r, c)
	if err != nil {
		return err
	}
	ctx := speaking(r, c, v.now)
	p := v.page(ctx)
	section := web.History
	if v.state() == action.Proposed {
		section, p.StreamURL = web.Approvals, "/actions/"+v.a.ID+"/stream"
	}
	frame := s.frame(r, c, section)
	if flash := s.decidedFlash(r, c); flash != nil {
		frame.Flash = flash
		p.StreamURL = "/actions/" + v.a.ID + "/stream?" + url.Values{"decided": {r.URL.Query().Get("decided")}}.Encode()
		if p.Bar.Form != nil {
			p.Bar.Form.Shown = v.now
		}
	}
	return s.show(ctx, w, http.StatusOK, web.ActionView(frame, p))
}

// look reads everything that the page of an action is made from.
func (s *server) look(r *http.Request, c caller) (actionView, error) {
	ctx := r.Context()
	snap, err := s.see(ctx, c, parameter(r, "id"))
	if err != nil {
		return actionView{}, err
	}
	a := snap.Action
	v := actionView{a: a, now: snap.Now, viewer: c.session.Person, proved: c.session.SteppedUp, lang: string(langOf(r, c)),
		full: r.URL.Query().Get("view") == "full", curl: s.curlFor(a.ID),
		outputs: outputs{s: s, known: map[string]*contract.Contract{}}}
	if v.tool, err = s.catalogue.Version(ctx, a.Tool, a.ToolVersion); err != nil {
		return v, err
	}
	if v.standing, err = s.Approvals.Standing(ctx, a, &v.viewer); err != nil {
		return v, err
	}
	if v.events, _, err = s.Pages.Events(ctx, a.ID); err != nil {
		return v, err
	}
	v.events = v.events[:min(int(a.Version), len(v.events))] // what came after the snapshot belongs to the next look
	if v.paused, err = s.pausedOf(ctx, a); err != nil {
		return v, err
	}
	if v.links, err = s.links(ctx, people.PersonViewer(v.viewer), a, snap.Now, v.lang); err != nil {
		return v, err
	}
	if v.earlier, err = s.doneBefore(ctx, people.PersonViewer(v.viewer), a); err != nil {
		return v, err
	}
	if v.before, v.readBy, err = v.seen(ctx); err != nil {
		return v, err
	}
	if v.later, err = v.readLater(ctx); err != nil {
		return v, err
	}
	if v.reads, err = v.readings(ctx); err != nil {
		return v, err
	}
	past, err := s.Pages.Past(ctx, a, snap.Now.Add(-pastDays))
	if err != nil {
		return v, err
	}
	v.past(past, people.PersonViewer(v.viewer))
	v.task, err = s.partOfTask(ctx, a)
	return v, err
}

// past keeps what the viewer may see of the past.
func (v *actionView) past(p approvals.Past, viewer people.Viewer) {
	v.caseID = p.Blocking
	for _, a := range p.OnTarget {
		if (a.Terms.Write || a.Unreadable != nil) && viewer.Sees(approvals.SubjectOf(a, "")) {
			v.onTarget = append(v.onTarget, a)
		}
	}
	for _, a := range p.Rejected {
		if viewer.Sees(approvals.SubjectOf(a, "")) {
			v.rejected = append(v.rejected, a)
		}
	}
}

func (s *server) curlFor(id string) string {
	return "curl " + s.PublicURL + "/v1/actions/" + id + " \\\n  -H \"Authorization: Bearer $KEY\""
}

// decidedFlash says what the viewer has just decided on another action, when
// the address names it. Nothing is said of what they did not decide.
func (s *server) decidedFlash(r *http.Request, c caller) *web.Flash {
	id := r.URL.Query().Get("decided")
	if !action.ValidID("act", id) {
		return nil
	}
	snap, err := s.see(r.Context(), c, id)
	if err != nil {
		return nil
	}
	a := snap.Action
	for i := len(a.Decisions) - 1; i >= 0; i-- {
		d := a.Decisions[i]
		if d.By.ID != c.session.Person.ID {
			continue
		}
		tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
		if err != nil {
			return nil
		}
		missing := 0
		if st, err := s.Approvals.Standing(r.Context(), a, nil); err == nil && a.State == action.Proposed {
			missing = st.Missing
		}
		return web.FlashDecided(id, effectOf(tool.Contract, string(langOf(r, c)), a.Payload), d.Approve, missing,
			actionView{a: a, now: snap.Now, tool: tool}.status())
	}
	return nil
}

// next is where a decider goes on: the most urgent that needs them, or the
// queue when there is none.
func (s *server) next(r *http.Request, c caller, decided string) string {
	f := queueOf(c.session.Person, approvals.NeedsMe)
	f.Limit = 10
	path := "/approvals"
	waiting, _, err := s.Pages.Queue(r.Context(), f)
	readable := func(a action.Action) bool { return a.Unreadable == nil }
	if i := slices.IndexFunc(waiting, readable); err == nil && i >= 0 {
		path = "/actions/" + waiting[i].ID
	}
	return path + "?decided=" + decided
}

// reviewAction shows an action again with the note that the viewer had typed
// when its content changed. It changes nothing.
func (s *server) reviewAction(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	v, err := s.look(r, c)
	if err != nil {
		return err
	}
	ctx := speaking(r, c, v.now)
	p := v.page(ctx)
	if p.Bar.Form != nil {
		p.Bar.Form.Note = web.Own(strings.ToValidUTF8(fields.Get("reason"), ""))
	}
	return s.show(ctx, w, http.StatusOK, web.ActionView(s.formFrame(r, c, web.Approvals, "/actions/"+v.a.ID), p))
}

// payloadFile is the canonical payload, byte for byte as it is hashed. What a
// contract hides is not given out.
func (s *server) payloadFile(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := s.look(r, c)
	if err != nil {
		return err
	}
	if len(v.tool.Contract.MaskedPlaces(v.a.Payload)) > 0 {
		return action.Refuse(action.Forbidden, "The contract hides parts of this payload, so its exact bytes are not given out.").Because("masked")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="payload.json"`)
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(v.a.Payload)
	return err
}
