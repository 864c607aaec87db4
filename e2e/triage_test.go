package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/execution/api"

	"github.com/chromedp/chromedp"
)

// An outage leaves forty refunds unknown. One click asks about all of them
// again; the desk knows most by now, and people are left with the few it does
// not know.
func TestAnOutageSettlesToTheFewThatNeedAPerson(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	const unknown, left = 40, 3
	tool := c.desk(t, "")
	var lost []api.Action
	for i := range unknown {
		currency := "EUR"
		if i%4 == 0 {
			currency = "CNY"
		}
		lost = append(lost, c.answered(t, c.lost(t, tool, 42, currency), "NOT_FOUND"))
	}
	queue := "/triage?tool=" + tool
	p := c.as(t, "ops", tool).open(queue).says("not found, not proof", "needs you", "Did this happen?")
	if rows := p.caseRows(); len(rows) != unknown {
		t.Fatalf("%d rows", len(rows))
	}
	if p.count(".group") == 1 { // unless a quarter of an hour began meanwhile
		p.says("40 cases", "420.00 CNY", "1,260.00 EUR")
	}
	for asked := 0; asked < unknown; { // a cause after the other
		n := 1
		if p.count(".bulk") == 0 {
			p.follow(".row .effect a").follow(`form[action$="/ask"] button`)
		} else {
			n = eval[int](p, `document.querySelector(".bulk").querySelectorAll("input[name=item]").length`)
			p.follow(`.bulk button[value=ask]`).says(fmt.Sprintf("%d of %d done.", n, n))
		}
		asked += n
		p.open(queue)
	}
	p.says("No unknown result fits the filter")
	p.open(queue + "&tab=asking")
	if rows := p.caseRows(); len(rows) != unknown {
		t.Fatalf("%d are asked about", len(rows))
	}
	for i, a := range lost {
		status := "SUCCEEDED"
		if i < left {
			status = "NOT_FOUND"
		}
		c.answered(t, a, status)
	}
	p.open(queue).says("needs you")
	if rows := p.caseRows(); len(rows) != left {
		t.Fatalf("%d are left", len(rows))
	}
	p.open(queue+"&tab=settled").says("found out by asking", "Done")
	p.open("/actions/" + lost[left].ID).says("Done")
	for _, a := range lost[:left] {
		p.open(caseOf(a)).settle("happened", "RF-"+a.ID, "Their desk finds it under this number.").says("Settled")
	}
	p.open(queue).says("No unknown result fits the filter")
}

// From the queue to a settled case, where the contract wants two people.
func TestTwoPeopleSettle(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.desk(t, `{"second_person_when":"payload.amount > 200.0"}`)
	a := c.unsaid(t, tool, 240)
	first, second := c.as(t, "ops", tool), c.as(t, "ops", tool)
	first.open("/triage?tool="+tool).says("240.00 EUR", "nobody has it").follow(".row .effect a").at(caseOf(a))
	first.says("Did this happen?", "Refund 240.00 EUR", "Result unknown: may or may not have happened", "is blocked").hasNo("input[name=verdict]:checked").hasNo("main button.go")
	first.follow(`form[action$="/take"] button`).says("you have it")
	second.open(caseOf(a)).says("has it").hasNo("form.settle")
	first.says("Another person has to agree").settle("happened", " ", "Their desk finds it.").want(http.StatusUnprocessableEntity).has("#evidence_ref-wrong")
	if first.value("#note") != "Their desk finds it." || first.count("input[name=verdict][value=happened]:checked") != 1 {
		t.Error("what was typed is gone")
	}
	first.settle("happened", "RF-77120", "").says("waiting for a second person", "Settled, waiting").hasNo("button[name=second]")
	if got := c.read(t, a.ID); got.State != "result_unknown" {
		t.Fatalf("one person was enough: %s", got.State)
	}
	second.open("/triage?tab=second&tool=" + tool).says("needs a second person").follow(".row .effect a")
	second.says("RF-77120", "Done, settled by").fill("#second_note", "I see it too.").follow("button[name=second][value=confirm]")
	second.says("Settled", "agreed").hasNo("form.settle")
	if got := c.read(t, a.ID); got.State != "applied" || got.Statement.Level != "completed" {
		t.Errorf("%s, %s", got.State, got.Statement.Level)
	}
	first.open("/triage?tab=settled&tool=" + tool).says("Done, settled by").open("/actions/" + a.ID).says("Done, settled by")
}

// A refund that people found done turns out to have been refused: the case is
// open again, and says what was known and what came later.
func TestAContradictionReopensAnAppliedAction(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.desk(t, "")
	a := c.refund(t, tool, 42, "EUR")
	sent := c.sent(t, a.ID)
	a = c.report(t, a.ID, sent, noAnswer)
	p := c.as(t, "ops", tool).open(caseOf(a)).settle("happened", "RF-1", "Their desk said so on the phone.").says("Settled")
	settled := caseOf(a)
	a = c.report(t, a.ID, sent, api.Receipt{Outcome: "FAILURE", HTTPStatus: 422})
	if a.State != "result_unknown" || caseOf(a) == settled {
		t.Fatalf("%s, case %s", a.State, caseOf(a))
	}
	p.open("/triage?tool=" + tool).follow(".row .effect a").at(caseOf(a))
	p.says("Two things are recorded that cannot both be true", "What was known", "Done, settled by", "RF-1", "Their desk said so on the phone.", "What came later", "422")
	p.says("Something is known of the outcome, so it is not sent again.").hasNo(`form[action$="/retry"]`)
	p.open(settled).says("Settled", "RF-1").hasNo("form.settle")
	p.open(caseOf(a)).settle("did_not_happen", "RF-1", "They had looked at another order.").says("They had looked at another order.")
}

// A provider's file is shown before it is recorded. What somebody else works on
// meanwhile is left as it is; the rest is recorded.
func TestAFileIsImportedWithAStaleItem(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	var tool string
	var paid, moved, absent api.Action
	var p, other *tab
	for range 2 { // a quarter of an hour that begins in between makes two groups of them, and the next is far
		tool = c.desk(t, "")
		paid, moved, absent = c.unsaid(t, tool, 42), c.unsaid(t, tool, 43), c.unsaid(t, tool, 44)
		p, other = c.as(t, "ops", tool), c.as(t, "ops", tool)
		if p.open("/triage?tool=" + tool); p.count(".bulk") == 1 {
			break
		}
	}
	if n := p.count(".bulk"); n != 1 {
		t.Fatalf("three cases of one cause stand in %d groups", n)
	}
	keys := eval[string](p, `fetch("/triage/keys?" + new URLSearchParams(new FormData(document.querySelector(".bulk")))).then(r => r.text())`)
	for _, a := range []api.Action{paid, moved, absent} {
		if !strings.Contains(keys, a.ExecutionKey+",,,") {
			t.Errorf("the keys lack %s:\n%s", a.ExecutionKey, keys)
		}
	}
	file := filepath.Join(t.TempDir(), "payhub.csv")
	text := fmt.Sprintf("key,outcome,reference,amount\n%s,SUCCEEDED,RF-1,42.00\n%s,SUCCEEDED,RF-2,43\n", paid.ExecutionKey, moved.ExecutionKey)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.follow(`.bulk button[formaction="/triage/import"]`).says("3 cases")
	p.within("choosing a file", func(ctx context.Context) error {
		return chromedp.Do(ctx, chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	})
	p.follow("main form button").says("nothing is recorded yet", "2 of 3", "RF-1", "RF-2", "which proves nothing")
	if got := c.read(t, paid.ID); got.State != "result_unknown" {
		t.Fatalf("a dry run recorded something: %s", got.State)
	}
	other.open(caseOf(moved)).follow(`form[action$="/take"] button`).says("you have it")
	p.follow("main form button.final").says("1 of 2 done.", "Something new is known")
	for a, state := range map[string]string{paid.ID: "applied", moved.ID: "result_unknown", absent.ID: "result_unknown"} {
		if got := c.read(t, a); got.State != state {
			t.Errorf("%s is %s, want %s", a, got.State, state)
		}
	}
	p.open("/actions/" + paid.ID).says("Done, settled by")
}

// Nobody can say what became of it, so a person has the same sent once more,
// once what was sent first cannot arrive any more. News are told without moving
// a row.
func TestSendingAgainAndNews(t *testing.T) {
	t.Parallel()
	c := orSkip(t, here.demo)
	tool := c.desk(t, `{"timeout":"1s","fence_after":"1s"}`)
	a := c.unsaid(t, tool, 42)
	p, watching := c.as(t, "ops", tool), c.as(t, "ops", tool)
	watching.open("/triage?tool=" + tool)
	eventually(t, "the fence to be over", func() bool { return p.open(caseOf(a)).count(`form[action$="/retry"]`) == 1 })
	p.says("Send again, same key (", "remembers it until", "does nothing twice").follow(`form[action$="/retry"] button`).says("Asked for. An executor sends it as soon as it can.")
	if got := c.ends(t, a.ID, api.Receipt{Outcome: "SUCCESS", Proves: "completed", HTTPStatus: 200}); got.State != "applied" || len(got.Attempts) != 2 {
		t.Errorf("%s after %d attempts", got.State, len(got.Attempts))
	}
	p.open(caseOf(a)).says("Settled", "Done")
	rows := watching.caseRows()
	c.unsaid(t, tool, 43)
	watching.waits("the news", `document.querySelector(".fresh a").innerText === "1 new, show it"`)
	if now := watching.caseRows(); len(now) != 1 || now[0] != rows[0] {
		t.Errorf("the rows moved: %q", now)
	}
	watching.follow(".fresh a").waits("no news any more", `document.querySelector(".fresh a").hidden`)
}
