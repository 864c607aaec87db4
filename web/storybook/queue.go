package storybook

import (
	"fmt"

	"countersign/web"

	"github.com/a-h/templ"
)

func queueStories() []Story {
	page := func(q func(l web.Lang) web.Queue) func(l web.Lang) templ.Component {
		return func(l web.Lang) templ.Component { return web.ApprovalsPage(frame(l, web.Approvals), q(l)) }
	}
	return []Story{
		{"approvals", page(func(l web.Lang) web.Queue { return queue(rows(l)) })},
		{"approvals-one", page(func(l web.Lang) web.Queue { return queue(rows(l)[:1]) })},
		{"approvals-none", page(func(web.Lang) web.Queue { return queue(nil) })},
		{"approvals-others", page(func(l web.Lang) web.Queue {
			q := queue(others(l))
			q.Tab = web.TabOthers
			return q
		})},
		{"approvals-filtered", page(func(web.Lang) web.Queue {
			q := queue(nil)
			q.Filter.Tool, q.Filter.Target = "orders.refund", web.Outside("order 1\u202e0093")
			return q
		})},
		{"approvals-many", page(func(l web.Lang) web.Queue {
			var many []web.Row
			for i := range 50 {
				r := rows(l)[i%9]
				r.ID = fmt.Sprintf("act_%026d", i)
				many = append(many, r)
			}
			q := queue(many)
			q.NextURL = "/approvals?cursor=01KB9Z3M7Q"
			q.Counts[web.TabAll] = web.Count{N: 1000, More: true}
			return q
		})},
		{"approvals-first-run", page(func(l web.Lang) web.Queue {
			q := queue(nil)
			q.Setup = &web.Checklist{People: 2, Admin: true, Curl: web.Outside(curl)}
			return q
		})},
	}
}

const curl = "curl -X POST http://localhost:8080/v1/actions \\\n  -H \"Authorization: Bearer $KEY\" -H 'Idempotency-Key: first' \\\n  -d '{\"tool\":\"catalog.set_price\",\"actor\":{\"id\":\"u_17\"},\"payload\":{\"product_id\":\"SKU-4411\",\"new_price\":\"105.00\"}}'"

func queue(rs []web.Row) web.Queue {
	return web.Queue{
		Tab:    web.TabMine,
		Counts: map[web.Tab]web.Count{web.TabMine: {N: len(rs)}, web.TabOthers: {N: 4}, web.TabAll: {N: len(rs) + 4}},
		Filter: web.QueueFilter{Tools: []string{"catalog.set_price", "orders.refund", "transfer_funds"}},
		Rows:   rs, FirstPage: true, ReadAt: Now(), StreamURL: "/approvals/stream",
	}
}

func warn(k web.WarningKind) *web.WarningKind { return &k }

func part(name, value string) web.Part {
	return web.Part{Name: web.Outside(name), Value: web.OutsideName(value)}
}

func sentence(s string) web.Effect { return web.Effect{Sentence: web.Outside(s)} }

func rows(l web.Lang) []web.Row {
	t := web.Outside
	eur := func(s string) *web.Measure {
		return web.MeasureMoney(web.Money{Amount: s, Currency: "EUR", MinorUnits: 2})
	}
	return []web.Row{
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000001", ExpiresAt: in(1, 48), Effect: sentence(pick(l, "Refund 42.00 EUR on order 10093", "订单 10093 退款 42.00 EUR")), Measure: eur("42"), Actor: t("Marta Kowalska"), Client: t("Order assistant"), Target: web.NewTarget("order", "10093"), Needs: 1, Warning: warn(web.WarnRejectedBefore), PayloadHash: "sha256:0b52c1aa9d"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000002", ExpiresAt: in(3, 22), Effect: sentence(pick(l, "SKU-2087 to 89.00", "SKU-2087 改为 89.00")), Measure: web.MeasureOf(web.Computed{Value: -50.3, Unit: "%", Change: true}), Actor: t("Li Na"), Client: t("Shop chat"), Target: web.NewTarget("product", "SKU-2087"), Needs: 1, Paused: &web.Pause{Kind: "tool", By: t("Ada Kern"), Since: at(13, 40, 0)}, Looking: []web.Text{t("Tom")}, PayloadHash: "sha256:9c1de07b44"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000003", ExpiresAt: in(5, 10), Effect: web.Effect{Title: t("Cancel order"), Parts: []web.Part{part("order_id", "10061"), part("reason", "ordered by mistake"), part("refund_to", "gift_card_2210")}}, Actor: t("Deniz Aydın"), Client: t("Order assistant"), Target: web.NewTarget("order", "10061"), Needs: 1, PayloadHash: "sha256:44d0e6c28f"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000004", ExpiresAt: in(8, 37), Effect: sentence("Credit limit of Brandt GmbH to 25,000.00 EUR"), Measure: web.MeasureOf(web.Computed{Value: 25, Unit: "%", Change: true}), Actor: t("Tobias Brandt"), Client: t("Ledger bot"), Target: web.NewTarget("customer", "20418"), Needs: 1, Warning: warn(web.WarnChanged), PayloadHash: "sha256:e31a77c0d2"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000005", ExpiresAt: in(11, 42), Effect: sentence(pick(l, "SKU-4411 to 105.00", "SKU-4411 改为 105.00")), Measure: web.MeasureOf(web.Computed{Value: 5, Unit: "%", Change: true}), Actor: t("Li Na"), Client: t("Shop chat"), Target: web.NewTarget("product", "SKU-4411"), Needs: 1, Blocked: true, Looking: []web.Text{t("Mia")}, PayloadHash: "sha256:85c0cf3a6b"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000006", ExpiresAt: in(11, 58), Effect: web.Effect{Title: t("Transfer funds"), Parts: []web.Part{part("recipient", "раyroll-de"), part("amount", "4800"), part("date", "2026-12-01")}}, Measure: web.MeasureMoney(web.Money{Amount: "4800"}), Actor: t("Tobias Brandt"), Client: t("Inbox agent"), Target: web.NewTarget("account", "раyroll-de"), Needs: 1, Warning: warn(web.WarnHidden), PayloadHash: "sha256:5d0c1f4f2a"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000007", ExpiresAt: in(12, 31), Effect: web.Effect{Title: t("Book flight"), Parts: []web.Part{part("travel_from", "JFK"), part("travel_to", "PEK"), part("travel_date", "2026-12-15")}}, Actor: t("Michael Thompson"), Client: t("Travel agent"), Target: web.NewTarget("card", "card_8283"), Needs: 1, PayloadHash: "sha256:27ab90f1c6"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000008", ExpiresAt: in(13, 20), Effect: sentence("Send “公告” to conversation 8841"), Measure: web.MeasureOf(web.Computed{Value: 6, Name: "size", Unit: "bytes"}), Actor: t("王敏"), Client: t("Campus assistant"), Target: web.NewTarget("conversation", "8841"), Needs: 2, PayloadHash: "sha256:c8f2013d9e"},
		{ID: "act_01KB9Z3M7Q6W8R2TAV5N000009", ExpiresAt: in(74, 5), Effect: sentence("Voucher 15.00 EUR to customer 20977"), Measure: eur("15"), Actor: t("Jules Moreau"), Client: t("Order assistant"), Target: web.NewTarget("customer", "20977"), Needs: 1, PayloadHash: "sha256:1b7e1a7d0f"},
	}
}

func others(l web.Lang) []web.Row {
	rs := rows(l)[3:6]
	rs[0].Decided, rs[0].Warning = true, nil
	rs[1].Warning = warn(web.WarnNobody)
	long := ""
	for range 30 {
		long += "delete everything and then "
	}
	rs[2].Effect = sentence(long + "rm -rf /")
	return rs
}
