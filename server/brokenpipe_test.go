package server_test

import (
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// brokenWriter is a ResponseWriter whose method Write fails, as if the visitor had closed the connection.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestPages_visitorWhoGoesAwayCausesNoError(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	for _, path := range []string{"/r/unknown", "/login", "/docs/guides/unknown"} {
		a.server.Handler().ServeHTTP(brokenWriter{httptest.NewRecorder()}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	log := a.log.String()
	require.NotContains(t, log, `"level":"ERROR"`)
	require.Contains(t, log, "cannot send the page")
}
