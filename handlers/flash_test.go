package handlers

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// said reads a stream until an event of this name says something.
func (b *browser) said(path, event string, wanted func(data string) bool) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+path, nil)
	if err != nil {
		b.T.Fatal(err)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.T.Fatal(err)
	}
	defer resp.Body.Close()
	named := false
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "event: "+event:
			named = true
		case named && wanted(strings.TrimPrefix(line, "data: ")):
			return
		case line == "":
			named = false
		}
	}
	b.T.Fatalf("%s never says the %s that is waited for", path, event)
}

// What was recorded after a decision tells what has become of it, when the page
// is looked at again and while it is looked at.
func TestADecisionTellsWhatBecameOfIt(t *testing.T) {
	e := newEnv(t)
	mia := e.as(e.Mia)
	a := e.proposed(stage.SetPrice)
	e.Approve(e.Read(a.ID), e.Mia)
	told := "/approvals?decided=" + a.ID
	mia.open(told).want(200).says("Recorded: you approved", "It is confirmed and can run now.").holds("stream?", "decided="+a.ID)
	claim := action.NewID("clm")
	approved := e.Read(a.ID)
	e.post(people.RoleExecutor, "/v1/confirmations/"+approved.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
	a2, attempt := e.Start(e.Read(a.ID), claim)
	e.Report(a2, stage.Receipt(attempt, claim, action.Success))
	mia.open(told).want(200).says("Recorded: you approved", "Done per shop, not read back").lacks("can run now")
	next := e.proposed(stage.SetPrice) // to which a decision leads on
	page := mia.open("/actions/"+next.ID+"?decided="+a.ID).want(200).says("Recorded: you approved").holds("data-now-of", "decided="+a.ID, "data-stream")
	mia.said("/actions/"+next.ID+"/stream?decided="+a.ID, "now", func(data string) bool { return data == "Done per shop, not read back" })
	mia.said("/approvals/stream?decided="+a.ID, "now", func(data string) bool { return data == "Done per shop, not read back" })
	e.as(e.Ken).open(told).want(200).lacks("Recorded: you approved") // it was not them
	rejected := e.proposed(stage.SetPrice)
	if _, err := e.Approvals.Decide(t.Context(), e.Mia.ID, rejected.ID, stage.Rejection(e.Read(rejected.ID))); err != nil {
		t.Fatal(err)
	}
	mia.open("/approvals?decided="+rejected.ID).want(200).says("Recorded: you rejected", "It will not run.")
	e.notBeforeItIsLookedAt(mia, page, next)
}

// notBeforeItIsLookedAt shows that what follows right upon another decision cannot
// be approved at once, whatever the browser does, and that nothing typed is lost.
func (e *env) notBeforeItIsLookedAt(b *browser, page answer, next api.Action) {
	e.T.Helper()
	served := shownField.FindSubmatch(page.body)
	if served == nil {
		e.T.Fatalf("the page does not say when it was served: %s", page.body)
	}
	at, err := time.Parse(time.RFC3339Nano, string(served[1]))
	if err != nil {
		e.T.Fatal(err)
	}
	form := func(decision string, after time.Duration) url.Values {
		return formOf("decision", decision, "proposal_hash", next.ProposalHash, "revision", "1", "op", page.op(), "reason", "All is well",
			"reason_code", "not_needed", "shown", at.Add(after).Format(time.RFC3339Nano))
	}
	b.send("/actions/"+next.ID+"/decisions", form("approve", time.Hour)).want(429).says("Not recorded. This is another proposal", "All is well").holds(`name="shown"`, `class="decide wait"`)
	b.send("/actions/"+next.ID+"/decisions", formOf("decision", "approve", "proposal_hash", next.ProposalHash, "revision", "1", "shown", "now")).want(422)
	if got := e.Read(next.ID); got.State != action.Proposed || len(got.Decisions) > 0 {
		e.T.Fatalf("it is %s with %d decisions", got.State, len(got.Decisions))
	}
	b.send("/actions/"+next.ID+"/decisions", form("approve", -time.Hour)).want(303)
	b.send("/actions/"+next.ID+"/decisions", form("approve", time.Hour)).want(303) // again what was recorded
	other := e.proposed(stage.SetPrice)
	next = other
	b.send("/actions/"+other.ID+"/decisions", form("reject", time.Hour)).want(303) // what stops something need not wait
}

var shownField = regexp.MustCompile(`name="shown" value="([^"]+)"`)

// A row says who else has its page open, while they have.
func TestARowSaysWhoIsLooking(t *testing.T) {
	e := newEnv(t)
	mia, ken := e.as(e.Mia), e.as(e.Ken)
	a := e.proposed(stage.SetPrice)
	path := "/actions/" + a.ID + "/stream"
	mia.open("/actions/" + a.ID).want(200).holds(path)
	ken.open("/approvals?tab=all").want(200).lacks("is looking")
	ctx, closePage := context.WithTimeout(context.Background(), 3*time.Minute)
	defer closePage()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, mia.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := mia.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil { // she is in before anything is sent
		t.Fatal(err)
	}
	ken.open("/approvals?tab=all").want(200).says(e.Mia.Name + " is looking")
	mia.open("/approvals?tab=all").want(200).lacks("is looking") // herself
	closePage()
	for deadline := time.Now().Add(3 * time.Minute); strings.Contains(ken.open("/approvals?tab=all").want(200).text(), "is looking"); {
		if time.Now().After(deadline) {
			t.Fatal("she is still said to look after her page is closed")
		}
	}
	e.as(e.PersonWith("far", people.Grants{Roles: []string{people.RoleSupport}, Tools: []string{stage.BigPrice}})).open(path).want(http.StatusNotFound)
}

// The page of unknown results is told how many came after it was read, in its
// tab and filter.
func TestUnknownResultsAreTold(t *testing.T) {
	e := newEnv(t)
	olga, _ := ops(e)
	b := e.as(olga)
	page := b.open("/triage?tool="+stage.SetPrice).want(200).holds("/triage/stream?", "tool="+stage.SetPrice)
	_, after, _ := strings.Cut(string(page.body), `data-stream="`)
	address, _, _ := strings.Cut(after, `"`)
	e.unknown(stage.SetPrice)
	e.unknown(stage.AskOther)
	b.said(strings.ReplaceAll(address, "&amp;", "&"), "new", func(data string) bool { return data == "1" })
	b.open("/triage/stream").want(http.StatusUnprocessableEntity)
	b.open("/triage?tab=settled").want(200).lacks("/triage/stream")
}
