package handlers

import (
	"context"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
	"countersign/store/storetest"
)

var (
	tiles     = regexp.MustCompile(`(?s)<li class="tile"><h2><a href="([^"]+)">.*?<p class="n">([^<]+)</p>`)
	inTables  = regexp.MustCompile(`<td class="end"><a href="([^"]+)">([^<]+)</a>`)
	barLinks  = regexp.MustCompile(`<a href="([^"]+)" aria-label="(\d+)`)
	expiring  = regexp.MustCompile(`<a class="inner" href="([^"]+)">(\d+)`)
	listItems = regexp.MustCompile(`<li class="row|<td class="whole">`)
)

// counted are the numbers of a page that lead to a list of as many rows.
func counted(page answer) map[string]int {
	page.t.Helper()
	numbers := map[string]int{}
	for _, pattern := range []*regexp.Regexp{tiles, inTables, barLinks, expiring} {
		for _, m := range pattern.FindAllSubmatch(page.body, -1) {
			n, err := strconv.Atoi(string(m[2]))
			address := html.UnescapeString(string(m[1]))
			if before, seen := numbers[address]; err != nil || seen && before != n {
				page.t.Fatalf("%s leads to %q and to %d", address, m[2], before)
			}
			numbers[address] = n
		}
	}
	return numbers
}

// Every number of the overview leads to a list of exactly as many rows, and what
// a viewer may not see is not counted.
func TestEveryNumberOfTheOverviewLeadsToItsRows(t *testing.T) {
	e := newEnv(t)
	olga, _ := ops(e)
	e.Tool(stage.Contract("shop.refund", "", "") + `display: { money: { /new_price: { currency: EUR, minor_units: 2, moves: true } } }`)
	limited := e.PersonWith("lim", people.Grants{Roles: []string{people.RoleSupport}, Tools: []string{stage.BigPrice}})
	b := e.as(olga)
	b.open("/overview").want(200).says("no executor was ever seen", "no executor says how its systems answer", "nothing is paused", "Nothing was decided", "No result is unknown now.")

	e.proposed(stage.SetPrice)
	soonOver := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	soonOver.ExpiresIn = stage.Seconds(200)
	e.Propose(soonOver)
	stuck := e.proposed(stage.TwoRoles) // nobody is in finance
	e.confirmed(stage.SetPrice)
	e.confirmed(stage.SetPrice)
	e.unknown("shop.refund")
	e.unknown("shop.refund")
	asked := e.unknown(twoSettle) // still asked about
	e.pause(approvals.PauseTool, stage.ReadBack)
	e.post(people.RoleExecutor, "/v1/executors", api.Executor{Instance: "one", Name: "executor-1", Tools: []string{"shop.*"}, Systems: []api.SystemHealth{
		{System: "https://shop.example", Reads: "closed", Writes: "closed"},
		{System: "https://pay.example/\u202ev2", Reads: "closed", Writes: "open", Since: new(time.Now())}}}).want(200)

	page := b.open("/overview").want(200).says("1 expires within 5 min", "210.00 EUR", "executor last seen", "Half were decided within", "3 open now",
		"needs one person from support and one person from finance, 2 can", "does not answer what executor-1 writes", "refunds are wrong since noon").lacks("https://shop.example", "\u202e")
	numbers := counted(page)
	for address, want := range map[string]int{"/approvals?tab=all": 3, "/approvals?tab=all&expiring=1": 1, "/approvals?tab=all&nobody=1": 1,
		"/history?outcome=confirmed": 2, "/triage": 2, "#stopped": 2, "/triage?age=0-15": 2, "/triage?age=0-15&tab=asking": 1} {
		if n, shown := numbers[address]; !shown || n != want {
			t.Errorf("%s is %d (%v), want %d", address, n, shown, want)
		}
	}
	decided := 0
	for address, n := range numbers {
		if strings.HasPrefix(address, "#") {
			continue
		}
		if strings.Contains(address, "took=") {
			decided += n
		}
		list := b.open(address).want(200)
		if rows := len(listItems.FindAll(list.body, -1)); rows != n {
			t.Errorf("%s shows %d rows, the overview says %d", address, rows, n)
		}
	}
	if decided != 5 {
		t.Errorf("%d decided proposals in the chart, want 5", decided)
	}
	b.open("/approvals?tab=all&nobody=1").holds(stuck.ID)
	b.open("/triage?age=0-15&tab=asking").holds(*asked.CaseID)
	b.open("/triage?age=1440-").says("No unknown result fits the filter")

	mine := counted(e.as(limited).open("/overview").want(200).lacks(stage.ReadBack, "EUR"))
	for address, n := range mine {
		if address == "#stopped" {
			n-- // the executor serves their tool
		}
		if n != 0 {
			t.Errorf("with limits, %s is %d", address, n)
		}
	}
}

// What was decided long ago, or by nobody, is told apart, at the moment the
// content was shown last.
func TestTimeToDecideCountsFromTheLastRevision(t *testing.T) {
	e := newEnv(t)
	quick := e.proposed(stage.SetPrice)
	revised := e.proposed(stage.SetPrice)
	missed := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	missed.ExpiresIn = stage.Seconds(60)
	gone := e.Propose(missed)
	e.Approve(e.Read(quick.ID), e.Mia)
	later := e.later(40 * time.Minute)
	key := e.keys[people.RoleProposer]
	send1(t, later.Client(), later.URL, request{method: post, path: "/v1/actions/" + revised.ID + "/revisions", key: key, body: api.Revise{Payload: revised.Payload},
		header: map[string]string{"If-Match": quotedVersion(revised.Version)}}).want(201)
	now := e.Open(storetest.Skewed(e.DSN, 50*time.Minute), store.Options{MaxConns: 2})
	if _, err := now.Approvals.Decide(context.Background(), e.Mia.ID, revised.ID, stage.Ballot(e.Read(revised.ID))); err != nil {
		t.Fatal(err)
	}
	if err := action.Sweep(context.Background(), now.DB, now.DB.Due, 10); err != nil {
		t.Fatal(err)
	}
	b := e.as(e.Admin)
	for bucket, id := range map[string]string{"0-5": quick.ID, "300-900": revised.ID, "nobody": gone.ID} {
		page := b.open("/history?took=" + bucket).want(200).holds(id)
		if n := len(listItems.FindAll(page.body, -1)); n != 1 {
			t.Errorf("%s shows %d rows", bucket, n)
		}
	}
	b.open("/history?took=900-").says("Nothing fits the filter")
}

func TestExecutorsSayNothingThatCannotBeKept(t *testing.T) {
	e := newEnv(t)
	good := api.Executor{Instance: "one", Tools: []string{"shop.*"}, Systems: []api.SystemHealth{{System: "https://shop.example", Reads: "closed", Writes: "closed"}}}
	for name, spoil := range map[string]func(*api.Executor){
		"no instance": func(x *api.Executor) { x.Instance = "" },
		"long":        func(x *api.Executor) { x.Name = strings.Repeat("x", 129) },
		"control":     func(x *api.Executor) { x.Tools = []string{"a\nb"} },
		"state":       func(x *api.Executor) { x.Systems[0].Reads = "ajar" },
		"many":        func(x *api.Executor) { x.Tools = strings.Split(strings.Repeat("t,", 501), ",") },
	} {
		bad := good
		bad.Systems = append([]api.SystemHealth{}, good.Systems...)
		spoil(&bad)
		if p := e.post(people.RoleExecutor, "/v1/executors", bad).refused(action.InvalidArgument); len(p.Errors) == 0 {
			t.Errorf("%s: %s", name, fmt.Sprint(p))
		}
	}
	e.post(people.RoleExecutor, "/v1/executors", good).want(200)
	e.post(people.RoleExecutor, "/v1/executors", good).want(200)
	known, err := e.DB.Executors(context.Background(), people.Viewer{All: true}, time.Minute, 10)
	if err != nil || len(known) != 1 || known[0].Name != "executor" || len(known[0].Systems) != 1 {
		t.Errorf("%+v, %v", known, err)
	}
	if err := e.DB.TidyExecutors(context.Background()); err != nil {
		t.Error(err)
	}
}
