package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/action"
	"countersign/execution/api"
)

// The words of both languages, as they were agreed.
func TestBothLanguages(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.priceOf(t, tool, "SKU-7788", 105)
	p := c.as(t, "support", tool).open("/actions/" + a.ID)
	english := []string{"Waiting for approval, not submitted yet", "Approve: SKU-7788 to 105", "Reject, this will not run"}
	chinese := []string{"待审批，尚未提交", "批准：SKU-7788 改为 105", "拒绝，不执行"}
	p.says(english...)
	p.follow(".switch button").at("/actions/" + a.ID).says(chinese...).lacks(english...)
	if lang := eval[string](p, "document.documentElement.lang"); lang != "zh-Hans" {
		t.Errorf("the page says it is in %q", lang)
	}
	p.follow(rejectButton).want(http.StatusUnprocessableEntity).says("请选择").lacks("Choose why you reject.")
	p.follow(".switch button").says(english...).lacks(chinese...)
	p.follow(".switch button").approve().says("已记录")
	c.ends(t, a.ID, api.Receipt{Outcome: "UNKNOWN", HTTPStatus: 503})
	p.open("/actions/" + a.ID).says("结果未知：可能已执行，也可能未执行")
	p.follow(".switch button").says("Result unknown: may or may not have happened", "您的请求结果目前无法确认。")
}

// News are told and not pushed in between: rows stay where they are until
// somebody asks.
func TestNewsAreToldAndRowsStay(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	first := c.price(t, tool, 105)
	p := c.as(t, "support", tool).open("/approvals")
	rows := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll(".row .effect a")].map(a => a.getAttribute("href"))`)
	}
	if got := rows(); len(got) != 1 {
		t.Fatalf("%d rows", len(got))
	}
	urgent := c.lasting(t, tool, 1800e9)
	p.waits("the news", `document.querySelector(".fresh a").innerText === "1 new, show it"`)
	if got := rows(); len(got) != 1 || got[0] != "/actions/"+first.ID {
		t.Errorf("the rows moved: %q", got)
	}
	c.price(t, tool, 107)
	p.waits("more news", `document.querySelector(".fresh a").innerText === "2 new, show them"`)
	p.follow(".fresh a").waits("no news any more", `document.querySelector(".fresh a").hidden`)
	if got := rows(); len(got) != 3 || got[0] != "/actions/"+urgent.ID {
		t.Errorf("then there are %q", got)
	}

	// What expires says so by the second, and moves nothing.
	before := eval[string](p, `document.querySelector(".row .left").innerText`)
	p.waits("the time to go on", `document.querySelector(".row .left").innerText !== `+fmt.Sprintf("%q", before))

	// A button that says for a moment what was done says its name again, however often it is clicked.
	p.open("/actions/" + first.ID)
	eval[bool](p, `(() => {
		const b = document.querySelector("[data-copy]"), s = b.querySelector("span");
		navigator.clipboard.writeText = async () => {};
		new MutationObserver(() => { b.dataset.said ??= s.innerText }).observe(s, { childList: true, characterData: true, subtree: true });
		b.click(); b.click();
		return true
	})()`)
	p.waits("it to say so, and then its name", `document.querySelector("[data-copy]").dataset.said === "Copied" && document.querySelector("[data-copy] span").innerText === "Copy"`)
}

func TestHistoryFindsByAnyIdOrHash(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a, other := c.price(t, tool, 105), c.price(t, tool, 106)
	p := c.as(t, "support", tool)
	p.open("/actions/" + a.ID).approve()
	a = c.ends(t, a.ID, api.Receipt{Outcome: "SUCCESS", Proves: "completed", HTTPStatus: 200})
	for what, ref := range map[string]string{"id": a.ID, "payload hash": a.PayloadHash, "proposal hash": a.ProposalHash, "run key": a.ExecutionKey,
		"request": a.RequestID, "hash without its prefix": strings.TrimPrefix(a.PayloadHash, "sha256:")} {
		p.open("/history").fill("#q", ref).follow(".filter button")
		if p.count("tbody tr") != 1 || p.count(`a[href="/actions/`+a.ID+`"]`) != 1 {
			t.Errorf("the %s %s finds:\n%s", what, ref, p.text())
		}
	}
	p.open("/history").fill("#q", action.NewID("act")).follow(".filter button").says("Nothing fits the filter")
	p.follow("main .empty a").at("/history").has(`a[href="/actions/` + other.ID + `"]`)
	p.open("/history").choose("#outcome", "applied").choose("#tool", tool).follow(".filter button")
	p.says("1 shown, that is all.").hasNo(`a[href="/actions/` + other.ID + `"]`)

	// The file has the same rows, for a spreadsheet.
	csv := eval[string](p, `fetch([...document.querySelectorAll("main a")].find(a => a.getAttribute("href").startsWith("/history.csv")).href).then(async r =>
		r.headers.get("content-disposition") + "\n" + [...new Uint8Array(await r.clone().arrayBuffer())].slice(0, 3).join() + "\n" + await r.text())`)
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "attachment") || lines[1] != "239,187,191" || !strings.Contains(lines[3], a.ID) || !strings.Contains(lines[3], "applied") {
		t.Errorf("the file:\n%s", csv)
	}
	p.open("/history").fill("#approver", "nobody-here").follow(".filter button")
	p.want(http.StatusUnprocessableEntity).says("Nobody here has this name.").lacks("Nothing fits the filter")
	if p.value("#approver") != "nobody-here" {
		t.Error("what was typed is gone")
	}
}

func TestToolsPage(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, twoSupport, "")
	p := c.as(t, "auditor")
	p.open("/tools").fill("input[name=q]", strings.Split(tool, ".")[0]).follow(".filter button").says("Change a shelf price", "Two people from support.")
	p.followText("Change a shelf price").at("/tools/"+tool).says("What it takes", "product_id", "Assumed", "The contract does not say these.", "Version 1", "curl -X POST")
	c.call(t, http.StatusCreated, c.Keys.Admin, http.MethodPut, "/v1/tools/"+tool, map[string]any{"name": tool, "mode": "write",
		"input_schema": map[string]any{"type": "object", "properties": map[string]any{"sku": map[string]any{"type": "string"}}},
		"execution":    map[string]any{"proves": "accepted"}}, nil)
	p.open("/tools/"+tool).says("Version 2", "Version 1").followText("Compare").says("From version 1 to 2", "sku")
	p.open("/tools/"+tool+"?version=1").says("product_id", "Two people from support.")
	p.open("/tools/no.such_tool").want(http.StatusNotFound)
}

func TestAnAuditorSeesAndDecidesNothing(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	p := c.as(t, "auditor")
	p.open("/approvals").says("Nothing needs you")
	p.open("/approvals?tab=all&tool=" + tool).follow(".row a")
	p.says("You cannot decide this.", "Why not you", "Your roles do not approve.").hasNo(approveButton).hasNo(rejectButton).hasNo("form.decide")
	// Whoever makes up the form that the page does not have is refused too.
	p.leads("sending a form that is not there", evalStep(`(() => { const f = document.createElement("form"); f.method = "post"; f.action = location.pathname + "/decisions";
		for (const [k, v] of Object.entries({decision: "approve", proposal_hash: "`+a.ProposalHash+`", revision: "1"})) { const i = document.createElement("input"); i.name = k; i.value = v; f.append(i) }
		document.body.append(f); f.submit() })()`))
	p.want(http.StatusForbidden).says("Your roles do not allow this.")
	c.stays(t, a)
}

// Who sees which page.
func TestPagesByRole(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	everybody := []string{"/approvals", "/history", "/overview", "/tools", "/account"}
	looking, comparing := []string{"/people", "/clients"}, []string{"/reconciliation"}
	changing := []string{"/people/new", "/clients/new"}
	for role, may := range map[string][]string{"support": everybody, "ops": slices.Concat(everybody, comparing), "auditor": slices.Concat(everybody, looking, comparing),
		"admin": slices.Concat(everybody, looking, comparing, changing)} {
		p := c.as(t, role)
		seen := map[string]bool{}
		for _, path := range may {
			p.open(path).want(http.StatusOK).at(path)
			seen[path] = true
		}
		for _, path := range slices.Concat(looking, comparing, changing) {
			if !seen[path] {
				p.open(path).want(http.StatusForbidden).says("You may not do this")
			}
			if menu := p.count(`.menu a[href="`+path+`"]`) > 0; menu && !seen[path] {
				t.Errorf("the menu of %s leads to %s", role, path)
			}
		}
	}
	nobody := c.browser(t)
	for _, path := range slices.Concat(everybody, looking, comparing, changing) {
		nobody.open(path).at("/login").says("Sign in")
	}
}

func TestSignInIsThrottled(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	p := c.browser(t).open("/login")
	name := unique("nobody-")
	for range 30 {
		p.fill("#username", name).fill("#password", "guess").follow("main button")
		if p.status == http.StatusTooManyRequests {
			break
		}
		p.want(http.StatusUnauthorized)
	}
	p.want(http.StatusTooManyRequests).says("Too many wrong tries. Wait a little, then sign in.")
	if p.value("#username") != name {
		t.Error("the name is not kept")
	}
	p.fill("#username", "wei").fill("#password", c.password(t, "wei")).follow("main button").want(http.StatusOK).at("/approvals")
}

func TestASessionEndsWhenItsPersonIsDisabled(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	username, link := c.person(t, "support", tool)
	p := c.browser(t).enter(link).open("/actions/" + a.ID)
	admin := c.as(t, "admin")
	admin.open("/people").followText(username).follow("button.final").says("Disabled")
	p.approve().at("/login").says("Your session is over.")
	c.stays(t, a)
	admin.follow(`form[action$="/enable"] button`).says("They can sign in again.")
	p.open("/approvals").at("/login")
}
