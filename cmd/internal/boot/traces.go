package boot

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/http/httpguts"

	"github.com/reeltally/reeltally/outbound"
)

const (
	// flushTimeout is how long Traces.Stop may take. Docker Compose kills a collector that has not ended after 30 seconds, and its services may
	// already need 21 seconds to stop.
	flushTimeout = 3 * time.Second
	// traceErrorInterval is the shortest time between two log lines about spans that could not be sent.
	traceErrorInterval = time.Minute
)

// Traces sends the traces of a program to a receiver of OpenTelemetry. The zero value sends nothing.
type Traces struct {
	// Provider is used to start spans. It is nil if traces are off.
	Provider trace.TracerProvider

	provider *sdktrace.TracerProvider
	exporter sdktrace.SpanExporter
	logger   *slog.Logger
}

// Enabled returns true if traces are sent.
func (t *Traces) Enabled() bool { return t.Provider != nil }

// StartTraces begins to send traces if the environment names a receiver. The returned logger then
// adds trace ids. The caller must call Stop. Invalid variables give a UsageError.
func StartTraces(ctx context.Context, p Process, logger *slog.Logger) (*Traces, *slog.Logger, error) {
	env := func(name string) string {
		value, _ := p.Env(name)
		return strings.TrimSpace(value)
	}
	endpoint, err := traceEndpoint(env)
	if err != nil || endpoint == "" {
		return &Traces{}, logger, err
	}
	// Check the variables here, because the SDK of OpenTelemetry ignores invalid values.
	if err := checkTraceVariables(env); err != nil {
		return nil, nil, err
	}
	name := p.Name
	if name != "reeltally" {
		name = "reeltally-" + name
	}
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", name),
		attribute.String("service.version", Version()), attribute.String("service.instance.id", uuid.NewString())),
		resource.WithFromEnv()) // the last option has priority, so OTEL_SERVICE_NAME replaces the name of the program
	if err != nil {
		return nil, nil, UsageError{fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)}
	}
	otel.SetLogger(logr.FromSlogHandler(logger.Handler())) // without this logger, the SDK would write its warnings to standard error
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, err
	}
	// The SDK itself reads OTEL_TRACES_SAMPLER. It sends spans in the background, and drops spans while
	// its queue is full.
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(described), sdktrace.WithBatcher(&quietExporter{SpanExporter: exporter, logger: logger}))
	host, _ := url.Parse(endpoint)
	logger.InfoContext(ctx, "sending traces", "address", host.Scheme+"://"+host.Host+host.Path, "service", name)
	return &Traces{Provider: provider, provider: provider, exporter: exporter, logger: logger}, slog.New(traceLog{logger.Handler()}), nil
}

// Stop sends the spans that were not sent yet. If that takes longer than flushTimeout, Stop gives up.
func (t *Traces) Stop(ctx context.Context) {
	if !t.Enabled() {
		return
	}
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(flushing); err != nil {
		t.logger.WarnContext(ctx, "the last spans were not sent", "error", err)
	}
	// Stop the exporter, to end a request that is still running. Ignore the error: it is not nil if provider.Shutdown has already stopped the
	// exporter.
	_ = t.exporter.Shutdown(flushing)
}

// traceEndpoint returns the URL to which spans are sent, or "" if traces are off.
func traceEndpoint(env func(string) string) (string, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	variable := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	endpoint := env(variable)
	if endpoint == "" {
		variable = "OTEL_EXPORTER_OTLP_ENDPOINT"
		endpoint = env(variable)
	}
	if endpoint == "" {
		return "", nil
	}
	switch exporter := env("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", UsageError{fmt.Errorf("OTEL_TRACES_EXPORTER is %q; it must be otlp or none", exporter)}
	}
	u, err := outbound.ParseBaseURL(endpoint)
	if err != nil {
		// The error does not show the value, because the value can contain a password.
		return "", UsageError{fmt.Errorf("%s must be an http or https URL without user, password and query, for example http://127.0.0.1:4318", variable)}
	}
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

// checkTraceVariables returns a UsageError for the first variable of OpenTelemetry with an invalid value.
func checkTraceVariables(env func(string) string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if v := env(name); v != "" && v != "http/protobuf" {
			return UsageError{fmt.Errorf("%s is %q; it must be http/protobuf; receivers usually accept it at port 4318", name, v)}
		}
	}
	samplers := []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}
	if v := env("OTEL_TRACES_SAMPLER"); v != "" && !slices.Contains(samplers, strings.ToLower(v)) {
		return UsageError{fmt.Errorf("OTEL_TRACES_SAMPLER is %q; it must be one of %s", v, strings.Join(samplers, ", "))}
	}
	if v := env("OTEL_TRACES_SAMPLER_ARG"); v != "" {
		if ratio, err := strconv.ParseFloat(v, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return UsageError{fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q; it must be a number from 0 to 1", v)}
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if v := env(name); v != "" && !validTraceHeaders(v) {
			// Return an error here, because the SDK would log the invalid value. The value contains keys, so the error does not show it.
			return UsageError{fmt.Errorf("%s must have the form NAME=VALUE,NAME=VALUE, with percent-encoded values", name)}
		}
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY", "TRACES_CERTIFICATE", "TRACES_CLIENT_CERTIFICATE", "TRACES_CLIENT_KEY"} {
		name = "OTEL_EXPORTER_OTLP_" + name
		if v := env(name); v != "" {
			if _, err := os.Stat(v); err != nil {
				return UsageError{fmt.Errorf("%s: %w", name, err)}
			}
		}
	}
	return nil
}

// validTraceHeaders returns true if the SDK of OpenTelemetry can read the headers.
func validTraceHeaders(headers string) bool {
	for pair := range strings.SplitSeq(headers, ",") {
		name, value, found := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil || !httpguts.ValidHeaderFieldName(http.CanonicalHeaderKey(strings.TrimSpace(name))) || !httpguts.ValidHeaderFieldValue(decoded) {
			return false
		}
	}
	return true
}

// quietExporter logs errors of an exporter at most once in traceErrorInterval. So the log stays
// short if the receiver does not answer.
type quietExporter struct {
	sdktrace.SpanExporter
	logger *slog.Logger

	mu     sync.Mutex
	silent time.Time // time before which no error is logged
	lost   int       // number of spans that could not be sent since the last log line
}

// ExportSpans sends spans to the receiver. If that fails, it logs the error and returns nil.
func (e *quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += len(spans)
	if now := time.Now(); now.After(e.silent) {
		e.logger.WarnContext(ctx, "spans could not be sent", "spans", e.lost, "error", err)
		e.silent, e.lost = now.Add(traceErrorInterval), 0
	}
	return nil
}

// traceLog is a slog.Handler that adds the id of the trace to each line that belongs to a trace.
type traceLog struct{ slog.Handler }

// Handle adds the attribute trace_id if ctx has a span that will be sent.
func (l traceLog) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that also adds attrs.
func (l traceLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceLog{l.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that puts all later attributes into the group with this name.
func (l traceLog) WithGroup(name string) slog.Handler { return traceLog{l.Handler.WithGroup(name)} }
