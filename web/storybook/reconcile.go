package storybook

import (
	"fmt"
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

func reconcileStories() []Story {
	runs := func(n int, starts bool) func(l web.Lang) templ.Component {
		return func(l web.Lang) templ.Component {
			p := web.ReconcilePage{}
			for i := range n {
				p.Runs = append(p.Runs, runRows(l)[i%5])
			}
			if starts {
				p.Start = &web.RunForm{Op: "op", Tools: []string{"catalog.set_price", "refunds.refund_order"}, From: "2026-11-29T15:05", To: "2026-11-30T15:06"}
			}
			if n > 10 {
				p.NextURL = "/reconciliation?after=rec_1"
			}
			return web.ReconcileView(reconcileFrame(l), p)
		}
	}
	run := func(change func(p *web.RunPage, l web.Lang)) func(l web.Lang) templ.Component {
		return func(l web.Lang) templ.Component {
			p := web.RunPage{Run: runRows(l)[0], Rows: differences(l), CSVURL: "/reconciliation/rec_1/differences.csv", Explains: true, Op: "op"}
			if change != nil {
				change(&p, l)
			}
			return web.RunView(reconcileFrame(l), p)
		}
	}
	return []Story{
		{"reconciliation", runs(5, true)}, {"reconciliation-one", runs(1, false)}, {"reconciliation-none", runs(0, true)}, {"reconciliation-many", runs(50, true)},
		{"reconciliation-no-tools", func(l web.Lang) templ.Component {
			return web.ReconcileView(reconcileFrame(l), web.ReconcilePage{Start: &web.RunForm{}})
		}},
		{"reconciliation-refused", func(l web.Lang) templ.Component {
			return web.ReconcileView(reconcileFrame(l), web.ReconcilePage{Start: &web.RunForm{Op: "op", Tools: []string{"refunds.refund_order"}, From: "2026-11-30T15:05", To: "2026-11-29T15:06",
				Refused: web.NewRefusal("invalid-argument", "period", "This window cannot be compared.", nil).At("/to", "must be after from")}})
		}},
		{"run", run(nil)},
		{"run-looking", run(func(p *web.RunPage, _ web.Lang) { p.Explains = false })},
		{"run-clean", run(func(p *web.RunPage, l web.Lang) { p.Run, p.Rows = runRows(l)[1], nil })},
		{"run-open", run(func(p *web.RunPage, l web.Lang) { p.Run, p.Rows = runRows(l)[2], nil })},
		{"run-given-up", run(func(p *web.RunPage, l web.Lang) { p.Run, p.Rows = runRows(l)[3], nil })},
		{"run-many", run(func(p *web.RunPage, l web.Lang) {
			for i := range 48 {
				d := differences(l)[3]
				d.Key = web.Outside(fmt.Sprintf("exk_%026d", i))
				p.Rows = append(p.Rows, d)
			}
			p.NextURL = "/reconciliation/rec_1?after=exk_1"
		})},
		{"run-refused", run(func(p *web.RunPage, _ web.Lang) {
			p.Refused = web.NewRefusal("already-decided", "explained", "Somebody has explained this already.", map[string]string{"by": "Mia \u202eChen"})
			p.Rows[3].Note = "The bank \u202e took it back"
		})},
	}
}

func reconcileFrame(l web.Lang) web.Frame {
	f := frame(l, web.Reconcile)
	f.Person.Roles = []string{"ops"}
	return f
}

func runRows(l web.Lang) []web.Run {
	t := web.Outside
	day := 24 * time.Hour
	title := t(pick(l, "Refund an order", "订单退款"))
	return []web.Run{
		{ID: "rec_1", Title: title, Tool: t("refunds.refund_order"), From: at(14, 3, 0).Add(-day), To: at(14, 3, 0), State: web.RunDone, AskedAt: at(14, 4, 0), By: t("Ana Ruiz"),
			EndedAt: at(14, 4, 9), Pages: 6, Listed: 1_204, Totals: web.RunTotals{Matched: 1_190, Awaiting: 3, Mismatch: 2, OursOnly: 1, TheirsOnly: 1, Others: 7,
				Forms: []web.FormCount{{Form: "zone", N: 12}, {Form: "decimals", N: 204}}}},
		{ID: "rec_2", Title: title, Tool: t("refunds.refund_order"), From: at(13, 0, 0).Add(-day), To: at(13, 0, 0), State: web.RunDone, AskedAt: at(13, 2, 0), EndedAt: at(13, 2, 4),
			Pages: 1, Listed: 88, Totals: web.RunTotals{Matched: 88}},
		{ID: "rec_3", Title: t("Change a product’s price"), Tool: t("catalog.set_price"), From: at(10, 0, 0), To: at(14, 0, 0), State: web.RunListing, AskedAt: at(14, 2, 0), Pages: 2, Listed: 400,
			Problem: t("the request timed out")},
		{ID: "rec_4", Title: t("Change a product’s price"), Tool: t("catalog.set_price"), From: at(9, 0, 0), To: at(10, 0, 0), State: web.RunGivenUp, AskedAt: at(10, 2, 0), EndedAt: at(10, 32, 0),
			Problem: t("No executor has taken it up.")},
		{ID: "rec_5", Title: t("Cancel \u202eredro"), Tool: t("orders.cancel_order"), From: at(8, 0, 0), To: at(9, 0, 0), State: web.RunWaiting, AskedAt: at(9, 2, 0)},
	}
}

func differences(l web.Lang) []web.Difference {
	t := web.Outside
	q := rows(l)
	amount := web.FieldPair{Label: t(pick(l, "Amount", "金额")), Ours: web.NumberValue("42"), Theirs: web.NumberValue("42.01")}
	order := web.FieldPair{Label: t(pick(l, "Order", "订单")), Ours: web.TextValue(t("10086")), Theirs: web.NumberValue("10086"), Same: true, Forms: []string{"decimals"}}
	return []web.Difference{
		{Key: t("exk_01M8PTRMBZ07JP7V3VNZJEWVH5"), Class: web.ClassMismatch, Why: "fields", ActionID: q[0].ID, Effect: q[0].Effect, Ours: web.Applied, Theirs: t("SUCCEEDED"), At: at(11, 2, 3),
			Fields: []web.FieldPair{amount, order, {Other: "currency", Ours: web.TextValue(t("EUR")), Theirs: web.TextValue(t("EUR")), Same: true}}, CaseID: "cas_1", CaseOpen: true},
		{Key: t("exk_01M8PTRMBZ07JP7V3VNZJEWVH6"), Class: web.ClassMismatch, Why: "outcome", ActionID: q[1].ID, Effect: q[1].Effect, Ours: web.Applied, Theirs: t("FAILED"), At: at(10, 0, 0), CaseID: "cas_2"},
		{Key: t("exk_01M8PTRMBZ07JP7V3VNZJEWVH7"), Class: web.ClassOursOnly, Why: "missing", ActionID: q[3].ID, Effect: q[3].Effect, Ours: web.Accepted, CaseID: "cas_3",
			Explained: &web.Explained{By: t("Ana Ruiz"), At: at(14, 1, 0), Note: t("Booked by hand under another key.\nSee ticket 8841.")}},
		{Key: t("exk_01M8PTRMBZ07JP7V3VNZJEWVH8-\u200bextra"), Class: web.ClassTheirsOnly, Why: "unknown", Theirs: t("SUCCEEDED"), At: at(9, 30, 0)},
	}
}
