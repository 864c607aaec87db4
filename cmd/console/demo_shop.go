package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"countersign/action/contract"
	"countersign/execution"
	"countersign/execution/sandbox"
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
func openShop(ctx context.Context, dsn string, control string, log *slog.Logger) (*shop, error) {
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
	return &shop{Sandbox: systems, url: localURL(ln.Addr(), false), http: startHTTP(ln, systems.Handler(), nil, log, nil)}, nil
}

func (s *shop) stop() error { return errors.Join(s.http.stop(), s.Close()) }

// inSteps is the sandbox's tool that takes several requests, which the executor
// does not make.
const inSteps = "catalog.set_price_and_notify"

// demoDefinitions are the contracts of the sandbox that the executor can carry
// out, and bare definitions of tools that nothing here executes.
func demoDefinitions() (served, bare []definition, err error) {
	if served, err = allDefinitions(sandbox.Contracts()); err != nil {
		return nil, nil, err
	}
	served = slices.DeleteFunc(served, func(d definition) bool { return strings.HasPrefix(d.where, inSteps+".") })
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

// calledBack is the tool whose outcomes the sandbox tells by itself.
const calledBack = "refunds.refund_order"

// connectCallbacks makes the sandbox tell the console what became of refunds
// that it only accepted. Its secret is another one after every start.
func (d *demoRun) connectCallbacks(ctx context.Context) error {
	if _, err := d.app.callbacks.RotateSecret(ctx, calledBack, d.shop.Tokens().RefundsSecret, 0, byCommandLine()); err != nil {
		return fmt.Errorf("accepting callbacks: %w", err)
	}
	return d.shop.CallBack(ctx, d.file.Console+"/v1/callbacks/"+calledBack, sandbox.SignCurrent)
}

// executorConfig makes an executor serve the sandbox's tools, and no others.
func (s *shop) executorConfig(console, key string, served []string) execution.Config {
	t := s.Tokens()
	config := execution.Config{Console: console, Key: execution.NewSecret(key), Name: "demo-executor"}
	for _, system := range []struct{ name, read, write string }{
		{sandbox.Catalog, t.CatalogRead, t.CatalogWrite},
		{sandbox.Refunds, t.RefundsRead, t.RefundsWrite},
		{sandbox.Orders, t.OrdersRead, t.OrdersWrite},
	} {
		desk := execution.System{BaseURL: s.url + "/" + system.name, ActorHeader: "X-Actor",
			ReadToken: execution.NewSecret(system.read), WriteToken: execution.NewSecret(system.write)}
		for _, tool := range served {
			if strings.HasPrefix(tool, system.name+".") {
				desk.Tools = append(desk.Tools, tool)
			}
		}
		config.Systems = append(config.Systems, desk)
	}
	return config
}
