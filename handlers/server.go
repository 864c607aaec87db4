package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/people"
	"countersign/triage"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/httprate"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Config is what the handlers need of the rest. Everything is required except
// where it says otherwise.
type Config struct {
	Log       *slog.Logger
	Approvals *approvals.Service
	Triage    *triage.Service
	Cases     *triage.Cases
	Callbacks *triage.Callbacks
	Reconcile *triage.Reconciler
	People    *people.Service
	Sessions  *people.Sessions
	Reads     Reads
	Pages     PageReads
	CaseReads CaseReads
	RunReads  RunReads
	Overview  OverviewReads
	TaskReads TaskReads
	Directory DirectoryReads
	Stops     Stops
	Ready     func(context.Context) error // says why the console cannot serve now
	Stopping  <-chan struct{}             // closed when the console shuts down: those who wait are answered; nil: never
	Demo      Demo                        // the company beside a demo's console; nil: this is no demo
	Traces    trace.TracerProvider        // collects spans; nil: nobody does
	Metrics   *prometheus.Registry        // gets what the console measures beside what it has; nil: a registry of its own
	PublicURL string                      // as browsers and programs reach the console, such as https://console.example
}

// Reads is what handlers read past the domain. Every list takes a viewer and
// shows what they may see; who reads one action by its id has to look itself.
type Reads interface {
	// Snapshot reads an action and the database's clock; NotFound when there is none.
	Snapshot(ctx context.Context, id string) (action.Snapshot, error)
	// Actions lists actions, newest first.
	Actions(ctx context.Context, f approvals.Filter) ([]action.Action, time.Time, error)
	// ByID returns actions by their ids, as lists have them.
	ByID(ctx context.Context, ids ...string) ([]action.Action, error)
	// Linked returns the actions that compensate, resume or replace any of these.
	Linked(ctx context.Context, ids ...string) ([]action.Action, error)
	// Work lists what an executor should do, oldest first.
	Work(ctx context.Context, f approvals.WorkFilter) ([]action.Action, time.Time, error)
	// Tools lists the newest version of every tool by name, after a name.
	Tools(ctx context.Context, after string, limit int) ([]rule.ToolVersion, error)
	// Changes returns a channel that closes with the next change of any action
	// in this process. It is a hint: read again after it.
	Changes() <-chan struct{}
}

// server holds what the handlers of all routes share.
type server struct {
	Config
	catalogue *rule.Catalogue
	base      *url.URL // the public URL
	secure    bool     // browsers reach the console over TLS
	origins   *http.CrossOriginProtection
	failures  *httprate.RateLimiter // of API keys that are not known
	waiting   seats                 // of requests that wait
	streams   seats                 // of open pages that are told what is new
	looking   looking               // who has which action open
	filePage  int                   // rows of a file that are read at a time
	fileMost  int                   // requests in one file of the history
	openapi   []byte
	meters    *meters
	tracer    trace.Tracer
	mux       *chi.Mux
}

// Bounds of what one process takes on.
const (
	maxWaiting         = 1000 // requests that wait at a time
	maxWaitingEach     = 400  // of one API client
	maxStreams         = 2000 // open pages that are told what is new
	maxStreamsEach     = 32   // of one person
	maxFailedKeys      = 300  // per address and minute
	maxHeaderIDBytes   = 64
	ordinaryTime       = 30 * time.Second // to answer what does not wait
	writeTime          = 30 * time.Second // for an answer to be taken
	maxWait            = 60 * time.Second // of one long poll
	reread             = 500 * time.Millisecond
	betweenReads       = 50 * time.Millisecond
	betweenNews        = 2 * time.Second // of a page that is open
	defaultListed      = 50
	maxListed          = 200
	retryAfterBusy     = 2 * time.Second
	strictTransportAge = "max-age=31536000"
)

// New returns the console's handler. Whoever serves it bounds the time that
// headers and bodies have to arrive.
func New(cfg Config) (http.Handler, error) {
	table := routes()
	if cfg.Demo != nil {
		table = append(table, demoRoutes()...)
	}
	s, err := newServer(cfg, table)
	if err != nil {
		return nil, err
	}
	return s.mux, nil
}

func newServer(cfg Config, table []route) (*server, error) {
	base, err := url.Parse(cfg.PublicURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("the public URL %q is no address such as https://console.example", cfg.PublicURL)
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	s := &server{Config: cfg, catalogue: cfg.Approvals.Catalogue(), base: base, secure: base.Scheme == "https",
		origins: http.NewCrossOriginProtection(), filePage: filePage, fileMost: fileMost,
		waiting: seats{most: maxWaiting, each: maxWaitingEach}, streams: seats{most: maxStreams, each: maxStreamsEach},
		failures: httprate.NewRateLimiter(maxFailedKeys, time.Minute, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))}
	if cfg.Traces == nil {
		cfg.Traces = noop.NewTracerProvider()
	}
	s.tracer = cfg.Traces.Tracer("countersign/handlers")
	s.meters = newMeters(cfg.Metrics, cfg.Overview, cfg.Log)
	if err := s.origins.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return nil, fmt.Errorf("the public URL: %w", err)
	}
	if s.openapi, err = document(table, cfg.PublicURL); err != nil {
		return nil, err
	}
	return s, s.route(table)
}

// route builds the router.
func (s *server) route(table []route) error {
	s.mux = chi.NewRouter()
	s.mux.Use(s.observe)
	s.mux.NotFound(s.noSuchPlace)
	s.mux.MethodNotAllowed(s.noSuchMethod)
	seen := map[string]bool{}
	for _, rt := range table {
		if rt.name == "" || seen[rt.name] {
			return fmt.Errorf("the route %s %s has no name of its own: %q", rt.method, rt.pattern, rt.name)
		}
		seen[rt.name] = true
		if rt.handle == nil {
			return errors.New("the route " + rt.name + " has no handler")
		}
		s.mux.Method(rt.method, rt.pattern, s.serve(rt))
		if rt.method == http.MethodGet && rt.holds != forever {
			s.mux.Method(http.MethodHead, rt.pattern, s.serve(rt))
		}
	}
	return nil
}

// serve runs one route.
func (s *server) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		exchangeOf(r).route, exchangeOf(r).endless = rt.name, rt.holds == forever
		s.headers(w, rt)
		s.traced(w, r, rt, func(r *http.Request) { s.answer(w, r, rt) })
	}
}

// answer lets a request in, or not, and has it answered in time.
func (s *server) answer(w http.ResponseWriter, r *http.Request, rt route) {
	ctx, deadline := r.Context(), time.Time{}
	if rt.holds != forever {
		inTime, cancel := context.WithTimeout(ctx, rt.holds+ordinaryTime)
		defer cancel()
		ctx, deadline = inTime, time.Now().Add(rt.holds+ordinaryTime+writeTime)
	}
	// Where there is no connection to set it on, there is none to protect.
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
	inner := r.WithContext(ctx)
	c, err := s.admit(w, inner, rt)
	if err == nil {
		err = rt.handle(s, w, inner, c)
	}
	if err != nil {
		s.fail(w, r, rt.page(), c, err)
	}
}

// noSuchPlace answers an address that is none.
func (s *server) noSuchPlace(w http.ResponseWriter, r *http.Request) {
	rt := route{pattern: r.URL.Path, who: visitor()}
	s.headers(w, rt)
	var c caller
	err := error(action.Refuse(action.NotFound, "There is nothing at this address.").Because("address"))
	if rt.page() {
		if foreign := s.ownName(r); foreign != nil {
			err = foreign
		} else {
			c, _ = s.identify(w, r, rt) // only to keep the navigation on the page
		}
	}
	s.fail(w, r, rt.page(), c, err)
}

// noSuchMethod answers a method that an address does not take.
func (s *server) noSuchMethod(w http.ResponseWriter, r *http.Request) {
	rt := route{pattern: r.URL.Path}
	s.headers(w, rt)
	var allowed []string
	for _, m := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if s.mux.Match(chi.NewRouteContext(), m, routePath(r)) {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) == 0 { // a method that HTTP does not have, at an address that is none
		s.noSuchPlace(w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.fail(w, r, rt.page(), caller{}, action.Refuse(methodNotAllowed, "This address takes "+strings.Join(allowed, ", ")+"."))
}

// routePath is the path that the router matches.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}
