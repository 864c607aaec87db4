package handlers

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
)

// metric is the value of a metric with exactly these labels, "" when there is none.
func metric(a answer, nameAndLabels string) string {
	for line := range strings.Lines(string(a.body)) {
		if value, ok := strings.CutPrefix(line, nameAndLabels+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestMetricsTellWhatIsOpen(t *testing.T) {
	e := newEnv(t)
	e.proposed(stage.SetPrice)
	e.confirmed(stage.SetPrice)
	e.unknown(stage.SetPrice)
	approved := e.proposed(stage.SetPrice)
	b := e.as(e.Mia)
	b.send("/actions/"+approved.ID+"/decisions", formOf("decision", "approve", "revision", "1", "proposal_hash", approved.ProposalHash)).want(303)
	e.pause(approvals.PauseTool, stage.ReadBack)
	e.post(people.RoleExecutor, "/v1/executors", api.Executor{Instance: "one", Name: "x", Tools: []string{}, Systems: []api.SystemHealth{
		{System: "https://pay.example", Reads: "half-open", Writes: "closed"}}}).want(200)

	a := e.get(people.RoleReader, "/metrics").want(200)
	for name, want := range map[string]string{
		"countersign_proposals_open":                  "1",
		"countersign_confirmed_open":                  "2",
		`countersign_cases_open{waits_for="person"}`:  "1",
		`countersign_cases_open{waits_for="machine"}`: "0",
		"countersign_pauses":                          "1",
		"countersign_executors":                       "1",
		`countersign_breaker_open{direction="reads",executor="x",system="https://pay.example"}`:  "1",
		`countersign_breaker_open{direction="writes",executor="x",system="https://pay.example"}`: "0",
		"countersign_database_up": "1",
		`countersign_receipts_total{outcome="UNKNOWN",tool="` + stage.SetPrice + `"}`: "1",
		`countersign_decision_seconds_count{decision="approved"}`:                     "1",
	} {
		if got := metric(a, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if age := metric(a, "countersign_cases_oldest_seconds"); age == "" || age == "0" {
		t.Errorf("the oldest case is %q old", age)
	}
	if n := metric(a, `countersign_http_request_seconds_count{class="2xx",method="POST",route="propose"}`); n != "4" {
		t.Errorf("%q proposals were measured", n)
	}
	e.proposed(stage.SetPrice)
	if got := metric(e.get(people.RoleReader, "/metrics"), "countersign_proposals_open"); got != "1" {
		t.Errorf("read again at once: %q", got) // a scrape costs a statement every few seconds at most
	}
	if p := e.do(request{method: get, path: "/metrics", key: e.limited(people.RoleReader, stage.SetPrice)}).refused(action.Forbidden); p.Reason != "tool" {
		t.Errorf("refused for %q", p.Reason)
	}
	e.do(request{method: get, path: "/metrics"}).refused(action.Unauthorized)
}

// Without a database the figures are left out, and that is said.
func TestMetricsWithoutADatabase(t *testing.T) {
	e := newEnv(t)
	closed := e.Open(e.DSN, store.Options{MaxConns: 1})
	if err := closed.DB.Close(); err != nil {
		t.Fatal(err)
	}
	_, broken := e.open(closed)
	families, err := broken.meters.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "countersign_proposals_open" || f.GetName() == "countersign_database_up" && f.Metric[0].Gauge.GetValue() != 0 {
			t.Errorf("%s is told", f.GetName())
		}
	}
}

// The list in the documentation is the list in the code.
func TestTheDocumentedMetricsAreThose(t *testing.T) {
	text, err := os.ReadFile("../docs/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(countersign_[a-z_]+)").FindAllSubmatch(text, -1) {
		if name := string(m[1]); !strings.HasPrefix(name, "countersign_executor_") { // see cmd/console
			documented = append(documented, name)
		}
	}
	e := newEnv(t)
	e.unknown(stage.SetPrice)
	e.inner.meters.decisions.WithLabelValues("approved")
	e.post(people.RoleExecutor, "/v1/executors", api.Executor{Instance: "one", Tools: []string{}, Systems: []api.SystemHealth{
		{System: "https://pay.example", Reads: "closed", Writes: "closed"}}}).want(200)
	families, err := e.inner.meters.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		known = append(known, f.GetName())
	}
	slices.Sort(documented)
	slices.Sort(known)
	if !slices.Equal(documented, known) {
		t.Errorf("documented %v\nmeasured %v", documented, known)
	}
}
