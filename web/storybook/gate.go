package storybook

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

func gateStories() []Story {
	out := []Story{
		{"sign-in", func(web.Lang) templ.Component {
			return web.SignInView(web.Frame{Path: "/login"}, web.SignInPage{Next: "/approvals"})
		}},
		{"sign-in-refused", func(web.Lang) templ.Component {
			return web.SignInView(web.Frame{Path: "/login"}, web.SignInPage{Username: "ana", Refused: web.NewRefusal("unauthorized", "sign-in", "", nil)})
		}},
		{"sign-in-link", func(web.Lang) templ.Component {
			return web.SignInLinkView(web.Frame{Path: "/in/abc"}, web.SignInLinkPage{Action: "/in/abc", Name: web.Outside("Ana Ruiz"), Username: web.Outside("ana"), Roles: []string{"support"}, Expires: in(60, 0)})
		}},
		{"sign-in-link-used", func(web.Lang) templ.Component {
			return web.SignInLinkView(web.Frame{Path: "/in/abc"}, web.SignInLinkPage{Refused: web.NewRefusal("unauthorized", "link", "", nil)})
		}},
		{"prove", func(l web.Lang) templ.Component {
			return web.ProveView(frame(l, web.NoSection), web.ProvePage{Username: web.Outside("ana"), Next: "/actions/" + actionID})
		}},
	}
	codes := map[int]string{400: "malformed", 403: "forbidden", 404: "not-found", 409: "wrong-state", 410: "expired", 413: "too-large", 429: "rate-limited", 500: "internal", 503: "outcome-unknown"}
	for _, status := range slices.Sorted(maps.Keys(codes)) {
		code := codes[status]
		out = append(out, Story{fmt.Sprintf("error-%d", status), func(l web.Lang) templ.Component {
			p := web.ErrorPage{Status: status, Refusal: web.NewRefusal(code, "", "", nil), RequestID: "req_01KB9Z3M7Q6W8R2T"}
			if status == 429 {
				p.RetryIn = 90 * time.Second
			}
			return web.ErrorView(frame(l, web.NoSection), p)
		}})
	}
	return out
}
