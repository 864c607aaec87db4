package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// untraced are routes that are asked again and again, and say nothing of an action.
func untraced(rt route) bool {
	return rt.holds == forever || slices.Contains([]string{"health", "ready", "static", "keys", "openapi", "metrics", "work", "noteExecutor"}, rt.name)
}

// traced runs an answer in a span, if anybody collects them. Programs may bring
// the trace that they are in (W3C Trace Context); browsers begin one. A span
// names the route, not the address: that may hold a secret.
func (s *server) traced(w http.ResponseWriter, r *http.Request, rt route, answer func(*http.Request)) {
	ctx := r.Context()
	if !rt.page() {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	if untraced(rt) {
		answer(r.WithContext(ctx))
		return
	}
	x := exchangeOf(r)
	attributes := []attribute.KeyValue{attribute.String("http.request.method", r.Method), attribute.String("http.route", rt.pattern),
		attribute.String("countersign.request_id", x.id)}
	if strings.Contains(rt.pattern, "{id}") {
		attributes = append(attributes, attribute.String("countersign.action_id", clipped(parameter(r, "id"))))
	}
	ctx, span := s.tracer.Start(ctx, r.Method+" "+rt.pattern, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	defer span.End()
	if span.SpanContext().IsValid() {
		x.trace = span.SpanContext().TraceID().String()
	}
	answer(r.WithContext(ctx))
	if answered, ok := w.(middleware.WrapResponseWriter); ok && answered.Status() > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", answered.Status()))
		if answered.Status() >= http.StatusInternalServerError || x.cut {
			span.SetStatus(codes.Error, "")
		}
	}
	if x.code != "" {
		span.SetAttributes(attribute.String("countersign.code", string(x.code)))
	}
}

// traceparent is the trace that a context is in, as it is carried; "" for none.
func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// traceID is the trace that a traceparent names; "" for none.
func traceID(traceparent string) string {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	if of := trace.SpanContextFromContext(ctx); of.HasTraceID() {
		return of.TraceID().String()
	}
	return ""
}
