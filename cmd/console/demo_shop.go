package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"countersign/action/contract"
	"countersign/execution"
	"countersign/execution/sandbox"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

//go:embed democontracts/*.json
var demoContracts embed.FS

// shop is the sandbox as it runs here.
type shop struct {
	*sandbox.Sandbox
	http *httpServer
	url  string
}

// openShop runs the sandbox on a free port of this machine.
func openShop(ctx context.Context, dsn string, control string, traces trace.TracerProvider, log *slog.Logger) (*shop, error) {
	systems, err := sandbox.Open(ctx, dsn, sandbox.Tokens{Control: control})
	if err != nil {
		return nil, err
	}
	if err := systems.Seed(ctx); err != nil {
		return nil, errors.Join(err, systems.Close())
	}
	ln, err := listen("127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, systems.Close())
	}
	return &shop{Sandbox: systems, url: localURL(ln.Addr(), false), http: startHTTP(ln, tracedSystems(systems.Handler(), traces), nil, log, nil)}, nil
}

// tracedSystems makes spans of what business systems do, in the traces that
// their callers are in.
func tracedSystems(systems http.Handler, traces trace.TracerProvider) http.Handler {
	return otelhttp.NewHandler(systems, "business system", otelhttp.WithTracerProvider(traces), otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()))
}

func (s *shop) stop() error { return errors.Join(s.http.stop(), s.Close()) }

// demoDefinitions are the contracts of the sandbox that the executor can carry
// out, and bare definitions of tools that nothing here executes.
func demoDefinitions() (served, bare []definition, err error) {
	if served, err = allDefinitions(sandbox.Contracts()); err != nil {
		return nil, nil, err
	}
	files, err := fs.Sub(demoContracts, "democontracts")
	if err != nil {
		return nil, nil, fmt.Errorf("reading the demo's contracts: %w", err)
	}
	bare, err = allDefinitions(files)
	return served, bare, err
}

func allDefinitions(files fs.FS) ([]definition, error) {
	names, err := inFolder(files)
	if err != nil {
		return nil, err
	}
	return readDefinitions(files, names)
}

// applyDemoTools stores the demo's contracts and returns the names of those
// that the sandbox serves.
func applyDemoTools(ctx context.Context, a *app) (served []string, err error) {
	ours, bare, err := demoDefinitions()
	if err != nil {
		return nil, err
	}
	for _, r := range applyTools(ctx, a.catalogue, append(ours, bare...), byCommandLine()) {
		if r.err != nil {
			return nil, fmt.Errorf("the demo's contract %s: %w", r.where, r.err)
		}
	}
	for _, d := range ours {
		c, err := contract.Parse(d.raw)
		if err != nil {
			return nil, fmt.Errorf("the demo's contract %s: %w", d.where, err)
		}
		served = append(served, c.Name)
	}
	return served, nil
}

// connectCallbacks makes the sandbox tell the console what became of refunds and
// service requests that it only accepted. Its secrets are others after every start.
func (d *demoRun) connectCallbacks(ctx context.Context) error {
	t := d.shop.Tokens()
	for _, desk := range []struct{ system, tool, secret string }{
		{sandbox.Refunds, "refunds.refund_order", t.RefundsSecret},
		{sandbox.Service, "service.submit_request", t.ServiceSecret},
	} {
		if _, err := d.app.callbacks.RotateSecret(ctx, desk.tool, desk.secret, 0, byCommandLine()); err != nil {
			return fmt.Errorf("accepting callbacks: %w", err)
		}
		if err := d.shop.CallBack(ctx, desk.system, d.file.Console+"/v1/callbacks/"+desk.tool, sandbox.SignCurrent); err != nil {
			return err
		}
	}
	return nil
}

// executorConfig makes an executor serve the sandbox's tools, and no others.
func (s *shop) executorConfig(console, key string, served []string) execution.Config {
	config := execution.Config{Console: console, Key: execution.NewSecret(key), Name: "demo-executor"}
	for _, system := range sandbox.Systems() {
		read, write := s.Tokens().Of(system)
		desk := execution.System{BaseURL: s.url + "/" + system, ActorHeader: "X-Actor",
			ReadToken: execution.NewSecret(read), WriteToken: execution.NewSecret(write)}
		for _, tool := range served {
			if strings.HasPrefix(tool, system+".") {
				desk.Tools = append(desk.Tools, tool)
			}
		}
		config.Systems = append(config.Systems, desk)
	}
	return config
}
