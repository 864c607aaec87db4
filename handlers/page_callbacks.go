package handlers

import (
	"net/http"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/triage"
	"countersign/web"
)

// listedCallbacks is how many parked callbacks a page shows.
const listedCallbacks = 100

// showCallbacks lists the callbacks that belong to nothing that was sent.
func (s *server) showCallbacks(w http.ResponseWriter, r *http.Request, c caller) error {
	parked, now, err := s.CaseReads.ParkedCallbacks(r.Context(), c.viewer(), listedCallbacks+1)
	if err != nil {
		return err
	}
	p := web.CallbacksPage{More: len(parked) > listedCallbacks}
	for _, one := range parked[:min(len(parked), listedCallbacks)] {
		shown, err := s.callbackOf(r, c, one, now)
		if err != nil {
			return err
		}
		p.Callbacks = append(p.Callbacks, shown)
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.CallbacksView(s.frame(r, c, web.Triage), p))
}

// callbackOf is what is known of a parked callback. What it says is read with
// the newest contract of its tool; of its body nothing else is shown.
func (s *server) callbackOf(r *http.Request, c caller, p triage.ParkedCallback, now time.Time) (web.Callback, error) {
	shown := web.Callback{At: p.ReceivedAt, Tool: web.Outside(p.Tool), ID: web.Outside(p.WebhookID), Key: web.OutsideName(p.Key), Says: web.FoundUnclear,
		Until: p.ExpiresAt, Waits: now.Before(p.ExpiresAt)}
	tool, err := s.catalogue.Latest(r.Context(), p.Tool)
	if err != nil {
		return shown, err
	}
	switch _, reading := tool.Contract.ReadCallback(p.Body); {
	case reading.Outcome == action.Success:
		shown.Says = web.FoundHappened
	case reading.NotExecuted:
		shown.Says = web.FoundNotExecuted
	case reading.Outcome == action.Failure:
		shown.Says = web.FoundFailed
	}
	known, _, err := s.Reads.Actions(r.Context(), approvals.Filter{Viewer: c.viewer(), Ref: p.Key, Limit: 1})
	if err != nil || len(known) == 0 {
		return shown, err
	}
	l, err := s.linkedAction(r.Context(), known[0], now, string(langOf(r, c)))
	shown.Action = &l
	return shown, err
}
