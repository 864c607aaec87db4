package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/execution/api"

	"github.com/chromedp/cdproto/input"
)

// shopPrice proposes a price in the demo's shop, for a product of one test's
// own, and waits until the executor has read today's.
func (c *console) shopPrice(t *testing.T, product string, price float64) api.Action {
	t.Helper()
	version := "1"
	var asked struct {
		Version json.Number `json:"version"`
	}
	a := c.propose(t, api.Propose{Tool: "catalog.get_product", Payload: fmt.Appendf(nil, `{"product_id":%q}`, product)})
	done := c.reaches(t, a.ID, "applied")
	if json.Unmarshal(done.Result, &asked) == nil && asked.Version != "" {
		version = asked.Version.String()
	}
	a = c.propose(t, api.Propose{Tool: "catalog.set_price", Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":%v}`, product, price),
		ObjectVersion: &version, Reason: "Supplier invoice 2214 raised the cost."})
	eventually(t, "the executor to read the price of today", func() bool {
		a = c.read(t, a.ID) // whether the actor may is asked as well
		return slices.ContainsFunc(a.Observations, func(o api.ObservationState) bool { return o.Tool == "catalog.get_product" })
	})
	return a
}

// The main journey: in with a link, the queue, the page, approve; the executor
// runs, the shop is read back, the page tells the whole story.
func TestApproveThenDoneAndReadBack(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	a := c.shopPrice(t, "SKU-4411", 105)
	_, link := c.person(t, "support")
	p := c.browser(t)
	p.open("/approvals").at("/login").says("Sign in")
	p.open(link).says("Opening this page has not used it.")
	p.open(link).follow("main button").want(http.StatusOK).at("/approvals").says("SKU-4411 to 105")
	p.follow(`a[href="/actions/`+a.ID+`"]`).says("SKU-4411 to 105", "100", "Supplier invoice 2214 raised the cost.",
		"written by the program", "nothing else for this target", "Approve: SKU-4411 to 105", a.ProposalHash, a.PayloadHash)
	p.approve().want(http.StatusOK).says("Recorded: you approved SKU-4411 to 105")

	done := c.reaches(t, a.ID, "applied")
	if done.HandlerExecutions != 1 {
		t.Errorf("it ran %d times", done.HandlerExecutions)
	}
	p.open("/actions/"+a.ID).says("Done, read back", "What happened", "proposed it for Anna Schmidt", "approved revision 1", "every post-condition holds",
		"Your request is done.", "once, 1 attempt")
	p.hasNo(approveButton)
	p.open(link).want(http.StatusUnauthorized).says("This link was used before")
}

func TestSignInWithAPassword(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	p := c.browser(t)
	p.open("/history?outcome=applied").at("/login")
	p.fill("#username", "ada").fill("#password", "not her password").follow("main button")
	p.want(http.StatusUnauthorized).says("User name or password is wrong.")
	if p.value("#username") != "ada" || p.value("#password") != "" {
		t.Error("the name is not kept, or the password is")
	}
	p.fill("#password", c.password(t, "ada")).follow("main button")
	p.want(http.StatusOK).at("/history").says("History")
	if !strings.Contains(p.path(), "outcome=applied") {
		t.Errorf("back at %s", p.path())
	}
	p.click("details.menu summary").follow(`.menu form[action="/logout"] button`).at("/login").says("You are signed out.")
	p.open("/approvals").at("/login")
}

func TestRejectWithAReason(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	p := c.as(t, "support", tool)
	p.open("/actions/" + a.ID)
	p.choose("#reason_code", "wrong_amount").fill("#reason", "The invoice says 103.").follow(rejectButton)
	p.want(http.StatusOK).at("/approvals").says("Recorded: you rejected", "It will not run.")
	if got := c.read(t, a.ID); got.State != "rejected" || *got.Approvals.Decisions[0].ReasonCode != "wrong_amount" || *got.Approvals.Decisions[0].Reason != "The invoice says 103." {
		t.Errorf("recorded %+v", got)
	}
	p.open("/actions/"+a.ID).says("Rejected, this will not run", "Wrong amount", "The invoice says 103.", "Your request was not submitted.")

	again := c.propose(t, api.Propose{Tool: tool, Payload: a.Payload})
	p.open("/approvals").says("Rejected before")
	p.open("/actions/" + again.ID).says("The content is the same. The reason was: Wrong amount.")
}

func TestRejectWithoutAReasonKeepsTheNoteAndNamesTheField(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	p := c.as(t, "support", tool)
	p.open("/actions/"+a.ID).fill("#reason", "Ask them for the invoice.").follow(rejectButton)
	p.want(http.StatusUnprocessableEntity).says("Choose why you reject.")
	if p.value("#reason") != "Ask them for the invoice." {
		t.Errorf("the note is %q", p.value("#reason"))
	}
	p.has(`#reason_code[aria-invalid=true][aria-describedby=reason_code-wrong]`).has("#reason_code-wrong")
	p.click(`.stop a`).waits("the link to lead to the field", `location.hash === "#reason_code"`)
	c.stays(t, a)
	p.choose("#reason_code", "need_information").follow(rejectButton).want(http.StatusOK).says("Recorded: you rejected")
}

// REPORTS 4: a stale tab must not approve new content.
func TestReport04_AStaleTabApprovesNothing(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	p := c.as(t, "support", tool)
	p.open("/actions/"+a.ID).fill("#reason", "Agreed on the phone.")
	b := c.revise(t, a, strings.Replace(string(a.Payload), "105", "1050", 1))
	p.approve().want(http.StatusConflict)
	p.says("Not recorded. The content changed after you opened it: New price 105 → 1050. Review the new version.", "You saw", "Current", "Agreed on the phone.",
		"kept, it is filled in again", "every decision on revision 1 is void")
	p.hasNo(approveButton)
	c.stays(t, b)

	p.follow("main .buttons .go").want(http.StatusOK).says("to 1050").has(approveButton)
	if p.value("#reason") != "Agreed on the phone." {
		t.Errorf("the note is %q", p.value("#reason"))
	}
	p.approve().want(http.StatusOK).says("Recorded: you approved")
	if got := c.read(t, a.ID); got.State != "confirmed" || got.Approvals.Decisions[0].Revision != 2 {
		t.Errorf("recorded %+v", got)
	}
}

func TestExpiredWhileThePageIsOpen(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	p := c.as(t, "support", tool)
	var a api.Action
	for _, life := range []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second} { // as long as it takes to open the page
		a = c.lasting(t, tool, life)
		if p.open("/actions/"+a.ID).count(approveButton) == 1 {
			break
		}
	}
	p.fill("#reason", "Just in time?")
	c.reaches(t, a.ID, "expired")
	p.approve().want(http.StatusGone).says("Not recorded. Its time is over.", "Expired, nobody decided", "the program can propose it again").hasNo(approveButton)
	if got := c.read(t, a.ID); got.State != "expired" || len(got.Approvals.Decisions) > 0 {
		t.Errorf("recorded %+v", got)
	}
	p.open("/approvals").lacks("to 105")
}

func TestTwoApproversAtOnce(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	a := c.price(t, tool, 105)
	first, second := c.as(t, "support", tool), c.as(t, "support", tool)
	first.open("/actions/" + a.ID)
	second.open("/actions/"+a.ID).fill("#reason", "Looks right.")
	first.approve().want(http.StatusOK)
	winner := c.read(t, a.ID).Approvals.Decisions[0].Name
	second.approve().want(http.StatusConflict).says("Not recorded. "+winner+" has approved it already.", "Approved, not run yet").hasNo(approveButton)
	if got := c.read(t, a.ID); len(got.Approvals.Decisions) != 1 {
		t.Errorf("recorded %+v", got.Approvals)
	}
}

// Two are needed, and each has to prove again who they are.
func TestTwoApprovalsWithProof(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, twoStepUp, "")
	a := c.price(t, tool, 105)
	approve := func(username string) *tab {
		p := c.browser(t).open("/login").fill("#username", username).fill("#password", c.password(t, username)).follow("main button")
		p.open("/actions/"+a.ID).says("Two people from support, who prove again who they are", "Prove again who you are.").hasNo(approveButton)
		p.follow("#decide a").at("/account/prove")
		p.fill("#password", "something else").follow("main button").want(http.StatusForbidden).says("The password is wrong.")
		p.fill("#password", c.password(t, username)).follow("main button").at("/actions/" + a.ID).has(approveButton)
		return p.approve().want(http.StatusOK)
	}
	mia := approve("mia").says("It needs 1 more approval.")
	mia.open("/actions/"+a.ID).says("You approved this.", "1 approved, 1 more is needed").hasNo(approveButton)
	mia.open("/approvals?tab=others&tool="+tool).says("you approved it", "needs 1 more")
	if got := c.read(t, a.ID); got.State != "proposed" {
		t.Fatalf("after one approval it is %s", got.State)
	}
	approve("jonas").says("It is confirmed and can run now.")
	if got := c.read(t, a.ID); got.State != "confirmed" || got.Approvals.Given != 2 {
		t.Errorf("recorded %+v", got)
	}
}

// The second click of a double click must not decide the next action, which
// stands where the first stood; nor must any further one of somebody who goes on
// clicking, or holds a key down.
func TestAStraySecondClickDecidesNothing(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	first, next := c.price(t, tool, 105), c.price(t, tool, 106)
	p := c.as(t, "support", tool)
	p.open("/actions/" + first.ID).approve().want(http.StatusOK).at("/actions/" + next.ID)
	p.says("Recorded: you approved", "to 106")
	// The guard stands still wherever it is put, for as long as this takes.
	eval[any](p, `document.getAnimations().forEach(a => { a.pause(); a.currentTime = 0 })`)
	p.says("Another proposal: look at it first.")
	for i := range 20 {
		eval[any](p, fmt.Sprintf(`document.getAnimations().forEach(a => { a.currentTime = %d })`, i*799/19))
		p.clickWhere(approveButton)
		if got := p.path(); !strings.HasPrefix(got, "/actions/"+next.ID) {
			t.Fatalf("click %d leads to %s", i, got)
		}
		if at := eval[float64](p, `document.querySelector(".wait .go").getAnimations()[0].currentTime`); at != 0 {
			t.Fatalf("after click %d the guard is at %v ms, it has not begun anew", i, at)
		}
	}
	c.stays(t, next)
	eval[any](p, `document.getAnimations().forEach(a => a.finish())`)
	p.lacks("Another proposal: look at it first.")
	eval[any](p, `document.querySelector(".wait .go").focus()`)
	held := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13, AutoRepeat: new(true)}
	for range 3 {
		send(p, input.DispatchKeyEvent, held)
	}
	p.at("/actions/" + next.ID)
	c.stays(t, next)
	p.waits("the console to take an approval", `Date.now() - Date.parse(document.querySelector("[name=shown]").value) > 900`)
	p.approve().want(http.StatusOK).says("Recorded: you approved")
	if got := c.read(t, next.ID); got.State != "confirmed" {
		t.Errorf("after a click of one's own it is %s", got.State)
	}
	p.open("/actions/" + next.ID).hasNo(".wait")
}
