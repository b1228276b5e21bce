package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
)

func TestHealthcheck_failsUnlessTheServerIsReady(t *testing.T) {
	t.Parallel()
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
	defer server.Close()
	check := func(url string) (int, string) {
		status, stdout, stderr := boottest.Run(t, run, nil, nil, "healthcheck", url)
		require.Empty(t, stdout)
		return status, stderr
	}
	status, stderr := check(server.URL + "/readyz")
	require.Zero(t, status, stderr)
	for _, answer = range []int{http.StatusServiceUnavailable, http.StatusFound} {
		status, stderr = check(server.URL + "/readyz")
		require.Equal(t, 1, status)
		require.Contains(t, stderr, server.URL+"/readyz answered with status ")
	}
	server.Close()
	status, stderr = check(server.URL + "/readyz")
	require.Equal(t, 1, status, stderr)
	status, stderr = check("readyz")
	require.Equal(t, 1, status, stderr)
	require.Contains(t, stderr, "it must be http://HOST/PATH")
}
