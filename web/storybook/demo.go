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
			return web.GuideView(framed(l), web.GuidePage{Op: "op_1", Steps: []web.GuideStep{
				{Name: "price", ActionID: actionID, Status: web.Status{State: web.Applied, How: web.HowReadBack, At: at(14, 3, 0)}},
				{Name: "stale", ActionID: actionID, Status: web.Status{State: web.Proposed}, Turns: true},
				{Name: "timeout", ActionID: actionID, Status: web.Status{State: web.Executing}},
				{Name: "lie", ActionID: actionID, CaseID: "cas_01KB9Z3M7Q6W8R2TAV5NWZ8H1C", Status: web.Status{State: web.Unknown}}}})
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
		{"try-refused", func(l web.Lang) templ.Component {
			return web.TryView(framed(l), web.TryPage{Op: "op_1", Definition: "{", Payload: `{"room": "\u202e"}`,
				Refused: web.NewRefusal("invalid-argument", "", "The form was not taken.", nil).At("/definition", "ends too early")})
		}},
	}
}
