package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// press presses keys, one after the other.
func (p *tab) press(keys ...string) *tab {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
	return p
}

// tabTo presses Tab until an element has the focus, and checks that the focus
// can be seen there.
func (p *tab) tabTo(selector string) *tab {
	p.t.Helper()
	p.has(selector)
	for range 80 {
		p.press(kb.Tab)
		if eval[bool](p, "document.activeElement.matches("+strconv.Quote(selector)+")") {
			if !eval[bool](p, `document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
				p.t.Errorf("the focus on %s cannot be seen", selector)
			}
			if covered := eval[bool](p, `(() => { const e = document.activeElement, r = e.getBoundingClientRect();
				const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2); return !top || !(e.contains(top) || top.contains(e)) })()`); covered {
				p.t.Errorf("%s has the focus and is out of view", selector)
			}
			return p
		}
	}
	p.t.Fatalf("Tab does not lead to %s on %s", selector, p.path())
	return p
}

// enterKey presses Enter, which leads to another page.
func (p *tab) enterKey() *tab {
	p.t.Helper()
	return p.leads("pressing Enter", chromedp.KeyEvent(kb.Enter))
}

// Everything a decider does, without a mouse.
func TestKeyboardOnly(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	first, second := c.price(t, tool, 105), c.price(t, tool, 106)
	p := c.browser(t).open("/actions/" + first.ID).at("/login")
	p.tabTo("#username").press("m", "i", "a").tabTo("#password")
	for _, r := range c.password(t, "mia") {
		p.press(string(r))
	}
	p.enterKey().want(http.StatusOK).at("/actions/" + first.ID)

	p.open("/approvals?tool="+tool).tabTo(".skip").press(kb.Enter).waits("the focus to skip to the content", `document.activeElement.id === "main"`)
	p.tabTo(`.row a[href="/actions/` + first.ID + `"]`).enterKey().at("/actions/" + first.ID)
	p.tabTo("#reason").press("o", "k").tabTo(rejectButton).tabTo(approveButton).enterKey().want(http.StatusOK).says("Recorded: you approved")
	if got := c.read(t, first.ID); got.State != "confirmed" || *got.Approvals.Decisions[0].Reason != "ok" {
		t.Errorf("recorded %+v", got)
	}

	p.open("/actions/"+second.ID).tabTo("#reason_code").press(kb.ArrowDown, kb.ArrowDown)
	p.waits("a reason to be chosen", `document.querySelector("#reason_code").value === "wrong_amount"`)
	p.tabTo(rejectButton).enterKey().want(http.StatusOK).says("Recorded: you rejected")
	if got := c.read(t, second.ID); got.State != "rejected" {
		t.Errorf("recorded %+v", got)
	}

	p.open("/approvals").tabTo(".menu summary").press(kb.Enter).waits("the menu to open", `document.querySelector(".menu").open`)
	p.press(kb.Escape).waits("the menu to close", `!document.querySelector(".menu").open && document.activeElement.matches(".menu summary")`)
}

// The main journey, in a browser that runs no script.
func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	a := c.shopPrice(t, "SKU-4412", 155)
	stale := c.price(t, c.tool(t, "", ""), 105)
	_, link := c.person(t, "support")
	p := c.browser(t)
	send(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.enter(link).says("SKU-4412 to 155")
	if eval[bool](p, `[...document.querySelectorAll("button.js")].some(b => !b.hidden)`) {
		t.Fatal("a script has run")
	}
	p.click("details.menu summary").says("Sign out") // a menu that needs no script
	p.follow(`.row a[href="/actions/` + a.ID + `"]`).follow(rejectButton).want(http.StatusUnprocessableEntity).says("Choose why you reject.")
	p.approve().want(http.StatusOK).says("Recorded: you approved")
	c.reaches(t, a.ID, "applied")
	p.open("/actions/" + a.ID).says("Done, read back")

	p.open("/actions/" + stale.ID)
	c.revise(t, stale, `{"product_id":"`+stale.Target.ID+`","new_price":7}`)
	p.approve().want(http.StatusConflict).says("Review the new version").follow("main .buttons .go").approve().want(http.StatusOK)
	c.reaches(t, stale.ID, "confirmed")
	p.follow(`.switch button[lang^=zh]`).says("审批")
}
