package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
)

// serveFlags is what serve was told.
type serveFlags struct {
	addr, publicURL, cert, key string
	migrate                    bool
	place                      place
	log                        *slog.Logger
}

func (c *call) serveFlags() (serveFlags, error) {
	addr := c.text("addr", "COUNTERSIGN_ADDR", "127.0.0.1:8080", "`ADDRESS` to listen on")
	public := c.publicURLFlag()
	cert := c.text("tls-cert", "COUNTERSIGN_TLS_CERT", "", "`FILE` with the TLS certificate and its chain, PEM; read again when it changes")
	key := c.text("tls-key", "COUNTERSIGN_TLS_KEY", "", "`FILE` with the certificate's key, PEM")
	migrating := c.on("migrate", "bring DATABASE_URL to this program's schema first")
	where := c.databaseFlags(dataHome(c.env))
	c.environment("COUNTERSIGN_SECRET", "at least 32 random bytes in base64; the same for every console on one database.\n    \tUnset, with our own PostgreSQL: a file in the data folder. "+secretHint)
	c.tracesVariable()
	logger := c.logFlag()
	if _, err := c.parse(); err != nil {
		return serveFlags{}, err
	}
	log, err := logger()
	f := serveFlags{addr: *addr, publicURL: *public, cert: *cert, key: *key, migrate: *migrating, place: where(), log: log}
	if err == nil && f.publicURL != "" {
		f.publicURL, err = checkPublicURL(f.publicURL)
	}
	return f, err
}

func serve(ctx context.Context, c *call) (err error) {
	f, err := c.serveFlags()
	if err != nil {
		return err
	}
	secure, err := readTLS(f.cert, f.key, f.log)
	if err != nil {
		return err
	}
	ln, err := listen(f.addr)
	if err != nil {
		return err
	}
	defer ln.Close() // closed already after an ordinary stop
	if f.publicURL == "" {
		f.publicURL = localURL(ln.Addr(), secure != nil)
	}
	how := opening{log: f.log}
	if f.migrate {
		how.schema = schemaMigrate
	}
	if f.place.url == "" {
		if err := makeFolder(f.place.folder); err != nil {
			return err
		}
	}
	key, err := readSecret(c.env, f.place.folder)
	if err != nil {
		return err
	}
	db, err := f.place.open(ctx, how)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	traces, flush, err := startTraces(ctx, c.env, "countersign-console")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush()) }()
	console, err := startApp(ctx, db, appConfig{listener: ln, tls: secure, publicURL: f.publicURL, secret: key, log: f.log, traces: traces})
	if err != nil {
		return err
	}
	c.summary(f.settings(ln, key))
	f.warn(ln)
	err = console.wait(ctx)
	f.log.Info("stopping", "reason", stopReason(err))
	return errors.Join(err, console.stop())
}

func stopReason(err error) string {
	if err == nil {
		return "asked to"
	}
	return err.Error()
}

func (f serveFlags) settings(ln net.Listener, key secret) []setting {
	encrypted := "no"
	if f.cert != "" {
		encrypted = f.cert
	}
	return []setting{
		{"version", versionText()},
		{"addr", ln.Addr().String()},
		{"public-url", f.publicURL},
		{"tls", encrypted},
		{"database", f.place.describe()},
		{"secret", "set, from " + key.source},
	}
}

// warn tells what is fine on one's own machine and nowhere else.
func (f serveFlags) warn(ln net.Listener) {
	tcp, ok := ln.Addr().(*net.TCPAddr)
	if ok && !tcp.IP.IsLoopback() && f.cert == "" && !strings.HasPrefix(f.publicURL, "https:") {
		f.log.Warn("passwords and keys travel unencrypted: give --tls-cert and --tls-key, or put TLS in front and say so with --public-url https://…")
	}
}

// localURL is the console's address as seen from this machine.
func localURL(addr net.Addr, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return fmt.Sprintf("%s://%s", scheme, addr)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
