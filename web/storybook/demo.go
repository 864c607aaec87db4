package storybook

import (
	"countersign/web"

	"github.com/a-h/templ"
)

func demoStories() []Story {
	framed := func(l web.Lang) web.Frame {
		f := frame(l, web.Guide)
		f.Demo = true
		return f
	}
	return []Story{
		{"guide", func(l web.Lang) templ.Component {
			return web.GuideView(framed(l), web.GuidePage{Op: "op_1", Steps: []web.GuideStep{{Name: "price"}, {Name: "stale", Turns: true}, {Name: "timeout"}, {Name: "steps", Turns: true, InPart: true}, {Name: "message"}, {Name: "lie"}, {Name: "ledger"}}})
		}},
		{"guide-played", func(l web.Lang) templ.Component {
			played := func(s web.Status) *web.GuideAction { return &web.GuideAction{ID: actionID, Status: s} }
			unknown := web.GuideAction{ID: actionID, CaseID: "cas_01KB9Z3M7Q6W8R2TAV5NWZ8H1C", Status: web.Status{State: web.Unknown}}
			inPart := web.GuideAction{ID: actionID, CaseID: unknown.CaseID, Status: web.Status{State: web.Unknown, How: web.HowInPart}}
			return web.GuideView(framed(l), web.GuidePage{Op: "op_1", Steps: []web.GuideStep{
				{Name: "price", Next: "stale", Main: played(web.Status{State: web.Applied, How: web.HowReadBack, At: at(14, 3, 0)})},
				{Name: "stale", Next: "timeout", Main: played(web.Status{State: web.Proposed}), Turns: true},
				{Name: "timeout", Next: "steps", Main: played(web.Status{State: web.Executing})},
				{Name: "steps", Next: "message", Main: &inPart, Rest: played(web.Status{State: web.Proposed}), Turns: true, InPart: true, Turned: true},
				{Name: "message", Next: "lie", Main: played(web.Status{State: web.Rejected})},
				{Name: "lie", Next: "ledger", Main: &unknown},
				{Name: "ledger", Main: played(web.Status{State: web.Applied, How: web.HowReported}), Over: true}}})
		}},
		{"guide-refused", func(l web.Lang) templ.Component {
			return web.GuideView(framed(l), web.GuidePage{Op: "op_1", Steps: []web.GuideStep{{Name: "price"}},
				Refused: web.NewRefusal("tool-unavailable", "", "The demo is still starting. Try again in a moment.", nil)})
		}},
		{"faults", func(l web.Lang) templ.Component { return web.FaultsView(framed(l), web.FaultsPage{Op: "op_1"}) }},
		{"faults-on", func(l web.Lang) templ.Component {
			return web.FaultsView(framed(l), web.FaultsPage{Op: "op_1", On: []web.Fault{{System: "refunds", Kind: "act-then-reset", Left: 5}, {System: "catalog", Kind: "lie"}}})
		}},
		{"try", func(l web.Lang) templ.Component {
			return web.TryView(framed(l), web.TryPage{Op: "op_1", Definition: web.TryDefinition, Payload: web.TryPayload})
		}},
		{"try-several", func(l web.Lang) templ.Component {
			return web.TryView(framed(l), web.TryPage{Op: "op_1", Definition: `[{"name": "a.read"}, {"name": "a.write"}]`, Payload: web.TryPayload,
				Among:   []web.Option{{Value: "a.read", Label: web.Outside("a.read")}, {Value: "a.write", Label: web.Outside("a.write")}},
				Refused: web.NewRefusal("invalid-argument", "", "The form was not taken.", nil).At("/tool", "There are 2 tools in what you pasted. Choose the one to try, with a payload for it.")})
		}},
		{"try-refused", func(l web.Lang) templ.Component {
			return web.TryView(framed(l), web.TryPage{Op: "op_1", Definition: "{", Payload: `{"room": "\u202e"}`,
				Refused: web.NewRefusal("invalid-argument", "", "The form was not taken.", nil).At("/definition", "ends too early")})
		}},
	}
}
