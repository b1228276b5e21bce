package boot_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/internal/tracing"
)

// logInsideAndOutsideSpan is a program that logs one line inside a span, and one outside.
func logInsideAndOutsideSpan(outside context.Context, p boot.Process) error {
	traces, logger, err := boot.StartTraces(outside, p, slog.New(slog.NewTextHandler(p.Stderr, nil)))
	if err != nil {
		return err
	}
	defer traces.Stop(outside)
	ctx, span := tracing.Root(outside, traces.Provider, "work")
	logger.With("part", 1).InfoContext(ctx, "in the span")
	tracing.End(span, nil)
	logger.InfoContext(outside, "outside")
	return nil
}

func TestTraces_logLinesHaveATraceIDOnlyInsideATrace(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base/v1/traces" {
			requests.Add(1)
		}
	}))
	t.Cleanup(receiver.Close)
	status, _, stderr := boottest.Run(t, logInsideAndOutsideSpan, nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.URL + "/base"})
	require.Zero(t, status)
	require.Regexp(t, `msg="in the span" part=1 trace_id=[0-9a-f]{32}\n`, stderr)
	require.Regexp(t, `msg=outside\n`, stderr)
	require.EqualValues(t, 1, requests.Load(), "Stop must send the span")
}

func TestTraces_areOffWithoutAReceiver(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"no variable":      nil,
		"SDK disabled":     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"another exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
		"no receiver":      {"OTEL_TRACES_SAMPLER": "always_on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := boottest.Run(t, logInsideAndOutsideSpan, nil, env)
			require.Zero(t, status)
			require.NotContains(t, stderr, "sending traces")
			require.NotContains(t, stderr, "trace_id")
		})
	}
}

func TestTraces_reportsTheInvalidVariable(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=127.0.0.1:4318":               "OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://me:s3cret@127.0.0.1":   "OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://s3cret":          "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an http or https URL",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                         `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; it must be http/protobuf;`,
		"OTEL_TRACES_EXPORTER=zipkin":                              `OTEL_TRACES_EXPORTER is "zipkin"; it must be otlp or none`,
		"OTEL_TRACES_SAMPLER=sometimes":                            `OTEL_TRACES_SAMPLER is "sometimes"; it must be one of always_on, always_off`,
		"OTEL_TRACES_SAMPLER_ARG=10":                               `OTEL_TRACES_SAMPLER_ARG is "10"; it must be a number from 0 to 1`,
		"OTEL_EXPORTER_OTLP_HEADERS=s3cret":                        "OTEL_EXPORTER_OTLP_HEADERS must have the form NAME=VALUE",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=api key=s3cret":         "OTEL_EXPORTER_OTLP_TRACES_HEADERS must have the form NAME=VALUE",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/no/such/certificate":      "OTEL_EXPORTER_OTLP_CERTIFICATE: stat /no/such/certificate",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b,other=s3cret%zz": "OTEL_EXPORTER_OTLP_HEADERS must have the form NAME=VALUE",
	} {
		name, value, _ := strings.Cut(setting, "=")
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
		env[name] = value
		status, _, stderr := boottest.Run(t, logInsideAndOutsideSpan, nil, env)
		require.Equal(t, 2, status, setting)
		require.Contains(t, stderr, want, setting)
		require.NotContains(t, stderr, "s3cret", setting)
	}
}
