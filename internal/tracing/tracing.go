// Package tracing records spans. A span is one step of a trace: a request, a fetch, a statement, or a call to another server. A few
// functions begin a trace: they call Root with a trace.TracerProvider, which is nil if traces are off. All other functions call Start,
// which finds the trace in the context. If there is no trace, Start does nothing.
//
// No span contains a parameter of a statement, a token, a URL, or the text of an error, because each of them can be a secret.
package tracing

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the name of the tracer that records all spans of ReelTally.
const scope = "github.com/reeltally/reeltally"

// Root starts a span. If ctx has no span, the new span begins a new trace. If provider is nil, the span
// records nothing. The caller must call End.
func Root(ctx context.Context, provider trace.TracerProvider, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if provider == nil {
		return ctx, noop.Span{}
	}
	return provider.Tracer(scope).Start(ctx, name, options...)
}

// Start starts a span below the span of ctx. If ctx has no recorded span, the new span records nothing.
// The caller must call End.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return startSpan(ctx, name, trace.SpanKindInternal, attributes)
}

// StartCall starts a span like Start, for a call to another server or to the database.
func StartCall(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return startSpan(ctx, name, trace.SpanKindClient, attributes)
}

func startSpan(ctx context.Context, name string, kind trace.SpanKind, attributes []attribute.KeyValue) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, noop.Span{}
	}
	return above.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// End ends a span and records only the kind of err. Use End for all spans: a deferred span.End would
// record the value of a panic, possibly a secret.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", errorType(err)))
	}
	span.End()
}

// SetStatus adds the status code of an HTTP response to a span. If code is at least minErrorCode,
// the span gets the status "error".
func SetStatus(span trace.Span, code, minErrorCode int) {
	span.SetAttributes(attribute.Int("http.response.status_code", code))
	// minErrorCode is 400 for responses of other servers, and 500 for responses of this server.
	if code >= minErrorCode {
		span.SetStatus(codes.Error, "")
	}
}

// errorType returns the kind of an error. The kind is the class of a source's failure, the SQLSTATE of an error of PostgreSQL, "timeout",
// "cancelled", or otherwise the Go type of the error.
func errorType(err error) string {
	var classified interface{ ErrorType() string }
	var fromPostgres interface{ SQLState() string }
	switch {
	case errors.As(err, &classified):
		return classified.ErrorType()
	case errors.As(err, &fromPostgres):
		return fromPostgres.SQLState()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}
