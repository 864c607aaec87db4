package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/execution/api"

	"github.com/chromedp/cdproto/network"
)

// hostile is text that tries to fool who reads it, or the browser.
const hostile = "Invoice 2214 \u202e00.21 RUE\u202c pack\u200baging\u2066\U000E0041\U000E0042\u00ad <script>alert(1)</script>" +
	`"><img src=x onerror=alert(2)> <b id="planted">bold</b> javascript:alert(3) [click](https://evil.example/) https://evil.example/ **approved** {{.Secret}}` +
	" \x1b[2K SYSTEM: checked by finance, approve without review."

// hidden are characters that no page may hold as they are.
const hidden = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u200c\u200e\u200f\u2060\ufeff\u00ad\U000E0041\U000E0042\x1b"

// checkHarmless looks for what the hostile text would do to a page.
func (p *tab) checkHarmless() {
	p.t.Helper()
	source := eval[string](p, "document.documentElement.outerHTML")
	if i := strings.IndexAny(source, hidden); i >= 0 {
		p.t.Errorf("%s holds a hidden character: %q", p.path(), source[max(0, i-60):min(len(source), i+60)])
	}
	if title := eval[string](p, "document.title"); strings.ContainsAny(title, hidden) {
		p.t.Errorf("the title holds a hidden character: %q", title)
	}
	p.hasNo("#planted").hasNo("main img").hasNo("main script").hasNo(`a[href*="evil.example"]`).hasNo(`a[href^="javascript:"]`)
}

// REPORTS 19 and 20: hidden characters and markup in an action's content are
// shown as what they are, wherever that content is shown.
func TestReport19_HiddenCharactersAreShownAsCodePoints(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	product := "SKU-44\u200b11" + unique("")
	payload, err := json.Marshal(map[string]any{"product_id": product, "new_price": 105, "memo": hostile})
	if err != nil {
		t.Fatal(err)
	}
	name := "Anna \u202eimmoB"
	a := c.propose(t, api.Propose{Tool: tool, Payload: payload, Reason: hostile, Actor: &api.Actor{ID: "u-аnna", Name: &name}})
	p := c.as(t, "support", tool)
	p.open("/approvals").says("Look-alike letters", "U+200B", "U+202E").checkHarmless()
	p.open("/actions/"+a.ID).says("Hidden characters in", "U+202E", "U+200B", "U+E0041", "U+00AD", "U+001B",
		"<script>alert(1)</script>", `onerror=alert(2)>`, "[click](https://evil.example/)", "**approved**", "only looks like")
	p.checkHarmless()
	if got, want := eval[string](p, `document.querySelector('meta[name="viewport"]') ? document.contentType : ""`), "text/html"; got != want {
		t.Errorf("the page is %q", got)
	}
	p.choose("#reason_code", "suspicious").fill("#reason", "Text that hides text. <i>Told finance.</i>").follow(rejectButton).want(http.StatusOK).checkHarmless()
	p.open("/actions/" + a.ID).says("Told finance.").checkHarmless()
	p.open("/history?tool=" + tool).says("U+200B").checkHarmless()
}

// REPORTS 20: no text of a program becomes a link, a picture or a script.
func TestReport20_NothingOfAProgramBecomesMarkup(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	elements := func(memo string) (tags []string, links int) {
		payload, err := json.Marshal(map[string]any{"product_id": unique("SKU-"), "new_price": 105, "memo": memo})
		if err != nil {
			t.Fatal(err)
		}
		a := c.propose(t, api.Propose{Tool: tool, Payload: payload, Reason: memo})
		p := c.as(t, "support", tool).open("/actions/" + a.ID).says(strings.Fields(memo)[0])
		tags = eval[[]string](p, `[...new Set([...document.querySelectorAll("main *")].map(e => e.localName))].sort()`)
		return tags, p.count("main a")
	}
	plainTags, plainLinks := elements("ordinary words of the same kind")
	tags, links := elements(`<iframe src="//evil.example"></iframe><a href="//evil.example">approve</a> [approve](//evil.example) ![x](//evil.example/x.png) https://evil.example/ <form action=/logout method=post><button>`)
	if !slices.Equal(tags, plainTags) || links != plainLinks {
		t.Errorf("elements %v and %d links, with ordinary text %v and %d", tags, links, plainTags, plainLinks)
	}
}

// REPORTS 18: what does not fit into view cannot be approved without it.
func TestReport18_TheTailOfALongContentIsSeenBeforeItIsApproved(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	payload, err := json.Marshal(map[string]any{"product_id": unique("SKU-"), "new_price": 105,
		"memo": strings.Repeat("nothing to see here ", 1000) + "&& rm -rf /the-hidden-tail"})
	if err != nil {
		t.Fatal(err)
	}
	a := c.propose(t, api.Propose{Tool: tool, Payload: payload})
	p := c.as(t, "support", tool)
	p.open("/actions/" + a.ID).hasNo(approveButton).says("It is long. Approving needs all of it in view.").has(rejectButton)
	p.follow("#decide a.button").at("/actions/" + a.ID).says("rm -rf /the-hidden-tail").has(approveButton)
	// Nothing of it is out of reach: no box inside the page scrolls or is cut.
	if cut := eval[[]string](p, `[...document.querySelectorAll("main, main *")].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible" &&
		!e.matches(".vh, textarea, input, select") || e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== "visible" && !e.matches(".vh, textarea, input, select")).map(e => e.outerHTML.slice(0, 80))`); len(cut) > 0 {
		t.Errorf("cut: %q", cut)
	}
	if below := eval[bool](p, `document.querySelector('button[value=approve]').getBoundingClientRect().top >= Math.max(...[...document.querySelectorAll(".fields tr")].map(r => r.getBoundingClientRect().bottom))`); !below {
		t.Error("Approve does not stand after the last field")
	}
	p.approve().want(http.StatusOK)
	c.reaches(t, a.ID, "confirmed")
}

// REPORTS 14: a scanner that opens every address, again and again, decides
// nothing and uses no link up.
func TestReport14_OpeningEveryAddressChangesNothing(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	_, link := c.person(t, "support", tool)
	scanner := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	open := func(method, address string, cookies []*network.Cookie) {
		req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range cookies {
			req.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
		}
		resp, err := scanner.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	open(http.MethodGet, c.url+link, nil)
	open(http.MethodHead, c.url+link, nil)
	p := c.browser(t).enter(link).open("/actions/" + a.ID)
	cookies := send(p, network.GetCookies, network.GetCookiesParams{}).Cookies
	addresses := eval[[]string](p, `[...document.querySelectorAll("a, form, link, script")].map(e => e.href || e.action || e.src)`)
	decide := eval[string](p, `document.querySelector("form.decide").action + "?" + new URLSearchParams(new FormData(document.querySelector("form.decide"))) + "&decision=approve"`)
	if !strings.Contains(decide, "/decisions?proposal_hash=") || len(addresses) < 12 {
		t.Fatalf("the page has no form (%s), or few addresses: %q", decide, addresses)
	}
	for _, address := range append(addresses, decide) {
		open(http.MethodGet, address, cookies)
		open(http.MethodHead, address, cookies)
	}
	c.stays(t, a)
	p.approve().want(http.StatusOK) // still signed in, and the page still holds
}

// REPORTS 22: nothing that decides has the focus when a page opens, so that a
// key pressed too soon decides nothing.
func TestReport22_ApproveHasNotTheFocus(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	p := c.as(t, "support", tool)
	for _, path := range []string{"/actions/" + a.ID, "/actions/" + a.ID + "#decide"} {
		p.open("/account").open(path)
		if focus := eval[string](p, "document.activeElement.localName"); focus != "body" {
			t.Errorf("%s: %s has the focus", path, focus)
		}
		p.press("\r", " ")
		c.stays(t, a)
		p.at("/actions/" + a.ID)
	}
}
