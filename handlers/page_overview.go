package handlers

import (
	"context"
	"net/http"
	"slices"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/triage"
	"countersign/web"
)

// OverviewReads is what the overview and the metrics read. All of it is bounded:
// by partial indexes, or by how many rows are looked at.
type OverviewReads interface {
	// WaitingProposals counts the proposals that wait, among the most urgent.
	WaitingProposals(ctx context.Context, viewer people.Viewer, soon time.Duration) (approvals.Waiting, error)
	// WaitingConfirmed counts approved actions that no executor has taken yet.
	WaitingConfirmed(ctx context.Context, viewer people.Viewer) (approvals.Waiting, error)
	// CaseAges returns since when cases are open, the oldest first, at most triage.Looked and one more.
	CaseAges(ctx context.Context, viewer people.Viewer) ([]triage.CaseAge, error)
	// Pace returns how long people took to decide, of the newest proposals.
	Pace(ctx context.Context, f approvals.PaceFilter) ([]approvals.Decided, error)
	// RunningPauses returns what is paused now, newest first.
	RunningPauses(ctx context.Context, viewer people.Viewer, limit int) ([]approvals.Pause, error)
	// Executors returns what executors said of themselves within a time.
	Executors(ctx context.Context, viewer people.Viewer, within time.Duration, limit int) ([]approvals.Executor, error)
	// ExecutorSeen returns when an executor was last heard of; nil when never.
	ExecutorSeen(ctx context.Context) (*time.Time, error)
	// Figures counts what is open, of everything.
	Figures(ctx context.Context) (approvals.Figures, error)
	// NoteExecutor writes down what an executor says of itself.
	NoteExecutor(ctx context.Context, e approvals.Executor) error
}

const (
	paceDays    = 7   // shown, today is one of them
	mostStopped = 100 // pauses, and executors
	mostStuck   = 200 // proposals of which is found out who can approve them, with all their content
)

// showOverview is how things stand, as far as the viewer may see them.
func (s *server) showOverview(w http.ResponseWriter, r *http.Request, c caller) error {
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	p := web.OverviewPage{ReadAt: now}
	for _, fill := range []func(*http.Request, caller, *web.OverviewPage) error{
		s.fillWaiting, s.fillStuck, s.fillConfirmed, s.fillUnknown, s.fillStopped, s.fillPace, s.fillAges,
	} {
		if err := fill(r, c, &p); err != nil {
			return err
		}
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.OverviewView(s.frame(r, c, web.Overview), p))
}

func (s *server) fillWaiting(r *http.Request, c caller, p *web.OverviewPage) error {
	waits, err := s.Overview.WaitingProposals(r.Context(), c.viewer(), soon)
	p.Waiting = web.WaitingTile{Count: web.Count{N: waits.N, More: waits.More}, Expiring: waits.Expiring, Soon: soon, Oldest: orZero(waits.Oldest)}
	return err
}

// stuck returns what nobody can approve as things are, among the most urgent
// proposals that a filter lets through, and whether there are more of these.
func (s *server) stuck(ctx context.Context, f approvals.QueueFilter) (found []action.Action, standings []approvals.Standing, now time.Time, more bool, err error) {
	f.Limit = mostStuck + 1
	waiting, now, err := s.Pages.Queue(ctx, f)
	if err != nil {
		return nil, nil, now, false, err
	}
	if more = len(waiting) > mostStuck; more {
		waiting = waiting[:mostStuck]
	}
	all, err := s.Approvals.Standings(ctx, waiting, nil)
	if err != nil {
		return nil, nil, now, more, err
	}
	for i, a := range waiting {
		if all[i].Stuck || a.Unreadable != nil {
			found, standings = append(found, a), append(standings, all[i])
		}
	}
	return found, standings, now, more, nil
}

func (s *server) fillStuck(r *http.Request, c caller, p *web.OverviewPage) error {
	found, standings, _, more, err := s.stuck(r.Context(), queueOf(c.session.Person, approvals.Everybody))
	if err != nil {
		return err
	}
	p.Stuck.Count = web.Count{N: len(found), More: more && len(found) > 0}
	if more {
		p.Stuck.Looked = mostStuck
	}
	if len(found) == 0 {
		return nil
	}
	effect, _, err := s.effectAndStatus(r.Context(), found[0], p.ReadAt, string(langOf(r, c)))
	if err != nil {
		return err
	}
	first := web.StuckRow{Effect: effect, Can: len(standings[0].Eligible)}
	for _, n := range found[0].Needs {
		if n.Approvals > 0 {
			first.Rules = append(first.Rules, web.Rule{Role: n.Role, Count: n.Approvals, StepUp: n.StepUp})
		}
	}
	p.Stuck.First = &first
	return nil
}

func (s *server) fillConfirmed(r *http.Request, c caller, p *web.OverviewPage) error {
	waits, err := s.Overview.WaitingConfirmed(r.Context(), c.viewer())
	if err != nil {
		return err
	}
	seen, err := s.Overview.ExecutorSeen(r.Context())
	p.Confirmed = web.ConfirmedTile{Count: web.Count{N: waits.N, More: waits.More}, Oldest: orZero(waits.Oldest), Seen: orZero(seen)}
	return err
}

func (s *server) fillUnknown(r *http.Request, c caller, p *web.OverviewPage) error {
	f := triage.CaseFilter{Viewer: c.viewer(), Tab: triage.TabPerson, Limit: triagePage}
	n, err := s.CaseReads.CaseCount(r.Context(), f, triage.Looked+1)
	if err != nil {
		return err
	}
	p.Unknown.Count = web.Count{N: min(n, triage.Looked), More: n > triage.Looked}
	if n > triagePage {
		p.Unknown.Of = triagePage
	}
	cases, _, err := s.CaseReads.Cases(r.Context(), f)
	if err != nil {
		return err
	}
	var sums []contract.Amount
	for _, a := range cases {
		if a.Unreadable != nil {
			continue // it counts, what is at stake is not known
		}
		tool, err := s.catalogue.Version(r.Context(), a.Tool, a.ToolVersion)
		if err != nil {
			return err
		}
		if amount, moves := tool.Contract.Moved(a.Payload); moves {
			sums = append(sums, amount)
		}
	}
	for _, m := range triage.Total(sums) {
		p.Unknown.Money = append(p.Unknown.Money, web.Money{Amount: m.Amount, Currency: m.Currency})
	}
	return nil
}

// fillStopped finds what is paused, and which business systems executors leave
// alone.
func (s *server) fillStopped(r *http.Request, c caller, p *web.OverviewPage) error {
	pauses, err := s.Overview.RunningPauses(r.Context(), c.viewer(), mostStopped)
	if err != nil {
		return err
	}
	for _, pause := range pauses {
		p.Stopped = append(p.Stopped, web.Stopped{Kind: pause.Kind, Name: web.Outside(pause.Value), Since: pause.StartedAt, By: web.Outside(pause.By),
			Reason: web.Outside(pause.Reason)})
	}
	executors, err := s.Overview.Executors(r.Context(), c.viewer(), approvals.ExecutorFresh, mostStopped)
	if err != nil {
		return err
	}
	p.Told = len(executors) > 0
	for _, e := range executors {
		for _, system := range e.Systems {
			if system.Away() {
				p.Stopped = append(p.Stopped, web.Stopped{Kind: "breaker", Name: web.Outside(system.System), By: web.Outside(e.Name),
					Since: orZero(system.Since), Reads: system.Reads != approvals.BreakerClosed})
			}
		}
	}
	return nil
}

func (s *server) fillPace(r *http.Request, c caller, p *web.OverviewPage) error {
	today := p.ReadAt.UTC().Truncate(24 * time.Hour)
	from := today.AddDate(0, 0, 1-paceDays)
	decided, err := s.Overview.Pace(r.Context(), approvals.PaceFilter{Viewer: c.viewer(), From: from, To: today.AddDate(0, 0, 1)})
	if err != nil {
		return err
	}
	var took []time.Duration
	nobody := 0
	for _, d := range decided {
		if d.Nobody {
			nobody++
		} else {
			took = append(took, d.Took)
		}
	}
	p.Pace = web.NewPaceChart(from, today, took, nobody, len(decided) >= approvals.Looked)
	return nil
}

func (s *server) fillAges(r *http.Request, c caller, p *web.OverviewPage) error {
	ages, err := s.Overview.CaseAges(r.Context(), c.viewer())
	if err != nil || len(ages) == 0 {
		return err
	}
	p.Ages.Oldest, p.Ages.CaseID, p.Ages.More = ages[0].Since, ages[0].ID, len(ages) > triage.Looked
	for _, a := range ages[:min(len(ages), triage.Looked)] {
		p.Ages.Add(p.ReadAt.Sub(a.Since), a.Person, a.Pending)
	}
	return nil
}

// noteExecutor takes what an executor says of itself.
func (s *server) noteExecutor(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Executor](w, r)
	if err != nil {
		return err
	}
	e := approvals.Executor{ClientID: c.client.ID, Instance: body.Instance, Name: body.Name, Tools: body.Tools, Systems: []approvals.SystemHealth{}}
	if e.Name == "" {
		e.Name = c.client.Name
	}
	for _, system := range body.Systems {
		e.Systems = append(e.Systems, approvals.SystemHealth{System: system.System, Reads: system.Reads, Writes: system.Writes, Since: system.Since})
	}
	if !slices.ContainsFunc(slices.Concat([]string{e.Instance, e.Name}, e.Tools, systemNames(e.Systems)), func(text string) bool { return !plainText(text, 2*maxText) }) {
		err = e.Check()
	} else {
		err = action.Refuse(action.InvalidArgument, "Instance, name, tools and systems are short texts without control characters.").At("/instance", "is refused")
	}
	if err != nil {
		return err
	}
	if err := s.Overview.NoteExecutor(r.Context(), e); err != nil {
		return err
	}
	return respond(w, http.StatusOK, api.ExecutorNoted{Now: time.Now().UTC()})
}

func systemNames(systems []approvals.SystemHealth) []string {
	names := make([]string, len(systems))
	for i, s := range systems {
		names[i] = s.System
	}
	return names
}
