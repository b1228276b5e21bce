package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/internal/tracing"
)

// traceRequests returns a middleware that records a span for each request, except for health
// checks. The span belongs to the trace in the caller's header traceparent.
func (s *Server) traceRequests() echo.MiddlewareFunc {
	if s.traces == nil {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r, route := c.Request(), c.Path()
			if route == "/livez" || route == "/readyz" {
				return next(c)
			}
			method := methodOf(r)
			// A page or an MCP tool call sends its requests within the server. Then ctx already has a span, so
			// the span of this request has the kind "internal".
			ctx, kind := r.Context(), trace.SpanKindInternal
			if !trace.SpanContextFromContext(ctx).IsValid() {
				ctx, kind = withCaller(ctx, r.Header), trace.SpanKindServer
			}
			// The span does not contain the path, because a path can contain a link or a secret.
			ctx, span := tracing.Root(ctx, s.traces, strings.TrimSpace(method+" "+route), trace.WithSpanKind(kind), trace.WithAttributes(
				attribute.String("http.request.method", method), attribute.String("http.route", route), attribute.String("reeltally.request_id", requestID(c))))
			defer func() { tracing.End(span, nil) }()
			c.SetRequest(r.WithContext(ctx))
			err := next(c)
			tracing.SetStatus(span, c.Response().Status, http.StatusInternalServerError)
			if state := stateFrom(c.Request().Context()); state != nil {
				span.SetAttributes(attribute.String("reeltally.organisation_id", state.Organisation.ID.String()))
			}
			return err
		}
	}
}

// withCaller returns ctx with the span of the caller, which the header traceparent names. It drops the header tracestate, because a caller
// can write any text into it.
func withCaller(ctx context.Context, h http.Header) context.Context {
	caller := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h)))
	if !caller.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, caller.WithTraceState(trace.TraceState{}))
}

// methodOf returns the method of a request. For CONNECT, TRACE and unknown methods it returns "_OTHER", because a client can send any text.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "_OTHER"
}
