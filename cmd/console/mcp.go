package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/mcpserver"
)

// mcpFlags is what mcp was told.
type mcpFlags struct {
	console, key, addr string
	options            mcpserver.Options
	secure             *tls.Config
	log                *slog.Logger
}

func (c *call) mcpFlags() (f mcpFlags, err error) {
	console := c.text("console", "COUNTERSIGN_URL", "http://127.0.0.1:8080", "`URL` of the console")
	key := c.text("key", "COUNTERSIGN_KEY", "", "API `KEY` with the role proposer; better in the environment, where ps does not show it")
	entry := c.text("entry", "", "chat", "`ENTRY` point that the agent comes from: chat, background or workflow; it sees the tools that this loads")
	actor := c.text("actor", "", "", "`ID` of the user on whose behalf everything is proposed; when left out the agent says it each time")
	addr := c.text("addr", "", "", "`ADDRESS` to serve streamable HTTP on, at /mcp, instead of standard input and output; every request sends an API key of its own, as Authorization: Bearer")
	cert := c.text("tls-cert", "", "", "`FILE` with the TLS certificate and its chain, PEM, for --addr")
	certKey := c.text("tls-key", "", "", "`FILE` with the certificate's key, PEM")
	logger := c.logFlag()
	if _, err := c.parse(); err != nil {
		return f, err
	}
	f = mcpFlags{console: *console, key: *key, addr: *addr}
	switch {
	case f.addr == "" && f.key == "":
		return f, usage("--key is missing: an API key with the role proposer")
	case f.addr != "" && f.key != "":
		return f, usage("--key goes with standard input and output: over HTTP every request sends a key of its own, so leave --key and COUNTERSIGN_KEY out")
	case *entry != "chat" && *entry != "background" && *entry != "workflow":
		return f, usage("--entry is chat, background or workflow")
	}
	if f.log, err = logger(); err != nil {
		return f, err
	}
	if f.secure, err = readTLS(*cert, *certKey, f.log); err != nil {
		return f, err
	}
	f.options = mcpserver.Options{Entry: *entry, ActorID: *actor, Version: productVersion(), Logger: f.log}
	return f, nil
}

func runMCP(ctx context.Context, c *call) error {
	f, err := c.mcpFlags()
	if err != nil {
		return err
	}
	client, err := execution.NewClient(f.console, execution.NewSecret(f.key), execution.Options{Logger: f.log, Agent: "countersign (mcp)"})
	if err != nil {
		return err
	}
	if f.addr == "" {
		switch err := client.Check(ctx); {
		case execution.HasCode(err, action.Unauthorized):
			return fmt.Errorf("the console at %s does not take the key in --key or COUNTERSIGN_KEY: it is unknown, over or withdrawn. Ask an admin for another: console client -h", f.console)
		case err != nil:
			f.log.Warn("it is not known yet whether the console takes the key", "error", err)
		}
		return mcpserver.Serve(ctx, mcpserver.New(client, f.options), c.in, c.out)
	}
	ln, err := listen(f.addr)
	if err != nil {
		return err
	}
	stopping := make(chan struct{})
	f.options.Stopping = stopping
	server := startHTTP(ln, mcpserver.Handler(client, f.options), f.secure, f.log, sync.OnceFunc(func() { close(stopping) }))
	c.summary([]setting{{"mcp", localURL(ln.Addr(), f.secure != nil) + mcpserver.Path}, {"console", f.console}, {"entry", f.options.Entry}})
	if tcp, ok := ln.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && f.secure == nil {
		f.log.Warn("keys travel unencrypted: give --tls-cert and --tls-key, or put TLS in front")
	}
	select {
	case <-ctx.Done():
	case err = <-server.failed:
	}
	return errors.Join(err, server.stop())
}
