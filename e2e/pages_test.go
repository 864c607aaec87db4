package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shown is a page that a test looks at, and how to get there.
type shown struct {
	name   string
	status int
	get    func(p *tab)
}

// at is a page that has an address.
func at(name, path string) shown {
	return shown{name, http.StatusOK, func(p *tab) { p.open(path) }}
}

// refusal is a page that says no.
func refusal(name string, status int, get func(p *tab)) shown { return shown{name, status, get} }

// Every page there is, in every state that can be reached, for everybody who
// sees another one: nothing that a screen reader stumbles over, nothing that the
// content security policy stops, nothing wider than the screen.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	orSkip(t, here.axe)
	c := orSkip(t, here.demo)
	s := c.setScene(t)
	for _, tt := range []struct {
		who, link string
		pages     []shown
	}{
		{"nobody", "", s.outside()}, {"support", s.support, s.supports()}, {"another support", s.second, s.seconds()},
		{"auditor", s.auditor, s.auditors()}, {"admin", s.admin, s.admins()}, {"support in Chinese", s.third, s.chinese()},
		{"ops", s.ops, s.operators()}, {"ops in Chinese", s.opsChinese, s.operatorsChinese()},
	} {
		t.Run(tt.who, func(t *testing.T) {
			t.Parallel()
			p := c.browser(t)
			if tt.link != "" {
				p.enter(tt.link)
			}
			for _, page := range tt.pages {
				page.get(p)
				p.want(page.status).checkPage(page.name)
			}
		})
	}
}

// checkPage looks at the page that is shown, in every width and colour.
func (p *tab) checkPage(name string) {
	p.t.Helper()
	for _, said := range p.log.take() {
		p.t.Errorf("%s: the browser complains: %s", name, said)
	}
	if p.count("h1") != 1 || p.count("main") != 1 {
		p.t.Errorf("%s has %d h1, %d main", name, p.count("h1"), p.count("main"))
	}
	if title, found := strings.CutSuffix(eval[string](p, "document.title"), " · Countersign"); !found || title == "" {
		p.t.Errorf("%s is titled %q", name, title)
	}
	if lang := eval[string](p, "document.documentElement.lang"); lang != "en" && lang != "zh-Hans" {
		p.t.Errorf("%s is in %q", name, lang)
	}
	p.within("running axe", func(ctx context.Context) error {
		source, err := here.axe()
		if err == nil {
			err = chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](source))
		}
		return err
	})
	for _, size := range [][2]int64{{wide, wideHigh}, {narrow, narrowHigh}} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		for _, colours := range []string{"light", "dark"} {
			send(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}})
			look := fmt.Sprintf("%s-%d-%s", name, size[0], colours)
			p.picture(look)
			p.checkAxe(look, colours)
		}
		if width := eval[int64](p, "document.scrollingElement.scrollWidth"); width > size[0] {
			p.t.Errorf("%s is %d wide on a screen of %d: %s", name, width, size[0], eval[string](p, widest))
		}
	}
	p.do(chromedp.EmulateViewport(wide, wideHigh))
}

// widest names what stands out of the screen.
const widest = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(" | ")`

// checkAxe lets axe-core look at the page; in the dark, at its colours alone:
// nothing else is different there.
func (p *tab) checkAxe(look, colours string) {
	p.t.Helper()
	rules := ""
	if colours == "dark" {
		rules = `runOnly: ["color-contrast", "link-in-text-block"],`
	}
	found := eval[[]byte](p, `axe.run(document, {`+rules+` resultTypes: ["violations"], reporter: "v2"}).then(r =>
		r.violations.map(v => ({rule: v.id, help: v.help, where: v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " — " + n.failureSummary)})))`)
	var violations []struct {
		Rule, Help string
		Where      []string
	}
	if err := json.Unmarshal(found, &violations); err != nil {
		p.t.Fatalf("axe answers %s: %v", found, err)
	}
	for _, v := range violations {
		p.t.Errorf("%s: axe finds %s (%s): %s", look, v.Rule, v.Help, strings.Join(v.Where, "\n"))
	}
}

// picturesEnv names a folder to keep a picture of every page in, to look at.
const picturesEnv = "COUNTERSIGN_E2E_PICTURES"

func (p *tab) picture(look string) {
	p.t.Helper()
	dir := os.Getenv(picturesEnv)
	if dir == "" {
		return
	}
	p.within("taking a picture", func(ctx context.Context) error {
		image, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, look+".png"), image, 0o600)
	})
}

// scene is what the pages are about: people, and an action in every state.
type scene struct {
	console                                *console
	support, second, third, auditor, admin string // links
	used, unused                           string // links that are used up, or never used
	tool                                   string
	task, paused                           string // ids of tasks
	actions                                map[string]api.Action
	ops, opsChinese, desk                  string // links, and a tool
	cases                                  map[string]api.Action
}

// setScene makes everything there is to look at.
func (c *console) setScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{console: c, tool: c.tool(t, "", ""), actions: map[string]api.Action{}}
	accepting := c.tool(t, "", `{"proves":"accepted"}`)
	two, stuck, proof := c.tool(t, twoSupport, ""), c.tool(t, nobodyHolds, ""), c.tool(t, twoStepUp, "")
	own := []string{s.tool, accepting, two, stuck, proof}
	_, s.support = c.person(t, "support", own...)
	_, s.second = c.person(t, "support", own...)
	_, s.third = c.person(t, "support", own...)
	_, s.auditor = c.person(t, "auditor")
	_, s.admin = c.person(t, "admin")
	_, s.unused = c.person(t, "ops")
	_, s.used = c.person(t, "support", own...)
	decider := c.browser(t).enter(s.used)

	confirmed := func(tool string) api.Action {
		a := c.price(t, tool, 105)
		decider.open("/actions/" + a.ID).approve()
		return c.reaches(t, a.ID, "confirmed")
	}
	name := "Anna \u202eimmoB"
	s.actions["hostile"] = c.propose(t, api.Propose{Tool: s.tool, Actor: &api.Actor{ID: "u-аnna", Name: &name}, Reason: hostile,
		Payload: jsonOf(t, map[string]any{"product_id": "SKU-44\u200b11", "new_price": 105, "memo": hostile, "blob": strings.Repeat("Ab0", 700)})})
	s.actions["long"] = c.propose(t, api.Propose{Tool: s.tool, Payload: jsonOf(t, map[string]any{"product_id": unique("SKU-"), "new_price": 1,
		"memo": strings.Repeat("a very long text ", 1200)})})
	s.actions["proposed"] = c.price(t, s.tool, 105)
	s.actions["changing"] = c.price(t, s.tool, 105)
	s.actions["shop"] = c.shopPrice(t, "SKU-4420", 659)
	s.actions["bare"] = c.propose(t, api.Propose{Tool: "mail.send_message", Target: &api.Target{Type: "customer", ID: "anna@mail.example"},
		Payload: jsonOf(t, map[string]any{"to": "anna@mail.example", "subject": "Your order", "body": "Hello Anna,\n\nyour parcel is late."})})
	s.actions["stuck"] = c.price(t, stuck, 105)
	s.actions["proof"] = c.price(t, proof, 105)
	s.actions["half"] = c.price(t, two, 105)
	d := c.propose(t, api.Propose{Tool: s.tool, Draft: true, Payload: jsonOf(t, map[string]any{"product_id": unique("SKU-"), "new_price": 1})})
	s.actions["draft"] = d
	cancelled := c.price(t, s.tool, 105)
	c.call(t, http.StatusOK, c.Keys.Proposer, http.MethodPost, "/v1/actions/"+cancelled.ID+"/cancel", api.Cancel{}, nil, "If-Match", "1")
	s.actions["cancelled"] = cancelled
	s.actions["expired"] = c.lasting(t, s.tool, 1e9)
	rejected := c.price(t, s.tool, 105)
	decider.open("/actions/"+rejected.ID).choose("#reason_code", "duplicate").fill("#reason", "Twice today.").follow(rejectButton)
	s.actions["rejected"] = c.propose(t, api.Propose{Tool: s.tool, Payload: rejected.Payload}) // rejected before
	s.actions["over"] = rejected
	s.actions["confirmed"] = confirmed(s.tool)
	s.actions["executing"] = confirmed(s.tool)
	c.claimed(t, s.actions["executing"].ID)
	s.actions["accepted"] = c.ends(t, confirmed(accepting).ID, api.Receipt{Outcome: "SUCCESS", Proves: "accepted", HTTPStatus: 202, ProviderRef: "op-77"})
	s.actions["applied"] = c.ends(t, confirmed(s.tool).ID, api.Receipt{Outcome: "SUCCESS", Proves: "completed", HTTPStatus: 200})
	s.actions["failed"] = c.ends(t, confirmed(s.tool).ID, api.Receipt{Outcome: "FAILURE", HTTPStatus: 422})
	s.actions["conflict"] = c.ends(t, confirmed(s.tool).ID, api.Receipt{Outcome: "FAILURE", HTTPStatus: 412})
	product := unique("SKU-")
	doubtful := c.priceOf(t, s.tool, product, 105)
	s.actions["blocked"] = c.priceOf(t, s.tool, product, 106)
	decider.open("/actions/" + doubtful.ID).approve()
	s.actions["unknown"] = c.ends(t, doubtful.ID, api.Receipt{Outcome: "UNKNOWN", HTTPStatus: 503, Code: "EXECUTION_ERROR"})
	s.setCases(t)
	c.reaches(t, s.actions["expired"].ID, "expired")
	s.setTasks(t, decider)
	return s
}

// setTasks opens a task that goes on, and one whose budget is used up with
// something done, something not done and something that nobody knows.
func (s *scene) setTasks(t *testing.T, decider *tab) {
	t.Helper()
	c := s.console
	open := func(l api.TaskLimits) string {
		var k api.Task
		c.call(t, http.StatusCreated, c.Keys.Proposer, http.MethodPost, "/v1/tasks", api.OpenTask{Title: "Answer chat 8841 \u202e<script>alert(1)</script>", Limits: l, CostUnit: "EUR"}, &k)
		return k.ID
	}
	under := func(task string) api.Action {
		return c.propose(t, api.Propose{Tool: s.tool, TaskID: task, Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":105}`, unique("SKU-"))})
	}
	s.task, s.paused = open(api.TaskLimits{Decisions: new(5)}), open(api.TaskLimits{Decisions: new(5), Writes: new(3), Elapsed: new(api.Duration(4 * time.Hour)), Cost: new(0.5)})
	for _, outcome := range []api.Receipt{{Outcome: "SUCCESS", Proves: "completed", HTTPStatus: 200}, {Outcome: "UNKNOWN", HTTPStatus: 503, Code: "EXECUTION_ERROR"}} {
		a := under(s.paused)
		decider.open("/actions/" + a.ID).approve()
		c.reaches(t, a.ID, "confirmed")
		c.ends(t, a.ID, outcome)
	}
	s.actions["tasked"] = under(s.paused)
	c.call(t, http.StatusTooManyRequests, c.Keys.Proposer, http.MethodPost, "/v1/actions", api.Propose{Tool: s.tool, TaskID: s.paused,
		Actor: &api.Actor{ID: "u-17"}, Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":1}`, unique("SKU-"))}, nil)
}

func jsonOf(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s *scene) of(name string) string { return "/actions/" + s.actions[name].ID }

// outside are the pages of somebody who is not signed in.
func (s *scene) outside() []shown {
	return []shown{
		at("sign-in", "/login"), at("link", s.unused),
		refusal("link-used", http.StatusUnauthorized, func(p *tab) { p.open(s.used) }),
		refusal("sign-in-wrong", http.StatusUnauthorized, func(p *tab) {
			p.open("/login").fill("#username", unique("x")).fill("#password", "wrong").follow("main button")
		}),
		refusal("nothing-here", http.StatusNotFound, func(p *tab) { p.open("/nothing/here") }),
		{"sign-in-chinese", http.StatusOK, func(p *tab) { p.open("/login").follow(".switch button") }},
	}
}

// supports are the pages of somebody who decides.
func (s *scene) supports() []shown {
	pages := []shown{at("approvals", "/approvals"), at("approvals-others", "/approvals?tab=others"), at("approvals-all", "/approvals?tab=all"),
		at("approvals-filtered", "/approvals?target=nothing-like-it"), at("history", "/history"), at("history-filtered", "/history?q=act_nothing"),
		at("history-outcome", "/history?outcome=result_unknown"), at("overview", "/overview"), at("tools", "/tools"), at("tools-none", "/tools?q=nothing-like-it"),
		at("tool", "/tools/"+s.tool), at("account", "/account"), at("prove", "/account/prove?next=/approvals"),
		at("tasks", "/tasks"), at("task-paused", "/tasks/"+s.paused),
		refusal("task-wrong", http.StatusUnprocessableEntity, func(p *tab) {
			p.open("/tasks/"+s.paused).fill("#writes", "many").fill("#reason", "More to do").follow(`form[action$="/extend"] button`)
		}),
		at("guide", "/demo"), at("faults", "/demo/faults"), at("try", "/demo/try"),
		refusal("try-wrong", http.StatusUnprocessableEntity, func(p *tab) { p.open("/demo/try").fill("#payload", `{"room": 7}`).follow("main button") })}
	for name := range s.actions {
		if name != "bare" && name != "shop" {
			pages = append(pages, at("action-"+name, s.of(name)))
		}
	}
	return append(pages, at("action-long-full", s.of("long")+"?view=full"),
		refusal("reject-without-reason", http.StatusUnprocessableEntity, func(p *tab) { p.open(s.of("proposed")).follow(rejectButton) }),
		refusal("prove-wrong", http.StatusForbidden, func(p *tab) { p.open("/account/prove").fill("#password", "wrong").follow("main button") }),
		refusal("password-wrong", http.StatusUnprocessableEntity, func(p *tab) {
			p.open("/account").fill("#password", "long enough it is").fill("#again", "something else").follow("main button")
		}),
		refusal("history-wrong", http.StatusUnprocessableEntity, func(p *tab) { p.open("/history?approver=nobody-here") }),
		refusal("action-missing", http.StatusNotFound, func(p *tab) { p.open("/actions/" + action.NewID("act")) }),
		refusal("people-forbidden", http.StatusForbidden, func(p *tab) { p.open("/people") }),
		refusal("method", http.StatusMethodNotAllowed, func(p *tab) { p.open(s.of("proposed") + "/decisions") }),
		shown{"decided-half", http.StatusOK, func(p *tab) { p.open(s.of("half")).approve() }},
		at("action-half-approved", s.of("half")), at("approvals-waiting", "/approvals?tab=others"),
	)
}

// chinese are pages in the other language.
func (s *scene) chinese() []shown {
	pages := []shown{{"approvals-chinese", http.StatusOK, func(p *tab) { p.open("/approvals").follow(".switch button") }},
		at("history-chinese", "/history"), at("overview-chinese", "/overview"), at("tool-chinese", "/tools/"+s.tool), at("account-chinese", "/account"),
		at("tasks-chinese", "/tasks"), at("task-paused-chinese", "/tasks/"+s.paused)}
	for _, name := range []string{"hostile", "rejected", "applied", "unknown", "failed"} {
		pages = append(pages, at("action-"+name+"-chinese", s.of(name)))
	}
	return pages
}

// seconds are the pages of a decider who comes too late.
func (s *scene) seconds() []shown {
	return []shown{
		refusal("stale", http.StatusConflict, func(p *tab) {
			a := s.actions["changing"]
			p.open(s.of("changing")).fill("#reason", "Agreed on the phone.")
			s.console.revise(p.t, a, strings.Replace(string(a.Payload), "105", "1050", 1))
			p.approve()
		}),
		{"review", http.StatusOK, func(p *tab) { p.follow("main .buttons .go") }},
	}
}

// auditors look at everything and decide nothing.
func (s *scene) auditors() []shown {
	return []shown{at("auditor-approvals", "/approvals"), at("auditor-approvals-all", "/approvals?tab=all"), at("auditor-action", s.of("proposed")),
		at("auditor-shop", s.of("shop")), at("auditor-bare", s.of("bare")), at("auditor-overview", "/overview"), at("auditor-people", "/people"), at("auditor-clients", "/clients"),
		{"auditor-person", http.StatusOK, func(p *tab) { p.open("/people").follow("main td a") }},
		{"auditor-client", http.StatusOK, func(p *tab) { p.open("/clients").follow("main td a") }},
		at("auditor-task", "/tasks/"+s.paused), at("task-open", "/tasks/"+s.task),
		at("tool-full", "/tools/catalog.set_price"), at("tool-bare", "/tools/mail.send_message"),
		at("auditor-triage", "/triage"), at("auditor-case", s.ofCase("one"))}
}

// admins are the pages of who administers people and programs.
func (s *scene) admins() []shown {
	zoe, shop := "Zoe "+unique(""), unique("shop-")
	return []shown{at("people", "/people"), at("person-new", "/people/new"), at("clients", "/clients"), at("client-new", "/clients/new"),
		{"person-created", http.StatusOK, func(p *tab) {
			p.open("/people/new").fill("#name", zoe).fill("#username", unique("p-")).click("input[value=support]").follow("main button.go")
		}},
		{"person", http.StatusOK, func(p *tab) { p.open("/people").followText(zoe) }},
		{"person-disabled", http.StatusOK, func(p *tab) { p.follow("button.final") }},
		refusal("person-wrong", http.StatusUnprocessableEntity, func(p *tab) {
			p.open("/people/new").fill("#name", "X").fill("#username", "not a name!").click("input[value=support]").follow("main button.go")
		}),
		{"client-created", http.StatusOK, func(p *tab) {
			p.open("/clients/new").fill("#name", shop).click("input[value=proposer]").follow("main button.go")
		}},
		{"client", http.StatusOK, func(p *tab) { p.open("/clients").followText(shop) }},
		at("pause-new", "/pauses/new?kind=tool&value="+s.desk),
		{"paused", http.StatusOK, func(p *tab) { p.fill("#reason", "it pays twice").follow("main button.final") }},
		at("paused-triage", "/triage"),
		{"pause-end", http.StatusOK, func(p *tab) { p.open("/pauses").follow("main td .button") }},
		{"cancel-open", http.StatusOK, func(p *tab) {
			p.follow("main form button.go").open("/clients").followText(shop).follow(`a[href$="/cancel-open"]`)
		}},
		{"client-revoked", http.StatusOK, func(p *tab) { p.open("/clients").followText(shop).follow(`form[action$="/revoke"] button.final`) }},
		refusal("client-wrong", http.StatusUnprocessableEntity, func(p *tab) {
			p.open("/clients/new").fill("#name", unique("shop-")).fill("#expires_in_days", "never").click("input[value=proposer]").follow("main button.go")
		}),
	}
}
