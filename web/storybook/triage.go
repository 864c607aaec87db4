package storybook

import (
	"fmt"
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

func triageStories() []Story {
	page := func(p func(l web.Lang) web.TriagePage) func(l web.Lang) templ.Component {
		return func(l web.Lang) templ.Component { return web.TriageView(opsFrame(l), p(l)) }
	}
	tab := func(t web.TriageTab, groups func(l web.Lang) []web.CaseGroup) func(l web.Lang) templ.Component {
		return page(func(l web.Lang) web.TriagePage {
			p := triage(groups(l))
			p.Tab = t
			return p
		})
	}
	none := func(web.Lang) []web.CaseGroup { return nil }
	return []Story{
		{"unknown-results", page(func(l web.Lang) web.TriagePage { return triage(causes(l)) })},
		{"unknown-results-one", page(func(l web.Lang) web.TriagePage { return triage(causes(l)[:1]) })},
		{"unknown-results-none", page(func(web.Lang) web.TriagePage { return triage(nil) })},
		{"unknown-results-asking", tab(web.TriageAsking, asking)},
		{"unknown-results-asking-none", tab(web.TriageAsking, none)},
		{"unknown-results-second", tab(web.TriageSecond, waitingSecond)},
		{"unknown-results-second-none", tab(web.TriageSecond, none)},
		{"unknown-results-settled", tab(web.TriageSettled, settledRows)},
		{"unknown-results-settled-none", tab(web.TriageSettled, none)},
		{"unknown-results-filtered", page(func(web.Lang) web.TriagePage {
			p := triage(nil)
			p.Filter.Query = web.Outside("order 1\u202e0086")
			return p
		})},
		{"unknown-results-support", func(l web.Lang) templ.Component {
			p := triage(causes(l))
			p.Settles = false
			return web.TriageView(frame(l, web.Triage), p)
		}},
		{"unknown-results-many", page(func(l web.Lang) web.TriagePage {
			p := triage([]web.CaseGroup{outage(l, 40), causes(l)[2]})
			p.NextURL, p.Counts[web.TriagePerson] = "/triage?cursor=01KB9Z3M7Q", web.Count{N: 1000, More: true}
			return p
		})},
		{"bulk", func(l web.Lang) templ.Component { return web.BulkView(opsFrame(l), bulk(l, "ask")) }},
		{"bulk-take", func(l web.Lang) templ.Component { return web.BulkView(opsFrame(l), bulk(l, "take")) }},
		{"bulk-import", func(l web.Lang) templ.Component { return web.BulkView(opsFrame(l), bulk(l, "import")) }},
		{"bulk-none", func(l web.Lang) templ.Component { return web.BulkView(opsFrame(l), web.BulkPage{Do: "ask"}) }},
		{"import", func(l web.Lang) templ.Component { return web.ImportView(opsFrame(l), importing(l)) }},
		{"import-refused", func(l web.Lang) templ.Component {
			p := importing(l)
			p.Refused = web.NewRefusal("invalid-argument", "", "The file has no column named key.", nil).At("/file", "must have a column named key")
			return web.ImportView(opsFrame(l), p)
		}},
		{"import-preview", func(l web.Lang) templ.Component {
			p := importing(l)
			p.Preview = preview(l)
			return web.ImportView(opsFrame(l), p)
		}},
		{"import-preview-nothing", func(l web.Lang) templ.Component {
			p := importing(l)
			p.Preview = preview(l)
			p.Preview.Rows = p.Preview.Rows[2:]
			return web.ImportView(opsFrame(l), p)
		}},
	}
}

func opsFrame(l web.Lang) web.Frame {
	f := frame(l, web.Triage)
	f.Person = &web.Person{Name: web.Outside(pick(l, "Jonas Weber", "周宁")), Roles: []string{"ops"}}
	f.Waiting, f.Unknown = web.Count{}, web.Count{N: 9}
	return f
}

func triage(groups []web.CaseGroup) web.TriagePage {
	return web.TriagePage{
		Tab:    web.TriagePerson,
		Counts: map[web.TriageTab]web.Count{web.TriagePerson: {N: 9}, web.TriageAsking: {N: 5}, web.TriageSecond: {N: 1}},
		Filter: web.TriageFilter{Tools: []string{"catalog.set_price", "flights.book", "orders.refund"}},
		Groups: groups, FirstPage: true, ReadAt: Now(), Settles: true,
	}
}

const seenHash = "sha256:7be0a1f29c55d4e0b8c6a3d1f2e4958677a0c1b2d3e4f5061728394a5b6c7d8e"

func item(i int) web.CaseItem {
	return web.CaseItem{ID: fmt.Sprintf("cas_01KB7W2N8VQ4T6R8%010d", i), Version: 9, SnapshotHash: seenHash}
}

// refundCase is one refund whose outcome is not known.
func refundCase(l web.Lang, i int, order, amount, currency string) web.CaseRow {
	return web.CaseRow{Item: item(i), Why: "unknown-receipt", Needs: true,
		Effect:  sentence(pick(l, fmt.Sprintf("Refund %s %s on order %s", amount, currency, order), fmt.Sprintf("订单 %s 退款 %s %s", order, amount, currency))),
		Measure: web.MeasureMoney(web.Money{Amount: amount, Currency: currency, MinorUnits: 2}),
		Key:     web.KeyLife{Key: "exk_01KB7W2N8VQ4T6", Until: Now().Add(20*time.Hour + time.Duration(57+2*i)*time.Minute), System: web.Outside("PayHub")},
		Asked:   web.Asked{Possible: true, Times: 3, Round: 3, Budget: 8, Last: at(2, 58, 3), Found: web.FoundNotFound}}
}

func outage(l web.Lang, n int) web.CaseGroup {
	orders := []struct{ order, amount, currency string }{{"10071", "128.90", "EUR"}, {"10074", "860.00", "CNY"}, {"10079", "1000.00", "CNY"}, {"10086", "42.00", "EUR"}, {"10088", "95.00", "USD"}, {"10090", "141.50", "EUR"}}
	g := web.CaseGroup{System: web.Outside("PayHub"), Title: web.Outside(pick(l, "Refund an order", "订单退款")), Why: "unknown-receipt", From: at(0, 5, 0), To: at(0, 20, 0), Op: "op_bulk_1",
		Money: []web.Money{{Amount: "312.40", Currency: "EUR", MinorUnits: 2}, {Amount: "1860", Currency: "CNY", MinorUnits: 2}, {Amount: "95", Currency: "USD", MinorUnits: 2}}}
	for i := range n {
		o := orders[i%len(orders)]
		g.Rows = append(g.Rows, refundCase(l, i, o.order, o.amount, o.currency))
	}
	g.Rows[2].Asked.Found, g.Rows[2].Holder = web.FoundNoAnswer, web.Outside("Mia")
	g.Rows[3].Holder, g.Rows[3].Mine = web.Outside("Jonas Weber"), true
	return g
}

func causes(l web.Lang) []web.CaseGroup {
	flight := web.CaseRow{Item: item(100), Why: "lease-lapsed", Needs: true, Measure: web.MeasureMoney(web.Money{Amount: "290"}),
		Effect: web.Effect{Title: web.Outside("Book flight"), Parts: []web.Part{part("flight_number", "HAT069"), part("passenger", "Aarav Ahmed")}},
		Key:    web.KeyLife{Key: "exk_01KB7W2N8V0000", Until: at(13, 0, 0)}}
	price := web.CaseRow{Item: item(101), Why: "mismatch", Needs: true, Measure: web.MeasureOf(web.Computed{Value: -50.3, Unit: "%", Change: true}), Effect: sentence(pick(l, "SKU-2087 to 89.00", "SKU-2087 改为 89.00")),
		Key: web.KeyLife{Until: Now().Add(22*time.Hour + 31*time.Minute)}, Asked: web.Asked{Possible: true, Times: 6, Round: 6, Budget: 6, Last: at(3, 1, 0), Found: web.FoundHappened}}
	note := web.CaseRow{Item: item(102), Why: "deadline", Needs: true, Effect: sentence(pick(l, "Send “公告” to conversation 8841", "向会话 8841 发送“公告”")), Measure: web.MeasureOf(web.Computed{Value: 6, Name: "size", Unit: "bytes"}),
		Asked: web.Asked{Possible: true, Times: 6, Round: 6, Budget: 6, Last: at(2, 44, 0), Found: web.FoundUnclear}, Holder: web.Outside("Tom")}
	one := func(r web.CaseRow) web.CaseGroup {
		return web.CaseGroup{Why: r.Why, Rows: []web.CaseRow{r}, Op: "op_one"}
	}
	return []web.CaseGroup{one(flight), outage(l, 6), one(price), one(note)}
}

func asking(l web.Lang) []web.CaseGroup {
	g := outage(l, 5)
	for i := range g.Rows {
		g.Rows[i].Needs, g.Rows[i].Asked.Next = false, in(7+i, 0)
	}
	g.Rows[4].Asked = web.Asked{Possible: true, Budget: 8, Next: in(0, 30)}
	return []web.CaseGroup{g}
}

func waitingSecond(l web.Lang) []web.CaseGroup {
	r := refundCase(l, 7, "10061", "2400.00", "EUR")
	r.Second, r.Verdict = web.Outside("Mia Chen"), "happened"
	return []web.CaseGroup{{Rows: []web.CaseRow{r}}}
}

func settledRows(l web.Lang) []web.CaseGroup {
	a, b, c := refundCase(l, 8, "10060", "20.00", "EUR"), refundCase(l, 9, "10059", "30.00", "EUR"), refundCase(l, 10, "10058", "40.00", "CNY")
	a.At, a.By, a.Status = at(13, 58, 0), web.Outside("Mia Chen"), web.Status{State: web.Failed, How: web.HowSettled, Person: web.Outside("Mia Chen")}
	b.At, b.Status = at(12, 30, 0), web.Status{State: web.Applied, How: web.HowReadBack, At: at(12, 30, 0)}
	c.At, c.By, c.Status = at(9, 1, 0), web.Outside("Jonas Weber"), web.Status{State: web.Applied, How: web.HowSettled, Person: web.Outside("Jonas Weber")}
	return []web.CaseGroup{{Rows: []web.CaseRow{a}}, {Rows: []web.CaseRow{b}}, {Rows: []web.CaseRow{c}}}
}

func bulk(l web.Lang, do string) web.BulkPage {
	p := web.BulkPage{Do: do, Back: "/triage"}
	for i, r := range outage(l, 6).Rows {
		result := web.BulkResult{CaseID: r.Item.ID, Effect: r.Effect}
		switch i {
		case 2:
			result.Refused = web.NewRefusal("already-claimed", "case-held", "Mia has taken this case.", map[string]string{"by": "Mia", "until": "14:20 UTC"})
		case 4:
			result.Refused = web.NewRefusal("stale-revision", "case", "Something new is known.", nil)
		case 5:
			result.Second = do == "import"
		}
		p.Results = append(p.Results, result)
	}
	return p
}

func importing(l web.Lang) web.ImportPage {
	p := web.ImportPage{Op: "op_import_1", Back: "/triage", Max: 256 << 10}
	for _, r := range outage(l, 6).Rows {
		p.Items = append(p.Items, r.Item)
	}
	return p
}

func preview(l web.Lang) *web.ImportPreview {
	t := web.Outside
	v := &web.ImportPreview{FileName: t("payhub-2026-11-30.csv"), FileHash: "sha256:0f3a5be1c2d4968877a0c1b2d3e4f5061728394a5b6c7d8e7be0a1f29c55d4e0", Content: "a2V5LHN0YXR1cwo="}
	says := []web.ImportRow{
		{Lines: []web.ImportLine{{Number: 2, Says: t("SUCCEEDED"), Ref: t("ph_77120")}}, Match: web.MatchHappened},
		{Lines: []web.ImportLine{{Number: 3, Says: t("REFUSED"), Ref: t("ph_77124")}}, Match: web.MatchDidNotHappen},
		{Lines: []web.ImportLine{{Number: 4, Says: t("PENDING_REVIEW")}}, Match: web.MatchUnclear},
		{Lines: []web.ImportLine{{Number: 5, Says: t("SUCCEEDED")}}, Match: web.MatchDiffers},
		{Match: web.MatchAbsent},
		{Lines: []web.ImportLine{{Number: 6, Says: t("SUCCEEDED")}}, Match: web.MatchStale},
	}
	for i, r := range outage(l, 6).Rows {
		row := says[i]
		row.CaseID, row.Effect, row.Key = r.Item.ID, r.Effect, t(fmt.Sprintf("exk_01KB7W2N8VQ4T6%02d", i))
		if len(row.Lines) > 0 {
			row.Measure = r.Measure
		}
		v.Rows = append(v.Rows, row)
	}
	refused := web.NewRefusal("wrong-state", "evidence-happened", "The business system has proven that it happened.", nil)
	return &web.ImportPreview{FileName: v.FileName, FileHash: v.FileHash, Content: v.Content, Rows: append(v.Rows,
		web.ImportRow{CaseID: item(50).ID, Effect: sentence(pick(l, "Refund 12.00 EUR on order 10099", "订单 10099 退款 12.00 EUR")), Key: t("exk_01KB7W2N8VQ4T650"), Lines: []web.ImportLine{{Number: 7, Says: t("REFUSED")}}, Match: web.MatchImpossible, Refused: refused},
		web.ImportRow{CaseID: item(52).ID, Effect: sentence(pick(l, "SKU-4411 to 105.00, announced", "SKU-4411 改为 105.00 并通知")), Key: t("exk_01KB7W2N8VQ4T652"), Match: web.MatchPartly,
			Lines: []web.ImportLine{{Number: 10, Step: t("price"), Says: t("SUCCEEDED"), Ref: t("op_4411")}, {Number: 11, Step: t("notify"), Says: t("REFUSED")}}},
		web.ImportRow{CaseID: item(53).ID, Effect: sentence(pick(l, "SKU-4412 to 99.00, announced", "SKU-4412 改为 99.00 并通知")), Key: t("exk_01KB7W2N8VQ4T653"), Match: web.MatchIncomplete,
			Lines: []web.ImportLine{{Number: 12, Step: t("price"), Says: t("SUCCEEDED")}}},
		web.ImportRow{Key: t("exk_SOMEBODY_ELSE\u202e"), Lines: []web.ImportLine{{Number: 8, Says: t("SUCCEEDED")}}, Match: web.MatchStranger},
		web.ImportRow{CaseID: item(51).ID, Effect: sentence(pick(l, "Refund 13.00 EUR on order 10100", "订单 10100 退款 13.00 EUR")), Key: t("exk_01KB7W2N8VQ4T651"), Lines: []web.ImportLine{{Number: 9, Says: t("SUCCEEDED")}}, Match: web.MatchTwice})}
}
