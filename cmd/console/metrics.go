package main

import (
	"database/sql"
	"log/slog"
	"net"
	"net/http"
	"time"

	"countersign/execution"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// processMetrics is a registry with what every Go program tells of itself.
func processMetrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// consoleMetrics adds the pool of database connections.
func consoleMetrics(pool *sql.DB) *prometheus.Registry {
	r := processMetrics()
	r.MustRegister(collectors.NewDBStatsCollector(pool, "countersign"))
	return r
}

// executorMetrics is what an executor measures.
type executorMetrics struct {
	registry *prometheus.Registry
	attempts *prometheus.HistogramVec
}

func newExecutorMetrics() *executorMetrics {
	m := &executorMetrics{registry: processMetrics(), attempts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "countersign_executor_attempt_seconds",
		Help:    "Time that business systems took to answer attempts, by tool and outcome: SUCCESS, FAILURE or UNKNOWN.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"tool", "outcome"})}
	m.registry.MustRegister(m.attempts)
	return m
}

// attempted notes one attempt.
func (m *executorMetrics) attempted(tool, outcome string, took time.Duration) {
	m.attempts.WithLabelValues(tool, outcome).Observe(took.Seconds())
}

// watch adds the breakers of an executor.
func (m *executorMetrics) watch(e *execution.Executor) {
	m.registry.MustRegister(breakerCollector{e, prometheus.NewDesc("countersign_executor_breaker_open",
		"1 while a business system is left alone because it does not answer, by what is done there: reads or writes.", []string{"system", "direction"}, nil)})
}

type breakerCollector struct {
	executor *execution.Executor
	desc     *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (b breakerCollector) Describe(out chan<- *prometheus.Desc) { out <- b.desc }

// Collect implements prometheus.Collector.
func (b breakerCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range b.executor.Systems() {
		for direction, state := range map[string]string{"reads": s.Reads, "writes": s.Writes} {
			open := 1.0
			if state == "closed" {
				open = 0
			}
			out <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, open, s.System, direction)
		}
	}
}

// serveMetrics answers GET /metrics on an address of its own, until stop is
// called; nothing else is served there, and no key is asked for.
func serveMetrics(addr string, r *prometheus.Registry, log *slog.Logger) (at net.Addr, stop func() error, err error) {
	ln, err := listen(addr)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	return ln.Addr(), startHTTP(ln, mux, nil, log, nil).stop, nil
}
