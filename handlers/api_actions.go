package handlers

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/web"
)

// getAction shows an action, at once or as soon as it has changed.
func (s *server) getAction(w http.ResponseWriter, r *http.Request, c caller) error {
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	since, err := number(r, "since", 0, 1<<53, 0)
	if err != nil {
		return err
	}
	var snap action.Snapshot
	err = s.await(r.Context(), c, wait, func() (bool, error) {
		snap, err = s.see(r.Context(), c, parameter(r, "id"))
		return snap.Action.Version > since, err
	})
	if err != nil {
		return err
	}
	return s.respondAction(w, r, c, http.StatusOK, snap)
}

// listActions shows what a filter lets through, newest first.
func (s *server) listActions(w http.ResponseWriter, r *http.Request, c caller) error {
	f, err := filterOf(r, c)
	if err != nil {
		return err
	}
	f.Limit++ // one more tells whether there is a next page
	actions, now, err := s.Reads.Actions(r.Context(), f)
	if err != nil {
		return err
	}
	list := api.List[api.Action]{Items: []api.Action{}}
	if len(actions) == f.Limit {
		actions = actions[:f.Limit-1]
		list.NextCursor = new(cursorAfter(actions[len(actions)-1].ID))
	}
	shown, err := s.represent(r.Context(), c, now, actions...)
	if err != nil {
		return err
	}
	list.Items = append(list.Items, shown...)
	return respond(w, http.StatusOK, list)
}

func filterOf(r *http.Request, c caller) (approvals.Filter, error) {
	q := r.URL.Query()
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		return approvals.Filter{}, err
	}
	f := approvals.Filter{Viewer: c.viewer(), State: action.State(q.Get("state")), Tool: q.Get("tool"), ActorID: q.Get("actor"),
		TaskID: q.Get("task"), ClaimedBy: q.Get("claimed_by"), Limit: int(limit)}
	if f.State != "" && !slices.Contains(action.States(), f.State) {
		return f, wrongQuery("state", "must be a state such as proposed")
	}
	if f.ClaimedBy == "me" {
		f.ClaimedBy = c.id()
	}
	if target := q.Get("target"); target != "" {
		f.Target = &action.Target{ID: target}
		if typ, id, typed := strings.Cut(target, ":"); typed {
			f.Target = &action.Target{Type: typ, ID: id}
		}
	}
	if cursor := q.Get("cursor"); cursor != "" {
		if f.Before = afterCursor(cursor); !action.ValidID("act", f.Before) {
			return f, wrongQuery("cursor", "must be the next_cursor of the page before")
		}
	}
	return f, nil
}

// cursorAfter hides that a cursor is where the page before ended: clients should
// not make their own.
func cursorAfter(last string) string { return base64.RawURLEncoding.EncodeToString([]byte(last)) }

func afterCursor(cursor string) string {
	last, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return ""
	}
	return string(last)
}

// getStatement tells what may be said to a customer now.
func (s *server) getStatement(w http.ResponseWriter, r *http.Request, c caller) error {
	lang, err := askedLang(r)
	if err != nil {
		return err
	}
	snap, err := s.see(r.Context(), c, parameter(r, "id"))
	if err != nil {
		return err
	}
	tool, err := s.catalogue.Version(r.Context(), snap.Action.Tool, snap.Action.ToolVersion)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, statementOf(snap.Action, tool.Contract, snap.Now, lang))
}

// askedLang is the language that the address asks for, English unless it does.
func askedLang(r *http.Request) (web.Lang, error) {
	asked := r.URL.Query().Get("lang")
	if asked == "" {
		return web.English, nil
	}
	lang, known := web.ParseLang(asked)
	if !known {
		return lang, wrongQuery("lang", "must be en or zh")
	}
	return lang, nil
}

// submit proposes a draft.
func (s *server) submit(w http.ResponseWriter, r *http.Request, c caller) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	if _, err := decodeOptional[struct{}](w, r); err != nil {
		return err
	}
	snap, err := s.Approvals.Submit(r.Context(), *c.client, parameter(r, "id"), version)
	if err != nil {
		return err
	}
	return s.respondAction(w, r, c, http.StatusOK, snap)
}

// revise replaces the content of an action.
func (s *server) revise(w http.ResponseWriter, r *http.Request, c caller) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	body, err := decode[api.Revise](w, r)
	if err != nil {
		return err
	}
	refusal := action.Refuse(action.InvalidArgument, "The revision is refused. The errors say where.")
	if checkContent(refusal, body.Payload, body.ObjectVersion, body.Reason); len(refusal.Errors) > 0 {
		return refusal
	}
	snap, err := s.Approvals.Revise(r.Context(), *c.client, parameter(r, "id"), version,
		approvals.Revision{Payload: body.Payload, ObjectVersion: body.ObjectVersion, Reason: body.Reason, ExpiresIn: lifeOf(body.ExpiresIn)})
	if err != nil {
		return err
	}
	return s.respondAction(w, r, c, http.StatusCreated, snap)
}

// cancel ends an action that has not run.
func (s *server) cancel(w http.ResponseWriter, r *http.Request, c caller) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	body, err := decodeOptional[api.Cancel](w, r)
	if err != nil {
		return err
	}
	if len(body.Reason) > maxReason {
		return action.Refuse(action.InvalidArgument, "The reason is too long.").At("/reason", "must have at most "+strconv.Itoa(maxReason)+" bytes")
	}
	snap, err := s.Approvals.Cancel(r.Context(), *c.client, parameter(r, "id"), version, body.Reason)
	if err != nil {
		return err
	}
	return s.respondAction(w, r, c, http.StatusOK, snap)
}

// respondAction answers with an action as its caller may see it.
func (s *server) respondAction(w http.ResponseWriter, r *http.Request, c caller, status int, snap action.Snapshot) error {
	shown, err := s.representOne(r.Context(), c, snap)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(shown.Version, 10)))
	return respond(w, status, shown)
}

func (s *server) representOne(ctx context.Context, c caller, snap action.Snapshot) (api.Action, error) {
	shown, err := s.represent(ctx, c, snap.Now, snap.Action)
	if err != nil {
		return api.Action{}, err
	}
	return shown[0], nil
}
