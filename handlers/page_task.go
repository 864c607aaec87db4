package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// taskPageRoutes are budgets, for people: they look, extend and end.
func taskPageRoutes() []route {
	tends := signedIn(people.RoleSupport, people.RoleOps)
	return []route{
		{get, "/tasks", "tasks", signedIn(), (*server).showTasks, 0, nil},
		{get, "/tasks/{task}", "task", signedIn(), (*server).showTask, 0, nil},
		{post, "/tasks/{task}/extend", "extendTask", tends, (*server).extendTask, 0, nil},
		{post, "/tasks/{task}/end", "endTask", tends, (*server).endTask, maxWait, nil},
	}
}

// showTasks lists tasks, newest first.
func (s *server) showTasks(w http.ResponseWriter, r *http.Request, c caller) error {
	f := approvals.TaskFilter{Viewer: c.viewer(), Before: r.URL.Query().Get("after"), Limit: defaultListed + 1}
	tasks, now, err := s.TaskReads.Tasks(r.Context(), f)
	if err != nil {
		return err
	}
	p := web.TasksPage{}
	if len(tasks) > defaultListed {
		tasks = tasks[:defaultListed]
		p.NextURL = pageAfter(r.URL, tasks[len(tasks)-1].ID)
	}
	for _, k := range tasks {
		p.Tasks = append(p.Tasks, web.TaskRow{ID: k.ID, Title: web.Outside(k.Title), Unread: k.Unreadable, Status: taskStatus(k.Task, now),
			Client: web.Outside(k.Client.Name), Opened: k.CreatedAt})
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.TasksView(s.frame(r, c, web.Tasks), p))
}

func taskStatus(k approvals.Task, now time.Time) web.TaskStatus {
	return web.TaskStatus{State: string(k.StateAt(now)), Limit: string(k.ReachedAt(now)), By: web.Outside(k.By.Name)}
}

// showTask is the page of one task.
func (s *server) showTask(w http.ResponseWriter, r *http.Request, c caller) error {
	k, now, err := s.Approvals.Task(r.Context(), parameter(r, "task"))
	if err != nil {
		return err
	}
	return s.renderTask(w, r, c, k, now, http.StatusOK, nil)
}

// renderTask shows a task, with what change makes of its page.
func (s *server) renderTask(w http.ResponseWriter, r *http.Request, c caller, k approvals.Task, now time.Time, status int, change func(*web.TaskPage)) error {
	ctx := speaking(r, c, now)
	v, err := s.lookAtTask(ctx, c, k, now)
	if err != nil {
		return err
	}
	p, err := v.page(ctx, c)
	if err != nil {
		return err
	}
	frame := s.formFrame(r, c, web.Tasks, "/tasks/"+k.ID)
	if frame.Flash = flashOf(r); change != nil {
		change(&p)
	}
	return s.show(ctx, w, status, web.TaskView(frame, p))
}

// page makes the view model.
func (v taskView) page(ctx context.Context, c caller) (web.TaskPage, error) {
	k := v.k
	p := web.TaskPage{ID: k.ID, Title: web.Outside(k.Title), Status: taskStatus(k, v.now), Client: web.Outside(k.Client.Name), Opened: k.CreatedAt,
		Budget: v.budget(ctx), Checks: v.used().Checks, AsOf: v.now, Parts: map[web.TaskPart][]web.TaskAction{},
		Actions: v.use.Actions}
	lang := string(web.LocaleOf(ctx).Lang)
	for _, a := range v.actions {
		effect, status, err := v.server.effectAndStatus(ctx, a, v.now, lang)
		if err != nil {
			return p, err
		}
		part := partOf(a, v.now)
		p.Parts[part] = append(p.Parts[part], web.TaskAction{ID: a.ID, Effect: effect, Status: status})
	}
	if k.StateAt(v.now) != approvals.TaskOpen {
		said := v.statement()
		p.Statement = &said
	}
	events, _, err := v.server.Pages.Events(ctx, k.ID)
	if err != nil {
		return p, err
	}
	if p.Record, err = taskRecord(ctx, events); err != nil {
		return p, err
	}
	err = v.forms(ctx, c, &p)
	return p, err
}

// forms adds what the viewer may do, or why they may not.
func (v taskView) forms(ctx context.Context, c caller, p *web.TaskPage) error {
	if v.k.State == approvals.TaskEnded {
		return nil
	}
	err := v.server.Approvals.MayTend(ctx, c.session.Person, v.k)
	switch {
	case action.IsCode(err, action.Forbidden):
		p.WhyNot = refusalOf(err)
		return nil
	case err != nil:
		return err
	}
	p.End = &web.EndForm{Op: newOp()}
	for _, a := range v.actions {
		if a.State.In(action.Draft, action.Proposed, action.Confirmed) && a.StateAt(v.now) != action.Expired {
			p.End.Open++
		}
	}
	p.Extend = &web.ExtendForm{Op: newOp(), Values: map[string]web.Own{}}
	for _, line := range p.Budget {
		if !line.Of.Empty() {
			p.Extend.Values[line.Limit] = ""
		}
	}
	return nil
}

// budget is every limit with what is used of it.
func (v taskView) budget(ctx context.Context) []web.BudgetLine {
	used, limits, reached := v.used(), v.k.Limits, v.k.ReachedAt(v.now)
	count := func(name approvals.Limit, used int, of *int) web.BudgetLine {
		line := web.BudgetLine{Limit: string(name), Used: web.Outside(web.Number(ctx, used)), Reached: reached == name}
		if of != nil {
			line.Of = web.Outside(web.Number(ctx, *of))
		}
		return line
	}
	elapsed := web.BudgetLine{Limit: string(approvals.LimitElapsed), Used: web.Outside(web.Span(ctx, time.Duration(used.Elapsed))), Reached: reached == approvals.LimitElapsed}
	if limits.Elapsed != nil {
		elapsed.Of = web.Outside(web.Span(ctx, *limits.Elapsed))
	}
	cost := web.BudgetLine{Limit: string(approvals.LimitCost), Used: costText(v.k.Spent.Cost, v.k.Unit), Reached: reached == approvals.LimitCost}
	if limits.Cost != nil {
		cost.Used, cost.Of = costText(v.k.Spent.Cost, ""), costText(*limits.Cost, v.k.Unit)
	}
	return []web.BudgetLine{count(approvals.LimitDecisions, used.Decisions, limits.Decisions), count(approvals.LimitReads, used.Reads, limits.Reads),
		count(approvals.LimitWrites, used.Writes, limits.Writes), elapsed, cost}
}

func costText(c approvals.Cost, unit string) web.Text {
	return web.Outside(strings.TrimSpace(strconv.FormatFloat(amountOf(c), 'f', -1, 64) + " " + unit))
}

// taskRecord tells what happened to a task, the latest last, but for the rounds.
func taskRecord(ctx context.Context, events []action.Event) ([]web.TaskTold, error) {
	var record []web.TaskTold
	_, err := approvals.FoldTaskEach(events, func(before, after approvals.Task, e action.Event) {
		told := web.TaskTold{At: e.At, By: web.Outside(e.By.Name)}
		switch {
		case e.Kind == approvals.TaskOpened:
			told.Kind = "opened"
		case e.From == approvals.TaskOpen && e.To == approvals.TaskPaused:
			told.Kind, told.Limit = "paused", string(after.Reached)
		case e.Kind == approvals.TaskExtended:
			told.Kind, told.Added, told.Why = "extended", addedTo(ctx, before, after), web.Outside(after.Said)
		case e.Kind == approvals.TaskEndedBy:
			told.Kind, told.Why = "ended", web.Outside(after.Note)
		default:
			return
		}
		record = append(record, told)
	})
	return record[max(0, len(record)-recordMax):], err
}

// addedTo is by how much limits were extended.
func addedTo(ctx context.Context, before, after approvals.Task) []web.BudgetLine {
	var added []web.BudgetLine
	add := func(name approvals.Limit, text string) {
		added = append(added, web.BudgetLine{Limit: string(name), Used: web.Outside(text)})
	}
	for _, l := range []struct {
		name    approvals.Limit
		was, is *int
	}{{approvals.LimitDecisions, before.Limits.Decisions, after.Limits.Decisions}, {approvals.LimitReads, before.Limits.Reads, after.Limits.Reads},
		{approvals.LimitWrites, before.Limits.Writes, after.Limits.Writes}} {
		if l.was != nil && *l.is != *l.was {
			add(l.name, web.Number(ctx, *l.is-*l.was))
		}
	}
	if was, is := before.Limits.Elapsed, after.Limits.Elapsed; was != nil && *is != *was {
		add(approvals.LimitElapsed, web.Span(ctx, *is-*was))
	}
	if was, is := before.Limits.Cost, after.Limits.Cost; was != nil && *is != *was {
		add(approvals.LimitCost, costText(*is-*was, after.Unit).Plain())
	}
	return added
}

// extendTask adds to limits.
func (s *server) extendTask(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.tendTask(w, r, c, "reason", web.DoneTaskExtended, func(cmd approvals.TaskCommand, id string, fields url.Values) error {
		more, err := extension(fields)
		if err == nil {
			_, err = s.Approvals.ExtendTask(r.Context(), cmd, id, more)
		}
		return err
	}, func(p *web.TaskPage, fields url.Values) {
		if p.Extend == nil {
			return
		}
		for name := range p.Extend.Values {
			p.Extend.Values[name] = own(fields, name)
		}
		p.Extend.Reason = own(fields, "reason")
	})
}

// endTask ends a task for good.
func (s *server) endTask(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.tendTask(w, r, c, "end_reason", web.DoneTaskEnded, func(cmd approvals.TaskCommand, id string, _ url.Values) error {
		_, err := s.Approvals.EndTask(r.Context(), cmd, id)
		return err
	}, func(p *web.TaskPage, fields url.Values) {
		for i, f := range p.Refused.Fields {
			if f.Name == "reason" {
				p.Refused.Fields[i].Name = "end_reason"
			}
		}
		if p.End != nil {
			p.End.Reason = own(fields, "end_reason")
		}
	})
}

// tendTask runs what a form asks of a task and goes back to its page, which says
// why when nothing was recorded, and keeps what was typed.
func (s *server) tendTask(w http.ResponseWriter, r *http.Request, c caller, reason string, done web.Done,
	do func(cmd approvals.TaskCommand, id string, fields url.Values) error, again func(*web.TaskPage, url.Values)) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id, person := parameter(r, "task"), c.session.Person
	k, now, err := s.Approvals.Task(r.Context(), id)
	if err != nil {
		return err
	}
	if _, err := s.lookAtTask(r.Context(), c, k, now); err != nil {
		return err
	}
	role := people.RoleSupport
	if !person.Has(role) {
		role = people.RoleOps
	}
	about := []string{string(done)}
	for _, name := range slices.Concat(web.Limits(), []string{reason}) {
		about = append(about, fields.Get(name))
	}
	cmd := approvals.TaskCommand{Op: commandOf(c, fields, about...).Op, PersonID: person.ID, By: c.session.By(role), Reason: strings.TrimSpace(clean(fields.Get(reason)))}
	if cmd.Op == "" {
		err = action.Refuse(action.InvalidArgument, "The form is incomplete. Open the page again.").Because("op")
	} else {
		err = do(cmd, id, fields)
	}
	if err == nil {
		return seeOther(w, r, sent("/tasks/"+id, done))
	}
	if !onForm(err) {
		return err
	}
	if k, now, err2 := s.Approvals.Task(r.Context(), id); err2 == nil {
		return s.renderTask(w, r, c, k, now, refusedStatus(w, r, err), func(p *web.TaskPage) {
			p.Refused = refusalOf(err)
			again(p, fields)
		})
	}
	return err
}

// extension reads by how much limits shall be extended.
func extension(fields url.Values) (approvals.Limits, error) {
	refusal := action.Refuse(action.InvalidArgument, "The budget was not extended. The errors say why.")
	count := func(name string) *int {
		text := strings.TrimSpace(fields.Get(name))
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			refusal.At("/"+name, "must be a whole number, or empty")
		}
		return &n
	}
	more := approvals.Limits{Decisions: count("decisions"), Reads: count("reads"), Writes: count("writes")}
	if minutes := count("elapsed"); minutes != nil {
		more.Elapsed = new(time.Duration(min(*minutes, 1<<20)) * time.Minute)
	}
	if text := strings.TrimSpace(fields.Get("cost")); text != "" {
		amount, err := strconv.ParseFloat(text, 64)
		if err != nil || !(amount > 0) {
			refusal.At("/cost", "must be an amount, or empty")
		}
		more.Cost = new(costOf(amount))
	}
	return more, orNil(refusal)
}

// partOfTask is the task that an action's page names, nil when it has none.
func (s *server) partOfTask(ctx context.Context, a action.Action) (*web.PartOfTask, error) {
	if a.TaskID == "" {
		return nil, nil
	}
	k, now, err := s.Approvals.Task(ctx, a.TaskID)
	if action.IsCode(err, action.NotFound) {
		return nil, nil
	}
	return &web.PartOfTask{ID: k.ID, Title: web.Outside(k.Title), Status: taskStatus(k, now)}, err
}
