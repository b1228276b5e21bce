package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
)

func TestListener_answersMalformedRequestsInTheFormatOfAllErrors(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	h := httptest.NewUnstartedServer(a.server.Handler())
	h.Listener = a.server.Listener(h.Listener)
	h.Start()
	t.Cleanup(h.Close)
	send := func(request string) (*http.Response, []byte) {
		t.Helper()
		c, err := net.Dial("tcp", h.Listener.Addr().String())
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		_, err = io.WriteString(c, request)
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r, body
	}
	for request, detail := range map[string]string{
		"GET /videos/%zz HTTP/1.1\r\nHost: a\r\n\r\n":   "The request line or a header is malformed. In the path, write a percent sign as %25.",
		"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n": "The request line or a header is malformed. In the path, write a percent sign as %25.",
		"GET /videos HTTP/1.1\r\n\r\n":                  "The request is malformed: missing required Host header.",
	} {
		r, body := send(request)
		require.Equal(t, http.StatusBadRequest, r.StatusCode, request)
		require.Equal(t, "application/problem+json", r.Header.Get("Content-Type"), request)
		require.NotEmpty(t, r.Header.Get("API-Version"))
		require.True(t, r.Close)
		var p client.Problem
		require.NoError(t, json.Unmarshal(body, &p), "%s", body)
		require.Equal(t, string(server.CodeInvalidRequest), p.Code)
		require.Equal(t, detail, p.Detail)
		require.Equal(t, r.Header.Get("X-Request-Id"), p.RequestID)
		require.Contains(t, a.log.String(), p.RequestID)
	}
	r, body := send("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Equal(t, "ok\n", string(body))
}
