package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// meters is what the console measures while it answers. What it reads of the
// database is in figures.
type meters struct {
	registry  *prometheus.Registry
	requests  *prometheus.HistogramVec
	decisions *prometheus.HistogramVec
	receipts  *prometheus.CounterVec
}

func newMeters(registry *prometheus.Registry, reads OverviewReads, log *slog.Logger) *meters {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	m := &meters{
		registry: registry,
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "countersign_http_request_seconds",
			Help:    "Time to answer a request, by the route's name; routes that wait on purpose take as long as they wait.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}}, []string{"route", "method", "class"}),
		decisions: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "countersign_decision_seconds",
			Help:    "Time that people took from what they were shown last to their decision, by the decision that ended the wait.",
			Buckets: []float64{5, 30, 60, 120, 300, 900, 3600}}, []string{"decision"}),
		receipts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "countersign_receipts_total",
			Help: "Receipts as judged, by tool and outcome: SUCCESS, FAILURE or UNKNOWN."}, []string{"tool", "outcome"}),
	}
	registry.MustRegister(m.requests, m.decisions, m.receipts, &figures{reads: reads, log: log})
	return m
}

// answered notes how long an answer took. One that could not be finished counts
// as failed, whatever status it began with.
func (m *meters) answered(x *exchange, method string, failed bool, status int, took time.Duration) {
	if x.endless {
		return
	}
	route := x.route
	if route == "" {
		route = "none"
	}
	if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut}, method) {
		method = "other" // whatever callers make up is not kept
	}
	class := strconv.Itoa(status/100) + "xx"
	if failed {
		class = "5xx"
	}
	m.requests.WithLabelValues(route, method, class).Observe(took.Seconds())
}

// decided notes how long people took, once a decision has ended the wait.
func (m *meters) decided(a action.Action) {
	if len(a.Decisions) == 0 || a.ProposedAt.IsZero() || a.State == action.Proposed {
		return
	}
	last, word := a.Decisions[len(a.Decisions)-1], "rejected"
	if last.Approve {
		word = "approved"
	}
	m.decisions.WithLabelValues(word).Observe(last.At.Sub(a.ProposedAt).Seconds())
}

// reported counts a receipt as it was judged.
func (m *meters) reported(a action.Action, receiptID string) {
	for _, r := range a.Receipts {
		if r.ID == receiptID {
			m.receipts.WithLabelValues(a.Tool, string(r.Outcome)).Inc()
		}
	}
}

// figures are the gauges that come from the database, read at most every
// figuresFor however often they are asked for.
type figures struct {
	reads OverviewReads
	log   *slog.Logger

	mu     sync.Mutex
	now    approvals.Figures
	health []approvals.Executor
	readAt time.Time
	failed bool
}

const (
	figuresFor     = 5 * time.Second
	figuresTimeout = 3 * time.Second
)

// gauges describes what figures tells, in the order in which the documentation does.
func gauges() []*prometheus.Desc {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("countersign_"+name, help, labels, nil)
	}
	return []*prometheus.Desc{
		describe("proposals_open", "Proposals that wait for people."),
		describe("proposals_oldest_seconds", "Age of the oldest of them; 0 when none waits."),
		describe("confirmed_open", "Approved actions that no executor has taken yet."),
		describe("confirmed_oldest_seconds", "Time since the oldest of them was approved; 0 when there is none."),
		describe("cases_open", "Unknown results, by what they wait for: person, second_person or machine.", "waits_for"),
		describe("cases_oldest_seconds", "Age of the oldest open case; 0 when there is none."),
		describe("pauses", "Tools, clients and scopes that are paused."),
		describe("executors", "Executor processes that were heard of within a minute."),
		describe("breaker_open", "1 while an executor leaves a business system alone, by what it does there: reads or writes.", "executor", "system", "direction"),
		describe("database_up", "1 when the figures above could be read just now, 0 when not: then they are left out."),
	}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range gauges() {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	g := gauges()
	tell := func(i int, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(g[i], prometheus.GaugeValue, value, labels...)
	}
	if f.failed {
		tell(9, 0)
		return
	}
	n := f.now
	tell(0, float64(n.Proposed.N))
	tell(1, age(n.Now, n.Proposed.Oldest))
	tell(2, float64(n.Confirmed.N))
	tell(3, age(n.Now, n.Confirmed.Oldest))
	tell(4, float64(n.NeedPerson), "person")
	tell(4, float64(n.NeedSecond), "second_person")
	tell(4, float64(n.Asking), "machine")
	tell(5, age(n.Now, n.OldestCase))
	tell(6, float64(n.Pauses))
	tell(7, float64(len(f.health)))
	for key, open := range breakersOf(f.health) {
		tell(8, open, key[0], key[1], key[2])
	}
	tell(9, 1)
}

// breakersOf is whether each breaker is open, by executor, system and
// direction. Processes of one name count as one: open as soon as one is.
func breakersOf(health []approvals.Executor) map[[3]string]float64 {
	found := map[[3]string]float64{}
	for _, e := range health {
		for _, s := range e.Systems {
			for direction, state := range map[string]string{"reads": s.Reads, "writes": s.Writes} {
				key := [3]string{e.Name, s.System, direction}
				found[key] = max(found[key], 0)
				if state != approvals.BreakerClosed {
					found[key] = 1
				}
			}
		}
	}
	return found
}

func (f *figures) refresh() {
	if time.Since(f.readAt) < figuresFor {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresTimeout)
	defer cancel()
	var err error
	if f.now, err = f.reads.Figures(ctx); err == nil {
		f.health, err = f.reads.Executors(ctx, people.Viewer{All: true}, approvals.ExecutorFresh, mostStopped)
	}
	if f.failed = err != nil; f.failed {
		f.log.Warn("the figures for the metrics cannot be read", "error", err)
	}
	f.readAt = time.Now()
}

func age(now time.Time, since *time.Time) float64 {
	if since == nil {
		return 0
	}
	return max(0, now.Sub(*since).Seconds())
}

// showMetrics is everything that is measured, in Prometheus' text format. It
// tells of all tools, so a key that is limited to some may not read it.
func (s *server) showMetrics(w http.ResponseWriter, r *http.Request, c caller) error {
	if v := c.viewer(); !v.All && (!v.Limited || len(v.Tools)+len(v.Scopes) > 0) {
		return action.Refuse(action.Forbidden, "The metrics tell of all tools: this key is limited to some.").Because("tool")
	}
	promhttp.HandlerFor(s.meters.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
	return nil
}
