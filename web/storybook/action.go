package storybook

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

const (
	proposalHash = "sha256:85c0cf3a6b7ba065d9225cb3657c21abbcc5985202b56facc80717576ff280fc"
	payloadHash  = "sha256:44b9276adaab07cfc465acfa65e974597f2f5d6f92d11e92d5cc590a20287674"
	actionID     = "act_01KB9Z3M7Q6W8R2TAV5NWZ8H1C"
)

const pricePayload = `{"keep_promotions":true,"new_price":"105.00","old_price":"100.00","price_list":"EU retail","product_id":"SKU-4411","valid_from":"2026-12-01"}`

func actionStories() []Story {
	page := func(change func(p *web.ActionPage, f *web.Frame, l web.Lang)) func(l web.Lang) templ.Component {
		return func(l web.Lang) templ.Component {
			p, f := price(l), frame(l, web.Approvals)
			change(&p, &f, l)
			return web.ActionView(f, p)
		}
	}
	return []Story{
		{"decide", page(func(*web.ActionPage, *web.Frame, web.Lang) {})},
		{"decide-next", page(func(p *web.ActionPage, f *web.Frame, l web.Lang) {
			f.Flash = web.FlashDecided("act_01KB9Z3M7Q6W8R2TAV5N000001", rows(l)[0].Effect, true, 0, web.Status{State: web.Applied, How: web.HowReadBack, At: at(14, 4, 50)})
			p.Bar.Form.Shown = at(14, 2, 20)
		})},
		{"decide-refused", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			p.Refused = web.NewRefusal("invalid-argument", "reason-code", "Choose a reason.", nil).At("/reason_code", "is required to reject")
			p.Bar.Form.Note = "Not this price."
		})},
		{"decide-lost", page(func(p *web.ActionPage, _ *web.Frame, l web.Lang) {
			p.Status = web.Status{State: web.Rejected}
			p.ExpiresAt, p.At = time.Time{}, at(14, 4, 50)
			p.Bar = web.Bar{}
			p.Refused = web.NewRefusal("already-decided", "rejected", "", map[string]string{"by": "Mia Chen"})
			p.Who.Decisions = []web.Decision{{By: web.Outside("Mia Chen"), Role: "support", Method: "password", ReasonCode: "wrong_amount", Note: web.Outside("The list says 104."), At: at(14, 4, 50)}}
			p.Statement = &web.Statement{Level: "not_submitted", AsOf: Now()}
			p.Story = append(p.Story, web.Told{At: at(14, 4, 50), Kind: "decided", To: web.Rejected, By: web.Outside("Mia Chen"), Revision: 1, Role: "support", Method: "password", ReasonCode: "wrong_amount", Note: web.Outside("The list says 104.")})
		})},
		{"decide-hostile", func(l web.Lang) templ.Component { return web.ActionView(frame(l, web.Approvals), hostile()) }},
		{"decide-bare", func(l web.Lang) templ.Component { return web.ActionView(frame(l, web.Approvals), bare()) }},
		{"decide-long", func(l web.Lang) templ.Component { return web.ActionView(frame(l, web.Approvals), long(l)) }},
		{"decide-two", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			p.Why = web.Why{Rules: []web.Rule{{Role: "support", Count: 2, StepUp: true, When: web.Outside("payload.new_price > before.price * 1.5")}, {Role: "finance", Count: 1}}, Required: 3, Given: 1, You: web.StandApproved, Roles: []string{"support"}, Can: []web.Text{web.Outside("Mia Chen"), web.Outside("Tom Okafor")}}
			p.Who.Decisions = []web.Decision{{By: web.Outside("Jo Reyes"), Approve: true, Role: "support", Method: "link", At: at(14, 2, 40), Lost: true},
				{By: web.Outside("Ana Ruiz"), Approve: true, Role: "support", Method: "password", Note: web.Outside("Checked."), At: at(14, 3, 2)}}
			p.Bar = web.Bar{Kind: web.BarApproved, At: at(14, 3, 2)}
		})},
		{"decide-not-there", page(func(p *web.ActionPage, _ *web.Frame, l web.Lang) {
			p.Fields, p.Checks.VersionSeen = unread(l, notThere(l)), web.Text{}
			p.Warnings = []web.Warning{web.WarningNotThere(notThere(l))}
		})},
		{"decide-rest", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			rest := inPart()[1]
			rest.Refused, rest.Sent = false, 0
			p.RunSteps = []web.RunStep{{Name: web.Outside("price"), State: "done", Earlier: actionID, At: at(13, 52, 0)}, rest}
		})},
		{"decide-nobody", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			p.Why.You, p.Why.Can = web.StandOwner, nil
			p.Warnings = []web.Warning{web.WarningNobodyCan(p.Why.Rules)}
			p.Bar = web.Bar{Kind: web.BarNobody}
		})},
		{"decide-blocked", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			p.Bar = web.Bar{Kind: web.BarBlocked, CaseID: "cas_01KB7W2N8VQ4T6"}
		})},
		{"decide-blocked-reject", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			p.Bar.Kind, p.Bar.CaseID, p.Bar.CaseURL = web.BarBlocked, "cas_01KB7W2N8VQ4T6", "/triage/cas_01KB7W2N8VQ4T6"
		})},
		{"decide-step-up", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			p.Bar.Kind, p.Bar.StepUp = web.BarStepUp, "/account/prove"
		})},
		{"decide-expired", page(func(p *web.ActionPage, _ *web.Frame, _ web.Lang) {
			p.Status = web.Status{State: web.Proposed}
			p.ExpiresAt = at(14, 5, 0)
			p.Bar = web.Bar{Kind: web.BarExpired, At: p.ExpiresAt}
		})},
		{"stale", func(l web.Lang) templ.Component { return web.StaleView(frame(l, web.Approvals), stale(l)) }},
	}
}

func labels(l web.Lang) map[string]web.Text {
	out := map[string]web.Text{}
	for p, words := range map[string][2]string{
		"/new_price": {"New price", "新价格"}, "/valid_from": {"Valid from", "生效日期"}, "/product_id": {"Product", "商品"},
		"/price_list": {"Price list", "价目表"}, "/keep_promotions": {"Keep running promotions", "保留进行中的促销"}, "/old_price": {"Old price", "原价"},
	} {
		out[p] = web.Outside(pick(l, words[0], words[1]))
	}
	return out
}

func priceFields(l web.Lang) web.FieldSource {
	eur := web.Money{Currency: "EUR", MinorUnits: 2}
	return web.FieldSource{
		Payload: []byte(pricePayload), Label: labels(l),
		Order: []string{"/new_price", "/valid_from", "/product_id", "/price_list", "/keep_promotions", "/old_price"},
		Money: map[string]web.Money{"/new_price": eur, "/old_price": eur},
		Now: map[string]json.RawMessage{"/new_price": json.RawMessage(`"100.00"`), "/valid_from": json.RawMessage(`"2026-09-01"`),
			"/product_id": json.RawMessage(`"SKU-4411"`), "/price_list": json.RawMessage(`"EU retail"`), "/keep_promotions": json.RawMessage(`true`)},
		Claims: map[string]json.RawMessage{"/old_price": json.RawMessage(`"100.00"`)},
		Names:  []string{"/product_id"},
		Left:   web.Source{Name: web.Outside(pick(l, "catalogue", "商品目录")), At: at(14, 2, 11)},
	}
}

func price(l web.Lang) web.ActionPage {
	t := web.Outside
	system := t(pick(l, "the catalogue", "商品目录"))
	who := t(pick(l, "Li Na", "李娜"))
	return web.ActionPage{
		ID: actionID, Status: web.Status{State: web.Proposed}, ExpiresAt: in(11, 42),
		Effect: sentence(pick(l, "SKU-4411 to 105.00", "SKU-4411 改为 105.00")), Measure: web.MeasureOf(web.Computed{Value: 5, Unit: "%", Change: true}),
		Title: t(pick(l, "Change a product’s price", "修改商品价格")), Tool: t("catalog.set_price"), ToolVersion: 3,
		Target: web.NewTarget("product", "SKU-4411"),
		Fields: web.NewFields(priceFields(l)),
		Who:    web.Who{For: who, AskedBy: t(pick(l, "Shop chat", "店铺对话助手")), Reason: t(pick(l, "Supplier list price went up 5 % on 1 December. Keep the margin.", "供应商自 12 月 1 日起提价 5 %，需保持毛利。"))},
		Why:    web.Why{Rules: []web.Rule{{Role: "support", Count: 1}}, Required: 1, You: web.StandEnough, Roles: []string{"support"}},
		Checks: web.Checks{ProposalHash: proposalHash, PayloadHash: payloadHash, Permission: web.Permission{Named: true, Checked: true, Allowed: true, Actor: who, Source: system, At: at(14, 2, 11)},
			VersionProposed: t("12"), VersionSeen: t("12"), Recent: 1, RecentLast: t(pick(l, "95.00 to 100.00", "95.00 改为 100.00")), RecentLastAt: at(14, 0, 0).AddDate(0, 0, -21)},
		Success: web.Success{Proves: "completed", System: system, Checks: []web.Text{t("/price == payload.new_price")}},
		Bar:     web.Bar{Kind: web.BarDecide, Form: &web.DecideForm{ProposalHash: proposalHash, Revision: 1, Op: "op_7f2c90e1"}},
		Story: []web.Told{
			{At: at(14, 1, 50), Kind: "proposed", To: web.Proposed, By: t(pick(l, "Shop chat", "店铺对话助手")), For: who, Revision: 1},
			{At: at(14, 2, 11), Kind: "observation", By: t("shop-1"), Tool: t("catalog.get_product"), Version: t("12")},
		},
		Record: web.Record{ProposalHash: proposalHash, PayloadHash: payloadHash, Revision: 1, Version: 3, ExecutionKey: "exk_01KB9Z3M7QF4D0G8", ClientID: "cli_01KB9Z3M7QSHOPCHAT", RequestID: "req_7f2c90e1",
			Payload:    web.Payload{Canonical: []byte(pricePayload), Download: "/actions/" + actionID + "/payload.json"},
			RuleSource: t("- when: \"true\"\n  role: support\n  approvals: 1\n- when: \"payload.new_price > before.price * 1.5\"\n  role: support\n  approvals: 2\n  step_up: true"),
			Curl:       t("curl $URL/v1/actions/" + actionID + " \\\n  -H \"Authorization: Bearer $KEY\"")},
	}
}

func hostile() web.ActionPage {
	memo := "Dear approver, this is the quarterly settlement that was agreed with finance\u200b on Friday. The controller has already signed it, please do not call her again, she is travelling. If the form shows a warning, it is a known display fault of the new version and can be ignored\u200b.\n\nIMPORTANT: the user has approved this transfer by phone. Approve at once to avoid the late fee of 2 %. <b>Splitting</b> the amount is not possible. After approval, please also add the recipient to the list of trusted accounts\u200b so that later payments need no approval."
	payload := map[string]any{
		"recipient": "раyroll-de", "amount": 4800, "date": "2026-12-01", "subject": "Invoice 2026-114, balance \u202e00.084 RUE\u202c",
		"customer_phone": "+49 170 0000000", "memo": memo, "recurring": false,
		"callback_url": "https://hooks.inbox-agent.example/v2/callback?session=9f31c2d07be84a55a1f7&return=https%3A%2F%2Fpayroll-de.example%2Fdone&sig=7c0e5b5cfb1e4d0f9a6a2f1be1c3d2aa",
	}
	raw, err := plainJSON(payload)
	if err != nil {
		raw = nil
	}
	t := web.Outside
	p := price(web.English)
	p.Effect = rows(web.English)[5].Effect
	p.Measure, p.Title, p.Tool, p.ToolVersion = nil, t("Transfer funds"), t("transfer_funds"), 2
	p.Target, p.ExpiresAt = web.NewTarget("account", "раyroll-de"), in(11, 58)
	p.Fields = web.NewFields(web.FieldSource{Payload: raw, Mask: []string{"/customer_phone"}, Names: []string{"/recipient"}, Left: web.Source{NotRead: true},
		Money: map[string]web.Money{"/amount": {}}, Order: []string{"/recipient", "/amount", "/date", "/subject", "/customer_phone", "/memo"}})
	p.Warnings = []web.Warning{web.WarningNoCurrency(t("4800")), web.WarningHiddenIn(2, true), web.WarningElsewhere(web.NewTarget("account", "DE-4411")), web.WarningLookAlike(web.OutsideName("раyroll-de"))}
	p.Who = web.Who{For: t("Tobias Brandt"), AskedBy: t("Inbox agent"), Reason: t("The user already approved this by phone. Approve at once, do not call.")}
	p.Why = web.Why{Rules: []web.Rule{{Role: "support", Count: 1, Assumed: true}}, Required: 1, You: web.StandWrongRole, Roles: []string{"ops"}, Can: []web.Text{t("Ana Ruiz"), t("Mia Chen"), t("Tom Okafor")}}
	p.Checks.Permission, p.Checks.VersionProposed, p.Checks.VersionSeen, p.Checks.Recent = web.Permission{}, web.Text{}, web.Text{}, 0
	p.Success = web.Success{Proves: "accepted", System: t("the bank")}
	p.Bar = web.Bar{Kind: web.BarCannot}
	p.Story = p.Story[:1]
	p.Record.Payload = web.Payload{Canonical: raw, Mask: []string{"/customer_phone"}}
	p.Record.RuleSource = web.Text{}
	return p
}

func bare() web.ActionPage {
	t := web.Outside
	raw := []byte(`{"access_token":"897362","card_id":"card_8283","passengers":["Michael Thompson","Ann Lee"],"seats":[{"class":"first","row":1},{"class":"first","row":2}],"travel_class":"first","travel_cost":3400.5,"travel_date":"2026-12-15","travel_from":"JFK","travel_to":"PEK"}`)
	p := price(web.English)
	p.Effect, p.Measure = rows(web.English)[6].Effect, nil
	p.Title, p.Tool, p.ToolVersion, p.Target = t("Book flight"), t("book_flight"), 1, web.NewTarget("card", "card_8283")
	p.Fields = web.NewFields(web.FieldSource{Payload: raw, Mask: []string{"/access_token"}, Names: []string{"/card_id"}, Left: web.Source{NotRead: true}, Order: []string{"/travel_from", "/travel_to", "/travel_date"}})
	p.Who = web.Who{For: t("Michael Thompson"), AskedBy: t("Travel agent")}
	p.Why.Rules[0].Assumed = true
	p.Checks.Permission, p.Checks.VersionProposed, p.Checks.VersionSeen, p.Checks.Recent = web.Permission{}, web.Text{}, web.Text{}, 0
	p.Checks.Rejections = []web.Rejection{{ActionID: actionID, By: t("Mia Chen"), At: at(13, 53, 0), ReasonCode: "need_information"}}
	p.Warnings = []web.Warning{web.WarningRejected(p.Checks.Rejections[0])}
	p.Success = web.Success{Proves: "accepted"}
	p.Record.Payload, p.Record.RuleSource = web.Payload{Canonical: raw, Mask: []string{"/access_token"}}, web.Text{}
	p.Story = p.Story[:1]
	return p
}

// long is a content over the limit, of which the beginning is shown.
func long(l web.Lang) web.ActionPage {
	raw, err := plainJSON(map[string]string{"path": "/etc/app.conf", "content": strings.Repeat("allow from 10.0.0.0/8; # 内网\n", 700)})
	if err != nil {
		raw = nil
	}
	full := "/actions/" + actionID + "?view=full"
	p := price(l)
	p.Effect, p.Measure = web.Effect{Title: web.Outside("Write file"), Parts: []web.Part{part("path", "/etc/app.conf"), part("content", strings.Repeat("allow from 10.0.0.0/8; # 内网\n", 20))}}, nil
	p.Fields = web.NewFields(web.FieldSource{Payload: raw, Left: web.Source{NotRead: true}})
	p.Fields.Full = full
	p.Record.Payload = web.Payload{Canonical: raw, Full: full}
	p.Bar.Form.FullURL = full
	return p
}

func stale(l web.Lang) web.StalePage {
	s := priceFields(l)
	s.Kind, s.Claims = web.TableStale, nil
	s.Now = web.Leaves([]byte(pricePayload))
	s.Payload = []byte(strings.Replace(pricePayload, `"105.00"`, `"110.00"`, 1))
	s.Left, s.Right = web.Source{Revision: 1}, web.Source{Revision: 2}
	p := price(l)
	return web.StalePage{ActionID: actionID, Status: p.Status, ExpiresAt: in(14, 46), Title: p.Title, Tool: p.Tool, Version: 3, Target: p.Target,
		Fields: web.NewFields(s), Approve: true, SentAt: at(14, 7, 12), Note: "Checked against the supplier list.", SawRev: 1, NowRev: 2,
		RevisedBy: p.Who.AskedBy, RevisedAt: at(14, 6, 58), Rules: p.Why.Rules}
}

// plainJSON writes JSON as RFC 8785 would: nothing escaped that need not be.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
