package storybook

import (
	"fmt"
	"strings"

	"countersign/web"

	"github.com/a-h/templ"
)

const taskID = "tsk_01KB9Z3M7Q6W8R2TAV5NWZ8H1C"

func taskStories() []Story {
	return []Story{
		{"tasks", func(l web.Lang) templ.Component { return web.TasksView(frame(l, web.Tasks), tasks(3)) }},
		{"tasks-one", func(l web.Lang) templ.Component { return web.TasksView(frame(l, web.Tasks), tasks(1)) }},
		{"tasks-none", func(l web.Lang) templ.Component { return web.TasksView(frame(l, web.Tasks), tasks(0)) }},
		{"tasks-many", func(l web.Lang) templ.Component {
			p := tasks(60)
			p.NextURL = "/tasks?after=" + taskID
			return web.TasksView(frame(l, web.Tasks), p)
		}},
		{"task", func(l web.Lang) templ.Component { return web.TaskView(frame(l, web.Tasks), pausedTask(l)) }},
		{"task-open", func(l web.Lang) templ.Component {
			p := pausedTask(l)
			p.Status, p.Statement, p.Parts, p.Actions = web.TaskStatus{State: "open"}, nil, nil, 0
			p.Record = p.Record[:1]
			for i := range p.Budget {
				p.Budget[i].Reached = false
			}
			return web.TaskView(frame(l, web.Tasks), p)
		}},
		{"task-ended", func(l web.Lang) templ.Component {
			p := pausedTask(l)
			p.Status, p.Statement.Limit, p.Extend, p.End = web.TaskStatus{State: "ended", By: web.Outside("Tom Okafor")}, "ended", nil, nil
			p.Record = append(p.Record, web.TaskTold{At: at(14, 4, 0), Kind: "ended", By: web.Outside("Tom Okafor"), Why: web.Outside("The customer called it off.")})
			return web.TaskView(frame(l, web.Tasks), p)
		}},
		{"task-refused", func(l web.Lang) templ.Component {
			p := pausedTask(l)
			p.Extend.Values["writes"] = "many"
			p.Refused = web.NewRefusal("invalid-argument", "", "The budget was not extended. The errors say why.", nil).
				At("/writes", "must be a whole number, or empty").At("/reason", "say why, in at most 500 bytes")
			return web.TaskView(frame(l, web.Tasks), p)
		}},
		{"task-not-yours", func(l web.Lang) templ.Component {
			p := pausedTask(l)
			p.Extend, p.End, p.WhyNot = nil, nil, web.NewRefusal("forbidden", "own-task", "", nil)
			p.Actions, p.Title = 260, web.Outside("Answer chat 8841 \u202ewith a title "+strings.Repeat("that is long ", 12))
			return web.TaskView(frame(l, web.Tasks), p)
		}},
	}
}

func tasks(n int) web.TasksPage {
	var p web.TasksPage
	states := []web.TaskStatus{{State: "paused", Limit: "writes"}, {State: "open"}, {State: "ended", By: web.Outside("Tom Okafor")}}
	for i := range n {
		p.Tasks = append(p.Tasks, web.TaskRow{ID: taskID, Title: web.Outside(fmt.Sprintf("Answer chat %d", 8841-i)), Status: states[i%3],
			Client: web.Outside("shop-assistant"), Opened: at(14, 0, 0)})
	}
	return p
}

func pausedTask(l web.Lang) web.TaskPage {
	t := web.Outside
	effect := func(en, zh string) web.Effect { return web.Effect{Sentence: t(pick(l, en, zh))} }
	return web.TaskPage{ID: taskID, Title: t("Answer chat 8841"), Status: web.TaskStatus{State: "paused", Limit: "writes"}, Client: t("shop-assistant"),
		Opened: at(13, 58, 2), AsOf: Now(), Checks: 4, Actions: 3,
		Budget: []web.BudgetLine{{Limit: "decisions", Used: t("4"), Of: t("5")}, {Limit: "reads", Used: t("1"), Of: t("3")},
			{Limit: "writes", Used: t("2"), Of: t("2"), Reached: true}, {Limit: "elapsed", Used: t("4 min"), Of: t("30 min")}, {Limit: "cost", Used: t("0.42 EUR")}},
		Parts: map[web.TaskPart][]web.TaskAction{
			web.PartUnknown: {{ID: actionID, Effect: effect("Refund 12.50 EUR on order 10082", "订单 10082 退款 12.50 EUR"), Status: web.Status{State: web.Unknown}}},
			web.PartDone:    {{ID: actionID, Effect: effect("Read order 10082", "读取订单 10082"), Status: web.Status{State: web.Applied}}},
			web.PartUndone:  {{ID: actionID, Effect: effect("Refund 4.00 EUR on order 10083", "订单 10083 退款 4.00 EUR"), Status: web.Status{State: web.Confirmed}}},
		},
		Statement: &web.TaskStatement{Limit: "writes", Parts: map[web.TaskPart]int{web.PartUnknown: 1, web.PartDone: 1, web.PartUndone: 1}},
		Record: []web.TaskTold{{At: at(13, 58, 2), Kind: "opened", By: t("shop-assistant")}, {At: at(14, 1, 9), Kind: "paused", Limit: "writes"},
			{At: at(14, 2, 0), Kind: "extended", By: t("Ana Ruiz"), Added: []web.BudgetLine{{Limit: "writes", Used: t("1")}, {Limit: "elapsed", Used: t("20 min")}},
				Why: t("The second refund was agreed on the phone.")}, {At: at(14, 3, 0), Kind: "paused", Limit: "writes"}},
		Extend: &web.ExtendForm{Op: "op_1", Values: map[string]web.Own{"decisions": "", "reads": "", "writes": "", "elapsed": ""}},
		End:    &web.EndForm{Op: "op_2", Open: 1},
	}
}
