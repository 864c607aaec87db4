package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"countersign/store/storetest"
)

// many is how many actions a long queue has; a program may have no more of them
// open at a time.
const many = 10_000

// Ten thousand actions wait: the queue and the history show a page of them, and
// lead on.
func TestTenThousandRows(t *testing.T) {
	t.Parallel()
	orSkip(t, here.browser)
	c := serve(t)
	_, link := c.person(t, "admin")
	admin := c.browser(t).enter(link)
	c.Keys.Admin = admin.newClient("deployer", "admin")
	tool := c.tool(t, "", "")
	c.Keys.Proposer = admin.newClient("agent", "proposer")
	c.proposeMany(t, tool, many)
	_, link = c.person(t, "support")
	p := c.browser(t).enter(link).says("99+", "50 shown, sorted by time left")
	seen := map[string]bool{}
	for range 4 {
		for _, row := range eval[[]string](p, `[...document.querySelectorAll(".row .effect a")].map(a => a.getAttribute("href"))`) {
			if seen[row] {
				t.Errorf("%s stands on two pages", row)
			}
			seen[row] = true
		}
		p.follow(".pager a")
	}
	if len(seen) != 200 {
		t.Errorf("four pages show %d actions", len(seen))
	}
	p.says("Back to the first page").has(".row")
	p.open("/history").says("50 shown, more exist.").follow(".pager a").says("50 shown, more exist.").has("tbody tr:nth-child(50)")
	p.open("/overview").says("1,000+", "that expire first", "oldest at least").follow(`.tile a[href="/approvals?tab=all"]`).says("50 shown, sorted by time left")
	p.open("/approvals?target=SKU-777").says("1 shown").follow(".row a").says("SKU-777 to 105").approve().says("Recorded: you approved")
}

// Nothing is unknown, one result is, ten thousand are: the page shows so many
// that an outage is one page, and leads on.
func TestTenThousandUnknownResults(t *testing.T) {
	t.Parallel()
	orSkip(t, here.browser)
	dsn := storetest.New(t)
	c := serve(t, "DATABASE_URL="+dsn, "COUNTERSIGN_SECRET="+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	_, link := c.person(t, "admin")
	admin := c.browser(t).enter(link)
	c.Keys.Admin = admin.newClient("deployer", "admin")
	c.Keys.Proposer, c.Keys.Executor, c.Keys.Reader = admin.newClient("agent", "proposer"), admin.newClient("executor", "executor"), admin.newClient("reader", "reader")
	tool := c.desk(t, "")
	_, link = c.person(t, "ops")
	p := c.browser(t).enter(link).open("/triage").says("No unknown result needs a person")
	one := c.unsaid(t, tool, 42)
	p.open("/triage").says("1 shown", "42.00 EUR", "needs you").hasNo(".group")
	storetest.Multiply(t, storetest.Owner(dsn), one.ID, many)
	p.open("/triage").says("99+", "200 shown", "Money is never summed across currencies.")
	if rows := p.caseRows(); len(rows) != 200 {
		t.Errorf("%d rows", len(rows))
	}
	items := `[...document.querySelectorAll("input[name=item]")].map(i => i.value)`
	first := eval[[]string](p, items)
	p.follow(".pager a").says("200 shown", "Back to the first page")
	if second := eval[[]string](p, items); len(first) == 0 || len(second) == 0 || first[0] == second[0] && first[len(first)-1] == second[len(second)-1] {
		t.Errorf("the second page is the first: %d and %d items", len(first), len(second))
	}
	p.open("/triage?q=" + one.ExecutionKey).says("1 shown").follow(".row .effect a").says("Result unknown")
}

// proposeMany proposes n actions, several at a time.
func (c *console) proposeMany(t *testing.T, tool string, n int) {
	t.Helper()
	const workers = 8
	transport := &http.Transport{MaxIdleConnsPerHost: workers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	failed := make(chan error, workers)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := w; i < n; i += workers {
				if err := c.proposeOne(client, tool, i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	running.Wait()
	close(failed)
	for err := range failed {
		t.Fatal(err)
	}
}

func (c *console) proposeOne(client *http.Client, tool string, i int) error {
	body := fmt.Sprintf(`{"tool":%q,"actor":{"id":"u-anna-schmidt"},"payload":{"product_id":"SKU-%d","new_price":105}}`, tool, i)
	req, err := http.NewRequest(http.MethodPost, c.url+"/v1/actions", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Keys.Proposer)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("many-%d", i))
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("proposal %d: %d %s (%v)", i, resp.StatusCode, answer, err)
	}
	return nil
}
