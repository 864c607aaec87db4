package execution

import (
	"context"
	"net/http"

	"countersign/execution/api"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

func (o Options) tracer() trace.Tracer { return o.Traces.Tracer("countersign/execution") }

// working begins a span for a piece of work, in the trace of the request that
// proposed its action.
func (e *Executor) working(ctx context.Context, w api.Work) (context.Context, trace.Span) {
	if w.Traceparent != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": *w.Traceparent})
	}
	return e.opt.tracer().Start(ctx, "work "+w.Kind, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.String("countersign.action_id", w.ActionID), attribute.String("countersign.tool", w.Tool)))
}

// calling begins a span for one request to a business system, which is told the
// trace. Neither the address nor the content goes into it.
func (t *Tools) calling(ctx context.Context, name, tool string, header http.Header) (context.Context, trace.Span) {
	ctx, span := t.opt.tracer().Start(ctx, name+" "+tool, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("countersign.tool", tool)))
	carry(ctx, header)
	return ctx, span
}

// called ends the span of a request to a business system.
func called(span trace.Span, got reply) {
	if got.status > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", got.status))
	}
	if got.err != nil {
		span.SetStatus(codes.Error, "no answer")
	}
	span.End()
}

// carry tells the receiver of a request the trace that it belongs to (W3C Trace
// Context), if there is one.
func carry(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}
