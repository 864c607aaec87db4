package handlers

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/triage"
	"countersign/web"
)

// readings are everything that was read, each with what its contract lets be
// seen, where it came from and when.
func (v actionView) readings(ctx context.Context) ([]web.Snapshot, error) {
	var all []web.Reading
	source := web.FieldSource{Label: map[string]web.Text{}, Money: map[string]web.Money{}}
	for _, r := range triage.Readings(v.a) {
		k, err := v.outputs.contract(ctx, r.Tool)
		if err != nil {
			return nil, err
		}
		shown := web.Reading{At: r.At, Source: systemOf(r.Tool), Tool: r.Tool, Version: web.Outside(r.Version), Failed: web.Outside(r.Error), Other: r.Other}
		if len(r.Snapshot) > 0 {
			shown.Body, shown.Hash = allowed(k, r.Snapshot), action.ContentHash(r.Snapshot)
			if k != nil {
				maps.Copy(source.Money, moneyRead(v.tool.Contract, v.a.Payload, r.Tool, k, r.Snapshot))
				describe(&source, k, v.lang, shown.Body)
			}
		}
		if shown.Source.Empty() {
			shown.Source = web.Outside(r.Tool)
		}
		all = append(all, shown)
	}
	return web.NewSnapshots(all, source), nil
}

// allowed is what a contract lets be seen of an output: an object without
// members when that is nothing.
func allowed(k *contract.Contract, output []byte) json.RawMessage {
	if k != nil {
		if body := k.FilterOutput(output); body != nil {
			return body
		}
	}
	return json.RawMessage("{}")
}

// describe adds what a contract says of the fields of an output.
func describe(source *web.FieldSource, k *contract.Contract, lang string, output json.RawMessage) {
	source.Mask = append(source.Mask, k.Display.Mask...)
	labels(source.Label, k, lang, output)
}

// seen is what was read before people decide, as far as the contract of what
// read it lets it be seen, and that contract; nil when nothing was read.
func (v actionView) seen(ctx context.Context) (json.RawMessage, *contract.Contract, error) {
	before, ok := v.a.Before()
	if !ok {
		return nil, nil, nil
	}
	k, err := v.outputs.contract(ctx, before.Tool)
	if err != nil {
		return nil, nil, err
	}
	return allowed(k, before.Snapshot), k, nil
}

// laterReading is what was read of the object after a request was sent.
type laterReading struct {
	fields map[string]json.RawMessage // by the field of the payload that each compares with
	beside map[string]json.RawMessage // by place, of the tool that is read before people decide
	source web.Source                 // zero when nothing was read that compares
}

// readLater finds the latest readings since the last request was sent, or that of
// the step which they are about.
func (v actionView) readLater(ctx context.Context) (l laterReading, err error) {
	sent := map[string]time.Time{}
	for _, t := range v.a.Attempts {
		sent[t.Step], sent[""] = t.At, t.At
	}
	latest := map[string]action.Observation{}
	for _, o := range v.a.Observations {
		if at, ok := sent[o.Step]; ok && !o.Failed && !o.Seen().Before(at) {
			latest[o.Tool] = o
		}
	}
	l.fields = map[string]json.RawMessage{}
	for tool, o := range latest {
		k, err := v.outputs.contract(ctx, tool)
		if err != nil {
			return l, err
		}
		seen := allowed(k, o.Snapshot)
		fields, _, _ := comparable(v.tool.Contract, tool, v.a.Payload, seen)
		if tool == v.tool.Contract.Approval.Before {
			l.beside = web.Leaves(seen)
		}
		if len(fields)+len(l.beside) > 0 && (l.source.At.IsZero() || o.ObservedAt.Before(l.source.At)) {
			l.source = web.Source{Name: systemOf(tool), At: o.ObservedAt}
		}
		maps.Copy(l.fields, fields)
	}
	return l, nil
}

// answer is what the business system said to the latest request that
// succeeded; nil when there is nothing of it that may be seen.
func (v actionView) answer() *web.Snapshot {
	for i := len(v.a.Receipts) - 1; i >= 0; i-- {
		r := v.a.Receipts[i]
		if r.Outcome != action.Success || len(r.Body) == 0 {
			continue
		}
		source := web.FieldSource{Label: map[string]web.Text{}}
		body := allowed(v.tool.Contract, r.Body)
		describe(&source, v.tool.Contract, v.lang, body)
		source.Money = moneyIn(v.tool.Contract, body)
		shown := web.NewSnapshots([]web.Reading{{At: r.At, Source: systemOf(v.a.Tool), Tool: v.a.Tool, Body: body}}, source)
		if len(shown[0].Diff.Fields) == 0 {
			return nil
		}
		return &shown[0]
	}
	return nil
}
