package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/internal/tracing"
)

func TestStart_recordsSpansOnlyWithinATrace(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	ctx, span := tracing.Start(t.Context(), "no trace")
	require.Equal(t, t.Context(), ctx)
	tracing.End(span, nil)
	ctx, span = tracing.Root(t.Context(), nil, "no provider")
	require.Equal(t, t.Context(), ctx)
	tracing.End(span, nil)
	require.Empty(t, recorder.Ended())
	ctx, root := tracing.Root(t.Context(), provider, "root")
	_, child := tracing.StartCall(ctx, "child", attribute.Int("n", 1))
	tracing.End(child, nil)
	tracing.End(root, nil)
	ended := recorder.Ended()
	require.Len(t, ended, 2)
	require.Equal(t, "child", ended[0].Name())
	require.Equal(t, ended[1].SpanContext().SpanID(), ended[0].Parent().SpanID())
}

//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestStart_allocatesNothingWithoutATrace(t *testing.T) {
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, span := tracing.Start(ctx, "nothing")
		tracing.End(span, nil)
	}))
}

// statementError imitates an error of pgx: it has the SQLSTATE and the text of a failed statement.
type statementError struct{ state, text string }

func (e statementError) Error() string    { return e.text }
func (e statementError) SQLState() string { return e.state }

func TestEnd_recordsTheKindOfAnErrorAndNotItsText(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for want, err := range map[string]error{
		"rate_limited":        fmt.Errorf("%s: %w", secret, &source.Failure{Class: source.RateLimited, Detail: secret}),
		"22P02":               fmt.Errorf("%s: %w", secret, statementError{"22P02", secret}),
		"timeout":             fmt.Errorf("%s: %w", secret, context.DeadlineExceeded),
		"cancelled":           fmt.Errorf("%s: %w", secret, context.Canceled),
		"*errors.errorString": fmt.Errorf("more: %w", errors.New(secret)),
	} {
		recorder := tracetest.NewSpanRecorder()
		_, span := tracing.Root(t.Context(), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), "failing")
		tracing.End(span, err)
		ended := recorder.Ended()[0]
		require.Equal(t, codes.Error, ended.Status().Code)
		require.Equal(t, []attribute.KeyValue{attribute.String("error.type", want)}, ended.Attributes())
		require.Empty(t, ended.Status().Description)
		require.Empty(t, ended.Events())
	}
}

// The value of a panic can contain a secret, so a span must not record it.
func TestEnd_doesNotRecordAPanic(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	require.PanicsWithValue(t, "s3cret", func() {
		_, span := tracing.Root(t.Context(), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), "panicking")
		defer func() { tracing.End(span, nil) }()
		panic("s3cret")
	})
	require.Len(t, recorder.Ended(), 1)
	require.Empty(t, recorder.Ended()[0].Events())
}
