package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// How patient the servers are.
const (
	headerPatience = 10 * time.Second // for a request's header
	bodyPatience   = 20 * time.Second // for its body
	answerPatience = 2 * time.Minute  // for an answer, where a handler sets no other time
	idlePatience   = 2 * time.Minute  // between requests
	drainPatience  = 15 * time.Second // for what runs when we stop
	maxHeader      = 64 << 10         // bytes
)

// listen takes an address, and says the way out when it is taken.
func listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: choose another with --addr, such as --addr 127.0.0.1:8081, or --addr 127.0.0.1:0 for any free one", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on --addr %s: %w", addr, err)
	}
	return ln, nil
}

// httpServer is a server that runs.
type httpServer struct {
	srv    *http.Server
	failed chan error // gets why it ended by itself, if it does
}

// startHTTP serves on a listener that is there already. stopping runs when the
// server is about to stop: it ends what waits on purpose, such as long polls.
func startHTTP(ln net.Listener, h http.Handler, secure *tls.Config, log *slog.Logger, stopping func()) *httpServer {
	s := &httpServer{failed: make(chan error, 1), srv: &http.Server{
		Handler:           inTime(h),
		ReadHeaderTimeout: headerPatience,
		WriteTimeout:      answerPatience,
		IdleTimeout:       idlePatience,
		MaxHeaderBytes:    maxHeader,
		TLSConfig:         secure,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	if stopping != nil {
		s.srv.RegisterOnShutdown(stopping)
	}
	go func() {
		err := s.serve(ln)
		if !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving %s: %w", ln.Addr(), err)
		}
	}()
	return s
}

// inTime ends a request whose body, wanted or not, does not come soon: nobody
// has to be known to begin one. Once it is there, the answer may take its time.
func inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// Every connection of these servers has deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyPatience))
		}
		next.ServeHTTP(w, r)
	})
}

func (s *httpServer) serve(ln net.Listener) error {
	if s.srv.TLSConfig != nil {
		return s.srv.ServeTLS(ln, "", "")
	}
	return s.srv.Serve(ln)
}

// stop takes no more requests and waits for those that run, a bounded time.
func (s *httpServer) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainPatience)
	defer cancel()
	if err := s.srv.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("requests still ran after %s: %w", drainPatience, err), s.srv.Close())
	}
	return nil
}

// readTLS reads a certificate, nil where there is none. The files are read
// again when they change, so that a renewed certificate needs no restart.
func readTLS(cert, key string, log *slog.Logger) (*tls.Config, error) {
	if (cert == "") != (key == "") {
		return nil, usage("--tls-cert and --tls-key go together")
	}
	if cert == "" {
		return nil, nil
	}
	pair := &keyPair{certFile: cert, keyFile: key, log: log}
	if _, err := pair.current(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.current}, nil
}

// keyPairAge is how old a certificate as read may be.
const keyPairAge = time.Minute

type keyPair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	read time.Time
}

func (k *keyPair) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pair != nil && time.Since(k.read) < keyPairAge {
		return k.pair, nil
	}
	fresh, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	k.read = time.Now()
	switch {
	case err == nil:
		k.pair = &fresh
	case k.pair == nil:
		return nil, fmt.Errorf("reading the TLS certificate: %w", err)
	default: // one that is being replaced right now does not stop the server
		k.log.Warn("the TLS certificate cannot be read again: the one read before is served until it ends", "ends", k.pair.Leaf.NotAfter, "error", err)
	}
	return k.pair, nil
}
