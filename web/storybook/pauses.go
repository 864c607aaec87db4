package storybook

import (
	"countersign/web"

	"github.com/a-h/templ"
)

func pauseStories() []Story {
	t := web.Outside
	return []Story{
		{"pauses", func(l web.Lang) templ.Component {
			p := web.PausesPage{Running: pauses(l), Ended: pauses(l)[:1], Manage: true}
			p.Ended[0].Ended = at(13, 58, 0)
			return web.PausesView(adminFrame(l, web.Pauses), p)
		}},
		{"pauses-none", func(l web.Lang) templ.Component { return web.PausesView(frame(l, web.Pauses), web.PausesPage{}) }},
		{"pause-new", func(l web.Lang) templ.Component {
			return web.PauseNewView(adminFrame(l, web.Pauses), web.PauseForm{Op: "pau_1", Kind: "tool", Value: "orders.refund", Tools: []string{"orders.refund", "catalog.set_price"}})
		}},
		{"pause-new-refused", func(l web.Lang) templ.Component {
			return web.PauseNewView(adminFrame(l, web.Pauses), web.PauseForm{Op: "pau_1", Kind: "tool", Value: "orders.refnud",
				Refused: web.NewRefusal("invalid-argument", "no-tool", "", nil).At("/value", "is no tool")})
		}},
		{"pause-end", func(l web.Lang) templ.Component { return web.PauseEndView(adminFrame(l, web.Pauses), pauses(l)[0]) }},
		{"cancel-open", func(l web.Lang) templ.Component {
			p := web.CancelOpenPage{Op: "op_1", ClientID: "cli_1", Client: t("Order assistant"), Open: web.Count{N: 117}}
			for range 5 {
				p.First = append(p.First, linkedAction(l, ""))
			}
			return web.CancelOpenView(adminFrame(l, web.Clients), p)
		}},
		{"cancel-open-none", func(l web.Lang) templ.Component {
			return web.CancelOpenView(adminFrame(l, web.Clients), web.CancelOpenPage{Op: "op_1", ClientID: "cli_1", Client: t("Order assistant")})
		}},
		{"callbacks", func(l web.Lang) templ.Component { return web.CallbacksView(opsFrame(l), callbacks(l)) }},
		{"callbacks-none", func(l web.Lang) templ.Component { return web.CallbacksView(opsFrame(l), web.CallbacksPage{}) }},
	}
}

func pauses(l web.Lang) []web.Pause {
	t := web.Outside
	return []web.Pause{
		{ID: "pau_1", Kind: "tool", Name: t("orders.refund"), By: t("Ines Vogel"), Since: at(13, 41, 0), Reason: t(pick(l, "PayHub pays twice since noon", "PayHub 中午起重复付款"))},
		{ID: "pau_2", Kind: "client", Name: t("Order \u202eassistant"), By: t("Ines Vogel"), Since: at(13, 50, 0), Reason: t(pick(l, "it loops", "陷入循环"))},
	}
}

func linkedAction(l web.Lang, how string) web.LinkedAction {
	return web.LinkedAction{ID: actionID, How: how, Effect: sentence(pick(l, "Cancel the refund on order 10086", "撤回订单 10086 的退款")), Status: web.Status{State: web.Proposed}}
}

func callbacks(l web.Lang) web.CallbacksPage {
	t := web.Outside
	known := linkedAction(l, "")
	return web.CallbacksPage{More: true, Callbacks: []web.Callback{
		{At: at(14, 2, 0), Tool: t("orders.refund"), ID: t("msg_2b7"), Key: t("exk_01KB7W2N8VQ4T6"), Says: web.FoundHappened, Until: at(14, 2, 0).AddDate(0, 0, 7), Waits: true, Action: &known},
		{At: at(3, 0, 0).AddDate(0, 0, -9), Tool: t("orders.refund"), ID: t("msg_1a0\u200b"), Key: t("exk_01KB00000000T6"), Says: web.FoundUnclear, Until: at(3, 0, 0).AddDate(0, 0, -2)},
	}}
}
