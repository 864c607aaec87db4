package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"countersign/action/rule"
	"countersign/approvals"
	"countersign/handlers"
	"countersign/people"
	"countersign/triage"

	"go.opentelemetry.io/otel/trace"
)

// app is a console that serves: database, services, HTTP, background loops.
type app struct {
	db        *database
	people    *people.Service
	catalogue *rule.Catalogue
	http      *httpServer
	callbacks *triage.Callbacks
	triage    *triage.Service
	loops     *background
}

// appConfig is what a console needs to serve.
type appConfig struct {
	listener  net.Listener
	tls       *tls.Config
	publicURL string
	secret    secret
	log       *slog.Logger
	traces    trace.TracerProvider
	demo      handlers.Demo // nil: this is no demo
}

// startApp serves a console on an open database.
func startApp(ctx context.Context, db *database, o appConfig) (*app, error) {
	signer, err := approvals.NewSigner(ctx, db, o.secret.bytes, o.publicURL, audience)
	if err != nil {
		return nil, fmt.Errorf("%w; the secret is from %s", err, o.secret.source)
	}
	a := &app{db: db, people: people.New(db), catalogue: rule.NewCatalogue(db)}
	a.triage = triage.New(db, a.catalogue)
	callbacks, err := triage.NewCallbacks(db, db, a.catalogue, o.secret.bytes)
	if err != nil {
		return nil, err
	}
	a.callbacks = callbacks
	reconciler := triage.NewReconciler(db, db, db, a.catalogue)
	stopping := make(chan struct{})
	service := approvals.New(db, db, a.catalogue, db, signer, approvals.DefaultMaxOpen)
	handler, err := handlers.New(handlers.Config{
		Log:       o.log,
		Approvals: service,
		Triage:    a.triage,
		Cases:     triage.NewCases(db, db, a.catalogue),
		Callbacks: callbacks,
		Reconcile: reconciler,
		People:    a.people,
		Sessions:  people.NewSessions(db, strings.HasPrefix(o.publicURL, "https:")),
		Reads:     db,
		Pages:     db,
		CaseReads: db,
		RunReads:  db,
		Overview:  db,
		TaskReads: db,
		Directory: db,
		Stops:     db,
		Ready:     db.Ready,
		Traces:    o.traces,
		Metrics:   consoleMetrics(db.Pool()),
		Stopping:  stopping,
		Demo:      o.demo,
		PublicURL: o.publicURL,
	})
	if err != nil {
		return nil, err
	}
	a.loops = startBackground(db, service, a.triage, callbacks, reconciler, o.log)
	a.http = startHTTP(o.listener, handler, o.tls, o.log, sync.OnceFunc(func() { close(stopping) }))
	return a, nil
}

var errDatabaseEnded = errors.New("PostgreSQL ended by itself; its log is in the data folder")

// wait returns when the program is asked to stop, nil, or cannot go on.
func (a *app) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.http.failed:
		return err
	case <-a.db.gone():
		return errDatabaseEnded
	}
}

// stop drains requests and ends the loops. The database stays open.
func (a *app) stop() error {
	err := a.http.stop()
	a.loops.stop()
	return err
}
