package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/execution/api"
)

// listed stores a tool whose operations can be listed, and returns its name.
func (c *console) listed(t *testing.T) string {
	t.Helper()
	list := unique("shelf") + ".list"
	c.call(t, http.StatusCreated, c.Keys.Admin, http.MethodPut, "/v1/tools/"+list, map[string]any{"name": list, "mode": "read",
		"input_schema": map[string]any{"type": "object"}, "http": map[string]any{"method": "GET", "path": "/operations"}}, nil)
	return c.tool(t, "", `{"reconcile":{"list":"`+list+`","key":"/key","at":"/at","fields":{"/new_price":"/price"},"settle":"1s"}}`)
}

// applied is an approved change that an executor has made.
func (c *console) applied(t *testing.T, decider *tab, tool string) api.Action {
	t.Helper()
	a := c.price(t, tool, 105)
	decider.open("/actions/" + a.ID).approve()
	c.reaches(t, a.ID, "confirmed")
	return c.ends(t, a.ID, api.Receipt{Outcome: "SUCCESS", Proves: "completed", HTTPStatus: 200})
}

func operation(a api.Action, outcome, price string) api.ListedOperation {
	return api.ListedOperation{Key: a.ExecutionKey, At: a.Attempts[0].At.Format(time.RFC3339Nano), Outcome: outcome,
		Fields: map[string]json.RawMessage{"/new_price": json.RawMessage(price)}}
}

// compared asks for a run on the page, lists what an executor would, and waits
// on the page for its end.
func (p *tab) compared(c *console, tool string, items ...api.ListedOperation) string {
	p.t.Helper()
	p.open("/reconciliation").choose("#tool", tool).follow(".filter.wide button").want(http.StatusOK)
	path := p.path()
	c.call(p.t, http.StatusCreated, c.Keys.Executor, http.MethodPost, "/v1/reconciliations/"+strings.TrimPrefix(path, "/reconciliation/")+"/pages",
		api.ListedPage{PageID: unique("page-"), Items: items}, nil)
	eventually(p.t, "the comparison", func() bool { return strings.Contains(p.open(path).text(), "Compared") })
	return path
}

// A8, on the pages: a record that diverged silently is found, leads to its case,
// and what nobody knows here is explained, for everybody to read.
func TestA8_ReconciliationOnThePages(t *testing.T) {
	t.Parallel()
	orSkip(t, here.axe)
	c := orSkip(t, here.demo)
	tool := c.listed(t)
	decider, ops := c.as(t, "support", tool), c.as(t, "ops", tool)
	same, moved := c.applied(t, decider, tool), c.applied(t, decider, tool)
	stranger := operation(same, "SUCCEEDED", "105")
	stranger.Key += "-extra"
	ops.open("/approvals").click(".menu summary").follow(`.menu a[href="/reconciliation"]`).says("Nothing was compared yet.").checkPage("reconciliation-none")
	path := ops.compared(c, tool, operation(same, "SUCCEEDED", `"105.00"`), operation(moved, "SUCCEEDED", "501"), stranger)
	ops.says("105 here, 501 there", "Nothing here knows this key", "1 × decimals").checkPage("run")
	ops.follow(`main a[href^="/triage/cas_"]`).says("Two things are recorded that cannot both be true", "something else was done than was asked for")
	ops.open(path).fill("textarea", "Entered at the counter, ticket 8841.").follow(".explain button").at(path).says("Explained by", "Entered at the counter, ticket 8841.").checkPage("run-explained")

	auditor := c.as(t, "auditor")
	auditor.open(path).says("Explained by", "ticket 8841").hasNo(".explain").checkPage("auditor-run")
	auditor.open("/reconciliation").says(tool).hasNo("#tool").checkPage("auditor-reconciliation")
	file := eval[string](auditor, `fetch("`+path+`/differences.csv").then(r => r.text())`)
	for _, part := range []string{moved.ExecutionKey + ",mismatch,fields,", ",105,501,differs", stranger.Key + ",theirs_only,unknown,", "ticket 8841"} {
		if !strings.Contains(file, part) {
			t.Errorf("the file lacks %q:\n%s", part, file)
		}
	}
	decider.open("/reconciliation").want(http.StatusForbidden)
	decider.open(path).want(http.StatusForbidden)

	// The same again says nothing new, and nothing at all is no list of nothing.
	ops.compared(c, tool, operation(same, "SUCCEEDED", "105"), operation(moved, "SUCCEEDED", "501"), stranger)
	ops.says("Explained by").checkPage("run-again")
	ops.open("/reconciliation").follow(".switch button").checkPage("reconciliation-chinese")
}
