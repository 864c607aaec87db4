package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// traceFlush bounds how long the last spans may take to leave.
const traceFlush = 5 * time.Second

// startTraces makes what collects the spans of a service and exports them with
// OTLP over HTTP, to where the standard variables say; without those it collects
// nothing. The exporter reads its own variables (OTEL_EXPORTER_OTLP_HEADERS and
// so on), the sampler too. stop sends what is left.
func startTraces(ctx context.Context, env func(string) string, service string) (traces trace.TracerProvider, stop func() error, err error) {
	if !exportsTraces(env) {
		return noop.NewTracerProvider(), func() error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("exporting traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", productVersion())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("describing this service for traces: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return provider, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlush)
		defer cancel()
		return provider.Shutdown(ctx)
	}, nil
}

// tracesVariable documents where traces go.
func (c *call) tracesVariable() {
	c.environment("OTEL_EXPORTER_OTLP_ENDPOINT", "URL to export traces to, OTLP over HTTP; the other OTEL_… variables count too. Unset: none are collected")
}

// exportsTraces reports whether the environment names a place for traces.
func exportsTraces(env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(env("OTEL_TRACES_EXPORTER"), "none") {
		return false
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}
