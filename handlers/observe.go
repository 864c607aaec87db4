package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"countersign/action"

	"github.com/go-chi/chi/v5/middleware"
)

// exchange is what is known of one request and its answer, for the log.
type exchange struct {
	id      string
	route   string      // its name in the table; "" when there is none
	trace   string      // hex; "" when the request is in none
	endless bool        // it ends when the reader leaves
	who     string      // id of the client or person
	code    action.Code // of what was refused
	cause   error       // internal
	cut     bool        // the answer had begun, and could not be finished
}

type exchangeKey struct{}

// exchangeOf returns the request's exchange.
func exchangeOf(r *http.Request) *exchange {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// requestID is the id of a request, which its answer, its log lines and the
// action it proposes carry.
func requestID(r *http.Request) string { return exchangeOf(r).id }

// observe gives every request an id, logs its answer and survives panics. It
// logs neither bodies nor headers nor addresses: any of them may hold a secret.
// An answer that cannot be finished it cuts off, so that nobody takes a part of
// a file for the whole.
func (s *server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		x := &exchange{id: r.Header.Get("X-Request-Id")}
		if !wellFormedID(x.id) {
			x.id = action.NewID("req")
		}
		w.Header().Set("X-Request-Id", x.id)
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			s.recovered(answer, r, recover())
			s.log(r, x, answer, time.Since(started))
			if x.cut {
				panic(http.ErrAbortHandler) // net/http's own way to cut a connection
			}
		}()
		next.ServeHTTP(answer, r)
	})
}

// wellFormedID reports whether a caller's own request id can be kept.
func wellFormedID(id string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return len(id) >= 8 && len(id) <= maxHeaderIDBytes && strings.Trim(id, allowed) == ""
}

// recovered answers after a panic.
func (s *server) recovered(w middleware.WrapResponseWriter, r *http.Request, panicked any) {
	if panicked == nil {
		return
	}
	s.Log.ErrorContext(r.Context(), "panic", "request_id", requestID(r), "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	s.fail(w, r, route{pattern: r.URL.Path}.page(), caller{}, fmt.Errorf("panic: %v", panicked))
}

func (s *server) log(r *http.Request, x *exchange, w middleware.WrapResponseWriter, took time.Duration) {
	status := w.Status()
	if status == 0 {
		status = http.StatusOK
	}
	failed := status >= http.StatusInternalServerError || x.cut
	s.meters.answered(x, r.Method, failed, status, took)
	level := slog.LevelInfo
	if failed {
		level = slog.LevelError
	}
	attributes := []slog.Attr{slog.String("request_id", x.id), slog.String("method", r.Method), slog.String("route", x.route),
		slog.Int("status", status), slog.Int("bytes", w.BytesWritten()), slog.Duration("took", took), slog.String("from", host(r.RemoteAddr))}
	if x.who != "" {
		attributes = append(attributes, slog.String("who", x.who))
	}
	if x.trace != "" {
		attributes = append(attributes, slog.String("trace_id", x.trace))
	}
	if x.cut {
		attributes = append(attributes, slog.Bool("cut", true))
	}
	if x.code != "" {
		attributes = append(attributes, slog.String("code", string(x.code)))
	}
	if x.cause != nil {
		attributes = append(attributes, slog.String("error", x.cause.Error()))
	}
	s.Log.LogAttrs(r.Context(), level, "request", attributes...)
}

// pagePolicy lets a page load its own files and nothing else; no inline script
// or style runs.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers sets what every answer carries. A handler may replace them.
func (s *server) headers(w http.ResponseWriter, rt route) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // no-referrer would make a form's Origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if rt.page() {
		h.Set("Content-Security-Policy", pagePolicy)
	}
	if s.secure {
		h.Set("Strict-Transport-Security", strictTransportAge)
	}
}
