package storybook

import (
	"encoding/json"
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

func caseStories() []Story {
	page := func(change func(p *web.CasePage, l web.Lang)) func(l web.Lang) templ.Component {
		return func(l web.Lang) templ.Component {
			p := refundUnknown(l)
			change(&p, l)
			return web.CaseView(opsFrame(l), p)
		}
	}
	return []Story{
		{"case", page(func(*web.CasePage, web.Lang) {})},
		{"case-untaken", page(untaken)},
		{"case-held", page(heldByAnother)},
		{"case-sends-again", page(func(p *web.CasePage, _ web.Lang) {
			p.Asked.Found, p.Steps.Again = web.FoundNotExecuted, &web.Step{WhyNot: "soon"}
		})},
		{"case-sends-again-wanted", page(func(p *web.CasePage, _ web.Lang) {
			p.Steps.Again = &web.Step{WhyNot: "wanted"}
			p.LateUntil = at(13, 0, 0)
			p.Story = append(p.Story, web.Told{At: at(14, 3, 0), Kind: "send_again", By: web.Outside("Jonas Weber")})
		})},
		{"case-can-send-again", page(func(p *web.CasePage, _ web.Lang) {
			p.Steps.Again, p.LateUntil = &web.Step{Op: "op_again"}, at(13, 0, 0)
		})},
		{"case-support", func(l web.Lang) templ.Component {
			p := refundUnknown(l)
			heldByAnother(&p, l)
			p.Steps = web.Steps{Ask: &web.Step{WhyNot: "role"}, Again: &web.Step{WhyNot: "role"}, WhyNot: "role"}
			return web.CaseView(frame(l, web.Triage), p)
		}},
		{"case-stale", page(staleCase)},
		{"case-refused", page(func(p *web.CasePage, _ web.Lang) {
			p.Refused = web.NewRefusal("invalid-argument", "", "Say what became of it, and how you know.", nil).
				At("/evidence_kind", "must be provider_reference, snapshot, statement or file").At("/verdict", "must be happened, did_not_happen or partly")
			p.Steps.Settle.Note = "asked PayHub's desk <b>twice</b>"
		})},
		{"case-proven", page(func(p *web.CasePage, _ web.Lang) {
			p.Asked.Found = web.FoundHappened
			p.Key.Used = true
			p.Steps.Again.WhyNot, p.Steps.Again.Op = "known", ""
			p.Steps.Settle.Outcomes[1].Refused = web.NewRefusal("wrong-state", "evidence-happened", "The business system has proven that it happened.", nil)
		})},
		{"case-in-part", page(func(p *web.CasePage, _ web.Lang) {
			p.Status, p.Why, p.RunSteps = web.Status{State: web.Unknown, How: web.HowInPart}, "step-failed", inPart()
			p.Statement = &web.Statement{Level: "partial", AsOf: Now()}
			p.Steps.Again = &web.Step{WhyNot: "next"}
			p.Steps.Resume = &web.Reversal{Curl: web.Outside(reversalCurl)}
		})},
		{"case-second", page(func(p *web.CasePage, l web.Lang) {
			p.Second = second(l, *p)
			p.Steps.Settle.TwoPeople = true
		})},
		{"case-second-mine", page(func(p *web.CasePage, l web.Lang) {
			p.Second = second(l, *p)
			p.Second.May, p.Second.Mine, p.Second.Can = false, true, []web.Text{web.Outside("Mia Chen"), web.Outside("Tom Okafor")}
			p.Steps.Settle.TwoPeople = true
		})},
		{"case-contradiction", page(contradicted)},
		{"case-settled", page(settled)},
		{"case-found-out", page(func(p *web.CasePage, l web.Lang) {
			settled(p, l)
			p.Status = web.Status{State: web.Applied, How: web.HowReported, System: web.Outside("PayHub")}
			p.Settled = &web.Settlement{At: at(4, 20, 0), Found: web.FoundLinked, Linked: &web.LinkedAction{ID: actionID, How: "replaces_by", Effect: rows(l)[0].Effect}}
		})},
		{"case-bare", page(bareCase)},
	}
}

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return z
}

func refundUnknown(l web.Lang) web.CasePage {
	t := web.Outside
	key := web.KeyLife{Key: "exk_01KB7W2N8VQ4T6", Until: Now().Add(21*time.Hour + 4*time.Minute), System: t("PayHub")}
	target := web.NewTarget("order", "10086")
	r := refundCase(l, 3, "10086", "42.00", "EUR")
	paid := web.TextValue(t("paid"))
	p := web.CasePage{ID: r.Item.ID, ActionID: "act_01KB7W2N8VQ4T6R8P3M5K7H9F1", Status: web.Status{State: web.Unknown}, Why: "unknown-receipt", OpenedAt: at(0, 14, 17),
		Effect: r.Effect, Measure: r.Measure, For: t("Marta Kowalska"), Title: t(pick(l, "Refund an order", "订单退款")), Tool: t("orders.refund"), ToolVersion: 5, Target: target, System: t("PayHub"),
		Holder:  &web.Holder{Name: t("Jonas Weber"), Mine: true, Since: at(14, 2, 30), Until: at(14, 17, 30)},
		Sent:    []web.Sending{{Number: 1, At: at(0, 14, 7), By: t("pay-2")}},
		Answers: []web.Answer{{At: at(0, 14, 17), Outcome: "UNKNOWN", Waited: 10 * time.Second}},
		Asked:   r.Asked, LateUntil: at(14, 14, 0),
		Object: &web.Comparison{Source: t("Shop orders"), At: at(13, 58, 4), Version: t("32"), Compared: 6, Differ: []web.Mismatch{
			{Label: t(pick(l, "Refunded total", "已退金额")), Expected: web.MoneyValue(web.Money{Amount: "42.00", Currency: "EUR", MinorUnits: 2}), Observed: web.MoneyValue(web.Money{Amount: "0", Currency: "EUR", MinorUnits: 2})},
			{Label: t("Status"), Expected: web.TextValue(t("refunded")), Observed: web.TextValue(t("refund_pending")), Before: &paid},
		}, Same: []web.Normalised{{Label: t("Paid at"), Forms: []string{"zone"}}, {Label: t("Total"), Forms: []string{"decimals", "exponent"}}}},
		Block:     &web.TargetBlock{Scope: "target"},
		Statement: &web.Statement{Level: "unknown", AsOf: Now()}, Key: key,
		Support: &web.SupportBlock{Key: key.Key, Target: target, Measure: r.Measure, From: at(0, 14, 7), To: at(0, 14, 17), Zone: zone("Asia/Shanghai")},
		Steps: web.Steps{HandOver: &web.HandOver{Op: "op_over", People: []web.Option{{Value: "per_1", Label: t("Mia Chen")}, {Value: "per_2", Label: t("Tom Okafor")}}},
			Ask: &web.Step{Op: "op_ask"}, Again: &web.Step{WhyNot: "fence"}, Reverse: &web.Reversal{Curl: t(reversalCurl)},
			Settle: &web.SettleForm{Op: "op_settle", Outcomes: outcomes(l)}},
		Record: web.CaseRecord{SnapshotHash: seenHash, Version: 9, ExecutionKey: key.Key, PayloadHash: "sha256:85c0cf3a9968877a0c1b2d3e4f5061728394a5b6c7d8e7be0a1f29c55d4e00f3"},
	}
	p.Snapshots, p.Story = readings(l), refundStory()
	return p
}

const reversalCurl = "curl -X POST http://localhost:8080/v1/actions \\\n  -H \"Authorization: Bearer $KEY\" -H 'Idempotency-Key: reversal-1' \\\n  -d '{\"tool\":\"orders.cancel_refund\",\"compensates\":\"act_01KB7W2N8VQ4T6R8P3M5K7H9F1\",\"payload\":{\"order_id\":\"10086\"}}'"

func outcomes(l web.Lang) []web.VerdictOutcome {
	me := web.Outside(pick(l, "Jonas Weber", "周宁"))
	return []web.VerdictOutcome{
		{Verdict: "happened", Status: web.Status{State: web.Applied, How: web.HowSettled, Person: me}, Statement: web.Statement{Level: "completed"}, Block: "lifted"},
		{Verdict: "did_not_happen", Status: web.Status{State: web.Failed, How: web.HowSettled, Person: me}, Statement: web.Statement{Level: "failed"}, Block: "until", Until: at(14, 14, 0)},
		{Verdict: "partly", Status: web.Status{State: web.Unknown}, Statement: web.Statement{Level: "partial"}, Block: "linked"},
	}
}

func readings(l web.Lang) []web.Snapshot {
	t := web.Outside
	read := func(at time.Time, version, body string) web.Reading {
		return web.Reading{At: at, Source: t("Shop orders"), Tool: "orders.get", Version: t(version), Body: json.RawMessage(body), Hash: "sha256:c0ffee" + version + "9968877a0c1b2d3e4f5061728394a5b6c7d8e7be0a1f29c55d4e00f3"}
	}
	return web.NewSnapshots([]web.Reading{
		read(at(0, 13, 58), "31", `{"id":"10086","status":"paid","total":"42.00","refunded_total":"0.00","customer":{"name":"Marta Kowalska","phone":"+48 170 0000000"},"version":31}`),
		read(at(0, 14, 41), "31", `{"id":"10086","status":"paid","total":"42.00","refunded_total":"0.00","customer":{"name":"Marta Kowalska","phone":"+48 170 0000000"},"version":31}`),
		{At: at(1, 0, 0), Source: t("Shop orders"), Tool: "orders.get", Failed: t("connection refused")},
		read(at(13, 58, 4), "32", `{"id":"10086","status":"refund_pending","total":"42.00","refunded_total":"0.00","customer":{"name":"Marta Kowalska","phone":"+48 170 0000000"},"version":32,"refund_requested_at":"2026-11-30T00:14:08Z"}`),
	}, web.FieldSource{Mask: []string{"/customer/phone"}, Label: map[string]web.Text{"/refunded_total": t(pick(l, "Refunded total", "已退金额"))}})
}

func refundStory() []web.Told {
	t := web.Outside
	return []web.Told{
		{At: at(0, 12, 40), Kind: "proposed", To: web.Proposed, By: t("Order assistant"), For: t("Marta Kowalska"), Revision: 1},
		{At: at(0, 13, 52), Kind: "decided", To: web.Confirmed, By: t("Mia Chen"), Approve: true, Revision: 1, Role: "support", Method: "password"},
		{At: at(0, 13, 58), Kind: "claimed", To: web.Executing, By: t("pay-2")},
		{At: at(0, 14, 7), Kind: "attempted", By: t("pay-2"), Number: 1, Key: "exk_01KB7W2N8VQ4T6"},
		{At: at(0, 14, 17), Kind: "receipt", To: web.Unknown, By: t("pay-2"), Outcome: "UNKNOWN", Why: "unknown-receipt"},
		{At: at(2, 58, 3), Kind: "evidence", By: t("pay-2"), Outcome: "UNKNOWN"},
		{At: at(14, 2, 30), Kind: "taken", By: t("Jonas Weber")},
	}
}

func untaken(p *web.CasePage, _ web.Lang) {
	p.Holder, p.Steps.HandOver, p.Steps.Take = nil, nil, &web.Step{Op: "op_take"}
}

func heldByAnother(p *web.CasePage, _ web.Lang) {
	p.Holder = &web.Holder{Name: web.Outside("Mia Chen"), Since: at(14, 0, 0), Until: at(14, 15, 0)}
	p.Steps.HandOver, p.Steps.Settle, p.Steps.WhyNot = nil, nil, "held"
}

func staleCase(p *web.CasePage, _ web.Lang) {
	p.Refused = web.NewRefusal("stale-revision", "case", "Something new is known.", nil)
	p.News = []web.Told{{At: at(14, 5, 2), Kind: "evidence", By: web.Outside("pay-2"), Outcome: "SUCCESS", Ref: web.Outside("ph_77120")}}
	p.Steps.Settle.Verdict, p.Steps.Settle.Kind, p.Steps.Settle.Ref, p.Steps.Settle.Note = "did_not_happen", "provider_reference", "TICKET-4471", "Their desk said so."
}

func second(l web.Lang, p web.CasePage) *web.SecondPerson {
	return &web.SecondPerson{First: web.Settlement{Verdict: "did_not_happen", By: web.Outside("Mia Chen"), Role: "ops", At: at(13, 50, 0), Kind: "provider_reference", Ref: web.Outside("TICKET-4471"), Note: web.Outside("Their desk found nothing under the key.")},
		Outcome: outcomes(l)[1], May: true, Op: "op_second"}
}

func contradicted(p *web.CasePage, l web.Lang) {
	undone := linkedAction(l, "compensates_by")
	p.Links, p.Paused = []web.LinkedAction{undone}, pauses(l)[:1]
	t := web.Outside
	p.Why = "contradiction"
	p.Contradiction = &web.Contradiction{
		Recorded: web.Side{Status: web.Status{State: web.Failed, How: web.HowSettled, Person: t("Mia Chen")}, Source: t("Mia Chen, ops"), At: at(4, 20, 0), Ref: t("TICKET-4471"), Note: t("Their desk found nothing under the key.")},
		Later:    web.Side{Outcome: "SUCCESS", Source: t(pick(l, "PayHub, signed callback", "PayHub，签名回调")), At: at(13, 40, 0), Ref: t("ph_77120"), Proves: "completed"}, Undone: &undone}
	p.Earlier = []web.Settlement{
		{Verdict: "did_not_happen", By: t("Mia Chen"), Role: "ops", At: at(4, 20, 0), Kind: "provider_reference", Ref: t("TICKET-4471"), Note: t("Their desk found nothing under the key.")},
		{Verdict: "happened", By: t("Tom Okafor"), Role: "ops", At: at(3, 0, 0), Kind: "statement", Ref: t("the courier"), Second: web.Seconder{By: t("Mia Chen"), Role: "ops", At: at(3, 2, 0), Note: t("The courier speaks of another order."), Refused: true}},
	}
	p.Answers = append(p.Answers, web.Answer{At: at(13, 40, 0), Outcome: "SUCCESS", Claimed: "FAILURE", HTTPStatus: 200, Ref: t("ph_77120")})
	p.LateUntil = at(4, 14, 0)
	p.Key.Until = at(13, 0, 0)
	p.Steps.Again = &web.Step{WhyNot: "key-gone"}
	p.Steps.Reverse.Linked = []web.LinkedAction{{ID: "act_01KB7W2N8VQ4T6R8P3M5K7H9F2", Effect: sentence(pick(l, "Cancel the refund on order 10086", "撤回订单 10086 的退款")), Status: web.Status{State: web.Proposed}}}
	p.Support.Ref = t("ph_77120")
}

func settled(p *web.CasePage, _ web.Lang) {
	t := web.Outside
	p.Status = web.Status{State: web.Failed, How: web.HowSettled, Person: t("Jonas Weber"), Second: t("Mia Chen")}
	p.Statement = &web.Statement{Level: "failed", AsOf: Now()}
	p.Settled = &web.Settlement{Verdict: "did_not_happen", By: t("Jonas Weber"), Role: "ops", At: at(14, 4, 0), Kind: "file", Ref: t("sha256:0f3a5be1c2d4968877a0c1b2d3e4f5061728394a5b6c7d8e7be0a1f29c55d4e0"), Note: t("Daily file of PayHub, no line for the key; their desk confirmed."), Second: web.Seconder{By: t("Mia Chen"), Role: "ops", At: at(14, 6, 0)}}
	p.LateUntil = at(14, 3, 0)
	p.Block, p.Holder, p.Steps, p.Object = nil, nil, web.Steps{}, nil
	p.Story = append(p.Story, web.Told{At: at(14, 4, 0), Kind: "verdict", To: web.Failed, By: t("Jonas Weber"), Verdict: "did_not_happen"})
}

// bareCase is one of a contract that states next to nothing.
func bareCase(p *web.CasePage, l web.Lang) {
	r := causes(l)[0].Rows[0]
	p.Effect, p.Measure, p.Key, p.Asked, p.Why = r.Effect, r.Measure, web.KeyLife{Key: "exk_01KB7W2N8V0000"}, web.Asked{}, "lease-lapsed"
	p.Title, p.Tool, p.ToolVersion, p.Target, p.System, p.For = web.Outside("Book flight"), web.Outside("book_flight"), 1, nil, web.Text{}, web.Text{}
	p.Object, p.Snapshots, p.Answers = nil, nil, nil
	p.Sent = append(p.Sent, web.Sending{Number: 2, At: at(0, 20, 0), By: web.Outside("agent-1")})
	p.Support.Target, p.Support.Measure, p.Support.Zone, p.LateUntil = nil, r.Measure, nil, time.Time{}
	p.Steps.Ask, p.Steps.Again, p.Steps.Reverse = &web.Step{WhyNot: "no-query"}, &web.Step{WhyNot: "key-unknown"}, &web.Reversal{WhyNot: "no-tool"}
	untaken(p, l)
}
