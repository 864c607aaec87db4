package handlers

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// historyPage is how many rows a page of the history has.
const historyPage = 50

// historyAsked reads the history's address: what to show, and what to say of it.
func (s *server) historyAsked(r *http.Request, c caller) (approvals.Filter, web.HistoryFilter, error) {
	q := r.URL.Query()
	f := approvals.Filter{Viewer: c.viewer(), Ref: refOf(q.Get("q")), Tool: clean(q.Get("tool")), Limit: historyPage + 1}
	shown := web.HistoryFilter{Query: web.Outside(f.Ref), Tool: f.Tool, Zone: c.session.Person.Zone, Approver: web.Outside(clean(q.Get("approver")))}
	if zone := q.Get("zone"); zone != "" {
		shown.Zone = zone
	}
	if shown.Zone == "" {
		shown.Zone = "UTC"
	}
	refusal := action.Refuse(action.InvalidArgument, "The history cannot be narrowed that way.")
	zone, err := time.LoadLocation(shown.Zone)
	if err != nil {
		refusal.Because("zone").At("/zone", "must be a time zone such as Europe/Berlin")
		zone, shown.Zone = time.UTC, "UTC"
	}
	shown.Zones = slices.Compact([]string{shown.Zone, "UTC"})
	onlyFilters(q, refusal)
	if state := action.State(q.Get("outcome")); slices.Contains(action.States(), state) {
		f.State, shown.Outcome = state, web.State(state)
	} else if state != "" {
		noChoice(refusal, "outcome")
	}
	f.From, shown.From = day(q.Get("from"), zone, 0, "/from", refusal)
	f.To, shown.To = day(q.Get("to"), zone, 1, "/to", refusal)
	if took := web.PaceBucket(q.Get("took")); slices.Contains(web.PaceBuckets(), took) {
		shown.Took, f.Took = took, tookOf(took)
	} else if took != "" {
		noChoice(refusal, "took")
	}
	if before := q.Get("after"); action.ValidID("act", before) {
		f.Before = before
	}
	if f.Approver, err = s.personNamed(r, shown.Approver.Plain(), refusal); err != nil {
		return f, shown, err
	}
	if len(refusal.Errors) > 0 {
		return f, shown, refusal
	}
	return f, shown, nil
}

// onlyFilters refuses what the history cannot be narrowed by, so that nobody
// takes a whole list for a narrowed one.
func onlyFilters(q url.Values, refusal *action.Refusal) {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains([]string{"q", "from", "to", "zone", "tool", "outcome", "approver", "took", "after", "done"}, name) {
			refusal.Because("no-such-filter").With("filter", clean(name)).At("", clean(name)+" is no filter of the history")
		}
	}
}

// noChoice refuses a value that a filter does not offer.
func noChoice(refusal *action.Refusal, filter string) {
	refusal.Because("no-such-filter-value").With("filter", filter).At("/"+filter, "is none of its choices")
}

func tookOf(b web.PaceBucket) *approvals.Took {
	if b == web.PaceNobody {
		return &approvals.Took{Nobody: true}
	}
	from, to := b.Span()
	return &approvals.Took{From: from, To: to}
}

// refOf is what somebody looks for. A hash may be given without the name of its
// algorithm, as a double click copies it.
func refOf(text string) string {
	text = clean(strings.TrimSpace(text))
	if len(text) == 64 && strings.Trim(text, "0123456789abcdef") == "" {
		return "sha256:" + text
	}
	return text
}

// day is the beginning of a day, or of the one after it, in a zone.
func day(text string, zone *time.Location, plus int, pointer string, refusal *action.Refusal) (*time.Time, string) {
	if text == "" {
		return nil, ""
	}
	at, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil {
		refusal.Because("day").At(pointer, "must be a day such as 2026-11-30")
		return nil, ""
	}
	at = at.AddDate(0, 0, plus)
	return &at, text
}

// personNamed finds the person that a name or username means; "" for none.
func (s *server) personNamed(r *http.Request, name string, refusal *action.Refusal) (string, error) {
	if name == "" {
		return "", nil
	}
	persons, err := s.Directory.Persons(r.Context())
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(persons, func(p people.Person) bool {
		return p.ID == name || strings.EqualFold(p.Username, name) || strings.EqualFold(p.Name, name)
	})
	if i < 0 {
		refusal.Because("approver").At("/approver", "is the name of nobody here")
		return "", nil
	}
	return persons[i].ID, nil
}

// showHistory is the filtered list of everything that happened.
func (s *server) showHistory(w http.ResponseWriter, r *http.Request, c caller) error {
	f, shown, err := s.historyAsked(r, c)
	p := web.HistoryPage{Filter: shown}
	status := http.StatusOK
	if action.IsCode(err, action.InvalidArgument) {
		p.Refused, status = refusalOf(err), kindOf(action.InvalidArgument).status
	} else if err != nil {
		return err
	}
	tools, err := s.Reads.Tools(r.Context(), "", 500)
	if err != nil {
		return err
	}
	sees, err := s.inSight(r.Context(), c.session.Person)
	if err != nil {
		return err
	}
	tools = slices.DeleteFunc(tools, func(t rule.ToolVersion) bool { return !sees(t.Name) })
	for _, t := range tools {
		p.Filter.Tools = append(p.Filter.Tools, t.Name)
	}
	now := time.Time{}
	if p.Refused == nil {
		var actions []action.Action
		if actions, now, err = s.Reads.Actions(r.Context(), f); err != nil {
			return err
		}
		if p.More = len(actions) > historyPage; p.More {
			actions = actions[:historyPage]
			p.NextURL = pageAfter(r.URL, actions[historyPage-1].ID)
		}
		if p.Rows, err = s.historyRows(r, c, actions, now); err != nil {
			return err
		}
		p.CSVURL, p.CallsURL = fileAt("/history.csv", r.URL), fileAt("/history.jsonl", r.URL)
	}
	return s.show(speaking(r, c, now), w, status, web.HistoryView(s.frame(r, c, web.History), p))
}

func (s *server) historyRows(r *http.Request, c caller, actions []action.Action, now time.Time) ([]web.HistoryRow, error) {
	rows := make([]web.HistoryRow, len(actions))
	for i, a := range actions {
		if a.Unreadable != nil {
			effect, status, _ := s.effectAndStatus(r.Context(), a, now, "")
			rows[i] = web.HistoryRow{ID: a.ID, At: a.CreatedAt, Effect: effect, Status: status, For: actorText(a.Actor), Tool: web.Outside(a.Tool)}
			continue
		}
		tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
		if err != nil {
			return nil, err
		}
		rows[i] = historyRowOf(r.Context(), tool, a, now, string(langOf(r, c)))
	}
	return rows, nil
}

// historyFile is the same list as CSV.
func (s *server) historyFile(w http.ResponseWriter, r *http.Request, c caller) error {
	f, _, err := s.historyAsked(r, c)
	if err != nil {
		return err
	}
	return sheet(w, "countersign-history.csv", historyHead(), s.historyLines(r, c, f))
}

// historyLines are the rows of the file. Where there are more than one file has,
// the last one says where they are.
func (s *server) historyLines(r *http.Request, c caller, f approvals.Filter) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		f.Limit = s.filePage
		for n := 0; ; {
			actions, now, err := s.Reads.Actions(r.Context(), f)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, a := range actions {
				if n == s.fileMost {
					rest := make([]string, len(historyHead()))
					rest[0] = fmt.Sprintf("This file has %d requests. The older ones are at %s%s", n, s.PublicURL, pageAfter(r.URL, f.Before))
					yield(rest, nil)
					return
				}
				if !yield(s.historyLine(r, c, a, now)) {
					return
				}
				n, f.Before = n+1, a.ID
			}
			if len(actions) < f.Limit {
				return
			}
		}
	}
}

func historyHead() []string {
	return []string{"id", "created_utc", "updated_utc", "state", "tool", "tool_version", "effect", "actor_id", "target_type", "target_id",
		"decided_by", "payload_hash", "proposal_hash", "execution_key", "client", "request_id"}
}

func (s *server) historyLine(r *http.Request, c caller, a action.Action, now time.Time) ([]string, error) {
	effect := toldUnreadable(a)
	if effect == "" {
		tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
		if err != nil {
			return nil, err
		}
		effect = lineOf(effectOf(tool.Contract, string(langOf(r, c)), a.Payload)).Plain()
	}
	target := action.Target{}
	if a.Target != nil {
		target = *a.Target
	}
	var deciders []string
	for _, d := range a.Decisions {
		if d.Revision == a.Revision && !(d.Approve && (actionView{a: a}).lost(d)) {
			word := "approved: "
			if !d.Approve {
				word = "rejected: "
			}
			deciders = append(deciders, word+d.By.Name+" ("+d.By.ID+")")
		}
	}
	return []string{a.ID, a.CreatedAt.UTC().Format(time.RFC3339), a.UpdatedAt.UTC().Format(time.RFC3339), string(a.StateAt(now)), a.Tool,
		strconv.Itoa(a.ToolVersion), effect, a.Actor.ID, target.Type, target.ID, strings.Join(deciders, "; "), a.PayloadHash, a.ProposalHash,
		a.ExecutionKey, a.Client.Name, a.RequestID}, nil
}
