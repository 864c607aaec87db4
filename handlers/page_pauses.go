package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// Stops is what the stop switch works on.
type Stops interface {
	approvals.PauseStore
	approvals.ClientLedger
	// Pauses returns what is paused now, and what was, newest first.
	Pauses(ctx context.Context, limit int) ([]approvals.Pause, error)
}

// listedPauses is how many pauses pages look at; those that run come first.
const listedPauses = 200

// pauseRoutes are the stop switch. Everybody sees what is paused, and why.
func pauseRoutes() []route {
	admin := signedIn(people.RoleAdmin)
	return []route{
		{get, "/pauses", "pauses", signedIn(), (*server).showPauses, 0, nil},
		{get, "/pauses/new", "pauseForm", admin, (*server).showPauseForm, 0, nil},
		{post, "/pauses", "pause", admin, (*server).startPause, 0, nil},
		{get, "/pauses/{pause}/end", "pauseEndForm", admin, (*server).showPauseEnd, 0, nil},
		{post, "/pauses/{pause}/end", "pauseEnd", admin, (*server).endPause, 0, nil},
		{get, "/clients/{client}/cancel-open", "cancelOpenForm", admin, (*server).showCancelOpen, 0, nil},
		{post, "/clients/{client}/cancel-open", "cancelOpen", admin, (*server).cancelOpen, maxWait, nil},
	}
}

// running lists what is paused now.
func (s *server) running(ctx context.Context) ([]approvals.Pause, error) {
	all, err := s.Stops.Pauses(ctx, listedPauses)
	return slices.DeleteFunc(all, func(p approvals.Pause) bool { return p.EndedAt != nil }), err
}

// paused lists what is paused, as far as concerns says that it matters.
func (s *server) paused(ctx context.Context, concerns func(approvals.Pause) bool) ([]web.Pause, error) {
	all, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	var found []web.Pause
	for _, p := range all {
		if !concerns(p) {
			continue
		}
		shown, err := s.pauseOf(ctx, p)
		if err != nil {
			return nil, err
		}
		found = append(found, shown)
	}
	return found, nil
}

// pausedOf lists what keeps an action from running.
func (s *server) pausedOf(ctx context.Context, a action.Action) ([]web.Pause, error) {
	if a.State.In(action.Applied, action.Failed, action.Conflict, action.Rejected, action.Cancelled, action.Expired) {
		return nil, nil
	}
	return s.paused(ctx, pauses(a))
}

// pauses reports of a pause whether it keeps an action from running.
func pauses(a action.Action) func(approvals.Pause) bool {
	return func(p approvals.Pause) bool {
		switch p.Kind {
		case approvals.PauseTool:
			return p.Value == a.Tool
		case approvals.PauseScope:
			return p.Value == a.Scope
		}
		return p.Value == a.Client.ID || a.Claim != nil && p.Value == a.Claim.Client
	}
}

// pausedFor lists what is paused of all that a viewer may see.
func (s *server) pausedFor(ctx context.Context, v people.Viewer) ([]web.Pause, error) {
	running, err := s.Overview.RunningPauses(ctx, v, listedPauses)
	found := make([]web.Pause, len(running))
	for i, p := range running {
		found[i] = pauseNamed(p, p.Value)
	}
	return found, err
}

// pauseNamed is a pause as pages show it, of what has this name.
func pauseNamed(p approvals.Pause, name string) web.Pause {
	return web.Pause{ID: p.ID, Kind: p.Kind, Name: web.OutsideName(name), By: web.Outside(p.By), Reason: web.Outside(p.Reason), Since: p.StartedAt, Ended: orZero(p.EndedAt)}
}

func (s *server) pauseOf(ctx context.Context, p approvals.Pause) (web.Pause, error) {
	if p.Kind != approvals.PauseClient {
		return pauseNamed(p, p.Value), nil
	}
	client, err := s.Directory.Client(ctx, p.Value)
	return pauseNamed(p, client.Name), err
}

// showPauses lists what is and was paused.
func (s *server) showPauses(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := s.Stops.Pauses(r.Context(), listedPauses)
	if err != nil {
		return err
	}
	p := web.PausesPage{Manage: c.session.Person.Has(people.RoleAdmin)}
	for _, one := range all {
		shown, err := s.pauseOf(r.Context(), one)
		switch {
		case err != nil:
			return err
		case one.EndedAt == nil:
			p.Running = append(p.Running, shown)
		default:
			p.Ended = append(p.Ended, shown)
		}
	}
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.PausesView(s.frame(r, c, web.Pauses), p))
}

// showPauseForm asks what to pause and why.
func (s *server) showPauseForm(w http.ResponseWriter, r *http.Request, c caller) error {
	q := r.URL.Query()
	p := web.PauseForm{Op: action.NewID("pau"), Kind: clean(q.Get("kind")), Value: own(q, "value")}
	if p.Kind == approvals.PauseClient && action.ValidID("cli", q.Get("value")) {
		client, err := s.Directory.Client(r.Context(), q.Get("value"))
		if err != nil {
			return err
		}
		p.Value = web.Own(client.Name)
	}
	return s.pauseForm(w, r, c, p, http.StatusOK)
}

func (s *server) pauseForm(w http.ResponseWriter, r *http.Request, c caller, p web.PauseForm, status int) error {
	tools, err := s.Reads.Tools(r.Context(), "", toolBatch)
	if err != nil {
		return err
	}
	for _, t := range tools {
		p.Tools = append(p.Tools, t.Name)
	}
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	return s.show(speaking(r, c, now), w, status, web.PauseNewView(s.formFrame(r, c, web.Pauses, "/pauses/new"), p))
}

// startPause pauses a tool, a client or a scope.
func (s *server) startPause(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id, kind, value := fields.Get("op"), fields.Get("kind"), strings.TrimSpace(fields.Get("value"))
	if !action.ValidID("pau", id) {
		return action.Refuse(action.Malformed, "The form is incomplete. Open the page again.")
	}
	if value, err = s.pausable(r.Context(), kind, value); err == nil {
		_, err = approvals.StartPause(r.Context(), s.Stops, id, kind, value, clean(fields.Get("reason")), c.session.By(people.RoleAdmin))
	}
	if err != nil && action.AsRefusal(err).Reason == "paused" {
		if _, again := s.findPause(r.Context(), id); again == nil {
			err = nil // by this very form
		}
	}
	if err == nil {
		return seeOther(w, r, sent("/pauses", web.DonePaused))
	}
	if !onForm(err) {
		return err
	}
	return s.pauseForm(w, r, c, web.PauseForm{Op: id, Kind: clean(kind), Value: own(fields, "value"), Reason: own(fields, "reason"), Refused: refusalOf(err)},
		refusedStatus(w, r, err))
}

// pausable finds what a form means: a tool, a client by name or id, a scope.
func (s *server) pausable(ctx context.Context, kind, value string) (string, error) {
	unknown := func(reason, detail string) error {
		return action.Refuse(action.InvalidArgument, detail).Because(reason).At("/value", detail)
	}
	switch {
	case !validText(value):
		return "", unknown("required", "must be text")
	case value == "", kind == approvals.PauseScope:
		return value, nil
	case kind == approvals.PauseTool:
		versions, err := s.Directory.ToolVersions(ctx, value)
		if err == nil && len(versions) == 0 {
			err = unknown("no-tool", "There is no tool of this name.")
		}
		return value, err
	case kind == approvals.PauseClient:
		client, err := s.Directory.Client(ctx, value)
		if action.IsCode(err, action.NotFound) {
			err = unknown("no-client", "There is no program of this name.")
		}
		return client.ID, err
	}
	return "", action.Refuse(action.InvalidArgument, "Choose what to pause.").Because("choice").At("/kind", "must be tool, client or scope")
}

// findPause is a pause by its id, running or ended.
func (s *server) findPause(ctx context.Context, id string) (approvals.Pause, error) {
	all, err := s.Stops.Pauses(ctx, listedPauses)
	i := slices.IndexFunc(all, func(p approvals.Pause) bool { return p.ID == id })
	if err == nil && i < 0 {
		err = action.Refuse(action.NotFound, "It is not paused.")
	}
	if err != nil {
		return approvals.Pause{}, err
	}
	return all[i], nil
}

// showPauseEnd asks before something goes on.
func (s *server) showPauseEnd(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := s.findPause(r.Context(), parameter(r, "pause"))
	if err != nil {
		return err
	}
	shown, err := s.pauseOf(r.Context(), p)
	if err != nil {
		return err
	}
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.PauseEndView(s.frame(r, c, web.Pauses), shown))
}

// endPause lets something go on.
func (s *server) endPause(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := s.findPause(r.Context(), parameter(r, "pause"))
	if err == nil && p.EndedAt == nil {
		err = approvals.EndPause(r.Context(), s.Stops, p.Kind, p.Value, c.session.By(people.RoleAdmin))
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, sent("/pauses", web.DoneGoesOn))
}

// firstOpen is how many of a client's open actions its page of cancelling shows.
const firstOpen = 5

// showCancelOpen asks before everything open of a client is cancelled.
func (s *server) showCancelOpen(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.cancelOpenForm(w, r, c, url.Values{}, nil)
}

func (s *server) cancelOpenForm(w http.ResponseWriter, r *http.Request, c caller, fields url.Values, refused error) error {
	ctx, id := r.Context(), parameter(r, "client")
	if !action.ValidID("cli", id) {
		return noClient()
	}
	client, err := s.Directory.Client(ctx, id)
	if err != nil {
		return err
	}
	open, err := s.Stops.OpenOfClient(ctx, id, "", countMost)
	if err != nil {
		return err
	}
	now, err := s.clock(ctx, c)
	if err != nil {
		return err
	}
	p := web.CancelOpenPage{ClientID: id, Client: web.OutsideName(client.Name), Op: newOp(), Open: count(len(open)), Reason: own(fields, "reason")}
	first, err := s.Reads.ByID(ctx, open[:min(len(open), firstOpen)]...)
	if err != nil {
		return err
	}
	for _, a := range first {
		l, err := s.linkedAction(ctx, a, now, string(langOf(r, c)))
		if err != nil {
			return err
		}
		p.First = append(p.First, l)
	}
	running, err := s.paused(ctx, func(p approvals.Pause) bool { return p.Kind == approvals.PauseClient && p.Value == id })
	if err != nil {
		return err
	}
	p.Paused = len(running) > 0
	status := http.StatusOK
	if refused != nil {
		p.Refused, status = refusalOf(refused), refusedStatus(w, r, refused)
	}
	return s.show(speaking(r, c, now), w, status, web.CancelOpenView(s.formFrame(r, c, web.Clients, "/clients/"+id+"/cancel-open"), p))
}

// cancelOpen cancels everything of a client that has not run.
func (s *server) cancelOpen(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id, reason := parameter(r, "client"), strings.TrimSpace(clean(fields.Get("reason")))
	if reason == "" || len(reason) > 500 {
		return s.cancelOpenForm(w, r, c, fields, action.Refuse(action.InvalidArgument, "Say why, in at most 500 bytes.").Because("reason-why").At("/reason", "is required"))
	}
	if !action.ValidID("cli", id) {
		return noClient()
	}
	_, err = approvals.CancelOpenOf(r.Context(), s.Stops, clean(fields.Get("op")), id, reason, c.session.By(people.RoleAdmin))
	if action.Refused(err) {
		return s.cancelOpenForm(w, r, c, fields, err)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, sent("/clients/"+id, web.DoneOpenCancelled))
}
