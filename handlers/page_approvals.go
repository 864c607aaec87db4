package handlers

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// queuePage is how many rows a page of the queue has; soon is what "expiring"
// means.
const (
	queuePage = 50
	soon      = 5 * time.Minute
)

func queueOf(p people.Person, tab approvals.Tab) approvals.QueueFilter {
	return approvals.QueueFilter{Person: p, Roles: p.Decides(), Tab: tab, Limit: queuePage + 1}
}

// tabs of the page and of the queue.
var queueTabs = map[web.Tab]approvals.Tab{web.TabMine: approvals.NeedsMe, web.TabOthers: approvals.ForOthers, web.TabAll: approvals.Everybody}

// queueAsked reads the queue's address.
func queueAsked(r *http.Request, p people.Person) (web.Tab, approvals.QueueFilter) {
	q := r.URL.Query()
	tab := web.Tab(q.Get("tab"))
	if _, ok := queueTabs[tab]; !ok {
		tab = web.TabMine
	}
	f := queueOf(p, queueTabs[tab])
	f.Tool, f.Target = clean(q.Get("tool")), clean(q.Get("target"))
	if q.Get("expiring") != "" {
		f.Expiring = soon
	}
	f.After = queueCursor(q.Get("after"))
	return tab, f
}

// clean drops what no stored text holds and a query could not be asked with.
func clean(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "") }

func queueCursor(text string) approvals.QueueCursor {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(raw), " ")
	micros, err2 := strconv.ParseInt(at, 10, 64)
	expires := time.UnixMicro(micros).UTC()
	if err != nil || err2 != nil || !ok || expires.Year() < 1 || expires.Year() > 9999 || !action.ValidID("act", id) {
		return approvals.QueueCursor{}
	}
	return approvals.QueueCursor{ExpiresAt: expires, ID: id}
}

func queueCursorText(c approvals.QueueCursor) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", c.ExpiresAt.UnixMicro(), c.ID))
}

// showApprovals is the queue.
func (s *server) showApprovals(w http.ResponseWriter, r *http.Request, c caller) error {
	person := c.session.Person
	tab, f := queueAsked(r, person)
	newest, err := s.Pages.Newest(r.Context())
	if err != nil {
		return err
	}
	nobody := r.URL.Query().Get("nobody") != ""
	actions, now, err := s.queue(r.Context(), f, nobody)
	if err != nil {
		return err
	}
	ctx := speaking(r, c, now)
	q := web.Queue{Tab: tab, Counts: map[web.Tab]web.Count{}, ReadAt: now, FirstPage: f.After.ID == "",
		Filter: web.QueueFilter{Tool: f.Tool, Target: web.Outside(f.Target), Expiring: f.Expiring > 0, Nobody: nobody}}
	if len(actions) > queuePage {
		actions = actions[:queuePage]
		last := actions[queuePage-1]
		q.NextURL = pageAfter(r.URL, queueCursorText(approvals.QueueCursor{ExpiresAt: *last.ExpiresAt, ID: last.ID}))
	}
	if q.Rows, err = s.rows(r, c, actions, string(langOf(r, c))); err != nil {
		return err
	}
	if err := s.countTabs(r.Context(), &q, f); err != nil {
		return err
	}
	if q.Paused, err = s.pausedFor(r.Context(), c.viewer()); err != nil {
		return err
	}
	if err := s.furnish(r, c, &q, newest); err != nil {
		return err
	}
	frame := s.frame(r, c, web.Approvals)
	if frame.Flash == nil {
		frame.Flash = s.decidedFlash(r, c)
	}
	return s.show(ctx, w, http.StatusOK, web.ApprovalsPage(frame, q))
}

// queue reads a page of the queue, of what nobody can approve if asked to.
func (s *server) queue(ctx context.Context, f approvals.QueueFilter, nobody bool) ([]action.Action, time.Time, error) {
	if !nobody {
		return s.Pages.Queue(ctx, f)
	}
	found, _, now, _, err := s.stuck(ctx, f)
	return found[:min(len(found), f.Limit)], now, err
}

// countTabs counts what each tab holds. What nobody can approve is not counted.
func (s *server) countTabs(ctx context.Context, q *web.Queue, f approvals.QueueFilter) error {
	if q.Filter.Nobody {
		return nil
	}
	for name, t := range queueTabs {
		f.Tab = t
		n, err := s.Pages.QueueCount(ctx, f, "", countMost)
		if err != nil {
			return err
		}
		if n >= 0 {
			q.Counts[name] = count(n)
		}
	}
	return nil
}

// furnish adds the choice of tools, the stream of news and, while the console
// is empty, the first steps.
func (s *server) furnish(r *http.Request, c caller, q *web.Queue, newest string) error {
	tools, err := s.Reads.Tools(r.Context(), "", 500)
	if err != nil {
		return err
	}
	sees, err := s.inSight(r.Context(), c.session.Person)
	if err != nil {
		return err
	}
	for _, t := range tools {
		if !t.Active || !sees(t.Name) {
			continue
		}
		if tool, err := s.catalogue.Version(r.Context(), t.Name, t.Version); err != nil || tool.Contract.Mode != contract.Read { // what only reads never waits
			q.Filter.Tools = append(q.Filter.Tools, t.Name)
		}
	}
	stream := url.Values{"after": {newest}}
	for name, values := range r.URL.Query() {
		if slices.Contains([]string{"tab", "tool", "target", "expiring", "decided"}, name) {
			stream[name] = values
		}
	}
	if !q.Filter.Nobody { // of which nobody keeps count
		q.StreamURL = "/approvals/stream?" + stream.Encode()
	}
	if newest == "" {
		q.Setup, err = s.firstSteps(r, c, len(tools))
	}
	return err
}

// rows lays the queue's actions out.
func (s *server) rows(r *http.Request, c caller, actions []action.Action, lang string) ([]web.Row, error) {
	viewer := c.session.Person
	standings, err := s.Approvals.Standings(r.Context(), actions, &viewer)
	if err != nil {
		return nil, err
	}
	ids, hashes := make([]string, len(actions)), make([]string, len(actions))
	for i, a := range actions {
		ids[i], hashes[i] = a.ID, a.PayloadHash
	}
	rejected, err := s.Pages.Rejected(r.Context(), hashes)
	if err != nil {
		return nil, err
	}
	blocked, err := s.Pages.Blocked(r.Context(), ids)
	if err != nil {
		return nil, err
	}
	running, err := s.running(r.Context())
	if err != nil {
		return nil, err
	}
	rows := make([]web.Row, len(actions))
	for i, a := range actions {
		if a.Unreadable != nil {
			rows[i] = web.Row{ID: a.ID, Effect: unreadEffect(a), Actor: actorText(a.Actor), Client: web.Outside(a.Client.Name), Target: targetOf(a),
				ExpiresAt: orZero(a.ExpiresAt), PayloadHash: a.PayloadHash}
			continue
		}
		tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
		if err != nil {
			return nil, err
		}
		rows[i] = rowOf(r.Context(), tool, a, standings[i], viewer, rejected[a.PayloadHash], lang)
		rows[i].Looking = s.looking.besides(a.ID, viewer.ID)
		rows[i].Blocked = blocked[a.ID] != ""
		if j := slices.IndexFunc(running, pauses(a)); j >= 0 {
			rows[i].Paused = new(pauseNamed(running[j], running[j].Value))
		}
	}
	return rows, nil
}

func pageAfter(u *url.URL, cursor string) string {
	q := u.Query()
	q.Set("after", cursor)
	q.Del("done")
	return u.Path + "?" + q.Encode()
}

// streamApprovals says how many proposals came after the page was read, and what
// became of the decision that it tells of.
func (s *server) streamApprovals(w http.ResponseWriter, r *http.Request, c caller) error {
	_, f := queueAsked(r, c.session.Person)
	f.After = approvals.QueueCursor{}
	after := r.URL.Query().Get("after")
	if after == "" {
		after = "act_"
	}
	return s.stream(w, r, c, func(ctx context.Context) (string, error) {
		n, err := s.Pages.QueueCount(ctx, f, after, countMost)
		if err != nil {
			return "", err
		}
		said := fmt.Sprintf("event: new\ndata: %d\n\n", n)
		if flash := s.decidedFlash(r, c); flash != nil {
			said += fmt.Sprintf("event: now\ndata: %s\n\n", oneLine(flash.Now(speaking(r, c, time.Time{}))))
		}
		return said, nil
	})
}
