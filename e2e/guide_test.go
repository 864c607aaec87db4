package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/execution/api"
)

// play begins a step of the guide and ends on its action's page.
func (p *tab) play(step string) (actionID string) {
	p.t.Helper()
	p.open("/demo").follow("#" + step + " button[value=begin]").want(http.StatusOK)
	id, ok := strings.CutPrefix(p.path(), "/actions/")
	if !ok {
		p.t.Fatalf("playing %s ends at %s", step, p.path())
	}
	return id
}

// A newcomer walks through the guide: every danger happens, and is seen through.
func TestTheGuide(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	_, support := c.person(t, "support")
	_, ops := c.person(t, "ops")
	mia, olga := c.browser(t), c.browser(t)
	mia.enter(support)
	olga.enter(ops)

	// Those that need only a decision run meanwhile. Whatever is shown after a
	// decision leads back to the step.
	price := mia.play("price")
	olga.open("/demo").hasNo("#price button[value=begin]")
	mia.says("list applies from today", "Back to the guide: step 1").approve()
	mia.says("Recorded: you approved").followText("Back to the guide: step 1").at("/demo")
	refund := mia.play("timeout")
	mia.says("arrived broken").approve()
	half := mia.play("steps")
	mia.says("Those who watch the product").approve()
	message := mia.play("message")
	mia.says("accepted in memory only").approve()
	lied := mia.play("lie")
	mia.says("no longer needed").approve()

	ledger := mia.play("ledger")
	mia.says("REC-2026-09").approve()

	// What a page shows that was left open is not what is there now.
	stale := mia.play("stale")
	olga.open("/demo").has(`#stale a[target=_blank][href="/actions/` + stale + `"]`)
	olga.open("/demo").follow("#stale button[value=turn]").want(http.StatusOK).at("/demo")
	mia.approve().want(http.StatusConflict).says("Not recorded. The content changed after you opened it", "Back to the guide: step 2")
	if a := c.read(t, stale); a.State != "proposed" || a.Revision != 2 {
		t.Errorf("%s, revision %d", a.State, a.Revision)
	}

	if a := c.reaches(t, price, "applied"); a.HandlerExecutions != 1 {
		t.Errorf("the price was set %d times", a.HandlerExecutions)
	}
	mia.open("/demo").says("Done, read back", "Next: The content changes while you read").has("#price button[value=begin]").has(`#price a[href="#stale"]`)
	if a := c.reaches(t, refund, "applied"); a.HandlerExecutions != 1 || a.Receipts[0].Outcome != "UNKNOWN" {
		t.Errorf("paid %d times, receipts %+v", a.HandlerExecutions, a.Receipts)
	}
	if a := c.reaches(t, half, "result_unknown"); a.Statement.Level != "partial" || a.Steps[0].State != "done" || a.Steps[1].State != "not_done" {
		t.Errorf("in part: %+v, says %s", a.Steps, a.Statement.Level)
	}
	mia.open("/actions/"+half).says("Done in part", "Steps", "Not done: refused", "Part of your request was done.")
	olga.open("/demo").says("Now let the program propose the rest").follow("#steps button[value=turn]").want(http.StatusOK).at("/demo").
		says("The rest is proposed, and waits for a person.").hasNo("#steps button")
	rest := c.read(t, half).Links.LinkedBy
	if len(rest) != 1 || rest[0].Link != "resumes" {
		t.Fatalf("the rest is %+v", rest)
	}
	// The rest is turned down, wanted again, and approved.
	mia.open("/demo").follow("#steps .dots + .dots a").want(http.StatusOK).says("not told").
		choose("#reason_code", "not_needed").follow(rejectButton).want(http.StatusOK)
	mia.followText("Back to the guide: step 4").at("/demo").follow("#steps button[value=turn]").want(http.StatusOK)
	mia.follow("#steps .dots + .dots a").want(http.StatusOK).approve()
	rest = c.read(t, half).Links.LinkedBy
	slices.SortFunc(rest, func(a, b api.LinkedAction) int { return strings.Compare(b.ActionID, a.ActionID) }) // the newest
	if a := c.reaches(t, rest[0].ActionID, "applied"); a.HandlerExecutions != 1 || len(a.Steps) != 1 || a.Steps[0].Name != "notify" {
		t.Errorf("the rest took %d requests: %+v", a.HandlerExecutions, a.Steps)
	}
	c.reaches(t, half, "applied")
	mia.open("/demo").says("Only the announcement was sent; both actions are closed")
	if a := c.reaches(t, message, "accepted"); a.Statement.Level != "accepted" {
		t.Errorf("of a message in memory may be said: %s", a.Statement.Level)
	}
	c.reaches(t, ledger, "applied")
	// Posting needs two people; after it the month is closed, and that is said
	// where it could be played.
	posted := mia.play("ledger")
	mia.says("Post an adjustment").approve()
	c.as(t, "support").open("/actions/" + posted).approve()
	c.reaches(t, posted, "applied")
	mia.open("/demo").says("The month is closed", "That was the last one.").hasNo("#ledger button")
	c.reaches(t, lied, "result_unknown")
	olga.open("/demo").says("Result unknown").follow(`#lie a[href^="/triage/"]`).want(http.StatusOK).says("cancel", "Back to the guide: step 6")
}
