package boot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// The arguments of a program can contain secrets, so /debug/pprof/cmdline must not be served.
func TestMetrics_servesProfilesButNotTheCommandLine(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	services, err := boot.Metrics{MetricsListen: "127.0.0.1:0"}.Services(t.Context(), boot.NewRegistry(), nil, logger)
	require.NoError(t, err)
	require.Len(t, services, 1)
	var line struct{ Address string }
	require.NoError(t, json.Unmarshal(log.Bytes(), &line))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- services[0](ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	get := func(path string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(line.Address, "/metrics")+path, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	for _, path := range []string{"/debug/pprof/profile?seconds=1", "/debug/pprof/allocs", "/debug/pprof/heap", "/debug/pprof/goroutine"} {
		answer := get(path)
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		p, err := profile.Parse(answer.Body)
		require.NoError(t, err, path)
		require.NotEmpty(t, p.SampleType, path)
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/", "/status"} {
		require.Equal(t, http.StatusNotFound, get(path).StatusCode, path)
	}
}
