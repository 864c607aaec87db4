package storybook

import (
	"encoding/json"
	"time"

	"countersign/web"
)

// asked is the table of what was sent: of what was asked for, without saying that
// it is done, and with what was read later.
func asked(l web.Lang, later bool) web.FieldTable {
	s := priceFields(l)
	s.Kind, s.Claims = web.TableAsked, nil
	if later {
		s.Third = web.Source{Name: s.Left.Name, At: at(14, 6, 40)}
		s.Later = map[string]json.RawMessage{"/new_price": json.RawMessage(`"101.00"`), "/valid_from": json.RawMessage(`"2026-09-01"`)}
	}
	return web.NewFields(s)
}

// unread is the table of an object that was read in vain.
func unread(l web.Lang, m web.Missed) web.FieldTable {
	s := priceFields(l)
	s.Now, s.Left = nil, web.Source{NotRead: true, Missed: m}
	s.Claims = map[string]json.RawMessage{"/old_price": nil}
	return web.NewFields(s)
}

// notThere are readings that were answered with 404.
func notThere(l web.Lang) web.Missed {
	return web.Missed{From: web.Outside(pick(l, "catalogue", "商品目录")), Times: 3, Last: at(14, 2, 11), Status: 404}
}

// approved makes of a page one that was approved and has not run.
func approved(p *web.ActionPage) {
	p.Status, p.ExpiresAt, p.At = web.Status{State: web.Confirmed}, in(4, 40), time.Time{}
	p.Statement, p.Proof, p.Story = &web.Statement{Level: "not_submitted", AsOf: Now()}, nil, p.Story[:3]
}
