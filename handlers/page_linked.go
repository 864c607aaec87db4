package handlers

import (
	"context"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// wanted are the states in which another action that is linked to the same one may
// still be carried out, or has been.
func wanted(state action.State) bool {
	return state.In(action.Proposed, action.Confirmed, action.Executing, action.Accepted, action.Applied, action.ResultUnknown)
}

// linkedAction is another action as a page names it.
func (s *server) linkedAction(ctx context.Context, a action.Action, now time.Time, lang string) (web.LinkedAction, error) {
	effect, status, err := s.effectAndStatus(ctx, a, now, lang)
	return web.LinkedAction{ID: a.ID, Effect: effect, Status: status}, err
}

// links lists the action that this one undoes, goes on with or replaces, what else
// does so with that one, and those that do so with this one, as far as the viewer
// may see them.
func (s *server) links(ctx context.Context, v people.Viewer, a action.Action, now time.Time, lang string) ([]web.LinkedAction, error) {
	var all []web.LinkedAction
	add := func(other action.Action, how string, holds bool) error {
		if !v.Sees(approvals.SubjectOf(other, "")) {
			return nil
		}
		l, err := s.linkedAction(ctx, other, now, lang)
		l.How, l.Holds = how, holds
		all = append(all, l)
		return err
	}
	if id, how := a.Links.To(); id != "" {
		found, err := s.Reads.ByID(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, original := range found {
			holds := original.State == action.ResultUnknown && a.StateAt(now).In(action.Proposed, action.Confirmed)
			if err := add(original, how, holds); err != nil {
				return nil, err
			}
		}
		beside, err := s.Reads.Linked(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, other := range beside {
			_, how := other.Links.To()
			if other.ID == a.ID || how == "" || !wanted(other.StateAt(now)) {
				continue
			}
			if how += "_beside"; other.State.In(action.Accepted, action.Applied) {
				how = strings.TrimSuffix(how, "_beside") + "_done"
			}
			if err := add(other, how, false); err != nil {
				return nil, err
			}
		}
	}
	back, err := s.Reads.Linked(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	for _, other := range back {
		_, how := other.Links.To()
		if err := add(other, how+"_by", false); err != nil {
			return nil, err
		}
	}
	return all, nil
}
