package handlers

import (
	"context"
	"strings"
	"unicode"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/web"
)

// effectOf is what an action would do, as one line.
func effectOf(c *contract.Contract, lang string, payload []byte) web.Effect {
	e := web.Effect{Title: web.Outside(titleOf(c, lang))}
	if segments := c.Summary(lang, payload); len(segments) > 0 {
		var text strings.Builder
		for _, s := range segments {
			text.WriteString(segmentText(s))
		}
		e.Sentence = web.Outside(text.String())
		return e
	}
	for _, s := range c.Headline(payload) {
		name := c.Label(lang, s.Pointer)
		if name == "" {
			name = strings.TrimPrefix(s.Pointer, "/")
		}
		value := web.Outside(segmentText(s))
		if namesSomething(s.Pointer) {
			value = web.OutsideName(segmentText(s))
		}
		e.Parts = append(e.Parts, web.Part{Name: web.Outside(name), Value: value})
	}
	return e
}

func segmentText(s contract.Segment) string {
	switch {
	case s.Hidden:
		return "•••"
	case s.Missing:
		return "–"
	case s.Currency != "":
		return web.Money{Amount: s.Text, Currency: s.Currency}.String()
	}
	return s.Text
}

// titleOf is a tool's title; of a tool without one, its name as words.
func titleOf(c *contract.Contract, lang string) string {
	if title := c.Title.In(lang); title != "" {
		return title
	}
	name := c.Name[strings.LastIndex(c.Name, ".")+1:]
	words := strings.NewReplacer("_", " ", "-", " ").Replace(name)
	for i, r := range words {
		return string(unicode.ToUpper(r)) + words[i+len(string(r)):]
	}
	return c.Name
}

// systemOf names the business system that a tool belongs to: what stands
// before the dot of its name.
func systemOf(tool string) web.Text {
	system, _, found := strings.Cut(tool, ".")
	if !found {
		return web.Text{}
	}
	return web.Outside(strings.ReplaceAll(system, "_", " "))
}

// measureOf is the one number of an action worth seeing first: what its
// contract computes, else the first sum of money in it.
func measureOf(ctx context.Context, lang string, t *rule.Tool, a action.Action) *web.Measure {
	measures, err := t.Rules.Measures(ctx, factsOf(a))
	if err == nil {
		for _, m := range measures {
			if m.OK && m.Text == "" {
				return web.MeasureOf(web.Computed{Name: m.Name.In(lang), Value: m.Number, Unit: m.Unit.In(lang), Change: m.Kind == contract.MeasureChange})
			}
		}
	}
	for _, amount := range firstAmount(t.Contract, a.Payload) {
		return sumOf(t.Contract, lang, amount)
	}
	return nil
}

// sumOf is an amount of a payload, with its field's name.
func sumOf(c *contract.Contract, lang string, amount contract.Amount) *web.Measure {
	m := web.MeasureMoney(moneyOf(c, amount))
	m.Name = web.Outside(c.Label(lang, amount.Pointer))
	return m
}

// moneyOf is an amount as pages write it.
func moneyOf(c *contract.Contract, amount contract.Amount) web.Money {
	declared, _ := c.Money(amount.Pointer)
	return web.Money{Amount: amount.Text, Currency: amount.Currency, MinorUnits: declared.MinorUnits}
}

// stakeOf is what an unknown outcome is about: the money that the contract
// declares, else what measureOf says.
func stakeOf(ctx context.Context, lang string, t *rule.Tool, a action.Action) *web.Measure {
	for _, amount := range firstAmount(t.Contract, a.Payload) {
		if _, declared := t.Contract.Money(amount.Pointer); declared {
			return sumOf(t.Contract, lang, amount)
		}
	}
	return measureOf(ctx, lang, t, a)
}

// moneyRead is what is money in a reading of a tool, by place: what the tool's
// own contract calls so, and what a post-condition compares with an amount of
// the payload.
func moneyRead(c *contract.Contract, payload []byte, tool string, reads *contract.Contract, snapshot []byte) map[string]web.Money {
	sent := moneyIn(c, payload)
	found := map[string]web.Money{}
	if reads != nil {
		found = moneyIn(reads, snapshot)
	}
	for _, p := range c.Execution.Postconditions {
		m := expectsField.FindStringSubmatch(p.Expect)
		if m == nil || p.Read != tool {
			continue
		}
		if money, is := sent["/"+m[1]]; is && found[p.Field].MinorUnits == 0 {
			found[p.Field] = money
		}
	}
	return found
}

// moneyIn is what is money in a document that a contract describes, by place.
func moneyIn(c *contract.Contract, doc []byte) map[string]web.Money {
	found := map[string]web.Money{}
	for _, amount := range c.Amounts(doc) {
		m := moneyOf(c, amount)
		m.Amount = ""
		found[amount.Pointer] = m
	}
	return found
}

// factsOf is what rules look at.
func factsOf(a action.Action) rule.Facts {
	f := rule.Facts{Payload: a.Payload, Actor: a.Actor, Target: a.Target}
	if before, ok := a.Before(); ok {
		f.Before = before.Snapshot
	}
	return f
}

// namesSomething reports whether a field's name says that its value is an id
// or a name, where look-alike letters could mislead.
func namesSomething(pointer string) bool {
	name := strings.ToLower(pointer[strings.LastIndex(pointer, "/")+1:])
	for _, part := range []string{"id", "name", "recipient", "account", "email", "user", "to", "iban", "url", "channel", "customer"} {
		if name == part || strings.HasSuffix(name, "_"+part) || strings.HasPrefix(name, part+"_") {
			return true
		}
	}
	return false
}

// actorText is whom an action is for.
func actorText(a action.Actor) web.Text {
	if a.Name == "" || a.Name == a.ID {
		return web.OutsideName(a.ID)
	}
	return web.OutsideName(a.Name + " (" + a.ID + ")")
}

// targetOf is an action's target as pages show it.
func targetOf(a action.Action) *web.Target {
	if a.Target == nil {
		return nil
	}
	return web.NewTarget(a.Target.Type, a.Target.ID)
}
